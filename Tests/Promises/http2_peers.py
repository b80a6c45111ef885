"""Both ends of HTTP/2 on Python's h2: a server whose streams a test decides, and a caller that can do what no command does.

`Server(script)` listens; for each stream a thread calls `script(stream)`. Both ends write under the connection's lock and wait for
the windows of the other side."""

import contextlib
import select
import socket
import ssl
import threading

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings
import hyperframe.frame

from wire import address


class Reset(Exception):
    """The other side gave the stream up, or the connection is gone."""


class Stream:
    """What was received on one stream, and the ways to answer it."""

    def __init__(self, connection, number, fields=()):
        self.connection, self.number = connection, number
        self.fields = list(fields)
        self.interims, self.trailers = [], []
        self.pieces, self.ended, self.code = [], False, None
        self.received = 0

    def field(self, name):
        return next((value for key, value in self.fields if key == name), None)

    @property
    def method(self):
        return self.field(":method")

    @property
    def target(self):
        return self.field(":path")

    # Reading; credit goes back with each piece that is taken.

    def wait(self, condition, within=20):
        changed = self.connection.changed
        with changed:
            assert changed.wait_for(lambda: condition() or self.code is not None, within), "nothing came"

    def head(self):
        self.wait(lambda: self.fields)
        if not self.fields:
            raise Reset(self.code)
        return int(self.field(":status"))

    def read(self):
        """The next piece; empty at the end."""
        self.wait(lambda: self.pieces or self.ended)
        if self.pieces:
            piece, counted = self.pieces.pop(0)
            self.connection.credit(self, counted)
            return piece
        if not self.ended:
            raise Reset(self.code)
        return b""

    def body(self):
        return b"".join(iter(self.read, b""))

    # Writing.

    def send_head(self, fields, ended=False):
        self.connection.do("send_headers", self.number, fields, end_stream=ended)

    def write(self, data):
        view = memoryview(data)
        while view:
            view = view[self.connection.send_some(self, view) :]

    def end(self, trailers=()):
        if trailers:
            self.send_head(list(trailers), ended=True)
        else:
            self.connection.do("end_stream", self.number)

    def reset(self, code=8):
        self.connection.do("reset_stream", self.number, code)
        # What came and will not be read has used the connection's window, which other streams need.
        with self.connection.changed:
            unread, self.pieces = self.pieces, []
        for _, counted in unread:
            self.connection.credit(self, counted)


