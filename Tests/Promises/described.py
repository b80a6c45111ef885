"""An API that describes itself (RFC 9728), for a test to set up."""

import json
import pathlib
import ssl
import subprocess
import sys
import urllib.request

WELL_KNOWN = "/.well-known/oauth-protected-resource"


class Described:
    """`api` is its origin; it takes the tokens of `provider`."""

    def __init__(self, provider, *files, ca=None):
        program = pathlib.Path(__file__).resolve().parent / "servers" / "described_resource.py"
        words = [sys.executable, program, provider.issuer + "/jwks", *map(str, files)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        assert line, "the resource server did not start"
        self.api = json.loads(line)["api"]
        self.context = ssl.create_default_context(cafile=ca) if ca else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()

    def control(self, what, value):
        body = json.dumps(value).encode()
        with urllib.request.urlopen(f"{self.api}/control/{what}", body, timeout=10, context=self.context) as answer:
            return json.loads(answer.read())

    def set(self, **values):
        self.control("set", values)

    def log(self):
        return self.control("log", {})

    def leads(self, *issuers, resource="{api}/", place=WELL_KNOWN, **more):
        """Refuses with a pointer to metadata that names these issuers."""
        document = {"resource": resource, "authorization_servers": list(issuers)}
        challenge = f'Bearer error="invalid_token", resource_metadata="{{api}}{place}"'
        self.set(**{"challenges": [challenge], "documents": {place: document}, **more})


def identity(gateway, own, *providers, **more):
    """A client that `providers` know, with the issuer `own`; a token of another is looked for at once."""
    for provider in providers:
        provider.client("c", secret="client-c-1", auth="client_secret_post", grants=["client_credentials"])
    block = {"issuer": own, "client_id": "c", "client_auth": "post"}
    block["client_secret"] = gateway.secret("client-secret", "client-c-1")
    return {"oauth2": {**block, **more}, "token": {"negative_for": "1s"}}


def start(gateway, api, who, **route):
    gateway.config = gateway.frame(
        {"identities": {"api": who}, "routes": [{**gateway.route("api", api.api), "scopes": ["read"], **route}]}
    )
    return gateway.start()
