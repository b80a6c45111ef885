"""Promise: what one gateway of a fleet has obtained by a password serves the others whole, also after the shared server was wiped."""


from test_a_fleet_shares_one_grant import WRONG, cold, fleet


def test_a_session_comes_with_its_registration(gateways, lab, redis):
    """The second gateway has the first one's session and makes a token of it, for which it needs the handle as well."""
    made = fleet(gateways, 2, redis.url, lambda gateway: gateway.webgate())
    for gateway in made:
        gateway.warm()
    lab.post("/revoke")
    assert made[1].get().status == 200
    counts = lab.counts()
    assert (counts["register"], counts["authenticate"], counts["access"]) == (1, 1, 2)


def test_a_server_that_is_wiped(gateways, lab, redis):
    """Also where the one that asks first has never had the session: it was another's login."""
    made = fleet(gateways, 3, redis.url, lambda gateway: gateway.webgate())
    made[0].warm()
    for asking in ([made[1]], [made[2]], made):
        assert set(cold([made[1]], 3, "/hr/rest/employees/1")) == {200}
        redis.do("FLUSHALL")
        lab.post("/revoke")
        assert set(cold(asking, 10, "/hr/rest/employees/1")) == {200}
    assert lab.counts()["authenticate"] == 1


def test_a_refused_password_outlives_a_wipe(gateways, lab, redis):
    made = fleet(gateways, 2, redis.url, lambda gateway: gateway.webgate(password=WRONG))
    assert made[0].get().status == 503
    redis.do("FLUSHALL")
    assert set(cold([made[1]], 5, "/hr/rest/employees/1")) == {503}
    assert lab.counts()["password_rejected"] == 1
