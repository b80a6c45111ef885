"""Promise: gateways with one `store.shared` make one grant for all of them; a refused password and a spent refresh token are known to
every one; and without the shared server each serves on what it has, gets by itself what harms nobody, and nothing else."""

import contextlib
import json
import threading
import time

import pytest

from fleets import KEY, fleet, join, state
from harness import call, eventually, together
from peers import Authority, Redis
from scripted import Scripted, answer, identified, problem_type

WRONG = "not-the-password-9"
ANNA = "pa ss+wörd&1"


def waiters(gateway):
    return sum(value for (name, _), value in gateway.metrics().items() if name == "cardea_waiters")


def cold(made, callers, path):
    """So many callers of each gateway at once, with at most 200 connections under way; their statuses."""
    jobs = [gateway for gateway in made for _ in range(callers)]
    lock, statuses = threading.Lock(), []

    def work(_):
        while True:
            with lock:
                if not jobs:
                    return
                gateway = jobs.pop()
            status = gateway.get(path, timeout=30).status
            with lock:
                statuses.append(status)

    together(64, work)
    return statuses


# --- Grants that harm nobody -------------------------------------------------------------------------------------------


def test_one_grant_for_all(gateways, lab, redis):
    made = fleet(gateways, 4, redis.url, lambda gateway: gateway.oauth())
    lab.faults(issuer_slow_ms=300)
    assert set(cold(made, 50, "/api/employees/1")) == {200}
    assert lab.counts()["token"] == 1
    taken = [gateway.ask("/status").json["shared"]["taken"] for gateway in made]
    assert sorted(taken) == [0, 1, 1, 1]


def test_a_revoked_token_is_replaced_once(gateways, lab, redis):
    made = fleet(gateways, 3, redis.url, lambda gateway: gateway.oauth())
    assert set(cold(made, 4, "/api/employees/1")) == {200}
    lab.post("/revoke")
    assert set(cold(made, 30, "/api/employees/1")) == {200}
    assert lab.counts()["token"] == 2


def test_a_start_that_waits_for_a_token(gateways, lab, redis):
    """Gateways that want a token before anybody asks do not have one each for want of a connection."""
    made = fleet(gateways, 4, redis.url, lambda gateway: gateway.oauth(token={"startup": "wait"}))
    assert lab.counts()["token"] == 1
    assert set(cold(made, 5, "/api/employees/1")) == {200}
    assert lab.counts()["token"] == 1


def test_the_holder_of_the_lease_is_killed(gateways, lab, redis):
    made = fleet(gateways, 3, redis.url, lambda gateway: gateway.oauth())
    lab.faults(issuer_slow_ms=4000)
    lost = threading.Thread(target=lambda: pytest.raises(OSError, made[0].get, "/api/employees/1"))
    lost.start()
    eventually(lambda: lab.counts()["issuer_calls"] == 1, what="the grant under way")
    others = threading.Thread(target=lambda: found.extend(cold(made[1:], 10, "/api/employees/1")))
    found = []
    others.start()
    for gateway in made[1:]:
        eventually(lambda: waiters(gateway) > 0, what="callers that wait for the grant")
    lab.faults(issuer_slow_ms=None)
    made[0].kill()
    lost.join(30)
    others.join(60)
    assert set(found) == {200} and len(found) == 20
    assert lab.counts()["token"] == 2


@pytest.mark.parametrize("callers", [100])
def test_the_shared_server_is_killed_in_the_middle(gateways, lab, redis, callers):
    made = fleet(gateways, 4, redis.url, lambda gateway: gateway.oauth())
    lab.faults(issuer_slow_ms=1500)
    found = []
    asking = threading.Thread(target=lambda: found.extend(cold(made, callers, "/api/employees/1")))
    asking.start()
    eventually(lambda: lab.counts()["issuer_calls"] == 1, what="the grant under way")
    redis.die()
    asking.join(120)
    assert len(found) == 4 * callers and set(found) == {200}
    assert lab.counts()["token"] <= 1 + len(made)
    for gateway in made:
        assert state(gateway) == "degraded"
        gateway.told(lambda event: event["message"] == "shared store degraded")
        assert gateway.metrics()[("cardea_shared_state", (("state", "degraded"),))] == 1
    redis.start()
    for gateway in made:
        eventually(lambda: state(gateway) == "serving", what="the shared store in use again")
    lab.faults(issuer_slow_ms=None)
    lab.post("/revoke")
    before = lab.counts()["token"]
    assert set(cold(made, 10, "/api/employees/1")) == {200}
    # Each had a token of its own from the time without the server; one grant replaces them all.
    assert lab.counts()["token"] - before <= 2


