"""Promise: callers that know nothing of MobileFirst reach its adapters through a device that registers itself and answers
challenges, and that never costs anybody a PIN."""

import json
import os
import re

import pytest

from harness import eventually, together

ADAPTERS = "/mfp/api/adapters"
ACCOUNTS = f"{ADAPTERS}/accountsRead/employees/1"
PIN = "4711-lab-pin"
WRONG = "0000-wrong-pin"


def device(gateway, identity=None, scopes=("accountsRead",), token=None, pin=PIN, answers=None, changes=None):
    lab = gateway.lab
    known = {
        "PinCodeAttempts": {"pin": gateway.secret("pin", pin)},
        "UserLogin": {
            "username": gateway.secret("user", lab.user),
            "password": gateway.secret("password", lab.password),
        },
        "DeviceCheck": {"code": gateway.secret("code", lab.api_key)},
    }
    # The user's name is no secret to be looked for in the log.
    gateway.secrets.remove(lab.user)
    block = {
        "base": f"http://{lab.issuer}/mfp/api",
        "mode": "registered",
        "application": "com.acme.teller",
        "answers": {check: known[check] for check in (answers if answers is not None else known)},
        **(identity or {}),
    }
    # A registration makes a key, which takes as long as the machine lets it.
    who = {"mobilefirst": block, "token": {"negative_for": "1s", "acquire_timeout": "25s", **(token or {})}}
    to = gateway.route("teller", lab.listen) | {"scopes": list(scopes)}
    gateway.config = gateway.frame({"identities": {"teller": who}, "routes": [to], **(changes or {})})
    return gateway


def counts(gateway, *names):
    found = gateway.lab.counts()
    return tuple(found[name] for name in names)


def teller(gateway):
    """The identity as `/status` shows it."""
    return next(one for one in gateway.ask("/status").json["identities"] if one["name"] == "teller")


def refused(gateway, times=3, path=ACCOUNTS):
    for _ in range(times):
        answer = gateway.get(path)
        assert answer.status == 503, answer
    return answer.problem


# --- The way in ----------------------------------------------------------------------------------------------------


def test_a_device_registers_answers_and_is_given_a_token(gateway):
    device(gateway).start()
    answers = together(30, lambda i: gateway.get(f"{ADAPTERS}/accountsRead/employees/{i}"))
    assert [(answer.status, answer.json.get("id")) for answer in answers] == [(200, i) for i in range(30)]
    lab = gateway.lab.counts()
    calls = {name: lab[f"mfp_{name}"] for name in ("register", "preauthorize", "authorization", "token")}
    assert calls == {"register": 1, "preauthorize": 2, "authorization": 1, "token": 1}
    assert (lab["mfp_judged_PinCodeAttempts"], lab["mfp_wrong_PinCodeAttempts"]) == (1, 0)
    assert not gateway.lab.get("/refusals")


def test_the_application_of_a_phone_registers_with_its_version(gateway):
    device(gateway, identity={"platform": "android", "application_version": "1.2.0"}).start()
    assert gateway.get(ACCOUNTS).status == 200
    assert not gateway.lab.get("/refusals")


def test_the_registration_outlives_restarts(gateway):
    device(gateway).start()
    assert gateway.get(ACCOUNTS).status == 200
    for end in (gateway.kill, gateway.stop):
        end()
        gateway.lab.post("/revoke")
        gateway.start()
        assert gateway.get(ACCOUNTS).status == 200
    lab = gateway.lab.counts()
    assert (lab["mfp_register"], lab["mfp_token"]) == (1, 3)
    # The server still knew that the check was passed.
    assert lab["mfp_judged_PinCodeAttempts"] == 1


def test_checks_may_come_one_after_the_other(gateway):
    device(gateway, scopes=["accountsWrite"]).start()
    assert gateway.get(f"{ADAPTERS}/accountsWrite/employees/1").status == 200
    assert counts(gateway, "mfp_preauthorize", "mfp_judged_PinCodeAttempts", "mfp_judged_UserLogin") == (3, 1, 1)


def test_two_checks_at_once_one_of_them_without_a_word(gateway):
    device(gateway, scopes=["devices"]).start()
    assert gateway.get(f"{ADAPTERS}/devices/employees/1").status == 200
    assert counts(gateway, "mfp_answers", "mfp_judged_PinCodeAttempts", "mfp_judged_DeviceCheck") == (1, 1, 1)


def test_a_server_whose_clock_is_ten_minutes_ahead(gateway):
    gateway.lab.faults(mfp_clock_ms=600_000)
    device(gateway).start()
    assert gateway.get(ACCOUNTS).status == 200
    assert counts(gateway, "mfp_token", "mfp_token_ok") == (1, 1)


