"""Requests as no well-behaved client would send them: whole connections of a seeded generator, from plain ones to broken ones.

The generator does not say what its octets mean; that is the strict reader's part. It makes shapes at the edges of RFC 9110 and 9112
likely, puts them together, and changes some octets of the result."""

import dataclasses
import random


@dataclasses.dataclass(slots=True)
class Script:
    """The octets that a caller writes on a connection to one of the routes, in the segments in which they are written."""

    route: int
    segments: list
    number: int
    # Requests as they were made, before anything in them was changed; the sentinel is one.
    count: int

    @property
    def octets(self):
        return b"".join(self.segments)


METHODS = [b"GET"] * 8 + [b"POST"] * 6 + [b"PUT"] * 2 + [b"HEAD"] * 2 + [b"DELETE", b"OPTIONS", b"PATCH"]
ODD_METHODS = [
    b"get", b"Post", b"PROPFIND", b"M-SEARCH", b"PURGE", b"TRACE", b"CONNECT", b"PRI", b"X!#$%&'*+.^_`|~1", b"G",
    b"A" * 32, b"GETX", b"QUERY", b"SOURCE", b"LINK", b"MKCOL", b"LOCK", b"REPORT", b"-", b"HTTP",
]  # fmt: skip
TAILS = [b""] * 6 + [
    b"?", b"?q=1", b"?a=b&c=%20", b"/a%20b", b"/;p=1", b"/a;b=c/d", b"/a:b@c", b"/$&'()*+,=!~", b"/*", b"??a=?&b",
    b"?/../x", b"/a.b..c",
]  # fmt: skip
ODD_TAILS = [
    b"//x", b"/./x", b"/../x", b"/..", b"/%2e%2e/x", b"/%2E", b"/%00", b"/a%2Fb", b"/a%5cb", b"/a\\b", b"/%",
    b"/%zz", b"/%c3%a4", b"/\xc3\xa4", b"/\xff", b'/"<>^`{|}', b"?\"<>", b"/[x]", b"/%0d%0aX-A:%20b",
    b"/" + b"l" * 1500, b"?" + b"q" * 3000, b"/%7Euser", b"/~user", b"/a%3Fb", b"/a%23b", b"/..;/x", b"/.%00",
    b"/http://other.example/x", b"?%00", b"/%u0041", b"/a+b",
]  # fmt: skip
HOSTS = [b"h.example"] * 4 + [
    b"H.Example:80", b"h.example:8080", b"[::1]:8080", b"127.0.0.1", b"localhost", b"a-b_c~d.example",
    b"h.example.",
]  # fmt: skip
ODD_HOSTS = [
    b"", b"h.example:", b"h.example:0", b"h.example:99999", b"h.example:port", b"h.example/x", b"u@h.example",
    b"h example", b"h.example,i.example", b"[::1", b"::1", b"h%2eexample", b"h.example?x", b"h.example#x", b"\"h\"",
    b"h'example", b"-", b".", b"h..example", b"xn--nxasmq6b", b"1", b"[v1.x]",
]  # fmt: skip
NAMES = [
    b"X-A", b"X-B", b"x-lower", b"X-UPPER", b"Accept", b"Accept-Encoding", b"User-Agent", b"Cookie", b"Referer",
    b"Content-Type", b"Date", b"Range", b"Cache-Control", b"Pragma", b"If-None-Match", b"Authorization",
    b"X-Request-Id", b"traceparent", b"Warning", b"From", b"Priority", b"A",
]  # fmt: skip
ODD_NAMES = [
    b"X_A", b"X.A", b"X!#$%&'*+^`|~A", b"0", b"-", b"_", b"X-Api-Key", b"x_api_key", b"X-Set", b"X-Debug",
    b"Content_Length", b"Transfer_Encoding", b"Host_", b"Forwarded", b"X-Forwarded-For", b"X_Forwarded_Host",
    b"X-Forwarded-Evil", b"Proxy-Authorization", b"Proxy-Connection", b"Keep-Alive", b"Upgrade", b"TE", b"Trailer",
    b"Max-Forwards", b"Via", b"Expect", b"Content-Length", b"Transfer-Encoding", b"Host", b"Connection", b"N" * 200,
    b"Content-Length-", b"Transfer-Encodin", b"Proxy", b"Status", b"Content-Encoding", b"Content-Range",
    b"HTTP2-Settings", b"Origin", b"X-A(", b"X A", b"X-A\x00", b"X-\xc4", b"", b"X\"A", b"Accept_Encoding",
    b"Close",
]  # fmt: skip
VALUES = [
    b"1", b"a", b"", b"a b", b"a, b", b"a;q=1", b'"quoted, text"', b"text/plain", b"*/*", b"a=b; c=d", b"0", b"a:b",
    b"bytes=0-1",
]  # fmt: skip
ODD_VALUES = [
    b"\t", b" a", b"a ", b"\ta\t", b"a\tb", b"a  b", b"\xe4", b"\xc3\xa4", b"\xff\xfe", b"a\x01b", b"a\x7fb",
    b"a\x0bb", b"a\x1bb", b",", b",,", b"a,", b'"', b"\\", b"a\rb", b"a\nb", b"a\x00b", b"a\r\n b", b"a\r\n\tb",
    b"\r\n a", b"chunked", b"100-continue", b"close", b"keep-alive", b"5", b"x" * 1000, b"v" * 5000,
    b"HTTP/1.1 200 OK", b"\x0c", b"\x85", b"a\xa0b", b"{}", b"()<>@", b"1.1 edge-1", b"%0d%0a",
]  # fmt: skip
CONNECTIONS = [
    b"close", b"keep-alive", b"Keep-Alive, X-A", b"X-A", b"X-B, keep-alive", b"keep-alive", b"Host",
    b"Content-Length", b"Transfer-Encoding", b"Authorization", b"Via", b"x-a,x-b,cookie", b",", b"", b"x-a,,x-b",
    b"X-Api-Key", b"TE", b"te, trailers", b"upgrade", b"\"close\"", b"close;x", b"cookie", b"User-Agent", b"Expect",
    b"Case",
]  # fmt: skip
CODINGS = [b"chunked"] * 12 + [b"Chunked", b"CHUNKED"]
ODD_CODINGS = [
    b"chunked, chunked", b"gzip, chunked", b"chunked, gzip", b"identity", b"identity, chunked", b"xchunked",
    b"chunked;a=b", b"", b",chunked", b"chunked,", b"\x0bchunked", b'"chunked"', b"chun\tked", b"chunked\x00",
    b"gzip", b"trailers", b"chunked ,", b"\xa0chunked", b"chunked\x0c",
]  # fmt: skip
LENGTHS = [
    b"+%d", b"-%d", b"0%d", b"000000%d", b"0x%d", b"%d ", b" %d", b"%d,%d", b"%d, %d", b"%d\t", b"%d.0", b"%de0",
    b"%d_0", b"%d 0", b"\"%d\"", b"\x0b%d", b"1844674407370955161%d", b"%d;", b"%d,", b",%d",
]  # fmt: skip
EXTENSIONS = [b""] * 10 + [
    b";a", b";a=b", b';a="b;c"', b" ;a", b";a =b", b";", b";;", b";a=\xe4", b"\t;a", b';a="b\\"c"', b";a\x01",
    b";" + b"e" * 200, b" ", b"\t", b";a\rb", b";a\nb", b"\r", b" 5", b";\x00",
]  # fmt: skip
TRAILERS = [b""] * 6 + [
    b"X-Forwarded-For: 192.0.2.9\r\n", b"X-Set: two\r\n", b"X-T: 1\r\n", b"x-t: 1\r\nX-U: 2\r\n",
    b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Host: x\r\n", b"X-Api-Key: x\r\n",
    b"Connection: close\r\n", b"Authorization: x\r\n", b"X-T:\r\n", b"X-T : 1\r\n", b" X-T: 1\r\n", b"X-T\r\n",
    b"X-T: 1\r\n b\r\n", b"X-T: 1\n", b": 1\r\n", b"GET /x HTTP/1.1\r\n", b"X-A: 9\r\n", b"Trailer: x\r\n",
    b"Forwarded: for=192.0.2.9\r\n", b"X_Forwarded_Host: x\r\n", b"X-Debug: 1\r\n", b"x_api_key: x\r\n",
    b"X_Set: x\r\n", b"Via: 1.1 x\r\n", b"Expect: 100-continue\r\n", b"Cookie: a=b\r\n", b"TE: trailers\r\n",
    b"Upgrade: x\r\n", b"Content_Length: 1\r\n", b"Keep-Alive: x\r\n", b"Proxy-Authorization: x\r\n",
]  # fmt: skip
VERSIONS = [b"HTTP/1.1"] * 40 + [b"HTTP/1.0"] * 2
ODD_VERSIONS = [
    b"HTTP/1.2", b"HTTP/1.9", b"HTTP/2.0", b"HTTP/0.9", b"http/1.1", b"HTTP/1.10", b"HTTP/11", b"HTTP/1", b"",
    b"HTTP/1.1 ", b" HTTP/1.1", b"HTTP/01.1", b"HTTP/1.x", b"HTTP /1.1", b"ICY/1.1", b"HTTP/1.1\t", b"HTTPS/1.1",
    b"HTTP/1,1",
]  # fmt: skip
BODIES = [
    b"", b"a", b"hello", b"0\r\n\r\n", b"GET /d/smuggled HTTP/1.1\r\nHost: h\r\n\r\n", b"\r\n", b"\x00\xff",
    b"5\r\nhello\r\n0\r\n\r\n", b"b" * 300,
]  # fmt: skip
ODD_OCTETS = [
    b"\r", b"\n", b"\x00", b" ", b"\t", b":", b",", b";", b"\x0b", b"\x7f", b"\xff", b"\r\n", b"\n\n", b"\r\n ",
    b"\r\n\r\n", b"0", b"A", b"/", b"#", b"%",
]  # fmt: skip


