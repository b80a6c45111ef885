"""A copy of the sources that has every mutant of a module in it, and builds. A variable of the environment chooses one when the copy runs."""
import re
import shutil
import subprocess
from pathlib import Path

from sites import Source

# Chosen once, when the first site asks. Number 0 is the module as it is.
SUPPORT = """internal import Glibc

public let mutantChosen: Int = getenv("CARDEA_MUTANT").map { atol($0) } ?? 0
public func mutantKeeps(_ number: Int) -> Bool { mutantChosen != number }
public func mutantNot(_ number: Int, _ value: Bool) -> Bool { value != (mutantChosen == number) }
public func mutantBool(_ number: Int, _ value: Bool) -> Bool { value != (mutantChosen == number) }
public func mutantNumber<T: FixedWidthInteger>(_ number: Int, _ value: T) -> T {
    mutantChosen == number ? (value == 1 ? 0 : value &+ 1) : value
}
"""
PRECEDENCE = {
    "<": "Comparison", "<=": "Comparison", ">": "Comparison", ">=": "Comparison", "==": "Comparison", "!=": "Comparison",
    "&&": "LogicalConjunction", "||": "LogicalDisjunction", "+": "Addition", "-": "Addition", "&+": "Addition", "&-": "Addition",
    "|": "Addition", "*": "Multiplication", "&": "Multiplication", "<<": "BitwiseShift", ">>": "BitwiseShift", "+=": "Assignment",
    "-=": "Assignment",
}
DISFAVOURED = "@_disfavoredOverload @inline(__always) "
COMPARABLE, NUMBERS, INTEGERS = "Comparable", "AdditiveArithmetic", "FixedWidthInteger"
ERROR = re.compile(r"^(/[^:\n]+\.swift):(\d+):(\d+): error: (.*)$", re.M)
# Characters that an operator of Swift may have and no source here does: digits of a number that is part of an operator's name.
DIGITS = [chr(code) for code in range(0x2200, 0x2300)]


NAMED = re.compile("([\u2200-\u22ff])([\u2200-\u22ff])")


