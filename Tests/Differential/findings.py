"""Counts and findings of a run, each finding with the octets that show it again."""

import collections
import dataclasses


@dataclasses.dataclass(slots=True)
class Finding:
    """Somebody understood something other than what was to be sent. `who`: gateway, or the server or client that read it."""

    who: str
    what: str
    expected: object
    found: object
    # Octets as they were emitted, and those of the script that led to them.
    emitted: bytes = b""
    received: bytes = b""
    number: int = -1

    def __str__(self):
        return (
            f"{self.who}: {self.what} (script {self.number})\n  expected {self.expected!r}\n  found    {self.found!r}\n"
            f"  emitted  {self.emitted!r}\n  received {self.received!r}"
        )


class Tally:
    """Counts by name, the first findings of each kind whole."""

    def __init__(self, keep=5):
        self.counts, self.findings, self.keep = collections.Counter(), [], keep
        self.kinds = collections.Counter()

    def count(self, name, by=1):
        self.counts[name] += by

    def found(self, finding):
        kind = (finding.who, finding.what)
        self.kinds[kind] += 1
        if self.kinds[kind] <= self.keep:
            self.findings.append(finding)

    def add(self, other):
        self.counts += other.counts
        for finding in other.findings:
            if sum((one.who, one.what) == (finding.who, finding.what) for one in self.findings) < self.keep:
                self.findings.append(finding)
        self.kinds += other.kinds
        return self

    def text(self):
        width = max((len(name) for name in self.counts), default=0)
        lines = [f"{name.ljust(width)} {self.counts[name]:>10}" for name in sorted(self.counts)]
        lines += [f"FINDING {count} × {who}: {what}" for (who, what), count in sorted(self.kinds.items())]
        return "\n".join([*lines, *map(str, self.findings)])
