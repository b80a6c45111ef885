"""Promise: callers that know nothing of Oracle's dialects of OAuth reach what stands behind OAM 12c, SIM, IDCS and OAM 11g."""

import json

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from jwt.algorithms import RSAAlgorithm

from harness import eventually, together
from oracle import KEY, Oracle, archive, certified, number, pem

PATH = "/api/employees/1"


@pytest.fixture
def oracle(gateway):
    return Oracle(gateway)


FLOWS = [
    (dialect, grant, how)
    for dialect, grants, proofs in [
        ("12c", ["client_credentials", "password", "jwt_bearer"], ["basic", "post", "private_key_jwt"]),
        ("sim", ["client_credentials", "password", "jwt_bearer"], ["basic", "private_key_jwt", "issued_jwt"]),
        ("idcs", ["client_credentials", "password", "jwt_bearer"], ["basic", "post", "private_key_jwt"]),
        ("11g", ["client_credentials", "password", "jwt_bearer"], ["basic", "private_key_jwt"]),
    ]
    for grant in grants
    for how in proofs
] + [("11g", "password", "none"), ("12c", "password", "none")]


@pytest.mark.parametrize("dialect, grant, how", FLOWS)
def test_a_token_is_had_once_and_used_for_all(oracle, dialect, grant, how):
    gateway = oracle.serve(dialect, oracle.proof(how), oracle.grant(grant)).start()
    answers = together(20, lambda i: gateway.get(f"/api/employees/{i}"))
    assert {answer.status for answer in answers} == {200}, oracle.lab.get("/refusals")
    counts = oracle.lab.counts()
    name = {"12c": "oam12c", "11g": "oam11g"}.get(dialect, dialect)
    calls = 2 if how == "issued_jwt" else 1
    assert (counts[f"{name}_token"], counts[f"{name}_token_ok"], counts["challenge"]) == (calls, calls, 0)
    if grant == "jwt_bearer":
        assert counts[f"{name}_user_assertion"] == 1


@pytest.mark.parametrize("dialect", ["12c", "sim", "idcs", "11g"])
def test_an_assertion_about_the_user_may_come_from_elsewhere(oracle, dialect):
    gateway = oracle.serve(
        dialect, oracle.proof("basic"), grant="jwt_bearer", user_assertion=oracle.user_assertion(dialect)
    ).start()
    assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")


@pytest.mark.parametrize("dialect", ["12c", "sim", "idcs", "11g"])
@pytest.mark.parametrize("how", ["basic", "private_key_jwt"])
def test_a_refresh_token_that_was_given_goes_on_for_ever(oracle, dialect, how):
    """Each use replaces it, and what replaced it outlives a kill."""
    first = oracle.first_refresh_token(dialect)
    gateway = oracle.serve(dialect, oracle.proof(how), grant="refresh_token", refresh_token=first).start()
    for _ in range(2):
        assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")
        oracle.lab.post("/revoke")
        assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")
        gateway.kill()
        oracle.lab.post("/revoke")
        gateway.start()
    assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")
    name = {"12c": "oam12c", "11g": "oam11g"}.get(dialect, dialect)
    counts = oracle.lab.counts()
    assert counts[f"{name}_token"] == counts[f"{name}_token_ok"] >= 5 and counts["password_attempts"] == 1


@pytest.mark.parametrize("dialect, where", [("12c", "header"), ("12c", "query"), ("idcs", None)])
def test_logout_revokes_the_refresh_token(oracle, dialect, where):
    url = oracle.base + {"12c": "/oauth2/rest/token/revoke", "idcs": "/oauth2/v1/revoke"}[dialect]
    more = {"domain_in": where} if where else {}
    gateway = oracle.serve(
        dialect, oracle.proof("private_key_jwt"), oracle.grant("password"), revocation_url=url, **more
    )
    gateway.start().warm(PATH)
    status, said, error = gateway.command("logout", "payroll")
    assert status == 0 and "revoked at the issuer" in said + error, (said, error)
    name = {"12c": "oam12c"}.get(dialect, dialect)
    counts = oracle.lab.counts()
    assert (counts[f"{name}_revoke_known"], counts[f"{name}_revoke_unknown"]) == (1, 0), oracle.lab.get("/refusals")


