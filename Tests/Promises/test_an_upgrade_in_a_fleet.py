"""Promise: gateways of a fleet are upgraded in place one after the other, and the fleet's refresh token and its one refused password stay
what they are: no step is made twice, and callers of the others notice nothing."""

import threading

import pytest

from fleets import fleet, state
from harness import call, eventually
from test_a_fleet_shares_one_grant import WRONG, asked, cold, revoke, rotating
from upgrades import upgrade


pytestmark = pytest.mark.usefixtures("orphans")


def test_a_refresh_token_goes_round_through_upgrades(gateways, provider, redis):
    made = fleet(gateways, 2, redis.url, rotating(provider))
    assert set(asked(made)) == {200}
    for round in range(4):
        upgraded, other = made[round % 2], made[(round + 1) % 2]
        statuses, done = [], threading.Event()

        def ask():
            while not done.is_set():
                statuses.append(call(other.listens["api"], timeout=30).status)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            upgrade(upgraded)
        finally:
            done.set()
            asking.join(60)
        assert set(statuses) == {200}
        eventually(lambda: state(upgraded) == "serving", what="the shared store in use by the new process")
        revoke(provider, upgraded)
        eventually(lambda: set(asked(made, 2)) == {200}, what="tokens for both")
    assert provider.steps("refresh_reused") == []
    assert len(provider.steps("password")) == 1


def test_a_refused_password_stays_refused_through_upgrades(gateways, lab, redis):
    made = fleet(gateways, 2, redis.url, lambda gateway: gateway.webgate(password=WRONG))
    assert made[0].get().status == 503
    for gateway in made:
        upgrade(gateway)
        eventually(lambda: state(gateway) == "serving", what="the shared store in use by the new process")
        assert set(cold(made, 4, "/hr/rest/employees/1")) == {503}
    assert (lab.counts()["password_rejected"], lab.get("/state")["locked"]) == (1, False)