def digits(number):
    return DIGITS[number // 256] + DIGITS[number % 256]


def numbers_in(text):
    """Of the operators that a message of the compiler names."""
    return {(ord(high) - 0x2200) * 256 + ord(low) - 0x2200 for high, low in NAMED.findall(text)}


def operator(site, number):
    """The declaration of the operator that is written in place of the one at a site."""
    sign, name, other = site.before, site.before + digits(number), site.after
    chosen = f"mutantChosen == {number}"
    if site.kind == "not":
        return f"prefix operator {name}\npublic prefix func {name} (value: Bool) -> Bool {{ {chosen} ? value : !value }}\n"
    lines = [f"infix operator {name} : {PRECEDENCE[sign]}Precedence"]

    def function(generic, left, right, answer, body, attribute="@inline(__always) "):
        lines.append(f"{attribute}public func {name} {generic}(left: {left}, right: {right}) {answer} {{ {body} }}")

    body = f"{chosen} ? left {other} right : left {sign} right"
    if sign in ("&&", "||"):
        late = chosen_late(chosen, sign)
        function("", "Bool", "@autoclosure () -> Bool", "-> Bool", late)
        function("", "Bool", "@autoclosure () throws -> Bool", "rethrows -> Bool", late.replace("right()", "try right()"), DISFAVOURED)
    elif sign in ("==", "!="):
        # Only where the other one does not fit: both take `nil` beside an optional whose value can be compared.
        function("<T: Equatable>", "T", "T", "-> Bool", body, DISFAVOURED)
        function("<T>", "T?", "_OptionalNilComparisonType", "-> Bool", body)
    elif PRECEDENCE[sign] == "Comparison":
        function(f"<T: {COMPARABLE}>", "T", "T", "-> Bool", body)
    elif sign in ("+=", "-="):
        function(f"<T: {NUMBERS}>", "inout T", "T", "", f"if {chosen} {{ left {other} right }} else {{ left {sign} right }}")
    elif sign in ("<<", ">>"):
        function(f"<T: {INTEGERS}, U: BinaryInteger>", "T", "U", "-> T", body)
    elif sign in ("&+", "&-", "&", "|", "*"):
        function(f"<T: {INTEGERS}>", "T", "T", "-> T", body)
    else:
        function(f"<T: {NUMBERS}>", "T", "T", "-> T", body)
        stride = "right" if sign == "+" else "0 - right"
        against = "0 - right" if sign == "+" else "right"
        function(
            "<T: Strideable>", "T", "T.Stride", "-> T", f"left.advanced(by: {chosen} ? {against} : {stride})",
            DISFAVOURED)
    return "\n".join(lines) + "\n"


def chosen_late(chosen, sign):
    """The right side of && and || is evaluated where it decides, and not before."""
    decided = "!left" if sign == "&&" else "left"
    short, turned = ("false", "true") if sign == "&&" else ("true", "false")
    return (
        f"if {chosen} {{ if {decided} {{ return right() }}; return {turned} }}; "
        f"if {decided} {{ return {short} }}; return right()")


def rewritten(text, sites):
    """The source with all its sites. No line is added, so that a line of an error is a line of the source."""
    edits = []
    for number, site in sites:
        if site.replacement:
            start, end, form = site.replacement
            edits.append((start, (2, 0), end, form.format(digits(number))))
        for offset, order, form in site.insertions:
            edits.append((offset, order, offset, form.replace("{}", str(number), 1)))
    out, at = [], 0
    # What ends at a place comes before what begins there.
    for start, _, end, put in sorted(edits, key=lambda edit: (edit[0], edit[1])):
        out.append((text[at:start], at))
        out.append((put, None))
        at = max(at, end)
    out.append((text[at:], at))
    return out


def original(pieces, line, column):
    """The offset in the source that a place in the rewritten one comes from."""
    text = "".join(piece for piece, _ in pieces)
    start = 0
    for _ in range(line - 1):
        start = text.index("\n", start) + 1
    # The compiler counts octets.
    wanted = start + len(text[start : start + column].encode()[: column - 1].decode(errors="ignore"))
    reached, last = 0, 0
    for piece, at in pieces:
        if at is not None:
            last = at + min(len(piece), max(0, wanted - reached))
        reached += len(piece)
        if reached > wanted:
            return last
    return last


class Copy:
    """The sources of `root` in `folder`, with the mutants of those files of a module that `pattern` fits."""

    def __init__(self, root, folder, module, pattern, build):
        self.root, self.folder, self.module, self.build = Path(root), Path(folder), module, build
        self.texts, self.sites, self.pieces = {}, [], {}
        for path in sorted((self.root / "Sources" / module).rglob("*.swift")):
            name = str(path.relative_to(self.root))
            if re.search(pattern, name):
                self.texts[name] = path.read_text()
                self.sites += Source(name, self.texts[name]).sites()
        # A number is a site's for good, whatever is left out later.
        self.numbers = {site.key: number for number, site in enumerate(self.sites, 1)}

    def lay(self):
        """Brings the copy to what the sources are now. What is unchanged keeps its time, and is not compiled again."""
        self.folder.mkdir(parents=True, exist_ok=True)
        names = ["Package.swift", "Package.resolved", "Sources", "Tests", "config", "docs", "deploy", "Makefile", "CONTRIBUTING.md"]
        subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"] + names, cwd=self.root, check=True,
            stdout=(self.folder / "names").open("wb"))
        wanted = {name for name in (self.folder / "names").read_text().split("\0") if name and (self.root / name).is_file()}
        for name in wanted - set(self.texts):
            self.put(name, (self.root / name).read_bytes())
            shutil.copymode(self.root / name, self.folder / name)
        for folder in ("Sources", "Tests"):
            for path in (self.folder / folder).rglob("*.swift"):
                name = str(path.relative_to(self.folder))
                if name not in wanted and not name.endswith("/Mutants.swift"):
                    path.unlink()

    def put(self, name, content):
        path = self.folder / name
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def write(self, left_out):
        kept = [site for site in self.sites if site.key not in left_out]
        for name, text in self.texts.items():
            mine = [(self.numbers[site.key], site) for site in kept if site.file == name]
            self.pieces[name] = rewritten(text, mine)
            self.put(name, "".join(piece for piece, _ in self.pieces[name]).encode())
        operators = [operator(site, self.numbers[site.key]) for site in kept if site.kind in ("operator", "not")]
        self.put(f"Sources/{self.module}/Mutants.swift", (SUPPORT + "".join(operators)).encode())

    def compiled(self, left_out, say):
        """Leaves out, round by round, the sites that the compiler does not take, and adds them to `left_out`."""
        for _ in range(40):
            self.write(left_out)
            answer = self.build(["--target", self.module])
            if answer.returncode == 0:
                return
            errors = {(path, int(line), int(column), what) for path, line, column, what in ERROR.findall(answer.stdout)}
            before = len(left_out)
            for path, line, column, what in errors:
                self.blame(str(Path(path).relative_to(self.folder)), line, column, what, left_out)
            say(f"{len(errors)} errors, {len(left_out)} of {len(self.sites)} sites left out")
            if len(left_out) == before:
                raise SystemExit(f"does not build, and no site is to blame:\n{answer.stdout[-4000:]}")
        raise SystemExit("does not build after forty rounds")

    def blame(self, name, line, column, what, left_out):
        """Which sites an error belongs to: the operators that it names, else a statement of its line that has become one that may be left
        out, else what stands at its place, else all of its line or of the lines around it."""
        mine = [site for site in self.sites if site.file == name and site.key not in left_out]
        named = numbers_in(what)
        here = [site for site in mine if site.line == line]
        if name in self.pieces:
            place = original(self.pieces[name], line, column)
        else:
            place = -1
        around = []
        for reach in (1, 3, 8, 20, 60):
            around = around or [site for site in mine if abs(site.line - line) <= reach]
        for chosen in (
            [site for site in self.sites if self.numbers[site.key] in named],
            [site for site in here if site.kind == "statement"],
            [site for site in here if site.start <= place <= site.end],
            here,
            around,
        ):
            if chosen := [site for site in chosen if site.key not in left_out]:
                left_out.update(site.key for site in chosen)
                return
