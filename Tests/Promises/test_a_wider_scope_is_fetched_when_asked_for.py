"""Promise: a scope that an API asks for is fetched if the operator allows it, once, and stays with the token's successors."""

import pytest

from harness import call


@pytest.fixture
def ready(gateway, provider):
    provider.client("c", secret="client-c-1", auth="client_secret_post", grants=["client_credentials"])
    secret = gateway.secret("client-secret", "client-c-1")
    block = {"token_url": provider.issuer + "/token", "client_id": "c", "client_auth": "post", "client_secret": secret}
    gateway.provider(provider, api={"oauth2": {**block, "allowed_scopes": ["read", "write"]}})
    return gateway.start()


def test_it_is_asked_for_once(ready, provider):
    assert call(ready.listens["api"]).json["scope"] == "read"
    wide = call(ready.listens["api"], path="/?needs=write")
    assert wide.status == 200, f"{wide}\n{ready.text()}"
    assert set(wide.json["scope"].split()) == {"read", "write"}
    # The next token is as wide: the API does not have to ask again.
    provider.post("revoke_access", {"jti": [wide.json["jti"]]})
    renewed = call(ready.listens["api"])
    assert set(renewed.json["scope"].split()) == {"read", "write"}
    assert len(provider.steps("token")) == 3


def test_what_the_operator_does_not_allow_is_not_asked_for(ready, provider):
    answer = call(ready.listens["api"], path="/?needs=admin")
    assert answer.status == 403
    assert len(provider.steps("token")) == 1
    mixed = call(ready.listens["api"], path="/?needs=write+admin")
    assert mixed.status == 403
    assert all("admin" not in entry.get("scope", "") for entry in provider.steps("token"))


def test_a_403_that_stays_reaches_the_caller(ready, provider):
    """The server gives less than it was asked for: the API's word on the user's rights stands."""
    provider.client("c", secret="client-c-1", auth="client_secret_post", grants=["client_credentials"], scope="read")
    answer = call(ready.listens["api"], path="/?needs=write")
    assert answer.status == 403 and "insufficient_scope" in answer.field("WWW-Authenticate"), answer
    assert len(provider.steps("token")) == 2
