"""Promise: a challenge that asks for more is a miss, not a failure."""


def test_a_step_up_gets_a_token_of_that_level(hot):
    assert hot.get("/hr/rest/level/3/x").status == 200
    counts = hot.lab.counts()
    assert (counts["step_up"], counts["access"], counts["authenticate"]) == (1, 1, 0)


def test_the_higher_token_serves_the_lower_level_too(hot):
    assert hot.get("/hr/rest/level/3/x").status == 200
    hot.lab.reset(tokens=False)
    for _ in range(5):
        assert hot.get("/hr/rest/employees/1").status == 200
        assert hot.get("/hr/rest/level/3/x").status == 200
    assert hot.lab.counts()["issuer_calls"] == 0


def test_a_wider_scope_is_fetched(gateway):
    gateway.oauth(route={"scopes": ["read"]}, identity={"allowed_scopes": ["read", "write"]}).start().warm(
        "/api/employees/1"
    )
    assert gateway.get("/api/scoped/write/x").status == 200
    assert gateway.lab.counts()["token"] == 2
