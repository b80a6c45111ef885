"""Promise: whatever grant the authorization server wants, the caller sends a plain request and gets its answer."""

import base64
import time
import uuid

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from harness import call, eventually

ANNA = "pa ss+wörd&1"
SECRET = "s3cr:t+/ é&="
URN = "urn:ietf:params:oauth:"
KEY = ec.generate_private_key(ec.SECP256R1())
PUBLIC = (
    KEY.public_key()
    .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    .decode()
)


def claims(gateway, name="api", path="/"):
    answer = call(gateway.listens[name], path=path)
    assert answer.status == 200, f"{answer}\n{gateway.text()}"
    return answer.json


def block(gateway, provider, grant, auth="basic", **more):
    """An oauth2 identity and, on the server, its client."""
    names = {"basic": "client_secret_basic", "post": "client_secret_post"}
    grants = [URN + "grant-type:" + grant.replace("_", "-") if grant in URNS else grant, "refresh_token"]
    key = [{"alg": "ES256", "key": PUBLIC}]
    provider.client("cli ent", secret=SECRET, auth=names.get(auth, auth), grants=grants, keys=key)
    result = {"token_url": provider.issuer + "/token", "grant": grant, "client_id": "cli ent", "client_auth": auth}
    if auth == "basic":
        result["basic_encoding"] = provider.basic_encoding
    if auth in names:
        result["client_secret"] = gateway.secret("client-secret", SECRET)
    return {**result, **more}


URNS = ("jwt_bearer", "saml2_bearer", "token_exchange")


@pytest.mark.parametrize("auth", ["basic", "post", "none"])
def test_password(gateway, provider, auth):
    password = gateway.secret("anna", ANNA)
    who = block(gateway, provider, "password", auth, username="anna", password=password)
    gateway.provider(provider, api={"oauth2": who}).start()
    assert claims(gateway)["sub"] == "anna"


@pytest.mark.parametrize("auth", ["basic", "post"])
def test_client_credentials(gateway, provider, auth):
    gateway.provider(provider, api={"oauth2": block(gateway, provider, "client_credentials", auth)}).start()
    assert claims(gateway)["sub"] == "cli ent"


def assertion(provider, **changes):
    now = int(time.time())
    payload = {"iss": "cli ent", "sub": "anna", "aud": provider.issuer, "iat": now, "exp": now + 60}
    return jwt.encode({**payload, "jti": str(uuid.uuid4()), **changes}, KEY, algorithm="ES256")


def test_jwt_bearer_from_a_file(gateway, provider):
    proof = gateway.secret("assertion", assertion(provider))
    who = block(gateway, provider, "jwt_bearer", assertion=proof)
    gateway.provider(provider, api={"oauth2": who}, changes={"defaults": {"token": {"negative_for": "1s"}}}).start()
    assert claims(gateway)["sub"] == "anna"
    # Each is good once here: the refused one stays home until the file has another.
    provider.post("revoke_access", {"jti": [claims(gateway)["jti"]]})
    answer = call(gateway.listens["api"])
    assert (answer.status, answer.problem["type"]) == (503, "urn:cardea:problems/credential-quarantined"), answer
    for _ in range(5):
        call(gateway.listens["api"])
    assert len(provider.steps("refused")) == 1
    gateway.secret("assertion", assertion(provider))
    eventually(lambda: call(gateway.listens["api"]).status == 200, within=5, what="the new assertion taken up")


def saml(provider):
    return f"""<?xml version="1.0"?>
<Assertion xmlns="urn:oasis:names:tc:SAML:2.0:assertion"><Subject><NameID>anna</NameID></Subject>
<Conditions><AudienceRestriction><Audience>{provider.issuer}</Audience></AudienceRestriction></Conditions></Assertion>"""


@pytest.mark.parametrize("form", ["xml", "base64", "folded", "url"])
def test_saml2_bearer(gateway, provider, form):
    document = saml(provider).encode()
    text = {
        "xml": document.decode(),
        "base64": base64.b64encode(document).decode(),
        "folded": base64.encodebytes(document).decode(),
        "url": base64.urlsafe_b64encode(document).decode().rstrip("="),
    }[form]
    who = block(gateway, provider, "saml2_bearer", assertion=gateway.secret("assertion", text))
    gateway.provider(provider, api={"oauth2": who}).start()
    assert claims(gateway)["sub"] == "anna"


# --- Token exchange -------------------------------------------------------------------------------------------------


def test_exchange_of_another_identity(gateway, provider):
    """Two clients: one gets a user's token, the other exchanges it for one of its own."""
    password = gateway.secret("anna", ANNA)
    provider.client("front", secret="front-secret", auth="client_secret_post", grants=["password", "refresh_token"])
    front = {
        "token_url": provider.issuer + "/token",
        "grant": "password",
        "client_id": "front",
        "client_auth": "post",
        "client_secret": gateway.secret("front", "front-secret"),
        "username": "anna",
        "password": password,
    }
    who = block(gateway, provider, "token_exchange", subject_token={"identity": "front"})
    gateway.provider(provider, api={"oauth2": who})
    gateway.config["routes"][0]["audience"] = "urn:orders"
    gateway.config["identities"]["front"] = {"oauth2": front, "scopes": ["read"]}
    gateway.start()
    got = claims(gateway)
    assert (got["sub"], got["client_id"], got["aud"]) == ("anna", "cli ent", "urn:orders")
    assert provider.steps("exchange")[0]["client"] == "cli ent"
    # The next exchange is of a new token, and the user's password is not needed for it.
    provider.post("revoke_access", {"jti": [got["jti"]]})
    assert claims(gateway)["sub"] == "anna"
    assert (len(provider.steps("password")), len(provider.steps("exchange"))) == (1, 2)


def test_exchange_of_a_file(gateway, provider):
    subject = own_token(provider)
    who = block(
        gateway,
        provider,
        "token_exchange",
        subject_token=gateway.secret("subject", subject),
        subject_token_type=URN + "token-type:access_token",
        actor_token=gateway.secret("actor", subject),
        actor_token_type="access_token",
        requested_token_type="access_token",
    )
    gateway.provider(provider, api={"oauth2": who}).start()
    assert claims(gateway)["sub"] == "file"
    form = provider.steps("exchange")[0]["form"]
    assert {"actor_token", "actor_token_type", "requested_token_type", "subject_token_type"} <= set(form)


def own_token(provider):
    body = b"grant_type=client_credentials&scope=read&client_id=file&client_secret=file-secret"
    provider.client("file", secret="file-secret", auth="client_secret_post", grants=["client_credentials"])
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = call(provider.issuer.removeprefix("http://"), "POST", "/token", body, form)
    assert answer.status == 200, answer
    return answer.json["access_token"]
