"""Promise: a stop ends when the last request has its answer, not when the last idle connection is gone."""

import contextlib
import signal
import time

import pytest

from harness import eventually
from scripted import Hold, Local, Scripted, all_closed, get, plain, stays_silent


def opened(stack, gateway, count, connect):
    """Idle keep-alive connections, each with one request behind it."""
    raws = [stack.enter_context(connect()) for _ in range(count)]
    for raw in raws:
        assert raw.send(get(gateway, "/idle")).answer().status == 200
    return raws


class HoldSlow(Hold):
    """Holds only what asks for `/slow`."""

    def __call__(self, peer):
        for request in peer.requests():
            assert request.target != "/slow" or self.event.wait(60)
            peer.send(self.then)


def is_upstream(upstream):
    return any(request.target == "/slow" for request in upstream.requests)


@pytest.mark.parametrize("unix", [False, True], ids=["tcp", "unix"])
def test_the_request_in_flight_is_answered(gateway, unix):
    hold = HoldSlow()
    path = gateway.folder / "in.sock"
    with Scripted(hold) as upstream, contextlib.ExitStack() as stack:
        plain(gateway, upstream, {"listen": f"unix:{path}"} if unix else None, threads=2)
        gateway.config["shutdown"] = {"linger": "0s", "timeout": "20s"}
        gateway.start()
        connect = (lambda: Local(path)) if unix else gateway.raw
        idle = opened(stack, gateway, 16, connect)
        slow = stack.enter_context(connect()).send(get(gateway, "/slow"))
        eventually(lambda: is_upstream(upstream), what="the request upstream")
        gateway.may_exit = True
        gateway.process.send_signal(signal.SIGTERM)
        all_closed(idle)
        assert stays_silent(slow, 1), "it ended with a request in flight"
        hold.release()
        assert slow.answer().body == b"ok"
        assert gateway.process.wait(10) == 0, gateway.text()


def test_a_hangup_does_not_cut_the_linger(gateway):
    hold = HoldSlow()
    with Scripted(hold) as upstream:
        plain(gateway, upstream, threads=2)
        gateway.config["shutdown"] = {"linger": "3s", "timeout": "20s"}
        gateway.start()
        with gateway.raw() as slow:
            slow.send(get(gateway, "/slow"))
            eventually(lambda: is_upstream(upstream), what="the request upstream")
            gateway.may_exit = True
            begun = time.monotonic()
            gateway.process.send_signal(signal.SIGTERM)
            eventually(lambda: gateway.ask("/readyz").status == 503, within=2, what="not ready")
            gateway.process.send_signal(signal.SIGHUP)
            while time.monotonic() < begun + 2:
                assert gateway.get("/during").status == 200
            hold.release()
            assert slow.answer().body == b"ok"
        assert gateway.process.wait(10) == 0, gateway.text()
        assert time.monotonic() - begun > 2.9


def test_a_second_signal_to_end_does_cut_it(gateway):
    with Scripted(Hold()) as upstream:
        plain(gateway, upstream)
        gateway.config["shutdown"] = {"linger": "60s", "timeout": "90s"}
        gateway.start()
        gateway.may_exit = True
        gateway.process.send_signal(signal.SIGTERM)
        eventually(lambda: gateway.ask("/readyz").status == 503, within=2, what="not ready")
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.process.wait(10) == 0
