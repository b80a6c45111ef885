"""Promise: of two gateways on one store file one owns it; the other serves without it, spends no password and no refresh token,
says so, and takes over with its next start."""

import json
import threading

import pytest

from harness import call, eventually, together

WRONG = "not-the-password-9"
ANNA = "pa ss+wörd&1"


def beside(first, second):
    """Gives the second gateway the first one's store; everything else stays its own."""
    second.config["store"] = first.config["store"]
    second.store = first.store
    return second


@pytest.fixture
def pair(gateways):
    """Two gateways for the HR API on one store; the first runs and has a token."""
    first, second = gateways("first").webgate(), gateways("second").webgate()
    beside(first, second)
    first.start().warm()
    first.lab.reset(tokens=False)
    return first, second


def store_word(gateway):
    return gateway.ask("/status").json["store"]


def test_the_second_one_says_so_and_spends_nothing(pair):
    first, second = pair
    second.start()
    for answer in together(20, lambda _: second.get()):
        assert answer.status == 503, answer
    assert second.lab.counts()["authenticate"] == 0
    assert first.get().status == 200
    assert "another process" in json.dumps(store_word(second)), store_word(second)
    told = second.told(lambda event: event["message"] == "store not used")
    assert len(told) == 1 and str(first.store) in json.dumps(told), second.text()
    for words in (["store", "verify"], ["store", "rotate"]):
        code, out, err = second.command(*words)
        assert code == 69 and "another process" in out + err, (code, out, err)


def test_a_grant_without_a_secret_of_a_person_goes_on(gateways):
    """client_credentials locks nobody, so the second one may have a token of its own."""
    first, second = gateways("first").oauth(), gateways("second").oauth()
    beside(first, second)
    first.start().warm("/api/employees/1")
    second.start()
    assert second.get("/api/employees/1").status == 200
    assert second.lab.counts()["token"] == 2


def test_restarts_of_either_burn_no_second_attempt(gateways):
    first, second = gateways("first").webgate(password=WRONG), gateways("second").webgate(password=WRONG)
    beside(first, second)
    first.start()
    assert first.get().status == 503
    for _ in range(3):
        second.start()
        assert second.get().status == 503
        second.kill()
        first.kill()
        first.start()
        assert first.get().status == 503
    counts = first.lab.counts()
    assert (counts["password_rejected"], first.lab.get("/state")["locked"]) == (1, False)


def test_a_start_at_the_same_time_on_a_fresh_file(gateways):
    """Whoever is quicker has it; between them they send the wrong password once."""
    made = [gateways(f"gateway{index}").webgate(password=WRONG) for index in range(4)]
    for other in made[1:]:
        beside(made[0], other)
    made[0].store.unlink(missing_ok=True)
    together(4, lambda index: made[index].start())
    owners = [gateway for gateway in made if "another process" not in json.dumps(store_word(gateway))]
    assert len(owners) == 1, [store_word(gateway) for gateway in made]
    for answers in together(40, lambda index: made[index % 4].get()):
        assert answers.status == 503
    assert made[0].lab.counts()["password_rejected"] == 1


def test_a_start_at_the_same_time_without_a_key(gateways):
    """The key beside the file is made once, also when several make it."""
    made = [gateways(f"gateway{index}").oauth() for index in range(4)]
    for other in made[1:]:
        beside(made[0], other)
    for gateway in made:
        gateway.config["store"] = {"path": str(made[0].store)}
    together(4, lambda index: made[index].start())
    assert {made[index].get("/api/employees/1").status for index in range(4)} == {200}
    for gateway in made:
        gateway.kill()
    made[1].start()
    assert "serving" in json.dumps(store_word(made[1])), made[1].text()


def test_a_running_one_takes_over_what_the_killed_one_left(pair):
    first, second = pair
    second.start()
    assert second.get().status == 503
    first.kill()
    eventually(lambda: "serving" in json.dumps(store_word(second)), what="the store taken over")
    eventually(lambda: second.get().status == 200, what="the token of the killed one")
    assert second.lab.counts()["issuer_calls"] == 0
    first.start()
    assert "another process" in json.dumps(store_word(first)), first.text()
    code, out, err = second.command("store", "verify", "--json")
    assert code == 0 and json.loads(out)["damaged"] == 0, (code, out, err)


