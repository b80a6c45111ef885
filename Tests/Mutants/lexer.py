"""Tokens of Swift, as far as sites of mutants need them: a text literal is one token, whatever stands in it; comments are none."""
import re
from dataclasses import dataclass

OPERATOR = set("/=-+!*%<>&|^~?")
NAME = re.compile(r"[$\w]+")
NUMBER = re.compile(r"0x[0-9A-Fa-f_]+|0b[01_]+|0o[0-7_]+|[0-9][0-9_]*(\.[0-9][0-9_]*)?([eE][+-]?[0-9]+)?")
PAIRS = {")": "(", "]": "[", "}": "{"}


@dataclass
class Token:
    kind: str  # name, number, text, operator, mark
    text: str
    start: int
    end: int
    line: int
    # Index of the bracket that closes what this one opens, or the other way round.
    partner: int | None = None
    # Index of the bracket that this token stands in.
    within: int | None = None

    def spaced(self, source):
        """Blanks on both sides: a binary operator, as the format of this repository has it."""
        return source[self.start - 1].isspace() and source[self.end].isspace()


def literal_end(source, start):
    """Where a text literal ends, which begins with its number signs or its quote."""
    at = start
    while source[at] == "#":
        at += 1
    signs = "#" * (at - start)
    quote = '"""' if source.startswith('"""', at) else '"'
    at += len(quote)
    while True:
        if source.startswith(quote + signs, at):
            return at + len(quote) + len(signs)
        if source.startswith("\\" + signs, at):
            at += 1 + len(signs)
            if source[at] == "(":
                at = interpolation_end(source, at)
                continue
        at += 1


def interpolation_end(source, start):
    depth, at = 0, start
    while True:
        character = source[at]
        if character == '"' or (character == "#" and re.match(r'#+"', source[at : at + 4])):
            at = literal_end(source, at)
            continue
        depth += {"(": 1, ")": -1}.get(character, 0)
        at += 1
        if depth == 0:
            return at


def comment_end(source, at):
    if source.startswith("//", at):
        end = source.find("\n", at)
        return len(source) if end < 0 else end
    return source.index("*/", at) + 2


def tokens(source):
    """All tokens, with their brackets paired."""
    found, open_, at, line, counted = [], [], 0, 1, 0
    while at < len(source):
        character = source[at]
        if character.isspace():
            at += 1
            continue
        if source.startswith(("//", "/*"), at):
            at = comment_end(source, at)
            continue
        if character == '"' or re.match(r'#+"', source[at : at + 4]):
            kind, end = "text", literal_end(source, at)
        elif character.isdigit():
            kind, end = "number", NUMBER.match(source, at).end()
        elif character == "`":
            kind, end = "name", source.index("`", at + 1) + 1
        elif match := NAME.match(source, at):
            kind, end = "name", match.end()
        elif character in OPERATOR or source.startswith("..", at):
            allowed = OPERATOR | ({"."} if character == "." else set())
            kind, end = "operator", at
            while source[end] in allowed:
                end += 1
        else:
            kind, end = "mark", at + 1
        line += source.count("\n", counted, at)
        counted = at
        token = Token(kind, source[at:end], at, end, line, within=open_[-1] if open_ else None)
        if kind == "mark" and token.text in PAIRS:
            token.partner = open_.pop()
            token.within = open_[-1] if open_ else None
            found[token.partner].partner = len(found)
        found.append(token)
        if kind == "mark" and token.text in PAIRS.values():
            open_.append(len(found) - 1)
        at = end
    return found