# --- Passwords -----------------------------------------------------------------------------------------------------------


def test_one_login_for_all(gateways, lab, redis):
    made = fleet(gateways, 3, redis.url, lambda gateway: gateway.webgate())
    assert set(cold(made, 30, "/hr/rest/employees/1")) == {200}
    counts = lab.counts()
    assert (counts["register"], counts["authenticate"]) == (1, 1)


def test_a_refused_password_is_known_to_all(gateways, lab, redis):
    made = fleet(gateways, 4, redis.url, lambda gateway: gateway.webgate(password=WRONG))
    assert set(cold(made, 50, "/hr/rest/employees/1")) == {503}
    assert (lab.counts()["password_rejected"], lab.get("/state")["locked"]) == (1, False)
    # Restarts with no file of their own, and a newcomer, learn it from the others.
    made[1].stop()
    for path in made[1].folder.glob("tokens.db*"):
        path.unlink()
    made[1].start()
    late = join(gateways("late").webgate(password=WRONG), redis.url).start()
    assert set(cold([made[1], late], 10, "/hr/rest/employees/1")) == {503}
    assert lab.counts()["password_rejected"] == 1


def test_a_basic_password_that_was_good_leaves_every_gateway_when_one_meets_its_refusal(gateways, redis):
    """Each gateway has it in its cache by then, from where it goes out with every request."""
    good = threading.Event()
    good.set()
    with Scripted(lambda peer: [peer.send(judged(good)) for _ in peer.requests()]) as upstream:

        def configure(gateway):
            password = gateway.secret("basic-password", ANNA)
            identified(gateway, upstream, {"basic": {"username": "u", "password": password}})

        first, second = fleet(gateways, 2, redis.url, configure)
        assert [gateway.get("/ok").status for gateway in (first, second)] == [200, 200]
        good.clear()
        for path in "abc":
            assert first.get(f"/{path}").status == 502
        # Nobody asks the second one meanwhile: the word reaches it, not a refusal.
        eventually(lambda: any("credential quarantined" in line for line in second.lines("stderr")), what="the word of it")
        sent = len(upstream.requests)
        for path in "defgh":
            assert problem_type(second.get(f"/{path}")) == "credential-quarantined"
        assert len(upstream.requests) == sent


def judged(good):
    if good.is_set():
        return answer(b"yes")
    return answer(b"no", b'WWW-Authenticate: Basic realm="x"', status=b"401 No")


def test_a_refused_basic_password_is_known_to_all(gateways, lab, redis):
    def configure(gateway):
        password = gateway.secret("basic-password", WRONG)
        gateway.with_identity({"basic": {"username": lab.user, "password": password}})

    made = fleet(gateways, 3, redis.url, configure)
    assert made[0].get("/basic/employees/1").status in (502, 503)
    late = gateways("late")
    configure(late)
    join(late, redis.url).start()
    eventually(lambda: state(late) == "serving", what="the shared store in use")
    assert {answer.status for answer in together(12, lambda index: [*made, late][index % 4].get("/basic/employees/1"))} <= {502, 503}
    assert lab.counts()["password_rejected"] == 1


def test_a_live_check_spends_what_the_fleet_allows(gateways, lab, redis):
    made = fleet(gateways, 2, redis.url, lambda gateway: gateway.webgate(password=WRONG))
    assert made[0].get().status == 503
    made[1].stop()
    for path in made[1].folder.glob("tokens.db*"):
        path.unlink()
    code, out, err = made[1].command("check", "--live")
    assert code == 69, (code, out, err)
    assert lab.counts()["password_rejected"] == 1


def test_a_reset_counts_for_all(gateways, lab, redis):
    made = fleet(gateways, 3, redis.url, lambda gateway: gateway.webgate(password=WRONG))
    assert set(cold(made, 5, "/hr/rest/employees/1")) == {503}
    lab.post("/password", {"password": WRONG})
    try:
        code, _, errors = made[0].command("reset", "hr")
        assert code == 0, errors
        for gateway in made:
            eventually(lambda: gateway.get().status == 200, what="a token after the reset")
        assert lab.counts()["password_rejected"] == 1
    finally:
        lab.post("/password", {"password": lab.password})


