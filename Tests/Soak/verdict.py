"""What an invariant found: how often it was tried, how often it was excused (the promise does not hold there), and where it broke."""

import dataclasses


@dataclasses.dataclass
class Verdict:
    name: str
    checked: int = 0
    excused: int = 0
    broken: list = dataclasses.field(default_factory=list)
    # Counts that are worth a line: what is allowed, and rare.
    notes: dict = dataclasses.field(default_factory=dict)

    def note(self, what, count=1):
        self.notes[what] = self.notes.get(what, 0) + count

    def breaks(self, text, *records):
        """`records` are the evidence."""
        self.broken.append((text, list(records)))


def gauge(function):
    """An invariant: takes the history and the weather, fills the verdict of its name."""

    def look(history, weather):
        verdict = Verdict(function.__name__.replace("_", " "))
        function(history, weather, verdict)
        return verdict

    look.__doc__, look.__name__ = function.__doc__, function.__name__
    return look
