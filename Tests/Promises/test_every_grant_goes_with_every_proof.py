"""Promise: whichever grant a server wants, the client may prove itself for it in every way that the server knows; and in the same way
for the refresh, and for the revocation at logout. Each case is one cell of the table grant × proof × server."""

import base64
import contextlib
import hashlib
import json
import ssl
import subprocess
import time
import types
import urllib.parse
import uuid

import jwt
import pytest
import requests
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from glewlwyd import Glewlwyd
from harness import Nginx, call, free_port
from peers import resource_server
from persons import Lines, Person

URN = "urn:ietf:params:oauth:"
SECRET = "s3cr:t+/ é&=, of more than thirty-two octets"
ANNA = "pa ss+wörd&1"
KEY = ec.generate_private_key(ec.SECP256R1())
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
GRANTS = {
    "client_credentials": "client_credentials",
    "password": "password",
    "refresh_token": "refresh_token",
    "authorization_code": "authorization_code",
    "device_code": URN + "grant-type:device_code",
    "jwt_bearer": URN + "grant-type:jwt-bearer",
    "saml2_bearer": URN + "grant-type:saml2-bearer",
    "token_exchange": URN + "grant-type:token-exchange",
}
PROOFS = ["basic", "post", "none", "private_key_jwt", "client_secret_jwt", "tls"]
PERSONAL = ("authorization_code", "device_code")
# Grants whose refresh token is kept: the second token is had with it.
REFRESHED = ("password", "refresh_token", *PERSONAL)


def pem(key):
    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()).decode()


def public(key):
    return key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo).decode()


def assertion(provider):
    now = int(time.time())
    claims = {"iss": "cli ent", "sub": "anna", "aud": provider.issuer, "iat": now, "exp": now + 60}
    return jwt.encode({**claims, "jti": str(uuid.uuid4())}, KEY, algorithm="ES256")


def saml(provider):
    return f"""<Assertion xmlns="urn:oasis:names:tc:SAML:2.0:assertion"><Subject><NameID>anna</NameID></Subject><Conditions>
<AudienceRestriction><Audience>{provider.issuer}</Audience></AudienceRestriction></Conditions></Assertion>"""


# --- Authlib -------------------------------------------------------------------------------------------------------------


