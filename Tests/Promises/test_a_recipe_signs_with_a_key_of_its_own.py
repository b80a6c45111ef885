"""Promise: a recipe signs JWTs with a key pair, as an app of GitHub does, and each request with what its steps have brought."""

import base64
import hashlib
import hmac
import json
import re
import time

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from harness import eventually, together
from recipes import recipe
from scripted import Scripted, answer, identified

APP, INSTALLATION = "123456", "987654"


def pem(key):
    kind = serialization.PrivateFormat
    return key.private_bytes(serialization.Encoding.PEM, kind.PKCS8, serialization.NoEncryption()).decode()


RSA, OTHER = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
KEYS = {"RS256": RSA, "PS256": RSA, "ES256": ec.generate_private_key(ec.SECP256R1()), "EdDSA": ed25519.Ed25519PrivateKey.generate()}


class GitHub(Scripted):
    """Gives installation tokens for JWTs of the app, and takes them at its API. As strict as the documentation of the maker says."""

    def __init__(self, key=RSA, algorithm="RS256", kid=None, life=3600):
        self.key, self.algorithm, self.kid, self.life = key.public_key(), algorithm, kid, life
        self.granted, self.faults_of_jwt, self.revoked = [], [], set()
        super().__init__(self.serve)

    def serve(self, peer):
        for request in peer.requests():
            status, body = self.answered(request)
            peer.send(answer(json.dumps(body).encode(), b"Content-Type: application/json", status=status))

    def answered(self, request):
        scheme, _, credential = (request.field("Authorization") or "").partition(" ")
        if request.target == f"/app/installations/{INSTALLATION}/access_tokens":
            fault = self.fault(request, scheme, credential)
            if fault:
                self.faults_of_jwt.append(fault)
                return b"401 Unauthorized", {"message": fault}
            token = f"ghs_{'x' * 32}{len(self.granted) + 1}"
            self.granted.append(token)
            end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.life))
            return b"201 Created", {"token": token, "expires_at": end, "permissions": {"contents": "read"}}
        good = scheme == "Bearer" and credential in self.granted and credential not in self.revoked
        return (b"200 OK", {"token": credential[-1]}) if good else (b"401 Unauthorized", {"message": "Bad credentials"})

    def fault(self, request, scheme, text):
        if request.method != "POST" or scheme != "Bearer" or not request.field("User-Agent"):
            return "no POST with a Bearer token and a User-Agent"
        header = jwt.get_unverified_header(text)
        if header != {"alg": self.algorithm, "typ": "JWT"} | ({"kid": self.kid} if self.kid else {}):
            return f"its header is {header}"
        try:
            claims = jwt.decode(text, self.key, algorithms=[self.algorithm], options={"require": ["iat", "exp", "iss"]})
        except jwt.PyJWTError as fault:
            return f"{type(fault).__name__}"
        now = time.time()
        if claims["iss"] != APP or claims["exp"] > now + 600 or claims["iat"] > now:
            return "'Expiration time' claim ('exp') is too far in the future"
        return None


def configured(gateway, github, key=RSA, algorithm="RS256", secret=None, route=None, **texts):
    texts = {
        "https://api.github.com": f"http://{github.address}",
        "file:/run/secrets/github-app.pem": gateway.secret("app.pem", secret or pem(key)),
        "RS256": algorithm,
    } | texts
    return identified(gateway, github, {"recipe": recipe("github-app", texts)}, route)


@pytest.mark.parametrize("algorithm", KEYS)
def test_an_app_gets_its_installation_token(gateway, algorithm):
    key = KEYS[algorithm]
    with GitHub(key, algorithm) as github:
        configured(gateway, github, key, algorithm).start()
        assert {found.status for found in together(8, lambda number: gateway.get(f"/repos/{number}"))} == {200}
        assert (len(github.granted), github.faults_of_jwt) == (1, [])
        # One that was revoked is replaced unseen.
        github.revoked.add(github.granted[0])
        assert gateway.get("/repos/a").body == b'{"token": "2"}'
        assert github.faults_of_jwt == []


