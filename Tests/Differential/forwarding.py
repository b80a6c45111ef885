"""The model of a forwarded message, made from RFC 9110 section 7.6 and docs/security/guarantees.md. The gateway's code is not asked."""

import dataclasses
import re

import reader

NAME = b"edge-1"
KEY = b"lab-key-7f3a9c"

# RFC 9110 sections 7.6.1 and 11.7: fields of one connection, and those that frame and route, which are written anew. A look-alike with _
# for - goes with them (docs/security/guarantees.md#invariant-1).
OF_THE_HOP = {
    b"host", b"connection", b"content-length", b"transfer-encoding", b"upgrade", b"te", b"trailer", b"keep-alive",
    b"proxy-connection", b"proxy-authorization",
}  # fmt: skip
OF_THE_HOP_IN_ANSWERS = OF_THE_HOP - {b"host", b"proxy-authorization"} | {b"proxy-authenticate"}


@dataclasses.dataclass(frozen=True, slots=True)
class Route:
    """A listener with its only route. `claims`: the route tells the upstream of the caller."""

    name: str
    prefix: bytes = b""
    strips: bytes = b""
    host: bytes = b""
    drops: frozenset = frozenset()
    sets: tuple = ()
    credential: tuple = ()
    claims: bool = False


@dataclasses.dataclass(slots=True)
class Sent:
    """A request as the upstream is to understand it. `fields` are in order, without Host and framing."""

    method: bytes
    target: bytes
    host: bytes
    fields: list
    body: bytes
    trailers: list
    # Lines that may stand behind the fields. Whether a switch of protocols is asked for is the gateway's to decide (RFC 9110 section 7.8);
    # an expectation is told on while no content has come (section 10.1.1).
    optional: list = dataclasses.field(default_factory=list)
    # Joins what servers report; see `key`.
    key: bytes = b""


CASE = re.compile(rb"/d/([0-9a-f]{8})")


def key(method, target, fields):
    """The key that joins a request with its reports: the id in its target, else the id in its field Case, else its request line."""
    found = CASE.search(target)
    if found:
        return found[1]
    for name, value in fields:
        if name.lower() == b"case":
            return value
    return method + b" " + target


def plain(name):
    return name.lower().replace(b"_", b"-")


def nominated(fields):
    """Names in Connection; the options that are no names aside."""
    return {option.lower() for option in reader.members(fields, b"connection")} - {b"close", b"keep-alive", b"upgrade"}


def claims(name):
    """Whether it tells of the caller, which is believed of nobody here (docs/security/guarantees.md#invariant-12)."""
    return name == b"forwarded" or name.startswith(b"x-forwarded-")


def request(received, route):
    method, target, minor = received.start
    host = next(iter(received.values(b"host")), b"")
    found = re.match(rb"https?://([^/?]*)(.*)", target, re.DOTALL | re.IGNORECASE)
    if found and target[:1] != b"/":
        host, target = found[1], found[2]
        if not target and method == b"OPTIONS" and not route.prefix:
            target = b"*"
    called = host
    if target != b"*":
        if route.strips and (
            target == route.strips or target[: len(route.strips) + 1] in (route.strips + b"/", route.strips + b"?")
        ):
            target = target[len(route.strips) :]
        target = route.prefix + (target if target[:1] == b"/" else b"/" + target)
    gone = nominated(received.fields)
    fields = []
    for name, value in received.fields:
        alike = plain(name)
        if alike in OF_THE_HOP or alike in route.drops or claims(alike):
            continue
        # Max-Forwards of OPTIONS and TRACE is the hop's own, and no caller can have it taken off.
        if alike == b"max-forwards" and method in (b"OPTIONS", b"TRACE"):
            if name.lower() == alike:
                fields.append((b"Max-Forwards", b"%d" % (int(value) - 1) if value.isdigit() and int(value) else value))
            continue
        if name.lower() in gone or alike == b"expect" and (minor == 0 or value.lower() == b"100-continue"):
            continue
        fields.append((name, value))
    fields += route.sets
    if route.claims:
        told = b"for=127.0.0.1" + (b';host="' + called + b'"' if called else b"") + b";proto=http"
        fields += [(b"Forwarded", told), (b"X-Forwarded-For", b"127.0.0.1"), (b"X-Forwarded-Proto", b"http")]
        fields += [(b"X-Forwarded-Host", called)] if called else []
    fields += route.credential
    fields.append((b"Via", b"1.%d " % minor + NAME))
    optional = []
    if minor and any(name.lower() == b"expect" and value.lower() == b"100-continue" for name, value in received.fields):
        optional.append((b"Expect", b"100-continue"))
    if minor and b"upgrade" in [option.lower() for option in reader.members(received.fields, b"connection")]:
        wanted = received.values(b"upgrade")
        if wanted:
            optional += [(b"Connection", b"upgrade"), (b"Upgrade", wanted[0])]
    dropped = OF_THE_HOP | route.drops
    trailers = [pair for pair in received.trailers if plain(pair[0]) not in dropped and not claims(plain(pair[0]))]
    sent = Sent(method, target, route.host or host, fields, received.body, trailers, optional)
    sent.key = key(method, target, fields)
    return sent


FRAMING = (b"content-length", b"transfer-encoding")


def understood(message):
    """The same of a message that was read. A second Host would stand among the fields."""
    method, target, _ = message.start
    fields = list(message.fields)
    host = next((field for field in fields if field[0].lower() == b"host"), None)
    if host:
        fields.remove(host)
    fields = [(name, value) for name, value in fields if name.lower() not in FRAMING]
    found = Sent(method, target, host[1] if host else b"", fields, message.body, message.trailers)
    found.key = key(method, target, fields)
    return found


def differences(expected, found):
    """The parts in which two requests disagree: (part, one, other). Trailers may be left out (RFC 9110 section 6.5.1), never made up."""
    told = []
    for part in ("method", "target", "host", "body"):
        if getattr(expected, part) != getattr(found, part):
            told.append((part, getattr(expected, part), getattr(found, part)))
    fields = list(found.fields)
    while len(fields) > len(expected.fields) and fields[-1] in expected.optional:
        fields.pop()
    if expected.fields != fields:
        told.append(("fields", *apart(expected.fields, fields)))
    if found.trailers and [pair for pair in found.trailers if pair not in expected.trailers]:
        told.append(("trailers", expected.trailers, found.trailers))
    return told


def apart(one, other):
    """The items that only one of two lists has; both lists whole where just the order differs."""
    left, right = list(one), list(other)
    for item in one:
        if item in right:
            right.remove(item)
            left.remove(item)
    return (left, right) if left or right else (one, other)


# --- Answers ---------------------------------------------------------------------------------------------------------


def answer(received):
    """Status, fields and body of an answer as they are to reach the caller."""
    gone = nominated(received.fields)
    fields = [
        (name, value)
        for name, value in received.fields
        if plain(name) not in OF_THE_HOP_IN_ANSWERS and name.lower() not in gone
    ]
    dropped = OF_THE_HOP_IN_ANSWERS | gone
    trailers = [pair for pair in received.trailers if plain(pair[0]) not in dropped]
    return received.start[0], received.start[1], fields, received.body, trailers
