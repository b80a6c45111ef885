"""Promise: callers that know nothing of MobileFirst reach its adapters, through a confidential client."""

import json

import pytest

from harness import eventually, together

ADAPTERS = "/mfp/api/adapters"


def confidential(gateway, identity=None, scopes=("accountsRead",), token=None, route=None, secret=None):
    lab = gateway.lab
    block = {
        "base": f"http://{lab.issuer}/mfp/api",
        "client_id": "payroll-gateway",
        "client_secret": gateway.secret("client-secret", secret or lab.api_key),
        **(identity or {}),
    }
    who = {"mobilefirst": block} | ({"token": token} if token else {})
    to = gateway.route("teller", lab.listen) | {"scopes": list(scopes)} | (route or {})
    gateway.config = gateway.frame({"identities": {"teller": who}, "routes": [to]})
    return gateway


def test_a_token_is_had_once_and_used_for_all(gateway):
    confidential(gateway).start()
    answers = together(30, lambda i: gateway.get(f"{ADAPTERS}/accountsRead/employees/{i}"))
    assert {answer.status for answer in answers} == {200}
    assert [answer.json["id"] for answer in answers] == list(range(30))
    counts = gateway.lab.counts()
    assert (counts["mfp_token"], counts["mfp_token_ok"], counts["challenge"]) == (1, 1, 0)


def test_the_scope_may_be_left_out(gateway):
    confidential(gateway, scopes=()).start()
    assert gateway.get(f"{ADAPTERS}/any/employees/1").status == 200


def test_a_scope_that_is_allowed_is_learned(gateway):
    confidential(gateway, identity={"allowed_scopes": ["accountsWrite"]}, scopes=()).start()
    assert gateway.get(f"{ADAPTERS}/accountsWrite/employees/1").status == 200
    for path in ("accountsWrite", "any"):
        assert gateway.get(f"{ADAPTERS}/{path}/employees/2").status == 200
    counts = gateway.lab.counts()
    assert (counts["mfp_token"], counts["challenge"]) == (2, 1)


def test_a_scope_that_is_not_allowed_is_never_asked_for(gateway):
    confidential(gateway, identity={"allowed_scopes": ["accountsWrite"]}).start()
    for _ in range(3):
        answer = gateway.get(f"{ADAPTERS}/audit/employees/1")
        assert answer.status == 403
        assert 'scope="RegisteredClient audit"' in answer.field("WWW-Authenticate")
    assert gateway.lab.counts()["mfp_token"] == 1


def test_a_revoked_token_is_replaced_unseen(gateway):
    confidential(gateway).start().warm(f"{ADAPTERS}/accountsRead/employees/1")
    gateway.lab.post("/revoke")
    assert gateway.get(f"{ADAPTERS}/accountsRead/employees/1").status == 200
    counts = gateway.lab.counts()
    assert (counts["mfp_token"], counts["challenge"]) == (2, 1)


def test_a_refusal_in_the_applications_own_words_is_the_callers(gateway):
    confidential(gateway).start()
    for _ in range(2):
        answer = gateway.get(f"{ADAPTERS}/private/employees/1")
        assert (answer.status, answer.json["errorCode"]) == (403, "not yours")
    assert gateway.lab.counts()["mfp_token"] == 1


def test_a_conflict_is_met_with_patience(gateway):
    confidential(gateway).start()
    gateway.lab.faults(mfp_conflict={"on": "adapter", "times": 3})
    assert gateway.get(f"{ADAPTERS}/accountsRead/employees/7").json["id"] == 7
    counts = gateway.lab.counts()
    assert (counts["mfp_conflicts"], counts["mfp_token"]) == (3, 1)


def test_a_conflict_without_end_is_the_callers_in_the_end(gateway):
    confidential(gateway).start()
    gateway.lab.faults(mfp_conflict={"on": "adapter"})
    answer = gateway.get(f"{ADAPTERS}/accountsRead/employees/7")
    assert (answer.status, answer.field("MFP-Conflict")) == (409, "true")
    assert gateway.lab.counts()["mfp_conflicts"] == 7


