"""Promise: a head is accepted up to its limit whatever its size, and the body behind it arrives."""

import pytest

from harness import eventually
from scripted import Scripted, answer, plain

LIMIT = 65_536


def head(gateway, size, framing):
    start = f"POST /a HTTP/1.1\r\nHost: {gateway.listen}\r\n{framing}\r\nX-Fill: ".encode()
    whole = start + b"f" * (size - len(start) - 4) + b"\r\n\r\n"
    assert len(whole) == size
    return whole


def measured(peer):
    for request in peer.requests():
        peer.send(answer(b"%d %d" % (len(request.body), len(request.field("X-Fill")))))


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
@pytest.mark.parametrize("octets", [1, 100, 100_000])
def test_by_length_and_chunked(gateway, chunked, apart, octets):
    body = b"z" * octets
    if chunked:
        framing, sent = "Transfer-Encoding: chunked", b"%x;a=b\r\n" % octets + body + b"\r\n0\r\nX-T: 1\r\n\r\n"
    else:
        framing, sent = f"Content-Length: {octets}", body
    with Scripted(measured) as upstream:
        plain(gateway, upstream).start()
        for size in (16_370, 16_380, 16_383, 16_384, 16_385, 16_400, 32_768, 65_500, 65_534, 65_535):
            first = head(gateway, size, framing)
            seen = len(upstream.requests)
            with gateway.raw() as raw:
                if apart:
                    raw.send(first)
                    eventually(lambda: len(upstream.requests) > seen, within=5, what=f"the head of {size} upstream")
                    raw.send(sent)
                else:
                    raw.send(first + sent)
                found = raw.answer()
            fill = len(first.split(b"X-Fill: ")[1]) - 4
            assert (found.status, found.body) == (200, b"%d %d" % (octets, fill)), size


@pytest.mark.parametrize("size, status", [(LIMIT - 1, 200), (LIMIT, 200), (LIMIT + 1, 431), (LIMIT + 40_000, 431)])
def test_the_limit_itself(gateway, size, status):
    with Scripted(measured) as upstream:
        plain(gateway, upstream).start()
        with gateway.raw() as raw:
            raw.send(head(gateway, size, "Content-Length: 3") + b"abc")
            assert raw.answer().status == status
        assert len(upstream.requests) == (status == 200)
