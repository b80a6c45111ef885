"""Callers that never retry, for promises that no request is lost."""

import socket
import threading
import time

import frames
from harness import eventually
from wire import address


class Load:
    """Threads that send requests as fast as answers come: some keep their connection until they are told to close it, some take a
    new one for each request. Whatever is no whole answer below 500 is a failure."""

    def __init__(self, to, path, kept=3, fresh=2, pause=0.0, context=None):
        """`context`: TLS to localhost, by this SSLContext."""
        self.host, self.path, self.pause, self.context = to, path, pause, context
        self.place = address(to)
        self.failures, self.statuses = [], {}
        self.longest = 0.0
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.request = f"GET {path} HTTP/1.1\r\nHost: {to}\r\n\r\n".encode()
        self.threads = [threading.Thread(target=self._keep) for _ in range(kept)]
        self.threads += [threading.Thread(target=self._renew) for _ in range(fresh)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(30)
            assert not thread.is_alive(), "a caller hangs"

    @property
    def done(self):
        with self.lock:
            return sum(self.statuses.values())

    def kill_in_turn(self, programs, rounds):
        """Kills one server after the other under the requests, and starts it again."""
        for round in range(rounds):
            self._go_on(60)
            program = programs[round % len(programs)]
            program.die()
            self._go_on(60)
            program.start()

    def _go_on(self, requests):
        target = self.done + requests
        eventually(lambda: self.done >= target, within=30, what="requests")

    # One caller.

    def _keep(self):
        while not self.stopping.is_set():
            with self._connect() as connection:
                while connection and not self.stopping.is_set():
                    if not self._exchange(connection, self.request):
                        break

    def _renew(self):
        request = self.request[:-2] + b"Connection: close\r\n\r\n"
        while not self.stopping.is_set():
            with self._connect() as connection:
                if connection:
                    self._exchange(connection, request)

    def _connect(self):
        try:
            connection = socket.create_connection(self.place, timeout=20)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return self.context.wrap_socket(connection, server_hostname="localhost") if self.context else connection
        except OSError as fault:
            self._fail("connect", fault)
            time.sleep(0.01)
            return _Nothing()

    def _exchange(self, connection, request):
        """Whether the connection may be used again."""
        began = time.monotonic()
        received = b""
        try:
            connection.sendall(request)
            while b"\r\n\r\n" not in received:
                received += self._more(connection)
            head, _, body = received.partition(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            status = int(lines[0].split()[1])
            fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
            while len(body) < int(fields["content-length"]):
                body += self._more(connection)
        except (OSError, ValueError, IndexError, KeyError) as fault:
            self._fail("exchange", fault, received)
            return False
        if status >= 500:
            self._fail("status", status, body)
        self._note(status, began)
        return fields.get("connection", "").lower() != "close"

    def _note(self, status, began):
        with self.lock:
            self.statuses[status] = self.statuses.get(status, 0) + 1
            self.longest = max(self.longest, time.monotonic() - began)
        if self.pause:
            self.stopping.wait(self.pause)

    @staticmethod
    def _more(connection):
        data = connection.recv(65536)
        if not data:
            raise EOFError_("the connection ended")
        return data

    def _fail(self, where, what, received=b""):
        with self.lock:
            self.failures.append((round(time.monotonic(), 3), where, repr(what), received[:200]))


class Streams(Load):
    """The same over HTTP/2: stream after stream on a connection, until the other side says that it goes (RFC 9113 section 6.8); then
    a new one. A stream that was sent is never sent again."""

    def _keep(self, most=None):
        while not self.stopping.is_set():
            with self._connect() as connection:
                if connection:
                    self._converse(connection, most)

    def _renew(self):
        self._keep(most=1)

    def _converse(self, connection, most):
        wire, stream = frames.Wire(connection), -1
        authority = "localhost" if self.context else self.host
        fields = [(":method", "GET"), (":scheme", "https" if self.context else "http")]
        fields += [(":authority", authority), (":path", self.path)]
        try:
            wire.send(frames.PREFACE, frames.settings())
            while wire.gone is None and not self.stopping.is_set() and stream != (most or -1) * 2 - 1:
                stream, began = stream + 2, time.monotonic()
                wire.send(wire.head(stream, fields))
                while stream not in wire.ended:
                    self._answer(wire)
                if stream in wire.resets:
                    raise EOFError_(f"stream {stream} was reset with {wire.resets[stream]}")
                status = int(wire.heads.pop(stream)[-1][":status"])
                body = wire.bodies.pop(stream, b"")
                if status >= 500:
                    self._fail("status", status, body)
                self._note(status, began)
        except (OSError, ValueError, KeyError) as fault:
            self._fail("stream", fault)

    @staticmethod
    def _answer(wire):
        got = wire.read()
        if got is None:
            raise EOFError_(f"the connection ended, {wire.gone}")
        kind, flags, _, payload = got
        if kind in (frames.SETTINGS, frames.PING) and not flags & frames.ACK:
            wire.send(frames.frame(kind, frames.ACK, 0, payload if kind == frames.PING else b""))
        if kind == frames.DATA and payload:
            wire.send(frames.window(0, len(payload)))


class EOFError_(OSError):
    pass


class _Nothing:
    def __enter__(self):
        return None

    def __exit__(self, *_):
        pass
