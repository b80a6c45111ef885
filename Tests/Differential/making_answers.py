"""Answers as no well-behaved server would send them, and the requests that lead to them: whole connections of a seeded generator."""

import dataclasses
import random

from making_requests import ODD_OCTETS, ODD_VALUES, VALUES, odd_sizes


@dataclasses.dataclass(slots=True)
class Answer:
    """The octets that the upstream writes for a request. `ends`: the upstream closes the connection behind them."""

    method: bytes
    minor: int
    segments: list
    ends: bool
    key: bytes

    @property
    def octets(self):
        return b"".join(self.segments)


@dataclasses.dataclass(slots=True)
class Exchange:
    """A caller's connection: requests, each with the answer that it is to get."""

    number: int
    answers: list

    def requests(self):
        """Octets of all of them."""
        return b"".join(
            b"%s /d/%s HTTP/1.%d\r\nHost: h.example\r\n%s\r\n"
            % (answer.method, answer.key, answer.minor, b"" if answer.minor else b"Connection: keep-alive\r\n")
            for answer in self.answers
        )


STATUSES = [b"200"] * 10 + [
    b"201", b"202", b"203", b"205", b"206", b"301", b"302", b"303", b"307", b"400", b"404", b"405", b"409", b"500",
    b"503", b"599",
]  # fmt: skip
BODILESS = [b"204", b"304"]
ODD_STATUSES = [
    b"299", b"600", b"999", b"099", b"000", b"20", b"2000", b"2x0", b"", b"-200", b"+200", b"0200", b"200.0",
    b"101", b"100", b"199", b"226", b"418",
]  # fmt: skip
REASONS = [b" OK"] * 6 + [b" ", b"", b" Not Found", b" a b  c"]
ODD_REASONS = [
    b" \xe4", b" \xff", b" a\tb", b"  OK", b" OK ", b" a\x01", b" a\rb", b" a\nb", b" \x00", b"OK", b"\tOK",
    b" HTTP/1.1 200 OK", b" " + b"r" * 2000,
]  # fmt: skip
VERSIONS = [b"HTTP/1.1"] * 20 + [b"HTTP/1.0"] * 3
ODD_VERSIONS = [
    b"HTTP/1.2", b"HTTP/2.0", b"HTTP/0.9", b"http/1.1", b"HTTP/1.10", b"ICY", b"HTTP/1", b"", b"HTTP/1.1 ",
    b" HTTP/1.1", b"HTTPS/1.1", b"HTTP/ 1.1",
]  # fmt: skip
NAMES = [
    b"X-A", b"X-B", b"x-lower", b"Content-Type", b"ETag", b"Set-Cookie", b"Set-Cookie", b"Date", b"Server",
    b"Cache-Control", b"Vary", b"Location", b"Age", b"Last-Modified", b"Link", b"Retry-After", b"Accept-Ranges",
    b"WWW-Authenticate", b"Allow", b"Content-Language", b"A",
]  # fmt: skip
ODD_NAMES = [
    b"X_A", b"X.A", b"X!#$%&'*+^`|~A", b"0", b"_", b"Content_Length", b"Transfer_Encoding", b"Keep-Alive",
    b"Proxy-Connection", b"Upgrade", b"TE", b"Trailer", b"Content-Length", b"Transfer-Encoding", b"Connection",
    b"Via", b"Content-Range", b"Content-Encoding", b"Proxy-Authenticate", b"Proxy-Status", b"Status",
    b"HTTP/1.1 200 OK", b"X A", b"X-A\x00", b"X-\xc4", b"", b"X(A)", b"N" * 300, b"Alt-Svc", b"Content-Length-",
    b"Host", b"X-Request-Id", b"Forwarded",
]  # fmt: skip
CONNECTIONS = [
    b"close", b"keep-alive", b"X-A", b"close, X-B", b"Content-Length", b"Transfer-Encoding", b"Set-Cookie", b",",
    b"", b"upgrade", b"Keep-Alive, te",
]  # fmt: skip
CODINGS = [b"chunked"] * 12 + [b"Chunked"]
ODD_CODINGS = [
    b"chunked, chunked", b"gzip, chunked", b"chunked, gzip", b"identity", b"xchunked", b"chunked;a=b", b"",
    b",chunked", b"chunked,", b"\x0bchunked", b'"chunked"', b"gzip", b"\r\n chunked", b"chunked\r\n ",
    b"chun\r\n ked", b"chunked\x00",
]  # fmt: skip
LENGTHS = [
    b"+%d", b"-%d", b"0%d", b"000000%d", b"0x%d", b"%d ", b"\t%d", b"%d,%d", b"%d, %d", b"%d, %d, %d", b"%d.0",
    b"%de0", b"%d 0", b'"%d"', b"%d;", b"%d,", b",%d", b"\r\n %d", b"%d\r\n ", b"1\r\n %d",
    b"1844674407370955161%d", b"", b"%d\x0b",
]  # fmt: skip
EXTENSIONS = [b""] * 8 + [b";a", b";a=b", b';a="b;c"', b" ;a", b" ", b"  ", b"\t", b";", b";a=\xe4"]
ODD_EXTENSIONS = [b";a\rb", b";a\nb", b"\r", b" 5", b";\x00", b";" + b"e" * 200, b"x", b"h", b".0"]
TRAILERS = [b""] * 8 + [
    b"X-T: 1\r\n", b"x-t: 1\r\nX-U: 2\r\n", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n", b"Set-Cookie: a=b\r\n",
]  # fmt: skip
ODD_TRAILERS = [
    b"X-T : 1\r\n", b" X-T: 1\r\n", b"X-T\r\n", b"X-T: 1\r\n b\r\n", b"X-T: 1\n", b": 1\r\n",
    b"HTTP/1.1 200 OK\r\n", b"X-T: \x00\r\n",
]  # fmt: skip
BODIES = [
    b"", b"a", b"hello", b"0\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Smuggled: 1\r\n\r\n", b"\r\n",
    b"\x00\xff", b"5\r\nhello\r\n0\r\n\r\n", b"b" * 300,
]  # fmt: skip
INTERIM = [
    b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 102 Processing\r\n\r\n", b"HTTP/1.1 103 \r\nX-A: 1\r\nConnection: X-A\r\n\r\n",
    b"HTTP/1.1 199 x\r\n\r\n",
]  # fmt: skip
ODD_INTERIM = [
    b"HTTP/1.1 103 x\r\nContent-Length: 5\r\n\r\n", b"HTTP/1.1 103 x\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"HTTP/1.0 100 Continue\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: foo\r\n\r\n",
    b"HTTP/1.1 103 x\r\n a\r\n\r\n", b"\r\n", b"HTTP/1.1 103 x\n\n",
]  # fmt: skip


