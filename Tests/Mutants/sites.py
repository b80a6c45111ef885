"""The places of a source at which one small fault can be put, and what has to be written there for a number to choose it."""
import re
from dataclasses import dataclass, field

from lexer import tokens

SWAPPED = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-", "-": "+",
    "&+": "&-", "&-": "&+", "+=": "-=", "-=": "+=", "*": "+", "&": "|", "|": "&", "<<": ">>", ">>": "<<",
}
# A line that begins with one of these is no statement that could be left out.
WORDS = set(
    """let var func init deinit subscript case default if else guard while for repeat switch do catch return throw break continue defer
    fallthrough import struct class enum actor extension protocol typealias associatedtype operator precedencegroup public private internal
    package fileprivate open static final mutating nonmutating nonisolated override convenience required lazy weak unowned indirect where in
    inout borrowing consuming some any macro true false nil async throws rethrows get set willSet didSet discard yield each is as
    """.split())
MAPPING = {"map", "flatMap", "compactMap"}
PROMISES = {"precondition", "preconditionFailure", "assert", "assertionFailure"}
TYPES = {"struct", "class", "enum", "actor", "extension", "protocol"}


@dataclass
class Site:
    file: str
    line: int
    kind: str
    # What stands there, and what the mutant has in its place.
    before: str
    after: str
    # (offset, order, text) to insert, and (start, end, form) to replace; `{}` takes the number.
    insertions: list = field(default_factory=list)
    replacement: tuple | None = None
    # Indices of the first and the last token that belong to it.
    span: tuple = (0, 0)
    # Offsets of its first octet and behind its last.
    start: int = 0
    end: int = 0
    key: str = ""