@pytest.mark.parametrize("dialect", ["sim"])
def test_where_nothing_can_be_revoked_logout_says_so(oracle, dialect):
    gateway = oracle.serve(dialect, oracle.proof("basic"), oracle.grant("password")).start().warm(PATH)
    status, said, error = gateway.command("logout", "payroll")
    assert status == 0 and "no way to be told" in said + error, (said, error)


ASKED = [("11g", {}, "oam11g_validate"), ("12c", {}, "oam12c_info"), ("idcs", {}, "idcs_introspect")]


@pytest.mark.parametrize("word, dead", [("active", False), ("inactive", True)])
@pytest.mark.parametrize(
    "dialect, more, step",
    [*ASKED, ("12c", {"domain_in": "query"}, "oam12c_info"), ("mobile", {}, "oam11g_validate")],
)
def test_a_check_asks_the_server_about_its_token(oracle, dialect, more, step, word, dead):
    if dialect == "mobile":
        gateway = oracle.mobile(introspection=True)
    else:
        gateway = oracle.serve(dialect, oracle.proof("basic"), introspection=True, **more)
    oracle.lab.faults(oam_token_dead=dead or None)
    gateway.file.write_text(json.dumps(gateway.config))
    status, said, error = gateway.command("check", "--live", str(gateway.file), config=False)
    assert f"the issuer calls it {word}" in said, (said, error, oracle.lab.get("/refusals"))
    assert (status == 0) == (not dead) and oracle.lab.counts()[step] == 1


# --- 12c -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where, header, query", [("header", 1, 0), ("query", 0, 1), ("both", 1, 0)])
def test_the_identity_domain_goes_where_the_server_wants_it(oracle, where, header, query):
    gateway = oracle.serve("12c", oracle.proof("basic"), domain_in=where).start()
    assert gateway.get(PATH).status == 200
    counts = oracle.lab.counts()
    assert (counts["oam12c_domain_in_header"], counts["oam12c_domain_in_query"]) == (header, query)
    target = [line.split()[2] for line in oracle.lab.get("/requests") if "/oauth2/rest/token" in line]
    assert target == ["/oauth2/rest/token" + ("" if where == "header" else "?identityDomain=PayrollDomain")]


@pytest.mark.parametrize("grant", ["client_credentials", "password", "jwt_bearer"])
def test_grants_may_be_spelt_in_capitals(oracle, grant):
    oracle.lab.faults(oam12c_upper_only=True)
    gateway = oracle.serve("12c", oracle.proof("basic"), oracle.grant(grant), grant_case="upper").start()
    assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")
    assert oracle.lab.counts()["oam12c_upper_case"] == 1


@pytest.mark.parametrize("shape", ["error", "errorCode"])
def test_both_shapes_of_error_are_understood(oracle, shape):
    if shape == "errorCode":
        oracle.lab.faults(oam12c_error_code=True, wrong_password=True)
    else:
        oracle.lab.faults(wrong_password=True)
    gateway = oracle.serve("12c", oracle.proof("basic"), oracle.grant("password")).start()
    for _ in range(5):
        answer = gateway.get(PATH)
        assert answer.status == 503 and "quarantine" in answer.problem["type"], answer
    counts = oracle.lab.counts()
    assert (counts["password_attempts"], counts["oam12c_token"]) == (1, 1)


def test_a_refresh_token_spares_the_password(oracle):
    oracle.lab.faults(token_lifetime_ms=12_000)
    gateway = oracle.serve(
        "12c", oracle.proof("basic"), oracle.grant("password"), token={"refresh_ahead": "90%"}
    ).start()
    assert gateway.get(PATH).status == 200

    def renewed():
        assert gateway.get(PATH).status == 200
        return oracle.lab.counts()["oam12c_token"] > 1

    eventually(renewed, within=20, every=0.1, what="a second token")
    counts = oracle.lab.counts()
    assert (counts["password_attempts"], counts["challenge"]) == (1, 0)


