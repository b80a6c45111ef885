"""An upstream whose every octet a test decides, and callers that read as slowly as a test wants.

`Scripted(script)` listens; for each connection a thread calls `script(peer)`, which reads requests and sends whatever
it likes. A script that returns closes its connection."""

import contextlib
import json
import re
import socket
import threading
import time

from harness import eventually
from wire import Raw, address

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def answer(body, *fields, status=b"200 OK"):
    """A whole answer with its length."""
    lines = [b"HTTP/1.1 " + status, *fields, b"Content-Length: %d" % len(body)]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


class Request:
    def __init__(self, head):
        lines = head.decode("latin-1").split("\r\n")
        self.head = head
        self.method, self.target, self.version = lines[0].split(" ")
        self.fields = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines[1:])]
        self.body = None

    def field(self, name):
        return next((value for key, value in self.fields if key.lower() == name.lower()), None)


class Peer:
    """One accepted connection."""

    def __init__(self, upstream, accepted, number):
        self.upstream, self.socket, self.number = upstream, accepted, number
        self.buffer = b""

    def _until(self, mark):
        while mark not in self.buffer:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError
            self.buffer += data
        part, self.buffer = self.buffer.split(mark, 1)
        return part

    def _exactly(self, count):
        while len(self.buffer) < count:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError
            self.buffer += data
        part, self.buffer = self.buffer[:count], self.buffer[count:]
        return part

    def request(self):
        """The next request; its head is noted before its body is read."""
        request = Request(self._until(b"\r\n\r\n"))
        self.upstream.requests.append(request)
        if (request.field("Transfer-Encoding") or "").lower() == "chunked":
            body = b""
            while size := int(self._until(b"\r\n").split(b";")[0], 16):
                body += self._exactly(size)
                assert self._exactly(2) == b"\r\n"
            while self._until(b"\r\n"):
                pass
            request.body = body
        else:
            request.body = self._exactly(int(request.field("Content-Length") or 0))
        return request

    def requests(self):
        """Every request until the other side closes."""
        with contextlib.suppress(EOFError):
            while True:
                yield self.request()

    def send(self, data):
        """Counts what the kernel took, so that a test can see a reader's slowness arrive here."""
        view = memoryview(data)
        while view:
            count = self.socket.send(view[:65536])
            self.upstream.sent += count
            view = view[count:]

    def wrap(self, context):
        """From here on TLS."""
        self.socket = context.wrap_socket(self.socket, server_side=True)


class Scripted:
    def __init__(self, script, port=0):
        self.script = script
        self.requests, self.peers, self.faults = [], [], []
        self.sent = 0
        self.listener = socket.create_server(("127.0.0.1", port), backlog=1024)
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for one in [self.listener, *(peer.socket for peer in self.peers)]:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        assert kind or not self.faults, self.faults

    @property
    def connections(self):
        return len(self.peers)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                accepted, _ = self.listener.accept()
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.peers.append(Peer(self, accepted, len(self.peers)))
                threading.Thread(target=self._run, args=(self.peers[-1],), daemon=True).start()

    def _run(self, peer):
        try:
            self.script(peer)
        except (OSError, EOFError):
            pass
        except Exception as fault:
            self.faults.append(repr(fault))
        finally:
            with contextlib.suppress(OSError):
                peer.socket.shutdown(socket.SHUT_RDWR)
            peer.socket.close()

    def is_stuck(self):
        """Nothing more leaves: whoever reads has stopped reading. Poll it a few times a second."""
        before, self.seen = getattr(self, "seen", -1), self.sent
        return self.sent > 0 and self.sent == before


def echo(peer):
    """Answers every request with its target."""
    for request in peer.requests():
        peer.send(answer(request.target.encode()))


class Hold:
    """A script that answers nothing until `release`."""

    def __init__(self, then=OK):
        self.then, self.event = then, threading.Event()

    def __call__(self, peer):
        for _ in peer.requests():
            assert self.event.wait(60)
            peer.send(self.then)

    def release(self):
        self.event.set()


class Issuer:
    """A script: an OAuth token endpoint that grants `token(number)` for `lifetime` seconds."""

    def __init__(self, lifetime=3600, token="token-{}".format):
        self.lifetime, self.token, self.grants = lifetime, token, []

    def __call__(self, peer):
        for _ in peer.requests():
            self.grants.append(time.monotonic())
            grant = {"access_token": self.token(len(self.grants)), "token_type": "Bearer", "expires_in": self.lifetime}
            peer.send(answer(json.dumps(grant).encode(), b"Content-Type: application/json"))


# --- The gateway in front of it --------------------------------------------------------------------------------------


def plain(gateway, upstream, route=None, **changes):
    """A route without an identity; one data loop, so that the upstream's pool is one."""
    way = gateway.route("none", upstream.address) | (route or {})
    gateway.config = gateway.frame({"threads": 1, "routes": [way]} | changes)
    return gateway


def identified(gateway, upstream, block, route=None, **changes):
    """The same with an identity."""
    way = gateway.route("only", upstream.address) | (route or {})
    gateway.config = gateway.frame({"threads": 1, "identities": {"only": block}, "routes": [way]} | changes)
    return gateway


def get(gateway, path, *fields, method="GET", version="1.1"):
    """The octets of a request."""
    lines = [f"{method} {path} HTTP/{version}", f"Host: {gateway.listen}", *fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


# --- Callers ---------------------------------------------------------------------------------------------------------


class Narrow(Raw):
    """A caller whose kernel takes little for it, so that its slowness is felt at the other end."""

    def __init__(self, to, timeout=60.0, room=16384):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self.socket.settimeout(timeout)
        self.socket.connect(address(to))
        self.buffer = b""


class Local(Raw):
    """A caller on a unix socket."""

    def __init__(self, path, timeout=15.0):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        self.socket.connect(str(path))
        self.buffer = b""


def stays_silent(raw, seconds):
    """True when nothing at all, not even the end, comes for so long; false as soon as something does."""
    before = raw.socket.gettimeout()
    raw.socket.settimeout(seconds)
    try:
        raw.socket.recv(1, socket.MSG_PEEK)
        return False
    except socket.timeout:
        return True
    finally:
        raw.socket.settimeout(before)


def problem_type(found):
    """The last word of a problem's type; empty for an answer that is none."""
    match = re.search(r"problems/([a-z-]+)", found.body.decode("latin-1"))
    return match[1] if match else ""


def all_closed(raws):
    return eventually(lambda: all(raw.is_closed(within=0.01) for raw in raws), within=15, what="every end")
