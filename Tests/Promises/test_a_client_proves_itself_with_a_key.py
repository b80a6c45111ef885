"""Promise: a client proves itself with a key in any common form, and changing the key interrupts nobody."""

import base64
import hashlib
import json
import os
import subprocess

import jwt
import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from harness import call, eventually

PHRASE = b"a passphrase, with \xc3\xa9"


def public(key):
    return key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo).decode()


def pem(key, style=form.PrivateFormat.PKCS8, phrase=None):
    how = form.BestAvailableEncryption(phrase) if phrase else form.NoEncryption()
    return key.private_bytes(form.Encoding.PEM, style, how)


def jwk(key, **members):
    algorithm = {
        rsa.RSAPrivateKey: jwt.algorithms.RSAAlgorithm,
        ec.EllipticCurvePrivateKey: jwt.algorithms.ECAlgorithm,
        ed25519.Ed25519PrivateKey: jwt.algorithms.OKPAlgorithm,
    }
    made = next(algorithm[kind].to_jwk(key) for kind in algorithm if isinstance(key, kind))
    return {**json.loads(made), **members}


RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()


def certified(key, folder):
    """PEM of a self-signed certificate of the key."""
    (folder / "k.pem").write_bytes(pem(key))
    arguments = ["openssl", "req", "-x509", "-key", "k.pem", "-subj", "/CN=client", "-days", "2"]
    return subprocess.run(arguments, check=True, capture_output=True, cwd=folder).stdout


def pkcs12(key, folder, phrase):
    (folder / "c.pem").write_bytes(certified(key, folder))
    arguments = ["openssl", "pkcs12", "-export", "-inkey", "k.pem", "-in", "c.pem", "-passout", "pass:" + phrase.decode()]
    return subprocess.run(arguments, check=True, capture_output=True, cwd=folder).stdout


FORMS = {
    "RS256 PKCS#1": ("RS256", RSA, lambda _: pem(RSA, form.PrivateFormat.TraditionalOpenSSL), {}),
    "PS256 PKCS#8": ("PS256", RSA, lambda _: pem(RSA), {"signing": {"algorithm": "PS256"}}),
    "RS256 encrypted": ("RS256", RSA, lambda _: pem(RSA, phrase=PHRASE), {"phrase": True}),
    "RS256 JWK": ("RS256", RSA, lambda _: json.dumps(jwk(RSA)).encode(), {}),
    "PS256 JWK": ("PS256", RSA, lambda _: json.dumps(jwk(RSA, alg="PS256")).encode(), {}),
    "ES256 SEC 1": ("ES256", EC, lambda _: pem(EC, form.PrivateFormat.TraditionalOpenSSL), {}),
    "ES256 PKCS#12": ("ES256", EC, lambda folder: pkcs12(EC, folder, PHRASE), {"phrase": True}),
    "RS256 PKCS#12": ("RS256", RSA, lambda folder: pkcs12(RSA, folder, PHRASE), {"phrase": True}),
    "ES256 JWK set": (
        "ES256",
        EC,
        lambda _: json.dumps({"keys": [{"kty": "oct", "k": "AA"}, jwk(EC, kid="k-1", use="sig")]}).encode(),
        {"kid": "k-1"},
    ),
    "EdDSA PKCS#8": ("EdDSA", ED, lambda _: pem(ED), {}),
    "EdDSA JWK": ("EdDSA", ED, lambda _: json.dumps(jwk(ED)).encode(), {}),
    "ES256 DER": (
        "ES256",
        EC,
        lambda _: EC.private_bytes(form.Encoding.DER, form.PrivateFormat.PKCS8, form.NoEncryption()),
        {},
    ),
    "RS256 encrypted DER": (
        "RS256",
        RSA,
        lambda _: RSA.private_bytes(
            form.Encoding.DER, form.PrivateFormat.PKCS8, form.BestAvailableEncryption(PHRASE)
        ),
        {"phrase": True},
    ),
}


def secret(gateway, name, data):
    path = gateway.folder / name
    path.write_bytes(data)
    path.chmod(0o600)
    return f"file:{path}"


def identity(provider, key, auth="private_key_jwt", **more):
    block = {"token_url": provider.issuer + "/token", "client_id": "machine", "client_auth": auth}
    return {"oauth2": {**block, "key": key, **more}}


def register(provider, *keys, **more):
    known = [{"alg": algorithm, "key": public(key), **names} for algorithm, key, names in keys]
    provider.client("machine", auth="private_key_jwt", grants=["client_credentials", GRANT], keys=known, **more)


GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_a_key(gateway, provider, name):
    algorithm, key, data, more = FORMS[name]
    more = dict(more)
    kid = more.pop("kid", None)
    if more.pop("phrase", False):
        more["key_password"] = secret(gateway, "phrase", PHRASE)
    register(provider, (algorithm, key, {"kid": kid} if kid else {}))
    block = identity(provider, secret(gateway, "key", data(gateway.folder)), **more)
    gateway.provider(provider, api=block).start()
    answer = call(gateway.listens["api"])
    assert answer.status == 200, f"{answer}\n{gateway.text()}\n{provider.post('log')}"
    header = provider.steps("client_assertion")[0]["header"]
    assert (header["alg"], header["typ"], header.get("kid")) == (algorithm, "JWT", kid)


@pytest.mark.parametrize("end", [b"x\n", b"\r\n", b"\n\n"], ids=["LF", "CR LF", "LF LF"])
def test_a_line_end_at_the_end_of_an_archive_is_part_of_it(gateway, provider, end):
    """Secrets are trimmed by one line end, and a DER file may end in these very octets: those of the key itself."""
    key = ed25519.Ed25519PrivateKey.from_private_bytes(os.urandom(30) + end)
    der = key.private_bytes(form.Encoding.DER, form.PrivateFormat.PKCS8, form.NoEncryption())
    assert der.endswith(end)
    register(provider, ("EdDSA", key, {}))
    gateway.provider(provider, api=identity(provider, secret(gateway, "key", der))).start()
    assert call(gateway.listens["api"]).status == 200


