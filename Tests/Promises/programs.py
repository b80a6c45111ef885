"""Programs that bring credentials, as a test writes them: shell scripts that keep a line for each run."""

import json
import time


def at(seconds):
    """A time of RFC 3339, so many seconds from now."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


class Bringer:
    """A script in the gateway's folder. `answer` may be changed while the gateway runs: it stands in a file beside the script.

    - more: lines of the shell that run before the answer is written."""

    def __init__(self, gateway, answer="", more="", name="bring"):
        self.path, self.told, self.ran = (gateway.folder / f"{name}{end}" for end in ("", ".json", ".runs"))
        self.answers(answer)
        self.path.write_text(f"#!/bin/sh\necho $$ >> {self.ran}\n{more}\ncat {self.told}\n")
        self.path.chmod(0o700)

    def answers(self, answer):
        if isinstance(answer, dict):
            answer = json.dumps(answer)
        # Renamed, so that no run reads half of it.
        beside = self.told.with_suffix(".new")
        beside.write_bytes(answer if isinstance(answer, bytes) else answer.encode())
        beside.rename(self.told)

    @property
    def runs(self):
        return len(self.ran.read_text().splitlines()) if self.ran.exists() else 0

    def block(self, **changes):
        return {"program": {"command": [str(self.path)], **changes}}
