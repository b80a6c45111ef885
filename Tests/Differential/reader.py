"""A strict reader of HTTP/1.1 written from RFC 9112 alone: it shares nothing with the gateway and knows nothing of it.

Octets before a message's end are one of three things: a whole message, the beginning of one (`More`), or octets that two readers could
read differently (`Refused`)."""

import dataclasses
import re

Fields = list[tuple[bytes, bytes]]


@dataclasses.dataclass(slots=True)
class Message:
    """A message as it was read. Of a request `start` is (method, target, minor version), of an answer (status, reason, minor version)."""

    start: tuple
    fields: Fields
    # none, length, chunked, or close: up to the end of the connection.
    framing: str = "none"
    body: bytes = b""
    trailers: Fields = dataclasses.field(default_factory=list)
    # The received octets, from the first to the last.
    octets: bytes = b""
    # The connection ends behind this answer; octets that follow on it are no further answer.
    last: bool = False

    def values(self, name):
        return [value for key, value in self.fields if key.lower() == name]


class Refused(Exception):
    """The octets have no one meaning; the argument says why."""


class More(Exception):
    """The octets end before the message does."""


TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
# Octets that RFC 3986 has not are let through: no two readers part the line differently there.
REQUEST_LINE = re.compile(rb"(" + TOKEN + rb") ([\x21\x22\x24-\x7e\x80-\xff]+) HTTP/1\.([0-9])", re.DOTALL)
STATUS_LINE = re.compile(rb"HTTP/1\.([0-9]) ([1-9][0-9]{2})(?: (.*))?", re.DOTALL)
FIELD = re.compile(rb"(" + TOKEN + rb"):[ \t]*(.*?)[ \t]*", re.DOTALL)
SPACED_FIELD = re.compile(rb"(" + TOKEN + rb")[ \t]*:[ \t]*(.*?)[ \t]*", re.DOTALL)
AUTHORITY = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+,;=%-]*)(?::[0-9]*)?")
SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:[ \t]*;.*)?", re.DOTALL)
PADDED_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;.*)?", re.DOTALL)
DIGITS = re.compile(rb"[0-9]{1,19}")
ENDING = re.compile(rb"[\r\n\x00]")


def line(octets, at):
    """The line that begins there and where the next one begins."""
    found = ENDING.search(octets, at)
    if found is None:
        raise More
    end = found.start()
    if octets[end] != 13:
        raise Refused("bare LF" if octets[end] == 10 else "NUL")
    if end + 1 >= len(octets):
        raise More
    if octets[end + 1] != 10:
        raise Refused("bare CR")
    return octets[at:end], end + 2


def section(octets, at, repairs=False):
    """Field lines up to the empty one. Repairing, as RFC 9112 lets who reads an answer: a fold is a blank, blanks before a colon go."""
    fields = []
    while True:
        text, at = line(octets, at)
        if not text:
            return fields, at
        if text[0] in b" \t":
            if not repairs or not fields:
                raise Refused("folded line")
            name, value = fields[-1]
            text = text.strip(b" \t")
            fields[-1] = (name, value + b" " + text if text and value else value or text)
            continue
        found = (SPACED_FIELD if repairs else FIELD).fullmatch(text)
        if not found:
            raise Refused("no field line")
        fields.append((found[1], found[2]))


def members(fields, name):
    """The members of a field's list, which has no quoted strings."""
    return [part.strip(b" \t") for key, value in fields if key.lower() == name for part in value.split(b",")]


def chunks(octets, at, padded=False):
    """(body, trailers, where it ends)"""
    body = bytearray()
    while True:
        text, at = line(octets, at)
        found = (PADDED_SIZE_LINE if padded else SIZE_LINE).fullmatch(text)
        if not found:
            raise Refused("chunk size")
        size = int(found[1], 16)
        if size == 0:
            break
        if size > 1 << 59:
            raise Refused("chunk size")
        body += octets[at : at + size]
        end = octets[at + size : at + size + 2]
        if not b"\r\n".startswith(end):
            raise Refused("end of a chunk")
        if len(end) < 2:
            raise More
        at += size + 2
    trailers, at = section(octets, at)
    return bytes(body), trailers, at


