"""Promise: a refused `basic` password is not sent again, and one that works is not given up for a path or two."""

import base64
import contextlib

import pytest

from harness import eventually
from scripted import Hold, Scripted, answer, get, identified, problem_type

WAITERS = ("cardea_waiters", (("identity", "only"),))
WRONG, RIGHT = "not-the-password-9", "the-password-of-today"


class Guard:
    """Admits RIGHT, but refuses every path under /no; counts the credentials it saw. `status` is how it refuses."""

    def __init__(self):
        self.seen = []

    def __call__(self, peer):
        for request in peer.requests():
            credential = (request.field("Authorization") or "").removeprefix("Basic ")
            password = base64.b64decode(credential).decode().partition(":")[2]
            self.seen.append(password)
            status = request.target.split("/")[1]
            if status in ("401", "403"):
                peer.send(answer(b"no", b'WWW-Authenticate: Basic realm="x"', status=status.encode() + b" No"))
            elif password == RIGHT:
                peer.send(answer(b"yes"))
            else:
                peer.send(answer(b"no", b'WWW-Authenticate: Basic realm="x"', status=b"401 No"))


def basic(gateway, upstream, password=RIGHT, route=None, **changes):
    secret = gateway.secret("password", password)
    return identified(gateway, upstream, {"basic": {"username": "u", "password": secret}}, route, **changes)


@pytest.mark.parametrize("way", ["stop", "kill"])
@pytest.mark.parametrize("cure", ["reset", "secret"])
def test_not_even_by_a_new_process(gateway, way, cure):
    guard = Guard()
    with Scripted(guard) as upstream:
        basic(gateway, upstream, WRONG).start()
        assert gateway.get("/ok").status == 502
        assert problem_type(gateway.get("/ok")) == "credential-quarantined"
        for _ in range(3):
            getattr(gateway, way)()
            gateway.start()
            assert problem_type(gateway.get("/ok")) == "credential-quarantined"
        assert guard.seen == [WRONG]
        if cure == "reset":
            status, _, errors = gateway.command("reset", "only")
            assert status == 0, errors
            assert gateway.get("/ok").status == 502
            assert guard.seen == [WRONG, WRONG]
        else:
            (gateway.folder / "password").write_text(RIGHT)
            eventually(lambda: gateway.get("/ok").status == 200, within=20, every=0.2, what="the new password in use")
            assert guard.seen.count(WRONG) == 1


def test_not_even_by_requests_that_came_while_it_was_read(gateway):
    program, go = gateway.folder / "slow-password", gateway.folder / "go"
    program.write_text(f"#!/bin/sh\nuntil [ -e {go} ]; do sleep 0.05; done\nprintf {WRONG}\n")
    program.chmod(0o700)
    go.touch()
    gateway.secrets.append(WRONG)
    guard = Guard()
    with Scripted(guard) as upstream, contextlib.ExitStack() as stack:
        block = {"basic": {"username": "u", "password": f"exec:{program}"}}
        identified(gateway, upstream, block).start()
        assert gateway.get("/ok").status == 502
        assert problem_type(gateway.get("/ok")) == "credential-quarantined"
        gateway.stop()
        go.unlink()
        gateway.start()
        raws = [stack.enter_context(gateway.raw()).send(get(gateway, f"/{number}")) for number in range(6)]
        eventually(lambda: gateway.metrics().get(WAITERS) == 6, what="all of them waiting")
        go.touch()
        assert [problem_type(raw.answer()) for raw in raws] == ["credential-quarantined"] * 6
        assert guard.seen == [WRONG]


def test_a_secret_changed_while_it_was_down(gateway):
    guard = Guard()
    with Scripted(guard) as upstream:
        basic(gateway, upstream, WRONG).start()
        assert gateway.get("/ok").status == 502
        gateway.stop()
        (gateway.folder / "password").write_text(RIGHT)
        gateway.start()
        assert gateway.get("/ok").status == 200
        assert guard.seen == [WRONG, RIGHT]


