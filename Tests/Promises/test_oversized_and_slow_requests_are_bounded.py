"""Promise: every size and every wait has a bound, and the answer at it says which."""

import pytest

from harness import eventually


def host(gateway):
    return f"Host: {gateway.listen}\r\n"


def test_a_head_that_does_not_end_is_408(hot):
    with hot.raw(timeout=90) as raw:
        raw.send("GET /hr/rest/employees/1 HTTP/1.1\r\n" + host(hot) + "X-A: b")
        assert raw.answer().status == 408
        assert raw.rest() == b""
    assert hot.lab.counts()["protected_requests"] == 0


def test_a_connection_without_a_request_is_closed_silently(hot):
    """After 75 s, which IdleCallerTests looks at in virtual time; here when the gateway ends."""
    with hot.raw(timeout=30) as raw:
        assert hot.stop() == 0
        assert raw.rest() == b""


@pytest.mark.parametrize("octets", [b"X-A: " + b"a" * 70_000, b"\r\n".join(b"X-%d: b" % i for i in range(200))])
def test_a_big_head_is_431(hot, octets):
    with hot.raw() as raw:
        raw.send(b"GET /hr/rest/employees/1 HTTP/1.1\r\n" + host(hot).encode() + octets + b"\r\n\r\n")
        assert raw.answer().status == 431
    assert hot.lab.counts()["protected_requests"] == 0


def test_a_long_target_is_414(hot):
    with hot.raw() as raw:
        raw.send("GET /hr/rest/" + "a" * 100_000 + " HTTP/1.1\r\n" + host(hot) + "\r\n")
        assert raw.answer().status == 414
    assert hot.lab.counts()["protected_requests"] == 0


def test_an_endless_target_is_refused_before_it_ends(hot):
    with hot.raw() as raw:
        try:
            for _ in range(200):
                raw.send("a" * 65_536)
        except OSError:
            pass
        else:
            raise AssertionError("12 MiB of a request line were taken")


def test_a_body_past_the_replay_limit_still_gets_the_grant(gateway):
    """It cannot be replayed, so its caller sees the original answer; the next one finds the token."""
    gateway.webgate(route={"on_rejected": {"max_body": "64KiB"}}).start()
    body = b"x" * 2_000_000
    answer = gateway.call("POST", "/hr/rest/echo", body)
    assert answer.status == 401 and answer.field("WWW-Authenticate").startswith("OAM-Auth")
    eventually(lambda: gateway.lab.counts()["access"] == 1, what="the grant")
    answer = gateway.call("POST", "/hr/rest/echo", body)
    assert (answer.status, answer.json["length"]) == (200, len(body))


def test_replay_never_passes_the_challenge(gateway):
    gateway.webgate(route={"on_rejected": {"replay": "never"}}).start()
    assert gateway.get().status == 401
    eventually(lambda: gateway.get().status == 200, every=0.1, what="a token for the next caller")


def test_a_silent_upstream_is_504(gateway):
    gateway.webgate(route={"timeouts": {"response": "1s"}}).start().warm()
    gateway.lab.faults(hang=True)
    answer = gateway.get()
    assert answer.status == 504 and answer.problem
    gateway.lab.faults(hang=None)
    assert gateway.get().status == 200


def test_more_connections_than_allowed_are_refused_not_queued(gateway):
    gateway.webgate(changes={"limits": {"connections": 20}}).start().warm()
    open_ = [gateway.raw() for _ in range(40)]
    try:
        seen = [raw.send("GET /hr/rest/employees/1 HTTP/1.1\r\n" + host(gateway) + "\r\n") for raw in open_]
        statuses = []
        for raw in seen:
            try:
                statuses.append(raw.answer().status)
            except (EOFError, OSError):
                statuses.append(0)
        assert statuses.count(200) >= 15 and set(statuses) <= {200, 503, 0} and statuses.count(200) < 40
    finally:
        for raw in open_:
            raw.socket.close()


def test_callers_that_do_not_read_do_not_fill_the_memory(hot):
    """Back-pressure: a stream of 800 MB waits at the API, not in the gateway."""
    before = hot.resident()
    open_ = [hot.raw() for _ in range(8)]
    try:
        for raw in open_:
            raw.send("GET /hr/rest/stream?bytes=100000000 HTTP/1.1\r\n" + host(hot) + "\r\n")
            raw.socket.recv(1)
        peak = max(hot.resident() for _ in range(2000))
    finally:
        for raw in open_:
            raw.socket.close()
    assert peak - before < 64 << 20
    assert hot.get().status == 200
