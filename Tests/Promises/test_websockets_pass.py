"""Promise: a WebSocket passes, whatever version of HTTP is on either side; its handshake carries a credential that the caller does not
have, and a handshake that is refused is repeated with a better one."""

import asyncio
import contextlib
import http
import socket
import subprocess
import sys
import textwrap
import threading
import time

import pytest
import websockets
import wsproto

import http2_peers
from harness import eventually, executable, free_port, together
from origins import SECRET, forward
from peers import Authority
from scripted import Scripted


class WebSocketServer:
    """On `websockets`, in a thread: gives back what it gets. `admits` decides from the credential."""

    def __init__(self, admits=lambda credential: True):
        self.admits, self.credentials, self.codes = admits, [], []
        self.ready, self.over = threading.Event(), None
        self.thread = threading.Thread(target=lambda: asyncio.run(self.run()), daemon=True)
        self.thread.start()
        assert self.ready.wait(10)

    async def run(self):
        self.loop, self.over = asyncio.get_running_loop(), asyncio.Event()
        async with websockets.serve(
            self.serve, "127.0.0.1", 0, process_request=self.check, max_size=4 << 20, subprotocols=["chat"]
        ) as server:
            self.address = "127.0.0.1:%d" % server.sockets[0].getsockname()[1]
            self.ready.set()
            await self.over.wait()

    async def check(self, connection, request):
        """Before release 13 of the library it is given the path and the fields, and answers with a tuple."""
        fields = getattr(request, "headers", request)
        self.credentials.append(fields.get("Authorization"))
        if self.admits(self.credentials[-1]):
            return None
        challenge = ("WWW-Authenticate", 'Bearer error="invalid_token"')
        if isinstance(connection, str):
            return http.HTTPStatus.UNAUTHORIZED, [challenge], b"no\n"
        answer = connection.respond(http.HTTPStatus.UNAUTHORIZED, "no\n")
        answer.headers[challenge[0]] = challenge[1]
        return answer

    async def serve(self, socket):
        path = socket.request.path if hasattr(socket, "request") else socket.path
        if path == "/bye":
            return await socket.close(4001, "enough")
        with contextlib.suppress(websockets.ConnectionClosed):
            async for message in socket:
                await socket.send(message)
        self.codes.append((socket.close_code, socket.close_reason))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.over.set)
        self.thread.join(10)


def talk(gateway, conversation, path="/chat", **more):
    async def run():
        async with websockets.connect(
            f"ws://{gateway.listen}{path}", max_size=4 << 20, subprotocols=["chat"], open_timeout=20, **more
        ) as socket:
            return await asyncio.wait_for(conversation(socket), 20)

    return asyncio.run(run())


async def exchange(socket):
    """Messages of every kind and size, pings both ways, and the close of the caller."""
    assert socket.subprotocol == "chat"
    large = bytes(range(256)) * 4096
    for message in ("hello", "", "é" * 1000, b"\0\1", large, large + b"odd"):
        await socket.send(message)
        assert await socket.recv() == message
    await asyncio.wait_for(await socket.ping(), 10)
    await socket.close(4000, "done")
    assert (socket.close_code, socket.close_reason) == (4000, "done")


def test_messages_and_the_close_handshake(gateway):
    with WebSocketServer() as server:
        forward(gateway, server.address, 1).start()
        talk(gateway, exchange)
        eventually(lambda: server.codes == [(4000, "done")], what="the close at the server")
        assert server.credentials == [f"Bearer {SECRET}"]


def test_the_server_closes(gateway):
    async def listen(socket):
        with pytest.raises(websockets.ConnectionClosed):
            await socket.recv()
        return socket.close_code, socket.close_reason

    with WebSocketServer() as server:
        forward(gateway, server.address, 1).start()
        assert talk(gateway, listen, "/bye") == (4001, "enough")


def test_many_at_once_beside_requests(gateway):
    async def once(socket):
        await socket.send("one")
        return await socket.recv()

    with WebSocketServer() as server:
        forward(gateway, server.address, 1).start()
        assert together(20, lambda _: talk(gateway, once)) == ["one"] * 20


