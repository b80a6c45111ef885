"""The upstream of the gateway: it keeps the octets of every request as they were sent, and answers."""

import asyncio
import contextlib
import socket

import forwarding
import reader


class Origin:
    """Keeps requests until the next `take`. `alter`, for tests of the test, changes the octets of a request before they are kept."""

    def __init__(self):
        self.alter = None
        self.whole, self.cut, self.broken = {}, [], []
        self.open = set()

    async def start(self):
        self.server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self), "127.0.0.1", 0, backlog=4096
        )
        self.address = "127.0.0.1:%d" % self.server.sockets[0].getsockname()[1]
        return self

    def answered(self, connection, key, message):
        """Keeps it; the answer says which request it answers."""
        octets = self.alter(message.octets) if self.alter else message.octets
        self.whole.setdefault(key, []).append(octets)
        connection.transport.write(b"HTTP/1.1 200 OK\r\nCase: " + key.hex().encode() + b"\r\nContent-Length: 0\r\n\r\n")

    def take(self):
        """(key → list of octets, octets of requests that did not end, octets that are no request with the reason)"""
        found = self.whole, self.cut, self.broken
        self.whole, self.cut, self.broken = {}, [], []
        return found

    def close(self):
        self.server.close()
        for transport in list(self.open):
            transport.abort()


class Connection(asyncio.Protocol):
    def __init__(self, origin):
        self.origin, self.buffer = origin, bytearray()
        self.refused = False

    def connection_made(self, transport):
        self.transport = transport
        self.origin.open.add(transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data):
        self.buffer += data
        if self.refused:
            return
        try:
            while self.buffer:
                message, end = reader.request(self.buffer)
                del self.buffer[:end]
                key = forwarding.key(message.start[0], message.start[1], message.fields)
                self.origin.answered(self, key, message)
                if self.transport.is_closing():
                    return
        except reader.More:
            pass
        except reader.Refused as reason:
            self.refused = True
            self.origin.broken.append((bytes(self.buffer), str(reason)))
            self.transport.close()

    def connection_lost(self, _):
        self.origin.open.discard(self.transport)
        if self.buffer and not self.refused:
            self.origin.cut.append(bytes(self.buffer))


class Caller(asyncio.Protocol):
    """Writes one script to the gateway and keeps what comes back."""

    def __init__(self, wanted, behind):
        # Methods of the requests that are to be answered, and the one that what is behind them begins with.
        self.wanted, self.behind = wanted, behind
        self.buffer = bytearray()
        self.at = 0
        self.answers = []
        self.fault = None
        # The last request is a sentinel: the connection is let go when it was answered.
        self.leaves = False
        self.bodies_for_head = 0
        self.reset = False
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.buffer += data
        self.read()

    def read(self, ended=False):
        try:
            while self.at < len(self.buffer):
                method = self.wanted[len(self.answers)] if len(self.answers) < len(self.wanted) else self.behind
                found, self.at = reader.answers(self.buffer, self.at, method, ended)
                self.answers.append(found[-1])
                if method == b"HEAD" and found[-1].last and self.at < len(self.buffer):
                    # A known fault, counted and not found anew: a head that is refused as malformed is answered with a body though
                    # its method is HEAD (RFC 9110 section 9.3.2). The end of the connection keeps it apart from other answers.
                    self.bodies_for_head, self.at = self.bodies_for_head + 1, len(self.buffer)
            if self.leaves and len(self.answers) >= len(self.wanted):
                self.finish()
        except reader.More:
            if ended:
                self.fault = "an answer is cut"
        except reader.Refused as reason:
            self.fault = f"an answer is malformed: {reason}"
            self.finish()

    def eof_received(self):
        self.read(ended=True)
        self.finish()

    def connection_lost(self, fault):
        # Ended while we wrote: what was answered is lost with the connection.
        self.reset = self.reset or fault is not None
        self.finish()

    def finish(self):
        if not self.ended.done():
            self.ended.set_result(None)


async def call(address, segments, wanted, behind, closes, within=20.0):
    """`closes`: the octets end within a message or in something to refuse: the gateway has to end the connection, at the latest when our
    side of it is closed. Gives the caller, with `fault` set where that did not happen in time."""
    host, port = address
    loop = asyncio.get_running_loop()
    transport, caller = await loop.create_connection(lambda: Caller(wanted, behind), host, port)
    try:
        for index, segment in enumerate(segments):
            if index:
                await asyncio.sleep(0.001)
            transport.write(segment)
        if closes:
            if closes != "cut":
                await asyncio.wait({caller.ended}, timeout=0.5)
            if not transport.is_closing():
                with contextlib.suppress(OSError):
                    transport.write_eof()
        else:
            caller.leaves = True
            caller.read()
        await asyncio.wait({caller.ended}, timeout=within)
        if not caller.ended.done():
            caller.fault = "the connection was not ended" if closes else "no answer in time"
    finally:
        transport.abort()
    return caller


class Answering(Origin):
    """Writes the answer that was made for the request: key → making_answers.Answer. `alter`, for tests of the test, changes what a caller
    read: it is given the octets and the number of the connection."""

    def __init__(self):
        super().__init__()
        self.answers = {}

    def answered(self, connection, key, message):
        answer = self.answers.get(key)
        if answer is None:
            return connection.transport.abort()
        connection.transport.write(answer.segments[0])
        self.go_on(connection.transport, answer, 1)

    def go_on(self, transport, answer, index):
        """The further segments a little later, then the end."""
        if index < len(answer.segments):
            return asyncio.get_running_loop().call_later(0.001, self.write, transport, answer, index)
        if answer.ends:
            transport.close()

    def write(self, transport, answer, index):
        if not transport.is_closing():
            transport.write(answer.segments[index])
            self.go_on(transport, answer, index + 1)
