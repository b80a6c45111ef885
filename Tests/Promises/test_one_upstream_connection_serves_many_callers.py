"""Promise: callers share an upstream's HTTP/2 connection, none of them pays for another, and what the upstream did not process is sent
again, nothing else."""

import contextlib
import threading

import pytest

import origins
from harness import eventually, together
from http2_peers import Caller, Reset, Server
from origins import SECRET, forward
from servers_of_http2 import Nghttpd

OK = [(":status", "200")]


def answer(stream, body=b"ok"):
    stream.body()
    stream.send_head([*OK, ("content-length", str(len(body)))])
    stream.write(body)
    stream.end()


def test_callers_share_a_connection(gateway):
    waiting = threading.Barrier(20)

    def script(stream):
        # Answered only when all have come: they are on their way at the same time.
        if stream.target != "/warm":
            waiting.wait(20)
        answer(stream)

    with Server(script) as server:
        forward(gateway, server.address, 2, {"timeouts": {"response": "20s"}})
        gateway.config["threads"] = 1
        gateway.start()
        answers = together(20, lambda index: gateway.get(f"/{index}"))
        assert [one.status for one in answers] == [200] * 20
        assert len(server.connections) == 1 and len(server.streams) == 20
        # A burst on a cold upstream as well as a warm one.
        assert gateway.get("/warm").status == 200
        assert len(server.connections) == 1


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_refused_stream_is_sent_again(gateway, method):
    def script(stream):
        if len(server.streams) == 1:
            stream.reset(7)
        else:
            answer(stream)

    with Server(script) as server:
        forward(gateway, server.address, 2).start()
        body = b"some" if method == "POST" else None
        assert gateway.call(method, "/x", body).status == 200
        assert len(server.streams) == 2


def test_a_stream_that_is_refused_for_ever_is_refused_to_the_caller(gateway):
    with Server(lambda stream: stream.reset(7)) as server:
        forward(gateway, server.address, 2).start()
        assert gateway.get("/x").status == 502
        # The first time, and the three more that `Exchange.mostRefusals` allows.
        assert len(server.streams) == 4


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_request_above_the_last_number_of_a_goaway_is_sent_again(gateway, method):
    def script(stream):
        if len(server.streams) == 1:
            stream.connection.go_away(0)
            eventually(lambda: len(server.streams) == 2, what="the second request")
            stream.connection.close()
        else:
            answer(stream)

    with Server(script) as server:
        forward(gateway, server.address, 2).start()
        assert gateway.call(method, "/x", b"some" if method == "POST" else None).status == 200
        assert len(server.streams) == 2 and len(server.connections) == 2


def test_a_request_below_a_goaway_is_answered_on_its_connection(gateway):
    def script(stream):
        if len(server.streams) == 1:
            stream.connection.go_away(stream.number)
            answer(stream, b"first")
        else:
            answer(stream, b"second")

    with Server(script) as server:
        forward(gateway, server.address, 2)
        gateway.config["threads"] = 1
        gateway.start()
        assert gateway.get("/1").body == b"first"
        assert gateway.get("/2").body == b"second"
        assert len(server.connections) == 2


@pytest.mark.parametrize("code", [1, 2, 8, 11])
def test_a_post_that_was_processed_is_not_sent_again(gateway, code):
    def script(stream):
        stream.body()
        stream.reset(code)

    with Server(script) as server:
        forward(gateway, server.address, 2).start()
        assert gateway.call("POST", "/x", b"some").status == 502
        assert len(server.streams) == 1


