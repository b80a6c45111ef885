"""Promise: a request goes out a second time only while nothing shows that the first was seen."""

import pytest

from scripted import OK, Scripted, get, identified, plain

SIGNS = {
    "hints": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
    "processing": b"HTTP/1.1 102 Processing\r\n\r\n",
    "continue": b"HTTP/1.1 100 Continue\r\n\r\n",
    "one octet": b"H",
    "partial line": b"HTTP/1.1 200",
    "partial head": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
    "hints and partial head": b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n",
}


def closing(sign):
    """Answers the first request of a connection, and shows `sign` and closes at the second."""

    def script(peer):
        peer.request()
        peer.send(OK)
        peer.request()
        peer.send(sign)

    return script


@pytest.mark.parametrize("sign", SIGNS.values(), ids=SIGNS.keys())
@pytest.mark.parametrize("version", ["1.1", "1.0"])
@pytest.mark.parametrize("identity", [False, True], ids=["none", "static"])
def test_after_any_octet_of_an_answer(gateway, sign, version, identity):
    with Scripted(closing(sign)) as upstream:
        if identity:
            block = {"static": {"header": "X-Key", "value": gateway.secret("key", "k" * 20)}}
            identified(gateway, upstream, block).start()
        else:
            plain(gateway, upstream).start()
        assert gateway.get("/first").status == 200
        with gateway.raw() as raw:
            raw.send(get(gateway, "/second", version=version))
            assert raw.answer().status == 502
        assert [request.target for request in upstream.requests] == ["/first", "/second"]


def test_without_one_a_safe_request_is_sent_again_once(gateway):
    with Scripted(closing(b"")) as upstream:
        plain(gateway, upstream).start()
        assert gateway.get("/first").status == 200
        assert gateway.get("/second").status == 200
        assert [request.target for request in upstream.requests] == ["/first", "/second", "/second"]


@pytest.mark.parametrize("sign", [b"", *SIGNS.values()], ids=["nothing", *SIGNS.keys()])
def test_a_post_never(gateway, sign):
    with Scripted(closing(sign)) as upstream:
        # However long the two requests are apart on a busy machine.
        plain(gateway, upstream, {"timeouts": {"reuse": "60s"}}).start()
        assert gateway.get("/first").status == 200
        with gateway.raw() as raw:
            raw.send(get(gateway, "/second", "Content-Length: 4", method="POST") + b"once")
            assert raw.answer().status == 502
        assert [request.target for request in upstream.requests] == ["/first", "/second"]
