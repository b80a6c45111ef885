"""Promise: sizes, counts and paces end at the configured bound, with the answer that says which; what is slow but honest passes."""

import socket
import time

import pytest

from harness import eventually
from scripted import OK, Scripted


def start(gateway, upstream, limits=None, route=None, listener=None):
    changes = {"limits": limits or {}}
    if listener:
        changes["listeners"] = {"l": {"address": gateway.listen, **listener}}
    gateway.with_identity({"static": {"value": gateway.secret("token", "token-0123456789")}}, changes)
    gateway.config["routes"][0].update({"to": f"http://{upstream.address}", **(route or {})})
    if listener:
        gateway.config["routes"][0]["listen"] = "l"
    return gateway.start()


def answering(peer):
    for _ in peer.requests():
        peer.socket.sendall(OK)


def head(gateway, method="GET", fields="", target="/"):
    return f"{method} {target} HTTP/1.1\r\nHost: {gateway.listen}\r\n{fields}\r\n"


@pytest.mark.parametrize("framing", ["Content-Length: 2000\r\n", "Transfer-Encoding: chunked\r\n"])
def test_a_body_over_the_limit_is_413(gateway, framing):
    with Scripted(answering) as upstream:
        start(gateway, upstream, {"body_size": "1KiB"})
        with gateway.raw() as raw:
            raw.send(head(gateway, "POST", framing))
            if "chunked" in framing:
                raw.send(b"7d0\r\n" + b"x" * 2000 + b"\r\n0\r\n\r\n")
            answer = raw.answer()
            assert answer.status == 413 and answer.problem["type"] == "urn:cardea:problems/big-body"
        assert gateway.call("POST", "/", b"x" * 1024).status == 200


def test_an_expecting_caller_is_refused_before_it_sends(gateway):
    with Scripted(answering) as upstream:
        start(gateway, upstream, {"body_size": "1KiB"})
        with gateway.raw() as raw:
            raw.send(head(gateway, "PUT", "Content-Length: 1000000\r\nExpect: 100-continue\r\n"))
            assert raw.answer().status == 413
        assert upstream.requests == []


def test_a_long_target_is_414_where_it_is_said(gateway):
    with Scripted(answering) as upstream:
        start(gateway, upstream, {"target_size": "100B"})
        assert gateway.get("/" + "a" * 99).status == 200
        assert gateway.get("/" + "a" * 100).status == 414


def test_a_listener_has_its_own_bound(gateway):
    with Scripted(answering) as upstream:
        start(gateway, upstream, listener={"connections": 2})
        held = [gateway.raw() for _ in range(2)]
        for raw in held:
            raw.send(head(gateway))
            assert raw.answer().status == 200
        refused = gateway.get("/")
        assert refused.status == 503 and refused.field("Retry-After") == "1" and refused.problem
        held[0].socket.close()
        eventually(lambda: gateway.get("/").status == 200, what="the place to be free again")
        held[1].socket.close()


def test_a_head_has_its_time(gateway):
    with Scripted(answering) as upstream:
        start(gateway, upstream, {"head_timeout": "500ms"})
        with gateway.raw() as raw:
            raw.send("GET / HTTP/1.1\r\nX-A: ")
            with pytest.raises(OSError):
                # A byte at a time keeps nothing open.
                for _ in range(60):
                    raw.send("b")
                    time.sleep(0.05)
            assert raw.answer().status == 408


def drips(peer, seconds=25):
    """Sends a byte every half second until the other side has had enough."""
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            peer.sendall(b"x")
            time.sleep(0.5)
    except OSError:
        return True
    return False


def test_a_body_that_drips_is_408(gateway):
    with Scripted(answering) as upstream:
        start(gateway, upstream, route={"timeouts": {"idle": "2s"}})
        with gateway.raw(timeout=40) as raw:
            raw.send(head(gateway, "POST", "Content-Length: 100000\r\n"))
            drips(raw.socket, 12)
            assert raw.answer().status == 408


def test_an_answer_that_drips_is_cut(gateway):
    cut = []

    def script(peer):
        peer.request()
        peer.socket.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        cut.append(drips(peer.socket))

    with Scripted(script) as upstream:
        start(gateway, upstream, route={"timeouts": {"idle": "2s"}})
        with gateway.raw(timeout=40) as raw:
            raw.send(head(gateway))
            assert len(raw.rest()) < 1000
        eventually(lambda: cut == [True], what="the upstream to be let go")


def test_a_reader_that_drips_is_cut(gateway):
    with Scripted(lambda peer: [peer.request(), peer.socket.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 90000000\r\n\r\n" + bytes(90000000))]) as upstream:
        start(gateway, upstream, {"min_rate": "10KiB"}, {"timeouts": {"idle": "2s"}})
        with gateway.raw(timeout=40) as raw:
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            raw.send(head(gateway))
            key = ("cardea_caller_connections", ())

            def is_gone():
                raw.socket.recv(16)
                return gateway.metrics()[key] == 0

            eventually(is_gone, within=40, every=0.5, what="the slow reader to be gone")


def test_events_may_be_rare(gateway):
    def script(peer):
        peer.request()
        peer.socket.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(14):
            peer.socket.sendall(b"2\r\n:\n\r\n")
            time.sleep(1)
        peer.socket.sendall(b"0\r\n\r\n")

    with Scripted(script) as upstream:
        start(gateway, upstream, route={"timeouts": {"idle": "2s"}})
        assert gateway.get("/", timeout=40).body == b":\n" * 14
