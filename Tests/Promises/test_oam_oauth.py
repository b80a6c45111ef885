"""Promise: callers that know nothing of Oracle's dialects of OAuth reach what stands behind OAM 12c, SIM, IDCS and OAM 11g."""

import base64
import hashlib
import json
import subprocess

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import rsa

from harness import eventually, together

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PATH = "/api/employees/1"


def number(value):
    return base64.urlsafe_b64encode(value.to_bytes((value.bit_length() + 7) // 8, "big")).rstrip(b"=").decode()


def pem(key=KEY):
    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()).decode()


def certified(folder):
    """PEM of a self-signed certificate of the key, and its SHA-1 as x5t writes it."""
    (folder / "k.pem").write_text(pem())
    words = ["openssl", "req", "-x509", "-key", "k.pem", "-subj", "/CN=client", "-days", "2"]
    certificate = subprocess.run(words, check=True, capture_output=True, cwd=folder).stdout
    words = ["openssl", "x509", "-outform", "DER"]
    der = subprocess.run(words, check=True, capture_output=True, input=certificate).stdout
    return certificate.decode(), base64.urlsafe_b64encode(hashlib.sha1(der).digest()).rstrip(b"=").decode()


class Oracle:
    """An `oam_oauth` identity in front of the lab."""

    def __init__(self, gateway):
        self.gateway, self.lab = gateway, gateway.lab
        self.base = f"http://{self.lab.issuer}"
        self.lab.post("/oracle/key", {"n": number(KEY.public_key().public_numbers().n)})
        self.client_id = self.lab.oauth_client_id

    def places(self, dialect):
        return {
            "12c": {"base_url": self.base, "identity_domain": "PayrollDomain"},
            "sim": {"token_url": f"{self.base}/oauth/tokens", "identity_domain": "tenant1"},
            "idcs": {"token_url": f"{self.base}/oauth2/v1/token"},
            "11g": {"service_endpoint": f"{self.base}/ms_oauth/oauth2/endpoints/oauthservice"},
        }[dialect]

    def proof(self, how):
        return {
            "basic": lambda: {"client_secret": self.gateway.secret("client-secret", self.lab.client_secret)},
            "post": lambda: self.proof("basic") | {"client_auth": "post"},
            "private_key_jwt": lambda: {"client_auth": "private_key_jwt"} | self.key(),
            "issued_jwt": lambda: self.proof("basic") | {"client_auth": "issued_jwt"},
            "none": lambda: {"client_auth": "none"},
        }[how]()

    def key(self):
        return {"key": self.gateway.secret("client.pem", pem())}

    def user(self):
        return {"username": self.lab.user, "password": self.gateway.secret("password", self.lab.password)}

    def grant(self, grant):
        if grant == "jwt_bearer":
            return {"grant": grant, "username": self.lab.user} | self.key()
        return {"grant": grant} | (self.user() if grant == "password" else {})

    def serve(self, dialect, *parts, token=None, scopes=("read",), inject=None, **more):
        block = {"dialect": dialect, "client_id": self.client_id} | self.places(dialect)
        for part in parts:
            block |= part
        block |= more
        who = {"oam_oauth": block} | ({"token": token} if token else {})
        route = self.gateway.route("payroll", self.lab.listen) | {"scopes": list(scopes)}
        if inject:
            route["inject"] = inject
        self.gateway.config = self.gateway.frame({"identities": {"payroll": who}, "routes": [route]})
        return self.gateway

    def mobile(self, grant="client_credentials", **more):
        self.client_id = "a1b2c3 mobile"
        return self.serve("11g", {"client_type": "mobile", "grant": grant}, self.user(), **more)


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
    status, _, error = gateway.command("logout", "payroll")
    assert status == 0, error
    assert eventually(lambda: oracle.lab.counts()["oam11g_delete"], what="the token's deletion") == 1


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
