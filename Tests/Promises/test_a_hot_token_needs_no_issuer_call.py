"""Promise: a hit asks no issuer and meets no challenge."""

import http.client

from harness import address, send


def test_a_thousand_requests_on_one_token(hot):
    connection = http.client.HTTPConnection(*address(hot.listen), timeout=30)
    try:
        for number in range(1000):
            answer = send(connection, "GET", f"/hr/rest/employees/{number}")
            assert answer.status == 200 and answer.json["id"] == number
    finally:
        connection.close()
    counts = hot.lab.counts()
    assert (counts["issuer_calls"], counts["challenge"], counts["api_ok"]) == (0, 0, 1000)


def test_the_first_request_costs_one_grant(gateway):
    gateway.webgate().start().warm()
    counts = gateway.lab.counts()
    assert (counts["register"], counts["authenticate"], counts["access"]) == (1, 1, 1)
    assert (counts["challenge"], counts["api_ok"]) == (1, 1)


def test_every_path_below_the_gate_uses_the_same_token(hot):
    for path in ("/hr/rest/employees/9", "/hr/rest/headers", "/hr/rest/deep/er/echo"):
        assert hot.get(path).status == 200
    assert hot.lab.counts()["challenge"] == 0


def test_two_gates_of_one_origin_have_a_token_each(hot):
    for _ in range(3):
        assert hot.get("/payroll/rest/employees/1").status == 200
        assert hot.get("/hr/rest/employees/1").status == 200
    counts = hot.lab.counts()
    assert (counts["access"], counts["authenticate"]) == (1, 0)
    assert counts["api_ok"] == 6


def test_a_path_without_a_gate_is_passed_and_learned(gateway):
    gateway.webgate().start()
    for number in range(3):
        assert gateway.get(f"/hr/rest/open/employees/{number}").status == 200
    assert gateway.lab.counts()["issuer_calls"] == 0
    assert gateway.get("/hr/rest/employees/1").status == 200


def test_a_bearer_token_is_fetched_once_and_before_the_first_request(gateway):
    gateway.oauth(route={"scopes": ["read", "write"]}).start()
    for _ in range(20):
        assert gateway.get("/api/scoped/write/echo").status == 200
    counts = gateway.lab.counts()
    assert (counts["token"], counts["challenge"], counts["api_ok"]) == (1, 0, 20)
