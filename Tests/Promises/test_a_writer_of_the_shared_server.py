"""Promise: whoever may write to the shared server of a fleet ends no gateway, and with `format: new` forges no version, no end and no news."""

import pytest

from fleets import fleet, state
from harness import call, eventually
from test_a_fleet_shares_one_grant import asked, revoke, rotating


def keys(redis, part):
    """The keys of one kind: `s` of sessions, `v` of values."""
    found = [key for key in redis.do("--scan").decode().split() if f":{part}:" in key]
    assert found
    return found


@pytest.mark.parametrize("version", ["9223372036854775807", "9007199254740992", "-9223372036854775808", "18446744073709551616"])
def test_a_version_from_anywhere(gateways, provider, redis, version):
    """The step that follows would count on from it, after the issuer has replaced the refresh token."""
    made = fleet(gateways, 2, redis.url, rotating(provider))
    assert set(asked(made)) == {200}
    for _ in range(2):
        for key in keys(redis, "s"):
            redis.do("HSET", key, "version", version)
        revoke(provider, made[0])
        assert set(asked(made)) == {200}
    for gateway in made:
        gateway.stop()
        gateway.start()
    revoke(provider, made[1])
    eventually(lambda: set(asked(made, 2)) == {200}, what="tokens after the restart")
    assert provider.steps("refresh_reused") == []


def test_a_life_without_end(gateways, lab, provider, redis):
    made = fleet(gateways, 2, redis.url, lambda gateway: gateway.webgate())
    assert {gateway.get().status for gateway in made} == {200}
    for key in keys(redis, "s") + keys(redis, "v"):
        redis.do("PEXPIRE", key, "100000000000000")
    for gateway in made:
        gateway.stop()
    late = fleet(gateways, 1, redis.url, lambda gateway: gateway.webgate())[0]
    assert late.get().status == 200


def served(gateway):
    # A token that is refused again at once is replaced after a pause.
    eventually(lambda: call(gateway.listens["api"], timeout=30).status == 200, within=20, every=0.3, what="a token")


@pytest.mark.parametrize("format", ["both", "new"])
def test_what_is_deleted_comes_back_from_whoever_has_it(gateways, provider, redis, format):
    """A gateway starts from what another one has, not from what it saw last."""
    made = fleet(gateways, 2, shared(redis, format), rotating(provider))
    assert set(asked(made)) == {200}

    # Each makes a step; the second one alone knows what came of it.
    for gateway in made:
        revoke(provider, made[0])
        served(gateway)
        served(made[0])
    redis.do("DEL", *keys(redis, "s"), *keys(redis, "v"))
    revoke(provider, made[1])
    served(made[0])
    assert provider.steps("refresh_reused") == []


# --- What is sealed ----------------------------------------------------------------------------------------------------


def shared(redis, format):
    return {"url": redis.url, "format": format}


def channel(redis):
    (found,) = redis.do("PUBSUB", "CHANNELS").decode().split()
    return found


def reformat(gateway, format):
    """A restart with another `store.shared.format`."""
    gateway.config["store"]["shared"] = {**gateway.config["store"]["shared"], "format": format}
    gateway.stop()
    gateway.start()
    eventually(lambda: state(gateway) == "serving", what="the shared store in use")


@pytest.mark.parametrize("format", ["old", "both", "new"])
def test_a_forged_end_erases_no_session(gateways, provider, redis, format):
    """Not in the gateway that holds it either, where the server has no other copy to give back."""
    (made,) = fleet(gateways, 1, shared(redis, format), rotating(provider))
    assert asked([made], 1) == [200]
    [key] = keys(redis, "s")
    for _ in range(3):
        redis.do("PUBLISH", channel(redis), f"ended {key.rsplit(':', 1)[1]}")
    redis.do("DEL", key)
    revoke(provider, made)
    assert set(asked([made], 2)) == {200}
    assert len(provider.steps("password")) == 1
    assert provider.steps("refresh_reused") == []


def test_a_session_that_is_put_back_is_as_old_as_it_was(gateways, provider, redis):
    made = fleet(gateways, 2, shared(redis, "new"), rotating(provider))
    assert set(asked(made)) == {200}
    for key in keys(redis, "s"):
        redis.do("COPY", key, "kept")
        revoke(provider, made[0])
        served(made[0])
        # Each makes a step, so that it knows how far the session has come whether or not it has heard the others' news yet.
        for gateway in made:
            revoke(provider, gateway)
            served(gateway)
        redis.do("COPY", "kept", key, "REPLACE")
        redis.do("HSET", key, "version", "9007199254740992", "value", "x")
    revoke(provider, made[1])
    for gateway in made:
        served(gateway)
    assert provider.steps("refresh_reused") == []


# --- From one format to the other ---------------------------------------------------------------------------------------


def test_a_fleet_takes_the_new_format_alone(gateways, provider, redis):
    """One gateway after the other; whoever comes first does not start from a refresh token that is spent."""
    made = fleet(gateways, 3, shared(redis, "old"), rotating(provider))
    assert set(asked(made)) == {200}
    turn = 0
    for format in ("both", "new"):
        for gateway in made:
            turn += 1
            revoke(provider, made[turn % 3])
            assert call(made[(turn + 1) % 3].listens["api"], timeout=30).status == 200
            reformat(gateway, format)
            revoke(provider, gateway)
            assert set(asked(made, 2)) == {200}
    assert provider.steps("refresh_reused") == []
    assert len(provider.steps("password")) == 1
    # What stands there now is of the new format alone.
    for key in keys(redis, "s"):
        assert redis.do("HKEYS", key).decode().split() == ["sealed"]
    told = made[0].ask("/status").json["shared"]
    assert (told["format"], told["sealed"]) == ("new", True)


def test_who_takes_forgeable_versions_says_so(gateways, lab, redis):
    made = fleet(gateways, 1, redis.url, lambda gateway: gateway.oauth())[0]
    told = made.ask("/status").json["shared"]
    assert (told["format"], told["sealed"]) == ("both", False)
    made.told(lambda event: event["level"] == "warn" and "store.shared.format" in event["message"])
    status, said, errors = made.command("check")
    assert status == 0 and "say 'format: new'" in said + errors
