"""Promise: where Adobe has not moved a service provider, `api: v1` serves it in the same way: one login, one media token a request."""

import pytest

from harness import call, eventually, together
from persons import Lines
from test_adobe_pass import PLAY, adobe, browser, log_in, state


def legacy(gateway, identity=None, **rest):
    return adobe(gateway, identity={"api": "v1", **(identity or {})}, **rest)


@pytest.fixture
def served(gateway):
    legacy(gateway).start()
    log_in(gateway)
    return gateway


def test_a_person_logs_in_once_and_every_request_has_its_own_token(served):
    answers = together(60, lambda i: served.get(f"/media/CH{i % 3}/employees/{i}"))
    assert [answer.json["id"] for answer in answers] == list(range(60)), [answer.status for answer in answers]
    counts = served.lab.counts()
    assert (counts["adobe_v1_media_ok"], counts["adobe_media_refused"], counts["refusals"]) == (60, 0, 1)
    # The one refusal was the first look: nobody had logged in.
    assert (counts["adobe_register"], counts["adobe_token"], counts["adobe_logins"]) == (1, 1, 1)
    assert "login" not in state(served)


def test_without_a_login_callers_are_told_so_and_nothing_else(gateway):
    legacy(gateway).start()
    for _ in range(3):
        assert gateway.get(PLAY).problem["type"] == "urn:cardea:problems/login-required"
    assert gateway.lab.counts()["issuer_calls"] == 0


def test_the_login_outlives_a_restart_and_a_logout_ends_it(served):
    served.kill()
    served.start()
    assert served.get(PLAY).status == 200
    status, out, err = served.command("logout", "play")
    assert (status, "revoked" in out + err) == (0, True), out + err
    assert served.get(PLAY).problem["type"].endswith("login-required")
    log_in(served)
    assert served.get(PLAY).status == 200
    counts = served.lab.counts()
    assert (counts["adobe_register"], counts["adobe_v1_logout_ok"], counts["adobe_logins"]) == (1, 1, 2)


def test_a_login_of_the_other_generation_is_none_for_this_one(served):
    served.stop()
    adobe(served).start()
    assert served.get(PLAY).problem["type"].endswith("login-required")
    log_in(served)
    assert served.get(PLAY).status == 200
    assert served.lab.counts()["adobe_logins"] == 2


def test_a_login_at_another_provider_is_not_taken(gateway):
    legacy(gateway).start()
    terminal = Lines(gateway, "play")
    told = terminal.next()
    while not told.get("prompt"):
        told = terminal.next()
    gateway.lab.faults(adobe_other_mvpd="SatCo")
    browser(told["prompt"]["url"])
    while told["state"] == "running":
        told = terminal.next()
    assert told["state"] == "failed" and "another provider" in told["detail"]


@pytest.mark.parametrize("enhanced", [False, True])
def test_a_denial_is_the_callers(served, enhanced):
    served.lab.faults(adobe_v1_enhanced=enhanced)
    for _ in range(5):
        answer = served.get("/media/DENIED/play")
        assert (answer.status, answer.problem["type"]) == (403, "urn:cardea:problems/resource-denied")
        assert answer.problem["detail"] == ("authorization_denied_by_mvpd" if enhanced else "authorization_denied")
    assert served.lab.counts()["adobe_v1_authorize"] == 1
    assert served.get(PLAY).status == 200


@pytest.mark.parametrize("fault", [{}, {"adobe_v1_unsure": True}, {"adobe_v1_enhanced": True}])
def test_a_login_that_the_server_ended_is_over_here_too(served, fault):
    served.lab.faults(**fault)
    served.lab.post("/adobe/end_logins")
    for _ in range(4):
        assert served.get(PLAY).problem["type"].endswith("login-required")
    assert served.lab.counts()["adobe_v1_authorize"] == 1
    assert state(served) == "login_needed"


def test_what_adobe_asks_to_try_again_is_tried_three_times(served):
    served.lab.faults(adobe_retry={"times": 2})
    assert served.get(PLAY).status == 200
    served.lab.faults(adobe_retry=True)
    assert served.get(PLAY).status == 504


def test_operators_see_the_login_and_what_it_would_open(gateway):
    legacy(gateway, identity={"preauthorize": ["CH1", "DENIED"]}).start()
    log_in(gateway)

    def told():
        facts = call(gateway.admin, path="/status").json["identities"][0]["facts"]
        return {fact["name"]: fact["value"] for fact in facts}

    eventually(lambda: "CH1" in told(), within=10, every=0.1, what="a preview")
    assert told() == {
        "mvpd": "CableCo",
        "type": "regular",
        "metadata": "maxRating, userID, zip (encrypted)",
        "CH1": "would be authorized",
        "DENIED": "would be denied",
    }


def test_a_hostile_answer_is_no_token(served):
    for step in ("adobe_v1_authorize", "adobe_v1_media"):
        for fault in ("issuer_html", "issuer_empty", "issuer_empty_object", "issuer_huge_json", "issuer_redirect"):
            served.lab.faults(**{fault: {"on": step, "times": 1}})
            answer = served.get(PLAY)
            assert answer.status == 503, (step, fault, answer)
    eventually(lambda: served.get(PLAY).status == 200, within=20, every=0.3, what="service after all that")
    assert served.lab.counts()["adobe_media_refused"] == 0


def test_callers_wait_their_turn_in_what_adobe_allows(gateway):
    gateway.lab.faults(adobe_throttle=True)
    legacy(gateway, identity={"calls_per_second": None, "burst": None}, token={"acquire_timeout": "5s"}).start()
    log_in(gateway)
    answers = together(12, lambda _: gateway.get(PLAY))
    # A token takes two calls, and none is begun that could not be ended.
    served = sum(answer.status == 200 for answer in answers)
    assert {answer.status for answer in answers} == {200, 503} and served >= 2
    assert gateway.lab.counts()["adobe_v1_authorize_ok"] == gateway.lab.counts()["adobe_v1_media_ok"] == served
    # One call may meet the server's bucket a moment before it is full again, if the one before it was late on its way.
    assert gateway.lab.counts()["adobe_throttled"] <= 1


def test_the_domain_of_the_login_page_has_to_be_named(gateway):
    legacy(gateway, identity={"domain_name": None})
    status, out, err = gateway.command("check", str(gateway.file), config=False)
    assert status == 78 and "needs 'domain_name'" in out + err, out + err
    gateway.may_exit = True
