"""Promise: SIGUSR2 puts a new process in the place of the old one, and no request on a hot token fails."""

import os

import pytest

from harness import eventually
from load import Load
from upgrades import reaping, said, upgrade

UPGRADES = int(os.environ.get("CARDEA_UPGRADES", "10"))
PATH = "/api/employees/1"


@pytest.fixture(autouse=True)
def orphans():
    with reaping():
        yield


@pytest.fixture(params=["on", "off"])
def api(gateway, request):
    """A running gateway with a Bearer API, hot; inside the sandbox and outside."""
    gateway.oauth(changes={"sandbox": request.param}).start().warm(PATH)
    gateway.lab.reset(tokens=False)
    return gateway


def test_new_and_kept_connections(api):
    olds = []
    with Load(api.listen, PATH) as load:
        eventually(lambda: load.done > 50, what="the load running")
        for _ in range(UPGRADES):
            olds.append(upgrade(api))
            end = load.done
            eventually(lambda: load.done > end + 20, what="the load going on")
    assert load.failures == [], load.failures[:5]
    assert set(load.statuses) == {200}, load.statuses
    for old in olds:
        assert old.wait(20) == 0
    # Each found the token in the store.
    assert api.lab.counts()["token"] == 0, api.lab.counts()
    print(f"{UPGRADES} upgrades, {load.done} requests, 0 failed, longest {load.longest * 1000:.0f} ms")
    assert len(said(api, "upgrade done")) == UPGRADES
