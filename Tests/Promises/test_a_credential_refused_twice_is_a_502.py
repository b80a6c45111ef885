"""Promise: after one replay we stop: 502 that says why, one grant, and the token stays in use elsewhere."""

from harness import together


def refused(answer):
    assert answer.status == 502
    assert answer.problem["type"].endswith("upstream-refused-credential")
    assert "received-status=401" in answer.field("Proxy-Status") and answer.field("Proxy-Status").startswith("edge-1")
    assert answer.field("WWW-Authenticate") is None and b"internal-host-7" not in answer.body


def test_one_grant_one_replay_then_a_problem(hot):
    hot.lab.faults(reject_tokens={"path": "/hr/rest/bad"})
    refused(hot.get("/hr/rest/bad/1"))
    counts = hot.lab.counts()
    assert (counts["access"], counts["authenticate"], counts["protected_requests"]) == (1, 0, 2)


def test_a_bad_url_does_not_cut_off_the_others(hot):
    hot.lab.faults(reject_tokens={"path": "/hr/rest/bad"})
    for _ in range(10):
        refused(hot.get("/hr/rest/bad/1"))
        assert hot.get("/hr/rest/employees/1").status == 200
    assert hot.lab.counts()["access"] == 1


def test_a_storm_on_a_bad_url_is_one_grant(hot):
    hot.lab.faults(reject_tokens={"path": "/hr/rest/bad"})
    for answer in together(50, lambda i: hot.get("/hr/rest/bad/1")):
        refused(answer)
    assert hot.lab.counts()["access"] <= 2


def test_final_pass_forwards_the_challenge(gateway):
    gateway.webgate(route={"on_rejected": {"final": "pass"}}).start().warm()
    gateway.lab.faults(reject_tokens={"path": "/hr/rest/bad"})
    answer = gateway.get("/hr/rest/bad/1")
    assert answer.status == 401 and answer.field("WWW-Authenticate").startswith("OAM-Auth")


def test_a_static_key_that_is_refused(gateway):
    key = gateway.secret("api-key", "a-wrong-key-value")
    gateway.with_identity({"static": {"value": key, "header": "X-Api-Key"}}).start()
    refused(gateway.get("/key/employees/1"))


def test_a_403_passes_and_asks_for_no_token(hot):
    answer = hot.get("/hr/rest/forbidden/x")
    assert answer.status == 403 and hot.lab.counts()["issuer_calls"] == 0


def test_a_login_page_is_not_relayed(hot):
    hot.lab.faults(redirect=True)
    hot.lab.post("/revoke")
    answer = hot.get()
    assert answer.status == 502 and b"obrareq" not in answer.body
