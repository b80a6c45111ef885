"""Promise: callers that know nothing of Oracle Mobile Hub reach its APIs, with a key, a user or a consumer's token."""

import json

import pytest

from harness import eventually, together

BACKENDS = ["5d0c7c2a-0001-4b6e-9d55-lab000000001", "5d0c7c2a-0002-4b6e-9d55-lab000000002"]
DOMAIN = "acme4711"
ORDERS = "/mobile/custom/orders"
TRY = f"{ORDERS}/employees/1"


def hub(gateway, block, token=None, route=None, changes=None):
    base = {"base_url": f"http://{gateway.lab.issuer}", "backend_id": BACKENDS[0]}
    who = {"mobile_hub": base | block} | ({"token": token} if token else {})
    to = gateway.route("orders", gateway.lab.listen) | (route or {})
    gateway.config = gateway.frame({"identities": {"orders": who}, "routes": [to]} | (changes or {}))
    return gateway


def anonymous(gateway, block=None, **rest):
    key = gateway.secret("anonymous-key", gateway.lab.anonymous_key)
    return hub(gateway, {"method": "basic_anonymous", "anonymous_key": key} | (block or {}), **rest)


def user(gateway, block=None, password=None, **rest):
    secret = gateway.secret("password", password or gateway.lab.password)
    return hub(gateway, {"method": "basic_user", "username": gateway.lab.user, "password": secret} | (block or {}), **rest)


def client(gateway, generation="idcs"):
    place = {"idcs": "/mobile-idcs/oauth2/v1/token", "classic": "/classic/oauth2/tokens"}[generation]
    block = {
        "generation": generation,
        "token_url": f"http://{gateway.lab.issuer}{place}",
        "client_id": gateway.lab.oauth_client_id,
        "client_secret": gateway.secret("client-secret", gateway.lab.client_secret),
    }
    return block | ({"identity_domain": DOMAIN} if generation == "classic" else {})


def consumer(gateway, block=None, generation="idcs", **rest):
    return hub(gateway, client(gateway, generation) | {"method": "oauth_client"} | (block or {}), **rest)


def as_user(gateway, block=None, generation="idcs", password=None, **rest):
    secret = gateway.secret("password", password or gateway.lab.password)
    own = {"method": "oauth_password", "username": gateway.lab.user, "password": secret}
    return hub(gateway, client(gateway, generation) | own | (block or {}), **rest)


def reached(answer):
    return answer.status, answer.field("X-Lab-Backend"), answer.field("X-Lab-User")


def problem(answer):
    return answer.problem["type"].rpartition(":")[2].rpartition("/")[2]


# --- Basic ------------------------------------------------------------------------------------------------------------


def test_the_anonymous_key_goes_as_it_is_shown(gateway):
    anonymous(gateway).start()
    answers = together(20, lambda i: gateway.get(f"{ORDERS}/employees/{i}"))
    assert {reached(answer) for answer in answers} == {(200, BACKENDS[0], "anonymous")}
    assert gateway.lab.counts()["challenge"] == 0


def test_a_key_that_cannot_be_one_is_not_sent(gateway):
    anonymous(gateway)
    (gateway.folder / "anonymous-key").write_text("Basic abcdefgh")
    gateway.start()
    assert gateway.get(TRY).status == 503
    assert gateway.lab.counts()["protected_requests"] == 0


def test_a_user_is_logged_in_with_every_request(gateway):
    user(gateway).start()
    for number in range(3):
        assert reached(gateway.get(f"{ORDERS}/employees/{number}")) == (200, BACKENDS[0], gateway.lab.user)
    assert gateway.lab.counts()["password_attempts"] == 3


@pytest.mark.parametrize("kind", [anonymous, user, consumer])
def test_callers_choose_neither_credential_nor_backend(gateway, kind):
    kind(gateway).start()
    lies = {"Authorization": "Bearer of-the-caller", "oracle-mobile-backend-id": BACKENDS[1]}
    assert reached(gateway.get(TRY, headers=lies))[:2] == (200, BACKENDS[0])
    seen = gateway.get(f"{ORDERS}/headers", headers=lies).json["headers"]
    found = [(name, value) for name, value in seen if name.lower() == "oracle-mobile-backend-id"]
    assert found == ([] if kind is consumer else [("Oracle-Mobile-Backend-ID", BACKENDS[0])])


