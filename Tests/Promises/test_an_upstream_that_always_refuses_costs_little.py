"""Promise: an upstream that answers 401 to everything costs each caller's request two requests and the issuer next to nothing, and
harms no other route; nor does one that answers each request with another challenge."""

import base64
import contextlib
import threading

import pytest

from harness import call, eventually, free_port, together
from scripted import Issuer, Scripted, answer, get, problem_type
from test_a_fleet_shares_one_grant import join, state

CALLERS, ROUNDS = 25, 6


class Refusing:
    """401 to every request, counted by the caller's path."""

    def __init__(self, challenge=b'WWW-Authenticate: Bearer realm="r", error="invalid_token"'):
        self.challenge, self.lock, self.seen = challenge, threading.Lock(), {}

    def __call__(self, peer):
        for request in peer.requests():
            with self.lock:
                self.seen[request.target] = self.seen.get(request.target, 0) + 1
                number = sum(self.seen.values())
            challenge = self.challenge(number) if callable(self.challenge) else self.challenge
            peer.send(answer(b"no", challenge, status=b"401 Unauthorized"))


def ok(peer):
    for _ in peer.requests():
        peer.send(answer(b"ok"))


def configure(gateway, issuer, ways, **changes):
    """An identity of its own for each route; all at one issuer."""
    identities, routes = {}, []
    for name, upstream in ways.items():
        block = {
            "token_url": f"http://{issuer.address}/token",
            "client_id": name,
            "client_secret": gateway.secret(f"secret-{name}", f"client-secret-of-{name}"),
            "allowed_scopes": ["a", "b", "c", "d", "e", "f", "g"],
        }
        identities[name] = {"oauth2": block}
        routes.append({"name": name, "listen": f"127.0.0.1:{free_port()}", "to": f"http://{upstream.address}", "use": name})
    gateway.listens = {route["name"]: route["listen"] for route in routes}
    gateway.config = gateway.frame({"threads": 2, "identities": identities, "routes": routes, **changes})
    return gateway


@pytest.mark.parametrize("word", ["invalid_token", "insufficient_scope"])
def test_two_requests_a_caller_and_few_grants(gateway, word):
    if word == "invalid_token":
        refusing = Refusing()
    else:
        # Always one more, and never enough.
        refusing = Refusing(
            lambda number: b'WWW-Authenticate: Bearer error="insufficient_scope", scope="%s"' % (b"abcdefg"[number % 7 : number % 7 + 1])
        )
    script = Issuer()
    with Scripted(refusing) as bad, Scripted(ok) as good, Scripted(script) as issuer:
        configure(gateway, issuer, {"bad": bad, "good": good}).start()
        assert call(gateway.listens["good"]).status == 200
        before = len(script.grants)
        good_statuses, done = [], threading.Event()

        def others():
            while not done.is_set():
                good_statuses.append(call(gateway.listens["good"], timeout=30).status)

        beside = threading.Thread(target=others)
        beside.start()
        try:
            for round in range(ROUNDS):
                found = together(CALLERS, lambda i: call(gateway.listens["bad"], path=f"/{round}/{i}", timeout=30))
                assert {problem_type(one) for one in found} == {"upstream-refused-credential"}, found
        finally:
            done.set()
            beside.join(60)
        assert len(refusing.seen) == CALLERS * ROUNDS
        # One try and one replay.
        assert max(refusing.seen.values()) <= 2
        # One grant for the cold key, and one for each of three paths that refuse what was granted for them; then their route is held for one
        # second, two, four, and so on up to `negative_for`, but for four new paths, one a second, that may be healthy ones. A scope that was
        # asked for once is not asked for again: seven are allowed.
        assert len(script.grants) - before <= 20
        assert set(good_statuses) == {200}
        assert call(gateway.listens["good"]).status == 200
        metrics = gateway.metrics()
        assert metrics["cardea_waiters", (("identity", "bad"),)] == 0 == metrics["cardea_waiters", (("identity", "good"),)]


def test_requests_in_flight_do_not_pile_up(gateway):
    """Connections to the upstream and waiting requests return to nothing while callers insist."""
    refusing, script = Refusing(), Issuer()
    with Scripted(refusing) as bad, Scripted(script) as issuer, contextlib.ExitStack() as stack:
        configure(gateway, issuer, {"bad": bad}).start()
        gateway.listen = gateway.listens["bad"]
        raws = [stack.enter_context(gateway.raw()) for _ in range(16)]
        for round in range(20):
            for number, raw in enumerate(raws):
                raw.send(get(gateway, f"/{round}/{number}"))
            assert {raw.answer().status for raw in raws} == {502}
        assert len(script.grants) <= 20
        eventually(lambda: gateway.metrics()["cardea_waiters", (("identity", "bad"),)] == 0, what="nobody waiting")
        counts = {name: 0 for name in ("open", "idle")}
        for (name, labels), number in gateway.metrics().items():
            if name == "cardea_upstream_connections":
                counts[dict(labels)["state"]] += number
        assert counts["open"] == 0 and counts["idle"] <= len(raws), counts


# --- `basic`, where each request is an attempt -------------------------------------------------------------------------------


WRONG, RIGHT = "not-the-password-9", "the-password-of-today"