def test_the_end_that_the_answer_names_is_kept(gateway):
    with GitHub(life=4) as github:
        configured(gateway, github).start()
        assert gateway.get("/").body == b'{"token": "1"}'
        github.life = 3600
        eventually(lambda: gateway.get("/").body == b'{"token": "2"}', what="the second token")
        assert gateway.get("/").body == b'{"token": "2"}' and len(github.granted) == 2


@pytest.mark.parametrize("form", ["jwk", "jwk-set", "named"])
def test_a_key_may_say_its_name(gateway, form):
    secret, texts = pem(RSA), {}
    if form != "named":
        members = jwt.algorithms.RSAAlgorithm.to_jwk(RSA, as_dict=True) | {"kid": "app-7"}
        other = jwt.algorithms.RSAAlgorithm.to_jwk(OTHER, as_dict=True) | {"kid": "app-6", "alg": "PS256"}
        secret = json.dumps(members if form == "jwk" else {"keys": [other, members]})
    else:
        texts = {"RS256": "RS256, \\\"app-7\\\""}
    with GitHub(kid="app-7") as github:
        configured(gateway, github, secret=secret, **texts).start()
        assert gateway.get("/").status == 200 and github.faults_of_jwt == [], github.faults_of_jwt


def test_a_key_that_is_refused_is_not_tried_again(gateway):
    with GitHub() as github:
        configured(gateway, github, OTHER).start()
        assert {gateway.get(f"/{number}").status for number in range(5)} <= {502, 503}
        assert github.faults_of_jwt == ["InvalidSignatureError"]
        assert gateway.stop() == 0
        gateway.start()
        assert gateway.get("/").status == 503 and len(github.faults_of_jwt) == 1
        # Another key is another chance.
        gateway.secret("app.pem", pem(RSA))
        eventually(lambda: gateway.get("/").status == 200, what="the right key")


