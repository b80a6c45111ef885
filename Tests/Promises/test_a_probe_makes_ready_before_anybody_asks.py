"""Promise: with `probe`, a challenge-driven identity has its token before the first request and renews it without one."""

from harness import eventually


def answered(gateway):
    try:
        return gateway.ask("/readyz").status
    except ConnectionError:
        return None


def test_required_and_probed_it_is_ready_with_a_token(gateway):
    probed = {"probe": "/hr/rest/employees/1"}
    gateway.webgate(identity=probed, token={"startup": "required"}).start()
    assert gateway.lab.counts()["access"] == 1
    assert gateway.get("/hr/rest/employees/42").status == 200
    assert (gateway.lab.counts()["access"], gateway.lab.counts()["challenge"]) == (1, 1)


def test_it_waits_for_an_upstream_that_comes_later(gateway):
    gateway.lab.post("/protected/stop")
    probed = {"probe": "/hr/rest/employees/1"}
    gateway.webgate(identity=probed, token={"startup": "required"}).start(ready=False)
    eventually(lambda: answered(gateway) == 503, what="the process to live and not to be ready")
    gateway.lab.post("/protected/start")
    eventually(lambda: gateway.ask("/readyz").status == 200, what="readiness once the upstream answers")
    gateway.baseline = gateway.descriptors()
    assert gateway.get("/hr/rest/employees/42").status == 200