def counted(octets, at, size):
    if len(octets) - at < size:
        raise More
    return octets[at : at + size]


def length(fields, repairs=False):
    """The one Content-Length, None without. Repairing, equal ones are one."""
    found = members(fields, b"content-length")
    if not found:
        return None
    if len(found) > 1 and not repairs:
        raise Refused("several lengths")
    if not all(DIGITS.fullmatch(one) for one in found):
        raise Refused("length")
    if len(set(map(int, found))) > 1:
        raise Refused("lengths that differ")
    return int(found[0])


def request(octets, at=0):
    """The request that begins there: (message, where it ends)."""
    begin = at
    text, at = line(octets, at)
    if not text:
        text, at = line(octets, at)
    found = REQUEST_LINE.fullmatch(text)
    if not found:
        raise Refused("request line")
    method, target, minor = found[1], found[2], int(found[3])
    fields, at = section(octets, at)
    hosts = [value for key, value in fields if key.lower() == b"host"]
    if len(hosts) > 1 or minor > 0 and not hosts or hosts and not AUTHORITY.fullmatch(hosts[0]):
        raise Refused("Host")
    message = Message((method, target, min(minor, 1)), fields)
    codings, size = members(fields, b"transfer-encoding"), length(fields)
    if codings:
        if minor == 0 or size is not None or [coding.lower() for coding in codings] != [b"chunked"]:
            raise Refused("transfer coding")
        message.framing = "chunked"
        message.body, message.trailers, at = chunks(octets, at)
    elif size is not None:
        message.framing = "length"
        message.body = counted(octets, at, size)
        at += size
    message.octets = bytes(octets[begin:at])
    return message, at


def answer(octets, at=0, method=b"GET", ended=False, repairs=False):
    """The answer that begins there: (message, where it ends). `ended`: the connection ended behind the octets."""
    begin = at
    text, at = line(octets, at)
    found = STATUS_LINE.fullmatch(text)
    if not found:
        raise Refused("status line")
    minor, status, reason = int(found[1]), int(found[2]), found[3] or b""
    fields, at = section(octets, at, repairs)
    message = Message((status, reason, min(minor, 1)), fields)
    codings, size = members(fields, b"transfer-encoding"), length(fields, repairs)
    options = [option.lower() for option in members(fields, b"connection")]
    message.last = b"close" in options or minor == 0 and b"keep-alive" not in options
    if codings:
        if [coding.lower() for coding in codings] != [b"chunked"]:
            raise Refused("transfer coding")
        if not repairs and (size is not None or minor == 0):
            raise Refused("length with chunks")
        message.last |= size is not None or minor == 0
    if status < 200 or status in (204, 304) or method == b"HEAD":
        if (status < 200 or status == 204) and (codings or size):
            if not repairs:
                raise Refused("framing where no body can be")
            message.last = True
    elif codings:
        message.framing = "chunked"
        message.body, message.trailers, at = chunks(octets, at, padded=repairs)
    elif size is not None:
        message.framing = "length"
        message.body = counted(octets, at, size)
        at += size
    else:
        message.framing, message.last = "close", True
        if not ended:
            raise More
        message.body = octets[at:]
        at = len(octets)
    message.octets = bytes(octets[begin:at])
    return message, at


def answers(octets, at=0, method=b"GET", ended=False, repairs=False):
    """The interim answers and the final one that begin there: (list of messages, where they end)."""
    found = []
    while True:
        message, at = answer(octets, at, method, ended, repairs)
        found.append(message)
        if message.start[0] >= 200 or message.start[0] == 101:
            return found, at
