"""Promise: a server that stops reading a connection of HTTP/2, as some do behind an upload that they refused, holds up nobody but who was
there already: what is sent again goes out on a new connection, and one whose window does not move gets no new requests."""

import json
import subprocess
import sys
import threading
import time

import pytest

from harness import eventually, free_port
from http2_peers import Server
from scripted import Issuer, Scripted, identified, plain

BODY = b"0123456789abcdef" * 20_000


def respond(stream, status, body=b"", *fields):
    stream.send_head([(":status", str(status)), *fields], ended=not body)
    if body:
        stream.write(body)
        stream.end()


class API:
    """Takes the second token. A request with the first one is refused before its body is read, and so stays the window of its connection."""

    def __call__(self, stream):
        if stream.field("authorization") != "Bearer token-1":
            return respond(stream, 200, b"%d" % len(stream.body()))
        stream.wait(lambda: stream.method == "GET" or stream.received > 60_000)
        if stream.method == "GET":
            return respond(stream, 200, b"early")
        return respond(stream, 401, b"", ("www-authenticate", 'Bearer error="invalid_token"'))


def test_what_is_sent_again_goes_out_on_a_new_connection(gateway):
    with Scripted(Issuer()) as issuer, Server(API()) as upstream:
        block = {
            "oauth2": {
                "token_url": f"http://{issuer.address}/token",
                "client_id": "c",
                "client_secret": gateway.secret("s", "secret-of-the-client"),
            }
        }
        identified(gateway, upstream, block, {"http": "2"}).start()
        assert gateway.get("/").body == b"early"
        found = gateway.call("POST", "/", BODY)
        assert (found.status, found.body) == (200, b"%d" % len(BODY))
        refused, again = (stream.connection for stream in upstream.streams if stream.method == "POST")
        assert refused is not again
        # And everybody after it.
        assert gateway.get("/").status == 200
        assert upstream.streams[-1].connection is again


def test_who_was_there_already_goes_on_elsewhere(gateway):
    """A request that lies unread behind the upload is sent again when the connection has said nothing for five seconds."""
    release, held, answers = threading.Event(), threading.Event(), []

    def script(stream):
        if stream.field("authorization") != "Bearer token-1" or stream.target == "/":
            return respond(stream, 200, b"%d" % len(stream.body()))
        if stream.method == "GET":
            return held.set()
        assert held.wait(20)
        stream.wait(lambda: stream.received > 60_000)
        with stream.connection.changed:
            respond(stream, 401, b"", ("www-authenticate", 'Bearer error="invalid_token"'))
            # Nobody reads the socket for as long as this holds the lock.
            release.wait(30)

    with Scripted(Issuer()) as issuer, Server(script) as upstream:
        block = {
            "oauth2": {
                "token_url": f"http://{issuer.address}/token",
                "client_id": "c",
                "client_secret": gateway.secret("s", "secret-of-the-client"),
            }
        }
        identified(gateway, upstream, block, {"http": "2"}).start()
        assert gateway.get("/").status == 200
        calls = [("POST", "/upload", BODY), ("GET", "/held", b"")]
        threads = [
            threading.Thread(target=lambda call=call: answers.append(gateway.call(*call, timeout=20))) for call in calls
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(answer.body for answer in answers) == sorted([b"0", b"%d" % len(BODY)])
            assert [answer.status for answer in answers] == [200, 200]
        finally:
            release.set()


@pytest.mark.parametrize("reads", [True, False], ids=["no window", "no reading"])
def test_a_connection_that_does_not_move_gets_no_new_requests(gateway, reads):
    stuck, release, first = threading.Event(), threading.Event(), []

    def script(stream):
        if stream.method == "POST":
            stream.wait(lambda: stream.received > 60_000)
            first.append(number(stream.connection))
            stuck.set()
            if not reads:
                with stream.connection.changed:
                    # Nobody reads the socket for as long as this holds the lock.
                    release.wait(30)
            else:
                release.wait(30)
            return None
        return respond(stream, 200, number(stream.connection))

    with Server(script) as upstream:
        plain(gateway, upstream, {"http": "2"}).start()
        uploads = threading.Thread(target=lambda: gateway.call("POST", "/", BODY, timeout=60))
        uploads.start()
        try:
            assert stuck.wait(20)
            # What comes before a second has passed may still go there, and waits for nothing longer than its caller does.
            eventually(lambda: answered(gateway) not in (None, first[0]), within=20, what="another connection")
            for _ in range(5):
                assert gateway.get("/").body != first[0]
        finally:
            release.set()
            for connection in upstream.connections:
                connection.close()
            uploads.join(30)


def number(connection):
    return b"%d" % id(connection)


def answered(gateway):
    try:
        return gateway.get("/", timeout=2).body
    except OSError:
        return None


HYPERCORN = """
import asyncio, json, sys
from hypercorn.asyncio import serve
from hypercorn.config import Config

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    token = dict(scope["headers"]).get(b"authorization", b"").decode()
    is_upload = scope["method"] == "POST"
    count, status, fields = 0, 200, []
    if is_upload and token == "Bearer token-1":
        # Looking at the token takes as long as the server needs to fill the queue of this program, which reads nothing of it: then the
        # server reads nothing more of the connection, whatever else is on it, for good.
        while not receive.__self__.full():
            await asyncio.sleep(0.001)
        status, fields = 401, [(b"www-authenticate", b'Bearer error="invalid_token"')]
    elif is_upload:
        more = True
        while more:
            event = await receive()
            count += len(event.get("body", b""))
            more = event.get("more_body", False)
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": json.dumps([token, count]).encode()})

config = Config()
config.bind = [sys.argv[1]]
config.accesslog = None
asyncio.run(serve(app, config))
"""


@pytest.fixture
def hypercorn(tmp_path):
    """An ASGI server: its address."""
    program = tmp_path / "app.py"
    program.write_text(HYPERCORN)
    to = f"127.0.0.1:{free_port()}"
    with open(tmp_path / "hypercorn.log", "wb") as log:
        process = subprocess.Popen([sys.executable, program, to], stdout=log, stderr=log)
    eventually(lambda: "Running" in (tmp_path / "hypercorn.log").read_text(), within=20, what="hypercorn listening")
    yield to
    process.kill()
    process.wait(20)


def test_a_revoked_upload_to_hypercorn(gateway, hypercorn):
    with Scripted(Issuer()) as issuer:
        block = {
            "oauth2": {
                "token_url": f"http://{issuer.address}/token",
                "client_id": "c",
                "client_secret": gateway.secret("s", "secret-of-the-client"),
            }
        }
        way = gateway.route("only", hypercorn) | {"http": "2", "on_rejected": {"max_body": "8MiB"}}
        gateway.config = gateway.frame({"threads": 1, "identities": {"only": block}, "routes": [way]})
        gateway.start()
        assert json.loads(gateway.get("/").body) == ["Bearer token-1", 0]
        answers, begun = [], time.monotonic()
        body = b"0123456789abcdef" * (5 << 16)
        uploads = threading.Thread(target=lambda: answers.append(gateway.call("POST", "/", body, timeout=60)))
        uploads.start()
        # Everybody else goes on, from before the refusal to after it.
        others = 0
        while uploads.is_alive() or others < 20:
            assert gateway.get("/", timeout=20).status == 200
            others += 1
        uploads.join()
        assert (answers[0].status, json.loads(answers[0].body)) == (200, ["Bearer token-2", len(body)])
        assert time.monotonic() - begun < 20
