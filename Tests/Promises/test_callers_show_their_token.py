"""Promise: with `callers.token` only who brings the token is served; it is ours and reaches nobody else."""

import base64

import pytest

from harness import call, eventually, free_port, together

TOKEN = "caller-token-+/=~"


def start(gateway, echo, use="none", identities=None, listeners=None, **route):
    reference = gateway.secret("caller-token", TOKEN)
    route = {**gateway.route("api", echo.origin), "use": use, "callers": {"token": reference}, **route}
    more = {"listeners": listeners} if listeners else {}
    gateway.config = gateway.frame({"identities": identities or {}, "routes": [route], **more})
    return gateway.start()


def basic(password, user="anybody"):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


GOOD = [f"Bearer {TOKEN}", f"bearer  {TOKEN}", basic(TOKEN), basic(TOKEN, "")]
BAD = [
    None,
    "",
    "Bearer",
    "Bearer ",
    f"Bearer {TOKEN}x",
    f"Bearer {TOKEN[:-1]}",
    f"Digest {TOKEN}",
    TOKEN,
    basic("wrong"),
    basic(""),
    "Basic !!!!",
    "Basic " + base64.b64encode(TOKEN.encode()).decode(),
    "Basic " + "A" * 9000,
]


@pytest.mark.parametrize("value", GOOD)
def test_who_brings_it_is_served_and_it_stays_here(gateway, echo, value):
    start(gateway, echo)
    answer = gateway.get("/a", headers={"Authorization": value})
    assert answer.status == 200, answer
    assert "authorization" not in {name.lower() for name, _ in echo.seen[-1][1]}


def test_nobody_else_is(gateway, echo):
    start(gateway, echo)
    for value in BAD:
        answer = gateway.get("/a", headers={} if value is None else {"Authorization": value})
        assert (answer.status, answer.problem["type"]) == (401, "urn:cardea:problems/caller-token-refused"), value
        assert answer.values("WWW-Authenticate") == ['Bearer realm="edge-1"', 'Basic realm="edge-1"']
    assert not echo.seen and TOKEN not in gateway.text()


def test_two_are_none(gateway, echo):
    start(gateway, echo)
    from wire import Raw

    with Raw(gateway.listen) as raw:
        line = f"Authorization: Bearer {TOKEN}\r\n"
        raw.send(f"GET /a HTTP/1.1\r\nHost: {gateway.listen}\r\n{line}{line}\r\n".encode())
        assert raw.answer().status == 401
    assert not echo.seen


def test_ours_takes_its_place(gateway, echo):
    """The caller's token opens the gateway, the identity's the API."""
    identities = {"api": {"static": {"value": gateway.secret("api-key", "Bearer of-the-api")}}}
    start(gateway, echo, use="api", identities=identities)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert {answer.status for answer in together(8, lambda i: gateway.get(f"/{i}", headers=headers))} == {200}
    assert {dict(fields)["Authorization"] for _, fields in echo.seen} == {"Bearer of-the-api"}


def test_a_new_one_counts_and_the_old_one_does_not(gateway, echo):
    start(gateway, echo)
    assert gateway.get("/", headers={"Authorization": f"Bearer {TOKEN}"}).status == 200
    gateway.secret("caller-token", "another")
    eventually(
        lambda: gateway.get("/", headers={"Authorization": "Bearer another"}).status == 200, what="the new token"
    )
    assert gateway.get("/", headers={"Authorization": f"Bearer {TOKEN}"}).status == 401


def test_one_that_cannot_be_read_opens_nothing(gateway, echo):
    reference = f"file:{gateway.folder}/not-there"
    start(gateway, echo, callers={"token": reference})
    answer = gateway.get("/", headers={"Authorization": "Bearer "})
    assert answer.status == 401
    answer = gateway.get("/", headers={"Authorization": "Bearer x"})
    assert (answer.status, answer.problem["type"]) == (503, "urn:cardea:problems/secret-unreadable")
    assert not echo.seen


def test_a_proxy_has_a_field_of_its_own(gateway, echo):
    """And the caller's `Authorization` is the origin's."""
    listeners = {"proxy": {"address": f"127.0.0.1:{free_port()}", "mode": "forward_proxy"}}
    start(gateway, echo, listeners=listeners, listen="proxy", match={"host": "127.0.0.1"})
    address = listeners["proxy"]["address"]
    headers = {"Host": echo.origin.removeprefix("http://"), "Authorization": "Bearer of-the-origin"}
    refused = call(address, "GET", echo.origin + "/a", None, headers)
    assert (refused.status, refused.values("Proxy-Authenticate")[0]) == (407, 'Bearer realm="edge-1"'), refused
    for value in GOOD:
        answer = call(address, "GET", echo.origin + "/a", None, {**headers, "Proxy-Authorization": value})
        assert answer.status == 200, answer
        fields = {name.lower(): value for name, value in echo.seen[-1][1]}
        assert fields["authorization"] == "Bearer of-the-origin" and "proxy-authorization" not in fields
    assert call(address, "GET", echo.origin + "/a", None, {**headers, "Authorization": GOOD[0]}).status == 407
