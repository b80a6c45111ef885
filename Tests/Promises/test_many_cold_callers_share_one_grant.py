"""Promise: one issuer request per token, however many callers wait."""

import pytest

from harness import together


@pytest.mark.parametrize("slow", [0, 300])
def test_two_hundred_callers_at_a_webgate(gateway, slow):
    gateway.webgate().start()
    gateway.lab.faults(issuer_slow_ms=slow or None)
    answers = together(200, lambda i: gateway.get(f"/hr/rest/employees/{i}"))
    assert [(answer.status, answer.json["id"]) for answer in answers] == [(200, i) for i in range(200)]
    counts = gateway.lab.counts()
    assert (counts["register"], counts["authenticate"], counts["access"]) == (1, 1, 1)


def test_two_hundred_callers_at_a_bearer_api(gateway):
    gateway.oauth().start()
    gateway.lab.faults(issuer_slow_ms=300)
    assert {answer.status for answer in together(200, lambda i: gateway.get("/api/employees/1"))} == {200}
    assert gateway.lab.counts()["token"] == 1


def test_followers_share_the_failure_too(gateway):
    gateway.oauth().start()
    gateway.lab.faults(issuer_slow_ms=300, issuer_status=503)
    assert {answer.status for answer in together(100, lambda i: gateway.get("/api/employees/1"))} == {503}
    assert gateway.lab.counts()["token"] <= 2
