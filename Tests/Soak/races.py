"""What the thread sanitizer says of a process, where the build has one (`make soak BUILD=thread`): every report, whole, in the history.

Reports go to a file of the process and not to its stderr, where they would stand between the lines of the log. The process goes on after
a report, so that one run shows every race that it meets; it ends with status 66 then."""

import parts

SUPPRESSIONS = parts.ROOT / "Tests" / "ThreadSanitizer" / "suppressions.txt"
NAME, RULER = "sanitizer", b"=================="
WORDS = (b"WARNING: ThreadSanitizer", b"FATAL: ThreadSanitizer", b"ERROR: ThreadSanitizer", b"ThreadSanitizer:DEADLYSIGNAL", b"ThreadSanitizer: CHECK")
# Of one report; what a race is stands in its first stacks.
BOUND = 16 << 10


def is_sanitized(binary):
    """Whether the thread sanitizer is part of a program."""
    with open(binary, "rb") as file:
        return b"__tsan_init" in file.read()


def environment(folder):
    """For a process whose reports shall lie in a folder. A report needs both stacks of a race: the longest history that there is."""
    options = f"log_path={folder}/{NAME} suppressions={SUPPRESSIONS} history_size=7 second_deadlock_stack=1"
    return {"TSAN_OPTIONS": options}


class Reports:
    """Reads the reports of a folder, each once."""

    def __init__(self, folder):
        self.folder, self.read = folder, {}

    def new(self, over=False):
        """Reports that are whole: (first words, text). `over`: whoever wrote them has ended, so that the last one is whole, too."""
        for path in sorted(self.folder.glob(f"{NAME}.*")):
            octets = path.read_bytes()[self.read.get(path, 0) :]
            whole = octets if over else octets[: octets.rfind(RULER) + len(RULER)] if RULER in octets else b""
            # A ruler opens a report and another one closes it.
            if not over and whole.count(RULER) % 2:
                whole = whole[: whole.rfind(RULER)]
            self.read[path] = self.read.get(path, 0) + len(whole)
            for part in whole.split(RULER):
                if any(word in part for word in WORDS):
                    text = part.decode(errors="replace").strip("\n")
                    yield summary(text), text[:BOUND]


def whose(number):
    return f"gateway {number}" if number else "the lab"


def summary(text):
    """The line that tells one race from another."""
    lines = [line for line in text.splitlines() if line.startswith("SUMMARY:")]
    return (lines or text.splitlines() or ["?"])[0]
