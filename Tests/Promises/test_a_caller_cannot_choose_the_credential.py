"""Promise: the upstream sees our credential and no caller's copy of it; callers never see ours."""

import pytest

from harness import sha256


def seen(answer):
    assert answer.status == 200, answer
    return [(name.lower(), value) for name, value in answer.json["headers"]]


def credentials(fields):
    return [value for name, value in fields if name.replace("_", "-") == "authorization"]


@pytest.mark.parametrize(
    "sent",
    [
        [("Authorization", "Bearer mine")],
        [("authorization", "OAM-Auth mine"), ("AUTHORIZATION", "Basic bWluZTptaW5l")],
        [("Authorization_", "x"), ("Authorization", "x")],
        [("Connection", "Authorization"), ("Authorization", "x")],
        [("Connection", "close, Authorization, User-Agent")],
        [("Proxy-Authorization", "Basic bWluZTptaW5l")],
    ],
)
def test_exactly_our_credential_arrives(hot, sent):
    fields = seen(hot.get("/hr/rest/headers", headers=sent))
    ours = credentials(fields)
    assert len(ours) == 1 and ours[0].startswith("sha256:")
    assert ours[0][7:] not in {sha256(value.encode()) for _, value in sent}
    assert all(name != "proxy-authorization" for name, _ in fields)
    agents = [value for name, value in fields if name == "user-agent"]
    assert len(agents) == 1 and agents[0].startswith("OIC-Agent")


@pytest.mark.parametrize("name", ["X_Api_Key", "x-api-key", "X-API_KEY", "X-Api-Key"])
def test_look_alikes_of_the_injected_field_are_removed(gateway, name):
    key = gateway.secret("api-key", gateway.lab.api_key)
    gateway.with_identity({"static": {"value": key, "header": "X-Api-Key"}}).start()
    fields = seen(gateway.get("/key/headers", headers=[(name, "forged")]))
    found = [(other, value) for other, value in fields if other.replace("_", "-") == "x-api-key"]
    assert found == [("x-api-key", "sha256:" + sha256(gateway.lab.api_key.encode()))]


def test_a_trailer_cannot_carry_one(hot):
    with hot.raw() as raw:
        raw.send(
            f"POST /hr/rest/echo HTTP/1.1\r\nHost: {hot.listen}\r\n"
            "Transfer-Encoding: chunked\r\nTrailer: Authorization\r\n\r\n"
            "2\r\nok\r\n0\r\nAuthorization: OAM-Auth forged\r\nX_Checksum: 1\r\n\r\n"
        )
        answer = raw.answer()
    assert answer.status == 200 and "authorization" not in [name.lower() for name in answer.json["trailers"]]


def test_the_prefix_goes_before_the_callers_agent(hot):
    fields = dict(seen(hot.get("/hr/rest/headers", headers={"User-Agent": "legacy/4.2"})))
    assert fields["user-agent"] == "OIC-Agent/1.0 legacy/4.2"


def test_session_cookies_of_the_gate_are_stripped(hot):
    answer = hot.get("/hr/rest/cookies")
    assert answer.values("Set-Cookie") == ["app=1; Path=/", "theme=dark"]


def test_a_challenge_never_shows_its_context(hot):
    hot.lab.post("/revoke")
    answer = hot.get()
    assert answer.status == 200 and answer.field("WWW-Authenticate") is None


def test_a_redirect_is_passed_and_not_followed(hot):
    answer = hot.get("/hr/rest/redirect?to=http://127.0.0.1:1/elsewhere")
    assert (answer.status, answer.field("Location")) == (302, "http://127.0.0.1:1/elsewhere")
    assert hot.lab.counts()["protected_requests"] == 1


def test_trace_is_refused(hot):
    assert hot.call("TRACE", "/hr/rest/employees/1").status in (403, 405, 501)
    assert hot.lab.counts()["protected_requests"] == 0


def test_the_gateway_names_itself_in_via(hot):
    fields = seen(hot.get("/hr/rest/headers"))
    assert ("via", "1.1 edge-1") in fields
    hop = {"connection", "keep-alive", "proxy-connection", "te", "upgrade", "transfer-encoding"}
    sent = [
        ("Keep-Alive", "5"),
        ("TE", "trailers"),
        ("Upgrade", "h2c"),
        ("Connection", "keep-alive, X-Hop"),
        ("X-Hop", "1"),
    ]
    names = {name for name, _ in seen(hot.get("/hr/rest/headers", headers=sent))}
    assert not names & (hop - {"connection"}) and "x-hop" not in names


def test_a_loop_is_refused(hot):
    answer = hot.get("/hr/rest/employees/1", headers={"Via": "1.1 edge-1"})
    assert answer.status == 502 and hot.lab.counts()["protected_requests"] == 0


def test_a_kept_value_arrives_under_its_other_name(gateway):
    inject = {"header": "Authorization", "value": "Bearer {token}", "caller_value": {"keep_as": "X-Caller-Authorization"}}
    gateway.oauth(route={"inject": inject}).start().warm("/api/employees/1")
    sent = {"Authorization": "Basic bGVnYWN5", "X-Caller-Authorization": "forged"}
    fields = gateway.get("/api/headers", headers=sent).json["headers"]
    assert [value for name, value in fields if name.lower() == "x-caller-authorization"] == ["Basic bGVnYWN5"]