def test_a_refused_credential_is_replaced_and_the_body_sent_again(gateway, provider):
    """A token that the API refuses: the same connection carries the request with its body a second time."""
    bodies = []

    def script(stream):
        bodies.append((stream.field("authorization"), stream.body()))
        if len(bodies) == 1:
            stream.send_head([(":status", "401"), ("www-authenticate", 'Bearer error="invalid_token"')], ended=True)
        else:
            answer(stream)

    provider.client("both", secret="both-secret", auth="client_secret_basic", grants=["client_credentials"])
    with Server(script) as server:
        gateway.config = gateway.frame(
            {
                "identities": {
                    "api": {
                        "oauth2": {
                            "token_url": f"{provider.issuer}/token",
                            "client_id": "both",
                            "client_secret": gateway.secret("both", "both-secret"),
                        }
                    }
                },
                "routes": [{**gateway.route("api", server.address), "http": "2"}],
            }
        )
        gateway.config["threads"] = 1
        gateway.start()
        with Caller(gateway.listen) as caller:
            stream = caller.request("POST", "/x", ended=False)
            stream.write(origins.PIECE)
            stream.end()
            assert stream.head() == 200 and stream.body() == b"ok"
        assert [body for _, body in bodies] == [origins.PIECE] * 2
        assert bodies[0][0] != bodies[1][0]
        assert len(server.connections) == 1


def test_a_slow_reader_costs_a_window_and_nobody_else(gateway):
    """200 MB on their way to a caller that does not read: the upstream is held back, and the next caller is served beside it."""
    size = 200 << 20

    def script(stream):
        if stream.target == "/quick":
            return answer(stream)
        stream.send_head([*OK, ("content-length", str(size))])
        for _ in range(size // len(origins.PIECE)):
            stream.write(origins.PIECE)
        stream.end()

    with Server(script) as server:
        forward(gateway, server.address, 2)
        gateway.config["threads"] = 1
        gateway.start()
        with contextlib.ExitStack() as stack:
            # Each on a connection of its own: on a common one their callers' windows would be one.
            callers = [stack.enter_context(Caller(gateway.listen)) for _ in range(4)]
            other = stack.enter_context(Caller(gateway.listen))
            assert gateway.get("/quick").status == 200
            before = gateway.resident()
            slow = [caller.request("GET", "/slow") for caller in callers]
            assert [one.head() for one in slow] == [200] * 4
            eventually(lambda: min(one.received for one in slow) >= 60_000, what="a window full at the caller")
            for _ in range(20):
                quick = other.request("GET", "/quick")
                assert quick.head() == 200 and quick.body() == b"ok"
            assert gateway.resident() - before < 16 << 20
            sent = [one for one in server.streams if one.target == "/slow"]
            assert len(sent) == 4 and len(server.connections) == 1
            # The first of them reads on: what waited comes whole.
            for _ in range(200):
                assert slow[0].read()
            for one in slow:
                one.reset()
        assert gateway.get("/quick").status == 200


def test_a_connection_that_is_cut_breaks_all_that_was_on_it(gateway):
    """And only that: the next request is served on a new one."""
    begun = threading.Event()

    def script(stream):
        if stream.target == "/good":
            return answer(stream)
        stream.send_head(OK)
        stream.write(b"begun")
        begun.wait(20)
        stream.connection.close()

    with Server(script) as server:
        forward(gateway, server.address, 2)
        gateway.config["threads"] = 1
        gateway.start()
        with Caller(gateway.listen) as caller:
            streams = [caller.request("GET", "/bad") for _ in range(3)]
            # Their answers are on their way before the connection is cut.
            assert [(stream.head(), stream.read()) for stream in streams] == [(200, b"begun")] * 3
            begun.set()
            for stream in streams:
                with pytest.raises(Reset):
                    stream.body()
            good = caller.request("GET", "/good")
            assert good.head() == 200 and good.body() == b"ok"
        assert len(server.connections) == 2


def test_the_credential_is_never_indexed(gateway, tmp_path):
    """nghttpd tells of each field whether its sender forbade that tables remember it (RFC 7541 §7.1.3)."""
    with Nghttpd(tmp_path) as server:
        (server.root / "x").write_text("hello")
        forward(gateway, server.address, 2).start()
        for _ in range(3):
            assert gateway.get("/x").body == b"hello"
        lines = [line for line in server.text().splitlines() if "authorization:" in line]
    assert len(lines) == 3
    assert all("sensitive" in line for line in lines), [line.replace(SECRET, "…") for line in lines]
    assert SECRET in lines[0]
