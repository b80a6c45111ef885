"""`oam_oauth` identities in front of the lab, which plays every one of Oracle's servers."""

import base64
import hashlib
import subprocess
import time
import uuid

import jwt
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import rsa

from harness import call

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


def archive(folder, phrase):
    """PKCS#12 of the key with its certificate, and the SHA-1 of that as x5t writes it."""
    certificate, thumbprint = certified(folder)
    (folder / "c.pem").write_text(certificate)
    words = ["openssl", "pkcs12", "-export", "-inkey", "k.pem", "-in", "c.pem", "-passout", f"pass:{phrase}"]
    return subprocess.run(words, check=True, capture_output=True, cwd=folder).stdout, thumbprint


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

    def user_assertion(self, dialect):
        """A reference to an assertion about the user that somebody else has signed."""
        token_url = self.places(dialect).get("token_url", f"{self.base}/oauth2/rest/token")
        if dialect == "11g":
            token_url = self.places(dialect)["service_endpoint"] + "/tokens"
        audience = {"sim": ["oauth.idm.oracle.com"], "idcs": "https://identity.oraclecloud.com/"}.get(dialect, token_url)
        now = int(time.time())
        claims = {"iss": self.client_id, "sub": self.lab.user, "aud": audience, "iat": now, "exp": now + 300}
        claims |= {"jti": str(uuid.uuid4()), "user.tenant.name": "tenant1"}
        return self.gateway.secret("user-assertion", jwt.encode(claims, KEY, algorithm="RS256"))

    def first_refresh_token(self, dialect):
        """What somebody has got from the server before the gateway was there."""
        path = {"12c": "/oauth2/rest/token", "sim": "/oauth/tokens", "idcs": "/oauth2/v1/token"}.get(
            dialect, "/ms_oauth/oauth2/endpoints/oauthservice/tokens"
        )
        secret = base64.b64encode(f"{self.client_id}:{self.lab.client_secret}".encode()).decode()
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Authorization": f"Basic {secret}"}
        domain = {"12c": ("X-OAUTH-IDENTITY-DOMAIN-NAME", "PayrollDomain"), "sim": ("X-USER-IDENTITY-DOMAIN-NAME", "tenant1")}
        headers |= dict([domain[dialect]] if dialect in domain else [])
        body = f"grant_type=password&username={self.lab.user}&password={self.lab.password}&scope=read".encode()
        answer = call(self.lab.issuer, "POST", path, body, headers)
        assert answer.status == 200, answer
        return self.gateway.secret("refresh-token", answer.json["refresh_token"])

    def mobile(self, grant="client_credentials", **more):
        self.client_id = "a1b2c3 mobile"
        return self.serve("11g", {"client_type": "mobile", "grant": grant}, self.user(), **more)
