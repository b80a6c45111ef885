"""Promise: what a request was has no part in the answer to the one behind it."""

import pytest

from harness import together
from scripted import Scripted, answer, get, plain

MALFORMED = b"GET / HTTP/1.1\r\nBad Field: x\r\n\r\n"


def lengths(peer):
    """A HEAD gets the length of what a GET would get."""
    for request in peer.requests():
        whole = answer(request.target.encode())
        peer.send(whole[: -len(request.target)] if request.method == "HEAD" else whole)


@pytest.mark.parametrize("together_", [False, True], ids=["apart", "pipelined"])
@pytest.mark.parametrize("bad", [MALFORMED, b"\x00\x01\x02\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"])
def test_a_head_before_a_malformed_request(gateway, together_, bad):
    with Scripted(lengths) as upstream:
        plain(gateway, upstream).start()
        with gateway.raw() as raw:
            head = get(gateway, "/a", method="HEAD")
            raw.send(head + bad if together_ else head)
            assert raw.answer("HEAD").status == 200
            if not together_:
                raw.send(bad)
            found = raw.answer()
            assert found.status == 400 and found.problem and len(found.body) > 2
            assert raw.rest() == b""


def test_heads_and_gets_by_turns(gateway):
    with Scripted(lengths) as upstream:
        plain(gateway, upstream).start()
        methods = ["HEAD", "GET", "GET", "HEAD", "HEAD", "GET"] * 5
        with gateway.raw() as raw:
            raw.send(b"".join(get(gateway, f"/{number}", method=method) for number, method in enumerate(methods)))
            for number, method in enumerate(methods):
                found = raw.answer(method)
                assert found.field("Content-Length") == str(len(f"/{number}"))
                assert found.body == (b"" if method == "HEAD" else f"/{number}".encode())


def test_many_callers_of_http_1_0(gateway):
    with Scripted(lengths) as upstream:
        plain(gateway, upstream, threads=2).start()

        def one(number):
            with gateway.raw() as raw:
                found = raw.send(get(gateway, f"/{number}", version="1.0")).answer()
                return found.status, found.body.decode(), raw.rest()

        for _ in range(5):
            assert together(60, one) == [(200, f"/{number}", b"") for number in range(60)]


def test_callers_of_http_1_0_that_keep_the_connection(gateway):
    with Scripted(lengths) as upstream:
        plain(gateway, upstream, threads=2).start()

        def one(number):
            with gateway.raw() as raw:
                for turn in range(10):
                    raw.send(get(gateway, f"/{number}/{turn}", "Connection: keep-alive", version="1.0"))
                    found = raw.answer()
                    assert (found.status, found.body.decode()) == (200, f"/{number}/{turn}")
                    assert (found.field("Connection") or "").lower() == "keep-alive"

        together(30, one)
