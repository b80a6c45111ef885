"""Promise: a request with `Content-Length: 0` has been received whole when its head has."""

import pytest

from harness import eventually
from scripted import Hold, Scripted, echo, get, identified, plain, stays_silent

EMPTY = "Content-Length: 0"


@pytest.mark.parametrize("identity", [False, True])
@pytest.mark.parametrize("method", ["POST", "PUT", "GET"])
def test_it_costs_no_connection_on_either_side(gateway, identity, method):
    with Scripted(echo) as upstream:
        if identity:
            secret = gateway.secret("key", "k" * 20)
            identified(gateway, upstream, {"static": {"header": "X-Key", "value": secret}})
        else:
            plain(gateway, upstream)
        gateway.start()
        with gateway.raw() as raw:
            for number in range(5):
                found = raw.send(get(gateway, f"/{number}", EMPTY, method=method)).answer()
                assert (found.status, found.body, found.field("Connection")) == (200, b"/%d" % number, None)
        assert upstream.connections == 1
        assert all(request.field("Transfer-Encoding") is None for request in upstream.requests)


def test_a_slow_answer_to_it_is_not_the_callers_fault(gateway):
    hold = Hold()
    with Scripted(hold) as upstream:
        plain(gateway, upstream, {"timeouts": {"idle": "1s", "response": "30s"}}).start()
        with gateway.raw() as raw:
            raw.send(get(gateway, "/slow", EMPTY, method="POST"))
            assert stays_silent(raw, 2.5), "an answer before the upstream's"
            hold.release()
            assert raw.answer().status == 200


@pytest.mark.parametrize("slow", [False, True])
def test_a_caller_that_closes_its_half_gets_the_answer(gateway, slow):
    hold = Hold()
    with Scripted(hold) as upstream:
        plain(gateway, upstream, {"timeouts": {"half_closed": "60s"}}).start()
        with gateway.raw() as raw:
            raw.send(get(gateway, "/half", EMPTY, method="POST")).half_close()
            if slow:
                eventually(lambda: upstream.requests, what="the request upstream")
                assert stays_silent(raw, 0.3)
            hold.release()
            assert raw.answer().status == 200
            assert raw.rest() == b""
