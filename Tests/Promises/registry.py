"""Debian's docker-registry with token authentication, and a token server that signs for it."""

import base64
import json
import pathlib
import subprocess
import time
import urllib.parse

from harness import eventually, executable, free_port
from served import Quiet, Served


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class TokenServer(Served):
    """Distribution's token protocol: Basic credentials, a service, scopes; the answer is a JWT with its certificate."""

    account, service = "ci", "registry.test"

    def __init__(self, folder, password):
        self.folder, self.password = pathlib.Path(folder), password
        self.asked, self.refused = [], 0
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=tokens"]
            + ["-keyout", str(self.folder / "sign.key"), "-out", str(self.folder / "sign.pem")],
            check=True,
            capture_output=True,
        )
        der = subprocess.run(
            ["openssl", "x509", "-in", str(self.folder / "sign.pem"), "-outform", "DER"], check=True, capture_output=True
        ).stdout
        self.certificate = base64.b64encode(der).decode()
        outer = self

        class Handler(Quiet):
            def do_GET(self):
                status, body = outer.answer(self.path, self.headers)
                self.respond(status, json.dumps(body).encode(), "application/json")

        super().__init__(Handler)

    def answer(self, target, headers):
        url = urllib.parse.urlsplit(target)
        query = urllib.parse.parse_qs(url.query)
        wanted = base64.b64encode(f"{self.account}:{self.password}".encode()).decode()
        if headers["Authorization"] != f"Basic {wanted}":
            self.refused += 1
            return 401, {"details": "no"}
        if url.path != "/token" or query.get("service") != [self.service]:
            return 400, {"details": "which service?"}
        scopes = query.get("scope", [""])[0]
        self.asked.append(scopes)
        access = []
        for scope in filter(None, scopes.split(" ")):
            kind, name, actions = scope.split(":")
            access.append({"type": kind, "name": name, "actions": actions.split(",")})
        return 200, {"token": self.token(access), "expires_in": 300}

    def token(self, access):
        now = int(time.time())
        claims = {"iss": "tokens.test", "sub": self.account, "aud": self.service, "access": access}
        claims |= {"nbf": now - 10, "iat": now, "exp": now + 300, "jti": str(len(self.asked))}
        header = {"typ": "JWT", "alg": "RS256", "x5c": [self.certificate]}
        text = ".".join(base64url(json.dumps(part).encode()) for part in (header, claims))
        signature = subprocess.run(
            ["openssl", "dgst", "-sha256", "-sign", str(self.folder / "sign.key")],
            input=text.encode(),
            check=True,
            capture_output=True,
        ).stdout
        return f"{text}.{base64url(signature)}"


class Registry:
    def __init__(self, folder, tokens):
        folder = pathlib.Path(folder)
        binary = executable("CARDEA_DOCKER_REGISTRY", "docker-registry", "apt-get install docker-registry")
        self.address = f"127.0.0.1:{free_port()}"
        # The realm is a place that nobody may ask.
        (folder / "registry.yml").write_text(
            f"""version: 0.1
log: {{level: warn}}
storage: {{filesystem: {{rootdirectory: {folder}/images}}, delete: {{enabled: true}}}}
http: {{addr: "{self.address}", secret: registry-secret}}
auth:
  token:
    realm: http://127.0.0.1:9/elsewhere
    service: {tokens.service}
    issuer: tokens.test
    rootcertbundle: {folder}/sign.pem
"""
        )
        self.output = open(folder / "registry.log", "wb")
        self.process = subprocess.Popen(
            [binary, "serve", str(folder / "registry.yml")], stdout=self.output, stderr=self.output
        )
        eventually(self.answers, within=20, what="the registry answering")

    def answers(self):
        from harness import call

        assert self.process.poll() is None, "the registry ended by itself"
        try:
            return call(self.address, path="/v2/", timeout=5).status == 401
        except OSError:
            return False

    def close(self):
        self.process.kill()
        self.process.wait()
        self.output.close()