def test_a_refused_password_outlives_a_server_that_forgets(gateways, lab, redis):
    made = fleet(gateways, 3, redis.url, lambda gateway: gateway.webgate(password=WRONG))
    assert made[0].get().status == 503
    redis.die()
    assert set(cold(made, 10, "/hr/rest/employees/1")) == {503}
    redis.start()
    for gateway in made:
        eventually(lambda: state(gateway) == "serving", what="the shared store in use again")
    for _ in range(4):
        assert set(cold(made, 5, "/hr/rest/employees/1")) <= {503, 504}
        time.sleep(1)
    assert lab.counts()["password_rejected"] == 1


def test_no_password_without_the_shared_server(gateways, lab, redis):
    made = fleet(gateways, 2, redis.url, lambda gateway: gateway.webgate())
    redis.die()
    for gateway in made:
        eventually(lambda: state(gateway) == "degraded", what="the outage noticed")
    assert set(cold(made, 5, "/hr/rest/employees/1")) == {503}
    assert lab.counts()["authenticate"] == 0
    redis.start()
    for gateway in made:
        eventually(lambda: gateway.get().status == 200, within=30, every=0.3, what="a token when the server is back")
    assert lab.counts()["authenticate"] == 1


def test_what_is_valid_is_served_without_the_shared_server(gateways, lab, redis):
    made = fleet(gateways, 2, redis.url, lambda gateway: gateway.webgate())
    assert set(cold(made, 5, "/hr/rest/employees/1")) == {200}
    redis.die()
    assert set(cold(made, 20, "/hr/rest/employees/1")) == {200}
    # And by a gateway that starts in the outage, from its own file.
    made[1].stop()
    made[1].start()
    assert made[1].get().status == 200
    assert lab.counts()["authenticate"] == 1


# --- Refresh tokens that rotate ------------------------------------------------------------------------------------------


def rotating(provider):
    provider.client("c", secret="client-x-1", grants=["password", "refresh_token"])

    def configure(gateway):
        block = {
            "token_url": provider.issuer + "/token",
            "grant": "password",
            "client_id": "c",
            "client_secret": gateway.secret("client-secret", "client-x-1"),
            "username": "anna",
            "password": gateway.secret("anna", ANNA),
        }
        gateway.provider(provider, api={"oauth2": block})

    return configure


def revoke(provider, gateway):
    """The token that all of them have is refused from now on."""
    answer = call(gateway.listens["api"])
    assert answer.status == 200, answer
    provider.post("revoke_access", {"jti": [answer.json["jti"]]})


def asked(made, callers=8):
    return together(callers * len(made), lambda index: call(made[index % len(made)].listens["api"], timeout=30).status)


def test_a_refresh_token_goes_round(gateways, provider, redis):
    made = fleet(gateways, 4, redis.url, rotating(provider))
    assert set(asked(made)) == {200}
    for round in range(6):
        revoke(provider, made[round % 4])
        assert set(asked(made)) == {200}
    assert provider.steps("refresh_reused") == []
    assert len(provider.steps("password")) == 1


def test_a_refresh_token_survives_a_server_that_forgets(gateways, provider, redis):
    made = fleet(gateways, 4, redis.url, rotating(provider))
    assert set(asked(made)) == {200}
    for round in range(2):
        revoke(provider, made[round])
        asking = threading.Thread(target=asked, args=(made,))
        asking.start()
        redis.die()
        asking.join(60)
        redis.start()
        for gateway in made:
            eventually(lambda: state(gateway) == "serving", what="the shared store in use again")
        eventually(lambda: set(asked(made, 2)) == {200}, within=40, every=0.5, what="tokens for all")
    assert provider.steps("refresh_reused") == []
    assert len(provider.steps("password")) == 1


def test_the_newest_refresh_token_wins_after_everything_was_down(gateways, provider, redis):
    """Each gateway's file has the one that it saw last; the server has forgotten all of them."""
    made = fleet(gateways, 3, redis.url, rotating(provider))
    assert set(asked(made)) == {200}
    made[2].kill()
    for _ in range(3):
        revoke(provider, made[0])
        assert call(made[0].listens["api"]).status == 200
    for gateway in made[:2]:
        gateway.kill()
    redis.die()
    redis.start()
    # The one that knows least is the first to look.
    for gateway in (made[2], made[1], made[0]):
        gateway.start(ready=False)
    for gateway in made:
        eventually(gateway.is_ready, what="readiness")
        eventually(lambda: state(gateway) == "serving", what="the shared store in use")
    # Its token was revoked long ago, and what it has in its file was spent by others.
    eventually(lambda: call(made[2].listens["api"], timeout=30).status == 200, within=20, every=0.5, what="a token")
    assert set(asked(made, 2)) == {200}
    assert provider.steps("refresh_reused") == []
    assert len(provider.steps("password")) == 1