def sentinel(key):
    return b"HTTP/1.1 200 OK\r\nX-Sentinel: %s\r\nContent-Length: 8\r\n\r\n%s" % (key, key)


class Generator:
    """`exchange(number)` is the same for the same seed and number."""

    def __init__(self, seed, odd=0.5):
        self.seed, self.odd = seed, odd

    def exchange(self, number):
        dice = self.dice = random.Random(f"answers/{self.seed}/{number}")
        self.strange = 0.0 if dice.random() > self.odd else dice.choice((0.01, 0.02, 0.05, 0.2))
        answers = [self.answer(b"%08x" % (number * 8 + index)) for index in range(dice.choice((1, 1, 2, 3, 5)))]
        key = b"%08x" % (number * 8 + 7)
        return Exchange(number, [*answers, Answer(b"GET", 1, [sentinel(key)], False, key)])

    def pick(self, usual, odd):
        return self.dice.choice(odd if self.dice.random() < self.strange else usual)

    def answer(self, key):
        dice, pick = self.dice, self.pick
        method = dice.choice((b"GET", b"GET", b"GET", b"GET", b"HEAD", b"POST", b"PUT", b"OPTIONS"))
        minor = 0 if dice.random() < 0.08 else 1
        status = dice.choice(BODILESS) if dice.random() < 0.1 else pick(STATUSES, ODD_STATUSES)
        lines = [b"Case: " + key]
        for _ in range(dice.choice((0, 0, 1, 2, 3, 6))):
            value = pick(VALUES, ODD_VALUES)
            if dice.random() < self.strange:
                value += dice.choice((b"\r\n b", b"\r\n\tb", b"\r\n ", b"\r\n  b\r\n c"))
            lines.append(
                pick(NAMES, ODD_NAMES) + pick([b": "] * 6 + [b":", b":\t"], [b" : ", b"\t:", b"", b"::", b" "]) + value
            )
        if dice.random() < 0.1:
            lines.append(b"Connection: " + dice.choice(CONNECTIONS))
        ends = dice.random() < 0.1
        bodiless = method == b"HEAD" or status in BODILESS
        content = dice.choice(BODIES) * dice.choice((1, 1, 1, 3))
        kind = dice.random()
        if bodiless and kind < 0.5:
            body = b""
        elif kind < 0.6:
            told = b"%d" % len(content)
            if dice.random() < self.strange:
                form = dice.choice(LENGTHS)
                told = form % ((len(content),) * form.count(b"%d"))
            name = pick(
                [b"Content-Length: "] * 5 + [b"content-length:"], [b"Content-Length : ", b"Content-Length\x0b: "]
            )
            lines.append(name + told)
            if dice.random() < self.strange:
                lines.append(
                    dice.choice(
                        (
                            name + told,
                            b"Content-Length: 0",
                            b"Content-Length: %d" % len(content),
                            b"Transfer-Encoding: chunked",
                        )
                    )
                )
            body = content
            if dice.random() < self.strange:
                body = dice.choice(
                    (
                        content[:-1],
                        content + b"x",
                        content + b"\r\n",
                        content + b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                    )
                )
                ends |= dice.random() < 0.5
        elif kind < 0.9:
            lines.append(
                pick(
                    [b"Transfer-Encoding: "] * 5 + [b"transfer-encoding:"],
                    [b"Transfer-Encoding : ", b"Transfer_Encoding: "],
                )
                + pick(CODINGS, ODD_CODINGS)
            )
            if dice.random() < self.strange:
                lines.append(
                    dice.choice(
                        (b"Content-Length: %d" % len(content), b"Content-Length: 0", b"Transfer-Encoding: chunked")
                    )
                )
            body = self.chunked(content)
        else:
            # Up to the end of the connection.
            body, ends = content, ends or dice.random() < 0.95
        if bodiless and kind >= 0.5 and dice.random() < 0.95:
            body = b""
        if dice.random() < self.strange / 2:
            lines.append(dice.choice(lines))
        dice.random() < 0.3 and dice.shuffle(lines)
        start = pick(VERSIONS, ODD_VERSIONS) + pick([b" "], [b"  ", b"\t", b""]) + status + pick(REASONS, ODD_REASONS)
        end = pick([b"\r\n"], [b"\n", b"\r", b"\r\r\n", b"\r\n "]) if self.strange else b"\r\n"
        octets = end.join([start, *lines]) + b"\r\n\r\n"
        if dice.random() < self.strange / 2:
            at = dice.randrange(len(octets))
            octets = octets[:at] + dice.choice(ODD_OCTETS) + octets[at + dice.choice((0, 0, 1, 2)) :]
        if dice.random() < 0.05:
            octets = b"".join(pick(INTERIM, ODD_INTERIM) for _ in range(dice.choice((1, 1, 2)))) + octets
        octets += body
        if dice.random() < self.strange / 4:
            octets, ends = octets[: dice.randrange(len(octets))], True
        return Answer(method, minor, self.cut(octets), ends, key)

    def chunked(self, content):
        dice, pick = self.dice, self.pick
        out, at = b"", 0
        while at < len(content):
            part = content[at : at + dice.choice((1, 2, 5, 16, 300))]
            at += len(part)
            told = b"%x" % len(part)
            told = pick([told] * 4 + [told.upper(), b"0" + told, told.zfill(15)], odd_sizes(told))
            out += told + pick(EXTENSIONS, ODD_EXTENSIONS) + pick([b"\r\n"], [b"\n", b"\r", b"\r\r\n"])
            out += part + pick([b"\r\n"], [b"\n", b"", b"x\r\n", b"\r"])
        out += pick([b"0"] * 5 + [b"00"], [b"", b"-0", b"0x0", b" 0"]) + pick(EXTENSIONS, ODD_EXTENSIONS) + b"\r\n"
        return out + pick(TRAILERS, ODD_TRAILERS) + pick([b"\r\n"], [b"\n", b"\r", b"\r\n\r\n", b"", b"x\r\n"])

    def cut(self, octets):
        dice = self.dice
        if dice.random() < 0.8 or len(octets) < 4:
            return [octets]
        marks = sorted(dice.randrange(1, len(octets)) for _ in range(dice.choice((1, 1, 2))))
        return [octets[a:b] for a, b in zip([0, *marks], [*marks, len(octets)]) if a < b]