def test_a_code_that_comes_as_json(gateway):
    gateway.lab.faults(mfp_code_json=True)
    device(gateway).start()
    assert gateway.get(ACCOUNTS).status == 200


def test_short_tokens_are_renewed_without_another_answer(gateway):
    gateway.lab.faults(token_lifetime_ms=12_000)
    device(gateway, token={"refresh_ahead": "90%"}).start()
    assert gateway.get(ACCOUNTS).status == 200

    def renewed():
        assert gateway.get(ACCOUNTS).status == 200
        return gateway.lab.counts()["mfp_token"] > 1

    eventually(renewed, within=20, every=0.1, what="a second token")
    assert counts(gateway, "mfp_judged_PinCodeAttempts", "mfp_register") == (1, 1)


def test_when_a_checks_success_has_run_out_it_is_answered_again(gateway):
    device(gateway).start()
    for round in (1, 2, 3):
        assert gateway.get(ACCOUNTS).status == 200
        assert counts(gateway, "mfp_judged_PinCodeAttempts", "mfp_wrong_PinCodeAttempts") == (round, 0)
        gateway.lab.post("/mfp/forget")
        gateway.lab.post("/revoke")


def test_a_scope_is_learned_within_the_list_alone(gateway):
    device(gateway, identity={"allowed_scopes": ["accountsWrite"]}).start()
    assert gateway.get(ACCOUNTS).status == 200
    assert gateway.get(f"{ADAPTERS}/accountsWrite/employees/1").status == 200
    assert gateway.get(f"{ADAPTERS}/audit/employees/1").status == 403
    assert counts(gateway, "mfp_token", "mfp_judged_UserLogin") == (2, 1)


def test_a_notice_of_the_server_is_acknowledged(gateway):
    device(gateway, scopes=["notices"]).start()
    assert gateway.get(f"{ADAPTERS}/notices/employees/1").status == 200
    warnings = gateway.told(lambda event: event.get("level") == "warn" and "notice" in json.dumps(event))
    assert len(warnings) == 1


# --- What must not cost an attempt -----------------------------------------------------------------------------------


def test_a_wrong_pin_is_sent_once(gateway):
    device(gateway, pin=WRONG).start()
    for answer in together(30, lambda i: gateway.get(ACCOUNTS)):
        assert answer.status == 503
    assert "quarantine" in refused(gateway)["type"]
    assert counts(gateway, "mfp_wrong_PinCodeAttempts") == (1,)


def test_a_refused_pin_survives_restarts_and_ends_with_a_new_one(gateway):
    device(gateway, pin=WRONG).start()
    refused(gateway)
    for end in (gateway.kill, gateway.stop):
        end()
        gateway.start()
        refused(gateway)
    assert counts(gateway, "mfp_judged_PinCodeAttempts", "mfp_register") == (1, 1)
    (gateway.folder / "pin").write_text(PIN)
    eventually(lambda: gateway.get(ACCOUNTS).status == 200, within=20, every=0.2, what="the new PIN in use")
    assert counts(gateway, "mfp_judged_PinCodeAttempts", "mfp_wrong_PinCodeAttempts") == (2, 1)


def test_a_refused_pin_is_sent_again_after_a_reset(gateway):
    device(gateway, pin=WRONG).start()
    refused(gateway)
    gateway.lab.post("/pin", {"pin": WRONG})
    refused(gateway)
    status, _, errors = gateway.command("reset", "teller")
    assert status == 0, errors
    assert gateway.get(ACCOUNTS).status == 200
    assert counts(gateway, "mfp_wrong_PinCodeAttempts") == (1,)


def test_one_check_that_passed_lifts_nothing_of_another(gateway):
    """In one answer the code is right and the PIN wrong; only the PIN is held back, and the code is not sent for nothing."""
    device(gateway, scopes=["devices"], pin=WRONG).start()
    path = f"{ADAPTERS}/devices/employees/1"
    refused(gateway, path=path)
    gateway.stop()
    gateway.start()
    refused(gateway, path=path)
    assert counts(gateway, "mfp_judged_PinCodeAttempts", "mfp_judged_DeviceCheck") == (1, 1)
    (gateway.folder / "pin").write_text(PIN)
    eventually(lambda: gateway.get(path).status == 200, within=20, every=0.2, what="the new PIN in use")
    assert counts(gateway, "mfp_judged_PinCodeAttempts", "mfp_judged_DeviceCheck") == (2, 1)