def test_two_revocations_that_a_gateway_has_not_seen(gateways, provider, redis):
    """It takes the fleet's token, which is refused as well; that is no reason to give up."""
    made = fleet(gateways, 3, redis.url, rotating(provider))
    assert set(asked(made)) == {200}
    for gateway in made[:2]:
        revoke(provider, gateway)
    # A request is sent again once: where the last gateway has not heard of the first revocation yet, both of its tokens are refused.
    answer = call(made[2].listens["api"])
    assert answer.status == 200 or answer.problem["type"] == "urn:cardea:problems/upstream-refused-credential", answer
    eventually(lambda: call(made[2].listens["api"]).status == 200, within=5, every=0.1, what="the next token")
    revoke(provider, made[2])
    for _ in range(3):
        eventually(lambda: set(asked(made, 4)) == {200}, within=5, every=0.1, what="tokens for all")
    assert provider.steps("refresh_reused") == []


# --- Servers in trouble --------------------------------------------------------------------------------------------------


def test_a_server_that_hangs_delays_a_grant_and_nothing_else(gateways, lab, redis):
    made = fleet(gateways, 2, redis.url, lambda gateway: gateway.oauth())
    made[0].warm("/api/employees/1")
    redis.freeze()
    try:
        began = time.monotonic()
        assert made[1].get("/api/employees/1").status == 200
        assert time.monotonic() - began < 9
        began = time.monotonic()
        assert {made[0].get("/api/employees/1").status for _ in range(50)} == {200}
        assert time.monotonic() - began < 9
        eventually(lambda: state(made[1]) == "degraded", what="the outage noticed")
    finally:
        redis.thaw()
    eventually(lambda: state(made[1]) == "serving", what="the shared store in use again")


def test_a_server_that_takes_no_writes(gateways, lab, redis):
    made = fleet(gateways, 2, redis.url, lambda gateway: gateway.oauth())
    redis.do("REPLICAOF", "127.0.0.1", "1")
    assert set(cold(made, 5, "/api/employees/1")) == {200}
    assert lab.counts()["token"] == 2
    for gateway in made:
        # Callers are answered before the token is shared: what the server says of that comes later.
        eventually(lambda: state(gateway) == "degraded", what="the refusal noticed")
        assert "READONLY" in gateway.ask("/status").json["shared"]["detail"]
    redis.do("REPLICAOF", "NO", "ONE")
    for gateway in made:
        eventually(lambda: state(gateway) == "serving", what="the shared store in use again")


@pytest.mark.parametrize(
    "reply",
    [b"*1000000000\r\n", b"$9999999999\r\n", b"*1\r\n" * 5000, b":1\r\n" * 100_000, b"\x00" * 70_000, b"-ERR no\r\n", b"+" + b"x" * 70_000],
    ids=["items", "string", "depth", "unasked", "noise", "error", "line"],
)
def test_a_hostile_server_is_refused(gateway, lab, reply):
    def script(peer):
        peer.socket.recv(1)
        with contextlib.suppress(OSError):
            peer.send(reply)

    with Scripted(script) as server:
        join(gateway.oauth(), f"redis://{server.address}").start()
        assert gateway.get("/api/employees/1").status == 200
        eventually(lambda: state(gateway) == "degraded", what="the server refused")
        assert gateway.resident() < 200 << 20


# --- Ways to it ----------------------------------------------------------------------------------------------------------


def test_by_tls_as_a_user_of_its_own(gateways, lab, tmp_path):
    authority = Authority(tmp_path / "pki")
    certificate, key = authority.issue("server")
    rules = "~cardea:* &cardea:* -@all +hello +auth +ping +info +subscribe +eval +get +set +del +exists +incr +expire +pexpire +pttl +hget +hset +hdel +hkeys +publish"
    server = Redis(tmp_path / "redis", tls=(certificate, key, authority.file), password="admin-pw", acl=[f"cardea on >redis-pw-77 {rules}"])
    try:
        made = [gateways(f"edge{index}").oauth() for index in range(2)]
        for gateway in made:
            password = gateway.secret("redis-password", "redis-pw-77")
            join(gateway, {"url": server.url, "username": "cardea", "password": password, "ca": str(authority.file)}).start()
            eventually(lambda: state(gateway) == "serving", what="the shared store in use")
        assert set(cold(made, 5, "/api/employees/1")) == {200}
        assert lab.counts()["token"] == 1
        # A password that the server does not take is a word in the status, without the password.
        wrong = gateways("wrong").oauth()
        password = wrong.secret("redis-password", "redis-pw-78")
        join(wrong, {"url": server.url, "username": "cardea", "password": password, "ca": str(authority.file)}).start()
        eventually(lambda: state(wrong) == "degraded", what="the refusal")
        assert "WRONGPASS" in wrong.ask("/status").json["shared"]["detail"]
        stranger = gateways("stranger").oauth()
        join(stranger, {"url": server.url, "username": "cardea", "password": password}).start()
        eventually(lambda: state(stranger) == "degraded", what="the refusal")
        assert "TLS" in stranger.ask("/status").json["shared"]["detail"]
    finally:
        server.close()


