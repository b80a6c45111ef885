"""Promise: a caller that goes away while its answer is awaited is noticed in a short time, and its upstream is let go; one that closes its
side and waits is given the time that its route says."""

import contextlib
import threading

import pytest

from harness import eventually
from scripted import Hold, Scripted, get, plain


class Slow:
    """Answers nothing and counts who is still waited for."""

    def __init__(self):
        self.lock, self.waited = threading.Lock(), 0

    def __call__(self, peer):
        peer.request()
        with self.lock:
            self.waited += 1
        with contextlib.suppress(OSError):
            peer.socket.recv(1)
        with self.lock:
            self.waited -= 1


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_retries_do_not_pile_up(gateway, method):
    slow = Slow()
    with Scripted(slow) as upstream:
        plain(gateway, upstream).start()
        for number in range(1, 6):
            with gateway.raw() as raw:
                raw.send(get(gateway, "/slow", "Content-Length: 4", method=method) + b"once")
                eventually(lambda: len(upstream.requests) == number, what="the request upstream")
        eventually(lambda: slow.waited == 0, within=15, what="the end of what nobody waits for")
        statuses = eventually(
            lambda: len(found := [line["status"] for line in gateway.access()]) == 5 and found, what="records"
        )
        assert set(statuses) == {499}


def test_one_that_waits_is_given_time(gateway):
    hold = Hold()
    with Scripted(hold) as upstream:
        plain(gateway, upstream, {"timeouts": {"half_closed": "60s"}}).start()
        with gateway.raw() as gone, gateway.raw() as waits:
            gone.send(get(gateway, "/gone"))
            waits.send(get(gateway, "/waits")).half_close()
            eventually(lambda: len(upstream.requests) == 2, what="both requests upstream")
            # A reset says by itself that nobody waits.
            gone.socket.close()
            hold.release()
            assert waits.answer().status == 200 and waits.rest() == b""