class Authlib:
    """A client of the server on Authlib, and the identity that goes with it."""

    def __init__(self, gateway, provider, grant, proof, folder):
        self.gateway, self.provider, self.grant, self.proof, self.folder = gateway, provider, grant, proof, folder
        self.origin, self.tls = provider.issuer, {}
        if proof == "tls":
            self.certify()
        self.register()
        who = {"oauth2": self.block()}
        if self.tls:
            who["network"] = {"tls": self.tls}
        gateway.provider(provider, api=who)
        if self.tls:
            gateway.config["routes"][0] |= {"to": self.sites["api"], "tls": self.tls}
        gateway.file.write_text(json.dumps(gateway.config))

    def certify(self):
        Nginx.make_certificates(types.SimpleNamespace(folder=self.folder))
        words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        words += ["-CA", "ca.pem", "-CAkey", "ca.key", "-keyout", "client.key", "-out", "client.pem", "-subj", "/CN=c"]
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=self.folder)
        (self.folder / "client.key").chmod(0o600)
        der = ssl.PEM_cert_to_DER_cert((self.folder / "client.pem").read_text())
        self.thumbprint = base64.urlsafe_b64encode(hashlib.sha256(der).digest()).decode().rstrip("=")
        names = {"ca": "ca.pem", "certificate": "server.pem", "key": "server.key"}
        self.sites = self.provider.post("tls", {name: str(self.folder / file) for name, file in names.items()})
        self.origin = self.sites["issuer"]
        self.tls = {"ca": str(self.folder / "ca.pem"), "certificate": str(self.folder / "client.pem")}
        self.tls["key"] = f"file:{self.folder}/client.key"

    def register(self, *redirect_uris, auth=None):
        names = {"basic": "client_secret_basic", "post": "client_secret_post"}
        more = {"thumbprint": self.thumbprint} if self.tls else {}
        self.provider.client(
            "cli ent",
            secret=SECRET,
            auth=auth or names.get(self.proof, self.proof),
            grants=[GRANTS[self.grant], "refresh_token", "password"],
            keys=[{"alg": "ES256", "key": public(KEY)}],
            redirect_uris=redirect_uris,
            **more,
        )

    def block(self):
        gateway, origin = self.gateway, self.origin
        block = {"token_url": origin + "/token", "grant": self.grant, "client_id": "cli ent", "client_auth": self.proof}
        block |= {"revocation_url": origin + "/revoke"}
        if self.proof in ("basic", "post", "client_secret_jwt"):
            block["client_secret"] = gateway.secret("client-secret", SECRET)
        if self.proof == "basic":
            block["basic_encoding"] = self.provider.basic_encoding
        if self.proof == "private_key_jwt":
            block["key"] = gateway.secret("client-key", pem(KEY))
        return block | self.members()

    def members(self):
        secret, provider = self.gateway.secret, self.provider
        return {
            "client_credentials": dict,
            "password": lambda: {"username": "anna", "password": secret("anna", ANNA)},
            "refresh_token": lambda: {"refresh_token": secret("refresh", self.given()["refresh_token"])},
            "authorization_code": lambda: {"authorization_url": provider.issuer + "/authorize"},
            "device_code": lambda: {"device_authorization_url": self.origin + "/device_authorization"},
            "jwt_bearer": lambda: {"assertion": secret("assertion", assertion(provider))},
            "saml2_bearer": lambda: {"assertion": secret("assertion", saml(provider))},
            "token_exchange": lambda: {"subject_token": secret("subject", self.given()["access_token"])},
        }[self.grant]()

    def given(self):
        """What somebody has got of the server before the gateway was there."""
        self.register(auth="client_secret_post")
        fields = {"grant_type": "password", "username": "anna", "password": ANNA, "scope": "read"}
        fields |= {"client_id": "cli ent", "client_secret": SECRET}
        answer = requests.post(self.provider.issuer + "/token", data=fields, timeout=10)
        assert answer.status_code == 200, answer.text
        self.register()
        return answer.json()

    def log_in(self):
        lines = Lines(self.gateway, "api", "--no-browser")
        prompt = lines.next()["prompt"]
        if self.grant == "device_code":
            self.provider.post("device", {"user_code": prompt["code"], "verdict": "allow"})
        else:
            # Authlib compares redirect addresses as they are, with the port.
            asked = dict(urllib.parse.parse_qsl(prompt["url"].partition("?")[2]))
            self.register(asked["redirect_uri"])
            back = requests.get(prompt["url"], allow_redirects=False, timeout=10).headers["Location"]
            requests.get(back, timeout=10)
        lines.ends()


def claims(gateway, listen):
    answer = call(listen)
    assert answer.status == 200, f"{answer}\n{gateway.text()}"
    return answer.json


@pytest.mark.parametrize("proof", PROOFS)
@pytest.mark.parametrize("grant", GRANTS)
def test_authlib(gateway, provider, grant, proof, tmp_path):
    case = Authlib(gateway, provider, grant, proof, tmp_path)
    gateway.start()
    listen = gateway.listens["api"]
    if grant in PERSONAL:
        case.log_in()
    first = claims(gateway, listen)
    assert first["sub"] == ("cli ent" if grant == "client_credentials" else "anna")
    assert ("cnf" in first) == (proof == "tls")
    if grant in REFRESHED:
        provider.post("revoke_access", {"jti": [first["jti"]]})
        assert claims(gateway, listen)["sub"] == "anna"
        assert provider.steps("token")[-1]["grant"] == "refresh_token"
        rest, _ = Lines(gateway, "api", command="logout").ends()
        assert "revoked at the issuer" in json.loads(rest)["detail"], provider.post("log")
        assert len(provider.steps("revoked")) == 1
    assert provider.steps("refused") == [] and provider.steps("refresh_reused") == []


# --- glewlwyd ------------------------------------------------------------------------------------------------------------

