"""Promise: whoever may write to the shared server of a fleet ends no gateway."""

import pytest

from harness import eventually
from test_a_fleet_shares_one_grant import asked, fleet, revoke, rotating


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
