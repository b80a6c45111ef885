"""Promise: a person logs in once for all gateways of a fleet, also where the login is made without a gateway; a logout ends it for all."""

import json

import pytest

from fleets import join, state
from harness import call, eventually
from peers import Redis
from persons import Lines

SECRET = "client-x-1"


@pytest.fixture
def redis(tmp_path):
    server = Redis(tmp_path / "redis", keeps=True)
    yield server
    server.close()


@pytest.fixture
def pair(gateways, provider, redis):
    """Two gateways of one fleet, not started."""
    grants = ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"]
    provider.client("tv", secret=SECRET, grants=grants, redirect_uris=["http://127.0.0.1/callback"])
    made = [gateways("edge0"), gateways("edge1")]
    for gateway in made:
        block = {
            "issuer": provider.issuer,
            "grant": "device_code",
            "client_id": "tv",
            "client_secret": gateway.secret("client-secret", SECRET),
            "basic_encoding": provider.basic_encoding,
        }
        gateway.provider(provider, tv={"oauth2": block})
        join(gateway, redis.url)
        gateway.file.write_text(json.dumps(gateway.config))
    return made


def start(gateway):
    gateway.start()
    eventually(lambda: state(gateway) == "serving", what="the shared store in use")


def log_in(gateway, provider):
    lines = Lines(gateway, "tv")
    provider.post("device", {"user_code": lines.next()["prompt"]["code"], "verdict": "allow"})
    rest, _ = lines.ends()
    return json.loads(rest.splitlines()[-1])


def get(gateway):
    return call(gateway.listens["tv"])


def word(gateway):
    return gateway.ask("/status").json["identities"][0]["state"]


def revoke(gateway, provider):
    answer = get(gateway)
    assert answer.status == 200, f"{answer}\n{gateway.text()}"
    provider.post("revoke_access", {"jti": [answer.json["jti"]]})


def test_a_login_without_a_gateway_is_known_to_all(pair, provider):
    away, running = pair
    start(running)
    assert get(running).status == 503 and word(running) == "login_needed"
    assert "fleet" not in log_in(away, provider).get("detail", "")
    eventually(lambda: get(running).status == 200, what="the other gateway's token")
    # And the file that the login wrote is not older than what the fleet has made of it since.
    for _ in range(3):
        revoke(running, provider)
    start(away)
    for gateway in (away, running, away):
        # The token that it has may have been replaced by one that is dead as well.
        eventually(lambda: get(gateway).status == 200, what="a token")
        revoke(gateway, provider)
    assert provider.steps("refresh_reused") == []
    assert len([entry for entry in provider.steps("token") if "device" in entry["grant"]]) == 1


def test_a_login_replaces_what_the_fleet_has(pair, provider):
    """The one that was away knows nothing of the steps that the others have made; its person's login is the newest all the same."""
    away, running = pair
    start(running)
    log_in(running, provider)
    for _ in range(4):
        revoke(running, provider)
    provider.post("forget_refresh")
    assert get(running).status == 503 and word(running) == "login_needed"
    log_in(away, provider)
    eventually(lambda: get(running).status == 200, what="a token of the second login")
    for _ in range(2):
        revoke(running, provider)
    assert provider.steps("refresh_reused") == []


def test_a_logout_without_a_gateway_ends_it_for_all(pair, provider):
    away, running = pair
    start(running)
    log_in(running, provider)
    # The refresh token that is to be revoked is the last one, which the command has never seen.
    for _ in range(2):
        revoke(running, provider)
    rest, _ = Lines(away, "tv", command="logout").ends()
    assert "revoked at the issuer" in json.loads(rest)["detail"]
    assert len(provider.steps("revoked")) == 1
    eventually(lambda: word(running) == "login_needed", what="the logout known")


def test_a_login_while_the_shared_server_is_away_says_so(pair, provider, redis):
    away, running = pair
    redis.die()
    assert "fleet could not be told" in log_in(away, provider)["detail"]
    redis.start()
    # It brings the fleet its login when it runs.
    start(running)
    assert get(running).status == 503
    start(away)
    eventually(lambda: get(running).status == 200, within=20, every=0.2, what="a token")
    assert provider.steps("refresh_reused") == []


def test_a_login_while_the_server_was_away_is_the_newest_afterwards(pair, provider, redis):
    """However many steps the others had made that this gateway never saw."""
    away, running = pair
    start(running)
    start(away)
    log_in(running, provider)
    eventually(lambda: get(away).status == 200, what="the login known to both")
    away.stop()
    for _ in range(4):
        revoke(running, provider)
    provider.post("forget_refresh")
    redis.die()
    assert "fleet could not be told" in log_in(away, provider)["detail"]
    redis.start()
    eventually(lambda: state(running) == "serving", what="the shared store in use")
    start(away)
    # The first answers may be to a token of the fleet's that is revoked and that nobody has used since.
    eventually(lambda: get(away).status == 200, within=20, every=0.2, what="a token of the second login")
    revoke(away, provider)
    eventually(lambda: get(away).status == 200, within=20, every=0.2, what="another one by the same session")
    eventually(lambda: get(running).status == 200, within=20, every=0.2, what="a token of the second login")
    assert provider.steps("refresh_reused") == []
