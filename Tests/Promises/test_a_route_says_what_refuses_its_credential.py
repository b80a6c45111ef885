"""Promise: which statuses refuse a credential is the route's to say (`on_rejected.statuses`), and of several challenges in one answer each
is read, whatever stands beside it."""

import contextlib

import pytest

from described import Described, start
from harness import Provider, eventually, together


@pytest.fixture(scope="module")
def api_process():
    with contextlib.closing(Provider()) as provider, Described(provider) as api:
        api.provider = provider
        yield api


@pytest.fixture
def api(api_process):
    """An API that takes the tokens of `api.provider`."""
    api_process.provider.post("reset")
    api_process.set()
    return api_process


def run(gateway, api, route=None, **more):
    api.provider.client("c", secret="client-c-1", auth="client_secret_post", grants=["client_credentials"])
    block = {"issuer": api.provider.issuer, "client_id": "c", "client_auth": "post"}
    block["client_secret"] = gateway.secret("client-secret", "client-c-1")
    who = {"oauth2": {**block, **more}, "token": {"negative_for": "1s"}}
    start(gateway, api, who, **(route or {}))
    return gateway.get("/warm").json["jti"]


def grants(api):
    return len(api.provider.steps("token"))


# --- Statuses --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 403, 419, 440, 498, 500, 599])
def test_a_status_of_the_routes_own_is_a_refusal(gateway, api, status):
    jti = run(gateway, api, {"on_rejected": {"statuses": [status]}})
    api.set(status=status, refused=[jti], challenges=[])
    answer = gateway.get("/x")
    assert answer.status == 200 and answer.json["jti"] != jti, f"{answer}\n{gateway.text()}"
    assert grants(api) == 2 and len([entry for entry in api.log() if entry["path"] == "/x"]) == 2


@pytest.mark.parametrize("status", [403, 419, 500])
def test_refused_twice_it_is_the_gateways_answer(gateway, api, status):
    jti = run(gateway, api, {"on_rejected": {"statuses": [401, status]}})
    body = {"status": status, "body": "internal-host-7", "headers": {"WWW-Authenticate": "Bearer"}}
    api.set(documents={"/x": body})
    answer = gateway.get("/x")
    assert (answer.status, answer.problem["type"]) == (502, "urn:cardea:problems/upstream-refused-credential"), answer
    assert f"received-status={status}" in answer.field("Proxy-Status") and b"internal" not in answer.body
    assert grants(api) == 2
    # In the window after it no further grant is made for it, and the other paths go on.
    assert gateway.get("/x").status == 502 and grants(api) == 2
    assert gateway.get("/other").status == 200
    assert jti != gateway.get("/other").json["jti"]


@pytest.mark.parametrize("status", [403, 419])
def test_or_the_apis_own_where_the_route_wants_it(gateway, api, status):
    run(gateway, api, {"on_rejected": {"statuses": [status], "final": "pass"}})
    api.set(status=status, documents={"/x": {"status": status, "body": "told", "headers": {"X-Told": "1"}}})
    answer = gateway.get("/x")
    assert (answer.status, answer.body, answer.field("X-Told")) == (status, b"told", "1") and grants(api) == 2


def test_a_status_that_is_not_named_is_an_answer(gateway, api):
    """Also the 401, with its challenges as they came."""
    jti = run(gateway, api, {"on_rejected": {"statuses": [419]}})
    challenges = ['Basic realm="a, b", Bearer error="invalid_token"', 'Newauth x="y"']
    api.set(status=401, refused=[jti], challenges=challenges)
    answer = gateway.get("/x")
    assert answer.status == 401 and answer.values("WWW-Authenticate") == challenges, answer
    assert grants(api) == 1


def test_without_a_word_only_401(gateway, api):
    jti = run(gateway, api)
    for status in [400, 403, 407, 419, 500]:
        api.set(status=status, refused=[jti])
        # A 407 of an origin means nobody here (RFC 9110 §15.5.8), and is passed on.
        assert gateway.get("/x").status == status
    assert grants(api) == 1


def test_where_it_cannot_be_sent_again(gateway, api):
    jti = run(gateway, api, {"on_rejected": {"statuses": [419], "replay": "never"}})
    api.set(status=419, refused=[jti])
    assert gateway.get("/x").status == 419
    eventually(lambda: grants(api) == 2, what="the grant for the next request")
    assert eventually(lambda: gateway.get("/x").status == 200, what="the next request served")


