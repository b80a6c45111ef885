"""One set of resources behind either version of HTTP, so that a test can hold all four ways through the gateway to the same words.

A resource is called with an exchange: `method`, `target`, `fields` (names in lower case), `read()`, `trailers`, and the answer's
`interim`, `respond`, `write`, `end`, `abort`."""

import contextlib
import hashlib
import json
import socket
import struct

import http2_peers
from scripted import Scripted

PIECE = bytes(range(256)) * 64
LARGE = 5 << 20
SECRET = "credential-of-both-versions-4711"


class Gone(Exception):
    """The caller gave up."""


def large():
    for _ in range(LARGE // len(PIECE)):
        yield PIECE


def serve(exchange, notes):
    """The resources."""
    path = exchange.target.split("?")[0]
    if notes is not None:
        notes.append(exchange)
    match path:
        case "/count":
            digest, count = hashlib.sha256(), 0
            while piece := exchange.read():
                digest.update(piece)
                count += len(piece)
            tell(exchange, {"count": count, "sha256": digest.hexdigest(), "trailers": exchange.trailers})
        case "/large":
            exchange.respond(200, [("content-length", str(LARGE))])
            if exchange.method != "HEAD":
                for piece in large():
                    exchange.write(piece)
            exchange.end()
        case "/trailers":
            exchange.respond(200, [("trailer", "x-digest")])
            exchange.write(b"body ")
            exchange.write(b"before")
            exchange.end([("x-digest", "sum-1"), ("x-more", "two words")])
        case "/broken":
            exchange.respond(200, [("content-length", str(LARGE))])
            exchange.write(PIECE)
            exchange.write(PIECE)
            exchange.abort()
        case "/endless":
            exchange.respond(200, [])
            try:
                while True:
                    exchange.write(PIECE)
            except Gone:
                exchange.was_given_up = True
        case "/swallow":
            try:
                while exchange.read():
                    pass
                tell(exchange, {})
            except Gone:
                exchange.was_given_up = True
        case "/interim":
            exchange.interim(103, [("link", "</style.css>; rel=preload")])
            tell(exchange, {})
        case "/204" | "/304":
            exchange.respond(int(path[1:]), [("etag", '"v1"')])
            exchange.end()
        case _:
            tell(exchange, {"fields": exchange.fields}, [("set-cookie", "a=1; Path=/"), ("set-cookie", "b=2")])


def tell(exchange, value, more=()):
    body = json.dumps(value).encode()
    exchange.respond(200, [("content-type", "application/json"), ("content-length", str(len(body))), *more])
    exchange.write(body)
    exchange.end()


class Over2:
    was_given_up = False

    def __init__(self, stream):
        self.stream, self.method, self.target = stream, stream.method, stream.target
        self.fields = stream.fields

    @property
    def trailers(self):
        return self.stream.trailers

    def read(self):
        with self._giving_up():
            return self.stream.read()

    def interim(self, status, fields):
        self.stream.send_head([(":status", str(status)), *fields])

    def respond(self, status, fields):
        with self._giving_up():
            self.stream.send_head([(":status", str(status)), *fields])

    def write(self, data):
        with self._giving_up():
            self.stream.write(data)

    def end(self, trailers=()):
        self.stream.end(trailers)

    def abort(self):
        self.stream.reset(2)

    @contextlib.contextmanager
    def _giving_up(self):
        try:
            yield
        except http2_peers.Reset:
            raise Gone from None


class Over1:
    """One request of a scripted connection; the body is read as it comes."""

    was_given_up = False

    def __init__(self, peer):
        lines = peer._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        self.peer = peer
        self.method, self.target, _ = lines[0].split(" ")
        split = (line.partition(":") for line in lines[1:])
        self.fields = [(name.lower(), value.strip()) for name, _, value in split]
        named = dict(self.fields)
        self.left = int(named.get("content-length", 0))
        self.chunked = "transfer-encoding" in named
        self.trailers = []
        self.sends_chunks = False

    def read(self):
        try:
            if not self.chunked:
                piece = self.peer._exactly(min(self.left, 65536))
                self.left -= len(piece)
                return piece
            if size := int(self.peer._until(b"\r\n").split(b";")[0], 16):
                piece = self.peer._exactly(size)
                assert self.peer._exactly(2) == b"\r\n"
                return piece
            while line := self.peer._until(b"\r\n"):
                name, _, value = line.decode().partition(":")
                self.trailers.append((name.lower(), value.strip()))
            self.chunked, self.left = False, 0
            return b""
        except (EOFError, OSError):
            raise Gone from None

    def _send(self, data):
        try:
            self.peer.send(data)
        except OSError:
            raise Gone from None

    def _head(self, status, fields):
        lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in fields)]
        self._send(("\r\n".join(lines) + "\r\n\r\n").encode())

    def interim(self, status, fields):
        self._head(status, fields)

    def respond(self, status, fields):
        self.sends_chunks = status not in (204, 304) and not any(name == "content-length" for name, _ in fields)
        self._head(status, [*fields, *([("transfer-encoding", "chunked")] if self.sends_chunks else [])])

    def write(self, data):
        self._send(b"%x\r\n%s\r\n" % (len(data), data) if self.sends_chunks else data)

    def end(self, trailers=()):
        if self.sends_chunks:
            self._send(b"0\r\n" + b"".join(f"{name}: {value}\r\n".encode() for name, value in trailers) + b"\r\n")

    def abort(self):
        # With a zero linger the close is a reset.
        self.peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise EOFError


@contextlib.contextmanager
def origin(version, notes=None):
    """A server of the resources; `notes` gathers its exchanges."""
    if version == 2:
        with http2_peers.Server(lambda stream: serve(Over2(stream), notes)) as server:
            yield server
        return

    def script(peer):
        with contextlib.suppress(EOFError, Gone):
            while True:
                serve(Over1(peer), notes)

    with Scripted(script) as server:
        yield server


def forward(gateway, to, version, route=None):
    """A route with a fixed credential."""
    gateway.config = gateway.frame(
        {
            "identities": {"fixed": {"static": {"value": gateway.secret("fixed", SECRET), "prefix": "Bearer "}}},
            "routes": [{**gateway.route("fixed", to), "http": {1: "1.1", 2: "2"}[version], **(route or {})}],
        }
    )
    return gateway
