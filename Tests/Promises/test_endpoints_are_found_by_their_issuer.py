"""Promise: `issuer` alone is enough, and only the issuer itself may say where secrets go."""

import pytest

from harness import call, eventually


def identity(gateway, provider, **more):
    provider.client("c", secret="client-c-1", auth="client_secret_post", grants=["client_credentials"])
    block = {"issuer": provider.issuer, "client_id": "c", "client_auth": "post"}
    block["client_secret"] = gateway.secret("client-secret", "client-c-1")
    return {"oauth2": {**block, **more}, "token": {"negative_for": "1s"}}


@pytest.mark.parametrize("places", [["oauth-authorization-server"], ["openid-configuration"]])
def test_either_well_known_place(gateway, provider, places):
    provider.post("faults", {"well_known": places})
    gateway.provider(provider, api=identity(gateway, provider)).start()
    assert call(gateway.listens["api"]).status == 200, gateway.text()


def test_metadata_is_read_once(gateway, provider):
    gateway.provider(provider, api=identity(gateway, provider)).start()
    for _ in range(3):
        jti = call(gateway.listens["api"]).json["jti"]
        provider.post("revoke_access", {"jti": [jti]})
    assert len(provider.steps("metadata")) == 1 and len(provider.steps("token")) == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": "http://127.0.0.1:1"},
        {"issuer": None},
        {"token_endpoint": None},
        {"token_endpoint": "http://192.0.2.1/token"},
        {"token_endpoint": ["http://127.0.0.1/token"]},
        {"token_endpoint": "http://user:password@127.0.0.1/token"},
    ],
)
def test_metadata_that_is_not_believed(gateway, provider, changes):
    provider.post("faults", {"metadata": changes})
    gateway.provider(provider, api=identity(gateway, provider)).start()
    answer = call(gateway.listens["api"])
    assert (answer.status, answer.problem["type"]) == (503, "urn:cardea:problems/issuer-answer-invalid"), answer
    assert provider.steps("token") == [] and b"192.0.2.1" not in answer.body
    # Put right, it is taken up without a restart.
    provider.post("faults", {"metadata": {}})
    eventually(lambda: call(gateway.listens["api"]).status == 200, every=0.1, what="the right metadata taken up")


def test_an_issuer_spelt_differently(gateway, provider):
    gateway.provider(provider, api=identity(gateway, provider, issuer=provider.issuer + "/")).start()
    answer = call(gateway.listens["api"])
    assert answer.status == 503 and "spelt" in answer.problem["detail"], answer
