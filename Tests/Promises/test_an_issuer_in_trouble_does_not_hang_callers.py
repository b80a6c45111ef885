"""Promise: whatever the issuer does, a caller gets an answer soon, and it tells nothing of the issuer."""

import time

import pytest

from harness import eventually

SHORT = {"acquire_timeout": "2s", "negative_for": "5s"}


def trouble(gateway, path="/api/employees/1", statuses=(502, 503)):
    begin = time.monotonic()
    answer = gateway.get(path)
    assert time.monotonic() - begin < 9
    assert answer.status in statuses, answer
    assert answer.problem["type"] and answer.field("Proxy-Status").startswith("edge-1")
    for word in (b"internal-issuer-host", b"<html", gateway.lab.issuer.encode()):
        assert word not in answer.body and word.decode() not in str(answer.fields)
    return answer


def test_5xx_is_503_with_retry_after(gateway):
    gateway.lab.faults(issuer_status=503, issuer_retry_after=7)
    gateway.oauth(token=SHORT).start()
    answer = trouble(gateway, statuses=(503,))
    assert 1 <= int(answer.field("Retry-After")) <= 300
    for _ in range(20):
        trouble(gateway, statuses=(503,))
    assert gateway.lab.counts()["token"] <= 3


def test_a_stopped_issuer(gateway):
    gateway.lab.post("/issuer/stop")
    gateway.oauth(token=SHORT).start()
    assert int(trouble(gateway, statuses=(503,)).field("Retry-After")) >= 1


def test_a_hung_issuer(gateway):
    gateway.lab.faults(issuer_hang=True)
    gateway.oauth(token=SHORT).start()
    trouble(gateway, statuses=(503, 504))


def test_a_slow_issuer_within_the_time(gateway):
    gateway.lab.faults(issuer_slow_ms=1000)
    gateway.oauth(token={"acquire_timeout": "30s"}).start()
    assert gateway.get("/api/employees/1").status == 200


@pytest.mark.parametrize(
    "fault",
    [
        "issuer_html",
        "issuer_empty",
        "issuer_empty_object",
        "issuer_huge_json",
        "issuer_redirect",
        "issuer_garbage",
        "issuer_close",
        "issuer_reset",
    ],
)
@pytest.mark.parametrize("kind", ["oauth", "webgate"])
def test_an_answer_that_is_no_token(gateway, fault, kind):
    gateway.lab.faults(**{fault: True})
    getattr(gateway, kind)(token=SHORT).start()
    trouble(gateway, "/api/employees/1" if kind == "oauth" else "/hr/rest/employees/1")
    assert gateway.lab.counts()["api_ok"] == 0


@pytest.mark.parametrize(
    "kind, limit", [("oauth", None), ("webgate", "access"), ("webgate", "authenticate"), ("webgate", "register")]
)
def test_a_token_with_line_breaks_is_never_used(gateway, kind, limit):
    gateway.lab.faults(issuer_crlf_token={"on": limit} if limit else True)
    getattr(gateway, kind)(token=SHORT).start()
    path = "/api/headers" if kind == "oauth" else "/hr/rest/headers"
    trouble(gateway, path)
    counts = gateway.lab.counts()
    assert (counts["api_ok"], counts["malformed"]) == (0, 0)


def test_a_context_that_the_issuer_calls_used(gateway):
    gateway.lab.faults(issuer_stale_context={"times": 1})
    gateway.webgate(token=SHORT).start()
    assert gateway.get().status in (200, 502, 503)
    assert gateway.lab.counts()["password_attempts"] <= 2


def test_a_valid_token_is_served_while_the_issuer_is_down(hot):
    hot.lab.post("/issuer/stop")
    for _ in range(20):
        assert hot.get().status == 200


def test_recovery_needs_no_restart(gateway):
    gateway.lab.faults(issuer_status=500)
    gateway.oauth(token={"negative_for": "1s"}).start()
    trouble(gateway, statuses=(503,))
    gateway.lab.faults(issuer_status=None)
    eventually(lambda: gateway.get("/api/employees/1").status == 200, within=20, every=0.2, what="recovery")
    assert gateway.ask("/readyz").status == 200
