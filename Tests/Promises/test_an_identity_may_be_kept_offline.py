"""Promise: `connectivity` says how an identity stands to its issuer: offline never asks it, online trusts nothing that was stored before
the start, auto does what serves callers."""

import json
import signal
import time

import pytest

from harness import eventually, together

API = "/api/employees/1"


def stored(gateway, **token):
    """A gateway that stopped with a token in its store, about to start with other settings."""
    gateway.oauth().start().warm(API)
    gateway.stop()
    gateway.lab.reset(tokens=False)
    gateway.oauth(token=token)
    return gateway


def kind(answer):
    return answer.problem["type"].rpartition("/")[2]


def test_offline_serves_what_is_stored_and_asks_nobody(gateway):
    stored(gateway, connectivity="offline").start()
    assert {answer.status for answer in together(30, lambda _: gateway.get(API))} == {200}
    assert gateway.lab.counts()["issuer_calls"] == 0


def test_offline_without_a_token_says_so(gateway):
    gateway.oauth(token={"connectivity": "offline"}).start()
    for _ in range(3):
        answer = gateway.get(API)
        assert (answer.status, kind(answer)) == (503, "issuer-unavailable")
        assert "offline" in answer.problem["detail"]
    assert gateway.lab.counts()["issuer_calls"] == 0


def test_offline_a_token_that_ran_out_is_not_replaced(gateway):
    gateway.lab.faults(token_lifetime_ms=6_000)
    gateway.oauth(token={"default_lifetime": "6s"}).start().warm(API)
    gateway.stop()
    gateway.lab.reset(tokens=False)
    gateway.oauth(token={"default_lifetime": "6s", "connectivity": "offline"}).start()
    assert gateway.get(API).status == 200
    eventually(lambda: gateway.get(API).status == 503, within=10, every=0.2, what="the token's end")
    assert gateway.lab.counts()["issuer_calls"] == 0


def test_offline_a_refused_token_is_not_replaced(gateway):
    stored(gateway, connectivity="offline").start()
    gateway.lab.post("/revoke")
    for _ in range(5):
        assert gateway.get(API).status in (502, 503)
    assert gateway.lab.counts()["issuer_calls"] == 0


@pytest.mark.parametrize("path", ["/hr/rest/employees/1"])
def test_offline_no_password_is_sent(gateway, path):
    """Driven by challenges: the 401 of a cold path starts no login."""
    gateway.webgate(token={"connectivity": "offline"}).start()
    for _ in range(5):
        answer = gateway.get(path)
        assert answer.status == 503 and "offline" in answer.problem["detail"], answer
    counts = gateway.lab.counts()
    assert (counts["issuer_calls"], counts["password_rejected"]) == (0, 0)


def test_offline_a_challenge_driven_token_is_served_from_the_store(gateway):
    gateway.webgate().start().warm()
    gateway.stop()
    gateway.lab.reset(tokens=False)
    gateway.webgate(token={"connectivity": "offline"}).start()
    assert gateway.get().status == 200
    assert gateway.lab.counts()["issuer_calls"] == 0


def test_online_trusts_nothing_that_was_stored(gateway):
    stored(gateway, connectivity="online").start()
    assert gateway.get(API).status == 200
    assert gateway.lab.counts()["token"] == 1
    # What it has got itself it keeps.
    assert {gateway.get(API).status for _ in range(10)} == {200}
    assert gateway.lab.counts()["token"] == 1


def test_online_an_issuer_that_is_down_is_an_outage(gateway):
    stored(gateway, connectivity="online", negative_for="1s")
    gateway.lab.post("/issuer/stop")
    gateway.start()
    assert kind(gateway.get(API)) == "issuer-unavailable"
    gateway.lab.post("/issuer/start")
    eventually(lambda: gateway.get(API).status == 200, within=15, every=0.3, what="service once the issuer is back")


def test_auto_bridges_an_outage_and_goes_on_afterwards(gateway):
    stored(gateway, connectivity="auto", negative_for="1s")
    gateway.lab.post("/issuer/stop")
    gateway.start()
    assert gateway.get(API).status == 200
    gateway.lab.post("/issuer/start")
    gateway.lab.post("/revoke")
    eventually(lambda: gateway.get(API).status == 200, within=15, every=0.3, what="a new token")
    assert gateway.lab.counts()["token"] == 1


def test_the_mode_changes_with_a_reload(gateway):
    gateway.oauth(token={"connectivity": "offline"}).start()
    assert gateway.get(API).status == 503
    gateway.oauth(token={"connectivity": "auto"})
    reload(gateway)
    eventually(lambda: gateway.get(API).status == 200, within=15, every=0.2, what="service")
    gateway.oauth(token={"connectivity": "offline"})
    reload(gateway)
    time.sleep(1)
    assert gateway.get(API).status == 200
    gateway.lab.post("/revoke")
    before = gateway.lab.counts()["token"]
    assert gateway.get(API).status in (502, 503)
    assert gateway.lab.counts()["token"] == before


def reload(gateway):
    gateway.file.write_text(json.dumps(gateway.config, indent=2))
    before = sum(event["message"] == "reload done" for event in gateway.events())
    gateway.process.send_signal(signal.SIGHUP)
    eventually(lambda: sum(event["message"] == "reload done" for event in gateway.events()) > before, what="the reload")
