"""Promise: two identities are two, also where they differ in nothing but a secret: each route sends the credential of its own."""

import base64
import contextlib
import json
import signal
import urllib.parse

import pytest

from harness import eventually
from scripted import Scripted, answer

NAMES = ("anna", "bert")


class Mirror:
    """An issuer whose tokens name what they were had for, and an API that notes what came on which path."""

    def __init__(self):
        self.seen = {}

    def issue(self, peer):
        for request in peer.requests():
            form = urllib.parse.parse_qs(request.body.decode())
            told = [form[name][0] for name in ("refresh_token", "assertion", "subject_token", "actor_token", "key") if name in form]
            # Only which of the two it was, so that no secret comes back in a token.
            name = next((name for name in NAMES if name in "".join(told)), "nobody")
            grant = {"access_token": f"token-of-{name}", "token_type": "Bearer", "expires_in": 3600}
            grant |= {"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}
            peer.send(answer(json.dumps(grant).encode(), b"Content-Type: application/json"))

    def serve(self, peer):
        for request in peer.requests():
            path = request.target.split("/")[1]
            self.seen.setdefault(path, set()).add(request.field("Authorization"))
            peer.send(answer(b"ok"))


@contextlib.contextmanager
def two(gateway, block, reverse=False):
    """One identity each for anna and bert, made by `block(name, issuer)`, for the same API on one address."""
    mirror = Mirror()
    with Scripted(mirror.issue) as issuer, Scripted(mirror.serve) as api:
        routes = [
            gateway.route(name, api.address) | {"use": name, "match": {"path": f"/{name}/"}}
            for name in (reversed(NAMES) if reverse else NAMES)
        ]
        who = {name: block(name, f"http://{issuer.address}") for name in NAMES}
        gateway.config = gateway.frame({"identities": who, "routes": routes})
        yield mirror


def check(gateway, mirror, wanted):
    for _ in range(3):
        for name in NAMES:
            answer = gateway.get(f"/{name}/x")
            assert answer.status == 200, f"{answer}\n{gateway.text()}"
    assert mirror.seen == {name: {wanted(name)} for name in NAMES}


def password(gateway, name):
    """A secret whose value says whose it is."""
    return gateway.secret(f"secret-{name}", f"{name}-secret-value")


SCHEMES = {
    "static": (
        lambda gateway, name, issuer: {"static": {"value": password(gateway, name), "prefix": "Bearer "}},
        lambda name: f"Bearer {name}-secret-value",
    ),
    "basic": (
        lambda gateway, name, issuer: {"basic": {"username": "svc", "password": password(gateway, name)}},
        lambda name: "Basic " + base64.b64encode(f"svc:{name}-secret-value".encode()).decode(),
    ),
    "refresh_token": (
        lambda gateway, name, issuer: oauth(issuer, "refresh_token", refresh_token=password(gateway, name)),
        lambda name: f"Bearer token-of-{name}",
    ),
    "jwt_bearer": (
        lambda gateway, name, issuer: oauth(issuer, "jwt_bearer", assertion=password(gateway, name)),
        lambda name: f"Bearer token-of-{name}",
    ),
    "token_exchange": (
        lambda gateway, name, issuer: oauth(issuer, "token_exchange", subject_token=password(gateway, name)),
        lambda name: f"Bearer token-of-{name}",
    ),
    "recipe": (
        lambda gateway, name, issuer: {"recipe": steps(password(gateway, name), issuer)},
        lambda name: f"Bearer token-of-{name}",
    ),
    "signing_recipe": (
        lambda gateway, name, issuer: {"recipe": signing(password(gateway, name), issuer)},
        lambda name: "Signed " + base64.b64encode(f"{name}-secret-value".encode()).decode(),
    ),
}


def oauth(issuer, grant, **more):
    return {"oauth2": {"token_url": f"{issuer}/token", "client_id": "edge", "client_auth": "none", "grant": grant} | more}


def steps(secret, issuer):
    step = {
        "name": "login",
        "post": f"{issuer}/login",
        "form": {"key": "{secret.key}"},
        "take": {"token": {"json": "/access_token"}, "lifetime": {"json": "/expires_in"}},
    }
    return {
        "secrets": {"key": {"value": secret, "to": [issuer]}},
        "steps": [step],
        "token": "{login.token}",
        "inject": {"header": "Authorization", "value": "Bearer {token}"},
    }


def signing(secret, issuer):
    return {
        "secrets": {"key": {"value": secret, "to": [issuer]}},
        "sign": {"proof": "{secret.key | base64}"},
        "inject": {"header": "Authorization", "value": "Signed {sign.proof}"},
    }


@pytest.mark.parametrize("scheme", SCHEMES)
def test_each_route_has_the_credential_of_its_own(gateway, scheme):
    block, wanted = SCHEMES[scheme]
    with two(gateway, lambda name, issuer: block(gateway, name, issuer)) as mirror:
        if scheme == "signing_recipe":
            # A signature may only go where its secret may.
            for route in gateway.config["routes"]:
                gateway.config["identities"][route["use"]]["recipe"]["secrets"]["key"]["to"] = [route["to"]]
        gateway.start()
        check(gateway, mirror, wanted)
        # What the first life has left in the store must not be mixed up by the next, whose routes stand in another order.
        gateway.stop()
        gateway.config["routes"].reverse()
        mirror.seen.clear()
        gateway.start()
        check(gateway, mirror, wanted)


def test_a_route_that_changes_its_identity_changes_its_credential_at_once(gateway):
    block, wanted = SCHEMES["static"]
    with two(gateway, lambda name, issuer: block(gateway, name, issuer)) as mirror:
        gateway.config["routes"] = [gateway.config["routes"][0]]
        gateway.start()
        assert gateway.get("/anna/x").status == 200
        gateway.config["routes"][0]["use"] = "bert"
        gateway.file.write_text(json.dumps(gateway.config))
        gateway.process.send_signal(signal.SIGHUP)
        eventually(lambda: any(event["message"] == "reload done" for event in gateway.events()), what="the reload")
        mirror.seen.clear()
        assert gateway.get("/anna/x").status == 200
        assert mirror.seen == {"anna": {wanted("bert")}}


def test_two_secrets_for_one_user_or_client_are_a_mistake(gateway):
    """Whose a token is, the issuer tells by the client or the user: both would be served with the token of either."""

    def told(**who):
        gateway.config = gateway.frame({"identities": who, "routes": [gateway.route(next(iter(who)), "127.0.0.1:1")]})
        gateway.file.write_text(json.dumps(gateway.config))
        return gateway.command("check", str(gateway.file), config=False)

    issuer = "http://127.0.0.1:1"
    client = {"token_url": f"{issuer}/token", "client_id": "edge"}
    user = {"service": issuer, "user_agent_prefix": "OIC-Agent", "client_id": "edge", "username": "svc"}
    device = {"base": f"{issuer}/mfp", "mode": "confidential", "client_id": "edge"}
    for block, key in (
        ({"oauth2": client}, "client_secret"),
        ({"oauth2": client | {"grant": "password", "username": "svc", "client_auth": "none"}}, "password"),
        ({"oauth2": client | {"client_auth": "private_key_jwt"}}, "key"),
        ({"oam_webgate": user}, "password"),
        ({"mobilefirst": device}, "client_secret"),
    ):
        scheme = next(iter(block))
        anna, bert = ({scheme: block[scheme] | {key: password(gateway, name)}} for name in NAMES)
        status, out, errors = told(anna=anna, bert=bert)
        assert status == 78 and "identity 'bert' differs from 'anna' at most in secrets" in out + errors, (block, out + errors)
        # The same secret twice is one principal under two names, and they share what it brings.
        status, out, errors = told(anna=anna, bert=anna)
        assert status == 0, out + errors
    # Values in the file itself are not told apart by their places.
    status, out, errors = told(**{name: {"static": {"value": f"literal:{name}-secret-value"}} for name in NAMES})
    assert status == 78 and "differs from 'anna' at most in secrets" in out + errors
    assert "secret-value" not in out + errors


def test_two_persons_are_not_one_login(gateway):
    login = {"oauth2": {"issuer": "https://idp.example.com", "grant": "device_code", "client_id": "tv", "client_auth": "none"}}
    gateway.config = gateway.frame({"identities": {"anna": login, "bert": login}, "routes": [gateway.route("anna", "127.0.0.1:1")]})
    gateway.file.write_text(json.dumps(gateway.config))
    status, out, errors = gateway.command("check", str(gateway.file), config=False)
    assert status == 78 and "identity 'bert' is the same login as 'anna'" in out + errors