def test_a_backend_that_is_not_there_is_the_callers_to_see(gateway):
    anonymous(gateway, {"backend_id": "another"}).start()
    for _ in range(3):
        answer = gateway.get(TRY)
        assert (answer.status, answer.json["o:errorCode"]) == (403, "MOBILE-16002")


def test_a_refused_password_is_sent_once_by_any_number_of_callers_and_starts(gateway):
    user(gateway, password="not-the-password").start()
    answers = together(30, lambda i: gateway.get(f"{ORDERS}/employees/{i}"))
    assert {answer.status for answer in answers} <= {502, 503}
    for way in ("stop", "kill"):
        getattr(gateway, way)()
        gateway.start()
        assert problem(gateway.get(TRY)) == "credential-quarantined"
    assert gateway.lab.counts()["password_rejected"] == 1
    (gateway.folder / "password").write_text(gateway.lab.password)
    eventually(lambda: gateway.get(TRY).status == 200, within=20, every=0.2, what="the new password in use")
    assert gateway.lab.counts()["password_rejected"] == 1


def test_the_first_refusal_closes_a_password_that_has_worked(gateway):
    user(gateway).start().warm(TRY)
    gateway.lab.post("/password", {"password": "changed-elsewhere"})
    assert gateway.get(TRY).status == 502
    eventually(lambda: problem(gateway.get(f"{ORDERS}/employees/2")) == "credential-quarantined", what="the quarantine")
    before = gateway.lab.counts()["password_rejected"]
    assert {gateway.get(f"{ORDERS}/employees/{number}").status for number in range(20)} == {503}
    assert gateway.lab.counts()["password_rejected"] == before == 1
    assert gateway.command("reset", "orders")[0] == 0
    gateway.get(TRY)
    assert gateway.lab.counts()["password_rejected"] == before + 1


def test_one_path_that_is_closed_to_the_anonymous_user_does_not_close_the_others(gateway):
    anonymous(gateway).start().warm(TRY)
    gateway.lab.faults(reject_tokens={"path": f"{ORDERS}/employees/7"})
    for _ in range(3):
        assert gateway.get(f"{ORDERS}/employees/7").status == 502
        assert gateway.get(TRY).status == 200


# --- OAuth consumer ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("generation", ["idcs", "classic"])
@pytest.mark.parametrize("kind, name", [(consumer, "consumer"), (as_user, "svc-hr")])
def test_one_token_serves_all(gateway, kind, name, generation):
    kind(gateway, generation=generation).start()
    answers = together(30, lambda i: gateway.get(f"{ORDERS}/employees/{i}"))
    assert {reached(answer) for answer in answers} == {(200, BACKENDS[0], name)}
    counts = gateway.lab.counts()
    assert (counts["hub_token"] + counts["hub_classic_token"], counts["challenge"]) == (1, 0)
    assert counts["password_attempts"] == (1 if kind is as_user else 0)


def test_a_slow_token_endpoint_is_asked_once_for_fifty(gateway):
    consumer(gateway).start()
    gateway.lab.faults(issuer_slow_ms={"value": 1500, "on": "hub_token"})
    answers = together(50, lambda i: gateway.get(f"{ORDERS}/employees/{i}"))
    assert {answer.status for answer in answers} == {200}
    assert gateway.lab.counts()["hub_token"] == 1


def test_a_refused_token_is_replaced_unseen(gateway):
    as_user(gateway).start().warm(TRY)
    gateway.lab.faults(reject_tokens={"times": 1})
    assert gateway.get(TRY).status == 200
    counts = gateway.lab.counts()
    # By the grant and not by the refresh token that came with the first: the service is not known to take one.
    assert (counts["hub_token"], counts["challenge"], counts["password_attempts"]) == (2, 1, 2)


def test_a_token_that_is_always_refused_is_not_asked_for_again_and_again(gateway):
    consumer(gateway).start()
    gateway.lab.faults(reject_tokens=True)
    for _ in range(5):
        assert gateway.get(TRY).status == 502
    assert gateway.lab.counts()["hub_token"] <= 2


def test_a_role_that_is_missing_is_the_callers_to_see(gateway):
    consumer(gateway).start()
    for _ in range(3):
        answer = gateway.get("/mobile/custom/closed/employees/1")
        assert (answer.status, answer.json["o:errorCode"]) == (403, "MOBILE-28416")
    assert gateway.lab.counts()["hub_token"] == 1


