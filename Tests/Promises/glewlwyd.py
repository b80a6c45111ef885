"""Debian's glewlwyd: an OAuth 2.0 and OpenID server that nobody here wrote, on loopback with a database of its own.

Seen in 2.7: it takes the halves of Basic as they are, against RFC 6749 §2.3.1; its metadata has doubled slashes in every endpoint;
its refresh tokens are replaced at each use when the plugin rolls them; a client assertion has to name the endpoint that is called;
clients without a proof may neither show a user's password (403) nor revoke.
"""

import gzip
import json
import os
import pathlib
import sqlite3
import subprocess
import urllib.error
import urllib.request

from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import rsa

from harness import eventually, executable, free_port

CONFIGURATION = """
port={port}
bind_address="127.0.0.1"
external_url="{url}/"
login_url="login.html"
api_prefix="api"
log_mode="file"
log_file="{folder}/glewlwyd.log"
log_level="WARNING"
session_expiration=3600
session_key="GLEWLWYD2_SESSION_ID"
admin_scope="g_admin"
profile_scope="g_profile"
user_module_path="/usr/lib/glewlwyd/user"
client_module_path="/usr/lib/glewlwyd/client"
user_auth_scheme_module_path="/usr/lib/glewlwyd/scheme"
plugin_module_path="/usr/lib/glewlwyd/plugin"
hash_algorithm="SHA256"
static_files_path="/usr/share/glewlwyd/webapp/"
database = {{ type = "sqlite3"; path = "{folder}/g.db"; }};
"""

SWITCHES = [
    "allow-non-oidc",
    "auth-type-client-enabled",
    "auth-type-code-enabled",
    "auth-type-password-enabled",
    "auth-type-refresh-enabled",
    "auth-type-device-enabled",
    "auth-type-id-token-enabled",
    "refresh-token-rolling",
    "introspection-revocation-allowed",
    "introspection-revocation-allow-target-client",
    "request-parameter-allow",
    "oauth-dpop-allowed",
    "pkce-allowed",
]


class Glewlwyd:
    """`issuer` is its issuer; the user `admin` may have every scope."""

    password = "the user's own password"

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        binary = executable("CARDEA_GLEWLWYD", "glewlwyd", "apt-get install glewlwyd")
        self.port = free_port()
        self.url = f"http://localhost:{self.port}"
        self.issuer = self.url + "/api/oidc"
        # The same again, with access tokens that live four seconds.
        self.hasty_issuer = self.url + "/api/hasty"
        database = sqlite3.connect(self.folder / "g.db")
        with gzip.open("/usr/share/doc/glewlwyd/database/init.sqlite3.sql.gz", "rt") as script:
            database.executescript(script.read())
        database.close()
        configuration = self.folder / "g.conf"
        configuration.write_text(CONFIGURATION.format(port=self.port, url=self.url, folder=self.folder))
        self.process = subprocess.Popen(
            [binary, f"--config-file={configuration}"],
            env={"PATH": os.environ["PATH"]},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.cookie = None
        try:
            eventually(self._answers, within=20, what="glewlwyd answering")
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _answers(self):
        assert self.process.poll() is None, (self.folder / "glewlwyd.log").read_text()
        try:
            urllib.request.urlopen(self.url + "/config", timeout=5).close()
            return True
        except OSError:
            return False

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def api(self, method, path, value):
        headers = {"Content-Type": "application/json"}
        if self.cookie:
            headers["Cookie"] = self.cookie
        asked = urllib.request.Request(self.url + "/api" + path, json.dumps(value).encode(), headers, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=10) as answer:
                cookie = answer.headers.get("Set-Cookie")
                self.cookie = self.cookie or (cookie and cookie.split(";")[0])
                return answer.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read()!r}") from error

    def _prepare(self):
        self.api("POST", "/auth/", {"username": "admin", "password": "password"})
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
        public = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
        plugin = {
            "jwt-type": "rsa",
            "jwt-key-size": "256",
            "key": private.decode(),
            "cert": public.decode(),
            "refresh-token-duration": 1209600,
            "code-duration": 600,
            "subject-type": "public",
            "oauth-dpop-iat-duration": 30,
            "client-pubkey-parameter": "pubkey",
            "client-jwks-parameter": "jwks",
            **{name: True for name in SWITCHES},
        }
        for name, issuer, life in (("oidc", self.issuer, 3600), ("hasty", self.hasty_issuer, 4)):
            parameters = {**plugin, "iss": issuer, "access-token-duration": life}
            module = {"module": "oidc", "name": name, "display_name": name, "parameters": parameters}
            self.api("POST", "/mod/plugin", module)
        scope = {"name": "orders.read", "display_name": "orders", "password_required": False}
        self.api("POST", "/scope", scope)
        user = json.loads(urllib.request.urlopen(self._asked("/user/admin")).read())
        changes = {"scope": [*user["scope"], "orders.read"], "password": self.password}
        self.api("PUT", "/user/admin", {**user, **changes})

    def _asked(self, path):
        return urllib.request.Request(self.url + "/api" + path, headers={"Cookie": self.cookie})

    def client(self, name, password, **members):
        body = {
            "client_id": name,
            "name": name,
            "confidential": True,
            "enabled": True,
            "password": password,
            # The same once more: what assertions are verified with.
            "client_secret": password,
            "scope": ["orders.read"],
            "authorization_type": [
                "client_credentials",
                "code",
                "password",
                "refresh_token",
                "device_authorization",
            ],
            "redirect_uri": ["http://127.0.0.1:8765/cb"],
            "token_endpoint_auth_method": [
                "client_secret_basic",
                "client_secret_post",
                "client_secret_jwt",
                "private_key_jwt",
            ],
            **members,
        }
        self.api("POST", "/client?source=database", body)
