"""Promise: callers of HTTP/2 that fill every window they are given, toward an upstream that never reads, take nothing from anybody else;
what they take of memory is bounded."""

import contextlib
import socket
import struct
import threading
import time

import pytest

from frames import DATA, RST_STREAM, SETTINGS, WINDOW_UPDATE, Caller, frame
from scripted import answer

HOGS = 40
STREAMS = 100
# Debug builds need more beside the blocks: every hog has a session of nghttp2 and up to a dozen requests.
ROOM = 64 << 20


class Upstream:
    """Serves /other at once; of any other request it reads the head and nothing more, and answers nothing."""

    def __init__(self):
        self.listener = socket.socket()
        # Inherited by what is accepted: the kernel should hold little of what is not read.
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(4096)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.stuck, self.served = [], 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                accepted, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(accepted,), daemon=True).start()

    def _serve(self, connected):
        head = b""
        with contextlib.suppress(OSError):
            while True:
                while b"\r\n\r\n" not in head:
                    data = connected.recv(1024)
                    if not data:
                        return connected.close()
                    head += data
                if not head.startswith(b"GET /other "):
                    return self.stuck.append(connected)
                connected.sendall(answer(b"fine"))
                self.served += 1
                head = b""

    def close(self):
        self.listener.close()
        for connected in self.stuck:
            connected.close()


class Hog:
    """Sends whatever the windows allow, on as many streams as it may, and never gives up."""

    def __init__(self, to):
        self.caller = Caller(to)
        self.caller.socket.settimeout(0.02)
        self.windows, self.initial, self.connection = {}, 65535, 65535
        self.next, self.sent, self.refused, self.cut = 1, 0, 0, False

    def turn(self):
        """One round of opening, sending and reading."""
        while len(self.windows) < STREAMS and self.next < 2 * 3 * STREAMS:
            self.caller.send(self.caller.request(self.next, "/stuck", "POST", ended=False))
            self.windows[self.next] = self.initial
            self.next += 2
        for stream in list(self.windows):
            count = min(self.windows[stream], self.connection, 16384)
            if count > 0:
                self.caller.send(frame(DATA, 0, stream, bytes(count)))
                self.windows[stream] -= count
                self.connection -= count
                self.sent += count
        with contextlib.suppress(TimeoutError):
            while True:
                got = self.caller.read()
                if got is None:
                    self.cut = True
                    return
                self.note(*got)

    def note(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & 1:
            for offset in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[offset : offset + 6])
                if name == 4:
                    self.windows = {key: left + value - self.initial for key, left in self.windows.items()}
                    self.initial = value
            self.caller.send(frame(SETTINGS, 1))
        if kind == WINDOW_UPDATE:
            size = int.from_bytes(payload, "big")
            if stream == 0:
                self.connection += size
            elif stream in self.windows:
                self.windows[stream] += size
        if kind == RST_STREAM and self.windows.pop(stream, None) is not None:
            self.refused += 1


@pytest.fixture
def upstream():
    upstream = Upstream()
    yield upstream
    upstream.close()


def test_others_are_served_all_the_time(gateway, upstream):
    gateway.with_identity({"static": {"value": gateway.secret("token", "token-0123456789")}})
    gateway.config["routes"][0].update({"to": f"http://{upstream.address}", "http": "1.1"})
    gateway.config.update({"threads": 1, "limits": {"connections": 400}})
    gateway.start()
    assert gateway.get("/other").status == 200
    before = gateway.resident()

    hogs, over = [Hog(gateway.listen) for _ in range(HOGS)], threading.Event()

    def hog(some):
        while not over.is_set():
            for one in some:
                with contextlib.suppress(OSError):
                    if not one.cut:
                        one.turn()

    threads = [threading.Thread(target=hog, args=(hogs[index::4],), daemon=True) for index in range(4)]
    for thread in threads:
        thread.start()
    statuses, slowest, end = [], 0.0, time.monotonic() + 8
    with Caller(gateway.listen) as steady:
        stream = 1
        while time.monotonic() < end:
            begun = time.monotonic()
            # A stranger over either version, and one who was there before.
            statuses.append(gateway.get("/other").status)
            with Caller(gateway.listen) as caller:
                caller.send(caller.request(1, "/other"))
                statuses.append(caller.status(1))
            steady.send(steady.request(stream, "/other"))
            statuses.append(steady.status(stream))
            stream += 2
            slowest = max(slowest, time.monotonic() - begun)
            time.sleep(0.02)
    held = gateway.resident() - before
    over.set()
    for thread in threads:
        thread.join(10)
    assert set(statuses) == {200} and len(statuses) > 60, {one: statuses.count(one) for one in set(statuses)}
    # They did what they could: all that they were given is full, and more was asked for than there was.
    assert sum(one.sent for one in hogs) > HOGS * 65535 and sum(one.refused for one in hogs) > 0
    assert len(upstream.stuck) >= HOGS
    assert held < ROOM, f"{held >> 20} MiB"
    assert slowest < 5
    for one in hogs:
        one.caller.socket.close()
