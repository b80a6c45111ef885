"""Promise: the placeholder of `token_stub` admits nobody and reaches no upstream, wherever a caller shows it; the real token goes out in
its place."""

import pytest
import requests

from harness import call, free_port, together
from stubs import PASSWORD, REAL, SECRET, ask, assert_real, placeholder, start


def test_it_is_deleted_wherever_it_stands(gateway, echo):
    start(gateway, echo.origin)
    token = placeholder(gateway)
    encoded = token.replace("-", "%2D")
    headers = [
        ("Authorization", f"Bearer {token}"),
        ("X-Token", token),
        ("X-Kept", "yes"),
        ("Cookie", f"a=1; session={token}; b=2"),
        ("X_Access_Token", f"x {token} y"),
    ]
    answer = gateway.call("GET", f"/p?x=1&access_token={token}&y=2;z={encoded}&w=%20", None, headers)
    assert answer.status == 200
    path, fields = echo.seen[-1]
    sent = {name.lower(): value for name, value in fields}
    assert path == "/p?x=1&y=2&w=%20"
    assert (sent["authorization"], sent["cookie"], sent["x-kept"]) == (REAL, "a=1; b=2", "yes"), sent
    assert not {"x-token", "x_access_token"} & set(sent)
    only = gateway.call("GET", f"/p?access_token={token}", None, {"Cookie": f"t={token}"})
    assert only.status == 200 and echo.seen[-1][0] == "/p"
    assert "cookie" not in {name.lower() for name, _ in echo.seen[-1][1]}
    assert_real(echo)


@pytest.mark.parametrize(
    "route",
    [
        {"use": "none"},
        {"inject": {"header": "X-Key"}},
        {"inject": {"header": "Authorization", "caller_value": {"keep_as": "X-Caller"}}},
        {"inject": {"query": "key"}},
        {"inject": {"cookie": "key"}},
        {"http": "1.1", "headers": {"set": {"X-More": "1"}}},
    ],
)
def test_whatever_the_route_does(gateway, echo, route):
    start(gateway, echo.origin, **route)
    token = placeholder(gateway)
    headers = {"Authorization": f"Bearer {token}", "Cookie": f"a=1; t={token}"}
    assert gateway.call("GET", f"/p?t={token}&u=1", None, headers).status == 200
    assert_real(echo)
    path, fields = echo.seen[-1]
    assert "u=1" in path and any(name == "Cookie" and "a=1" in value for name, value in fields)
    # What is no placeholder passes as it did.
    plain = {"Authorization": "Bearer other", "Cookie": "=x; a=1; [=2"}
    assert gateway.call("GET", "/q?=1&a;b&", None, plain).status == 200
    path, fields = echo.seen[-1]
    sent = {name.lower(): value for name, value in fields}
    assert path.startswith("/q?=1&a;b&") and sent["cookie"].startswith("=x; a=1; [=2"), echo.seen[-1]
    if route.get("use") == "none":
        assert sent["authorization"] == "Bearer other"


def test_one_of_another_gateway_or_none_is_the_same(gateway, gateways, echo):
    start(gateway, echo.origin)
    other = start(gateways("other"), echo.origin)
    for headers in [{}, {"Authorization": f"Bearer {placeholder(other)}"}, {"Authorization": "Bearer of-nobody"}]:
        assert gateway.call("GET", "/p", None, headers).status == 200
        assert dict(echo.seen[-1][1])["Authorization"] == REAL
    # Also from before a restart.
    token = placeholder(gateway)
    gateway.stop()
    gateway.start()
    assert gateway.call("GET", "/p", None, {"Authorization": f"Bearer {token}"}).status == 200
    assert_real(echo)