def test_a_burst_of_them_is_one_grant(gateway, api):
    jti = run(gateway, api, {"on_rejected": {"statuses": [500]}})
    api.set(status=500, refused=[jti])
    assert {answer.status for answer in together(16, lambda i: gateway.get(f"/{i}"))} == {200}
    assert grants(api) == 2


@pytest.mark.parametrize("statuses", [[401], [401, 419], [403], None])
def test_wider_scopes_are_fetched_all_the_same(gateway, api, statuses):
    """Naming statuses takes nothing away from what a challenge asks for."""
    route = {} if statuses is None else {"on_rejected": {"statuses": statuses}}
    run(gateway, api, route, allowed_scopes=["read", "write"])
    api.set(needs=["write"], challenges=['Bearer error="insufficient_scope", scope="read write"'])
    answer = gateway.get("/x")
    assert answer.status == 200 and "write" in answer.json["scope"], f"{answer}\n{gateway.text()}"
    assert grants(api) == 2


def test_mistakes_are_named(gateway):
    for statuses in ["[200]", "[302]", "[600]", "[abc]"]:
        gateway.file.write_text(
            "identities: {a: {static: {value: env:V}}}\n"
            'routes: [{listen: "127.0.0.1:1", to: "https://api.example.com", use: a, on_rejected: '
            f"{{statuses: {statuses}}}}}]\n"
        )
        status, out, _ = gateway.command("check", str(gateway.file), config=False)
        assert status == 78 and ":2:" in out, (statuses, out)


# --- Challenges ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "challenges",
    [
        ['Basic realm="a, b", Bearer realm="c", error="invalid_token"'],
        ['Basic realm="a"', 'Bearer error="invalid_token"'],
        ["Negotiate YII=, NTLM", "bearer"],
        ['Newauth realm="Bearer error=\\"x", Bearer'],
        ['Broken realm="unterminated', 'Bearer error="invalid_token"'],
        [", ,, Bearer ,"],
        ['DPoP algs="ES256"', 'Bearer error="invalid_token", error="invalid_token"'],
        ["Basic realm=x"],
        [],
    ],
)
def test_a_refused_token_is_replaced_whatever_else_is_offered(gateway, api, challenges):
    jti = run(gateway, api)
    api.set(refused=[jti], challenges=challenges)
    answer = gateway.get("/x")
    assert answer.status == 200 and answer.json["jti"] != jti and answer.field("WWW-Authenticate") is None
    assert grants(api) == 2


@pytest.mark.parametrize(
    "challenges",
    [
        ['Basic realm="a, b", Bearer realm="c", error="insufficient_scope", scope="write"'],
        ['Bearer realm="other", scope="admin"', 'Bearer error="insufficient_scope", scope="write"'],
        ['Bearer error="invalid_token", scope="admin", Bearer error="insufficient_scope", scope="write"'],
        ['Broken x="', 'BEARER SCOPE="write" , ERROR="insufficient_scope"'],
        ['Newauth scope="admin", error="insufficient_scope"', 'Bearer error=insufficient_scope, scope=write'],
    ],
)
def test_the_one_that_says_what_is_wrong_counts(gateway, api, challenges):
    run(gateway, api, allowed_scopes=["read", "write"])
    api.set(needs=["write"], challenges=challenges)
    answer = gateway.get("/x")
    assert answer.status == 200, f"{answer}\n{gateway.text()}"
    assert set(answer.json["scope"].split()) == {"read", "write"} and grants(api) == 2


@pytest.mark.parametrize(
    "challenges",
    [
        ['Basic realm="a", error="insufficient_scope", scope="write"'],
        ['Bearer error="insufficient_scope", scope="write", scope="read"'],
        ['Bearer error="insufficient_scope", scope="write" broken'],
        ['Bearer error="insufficient_scope", scope="admin"', 'Basic scope="write"'],
        ['Newauth a="Bearer error=insufficient_scope, scope=write"'],
    ],
)
def test_one_that_is_not_ours_asks_for_nothing(gateway, api, challenges):
    run(gateway, api, allowed_scopes=["read", "write"])
    api.set(needs=["write"], challenges=challenges)
    answer = gateway.get("/x")
    assert answer.status == 403 and answer.values("WWW-Authenticate") == challenges and grants(api) == 1