def test_by_a_unix_socket(gateways, lab, redis):
    made = fleet(gateways, 2, f"unix:{redis.socket}", lambda gateway: gateway.oauth())
    assert set(cold(made, 5, "/api/employees/1")) == {200}
    assert lab.counts()["token"] == 1


def test_without_a_file_of_its_own(gateways, lab, redis):
    """What the fleet has outlives a gateway that keeps nothing."""
    gateway = gateways().webgate()
    gateway.config["store"] = {"key": gateway.secret("fleet-key", KEY), "shared": redis.url}
    gateway.start().warm()
    gateway.kill()
    gateway.start()
    assert gateway.get().status == 200
    assert lab.counts()["authenticate"] == 1


@pytest.mark.parametrize(
    ("shared", "key", "word"),
    [
        ("redis://127.0.0.1:1", None, "needs a 'key'"),
        ("redis://10.1.2.3:6379", KEY, "clear text"),
        ({"url": "redis://10.1.2.3:6379", "username": "u"}, KEY, "clear text"),
        ("http://127.0.0.1:1", KEY, "rediss: or redis:"),
        ({"url": "rediss://h", "username": "u"}, KEY, "'password'"),
    ],
)
def test_what_check_refuses(gateway, shared, key, word):
    gateway.oauth()
    join(gateway, shared)
    if key is None:
        del gateway.config["store"]["key"]
    gateway.file.write_text(json.dumps(gateway.config))
    code, out, err = gateway.command("check")
    assert code == 78 and word in out + err, (code, out, err)


# --- What the server sees ------------------------------------------------------------------------------------------------


def test_the_server_sees_no_token_no_user_and_no_scope(gateways, lab, redis):
    made = fleet(gateways, 2, redis.url, lambda gateway: gateway.webgate())
    assert set(cold(made, 3, "/hr/rest/employees/1")) == {200}
    other = gateways("other").oauth(route={"scopes": ["write"], "audience": "audience-of-the-api"})
    join(other, redis.url).start().warm("/api/employees/1")
    wrong = gateways("wrong").webgate(password=WRONG, identity={"username": "somebody-else"})
    join(wrong, redis.url).start()
    assert wrong.get().status == 503
    seen = redis.everything()
    assert len(redis.do("--scan").split()) > 4
    words = [*lab.get("/secrets"), lab.user, lab.client_id, lab.oauth_client_id, lab.listen, "127.0.0.1", "Bearer", "OAM-Auth"]
    for word in [*words, WRONG, "somebody-else", "write", "audience-of-the-api", "employees", "webgate", "Authorization"]:
        for spelling in (word.encode(), word.encode().hex().encode(), word.encode()[::-1]):
            assert len(spelling) < 4 or spelling not in seen, word


def test_a_value_of_another_key_is_left_alone(gateways, lab, redis):
    """Two fleets on one server have nothing to do with each other, and a value that was moved does not open."""
    one = fleet(gateways, 1, redis.url, lambda gateway: gateway.oauth())[0]
    one.warm("/api/employees/1")
    other = gateways("other").oauth()
    join(other, redis.url, key=other.secret("other-key", "b3RoZXItZmxlZXQta2V5LWZvci10ZXN0cy0zMi1vY3Q=")).start()
    eventually(lambda: state(other) == "serving", what="the shared store in use")
    assert other.get("/api/employees/1").status == 200
    assert lab.counts()["token"] == 2
    names = [key.decode() for key in redis.do("--scan", "--pattern", "cardea:*:v:*").split()]
    assert len(names) == 2
    values = [redis.do("--raw", "HGET", name, "value").hex() for name in names]
    assert values[0] != values[1]
