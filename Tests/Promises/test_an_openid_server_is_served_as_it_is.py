"""Promise: against glewlwyd, a server that nobody here wrote, every grant and every proof of the client works, by discovery alone."""

import contextlib

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from glewlwyd import Glewlwyd
from harness import eventually
from peers import resource_server

SECRET = "s3cret+:/x with space"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with contextlib.closing(Glewlwyd(tmp_path_factory.mktemp("glewlwyd"))) as running:
        running.client("billing", SECRET)
        yield running


@pytest.fixture(scope="module")
def api(server):
    with resource_server(server.issuer) as origin:
        yield origin


def start(gateway, server, api, auth="basic", client="billing", **more):
    block = {"issuer": server.issuer, "client_id": client, "client_auth": auth}
    if auth in ("basic", "post", "client_secret_jwt"):
        block["client_secret"] = gateway.secret("client-secret", SECRET)
    if auth == "basic":
        block["basic_encoding"] = "raw"
    identity = {"oauth2": {**block, **more}, "scopes": ["orders.read"]}
    listen = gateway.route("api", api)
    gateway.config = gateway.frame({"identities": {"api": identity}, "routes": [listen]})
    return gateway.start()


def claims(gateway):
    answer = gateway.get("/")
    assert answer.status == 200, f"{answer}\n{gateway.text()}"
    return answer.json


@pytest.mark.parametrize("auth", ["basic", "post", "client_secret_jwt"])
@pytest.mark.parametrize("grant", ["client_credentials", "password"])
def test_by_secret(gateway, server, api, grant, auth):
    more = {"grant": grant}
    if grant == "password":
        more |= {"username": "admin", "password": gateway.secret("user-password", server.password)}
    start(gateway, server, api, auth, **more)
    assert "orders.read" in claims(gateway)["scope"]
    assert len(gateway.events()) > 0


KEYS = {
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
    "RS256": lambda: rsa.generate_private_key(65537, 2048),
    "PS256": lambda: rsa.generate_private_key(65537, 2048),
}


@pytest.mark.parametrize("algorithm", KEYS)
def test_by_key(gateway, server, api, algorithm):
    key = KEYS[algorithm]()
    public = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    name = "machine-" + algorithm.lower()
    server.client(name, "unused-secret-1", pubkey=public.decode(), token_endpoint_auth_method=["private_key_jwt"])
    private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    start(
        gateway,
        server,
        api,
        "private_key_jwt",
        name,
        key=gateway.secret("key", private.decode()),
        signing={"algorithm": algorithm},
    )
    assert claims(gateway)["client_id"] == name


def test_the_password_is_needed_once(gateway, server, api):
    """Refresh tokens roll here: a second use of one would be refused, and so would the password that the file has by then."""
    password = gateway.secret("user-password", server.password)
    start(gateway, server, api, grant="password", username="admin", password=password, issuer=server.hasty_issuer)
    tokens = {claims(gateway)["jti"]}
    gateway.secret("user-password", "another password, which is refused")

    def renewed():
        tokens.add(claims(gateway)["jti"])
        return len(tokens) == 4

    eventually(renewed, within=30, every=0.2, what="three renewals")
    gateway.kill()
    gateway.start()
    eventually(lambda: tokens.add(claims(gateway)["jti"]) or len(tokens) == 6, within=20, every=0.2, what="two more")


def test_a_refusal_without_a_word_is_tried_again_with_pauses(gateway, server, api):
    """glewlwyd answers a wrong secret with a bare 403, as a proxy or a firewall on the way might: nobody is judged by it."""
    start(gateway, server, api, client_secret=gateway.secret("wrong", "wrong-secret-1"))
    for _ in range(3):
        answer = gateway.get("/")
        assert answer.status == 503, answer
        assert answer.problem["type"].endswith("issuer-answer-invalid"), answer
        assert "status 403 without an OAuth error" in answer.problem["detail"] and int(answer.field("Retry-After")) > 0, answer