def test_a_configured_refresh_token_is_spent_by_the_owner_alone(gateways, provider):
    client = {"secret": "client-x-1", "grants": ["password", "refresh_token"]}
    provider.client("c", auth="client_secret_post", **client)
    body = b"grant_type=password&username=anna&password=pa+ss%2Bw%C3%B6rd%261&client_id=c&client_secret=client-x-1&scope=read"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = call(provider.issuer.removeprefix("http://"), "POST", "/token", body, form)
    provider.client("c", **client)
    first, second = gateways("first"), gateways("second")
    # One place for both: of a secret that alone says who we are, the place is part of the identity.
    place = first.secret("refresh", answer.json["refresh_token"])
    for gateway in (first, second):
        block = {
            "token_url": provider.issuer + "/token",
            "grant": "refresh_token",
            "client_id": "c",
            "client_secret": gateway.secret("client-secret", "client-x-1"),
            "refresh_token": place,
        }
        gateway.provider(provider, api={"oauth2": block})
    beside(first, second)
    first.start()
    assert call(first.listens["api"]).status == 200
    second.start()
    assert {answer.status for answer in together(8, lambda _: call(second.listens["api"]))} == {503}
    assert provider.steps("refresh_reused") == []
    first.kill()
    second.kill()
    second.start()
    assert call(second.listens["api"]).status == 200
    assert provider.steps("refresh_reused") == []


def test_the_command_opens_the_file_only_when_nobody_has_it(pair):
    first, second = pair
    code, out, err = first.command("store", "verify", "--json")
    assert code == 0, (code, out, err)
    ends = threading.Event()
    seen = []

    def look():
        while not ends.is_set():
            seen.append(first.command("store", "verify")[0])

    looking = threading.Thread(target=look)
    looking.start()
    try:
        eventually(lambda: len(seen) > 2, what="looks")
        for _ in range(2):
            first.kill()
            eventually(lambda: len(seen) > 2, what="looks")
            first.start()
    finally:
        ends.set()
        looking.join(30)
    assert set(seen) <= {0, 69}, seen


def test_a_live_check_beside_a_gateway_leaves_it_the_password(pair):
    """It is no failure that nothing was tried, and nothing is wrong with the configuration."""
    first, _ = pair
    status, out, errors = first.command("check", "--live")
    skipped, connected, last = out.splitlines()
    assert (status, last) == (0, "good, 1 not tried"), (out, errors)
    assert skipped.startswith("skip  identity hr  ") and f"not tried: another process owns {first.store}" in skipped
    assert "the running gateway" in skipped and skipped.endswith("ask it: cardea tokens, cardea explain (route hr)")
    assert "configuration" not in out and connected.startswith("good  upstream ")
    status, out, _ = first.command("check", "--live", "--json")
    told = json.loads(out)
    assert (status, told["errors"], told["failed"]) == (0, 0, 0)
    assert [(one["good"], one["tried"]) for one in told["live"]] == [(True, False), (True, True)]
    assert first.lab.counts()["authenticate"] == 0
    # What really fails is told beside it.
    first.lab.post("/protected/stop")
    try:
        status, out, _ = first.command("check", "--live")
    finally:
        first.lab.post("/protected/start")
    assert status == 69 and out.endswith("\n1 of 2 failed, 1 not tried\n"), out
    assert first.get().status == 200
    # Alone it tries.
    first.stop()
    status, out, _ = first.command("check", "--live")
    assert status == 0 and "skip" not in out and out.endswith("\ngood\n"), out


@pytest.mark.parametrize(("words", "status"), [(["store", "verify"], 0), (["login", "hr"], 64)], ids=["store", "login"])
def test_a_command_waits_for_a_gateway_that_starts(gateway, words, status):
    """It has the store before it answers: who came just then was told that another process has the store."""
    gateway.webgate()
    # Each of its sockets comes a second late, and that of the commands comes after the store.
    late = ["-e", "trace=listen", "-e", "signal=none", "-e", "inject=listen:delay_enter=1000000"]
    gateway.wrapper = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", *late]
    gateway.start(ready=False)
    gateway.told(lambda event: event["message"] == "store opened")
    code, out, errors = gateway.command(*words, timeout=60)
    assert code == status and "another process" not in out + errors, (code, out, errors)
    eventually(gateway.is_ready, within=60, what="/readyz answering 200")
    gateway.baseline = gateway.descriptors()
