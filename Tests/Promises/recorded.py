"""A gateway with an identity of every scheme that keeps something, whose configuration gives the same digests wherever it runs: its stores and
what it leaves on a shared server can be recorded by one version and read by another. Tests/Golden/record makes the recordings."""

import contextlib
import json
import os
import pathlib
import random
import urllib.parse

from harness import call, free_port
from recipes import recipe
from served import Quiet, Served

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "Golden" / "before"
# Names and this port stand in the keys of what is stored; where they lead stands nowhere.
ISSUER, PORT, API = "issuer.golden.example", 44144, "api.golden.example"
ORIGIN = f"http://{ISSUER}:{PORT}"
HUB_BACKEND = "5d0c7c2a-0001-4b6e-9d55-lab000000001"

# The place of some secrets counts for a digest, so they are all in the environment.
SECRETS = {
    "GOLDEN_STORE_KEY": "c3RvcmUta2V5LWZvci10ZXN0cy0zMi1vY3RldHMhISE=",
    "GOLDEN_PASSWORD": "lab-password-1",
    "GOLDEN_WRONG_PASSWORD": "no-password-of-the-lab",
    "GOLDEN_CLIENT_SECRET": "s:cret/ %é1",
    "GOLDEN_API_KEY": "lab-key-7f3a9c",
    "GOLDEN_PIN": "4711-lab-pin",
    "GOLDEN_USER": "svc-hr",
}
PATHS = {
    "webgate": "/hr/rest/employees/1",
    "client": "/api/employees/1",
    "password": "/api/employees/1",
    "rotating": "/api/employees/1",
    "issued": "/api/employees/1",
    "mobile": "/api/employees/1",
    "teller": "/mfp/api/adapters/accountsRead/employees/1",
    "hub": "/mobile/custom/orders/employees/1",
    "play": "/media/CH1/play",
    "inhouse": "/hr/rest/employees/1",
    "refused": "/hr/rest/employees/1",
}
# Identities whose tokens come without a person and are kept: a gateway that starts with them needs nobody.
KEPT = [name for name in PATHS if name not in ("play", "refused")]
# Identities whose tokens come without a challenge, and so to a gateway that knows nothing of the API yet.
AHEAD = [name for name in KEPT if name not in ("webgate", "inhouse")]


def identities():
    client = {"client_id": "billing+1", "client_secret": "env:GOLDEN_CLIENT_SECRET"}
    user = {"username": "svc-hr", "password": "env:GOLDEN_PASSWORD"}
    oam = {"dialect": "12c", "base_url": ORIGIN, "identity_domain": "PayrollDomain"} | client
    gate = {
        "service": f"{ORIGIN}/oic_rest/rest/mobileoamauthentication",
        "user_agent_prefix": "OIC-Agent",
        "client_id": "EdgeProxy",
    }
    return {
        "webgate": {"oam_webgate": gate | user},
        "refused": {"oam_webgate": gate | {"username": "nobody", "password": "env:GOLDEN_WRONG_PASSWORD"}},
        "client": {"oauth2": {"token_url": f"{ORIGIN}/token"} | client},
        "password": {"oam_oauth": oam | user | {"grant": "password"}},
        "rotating": {"oam_oauth": oam | {"grant": "refresh_token", "refresh_token": "env:GOLDEN_FIRST"}},
        "issued": {
            "oam_oauth": {"dialect": "sim", "token_url": f"{ORIGIN}/oauth/tokens", "identity_domain": "tenant1", "client_auth": "issued_jwt"}
            | client
        },
        "mobile": {
            "oam_oauth": {
                "dialect": "11g",
                "service_endpoint": f"{ORIGIN}/ms_oauth/oauth2/endpoints/oauthservice",
                "client_type": "mobile",
                "client_id": "a1b2c3 mobile",
            }
            | user
        },
        "teller": {
            "mobilefirst": {
                "base": f"{ORIGIN}/mfp/api",
                "mode": "registered",
                "application": "com.acme.teller",
                "answers": {
                    "PinCodeAttempts": {"pin": "env:GOLDEN_PIN"},
                    "UserLogin": {"username": "env:GOLDEN_USER", "password": "env:GOLDEN_PASSWORD"},
                    "DeviceCheck": {"code": "env:GOLDEN_API_KEY"},
                },
            }
        },
        "hub": {
            "mobile_hub": {
                "base_url": ORIGIN,
                "backend_id": HUB_BACKEND,
                "method": "oauth_client",
                "token_url": f"{ORIGIN}/mobile-idcs/oauth2/v1/token",
                "persist_tokens": True,
            }
            | client
        },
        "play": {
            "adobe_pass": {
                "base_url": ORIGIN,
                "service_provider": "NORTH1",
                "mvpd": "CableCo",
                "software_statement": "env:GOLDEN_API_KEY",
                "domain_name": "north.example",
                "calls_per_second": 1000,
                "burst": 1000,
            }
        },
        "inhouse": {
            "recipe": recipe(
                "oam-webgate",
                {
                    "https://oam.example.com:14100": ORIGIN,
                    "EdgeProxy": "EdgeProxy",
                    "svc-hr": "svc-hr",
                    "file:/run/secrets/hr-password": "env:GOLDEN_PASSWORD",
                },
            )
        },
    }