BROKEN = {
    "empty": ("\n", "app.pem"),
    "no key": ("this-is-no-key-of-anybody", "secret.key: "),
    "a public key": (
        RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode(),
        "secret.key: ",
    ),
    "another kind of key": (pem(KEYS["ES256"]), "secret.key: RS256 does not go with its kind of key"),
    "half a key": (pem(RSA)[:800], "secret.key: "),
    "a JWK without its private half": (json.dumps({"kty": "RSA", "n": "AQAB", "e": "AQAB"}), "secret.key: "),
    "broken JSON": ('{"kty": "RSA", "d": ', "secret.key: "),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_key_that_is_none_is_told_without_it(gateway, what):
    text, reason = BROKEN[what]
    with GitHub() as github:
        configured(gateway, github, secret=text)
        if not text.strip():
            gateway.secrets.remove(text)
        gateway.start()
        found = gateway.get("/")
        assert found.status in (502, 503), found
        gateway.told(lambda event: reason in json.dumps(event))
        assert not github.granted and not github.faults_of_jwt


# --- Steps and signatures in one recipe ------------------------------------------------------------------------------

PASSWORD = "password-of-the-session-3"


class Signed(Scripted):
    """Gives a key for a password; each request is to be signed with it, over the octets of its target."""

    def __init__(self):
        self.sessions, self.wrong, self.logins = {}, [], 0
        super().__init__(self.serve)

    def serve(self, peer):
        for request in peer.requests():
            if request.target == "/login":
                self.logins += 1
                good = json.loads(request.body) == {"user": "svc", "password": PASSWORD}
                name, key = f"session-{self.logins}", base64.b64encode(hashlib.sha256(b"%d" % self.logins).digest()).decode()
                if good:
                    self.sessions[name] = key
                body = json.dumps({"id": name, "key": key, "for": 600} if good else {})
                peer.send(answer(body.encode(), b"Content-Type: application/json", status=b"200 OK" if good else b"401 No"))
                continue
            found = re.fullmatch(r"Sig id=([\w-]+), at=(\d+), mac=([0-9a-f]{64})", request.field("Authorization") or "")
            key = found and self.sessions.get(found[1])
            text = f"{request.method}\n{request.target}\n{found[2] if found else ''}\n".encode("latin-1")
            text += hashlib.sha256(request.body or b"").hexdigest().encode()
            good = key and hmac.compare_digest(hmac.new(key.encode(), text, "sha256").hexdigest(), found[3])
            if not good:
                self.wrong.append(request.target)
            peer.send(answer(b"ok") if good else answer(b"", status=b"401 Unauthorized"))


def session(gateway, server, **changes):
    block = {
        "secrets": {"password": {"value": gateway.secret("password", PASSWORD), "to": f"http://{server.address}"}},
        "steps": [
            {
                "name": "login",
                "post": f"http://{server.address}/login",
                "json": {"user": "svc", "password": "{secret.password}"},
                "take": {"id": {"json": "/id"}, "key": {"json": "/key"}, "lifetime": {"json": "/for"}},
            }
        ],
        "sign": {
            "text": "{request.method}\n{request.path}\n{now}\n{request.body_sha256 | hex}",
            "mac": "{sign.text | hmac_sha256(login.key) | hex}",
        },
        "inject": [{"value": "Sig id={login.id}, at={now}, mac={sign.mac}"}],
    } | changes
    return {"recipe": block}


def test_each_request_is_signed_with_what_a_login_brought(gateway):
    with Signed() as server:
        identified(gateway, server, session(gateway, server), {"paths": "raw"}).start()
        for number in range(5):
            assert gateway.call("PUT", f"/a/{number}", b"body %d" % number).status == 200
        # Octets that are no text are signed as they are sent.
        with gateway.raw() as caller:
            host = gateway.listen.encode()
            found = caller.send(b"GET /caf\xe9/%ff HTTP/1.1\r\nHost: " + host + b"\r\n\r\n").answer()
        assert found.status == 200 and server.wrong == [], server.wrong
        assert server.logins == 1
        # The session is lost there: a login, and the same request again.
        server.sessions.clear()
        assert gateway.get("/again").status == 200
        assert (server.logins, len(server.wrong)) == (2, 1)


def test_a_signature_with_an_rsa_key_of_each_request(gateway):
    seen = []

    def script(peer):
        for request in peer.requests():
            seen.append((request.target, jwt.decode(request.field("X-Proof"), RSA.public_key(), algorithms=["PS256"])))
            peer.send(answer(b"ok"))

    with Scripted(script) as upstream:
        block = {
            "secrets": {"key": {"value": gateway.secret("sign.pem", pem(RSA)), "to": f"http://{upstream.address}"}},
            "sign": {
                "claims": '{{"path":"{request.path | json}","jti":"{uuid}","exp":{now+60}}}',
                "proof": "{sign.claims | jws(secret.key, PS256)}",
            },
            "inject": [{"header": "X-Proof", "value": "{sign.proof}"}],
        }
        identified(gateway, upstream, {"recipe": block}).start()
        assert {found.status for found in together(16, lambda number: gateway.get(f"/{number}"))} == {200}
        assert all(claims["path"] == target for target, claims in seen)
        assert len({claims["jti"] for _, claims in seen}) == 16


@pytest.mark.parametrize(
    "old, new, reason",
    [
        ("jws(secret.key, RS256)", "jws(secret.key, RS512)", "has 'RS512' where one of RS256, PS256, ES256, EdDSA, HS256 is expected"),
        ("jws(secret.key, RS256)", "jws(secret.kay, RS256)", "did you mean 'secret.key'?"),
        ("jws(secret.key, RS256)", "jws(secret.key)", "needs a secret and an algorithm"),
        ("jws(secret.key, RS256)", "jws(secret.key, RS256, app)", "needs a key's id in quotes"),
        ("now+540", "now+99999999999999999999", "needs seconds of at most a year behind 'now'"),
        ("now+540", "now+x", "needs seconds of at most a year behind 'now'"),
        ("now-60", "now--60", "needs seconds of at most a year behind 'now'"),
    ],
)
def test_check_says_what_is_wrong(gateway, old, new, reason):
    with GitHub() as github:
        configured(gateway, github)
        text = json.dumps(gateway.config, indent=2)
        assert old in text
        gateway.file.write_text(text.replace(old, new))
        status, out, _ = gateway.command("check")
        assert status == 78 and reason in out, out
