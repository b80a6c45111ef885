"""A small server of HTTP/1.1 for the issuer and the upstreams, which share no code with the gateway: one thread, any number of
connections, no memory of what is over."""

import asyncio
import contextlib
import socket
import sys
import time

from places import gateway_of

REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 503: "Service Unavailable"}


class Request:
    def __init__(self, head, peer):
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = lines[0].split(" ")
        self.fields = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines[1:] if line)]
        self.gateway = gateway_of(peer)
        self.body, self.arrived = b"", time.monotonic()

    def field(self, name):
        return next((value for key, value in self.fields if key == name), None)

    def values(self, name):
        return [value for key, value in self.fields if key == name]


class Answer:
    """`body` is octets or an iterable of them; a length that is not given makes chunks. `closes`: the connection ends in the middle."""

    def __init__(self, status, body=b"", fields=(), length=None, closes=False):
        self.status, self.body, self.fields, self.closes = status, body, list(fields), closes
        self.length = len(body) if isinstance(body, bytes) else length


async def read_body(reader, request):
    if (request.field("transfer-encoding") or "").lower() == "chunked":
        pieces = []
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            pieces.append(await reader.readexactly(size))
            await reader.readexactly(2)
        while await reader.readuntil(b"\r\n") != b"\r\n":
            pass
        return b"".join(pieces)
    return await reader.readexactly(int(request.field("content-length") or 0))


async def send(writer, answer):
    lines = [f"HTTP/1.1 {answer.status} {REASONS.get(answer.status, 'Said')}", *(f"{name}: {value}" for name, value in answer.fields)]
    lines.append("Transfer-Encoding: chunked" if answer.length is None else f"Content-Length: {answer.length}")
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    for piece in [answer.body] if isinstance(answer.body, bytes) else answer.body:
        writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if answer.length is None else piece)
        await writer.drain()
    if answer.length is None and not answer.closes:
        writer.write(b"0\r\n\r\n")
    await writer.drain()


async def converse(reader, writer, respond):
    peer = writer.get_extra_info("peername")[0]
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError):
        while True:
            request = Request((await reader.readuntil(b"\r\n\r\n"))[:-4], peer)
            if request.field("expect"):
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.body = await read_body(reader, request)
            answer, told = await respond(request)
            whole = False
            try:
                if answer is not None:
                    await send(writer, answer)
                    whole = not answer.closes
            finally:
                if told:
                    told(whole)
            if not whole:
                break
    with contextlib.suppress(OSError, RuntimeError):
        writer.close()


async def serve(places, until):
    """`places`: [(host, port, respond)]. `respond(request)` brings an answer, or none to close, and what is told whether it went out."""
    servers = []
    for host, port, respond in places:
        handle = lambda reader, writer, respond=respond: converse(reader, writer, respond)  # noqa: E731
        servers.append(await asyncio.start_server(handle, host, port, limit=1 << 18, reuse_address=True, backlog=512))
    print("ready", flush=True)
    await until()
    for server in servers:
        server.close()


async def end_of_input():
    """A server ends with whoever started it."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(4096):
        pass
