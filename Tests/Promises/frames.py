"""HTTP/2 by the frame, in clear text with prior knowledge: for callers and upstreams that no library would be."""

import contextlib
import socket
import struct
import threading

from hpack import Decoder, Encoder

from wire import address

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED = 0x1, 0x1, 0x4, 0x8
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR = 0x0, 0x1, 0x2, 0x3
REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM, HTTP_1_1_REQUIRED = 0x7, 0x8, 0xB, 0xD
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MOST = 2**31 - 1


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def settings(**values):
    names = {"table": 1, "push": 2, "streams": 3, "window": 4, "frame": 5, "head": 6}
    return frame(SETTINGS, payload=b"".join(struct.pack(">HI", names[name], value) for name, value in values.items()))


def window(stream, size):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", size))


def reset(stream, code=CANCEL):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", code))


def goaway(last=0, code=NO_ERROR):
    return frame(GOAWAY, 0, 0, struct.pack(">II", last, code))


class Wire:
    """One end of a connection: frames out, frames in. What came is kept by stream: heads, octets of bodies, resets."""

    def __init__(self, connected):
        self.socket = connected
        self.socket.settimeout(15)
        self.buffer = b""
        self.encoder, self.decoder = Encoder(), Decoder()
        self.heads, self.bodies, self.resets, self.ended, self.gone = {}, {}, {}, set(), None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, *frames):
        self.socket.sendall(b"".join(frames))
        return self

    def head(self, stream, fields, ended=True):
        flags = END_HEADERS | (END_STREAM if ended else 0)
        return frame(HEADERS, flags, stream, self.encoder.encode(fields))

    def read(self):
        """The next frame as (kind, flags, stream, payload), or None at the end."""
        while len(self.buffer) < 9 or len(self.buffer) < 9 + int.from_bytes(self.buffer[:3], "big"):
            try:
                data = self.socket.recv(262144)
            except (ConnectionResetError, BrokenPipeError):
                data = b""
            if not data:
                return None
            self.buffer += data
        length = int.from_bytes(self.buffer[:3], "big")
        kind, flags, stream = struct.unpack(">BBI", self.buffer[3:9])
        payload, self.buffer = self.buffer[9 : 9 + length], self.buffer[9 + length :]
        self._note(kind, flags, stream, payload)
        return kind, flags, stream, payload

    def _note(self, kind, flags, stream, payload):
        if kind == HEADERS:
            assert flags & END_HEADERS
            self.heads.setdefault(stream, []).append(dict(self.decoder.decode(payload)))
        if kind == DATA:
            self.bodies[stream] = self.bodies.get(stream, b"") + payload
        if kind in (HEADERS, DATA) and flags & END_STREAM:
            self.ended.add(stream)
        if kind == RST_STREAM:
            self.resets[stream] = int.from_bytes(payload, "big")
            self.ended.add(stream)
        if kind == GOAWAY:
            self.gone = int.from_bytes(payload[4:8], "big")

    def until(self, condition):
        """Reads until `condition()`; False when the connection ended before."""
        while not condition():
            if self.read() is None:
                return False
        return True

    def rest(self):
        """Everything until the other side ends; the reason that it gave."""
        while self.read() is not None:
            pass
        return self.gone

    def status(self, stream):
        """Of the stream's answer, or None when it or the connection was given up."""
        self.until(lambda: stream in self.ended)
        return int(self.heads[stream][-1][":status"]) if stream in self.heads else None


class Caller(Wire):
    """Speaks first."""

    def __init__(self, to, opening=None, buffer=None):
        made = socket.socket()
        if buffer:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        made.connect(address(to))
        super().__init__(made)
        self.to = to
        self.send(PREFACE, opening or settings())

    def request(self, stream, path="/", method="GET", fields=(), ended=True):
        pseudo = [(":method", method), (":scheme", "http"), (":authority", self.to), (":path", path)]
        return self.head(stream, pseudo + list(fields), ended)


class Upstream:
    """Accepts; each connection gets a thread with `script(wire, number)`. The preface is read, and settings are exchanged."""

    def __init__(self, script):
        self.script, self.wires, self.faults = script, [], []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for one in (self.listener, *(wire.socket for wire in self.wires)):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        assert kind or not self.faults, self.faults

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                wire = Wire(self.listener.accept()[0])
                self.wires.append(wire)
                threading.Thread(target=self._run, args=(wire, len(self.wires)), daemon=True).start()

    def _run(self, wire, number):
        try:
            while len(wire.buffer) < len(PREFACE):
                data = wire.socket.recv(65536)
                if not data:
                    return
                wire.buffer += data
            assert wire.buffer.startswith(PREFACE)
            wire.buffer = wire.buffer[len(PREFACE) :]
            wire.send(settings())
            self.script(wire, number)
        except OSError:
            pass
        except Exception as fault:
            self.faults.append(repr(fault))
        finally:
            wire.socket.close()


def requests(wire):
    """Numbers of the streams that ask, as they come; settings and pings are answered."""
    while True:
        got = wire.read()
        if got is None:
            return
        kind, flags, stream, payload = got
        if kind in (SETTINGS, PING) and not flags & ACK:
            wire.send(frame(kind, ACK, 0, payload if kind == PING else b""))
        if kind == HEADERS:
            yield stream
