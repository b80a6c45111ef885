"""Promise: a server that stops reading a connection of HTTP/2, as some do behind an upload that they refused, holds up nobody but who was
there already: what is sent again goes out on a new connection, and one whose window does not move gets no new requests."""

import threading

import pytest

from harness import eventually
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