@pytest.mark.parametrize("left", [1, "1", 0, "many"])
def test_the_last_attempt_is_left_to_its_owner(gateway, left):
    gateway.lab.faults(mfp_remaining={"value": left})
    device(gateway).start()
    refused(gateway)
    assert counts(gateway, "mfp_answers", "mfp_preauthorize") == (0, 1)


@pytest.mark.parametrize("left", [2, "2"])
def test_the_count_is_taken_as_it_is_said(gateway, left):
    gateway.lab.faults(mfp_remaining={"value": left})
    device(gateway).start()
    assert gateway.get(ACCOUNTS).status == 200


def test_the_last_attempt_is_used_where_the_operator_allows_it(gateway):
    gateway.lab.faults(mfp_remaining={"value": 1})
    device(gateway, token={"allow_last_attempt": True}).start()
    assert gateway.get(ACCOUNTS).status == 200


def test_more_attempts_may_be_wanted(gateway):
    device(gateway, identity={"min_remaining_attempts": 4}).start()
    refused(gateway)
    assert counts(gateway, "mfp_answers") == (0,)


def test_a_check_without_an_answer_ends_it_before_anything_is_sent(gateway):
    device(gateway, scopes=["half"]).start()
    refused(gateway, path=f"{ADAPTERS}/half/employees/1")
    assert counts(gateway, "mfp_answers", "mfp_preauthorize") == (0, 1)
    assert "SurpriseCheck" in json.dumps(teller(gateway))


def test_no_answers_at_all(gateway):
    device(gateway, answers=[]).start()
    refused(gateway)
    assert counts(gateway, "mfp_answers", "mfp_preauthorize") == (0, 1)


@pytest.mark.parametrize("status", [403, 222])
def test_a_check_that_failed_is_not_tried_again(gateway, status):
    gateway.lab.faults(mfp_failures={"value": status})
    device(gateway).start()
    refused(gateway)
    assert counts(gateway, "mfp_answers", "mfp_preauthorize") == (0, 1)
    assert "PinCodeAttempts failed" in json.dumps(teller(gateway))


def test_somebody_elses_failure_is_warned_of(gateway):
    gateway.lab.faults(mfp_error_msg={"times": 1})
    device(gateway).start()
    assert gateway.get(ACCOUNTS).status == 200
    warnings = gateway.told(lambda event: "failed before" in json.dumps(event))
    assert len(warnings) == 1 and "PinCodeAttempts" in json.dumps(warnings)


def test_challenges_without_end(gateway):
    gateway.lab.faults(mfp_endless=True)
    device(gateway).start()
    refused(gateway)
    assert counts(gateway, "mfp_judged_PinCodeAttempts") == (1,)


@pytest.mark.parametrize("fault", ["issuer_hang", "issuer_close", "issuer_reset", "issuer_garbage"])
def test_an_answer_of_which_nothing_is_heard_counts_as_spent(gateway, fault):
    gateway.lab.faults(**{fault: {"on": "mfp_answer"}})
    device(gateway, token={"acquire_timeout": "3s"})
    gateway.config["identities"]["teller"]["network"] = {"timeout": "1s"}
    gateway.start()
    assert gateway.get(ACCOUNTS).status in (503, 504)
    eventually(lambda: "uarantin" in gateway.get(ACCOUNTS).body.decode(), within=20, every=0.2, what="the quarantine")
    gateway.lab.faults(**{fault: False})
    assert "quarantine" in refused(gateway)["type"]
    assert counts(gateway, "mfp_answers") == (0,)
    assert gateway.command("reset", "teller")[0] == 0
    assert gateway.get(ACCOUNTS).status == 200


def test_a_conflict_before_the_challenge_costs_nothing(gateway):
    gateway.lab.faults(mfp_conflict={"on": "mfp_preauthorize", "times": 2})
    device(gateway).start()
    assert gateway.get(ACCOUNTS).status == 200


def test_after_a_conflict_an_answer_that_nobody_judged_goes_again(gateway):
    gateway.lab.faults(mfp_conflict={"on": "mfp_answer", "times": 1})
    device(gateway).start()
    assert gateway.get(ACCOUNTS).status == 200
    assert counts(gateway, "mfp_answers", "mfp_judged_PinCodeAttempts") == (2, 1)


@pytest.mark.parametrize("pin", [PIN, WRONG])
def test_after_a_conflict_an_answer_that_was_judged_does_not_go_again(gateway, pin):
    gateway.lab.faults(mfp_conflict={"on": "mfp_answer", "value": 1})
    device(gateway, pin=pin).start()
    if pin == PIN:
        assert gateway.get(ACCOUNTS).status == 200
    else:
        refused(gateway)
    assert counts(gateway, "mfp_answers", "mfp_judged_PinCodeAttempts") == (1, 1)