HERS = ["client_credentials", "password", "refresh_token", "authorization_code", "device_code"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with contextlib.closing(Glewlwyd(tmp_path_factory.mktemp("glewlwyd"))) as running:
        running.port_of_callback = free_port()
        more = {"redirect_uri": [f"http://127.0.0.1:{running.port_of_callback}/cb"], "pubkey": public(RSA)}
        running.client("desk", SECRET, **more)
        running.client("kiosk", "unused-secret-1", **more, confidential=False, token_endpoint_auth_method=["none"])
        yield running


@pytest.fixture(scope="module")
def api(server):
    with resource_server(server.issuer) as origin:
        yield origin


def given(server, client):
    """A refresh token that somebody has got in a browser before."""
    asked = {"response_type": "code", "client_id": client, "scope": "openid orders.read", "state": "s", "nonce": "n"}
    place = {"redirect_uri": f"http://127.0.0.1:{server.port_of_callback}/cb"}
    person = Person(server, client, asked["scope"])
    back = person.allow(f"{server.issuer}/auth?{urllib.parse.urlencode(asked | place)}")
    code = urllib.parse.parse_qs(urllib.parse.urlsplit(back).query)["code"][0]
    fields = {"grant_type": "authorization_code", "code": code, "client_id": client, **place}
    proof = {"client_secret": SECRET} if client == "desk" else {}
    answer = requests.post(server.issuer + "/token", data=fields | proof, timeout=10)
    assert answer.status_code == 200, (answer.status_code, answer.text)
    return answer.json()["refresh_token"]


# A client without a proof gets neither a token of its own nor, from this server, a user's token for a password (403).
THEIRS = [
    (grant, proof)
    for grant in HERS
    for proof in ("basic", "post", "none", "private_key_jwt", "client_secret_jwt")
    if proof != "none" or grant not in ("client_credentials", "password")
]


@pytest.mark.parametrize("grant, proof", THEIRS)
def test_glewlwyd(gateway, server, api, grant, proof):
    client = "kiosk" if proof == "none" else "desk"
    block = {"issuer": server.issuer, "grant": grant, "client_id": client, "client_auth": proof}
    if proof in ("basic", "post", "client_secret_jwt"):
        block["client_secret"] = gateway.secret("client-secret", SECRET)
    if proof == "basic":
        block["basic_encoding"] = "raw"
    if proof == "private_key_jwt":
        block["key"] = gateway.secret("key", pem(RSA))
    if grant == "password":
        block |= {"username": "admin", "password": gateway.secret("user-password", server.password)}
    if grant == "refresh_token":
        block["refresh_token"] = gateway.secret("refresh", given(server, client))
    if grant == "authorization_code":
        block["redirect_uri"] = f"http://127.0.0.1:{server.port_of_callback}/cb"
    scopes = ["orders.read"] if grant == "client_credentials" else ["openid", "orders.read"]
    identity = {"oauth2": block, "scopes": scopes}
    gateway.config = gateway.frame({"identities": {"api": identity}, "routes": [gateway.route("api", api)]})
    gateway.start()
    if grant in PERSONAL:
        person = Person(server, client, "openid orders.read")
        lines = Lines(gateway, "api", "--no-browser")
        prompt = lines.next()["prompt"]
        if grant == "device_code":
            person.enter(prompt["url"], prompt["code"])
        else:
            requests.get(person.allow(prompt["url"]), timeout=10)
        lines.ends()
    answer = gateway.get("/")
    assert answer.status == 200, f"{answer}\n{gateway.text()}"
    assert "orders.read" in answer.json["scope"]
    # A login brings a refresh token alone, so that this was a refresh. What the file has is the operator's, and stays.
    if grant in REFRESHED and grant != "refresh_token":
        rest, _ = Lines(gateway, "api", command="logout").ends()
        # Of a public client this server takes no revocation (RFC 7009 §2.1 has it do so).
        said = "did not confirm" if proof == "none" else "revoked at the issuer"
        assert said in json.loads(rest)["detail"], gateway.text()