@pytest.mark.parametrize("dialect", ["12c", "11g"])
def test_a_wider_scope_is_fetched_where_it_is_allowed(oracle, dialect):
    gateway = oracle.serve(dialect, oracle.proof("basic"), allowed_scopes=["read", "write"]).start().warm(PATH)
    assert gateway.get("/api/scoped/write/1").status == 200, oracle.lab.get("/refusals")
    assert gateway.get("/api/scoped/admin/1").status == 403
    assert oracle.lab.counts()[f"oam{dialect}_token"] == 2


# --- SIM and IDCS ----------------------------------------------------------------------------------------------------


def test_without_its_header_the_tenant_stands_before_the_user(oracle):
    gateway = oracle.serve(
        "sim", oracle.proof("basic"), oracle.grant("password"), domain_mode="user_prefix"
    ).start()
    assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")
    assert oracle.lab.counts()["password_attempts"] == 1


def test_the_issued_assertion_is_kept_over_a_restart_and_replaced_when_refused(oracle):
    gateway = oracle.serve(
        "sim", oracle.proof("issued_jwt"), oracle.grant("jwt_bearer"), token={"persist": True}
    ).start()
    assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")
    assert gateway.stop() == 0
    oracle.lab.post("/revoke")
    gateway.start()
    assert gateway.get(PATH).status == 200
    counts = oracle.lab.counts()
    assert (counts["sim_client_assertion"], counts["sim_by_issued_client"]) == (1, 2)
    oracle.lab.post("/oracle/forget_clients")
    oracle.lab.post("/revoke")
    assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")
    assert oracle.lab.counts()["sim_client_assertion"] == 2


@pytest.mark.parametrize("dialect", ["sim", "idcs"])
def test_the_certificate_of_the_key_may_be_named(oracle, dialect, tmp_path):
    certificate, thumbprint = certified(tmp_path)
    (tmp_path / "client-certificate.pem").write_text(certificate)
    oracle.lab.post("/oracle/thumbprint", {"x5t": thumbprint})
    assertion = {"x5t": True, "certificate": str(tmp_path / "client-certificate.pem"), "kid": "client-alias"}
    gateway = oracle.serve(dialect, oracle.proof("private_key_jwt"), assertion=assertion).start()
    assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")


PHRASE = "a passphrase, with é"


@pytest.mark.parametrize("kind", ["PKCS#12", "encrypted", "JWK"])
@pytest.mark.parametrize("dialect", ["12c", "sim", "idcs", "11g"])
def test_the_key_may_have_any_common_form(oracle, dialect, kind, tmp_path):
    gateway, more = oracle.gateway, {}
    path = tmp_path / "client-key"
    if kind == "PKCS#12":
        data, thumbprint = archive(tmp_path, PHRASE)
        # Of the certificate that lies in the archive beside the key.
        oracle.lab.post("/oracle/thumbprint", {"x5t": thumbprint})
        more["assertion"] = {"x5t": True}
    elif kind == "encrypted":
        data = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(PHRASE.encode()))
    else:
        data = json.dumps(json.loads(RSAAlgorithm.to_jwk(KEY)) | {"kid": "alias"}).encode()
    if kind != "JWK":
        more["key_password"] = gateway.secret("phrase", PHRASE)
    path.write_bytes(data)
    path.chmod(0o600)
    oracle.serve(dialect, {"client_auth": "private_key_jwt", "key": f"file:{path}"}, more).start()
    assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")


def test_a_key_that_was_replaced_counts_at_once(oracle):
    gateway = oracle.serve("idcs", oracle.proof("private_key_jwt")).start().warm(PATH)
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    oracle.lab.post("/oracle/key", {"n": number(other.public_key().public_numbers().n)})
    gateway.secret("client.pem", pem(other))
    oracle.lab.post("/revoke")
    assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")
    assert oracle.lab.counts()["idcs_token_ok"] == 2