class Connection:
    def __init__(self, socket_, client, script=None, extended_connect=False):
        self.socket, self.script = socket_, script
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=client, header_encoding="utf-8", validate_inbound_headers=False)
        )
        if extended_connect:
            # As initial values: what is set later waits for an acknowledgement of the first SETTINGS.
            values = {**self.h2.local_settings, h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL: 1}
            self.h2.local_settings = h2.settings.Settings(client=False, initial_values=values)
        self.changed = threading.Condition(threading.RLock())
        self.streams = {}
        self.is_over, self.went_away, self.why = False, None, None
        with self.changed:
            self.h2.initiate_connection()
            self.flush()
        threading.Thread(target=self.run, daemon=True).start()

    def flush(self):
        if data := self.h2.data_to_send():
            self.socket.sendall(data)

    def do(self, name, *arguments, **rest):
        with self.changed:
            try:
                getattr(self.h2, name)(*arguments, **rest)
                self.flush()
            except (h2.exceptions.ProtocolError, OSError) as fault:
                raise Reset(str(fault)) from None

    def credit(self, stream, count):
        with contextlib.suppress(h2.exceptions.ProtocolError, OSError), self.changed:
            self.h2.acknowledge_received_data(count, stream.number)
            self.flush()

    def room(self, stream):
        if self.is_over or stream.code is not None:
            raise Reset(stream.code)
        try:
            return min(self.h2.local_flow_control_window(stream.number), self.h2.max_outbound_frame_size)
        except h2.exceptions.ProtocolError:
            raise Reset(stream.code) from None

    def send_some(self, stream, view):
        with self.changed:
            assert self.changed.wait_for(lambda: self.room(stream) > 0, 20), "the window stays shut"
            count = min(self.room(stream), len(view))
            self.do("send_data", stream.number, bytes(view[:count]))
            return count

    def run(self):
        try:
            while data := self.socket.recv(65536):
                with self.changed:
                    for event in self.h2.receive_data(data):
                        self.note(event)
                    self.flush()
                    self.changed.notify_all()
        except (OSError, ValueError, h2.exceptions.ProtocolError) as fault:
            self.why = repr(fault)
            with contextlib.suppress(OSError, ValueError):
                self.flush()
        with self.changed:
            self.is_over = True
            for stream in self.streams.values():
                if not stream.ended and stream.code is None:
                    stream.code = "connection"
            self.changed.notify_all()
        self.close()

    def note(self, event):
        stream = self.streams.get(getattr(event, "stream_id", None))
        match event:
            case h2.events.RequestReceived():
                stream = self.streams[event.stream_id] = Stream(self, event.stream_id, event.headers)
                threading.Thread(target=self.script, args=(stream,), daemon=True).start()
            case h2.events.InformationalResponseReceived() if stream:
                stream.interims.append(event.headers)
            case h2.events.ResponseReceived() if stream:
                stream.fields = event.headers
            case h2.events.TrailersReceived() if stream:
                stream.trailers = [(str(name), str(value)) for name, value in event.headers]
            case h2.events.DataReceived() if stream:
                # An empty frame is none of the body; its padding still counts.
                if event.data:
                    stream.pieces.append((event.data, event.flow_controlled_length))
                    stream.received += len(event.data)
                elif event.flow_controlled_length:
                    self.credit(stream, event.flow_controlled_length)
            case h2.events.StreamEnded() if stream:
                stream.ended = True
            case h2.events.StreamReset() if stream:
                stream.code = event.error_code
            case h2.events.ConnectionTerminated():
                self.went_away = event.error_code

    def go_away(self, last):
        """Past h2, which would not send anything after it."""
        with self.changed:
            self.socket.sendall(hyperframe.frame.GoAwayFrame(0, last_stream_id=last).serialize())

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class InTurn:
    """A TLS socket that one thread reads and others write. OpenSSL lets only one of them at it at a time, and Python 3.11 sees to that
    no more than OpenSSL does: without turns a record is spoilt now and then, and the connection ends by itself."""

    def __init__(self, inner):
        self.inner, self.lock, self.timeout = inner, threading.Lock(), inner.gettimeout()
        inner.setblocking(False)

    def recv(self, count):
        while True:
            with self.lock, contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return self.inner.recv(count)
            if not select.select([self.inner], [], [], self.timeout)[0]:
                raise TimeoutError

    def sendall(self, data):
        view = memoryview(data)
        while view:
            with self.lock, contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
                view = view[self.inner.send(view) :]
                continue
            if not select.select([], [self.inner], [], self.timeout)[1]:
                raise TimeoutError

    def settimeout(self, seconds):
        self.timeout = seconds

    def shutdown(self, how):
        self.inner.shutdown(how)

    def close(self):
        self.inner.close()


class Caller(Connection):
    """By prior knowledge, or over TLS with `context`."""

    def __init__(self, to, context=None):
        self.authority = to
        made = socket.create_connection(address(to), timeout=30)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context:
            context.set_alpn_protocols(["h2"])
            made = context.wrap_socket(made, server_hostname="localhost")
            assert made.selected_alpn_protocol() == "h2"
            made = InTurn(made)
        super().__init__(made, client=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def request(self, method, target, fields=(), ended=True):
        with self.changed:
            number = self.h2.get_next_available_stream_id()
            stream = self.streams[number] = Stream(self, number)
            head = [(":method", method), (":scheme", "http"), (":authority", self.authority), (":path", target)]
            stream.send_head(head + list(fields), ended=ended)
            return stream


class Server:
    """Cleartext by prior knowledge."""

    def __init__(self, script, extended_connect=False):
        self.script, self.extended_connect = script, extended_connect
        self.connections, self.streams, self.faults = [], [], []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            connection.close()
        assert kind or not self.faults, self.faults

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                accepted, _ = self.listener.accept()
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.connections.append(Connection(accepted, False, self._run, self.extended_connect))

    def _run(self, stream):
        self.streams.append(stream)
        try:
            self.script(stream)
        except Reset:
            pass
        except Exception as fault:
            self.faults.append(repr(fault))
