"""Promise: a client secret, an assertion or a token of somebody else that the issuer has refused is not sent again: not by the next
caller, not after a restart, not after a kill; a changed one is."""

import json

import pytest

from harness import eventually
from scripted import Scripted, answer, echo, identified, problem_type


class Refusing:
    """A token endpoint that knows one good word among what a client sends; counts every request."""

    def __init__(self, error, good):
        self.error, self.good, self.seen = error, good, []

    def __call__(self, peer):
        for request in peer.requests():
            text = request.body.decode() + (request.field("Authorization") or "")
            self.seen.append(text)
            if self.good in text:
                grant = {"access_token": "token-1", "token_type": "Bearer", "expires_in": 600}
                peer.send(answer(json.dumps(grant).encode(), b"Content-Type: application/json"))
                continue
            status = b"401 Unauthorized" if self.error == "invalid_client" else b"400 Bad Request"
            peer.send(answer(json.dumps({"error": self.error}).encode(), b"Content-Type: application/json", status=status))


SECRET = {"client_auth": "post"}
KINDS = {
    "client secret": ("invalid_client", "client_secret", SECRET),
    "assertion": ("invalid_grant", "assertion", {"grant": "jwt_bearer", **SECRET}),
    "token of somebody else": ("invalid_grant", "subject_token", {"grant": "token_exchange", **SECRET}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["stop", "kill"])
def test_after_a_restart(gateway, kind, way):
    error, name, more = KINDS[kind]
    script = Refusing(error, "the-good-one")
    with Scripted(echo) as upstream, Scripted(script) as issuer:
        block = {"token_url": f"http://{issuer.address}/token", "client_id": "c", **more}
        block["client_secret"] = gateway.secret("client", "c" * 20)
        block[name] = gateway.secret("refused", "a.bad.one-9")
        identified(gateway, upstream, {"oauth2": block}).start()
        assert problem_type(gateway.get("/1")) == "credential-quarantined"
        assert len(script.seen) == 1
        for _ in range(3):
            getattr(gateway, way)()
            gateway.start()
            for _ in range(2):
                assert problem_type(gateway.get("/1")) == "credential-quarantined"
        assert len(script.seen) == 1
        # While it serves, and before it starts.
        gateway.stop()
        gateway.secret("refused", "a.the-good-one.b")
        gateway.start()
        eventually(lambda: gateway.get("/1").status == 200, within=20, every=0.1, what="the new one in use")
        assert len(script.seen) == 2


def test_a_reset_survives_a_restart_too(gateway):
    script = Refusing("invalid_client", "the-good-one")
    with Scripted(echo) as upstream, Scripted(script) as issuer:
        block = {"token_url": f"http://{issuer.address}/token", "client_id": "c", "client_auth": "post"}
        block["client_secret"] = gateway.secret("refused", "a.bad.one-9")
        identified(gateway, upstream, {"oauth2": block}).start()
        assert gateway.get("/1").status == 503
        status, _, errors = gateway.command("reset", "only")
        assert status == 0, errors
        gateway.stop()
        gateway.start()
        assert gateway.get("/1").status == 503
        assert len(script.seen) == 2
