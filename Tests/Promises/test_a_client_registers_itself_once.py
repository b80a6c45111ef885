"""Promise: a client without an id gets one from the server (RFC 7591), once, and keeps it; a check may ask about its token (RFC 7662)."""

import contextlib
import json
import subprocess

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from harness import Provider, call, eventually, together


@pytest.fixture(scope="module")
def server():
    with contextlib.closing(Provider("registration.py")) as running:
        yield running


@pytest.fixture
def provider(server):
    server.post("reset")
    server.post("registration")
    server.post("faults", {"metadata": server.endpoints})
    return server


def configured(gateway, provider, auth="post", registration=None, **more):
    block = {
        "issuer": provider.issuer,
        "client_auth": auth,
        "registration": {"metadata": {"client_name": "edge"}, **(registration or {})},
        **more,
    }
    if auth == "basic":
        block["basic_encoding"] = provider.basic_encoding
    return gateway.provider(provider, api={"oauth2": block})


def start(gateway, provider, **more):
    return configured(gateway, provider, **more).start()


def claims(gateway):
    answer = call(gateway.listens["api"])
    assert answer.status == 200, f"{answer}\n{gateway.text()}"
    return answer.json


@pytest.mark.parametrize("auth", ["basic", "post", "none"])
def test_once_for_all_callers_and_starts(gateway, provider, auth):
    more = {}
    if auth == "none":
        more = {"grant": "password", "username": "anna", "password": gateway.secret("anna", "pa ss+wörd&1")}
    start(gateway, provider, auth=auth, **more)
    assert {answer.status for answer in together(8, lambda _: call(gateway.listens["api"]))} == {200}
    first = claims(gateway)
    gateway.kill()
    gateway.start()
    provider.post("revoke_access", {"jti": [first["jti"]]})
    again = claims(gateway)
    assert (again["client_id"], again["jti"] != first["jti"]) == (first["client_id"], True)
    [registered] = provider.steps("registered")
    assert registered["metadata"]["client_name"] == "edge" and registered["id"] == first["client_id"]
    assert more.get("grant", "client_credentials") in registered["metadata"]["grant_types"]


def test_what_was_given_is_sealed(gateway, provider):
    start(gateway, provider)
    name = claims(gateway)["client_id"]
    stored = b"".join(path.read_bytes() for path in gateway.store.parent.glob(gateway.store.name + "*"))
    assert name.encode() not in stored and name not in gateway.text()


def test_a_server_that_forgot_the_client_registers_it_again(gateway, provider):
    start(gateway, provider)
    first = claims(gateway)
    provider.post("registration", {"forget": True})
    provider.post("revoke_access", {"jti": [first["jti"]]})
    assert claims(gateway)["client_id"] != first["client_id"]
    assert len(provider.steps("registered")) == 2 and len(provider.steps("refused")) == 1


def test_a_secret_that_has_ended_is_replaced_before_it_is_sent(gateway, provider):
    provider.post("registration", {"expires": 2})
    start(gateway, provider)
    first = claims(gateway)

    def renewed():
        provider.post("revoke_access", {"jti": [claims(gateway)["jti"]]})
        return claims(gateway)["client_id"] != first["client_id"]

    eventually(renewed, within=10, every=0.3, what="another registration")
    assert not provider.steps("refused")


def test_an_initial_access_token_is_shown_once(gateway, provider):
    provider.post("registration", {"token": "let-me-in"})
    start(gateway, provider, registration={"initial_access_token": gateway.secret("initial", "let-me-in")})
    assert claims(gateway)["client_id"] and "let-me-in" not in gateway.text()


def test_a_refused_one_stays_home(gateway, provider):
    provider.post("registration", {"token": "another"})
    start(gateway, provider, registration={"initial_access_token": gateway.secret("initial", "wrong")})
    answers = [call(gateway.listens["api"]) for _ in range(4)]
    assert {answer.status for answer in answers} == {503} and not provider.steps("registered")
    assert answers[-1].problem["type"] == "urn:cardea:problems/credential-quarantined"


def test_a_software_statement_goes_along(gateway, provider):
    key = ec.generate_private_key(ec.SECP256R1())
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    public = key.public_key().public_bytes(serialization.Encoding.PEM, kind)
    provider.post("registration", {"statement_key": public.decode()})
    statement = jwt.encode({"software_id": "cardea", "client_name": "from the statement"}, key, algorithm="ES256")
    start(gateway, provider, registration={"software_statement": gateway.secret("statement", statement)})
    assert claims(gateway)["client_id"]
    # Its claims count before ours (RFC 7591 section 3.1.1).
    assert provider.steps("registered")[0]["metadata"]["client_name"] == "from the statement"


def test_where_an_answer_points_is_not_followed(gateway, provider):
    """The answer names a place elsewhere and a token for it."""
    start(gateway, provider)
    claims(gateway)
    gateway.stop()
    assert provider.steps("registered") and not provider.steps("stolen")


def test_a_refusal_says_why(gateway, provider):
    provider.post("registration", {"refuse": 400})
    start(gateway, provider)
    answer = call(gateway.listens["api"])
    assert (answer.status, answer.problem["type"]) == (503, "urn:cardea:problems/identity-misconfigured"), answer
    assert "registration: status 400" in answer.problem["detail"]


@pytest.mark.parametrize("auth", ["post", "none"])
def test_a_logout_revokes_as_the_client_that_was_registered(gateway, provider, auth):
    """By then it is forgotten here; the next one is another."""
    password = gateway.secret("anna", "pa ss+wörd&1")
    start(gateway, provider, auth=auth, grant="password", username="anna", password=password)
    first = claims(gateway)["client_id"]
    status, said, error = gateway.command("logout", "api")
    assert status == 0 and "revoked at the issuer" in said + error, (said, error)
    assert len(provider.steps("revoked")) == 1 and claims(gateway)["client_id"] != first


def test_a_check_asks_about_its_token(gateway, provider):
    configured(gateway, provider, introspection=True)
    gateway.file.write_text(json.dumps(gateway.config))
    command = [gateway.binary, "check", "--live", str(gateway.file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=gateway.folder)
    assert done.returncode == 0 and "the issuer calls it active" in done.stdout, done
    assert len(provider.steps("registered")) == 1 and len(provider.steps("introspected")) == 1