@pytest.mark.parametrize("scope", ["{base}/urn:opc:resource:consumer::all", "http://127.0.0.1urn:opc:resource:consumer::all"])
def test_another_scope_is_believed_and_refused(gateway, scope):
    """With a separator, without the port: what the server refuses shows that the scope of its own is exact."""
    consumer(gateway, {"scope": scope.format(base=f"http://{gateway.lab.issuer}")}).start()
    assert gateway.get(TRY).status == 503
    assert "invalid_scope" in gateway.lab.get("/refusals")[0]


def test_a_domain_that_is_wrong_is_asked_once(gateway):
    consumer(gateway, {"identity_domain": "another"}, generation="classic").start()
    for _ in range(5):
        assert gateway.get(TRY).status == 503
    assert gateway.lab.counts()["hub_classic_token"] == 1


@pytest.mark.parametrize("faults", [{"no_expires_in": True}, {"hub_expires_string": True}])
def test_a_life_may_be_missing_or_a_text(gateway, faults):
    consumer(gateway).start()
    gateway.lab.faults(**faults)
    for _ in range(3):
        assert gateway.get(TRY).status == 200
    assert gateway.lab.counts()["hub_token"] == 1


def test_a_token_endpoint_in_trouble_is_asked_twice_more(gateway):
    consumer(gateway).start()
    gateway.lab.faults(issuer_status={"value": 503, "on": "hub_token", "times": 2})
    assert gateway.get(TRY).status == 200
    assert gateway.lab.counts()["hub_token"] == 3


def test_a_password_is_not_sent_again_to_a_token_endpoint_in_trouble(gateway):
    as_user(gateway).start()
    gateway.lab.faults(issuer_close={"on": "hub_token"})
    for _ in range(3):
        assert gateway.get(TRY).status == 503
    assert len([line for line in gateway.lab.get("/requests") if "/oauth2/v1/token" in line]) == 1


def test_a_wrong_password_of_a_token_is_sent_once(gateway):
    as_user(gateway, password="not-the-password").start()
    for _ in range(5):
        assert gateway.get(TRY).status == 503
    gateway.kill()
    gateway.start()
    assert problem(gateway.get(TRY)) == "credential-quarantined"
    assert gateway.lab.counts()["password_rejected"] == 1


def test_the_backend_is_named_beside_a_token_if_asked(gateway):
    consumer(gateway, {"send_backend_id_with_bearer": True}).start()
    seen = gateway.get(f"{ORDERS}/headers").json["headers"]
    assert ["Oracle-Mobile-Backend-ID", BACKENDS[0]] in seen


# --- What is kept -----------------------------------------------------------------------------------------------------


def test_tokens_outlive_a_restart_only_if_asked(gateway):
    for keeps in (False, True):
        gateway.lab.reset()
        consumer(gateway, {"persist_tokens": keeps}).start().warm(TRY)
        gateway.kill()
        gateway.start()
        assert gateway.get(TRY).status == 200
        assert gateway.lab.counts()["hub_token"] == (1 if keeps else 2)
        gateway.stop()
        gateway.store.unlink()


# --- What check says --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "block, said",
    [
        ({"client_id": "x"}, "'client_id' of identity 'orders' (mobile_hub) is not used by 'method: basic_anonymous'"),
        ({"persist_tokens": True}, "'persist_tokens' of identity 'orders' (mobile_hub) is not used by"),
        ({"method": "oauth_client"}, "needs 'token_url' for 'method: oauth_client'"),
        ({"method": "token_exchange", "exchange_endpoint": "auth_token"}, "needs 'client_id' for 'exchange_endpoint: auth_token'"),
        ({"base_url": "http://mobile.example.com"}, "'base_url'"),
    ],
)
def test_keys_of_another_method_are_refused(gateway, block, said):
    anonymous(gateway, block)
    gateway.file.write_text(json.dumps(gateway.config))
    status, out, errors = gateway.command("check")
    assert status == 78 and said in out + errors, out + errors


def test_routes_may_not_edit_what_the_identity_writes(gateway):
    anonymous(gateway, route={"headers": {"set": {"Oracle-Mobile-Backend-ID": "x"}}})
    gateway.file.write_text(json.dumps(gateway.config))
    status, out, errors = gateway.command("check")
    assert status == 78 and "which identity 'orders' writes" in out + errors