class Door:
    """Counts passwords; the first `held` requests wait until they are let go."""

    def __init__(self, accepted=RIGHT):
        self.accepted, self.seen, self.lock, self.go = accepted, [], threading.Lock(), threading.Event()

    def __call__(self, peer):
        for request in peer.requests():
            credential = (request.field("Authorization") or "").removeprefix("Basic ")
            password = base64.b64decode(credential).decode().partition(":")[2]
            with self.lock:
                self.seen.append(password)
            assert self.go.wait(60)
            if password == self.accepted:
                peer.send(answer(b"yes"))
            else:
                peer.send(answer(b"no", b'WWW-Authenticate: Basic realm="x"', status=b"401 No"))


def doors(gateways, upstream, redis, password, count=4):
    made = []
    for index in range(count):
        gateway = gateways(f"edge{index}")
        block = {"basic": {"username": "u", "password": gateway.secret("password", password)}}
        gateway.config = gateway.frame({"identities": {"only": block}, "routes": [gateway.route("only", upstream.address)]})
        join(gateway, redis.url).start()
        made.append(gateway)
    for gateway in made:
        eventually(lambda: state(gateway) == "serving", what="the shared store in use")
    return made


def waiting(gateway):
    return gateway.metrics().get(("cardea_waiters", (("identity", "only"),)), 0)


def asked(made, callers=6):
    """Callers of each gateway at one instant, not waited for: threads and what they found."""
    found, lock = [], threading.Lock()

    def ask(gateway):
        answered = gateway.get("/ok", timeout=60)
        with lock:
            found.append(answered)

    threads = [threading.Thread(target=ask, args=(gateway,)) for gateway in made for _ in range(callers)]
    for thread in threads:
        thread.start()
    return threads, found


def test_four_gateways_make_one_attempt_with_a_wrong_password(gateways, redis):
    door = Door()
    with Scripted(door) as upstream:
        made = doors(gateways, upstream, redis, WRONG)
        threads, found = asked(made)
        eventually(lambda: door.seen, what="the one attempt")
        # Nobody else sends it while its outcome is not known: all but its own caller wait.
        eventually(lambda: sum(waiting(gateway) for gateway in made) == len(threads) - 1, what="the others waiting")
        assert door.seen == [WRONG]
        door.go.set()
        for thread in threads:
            thread.join(60)
        words = {problem_type(one) for one in found}
        assert len(found) == len(threads) and words == {"upstream-refused-credential", "credential-quarantined"}, words
        assert {gateway.get("/ok").status for gateway in made} == {503}
        assert door.seen == [WRONG]


def test_four_gateways_prove_a_good_password_one_after_the_other(gateways, redis):
    door = Door()
    with Scripted(door) as upstream:
        made = doors(gateways, upstream, redis, RIGHT)
        threads, found = asked(made)
        eventually(lambda: door.seen, what="the first attempt")
        eventually(lambda: sum(waiting(gateway) for gateway in made) == len(threads) - 1, what="the others waiting")
        assert door.seen == [RIGHT]
        door.go.set()
        for thread in threads:
            thread.join(60)
        assert [one.status for one in found] == [200] * len(threads)


def test_a_gateway_that_dies_in_its_attempt_costs_one_more(gateways, redis):
    door = Door()
    with Scripted(door) as upstream:
        made = doors(gateways, upstream, redis, WRONG, 3)
        lost = threading.Thread(target=lambda: pytest.raises(OSError, made[0].get, "/ok", timeout=60))
        lost.start()
        eventually(lambda: door.seen, what="its attempt")
        threads, found = asked(made[1:], 2)
        eventually(lambda: sum(waiting(gateway) for gateway in made[1:]) == len(threads), what="the others waiting")
        made[0].kill()
        lost.join(30)
        door.go.set()
        for thread in threads:
            thread.join(60)
        assert {problem_type(one) for one in found} <= {"upstream-refused-credential", "credential-quarantined"}
        assert door.seen == [WRONG, WRONG]


def test_no_attempt_without_the_shared_server(gateways, redis):
    door = Door()
    door.go.set()
    with Scripted(door) as upstream:
        made = doors(gateways, upstream, redis, RIGHT, 2)
        assert made[0].get("/ok").status == 200
        redis.die()
        # One that has proven its password serves on; the other waits for the server.
        assert made[0].get("/ok").status == 200
        eventually(lambda: state(made[1]) == "degraded", what="the outage noticed")
        withheld = made[1].get("/ok")
        assert (withheld.status, problem_type(withheld)) == (503, "issuer-unavailable")
        assert withheld.field("Retry-After")
        before = len(door.seen)
        redis.start()
        eventually(lambda: made[1].get("/ok").status == 200, within=30, every=0.2, what="an answer when the server is back")
        assert len(door.seen) > before


def test_a_corrected_password_is_tried_once_by_each(gateways, redis):
    door = Door()
    door.go.set()
    with Scripted(door) as upstream:
        made = doors(gateways, upstream, redis, WRONG, 3)
        assert made[0].get("/ok").status == 502
        for gateway in made:
            eventually(lambda: problem_type(gateway.get("/ok")) == "credential-quarantined", what="the refusal known")
            gateway.secret("password", RIGHT)
        for gateway in made:
            eventually(lambda: gateway.get("/ok").status == 200, within=20, every=0.1, what="the new password in use")
        assert door.seen.count(WRONG) == 1