class Source:
    def __init__(self, path, text):
        self.path, self.text, self.tokens = path, text, tokens(text)
        self.unset = set(re.findall(r"\b(?:let|var) (\w+): [^={\n]+$", text, re.M))

    def sites(self):
        found = []
        for index, token in enumerate(self.tokens):
            for one in (self.operator, self.literal, self.condition, self.statement, self.answer):
                found += one(index, token)
        found = [site for site in found if not self.is_promised(site.span[0])]
        seen = {}
        for site in found:
            site.file = self.path
            site.start, site.end = self.tokens[site.span[0]].start, self.tokens[site.span[1]].end
            name = f"{self.path}|{site.kind}|{self.text.splitlines()[site.line - 1].strip()}|{site.before}>{site.after}"
            seen[name] = seen.get(name, 0) + 1
            site.key = f"{name}|{seen[name]}"
        return found

    def is_promised(self, index):
        """In a precondition: what callers within this code have promised, and no behaviour."""
        while index is not None:
            if self.at(index - 1) in PROMISES or self.at(index) in PROMISES:
                return True
            index = self.tokens[index].within
        return False

    def at(self, index):
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def slice(self, first, last):
        return self.text[self.tokens[first].start : self.tokens[last].end]

    def wrapped(self, first, last, kind, before, after, left, right):
        start, end = self.tokens[first].start, self.tokens[last].end
        # The wider of two that begin together comes first, and last of two that end together.
        width = end - start
        return Site(
            "", self.tokens[first].line, kind, before, after, [(start, (1, -width), left), (end, (0, width), right)], span=(first, last))

    # Operators

    def operator(self, index, token):
        if token.kind != "operator" or self.at(index - 1) in ("func", "operator"):
            return []
        if token.text == "!" and not self.text[token.end].isspace() and re.match(r"[\s(\[{]", self.text[token.start - 1]):
            return [Site("", token.line, "not", "!", "", replacement=(token.start, token.end, "!{}"), span=(index, index))]
        if token.text not in SWAPPED or not token.spaced(self.text) or self.is_in_type(index):
            return []
        after = SWAPPED[token.text]
        return [
            Site("", token.line, "operator", token.text, after, replacement=(token.start, token.end, token.text + "{}"), span=(index, index))]

    def is_in_type(self, index):
        """`where T == U` of a declaration, `Box<T> & Sendable`."""
        at = index - 1
        while at >= 0 and self.tokens[at].line >= self.tokens[index].line - 3:
            text = self.at(at)
            if text in ("func", "extension", "struct", "protocol", "typealias", "associatedtype", "init"):
                return not any(self.at(between) in "{}=" for between in range(at, index))
            at -= 1
        return False

    # Literals

    def literal(self, index, token):
        if token.text in ("true", "false") and token.kind == "name":
            if self.is_in_label(index) or self.at(index - 1) in (".", "@", "#"):
                return []
            other = "false" if token.text == "true" else "true"
            return [self.wrapped(index, index, "literal", token.text, other, "mutantBool({}, ", ")")]
        if token.kind != "number" or "." in token.text or self.at(index - 1) in (".", "@") or self.is_raw_value(index):
            return []
        if not token.text.startswith("0x") and "e" in token.text.lower():
            return []
        after = "0" if token.text == "1" else f"{token.text} + 1"
        return [self.wrapped(index, index, "constant", token.text, after, "mutantNumber({}, ", ")")]

    def is_in_label(self, index):
        """Between `case` and its colon: a switch would not be known to be exhaustive."""
        line = self.tokens[index].line
        at = index - 1
        while at >= 0 and self.tokens[at].line >= line - 2:
            if self.at(at) == "case":
                return True
            if self.at(at) in (":", "{", "}", ";"):
                return False
            at -= 1
        return False

    def is_raw_value(self, index):
        return self.at(index - 1) == "=" and self.at(index - 3) in ("case", ",") and self.is_in_label(index)

    # Conditions

    def condition(self, index, token):
        if token.kind != "name" or token.text not in ("if", "guard", "while", "where") or self.at(index - 1) in (".", "#"):
            return []
        end = index + 1
        stops = {"guard": ("else",), "where": ("{", ":")}.get(token.text, ("{",))
        bounds, first = [], end
        while end < len(self.tokens):
            here = self.tokens[end]
            if here.text in stops and here.kind in ("name", "mark"):
                break
            if here.text == "," and here.kind == "mark":
                bounds.append((first, end - 1))
                first = end + 1
            if here.partner is not None and here.partner > end:
                end = here.partner
            elif here.text in (")", "]", "}"):
                return []
            end += 1
        bounds.append((first, end - 1))
        if token.text == "where" and self.is_declaration(index):
            return []
        return [site for first, last in bounds for site in self.negated(first, last, "condition")]

    def is_declaration(self, index):
        at = index - 1
        while at >= 0:
            if self.at(at) in ("for", "case", "catch"):
                return False
            if self.at(at) in ("func", "extension", "struct", "protocol", "init", "class", "enum", "{", "}"):
                return True
            at -= 1
        return True

    def negated(self, first, last, kind):
        if last < first or self.at(first) in ("let", "var", "case", "#", "_", "try", "await", "if", "switch"):
            return []
        if self.at(first) in WORDS - {"true", "false"}:
            return []
        # Where one operator decides the whole, its own mutant is the same.
        depth, tops, at = 0, [], first
        while at <= last:
            token = self.tokens[at]
            if token.kind == "operator" and token.spaced(self.text):
                tops.append(token.text)
            if token.partner is not None and at < token.partner <= last:
                at = token.partner
            at += 1
        if tops in (["=="], ["!="]) or (not tops and self.at(first) in ("!", "true", "false")):
            return []
        text = self.slice(first, last)
        return [self.wrapped(first, last, kind, text, f"!({text})", "mutantNot({}, ", ")")]

    # Statements

    def is_block(self, opening):
        """Whether a brace opens statements, and not the members of a type."""
        at = opening - 1
        while at >= 0 and self.at(at) not in ("{", "}", ";"):
            if self.at(at) in TYPES and self.tokens[at].kind == "name" and self.at(at - 1) != ".":
                return False
            if self.at(at) in ("func", "init", "var", "if", "guard", "for", "while", "switch"):
                return True
            at -= 1
        return True

    def begins_statement(self, index, token):
        if token.within is None or self.at(token.within) != "{" or token.kind == "text":
            return False
        if token.kind == "name" and token.text in WORDS - {"super"} or token.kind in ("number", "operator"):
            return False
        if token.kind == "mark" and token.text not in ("@",):
            return False
        before = self.tokens[index - 1]
        if before.text in ("{", ";"):
            # `map { $0.name() }` has a value: left out, the closure may still compile, with () for every element.
            return self.is_block(token.within) and self.at(token.within - 1) not in MAPPING
        if before.text == ":":
            return self.is_in_label(index - 1) and self.is_block(token.within)
        if before.line == token.line or before.text in (",", "(", "[", ".") or before.text in ("in", "return", "else", "="):
            return before.text == "in" and before.line < token.line
        if before.kind == "operator" and self.text[before.start - 1].isspace():
            return False
        return self.is_block(token.within)

    def statement_end(self, index):
        end = index
        while end + 1 < len(self.tokens):
            here, after = self.tokens[end], self.tokens[end + 1]
            if here.partner is not None and here.partner > end:
                end = here.partner
                continue
            if after.text in ("}", ";", ")", "]"):
                break
            if after.line > here.line:
                binary = after.kind == "operator" and self.text[after.end].isspace()
                goes_on = after.text in (".", ":", "else", "{", "=", "where") or binary or after.text == "?"
                hangs = here.text in (",", "=", "in") or (here.kind == "operator" and self.text[here.start - 1].isspace())
                if not goes_on and not hangs:
                    break
            end += 1
        return end

    def statement(self, index, token):
        if not self.begins_statement(index, token):
            return []
        last = self.statement_end(index)
        tops, at = [], index
        while at <= last:
            here = self.tokens[at]
            tops.append(here.text)
            if here.partner is not None and at < here.partner <= last:
                at = here.partner
            at += 1
        assigns = any(text.endswith("=") and text not in ("==", "!=", "<=", ">=") for text in tops)
        if any(text in ("if", "switch") for text in tops) or "return" in tops:
            return []
        if assigns:
            target = tops[0]
            if (target == "self" and self.is_in_init(index)) or (len(tops) > 1 and tops[1] == "=" and target in self.unset):
                return []
        elif self.at(last) not in (")", "}") or last == index:
            return []
        text = " ".join(self.slice(index, last).split())
        return [self.wrapped(index, last, "statement", text, "left out", "if mutantKeeps({}) { ", " }")]

    def is_in_init(self, index):
        opening = self.tokens[index].within
        while opening is not None:
            at = opening - 1
            while at >= 0 and self.at(at) not in ("{", "}"):
                if self.at(at) == "init" and self.at(at - 1) != ".":
                    return True
                at -= 1
            opening = self.tokens[opening].within
        return False

    # Answers of functions that return Bool

    def answer(self, index, token):
        if token.text == "return" and token.kind == "name" and self.returns_bool(index):
            last = self.statement_end(index)
            if self.tokens[index + 1].line == token.line and last > index:
                return self.negated(index + 1, last, "answer")
        if token.text == "{" and self.header_is_bool(index) and token.partner is not None and token.partner > index + 1:
            last = self.statement_end(index + 1)
            if last + 1 == token.partner:
                return self.negated(index + 1, last, "answer")
        return []

    def header_is_bool(self, opening):
        return self.at(opening - 1) == "Bool" and self.at(opening - 2) in ("->", ":")

    def returns_bool(self, index):
        """Of the innermost function, accessor or closure that says what it returns."""
        opening = self.tokens[index].within
        while opening is not None:
            if self.at(opening) == "{":
                if self.header_is_bool(opening):
                    return True
                at = opening - 1
                while at >= 0 and self.at(at) not in ("{", "}", ";"):
                    if self.at(at) in ("func", "init", "var", "->"):
                        return False
                    at -= 1
                if self.at(opening - 1) in ("(", "=", ",") or self.at(opening + 1).startswith("$"):
                    return False
            opening = self.tokens[opening].within
        return False