def test_conflicts_without_end_end(gateway):
    gateway.lab.faults(mfp_conflict={"on": "mfp_answer"})
    device(gateway).start()
    refused(gateway)
    found = gateway.lab.counts()
    assert found["mfp_answers"] <= 5 and found["mfp_judged_PinCodeAttempts"] == 0


# --- Clients that the server forgot -------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["preauthorize", "authorization", "token"])
def test_a_client_that_the_server_forgot_registers_once_more(gateway, step):
    device(gateway).start()
    assert gateway.get(ACCOUNTS).status == 200
    gateway.lab.faults(mfp_invalid_client_id={"on": step, "times": 1})
    gateway.lab.post("/revoke")
    assert gateway.get(ACCOUNTS).status == 200
    assert counts(gateway, "mfp_register") == (2,)


def test_a_server_that_forgets_every_client_is_not_filled_with_them(gateway):
    gateway.lab.faults(mfp_invalid_client_id={"on": "preauthorize"})
    device(gateway, token={"negative_for": "1s"}).start()
    refused(gateway, times=10)
    assert counts(gateway, "mfp_register") == (2,)


# --- What is not for a gateway to pass ----------------------------------------------------------------------------------


def test_authenticity_is_not_claimed(gateway):
    gateway.lab.faults(mfp_authenticity=True)
    device(gateway).start()
    refused(gateway)
    assert "mode: confidential" in json.dumps(teller(gateway))
    assert counts(gateway, "mfp_preauthorize") == (0,)


@pytest.mark.parametrize("fault", ["mfp_foreign_location", "mfp_redirect_elsewhere", "mfp_redirect_error"])
def test_what_leads_elsewhere_is_not_followed(gateway, fault):
    gateway.lab.faults(**{fault: True})
    device(gateway).start()
    refused(gateway, times=1)
    assert counts(gateway, "mfp_token") == (0,)


# --- Silence ------------------------------------------------------------------------------------------------------------


def test_nothing_that_the_server_says_of_a_failure_leaves(gateway):
    """Its messages hold the PIN that it expects and canaries; none is in an answer, the log, the status, or a command's words."""
    device(gateway, pin=WRONG).start()
    gateway.lab.faults(mfp_error_msg=True)
    problem = refused(gateway)
    gateway.lab.faults(mfp_failures=True)
    gateway.command("reset", "teller")
    other = refused(gateway)
    pages = [gateway.ask(path).body.decode() for path in ("/status", "/metrics", "/", "/readyz")]
    gateway.tells_no_secret("\n".join([json.dumps(problem), json.dumps(other), *pages, gateway.text()]))
    assert len(gateway.lab.get("/secrets")) > 6


def test_explain_and_status_say_it_in_words(gateway):
    device(gateway, pin=WRONG).start()
    refused(gateway)
    status, out, _ = gateway.command("explain", "GET", f"http://{gateway.listen}{ACCOUNTS}")
    assert status == 0 and "mobilefirst" in out
    shown = json.dumps(teller(gateway))
    assert "PinCodeAttempts was refused" in shown, shown


def test_two_tellers_are_two_devices(gateway):
    device(gateway)
    gateway.config["identities"]["other"] = gateway.config["identities"]["teller"]
    gateway.file.write_text(json.dumps(gateway.config))
    status, out, errors = gateway.command("check")
    assert status == 78 and "device: {id: …}" in out + errors
    gateway.config["identities"]["other"] = json.loads(json.dumps(gateway.config["identities"]["teller"]))
    gateway.config["identities"]["other"]["mobilefirst"]["device"] = {"id": "till-2"}
    gateway.file.write_text(json.dumps(gateway.config))
    assert gateway.command("check")[0] == 0


def test_a_pin_that_others_may_write_is_not_sent(gateway):
    device(gateway)
    os.chmod(gateway.folder / "pin", 0o666)
    gateway.start()
    refused(gateway)
    assert counts(gateway, "mfp_answers") == (0,)
    os.chmod(gateway.folder / "pin", 0o600)
    eventually(lambda: gateway.get(ACCOUNTS).status == 200, within=20, every=0.2, what="the PIN in use")


@pytest.mark.parametrize("value", ["", "\n", "two\nlines"])
def test_a_pin_that_is_none_is_not_sent(gateway, value):
    device(gateway)
    (gateway.folder / "pin").write_text(value)
    gateway.start()
    refused(gateway)
    assert counts(gateway, "mfp_answers") == (0,)