def test_a_shared_secret(gateway, provider):
    shared = "a shared secret of more than thirty-two octets"
    provider.client("machine", auth="client_secret_jwt", secret=shared, grants=["client_credentials"])
    block = identity(provider, None, "client_secret_jwt", client_secret=gateway.secret("shared", shared))
    del block["oauth2"]["key"]
    gateway.provider(provider, api=block).start()
    assert call(gateway.listens["api"]).status == 200, gateway.text()
    assert provider.steps("client_assertion")[0]["header"]["alg"] == "HS256"


def test_what_a_server_asks_of_an_assertion(gateway, provider):
    """kid, both thumbprints, audience and life as settings; each assertion once."""
    pem_file = certified(RSA, gateway.folder)
    der = base64.b64decode(b"".join(pem_file.split(b"\n")[1:-2]))
    (gateway.folder / "certificate.pem").write_bytes(pem_file)
    register(provider, ("RS256", RSA, {"kid": "key-7"}))
    signing = {
        "key_id": "key-7",
        "thumbprint": "sha256",
        "certificate": str(gateway.folder / "certificate.pem"),
        "audience": provider.issuer,
        "lifetime": "2m",
    }
    key = secret(gateway, "key", pem(RSA))
    beside = identity(provider, secret(gateway, "both", pem(RSA) + pem_file), signing={"thumbprint": "sha1"})
    # Not the same identity, whose token would do: how a client signs says nothing of who it is.
    beside["oauth2"]["extra"] = {"x": "y"}
    gateway.provider(provider, api=identity(provider, key, signing=signing), beside=beside).start()
    assert call(gateway.listens["api"]).status == 200, gateway.text()
    register(provider, ("RS256", RSA, {}))
    assert call(gateway.listens["beside"]).status == 200, gateway.text()
    first, second = provider.steps("client_assertion")
    assert first["header"]["kid"] == "key-7"
    assert first["header"]["x5t#S256"] == encoded(hashlib.sha256(der)) and "x5t" not in first["header"]
    assert second["header"]["x5t"] == encoded(hashlib.sha1(der)) and "x5t#S256" not in second["header"]
    assert first["claims"]["aud"] == provider.issuer and second["claims"]["aud"] == provider.issuer + "/token"
    assert first["claims"]["exp"] - first["claims"]["iat"] == 120
    assert first["claims"]["jti"] != second["claims"]["jti"]


def encoded(digest):
    return base64.urlsafe_b64encode(digest.digest()).decode().rstrip("=")


def revoke(gateway, provider):
    provider.post("revoke_access", {"jti": [call(gateway.listens["api"]).json["jti"]]})


def test_keys_overlap_while_they_are_replaced(gateway, provider):
    """The new key stands first; until the server knows it, the old one goes on. Then the old one leaves."""
    old, new = secret(gateway, "old", pem(EC)), secret(gateway, "new", pem(ED))
    register(provider, ("ES256", EC, {}))
    gateway.provider(provider, api=identity(provider, [new, old])).start()
    assert call(gateway.listens["api"]).status == 200, gateway.text()
    register(provider, ("EdDSA", ED, {}))
    revoke(gateway, provider)
    assert call(gateway.listens["api"]).status == 200, gateway.text()
    assert [entry["header"]["alg"] for entry in provider.steps("client_assertion")] == ["ES256", "EdDSA"]


def test_a_replaced_file_counts_at_once(gateway, provider):
    register(provider, ("RS256", RSA, {}))
    key = secret(gateway, "key", pem(EC))
    gateway.provider(provider, api=identity(provider, key)).start()
    answer = call(gateway.listens["api"])
    assert (answer.status, answer.problem["type"]) == (503, "urn:cardea:problems/credential-quarantined")
    secret(gateway, "key", pem(RSA))
    eventually(lambda: call(gateway.listens["api"]).status == 200, within=5, what="the new key taken up")


def test_a_key_that_cannot_be_opened(gateway, provider):
    register(provider, ("RS256", RSA, {}))
    key = secret(gateway, "key", pem(RSA, phrase=PHRASE))
    block = identity(provider, key, key_password=gateway.secret("phrase", "another passphrase"))
    gateway.provider(provider, api=block).start()
    answer = call(gateway.listens["api"])
    assert answer.problem["type"] == "urn:cardea:problems/secret-unreadable", answer
    # The reason names a file, which is no caller's business.
    assert answer.status == 503 and "the gateway's log says why" in answer.problem["detail"], answer
    eventually(lambda: "cannot be opened with this passphrase" in gateway.text(), what="the reason in the log")
    assert provider.post("log") == []


def test_a_user_by_an_assertion_of_our_own(gateway, provider):
    """jwt_bearer without a file: the key makes one for each grant."""
    register(provider, ("ES256", EC, {}), secret="client-secret-1")
    key = secret(gateway, "key", pem(EC))
    block = identity(provider, key, grant="jwt_bearer", claims={"sub": "anna", "department": "orders"})
    gateway.provider(provider, api=block).start()
    assert call(gateway.listens["api"]).json["sub"] == "anna", gateway.text()
    revoke(gateway, provider)
    assert call(gateway.listens["api"]).json["sub"] == "anna"
    claims = provider.steps("assertion")[0]["claims"]
    assert (claims["iss"], claims["department"]) == ("machine", "orders")