def test_successes_between_refusals_keep_it_in_use(gateway):
    with Scripted(Guard()) as upstream:
        basic(gateway, upstream).start()
        assert gateway.get("/ok").status == 200
        for path in "abcdef":
            assert gateway.get(f"/401/{path}").status == 502
            assert gateway.get("/ok").status == 200


def test_successes_count_on_whichever_loop_they_come(gateway):
    """Keep-alive connections stay with their loop; of all these pairs some are of two loops."""
    with Scripted(Guard()) as upstream, contextlib.ExitStack() as stack:
        basic(gateway, upstream, threads=2).start()
        raws = [stack.enter_context(gateway.raw()) for _ in range(8)]

        def ask(raw, path):
            return raw.send(get(gateway, path)).answer()

        for good in raws:
            for bad in raws:
                assert ask(good, "/ok").status == 200
                for path in "abc":
                    found = ask(bad, f"/401/{path}")
                    assert problem_type(found) == "upstream-refused-credential", (raws.index(good), raws.index(bad))
                    assert ask(good, "/ok").status == 200, (raws.index(good), raws.index(bad))


def test_queries_do_not_make_one_path_many(gateway):
    with Scripted(Guard()) as upstream:
        basic(gateway, upstream).start()
        assert gateway.get("/ok").status == 200
        for number in range(6):
            assert gateway.get(f"/401/a?x={number}").status == 502
        assert gateway.get("/ok").status == 200


def test_three_paths_and_no_success_end_it(gateway):
    guard = Guard()
    with Scripted(guard) as upstream:
        basic(gateway, upstream).start()
        assert gateway.get("/ok").status == 200
        for path in "abc":
            assert gateway.get(f"/401/{path}").status == 502
        # The word travels by mail between two threads.
        eventually(lambda: problem_type(gateway.get("/ok")) == "credential-quarantined", what="the quarantine")


REFUSED_BY_403 = {"on_rejected": {"statuses": [403]}}


@pytest.mark.parametrize("first", ["/401/a", "/403/a"])
def test_where_403_refuses_neither_it_nor_a_401_proves_anything(gateway, first):
    """Two refusals are forgiven to a proven password, and none to one that has proved nothing."""
    guard = Guard()
    with Scripted(guard) as upstream:
        basic(gateway, upstream, route=REFUSED_BY_403).start()
        assert gateway.get(first).status in ((401, 502) if "401" in first else (502,))
        gateway.get("/403/b")
        assert problem_type(gateway.get("/ok")) == "credential-quarantined"
        assert len(guard.seen) <= 2


def test_where_403_refuses_three_paths_end_it_too(gateway):
    with Scripted(Guard()) as upstream:
        basic(gateway, upstream, route=REFUSED_BY_403).start()
        assert gateway.get("/ok").status == 200
        for path in "abc":
            assert gateway.get(f"/403/{path}").status == 502
        eventually(lambda: problem_type(gateway.get("/ok")) == "credential-quarantined", what="the quarantine")


def test_a_static_credential_is_refused_by_the_same_statuses(gateway):
    def script(peer):
        for request in peer.requests():
            peer.send(answer(b"", status=request.target.split("/")[1].encode() + b" Any"))

    with Scripted(script) as upstream:
        block = {"static": {"header": "X-Key", "value": gateway.secret("key", "k" * 20)}}
        identified(gateway, upstream, block, REFUSED_BY_403).start()
        for _ in range(3):
            found = gateway.get("/403/a")
            assert (found.status, problem_type(found)) == (502, "upstream-refused-credential")
            assert gateway.get("/401/a").status in (401, 502)
            assert gateway.get("/200/a").status == 200


def test_an_unproven_password_goes_out_alone(gateway):
    hold = Hold()
    with Scripted(hold) as upstream, contextlib.ExitStack() as stack:
        basic(gateway, upstream, threads=2).start()
        raws = [stack.enter_context(gateway.raw()).send(get(gateway, f"/{number}")) for number in range(12)]
        eventually(lambda: upstream.requests, what="the first one upstream")
        eventually(lambda: gateway.metrics().get(WAITERS) == 11, what="the others waiting")
        assert len(upstream.requests) == 1
        hold.release()
        assert [raw.answer().status for raw in raws] == [200] * 12
