"""Promise: what an upstream sends behind its answer is never taken for the answer to the next request."""

import contextlib
import socket
import ssl
import threading
import types

import pytest

from harness import Nginx
from scripted import Scripted, answer, get, plain

POISON = answer(b"poison")
BLOCK = 16_384


def exactly(size, chunked):
    """An answer of `size` octets, head and body."""
    if chunked:
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        body = size - len(head) - len(b"000000\r\n\r\n0\r\n\r\n")
        whole = head + b"%06x\r\n" % body + b"x" * body + b"\r\n0\r\n\r\n"
    else:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %06d\r\n\r\n"
        body = size - len(head % 0)
        whole = head % body + b"x" * body
    assert len(whole) == size
    return whole, b"x" * body


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize("blocks", [1, 2])
def test_whatever_the_size_of_the_answer(gateway, chunked, blocks):
    def script(peer):
        for request in peer.requests():
            kind, _, size = request.target.strip("/").partition("-")
            if kind == "poison":
                peer.send(exactly(int(size), chunked)[0] + POISON)
            else:
                peer.send(answer(b"own"))

    with Scripted(script) as upstream:
        plain(gateway, upstream).start()
        for size in range(blocks * BLOCK - 6, blocks * BLOCK + 7):
            with gateway.raw() as first, gateway.raw() as second:
                found = first.send(get(gateway, f"/poison-{size}")).answer()
                assert (found.status, found.body) == (200, exactly(size, chunked)[1]), size
                assert second.send(get(gateway, "/own")).answer().body == b"own", size
                assert first.send(get(gateway, "/own")).answer().body == b"own", size


def test_an_answer_that_fills_the_block_and_nothing_more_keeps_its_connection(gateway):
    def script(peer):
        for _ in peer.requests():
            peer.send(exactly(BLOCK, False)[0])

    with Scripted(script) as upstream:
        plain(gateway, upstream).start()
        with gateway.raw() as raw:
            for _ in range(5):
                assert raw.send(get(gateway, "/")).answer().status == 200
        assert upstream.connections == 1


def over_tls(gateway, upstream, folder):
    way = gateway.route("none", upstream.address) | {
        "to": f"https://{upstream.address}",
        "tls": {"ca": str(folder / "ca.pem")},
    }
    gateway.config = gateway.frame({"threads": 1, "routes": [way]})
    return gateway


@pytest.mark.parametrize("when", ["at once", "in the same segment", "after the first is delivered"])
def test_two_answers_in_tls_records_of_their_own(gateway, tmp_path, when):
    """The connection is given up as soon as the second one is there. (One that comes only after the next request has left is that
    request's answer to everybody who speaks HTTP/1.1.)"""
    Nginx.make_certificates(types.SimpleNamespace(folder=tmp_path))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    delivered, given_up = threading.Event(), threading.Event()

    def script(peer):
        peer.wrap(context)
        for request in peer.requests():
            if request.target == "/own":
                peer.send(answer(b"own"))
                continue
            peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, when == "in the same segment")
            peer.send(answer(b"first"))
            if when.startswith("after"):
                assert delivered.wait(30)
            peer.send(POISON)
            peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, False)
            with contextlib.suppress(OSError):
                assert peer.socket.recv(1) == b""
            given_up.set()
            return

    with Scripted(script) as upstream:
        over_tls(gateway, upstream, tmp_path).start()
        for _ in range(20):
            delivered.clear()
            given_up.clear()
            with gateway.raw() as first, gateway.raw() as second:
                assert first.send(get(gateway, "/two")).answer().body == b"first"
                delivered.set()
                assert given_up.wait(30)
                assert second.send(get(gateway, "/own")).answer().body == b"own"
                assert first.send(get(gateway, "/own")).answer().body == b"own"