def test_a_revoked_token_is_replaced_unseen(oracle):
    gateway = oracle.serve("idcs", oracle.proof("private_key_jwt")).start().warm(PATH)
    oracle.lab.post("/revoke")
    assert gateway.get(PATH).status == 200
    counts = oracle.lab.counts()
    assert (counts["idcs_token"], counts["challenge"]) == (2, 1)


# --- 11g -------------------------------------------------------------------------------------------------------------


def test_a_resource_may_want_the_token_bare(oracle):
    gateway = oracle.serve("11g", oracle.proof("basic"), resource_token_prefix="").start()
    assert gateway.get("/bare/employees/1").status == 200


def test_a_wrong_password_of_11g_is_sent_once(oracle):
    oracle.lab.faults(wrong_password=True)
    gateway = oracle.serve("11g", oracle.proof("basic"), oracle.grant("password")).start()
    for _ in range(5):
        assert gateway.get(PATH).status == 503
    assert oracle.lab.counts()["password_attempts"] == 1


def test_logout_deletes_the_token_by_the_action_of_11g(oracle):
    gateway = oracle.serve("11g", oracle.proof("basic"), oracle.grant("password")).start().warm(PATH)
    status, said, error = gateway.command("logout", "payroll")
    assert status == 0 and "revoked at the issuer" in said + error, (said, error)
    # The access token, then the refresh token.
    assert oracle.lab.counts()["oam11g_delete"] == 2 and oracle.lab.counts()["refusals"] == 0


def test_logout_deletes_a_token_that_nothing_renews(oracle):
    gateway = oracle.serve("11g", oracle.proof("private_key_jwt")).start().warm(PATH)
    status, said, error = gateway.command("logout", "payroll")
    assert status == 0 and "revoked at the issuer" in said + error, (said, error)
    assert oracle.lab.counts()["oam11g_delete"] == 1


# --- 11g mobile ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grant", ["client_credentials", "password", "jwt_bearer"])
def test_a_mobile_client_registers_once(oracle, grant):
    gateway = oracle.mobile(grant).start()
    answers = together(20, lambda i: gateway.get(f"/api/employees/{i}"))
    assert {answer.status for answer in answers} == {200}, oracle.lab.get("/refusals")
    counts = oracle.lab.counts()
    assert (counts["oam11g_profile"], counts["oam11g_pre"], counts["oam11g_register"]) == (1, 1, 1)
    assert counts["password_attempts"] == (2 if grant == "password" else 1)
    assert gateway.stop() == 0
    oracle.lab.post("/revoke")
    gateway.start()
    assert gateway.get(PATH).status == 200
    counts = oracle.lab.counts()
    assert (counts["oam11g_pre"], counts["oam11g_register"]) == (1, 1)


def test_the_server_may_keep_the_user_itself(oracle):
    oracle.lab.faults(oam_server_session=True)
    gateway = oracle.mobile("jwt_bearer").start()
    assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")
    assert oracle.lab.counts()["oam11g_device_store"] == 1


@pytest.mark.parametrize("kept, store, times", [(True, "on", 1), (True, "off", 0), (False, "off", 0)])
def test_whether_the_server_keeps_the_user_may_be_said(oracle, kept, store, times):
    oracle.lab.faults(oam_server_session=kept or None)
    gateway = oracle.mobile("jwt_bearer", server_device_store=store).start()
    assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")
    counts = oracle.lab.counts()
    assert counts["oam11g_device_store"] == times
    # A user assertion that the registration did not bring is had for the password.
    assert counts["oam11g_user_assertion"] == (1 if kept and store == "off" else 0)


def test_a_mobile_client_may_be_told_what_the_profile_says(oracle):
    gateway = oracle.mobile(fetch_app_profile=False, token_path="tokens-of-profile").start()
    assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")
    counts = oracle.lab.counts()
    assert (counts["oam11g_profile"], counts["oam11g_register"]) == (0, 1)


def test_logout_of_a_mobile_client_deletes_its_token(oracle):
    """As the client that it was given to, which is forgotten by then."""
    gateway = oracle.mobile("password").start()
    assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")
    status, said, error = gateway.command("logout", "payroll")
    assert status == 0 and "revoked at the issuer" in said + error, (said, error, oracle.lab.get("/refusals"))
    assert oracle.lab.counts()["oam11g_delete"] == 1
    # What comes after is another registration.
    assert gateway.get(PATH).status == 200
    assert oracle.lab.counts()["oam11g_register"] == 2


