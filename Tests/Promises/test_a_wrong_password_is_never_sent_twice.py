"""Promise: no account is ever locked by us."""

import pytest

from harness import eventually, together

WRONG = "not-the-password-9"


def test_a_quarantine_survives_a_restart_and_ends_by_command(gateway):
    gateway.webgate(password=WRONG).start()
    for answer in together(50, lambda i: gateway.get()):
        assert answer.status == 503 and "quarantine" in answer.problem["type"]
    assert gateway.lab.counts()["password_rejected"] == 1
    for way in (gateway.kill, gateway.stop):
        way()
        gateway.start()
        assert gateway.get().status == 503
    counts = gateway.lab.counts()
    assert (counts["password_rejected"], gateway.lab.get("/state")["locked"]) == (1, False)

    gateway.lab.post("/password", {"password": WRONG})
    assert gateway.get().status == 503
    status, _, errors = gateway.command("reset", "hr")
    assert status == 0, errors
    assert gateway.get().status == 200
    assert gateway.lab.counts()["password_rejected"] == 1


def test_a_password_refused_at_the_login_itself(gateway):
    gateway.lab.faults(wrong_password={"on": "authenticate"})
    gateway.webgate().start()
    for _ in range(5):
        assert gateway.get().status == 503
    counts = gateway.lab.counts()
    assert (counts["authenticate"], counts["password_rejected"]) == (1, 1)


def test_a_new_secret_value_lifts_the_quarantine(gateway):
    gateway.webgate(password=WRONG).start()
    assert gateway.get().status == 503
    (gateway.folder / "hr-password").write_text(gateway.lab.password)
    eventually(lambda: gateway.get().status == 200, within=20, every=0.2, what="the new password in use")
    assert gateway.lab.counts()["password_rejected"] == 1


@pytest.mark.parametrize("fault", ["issuer_hang", "issuer_close"])
def test_a_login_without_an_answer_counts_as_spent(gateway, fault):
    gateway.lab.faults(**{fault: {"on": "authenticate"}})
    gateway.webgate(token={"acquire_timeout": "1s", "negative_for": "1s"}).start()
    for _ in range(5):
        assert gateway.get().status in (503, 504)
    assert gateway.lab.counts()["issuer_calls"] <= 2


def test_a_basic_password_goes_out_once(gateway):
    password = gateway.secret("basic-password", WRONG)
    gateway.with_identity({"basic": {"username": gateway.lab.user, "password": password}}).start()
    answers = together(30, lambda i: gateway.get("/basic/employees/1"))
    assert {answer.status for answer in answers} <= {502, 503}
    assert gateway.lab.counts()["password_rejected"] == 1


def test_a_basic_password_that_is_right(gateway):
    password = gateway.secret("basic-password", gateway.lab.password)
    gateway.with_identity({"basic": {"username": gateway.lab.user, "password": password}}).start()
    assert {answer.status for answer in together(30, lambda i: gateway.get("/basic/employees/1"))} == {200}


def test_a_wrong_client_secret_is_not_hammered(gateway):
    gateway.lab.faults(invalid_client=True)
    gateway.oauth().start()
    for _ in range(20):
        assert gateway.get("/api/employees/1").status == 503
    assert gateway.lab.counts()["token"] == 1
    gateway.kill()
    gateway.start()
    for _ in range(3):
        assert gateway.get("/api/employees/1").status == 503
    assert gateway.lab.counts()["token"] == 1
