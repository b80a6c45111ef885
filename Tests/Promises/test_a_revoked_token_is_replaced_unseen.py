"""Promise: a token revoked in flight costs one grant, and no caller sees a 401."""

import time

from harness import together


def test_a_burst_on_a_revoked_webgate_token(hot):
    hot.lab.post("/revoke")
    answers = together(200, lambda i: hot.get(f"/hr/rest/employees/{i}"))
    assert {answer.status for answer in answers} == {200}
    counts = hot.lab.counts()
    assert (counts["access"], counts["authenticate"], counts["register"]) == (1, 0, 0)


def test_a_burst_of_posts_is_replayed_with_its_bodies(hot):
    hot.lab.post("/revoke")
    answers = together(50, lambda i: hot.call("POST", "/hr/rest/echo", b"%05d" % i * 2000))
    assert [(answer.status, answer.json["length"]) for answer in answers] == [(200, 10_000)] * 50
    assert hot.lab.counts()["access"] == 1


def test_a_burst_on_a_revoked_bearer_token(gateway):
    gateway.oauth().start().warm("/api/employees/1")
    gateway.lab.reset()
    answers = together(200, lambda i: gateway.get("/api/employees/1"))
    assert {answer.status for answer in answers} == {200}
    assert gateway.lab.counts()["token"] == 1


def test_an_expired_user_token_is_renewed_by_one_login(hot):
    hot.lab.post("/revoke")
    hot.lab.post("/revoke_user_tokens")
    assert hot.get().status == 200
    counts = hot.lab.counts()
    assert (counts["authenticate"], counts["register"]) == (1, 0)


def test_a_user_token_that_dies_in_the_middle_of_a_grant(hot):
    hot.lab.post("/revoke")
    hot.lab.faults(user_token_expired={"times": 1})
    assert hot.get().status == 200
    assert hot.lab.counts()["authenticate"] == 1


def test_a_rejected_handle_is_registered_again_once(hot):
    hot.lab.post("/revoke")
    hot.lab.post("/revoke_user_tokens")
    hot.lab.post("/revoke_handles")
    assert hot.get().status == 200
    assert hot.lab.counts()["register"] == 1


def test_a_token_is_replaced_before_it_expires(gateway):
    gateway.lab.faults(token_lifetime_ms=4000)
    gateway.oauth(token={"refresh_ahead": "50%"}).start().warm("/api/employees/1")
    statuses = set()
    end = time.monotonic() + 7
    while time.monotonic() < end:
        statuses.add(gateway.get("/api/employees/1").status)
    assert statuses == {200}
    counts = gateway.lab.counts()
    assert counts["token"] >= 2 and counts["api_401"] == 0