def test_a_user_assertion_that_has_run_out_is_replaced(oracle):
    gateway = oracle.mobile("jwt_bearer").start().warm(PATH)
    oracle.lab.post("/oracle/forget_users")
    oracle.lab.post("/revoke")
    assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")
    counts = oracle.lab.counts()
    assert (counts["oam11g_user_assertion"], counts["oam11g_register"]) == (1, 1)


@pytest.mark.parametrize("renewable", [True, False])
def test_a_client_assertion_that_is_refused_is_renewed_or_had_again(oracle, renewable):
    gateway = oracle.mobile().start()
    assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")
    oracle.lab.post("/oracle/forget_clients", {"renewals": not renewable})
    oracle.lab.post("/revoke")
    assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")
    counts = oracle.lab.counts()
    assert (counts["oam11g_renew"], counts["oam11g_register"]) == ((1, 1) if renewable else (0, 2))


def test_a_wrong_password_registers_nothing_and_is_sent_once(oracle):
    oracle.lab.faults(wrong_password=True)
    gateway = oracle.mobile().start()
    for _ in range(5):
        answer = gateway.get(PATH)
        assert answer.status == 503 and "quarantine" in answer.problem["type"], answer
    counts = oracle.lab.counts()
    assert (counts["password_attempts"], counts["oam11g_register"]) == (1, 0)


def test_the_profile_cannot_send_the_password_elsewhere(oracle):
    oracle.lab.faults(oam_profile_elsewhere=True)
    gateway = oracle.mobile().start()
    answer = gateway.get(PATH)
    assert answer.status == 503 and "another server" in answer.problem["detail"], answer
    assert oracle.lab.counts()["password_attempts"] == 0


def test_oam_credentials_are_had_where_somebody_dares(oracle):
    gateway = oracle.mobile("oam_credentials", experimental=True, inject={"cookie": "ObSSOCookie"})
    gateway.start()
    answer = gateway.get("/hr/rest/open/headers")
    assert answer.status == 200, oracle.lab.get("/refusals")
    cookies = [value for name, value in answer.json["headers"] if name.lower() == "cookie"]
    assert len(cookies) == 1 and cookies[0].startswith("ObSSOCookie=")
    assert oracle.lab.counts()["oam11g_oam_credentials"] == 1


def test_a_client_assertion_that_has_ended_is_renewed_without_the_password(oracle):
    oracle.lab.faults(oam_client_life_s={"value": 1, "times": 1})
    gateway = oracle.mobile().start()
    assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")

    def renewed():
        oracle.lab.post("/revoke")
        assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")
        return oracle.lab.counts()["oam11g_renew"]

    eventually(renewed, within=15, every=0.3, what="a renewed registration")
    assert oracle.lab.counts()["password_attempts"] == 1


# --- Hostile answers -------------------------------------------------------------------------------------------------

STEPS = ["oam12c_token", "sim_token", "idcs_token", "oam11g_token", "oam11g_profile"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    "fault", ["html", "empty", "empty_object", "crlf_token", "huge_json", "redirect", "garbage", "close", "status"]
)
def test_an_answer_that_is_none_is_an_error_and_no_token(oracle, step, fault):
    if step.startswith("oam11g"):
        gateway = oracle.mobile("jwt_bearer")
    else:
        dialect = {"oam12c_token": "12c"}.get(step, step.split("_")[0])
        how = "issued_jwt" if dialect == "sim" else "basic"
        gateway = oracle.serve(dialect, oracle.proof(how), oracle.grant("jwt_bearer"))
    oracle.lab.faults(**{f"issuer_{fault}": {"on": step, "value": 70_000 if fault == "huge_json" else 503}})
    gateway.start()
    answer = gateway.get(PATH)
    assert answer.status in (502, 503) and answer.problem["route"] == "payroll", answer
    assert oracle.lab.counts()["password_attempts"] == 0