def routes(upstream, listens):
    parts = {
        "password": {"scopes": ["read"]},
        "rotating": {"scopes": ["read"]},
        "issued": {"scopes": ["read"]},
        "mobile": {"scopes": ["read"]},
        "teller": {"scopes": ["accountsRead"]},
        "play": {"inject": {"header": "X-Adobe-Authorization"}, "resource": "{path.2}"},
        "inhouse": {"headers": {"set": {"User-Agent": "OIC-Agent/1.0"}}},
    }
    return [
        {
            "name": name,
            "listen": listens[name],
            "to": f"http://{API}",
            "addresses": [upstream],
            "allow_cleartext": True,
            "use": name,
        }
        | parts.get(name, {})
        for name in PATHS
    ]


def configure(gateway, issuer, upstream, store=True, shared=None, form="both"):
    """- Parameters: where the issuer's name leads, the address of the upstream, whether there is a file, a server to share and its format."""
    gateway.listens = {name: f"127.0.0.1:{free_port()}" for name in PATHS}
    gateway.secrets += [SECRETS[name] for name in SECRETS if name != "GOLDEN_USER"]
    kept = {"key": "env:GOLDEN_STORE_KEY"} | ({"path": str(gateway.store)} if store else {})
    if shared:
        kept["shared"] = {"url": shared, "format": form}
    gateway.config = gateway.frame() | {
        "store": kept,
        "identities": identities(),
        "routes": routes(upstream, gateway.listens),
        "defaults": {"network": {"allow_cleartext": True, "resolve": {ISSUER: issuer}}, "token": {"negative_for": "1s"}},
    }
    gateway.file.write_text(json.dumps(gateway.config))
    return gateway


def ask(gateway, name, **rest):
    return call(gateway.listens[name], path=PATHS[name], **rest)


def somewhere():
    """A loopback address that nobody else uses: the issuer's port is always the same."""
    return "127." + ".".join(str(random.randrange(1, 255)) for _ in range(3))


@contextlib.contextmanager
def environment(first="none"):
    """The secrets, for whatever is started meanwhile."""
    values = SECRETS | {"GOLDEN_FIRST": first}
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


class Witness(Served):
    """An API that takes every credential and keeps what each request brought."""

    def __init__(self):
        outer = self
        self.brought = []

        class Handler(Quiet):
            def do_GET(self):
                outer.brought.append({key.lower(): value for key, value in self.headers.items()})
                self.respond(200, b"ok")

        super().__init__(Handler)

    def credential(self, gateway, name):
        """The Authorization that a request of this route reaches the API with."""
        answer = ask(gateway, name)
        assert answer.status == 200, f"{name}: {answer}\n{gateway.text()[-4000:]}"
        return self.brought[-1].get("authorization")


class Issuer(Served):
    """Keeps what it is sent, at the address and port that the configuration means; `answer` says what it gives: (status, members)."""

    def __init__(self, place, answer):
        outer = self
        self.sent = []

        class Handler(Quiet):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
                outer.sent.append((self.path, body))
                status, members = answer(self.path, body)
                self.respond(status, json.dumps(members).encode(), "application/json")

        super().__init__(Handler, (place, PORT))

    def was_told(self, secret):
        """In a body, form-encoded or not."""
        return any(secret in body or urllib.parse.quote_plus(secret) in body for _, body in self.sent)


def expected():
    return json.loads((FOLDER / "expected.json").read_text())
