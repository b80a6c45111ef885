"""The documentation as tests see it: pages, their blocks of code, and what stands between backquotes in their prose."""

import dataclasses
import pathlib
import re
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
MARKER = re.compile(r"<!-- (run|check) -->")
FENCE = re.compile(r"^( *)(`{3,}|~{3,}) *(.*?) *$")


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block: `language` and `kind` are the words behind its fence, `line` is the fence's."""

    page: str
    line: int
    language: str
    kind: str
    text: str
    follows: int | None  # the index of the block right before it, with nothing but blank lines between

    def __str__(self):
        return f"{self.page}:{self.line}"

    @property
    def names(self):
        """The file that the block is, as its first line says in a comment; None where it says nothing."""
        found = re.match(r"# ([\w.-]+\.\w+)(?:\s.*)?$", self.text.split("\n", 1)[0])
        return found and found[1]


@dataclasses.dataclass(frozen=True)
class Span:
    """The text between backquotes in a line of prose."""

    page: str
    line: int
    text: str

    def __str__(self):
        return f"{self.page}:{self.line}"


class Page:
    def __init__(self, path, text):
        self.path, self.text = path, text
        marker = MARKER.search("\n".join(text.split("\n")[:5]))
        self.kind = marker and marker[1]
        self.blocks, self.spans = [], []
        self._read()

    def _read(self):
        prose, fence, last = [], None, None
        for number, line in enumerate(self.text.split("\n"), 1):
            match = FENCE.match(line)
            if fence is None and match:
                fence = (number, match[2], match[3], last, [])
            elif fence is None:
                prose.append((number, line))
                last = last if not line.strip() else None
            elif match and not match[3] and match[2].startswith(fence[1]):
                at, _, info, follows, lines = fence
                language, _, kind = info.partition(" ")
                text = textwrap.dedent("\n".join(lines)) + "\n"
                self.blocks.append(Block(self.path, at, language, kind, text, follows))
                fence, last = None, len(self.blocks) - 1
            else:
                fence[4].append(line)
        assert fence is None, f"{self.path}:{fence[0]}: this block has no end"
        for number, line in prose:
            self.spans += [Span(self.path, number, text) for text in re.findall(r"(?<!`)`([^`]+)`(?!`)", line)]


def pages():
    """Every page that readers of the repository find, by its path."""
    paths = [ROOT / name for name in TOP] + sorted((ROOT / "docs").rglob("*.md"))
    return {page.path: page for page in (Page(str(path.relative_to(ROOT)), path.read_text()) for path in paths)}


def told(path, word):
    """The lines of the one `text told` block with that word on a page that does not run, for the promise of the command that says them."""
    [found] = [block for block in pages()[path].blocks if (block.language, block.kind) == ("text", "told") and word in block.text]
    return [line.strip() for line in found.text.split("\n") if line.strip()]


# --- Shell ------------------------------------------------------------------------------------------------------------

OPERATORS = ("&&", "||", ";;", "|&", ";", "|", "&", "\n", "(", ")")
RESERVED = {"if", "then", "else", "elif", "fi", "do", "done", "while", "until", "{", "}", "!", "time"}


class Shell:
    """Reads simple shell into `commands`: lists of words without quotes, assignments and redirections; those inside `$(…)` too."""

    def __init__(self, text):
        self.text, self.at, self.commands, self.heres = text, 0, [], []
        words, word = [], None
        while self.at < len(text):
            char = text[self.at]
            if char == "\\" and text[self.at + 1 : self.at + 2] == "\n":
                self.at += 2
            elif char in " \t":
                words, word = self._end(words, word)
                self.at += 1
            elif char == "#" and word is None:
                self.at = self._find("\n")
            elif operator := self._operator(word):
                words, word = self._end(words, word)
                if operator in OPERATORS:
                    self._command(words)
                    words = []
                else:
                    words.append(operator)
                self.at += len(operator)
                if operator == "\n":
                    self._skip_heres()
            else:
                word = (word or "") + self._part()
        words, _ = self._end(words, word)
        self._command(words)

    def _find(self, what):
        found = self.text.find(what, self.at)
        return len(self.text) if found < 0 else found

    def _operator(self, word):
        rest = self.text[self.at :]
        number = re.match(r"(\d*)(<<-?(?!<)|<<<|>>|>&|<&|>\||&>|>|<)", rest)
        if number and (word is None or not number[1]):
            if number[2].startswith("<<") and number[2] != "<<<":
                mark = re.match(r"\s*(['\"]?)(\w+)\1", rest[len(number[0]) :])
                self.heres.append(mark[2])
            return number[0]
        return next((one for one in OPERATORS if rest.startswith(one)), None)

    def _skip_heres(self):
        for mark in self.heres:
            end = re.compile(rf"^\t*{mark}$", re.M).search(self.text, self.at)
            self.at = end.end() if end else len(self.text)
        self.heres = []

    def _part(self):
        """Reads one piece of a word, from `at` on."""
        text, start = self.text, self.at
        if text[start] == "\\":
            self.at += 2
            return text[start + 1 : start + 2]
        if text[start] == "'":
            self.at += 1
            end = self._find("'")
            self.at = end + 1
            return text[start + 1 : end]
        if text[start] == '"':
            self.at += 1
            parts = ""
            while self.at < len(text) and text[self.at] != '"':
                parts += self._substitution() or self._part_of_quotes()
            self.at += 1
            return parts
        return self._substitution() or self._plain()

    def _plain(self):
        self.at += 1
        return self.text[self.at - 1]

    def _part_of_quotes(self):
        if self.text[self.at] == "\\":
            self.at += 1
        return self._plain()

    def _substitution(self):
        """`$(…)` and `<(…)`; the word has `…` in its place, which no judge takes for a value."""
        if not self.text.startswith(("$(", "<("), self.at):
            return None
        depth, end = 0, self.at + 1
        for end in range(self.at + 1, len(self.text)):
            depth += {"(": 1, ")": -1}.get(self.text[end], 0)
            if depth == 0:
                break
        self.commands += Shell(self.text[self.at + 2 : end]).commands
        self.at = end + 1
        return "…"

    @staticmethod
    def _end(words, word):
        return (words, None) if word is None else (words + [word], None)

    def _command(self, words):
        plain, skip = [], False
        for word in words:
            if skip:
                skip = False
            elif re.match(r"^\d*(<<-?|<<<|>>|>&|<&|>\||&>|>|<)$", word):
                skip = True
            else:
                plain.append(word)
        while plain and (plain[0] in RESERVED or re.match(r"^\w+\+?=", plain[0])):
            plain.pop(0)
        if plain and plain[0] in ("for", "case", "in"):
            plain = []
        if plain:
            self.commands.append(plain)