def test_it_admits_nobody(gateway, echo):
    """Neither to a route that asks for the gateway's own token, nor as the name of an end user."""
    mine = {"token": gateway.secret("caller-token", "the-gateways-own")}
    exchange = {"token_url": "http://127.0.0.1:1/token", "client_id": "c", "client_auth": "none", "grant": "token_exchange"}
    listen = f"127.0.0.1:{free_port()}"
    identities = {
        "api": {"static": {"value": gateway.secret("api-key", REAL)}},
        "users": {"oauth2": exchange},
    }
    start(gateway, echo.origin, callers=mine)
    gateway.config["identities"] = identities
    gateway.config["routes"].append(
        {"listen": listen, "to": echo.origin, "use": "users", "subject": "from_caller_token", "callers": "local"}
    )
    gateway.stop()
    gateway.start()
    bearer = {"Authorization": f"Bearer {placeholder(gateway)}"}
    assert gateway.call("GET", "/p", None, bearer).status == 401
    answer = call(listen, "GET", "/p", None, bearer)
    assert (answer.status, answer.problem["type"]) == (403, "urn:cardea:problems/subject-missing"), answer
    assert not echo.seen


def test_who_may_ask_for_one_is_the_routes_word(gateway, echo):
    """With `callers.token` the caller's client secret is what admits it."""
    mine = {"token": gateway.secret("caller-token", "the-gateways-own")}
    start(gateway, echo.origin, stub_route={"callers": mine})
    site = f"http://{gateway.listen}/oauth/token"
    form = {"grant_type": "client_credentials"}
    assert requests.post(site, form).status_code == 401
    assert requests.post(site, form, auth=("half-legacy", SECRET)).status_code == 401
    assert requests.post(site, form, auth=("half-legacy", "the-gateways-own")).status_code == 200
    page = {"Origin": "https://evil.example"}
    assert requests.post(site, form, auth=("x", "the-gateways-own"), headers=page).status_code == 403


def test_many_at_once(gateway, echo):
    start(gateway, echo.origin, timeouts={"idle": "1s"})

    def one(index):
        token = ask(gateway, b"grant_type=password&password=" + PASSWORD.encode() + b"x" * (index * 500)).json
        return gateway.call("GET", "/p", None, {"Authorization": "Bearer " + token["access_token"]}).status

    assert together(24, one) == [200] * 24
    assert_real(echo)


def test_behind_a_proxy_for_a_token_url_that_cannot_be_changed(gateway, echo):
    """The caller's token URL is https: and compiled in: the proxy opens that host, answers, and connects to nobody for it."""
    authority = gateway.folder / "interception"
    status, out, error = gateway.command(
        "ca", "init", "--hosts", "idp.example.test", "--out", str(authority), config=False
    )
    assert status == 0, out + error
    listener = {
        "address": gateway.listen,
        "mode": "forward_proxy",
        "intercept": {"ca": f"{authority}.pem", "hosts": ["idp.example.test"]},
    }
    start(
        gateway,
        echo.origin,
        changes={"listeners": {"proxy": listener}},
        stub_route={"listen": "proxy", "match": {"host": "idp.example.test", "path": "/oauth/token"}},
        listen="proxy",
        match={"host": "127.0.0.1"},
    )
    proxy = f"http://{gateway.listen}"
    with requests.Session() as session:
        session.trust_env = False
        session.proxies = {"http": proxy, "https": proxy}
        session.verify = f"{authority}.crt"
        form = {"grant_type": "client_credentials", "client_secret": SECRET}
        answer = session.post("https://idp.example.test/oauth/token", form)
        assert answer.status_code == 200 and answer.headers["Cache-Control"] == "no-store", answer.text
        mine = {"Authorization": "Bearer " + answer.json()["access_token"]}
        assert session.get(echo.origin + "/p", headers=mine).status_code == 200
        # What else the host has is nobody's.
        assert session.get("https://idp.example.test/userinfo", headers=mine).status_code == 404
    assert_real(echo)
    assert dict(echo.seen[-1][1])["Authorization"] == REAL and len(echo.seen) == 1