def test_a_refused_handshake_is_repeated_with_a_fresh_token(gateway, provider):
    """The first token is refused; the caller sees one handshake, which succeeds."""
    refused = set()

    def admits(credential):
        if credential and not refused:
            refused.add(credential)
        return credential is not None and credential not in refused

    provider.client("socket", secret="socket-secret", auth="client_secret_basic", grants=["client_credentials"])
    with WebSocketServer(admits) as server:
        gateway.config = gateway.frame(
            {
                "identities": {
                    "api": {
                        "oauth2": {
                            "token_url": f"{provider.issuer}/token",
                            "client_id": "socket",
                            "client_secret": gateway.secret("socket", "socket-secret"),
                        }
                    }
                },
                "routes": [gateway.route("api", server.address)],
            }
        )
        gateway.start()
        talk(gateway, exchange)
        first, second = server.credentials
        assert first.startswith("Bearer ") and second.startswith("Bearer ") and first != second


HYPERCORN = """
import asyncio, sys
from hypercorn.asyncio import serve
from hypercorn.config import Config

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 204, "headers": []})
        return await send({"type": "http.response.body", "body": b""})
    fields = {name.decode(): value.decode() for name, value in scope["headers"]}
    await receive()
    await send({"type": "websocket.accept", "subprotocol": "chat"})
    while True:
        event = await receive()
        if event["type"] == "websocket.disconnect":
            return
        if event.get("text") == "credential":
            await send({"type": "websocket.send", "text": f"{fields.get('authorization')} over {scope['http_version']}"})
        else:
            known = {key: event[key] for key in ("text", "bytes") if event.get(key) is not None}
            await send({"type": "websocket.send", **known})

config = Config()
config.bind = [sys.argv[1]]
config.websocket_max_message_size = 4 << 20
config.accesslog = None
asyncio.run(serve(app, config))
"""


@pytest.fixture
def hypercorn(tmp_path):
    """An ASGI server that serves WebSockets over either version of HTTP: its address."""
    program = tmp_path / "app.py"
    program.write_text(textwrap.dedent(HYPERCORN))
    to = f"127.0.0.1:{free_port()}"
    with open(tmp_path / "hypercorn.log", "wb") as log:
        process = subprocess.Popen([sys.executable, program, to], stdout=log, stderr=log)
    eventually(lambda: "Running" in (tmp_path / "hypercorn.log").read_text(), within=20, what="hypercorn listening")
    yield to
    process.terminate()
    process.wait(20)


@pytest.mark.parametrize("version", [1, 2])
def test_an_upstream_of_either_version(gateway, hypercorn, version):
    """Over HTTP/2 by extended CONNECT (RFC 8441), to a caller that knows nothing of it."""

    async def conversation(socket):
        await socket.send("credential")
        assert await socket.recv() == f"Bearer {SECRET} over {'1.1' if version == 1 else '2'}"
        await exchange(socket)

    forward(gateway, hypercorn, version)
    gateway.config["threads"] = 1
    gateway.start()
    # Over HTTP/2 hypercorn leaves the stream open after the last frame: it is for the caller to end the connection.
    talk(gateway, conversation, close_timeout=0.5)


def test_sockets_and_requests_share_a_connection_over_http2(gateway):
    """An upstream on h2 and wsproto that ends its streams: nobody waits for anything at the close."""

    def script(stream):
        if stream.method != "CONNECT":
            return stream.send_head([(":status", "204")], ended=True)
        assert stream.field(":protocol") == "websocket"
        assert stream.field("authorization") == f"Bearer {SECRET}"
        assert stream.field("sec-websocket-key") is None, "RFC 8441 §5.1"
        stream.send_head([(":status", "200"), ("sec-websocket-protocol", "chat")])
        frames = wsproto.connection.Connection(wsproto.ConnectionType.SERVER)
        while data := stream.read():
            frames.receive_data(data)
            for event in frames.events():
                if isinstance(event, (wsproto.events.Ping, wsproto.events.CloseConnection)):
                    event = event.response()
                stream.write(frames.send(event))
                if isinstance(event, wsproto.events.CloseConnection):
                    return stream.end()

    with http2_peers.Server(script, extended_connect=True) as server:
        forward(gateway, server.address, 2)
        gateway.config["threads"] = 1
        gateway.start()
        # Nothing stands yet: they wait together for what the first connection offers.
        together(5, lambda _: talk(gateway, exchange))
        assert gateway.get("/").status == 204
        talk(gateway, exchange)
        assert len(server.connections) == 1 and len(server.streams) == 7


