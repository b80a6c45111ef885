"""Promise: valid tokens survive a restart and an issuer outage."""

import pytest


@pytest.mark.parametrize("way", ["kill", "stop"])
def test_a_restart_while_the_issuer_is_down(hot, way):
    getattr(hot, way)()
    hot.lab.post("/issuer/stop")
    hot.start()
    for number in range(100):
        assert hot.get(f"/hr/rest/employees/{number}").status == 200
    counts = hot.lab.counts()
    assert (counts["issuer_calls"], counts["challenge"]) == (0, 0)


def test_a_bearer_token_is_served_from_the_store(gateway):
    gateway.oauth().start().warm("/api/employees/1")
    gateway.kill()
    gateway.lab.reset(tokens=False)
    gateway.lab.post("/issuer/stop")
    gateway.start()
    assert gateway.get("/api/employees/1").status == 200


def test_the_registration_outlives_the_tokens(hot):
    hot.stop()
    hot.lab.post("/revoke")
    hot.start()
    assert hot.get().status == 200
    counts = hot.lab.counts()
    assert (counts["register"], counts["access"]) == (0, 1)


def test_a_memory_only_gateway_asks_again(gateway):
    gateway.oauth(changes={"store": None}).start().warm("/api/employees/1")
    gateway.stop()
    gateway.start().warm("/api/employees/1")
    assert gateway.lab.counts()["token"] == 2


def test_no_secret_stands_in_the_store_in_clear(hot):
    hot.stop()
    data = b"".join(path.read_bytes() for path in hot.folder.glob("tokens.db*"))
    assert data
    for secret in hot.lab.get("/secrets") + [hot.lab.password]:
        assert secret.encode() not in data
    assert all(path.stat().st_mode & 0o077 == 0 for path in hot.folder.glob("tokens.db*"))