def odd_sizes(told):
    """Texts in the place of a chunk's size that are no size, or another size."""
    prefixed = [mark + told for mark in (b"+", b"-", b"0x", b" ")]
    return [*prefixed, b"", told + b"g", told + b"_0", b"f" * 16, b"1" + b"0" * 16, told.zfill(40)]


class Generator:
    """`script(number)` gives the same octets for the same seed and number, whatever was made before."""

    def __init__(self, seed, odd=0.5):
        self.seed, self.odd = seed, odd

    def script(self, number):
        dice = self.dice = random.Random(f"{self.seed}/{number}")
        self.strange = 0.0 if dice.random() > self.odd else dice.choice((0.01, 0.02, 0.05, 0.2))
        route = dice.randrange(3)
        count = dice.choice((1, 1, 2, 2, 3, 5))
        octets = b"".join(self.request(route, number * 8 + index) for index in range(count))
        octets += self.sentinel(route, number * 8 + 7)
        if self.strange and dice.random() < 0.08:
            octets = octets[: dice.randrange(1, len(octets))]
        return Script(route, self.cut(octets), number, count + 1)

    @staticmethod
    def sentinel(route, case):
        return b"GET %s/d/%08x?sentinel HTTP/1.1\r\nHost: h.example\r\n\r\n" % (b"/svc" if route == 2 else b"", case)

    def pick(self, usual, odd):
        return self.dice.choice(odd if self.dice.random() < self.strange else usual)

    def request(self, route, case):
        dice, pick = self.dice, self.pick
        method = pick(METHODS, ODD_METHODS)
        host = pick(HOSTS, ODD_HOSTS)
        path = (
            (b"/svc" if route == 2 else b"")
            + b"/d/%08x" % case
            + (pick(TAILS, ODD_TAILS) if dice.random() < 0.5 else b"")
        )
        lines = []
        form = dice.random()
        if form < 0.05:
            path = (
                pick([b"http://", b"HTTP://"], [b"https://", b"ftp://", b"http:/", b"//"])
                + pick(HOSTS, ODD_HOSTS)
                + path
            )
        elif form < 0.06:
            path = b"http://" + host + dice.choice((b"?/d/%08x", b"/?/d/%08x")) % case
        elif form < 0.07:
            method, path = b"OPTIONS", dice.choice((b"*", b"http://" + host))
            lines.append(b"Case: %08x" % case)
        elif form < 0.073:
            path = dice.choice((b"*", b"", b"d/%08x" % case, b"h.example:80", b"?/d/%08x" % case))
        version = pick(VERSIONS, ODD_VERSIONS)
        lines.append(
            pick([b"Host: "] * 5 + [b"host:", b"HOST:\t "], [b"Host : ", b"Host\t:", b" Host: ", b"X-Host: ", b"Host"])
            + host
        )
        for _ in range(dice.choice((0, 0, 1, 2, 3, 6))):
            name, value = pick(NAMES, ODD_NAMES), pick(VALUES, ODD_VALUES)
            lines.append(
                name
                + pick([b": "] * 6 + [b":", b":\t", b":  "], [b" : ", b"\t:", b"", b"::", b" "])
                + value
                + pick([b""] * 9 + [b" "], [b"\t", b" \t"])
            )
        if dice.random() < 0.15 or version == b"HTTP/1.0":
            lines.append(b"Connection: " + pick(CONNECTIONS[1:], CONNECTIONS[:1] + CONNECTIONS))
        if dice.random() < 0.05:
            lines.append(b"Expect: " + pick([b"100-continue", b"100-Continue"], [b"100-continue, x", b"other", b""]))
        if dice.random() < 0.02:
            lines += [
                b"Connection: " + dice.choice((b"upgrade", b"Upgrade, x-a")),
                b"Upgrade: " + dice.choice((b"foo/1", b"foo/1, bar")),
            ]
        if dice.random() < 0.02:
            lines.append(b"Max-Forwards: " + pick([b"1", b"10"], [b"-1", b"a", b"007", b"0"]))
        body = self.body(method, lines)
        if dice.random() < 0.2:
            first, *rest = lines
            lines = dice.sample(lines, len(lines)) if dice.random() < 0.5 else rest + [first]
        if dice.random() < self.strange / 2:
            lines.append(dice.choice(lines))
        if dice.random() < self.strange / 10:
            lines += [b"F%d: v" % index for index in range(dice.choice((90, 120, 130)))]
        start = method + pick([b" "], [b"  ", b"\t", b"", b" \r"]) + path + (b" " + version if version else b"")
        end = pick([b"\r\n"], [b"\n", b"\r", b"\r\r\n", b"\n\r", b"\r\n "]) if self.strange else b"\r\n"
        head = end.join([start, *lines]) + b"\r\n\r\n"
        if dice.random() < self.strange / 2:
            at = dice.randrange(len(head))
            head = head[:at] + dice.choice(ODD_OCTETS) + head[at + dice.choice((0, 0, 1, 2)) :]
        if dice.random() < 0.02:
            head = pick([b"\r\n"], [b"\r\n\r\n", b"\n", b" ", b"\x00"]) + head
        return head + body

    def body(self, method, lines):
        """Adds the framing to the lines and gives the octets."""
        dice, pick = self.dice, self.pick
        kind = dice.random()
        if method not in (b"POST", b"PUT", b"PATCH") and kind < 0.85:
            return b""
        content = dice.choice(BODIES) * dice.choice((1, 1, 1, 3))
        if kind < 0.5 or method not in (b"POST", b"PUT", b"PATCH") and kind < 0.93:
            size = len(content)
            told = b"%d" % size
            if dice.random() < self.strange:
                form = dice.choice(LENGTHS)
                told = form % ((size,) * form.count(b"%d"))
            lines.append(
                pick(
                    [b"Content-Length: "] * 5 + [b"content-length:"],
                    [b"Content-Length : ", b"Content-Length\x0b:", b"Content-Length:\r\n "],
                )
                + told
            )
            if dice.random() < self.strange:
                lines.append(
                    dice.choice(
                        (
                            b"Content-Length: " + told,
                            b"Content-Length: 0",
                            b"Transfer-Encoding: chunked",
                            b"Content_Length: 3",
                        )
                    )
                )
            if dice.random() < self.strange / 2:
                content = content[: dice.randrange(len(content) + 1)] + dice.choice((b"", b"x", b"\r\n"))
            return content
        if kind < 0.9:
            odd = [b"Transfer-Encoding : ", b"Transfer_Encoding: ", b"Transfer-Encoding:\r\n "]
            name = pick([b"Transfer-Encoding: "] * 5 + [b"transfer-encoding:"], odd)
            lines.append(name + pick(CODINGS, ODD_CODINGS))
            if dice.random() < self.strange:
                lines.append(
                    dice.choice(
                        (
                            b"Content-Length: %d" % len(content),
                            b"Content-Length: 0",
                            b"Transfer-Encoding: chunked",
                            b"Transfer-Encoding: identity",
                        )
                    )
                )
            return self.chunked(content)
        return content if dice.random() < self.strange else b""

    def chunked(self, content):
        dice, pick = self.dice, self.pick
        out, at = b"", 0
        while at < len(content):
            size = dice.choice((1, 2, 5, 16, 300))
            part = content[at : at + size]
            at += size
            told = b"%x" % len(part)
            told = pick([told] * 4 + [told.upper(), b"0" + told, told.zfill(15)], odd_sizes(told))
            out += told + pick(EXTENSIONS[:15], EXTENSIONS) + pick([b"\r\n"], [b"\n", b"\r", b"\r\r\n"])
            out += part + pick([b"\r\n"], [b"\n", b"", b"x\r\n", b"\r", b"\r\n\r\n"])
        out += (
            pick([b"0"] * 5 + [b"00", b"000000000"], [b"", b"-0", b"0x0", b" 0", b"00g"])
            + pick(EXTENSIONS[:15], EXTENSIONS)
            + b"\r\n"
        )
        return out + pick(TRAILERS[:10], TRAILERS) + pick([b"\r\n"], [b"\n", b"\r", b"\r\n\r\n", b""])

    def cut(self, octets):
        """The segments in which they are written."""
        dice = self.dice
        if dice.random() < 0.8 or len(octets) < 4:
            return [octets]
        marks = sorted(dice.randrange(1, len(octets)) for _ in range(dice.choice((1, 1, 2, 4))))
        return [octets[a:b] for a, b in zip([0, *marks], [*marks, len(octets)]) if a < b]
