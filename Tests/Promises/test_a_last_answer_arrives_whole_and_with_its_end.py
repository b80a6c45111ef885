"""Promise: the last answer of a connection arrives whole, and then the connection's end, whatever the caller sends behind its request."""

import pytest

from harness import eventually
from scripted import Narrow, Scripted, get, plain

BODY = b"y" * 300


class Held:
    """An upstream that answers when the test says so."""

    def __init__(self):
        self.may_answer = []

    def script(self, peer):
        for request in peer.requests():
            number = len(self.may_answer)
            self.may_answer.append(False)
            eventually(lambda: self.may_answer[number], every=0.001, what="the test's permission to answer")
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY)


def ended(raw):
    """The connection's end; a reset is none."""
    raw.socket.settimeout(10)
    return raw.buffer == b"" and raw.socket.recv(1) == b""


LAST = {
    "asked for": lambda gateway: get(gateway, "/", "Connection: close"),
    "old": lambda gateway: get(gateway, "/", version="1.0"),
    "with a body": lambda gateway: get(gateway, "/", "Connection: close", "Content-Length: 5") + b"hello",
}


@pytest.mark.parametrize("last", LAST)
def test_to_callers_that_keep_the_rule(gateway, last):
    held = Held()
    with Scripted(held.script) as upstream:
        plain(gateway, upstream).start()
        for number in range(50):
            with Narrow(gateway.listen, room=65536) as raw:
                raw.send(LAST[last](gateway))
                eventually(lambda: len(held.may_answer) > number, every=0.001, what="the request at the upstream")
                held.may_answer[number] = True
                found = raw.answer()
                assert (found.status, found.body, found.field("Connection")) == (200, BODY, "close")
                assert ended(raw)
        assert upstream.connections == 1


MORE = {"an empty line": b"\r\n", "a request": b"GET /more HTTP/1.1\r\nHost: x\r\n\r\n", "much": b"x" * 100_000}


@pytest.mark.parametrize("when", ["with it", "while it is answered", "with the answer"])
@pytest.mark.parametrize("more", MORE)
def test_to_callers_that_send_more_behind_their_last_request(gateway, when, more):
    """To close with octets unread would reset the connection, and the reset can take the answer back."""
    held = Held()
    with Scripted(held.script) as upstream:
        plain(gateway, upstream).start()
        for number in range(20):
            with Narrow(gateway.listen, room=65536) as raw:
                raw.send(LAST["asked for"](gateway) + (MORE[more] if when == "with it" else b""))
                eventually(lambda: len(held.may_answer) > number, every=0.001, what="the request at the upstream")
                if when == "while it is answered":
                    raw.send(MORE[more])
                held.may_answer[number] = True
                if when == "with the answer" and more != "much":
                    raw.send(MORE[more])
                found = raw.answer()
                assert (found.status, found.body, found.field("Connection")) == (200, BODY, "close")
                # What comes later than the end is refused, as everywhere.
                if when != "with the answer":
                    assert ended(raw)
        # Nothing behind the last request is one.
        assert len(held.may_answer) == 20