def refused(gateway):
    """The answer to a WebSocket's handshake."""
    key = ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
    fields = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"), key]
    return gateway.get("/chat", headers=fields)


@pytest.mark.parametrize("protocol", ["h2c", "tcp", "websocket, h2c", "websockets", None])
def test_another_protocol_than_was_asked_for_is_no_answer(gateway, protocol):
    """Its octets would reach a caller that does not speak it, past every rule of the route."""

    def script(peer):
        for _ in peer.requests():
            field = b"Upgrade: %s\r\n" % protocol.encode() if protocol else b""
            peer.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n" + field + b"\r\nsurprise")

    with Scripted(script) as upstream:
        forward(gateway, upstream.address, 1).start()
        answer = refused(gateway)
        assert answer.status == 502 and answer.json["type"].endswith("/upstream-garbage"), answer
        assert b"surprise" not in answer.body


def test_the_protocol_may_be_spelled_in_any_case(gateway):
    def script(peer):
        peer.request()
        peer.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\nhello")

    with Scripted(script) as upstream:
        forward(gateway, upstream.address, 1).start()
        with gateway.raw() as raw:
            fields = "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n"
            raw.send(f"GET /chat HTTP/1.1\r\nHost: {gateway.listen}\r\n{fields}\r\n")
            assert raw.head()[0] == 101


def test_an_upstream_that_offers_no_websockets_over_http2(gateway):
    """Where the route allows HTTP/2 alone, the answer says what is missing, from the first request on."""

    def script(stream):
        assert stream.method == "GET" and stream.field("upgrade") is None
        stream.send_head([(":status", "204")], ended=True)

    with http2_peers.Server(script) as server:
        forward(gateway, server.address, 2)
        gateway.config["threads"] = 1
        gateway.start()
        for _ in range(2):
            answer = refused(gateway)
            assert answer.status == 502 and answer.json["type"].endswith("/upstream-offers-no-upgrade")
            assert "RFC 8441" in answer.json["detail"]
            assert "http_upgrade_failed" in answer.field("Proxy-Status")
        assert gateway.get("/").status == 204
        assert len(server.connections) == 1


def test_an_upstream_that_never_says_what_it_offers(gateway):
    """The wait ends with the connect timeout."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        to = "127.0.0.1:%d" % silent.getsockname()[1]
        forward(gateway, to, 2, {"timeouts": {"connect": "1s"}}).start()
        begun = time.monotonic()
        assert refused(gateway).status == 504
        assert 0.8 < time.monotonic() - begun < 5


@pytest.fixture
def nginx(tmp_path):
    """nginx with TLS and both versions, which knows WebSockets over HTTP/1.1 alone, before a server: its port."""
    authority = Authority(tmp_path / "pki")
    certificate, key = authority.issue("server", "localhost")
    with WebSocketServer() as server:
        port = free_port()
        folder = tmp_path / "nginx"
        folder.mkdir()
        (folder / "nginx.conf").write_text(
            f"""daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
user root; events {{ worker_connections 128; }}
http {{
  access_log off; client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  server {{
    listen 127.0.0.1:{port} ssl http2;
    ssl_certificate {certificate}; ssl_certificate_key {key};
    location = / {{ return 200 "$server_protocol"; }}
    location / {{
      proxy_pass http://{server.address}; proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
    }}
  }}
}}
"""
        )
        binary = executable("CARDEA_NGINX", "nginx", "apt-get install nginx")
        process = subprocess.Popen([binary, "-p", folder, "-e", folder / "error.log", "-c", folder / "nginx.conf"])
        eventually(lambda: is_listening(port), what="nginx listening")
        yield {"to": f"https://localhost:{port}", "tls": {"ca": str(authority.file)}, "http": "auto"}, server
        process.terminate()
        process.wait(20)


def is_listening(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True


@pytest.mark.parametrize("warm", [False, True], ids=["nothing stands", "a session stands"])
def test_where_http2_offers_none_http1_is_taken(gateway, nginx, warm):
    """With `http: auto`."""
    route, server = nginx
    forward(gateway, "unused", 1, route)
    gateway.config["threads"] = 1
    gateway.start()
    if warm:
        assert gateway.get("/").body == b"HTTP/2.0"
    together(5, lambda _: talk(gateway, exchange))
    assert gateway.get("/").body == b"HTTP/2.0"
    assert server.credentials == [f"Bearer {SECRET}"] * 5
