"""Promise: at no moment of an upgrade do two processes grant: a refused password is not sent again, a refresh token is used once."""

import signal
import threading

import pytest

from harness import call, eventually
from test_a_refresh_token_is_used_once import grants, identity, revoke
from upgrades import Heir, said, told, upgrade


pytestmark = pytest.mark.usefixtures("orphans")


def test_a_refused_password_stays_refused(gateway):
    gateway.webgate(password="not-the-password-9").start()
    for _ in range(3):
        assert gateway.get().status == 503
        upgrade(gateway)
    answer = gateway.get()
    assert "quarantine" in answer.problem["type"], answer
    assert gateway.lab.counts()["password_rejected"] == 1


def test_a_basic_password_too(gateway):
    password = gateway.secret("basic-password", "not-the-password-9")
    gateway.with_identity({"basic": {"username": gateway.lab.user, "password": password}}).start()
    for _ in range(3):
        assert gateway.get("/basic/employees/1").status in (502, 503)
        upgrade(gateway)
    assert gateway.get("/basic/employees/1").status == 503
    assert gateway.lab.counts()["password_rejected"] == 1


@pytest.mark.parametrize("sandbox", ["on", "off"])
def test_refresh_tokens_go_from_hand_to_hand(gateway, provider, sandbox):
    gateway.provider(provider, api=identity(gateway, provider), changes={"sandbox": sandbox}).start()
    for _ in range(4):
        revoke(gateway, provider)
        upgrade(gateway)
        revoke(gateway, provider)
    assert call(gateway.listens["api"]).json["sub"] == "anna"
    # The password once, in the first process's first grant.
    assert grants(provider) == ["password"] + ["refresh_token"] * 8
    assert provider.steps("refresh_reused") == []


def test_a_login_under_way_is_waited_for(gateway):
    """The issuer takes its time over the password. The old process brings it home; the new one finds what it brought."""
    lab = gateway.lab
    lab.faults(issuer_slow_ms={"on": "authenticate", "value": 1500})
    gateway.webgate().start()
    answers = []
    caller = threading.Thread(target=lambda: answers.append(gateway.get().status))
    caller.start()
    eventually(lambda: lab.counts()["authenticate"] == 1, what="the login under way")
    before, old = len(said(gateway, "upgrade done")), gateway.process
    old.send_signal(signal.SIGUSR2)
    gateway.process = Heir(told(gateway, "upgrade done", before)[0]["process"])
    caller.join(20)
    assert answers == [200], gateway.text()
    assert gateway.get().status == 200
    counts = lab.counts()
    assert (counts["authenticate"], counts["password_rejected"]) == (1, 0), counts
    gateway.baseline = gateway.descriptors() + 8