def test_a_post_is_sent_again_after_a_conflict_only_if_the_operator_says_so(gateway):
    path = f"{ADAPTERS}/accountsRead/orders"
    confidential(gateway).start()
    gateway.lab.faults(mfp_conflict={"on": "adapter", "times": 1})
    assert gateway.call("POST", path, b"one").status == 409
    assert gateway.call("POST", path, b"one").status == 200
    gateway.stop()
    confidential(gateway, identity={"conflict_replay": "all"}).start()
    gateway.lab.faults(mfp_conflict={"on": "adapter", "times": 2})
    answer = gateway.call("POST", path, b"two")
    assert (answer.status, answer.json["length"]) == (200, 3)


def test_a_conflict_of_the_application_is_the_callers(gateway):
    confidential(gateway).start()
    gateway.lab.faults(mfp_plain_conflict=True)
    assert gateway.get(f"{ADAPTERS}/accountsRead/employees/7").status == 409
    assert len([line for line in gateway.lab.get("/requests") if "/adapters/" in line]) == 1


def test_a_conflict_of_the_token_endpoint_is_met_with_patience_too(gateway):
    confidential(gateway).start()
    gateway.lab.faults(mfp_conflict={"on": "mfp_token", "times": 2})
    assert gateway.get(f"{ADAPTERS}/accountsRead/employees/7").status == 200
    assert gateway.lab.counts()["mfp_token"] == 3


def test_short_tokens_are_renewed_before_they_end(gateway):
    gateway.lab.faults(token_lifetime_ms=12_000)
    confidential(gateway, token={"refresh_ahead": "90%"}).start()
    path = f"{ADAPTERS}/accountsRead/employees/1"
    assert gateway.get(path).status == 200

    def renewed():
        assert gateway.get(path).status == 200
        return gateway.lab.counts()["mfp_token"] > 1

    eventually(renewed, within=20, every=0.1, what="a second token")
    assert gateway.lab.counts()["challenge"] == 0


def test_a_wrong_secret_is_not_hammered(gateway):
    confidential(gateway, secret="another-secret").start()
    for _ in range(10):
        answer = gateway.get(f"{ADAPTERS}/accountsRead/employees/1")
        assert answer.status == 503 and "quarantine" in answer.problem["type"]
    assert gateway.lab.counts()["mfp_token"] == 1
    (gateway.folder / "client-secret").write_text(gateway.lab.api_key)
    eventually(
        lambda: gateway.get(f"{ADAPTERS}/accountsRead/employees/1").status == 200,
        within=20,
        every=0.2,
        what="the new secret in use",
    )


def test_tokens_survive_a_restart_and_an_outage(gateway):
    confidential(gateway).start().warm(f"{ADAPTERS}/accountsRead/employees/1")
    gateway.kill()
    gateway.lab.post("/issuer/stop")
    gateway.start()
    assert gateway.get(f"{ADAPTERS}/accountsRead/employees/1").status == 200


def test_the_keys_of_one_mode_are_refused_in_the_other(gateway):
    confidential(gateway, identity={"application": "com.acme.teller"})
    gateway.file.write_text(json.dumps(gateway.config))
    status, out, errors = gateway.command("check")
    assert status == 78 and "'application'" in out + errors and "mode: registered" in out + errors


@pytest.mark.parametrize("client", ["test", "admin", "push"])
def test_the_clients_that_every_server_ships_with_are_refused(gateway, client):
    confidential(gateway, identity={"client_id": client, "base": "https://mfp.example.com/mfp/api"})
    gateway.file.write_text(json.dumps(gateway.config))
    status, out, errors = gateway.command("check")
    assert status == 78 and "ships with" in out + errors
