"""Promise: an API that wants its user authenticated in another way (RFC 9470) gets it from the person, where the operator allows it to ask,
and from nobody else; the login that is there goes on until then. Against a server on Authlib, whose page and ID tokens are the tests' own, and
against glewlwyd, which knows `max_age` and no classes."""

import contextlib
import json
import urllib.parse

import pytest
import requests
from glewlwyd import Glewlwyd
from persons import Lines, Person

from harness import call, eventually, free_port
from scripted import Scripted, answer, identified

SECRET = "client-x-1"
MFA = "urn:example:mfa"


@pytest.fixture
def configured(gateway, provider):
    def make(grant="authorization_code", step_up=None, **more):
        gateway.door = f"http://127.0.0.1:{free_port()}/callback"
        device = "urn:ietf:params:oauth:grant-type:device_code"
        provider.client(
            "tv",
            secret=SECRET,
            grants=["authorization_code", "refresh_token", "client_credentials", device],
            redirect_uris=[gateway.door],
            scope="openid read",
        )
        block = {
            "issuer": provider.issuer,
            "grant": grant,
            "client_id": "tv",
            "client_secret": gateway.secret("client-secret", SECRET),
            "basic_encoding": provider.basic_encoding,
            **({"redirect_uri": gateway.door} if grant == "authorization_code" else {}),
            **({"step_up": step_up} if step_up else {}),
            **more,
        }
        gateway.provider(provider, tv={"oauth2": block, "scopes": ["openid", "read"]})
        return gateway.start()

    return make


ALLOWED = {"acr_values": [MFA, "hw"], "max_age": "30s"}


def browse(gateway, status=0):
    """A person's browser, led through the login; what the command says at its end."""
    lines = Lines(gateway, "tv", "--no-browser")
    url = lines.next()["prompt"]["url"]
    back = requests.get(url, allow_redirects=False, timeout=10).headers["Location"]
    requests.get(back, timeout=10)
    told = json.loads(lines.ends(status)[0].splitlines()[-1])
    return told, dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))


def get(gateway, query=""):
    return call(gateway.listens["tv"], path="/" + (query and "?" + urllib.parse.urlencode(query)))


def needs_login(response):
    return (response.status, response.problem["type"]) == (503, "urn:cardea:problems/login-required")


def is_refused(response):
    return (response.status, response.problem["type"]) == (502, "urn:cardea:problems/upstream-refused-credential")


def identity(gateway):
    return call(gateway.admin, path="/status").json["identities"][0]


def grants(provider):
    return [entry["grant"] for entry in provider.steps("token")]


def test_the_person_is_asked_and_nothing_else_is_spent(configured, provider):
    gateway = configured(step_up=ALLOWED)
    browse(gateway)
    assert get(gateway).json["acr"] == "pwd"
    before = grants(provider)
    strong = {"acr": f"{MFA} unknown"}
    for _ in range(4):
        refused = get(gateway, strong)
        assert needs_login(refused), f"{refused}\n{gateway.text()}"
        detail = refused.problem["detail"]
        assert f"acr_values '{MFA}" in detail and "insufficient_user_authentication" in detail and "cardea login tv" in detail
        # A request that needs no more is served on.
        assert get(gateway).status == 200
    assert grants(provider) == before
    # Who looks is told.
    told = identity(gateway)
    assert (told["state"], told["login_asked_for"], told["advice"]) == ("login_due", f"acr_values '{MFA}'", "cardea login tv")
    _, explained, _ = gateway.command("explain", "GET", f"http://{gateway.listens['tv']}/")
    assert f"an upstream asks for a login with acr_values '{MFA}'" in explained
    assert f"an upstream may ask for a login with acr {MFA} or hw, and with a max_age of 30 s or more" in explained
    assert MFA in call(gateway.admin, path="/").body.decode()
    eventually(lambda: '"reason":"the upstream wants its user authenticated' in gateway.text(), what="the log")
    assert gateway.text().count('"reason":"the upstream wants its user authenticated') == 1
    # The next login asks for what was allowed of it.
    done, asked = browse(gateway)
    assert done["state"] == "done" and asked["acr_values"] == MFA and "max_age" not in asked
    assert get(gateway, strong).json["acr"] == MFA and get(gateway).json["acr"] == MFA
    assert identity(gateway)["state"] == "fresh"
    assert grants(provider)[len(before) :] == ["authorization_code", "refresh_token"]
    # The new login is renewed as any other.
    provider.post("revoke_access", {"jti": [get(gateway).json["jti"]]})
    assert get(gateway, strong).json["acr"] == MFA


def test_a_device_asks_for_it_too(configured, provider):
    gateway = configured("device_code", ALLOWED)

    def log_in():
        lines = Lines(gateway, "tv")
        provider.post("device", {"user_code": lines.next()["prompt"]["code"], "verdict": "allow"})
        return json.loads(lines.ends()[0].splitlines()[-1])

    log_in()
    assert needs_login(get(gateway, {"acr": "hw"}))
    log_in()
    assert get(gateway, {"acr": "hw"}).json["acr"] == "hw"
    assert [entry["asked"].get("acr_values") for entry in provider.steps("device")] == [None, "hw"]


def test_an_authentication_that_is_too_long_ago_is_made_again(configured, provider):
    """The person was at the issuer long before the login, which asks nobody for a password again unless it has to."""
    provider.post("people", {"auth_age": 5000})
    gateway = configured(step_up={"max_age": "30s"})
    browse(gateway)
    assert get(gateway).status == 200
    assert needs_login(get(gateway, {"max_age": 600}))
    provider.post("people", {"stubborn": True})
    told, asked = browse(gateway, 69)
    assert asked["max_age"] == "600" and (told["state"], told["reason"]) == ("failed", "policy_denied"), told
    assert "longer ago than max_age allows" in told["detail"]
    provider.post("people", {"stubborn": False})
    browse(gateway)
    assert get(gateway, {"max_age": 700}).status == 200
    assert is_refused(get(gateway, {"max_age": 599, "acr": "x"}))


@pytest.mark.parametrize("step_up", [None, {"acr_values": ["hw"]}, {"max_age": "1m"}])
def test_what_the_operator_does_not_allow_is_asked_of_nobody(configured, provider, step_up):
    gateway = configured(step_up=step_up)
    browse(gateway)
    assert get(gateway).status == 200
    before = grants(provider)
    for query in ({"acr": MFA}, {"acr": MFA, "max_age": 59}):
        refused = get(gateway, query)
        assert is_refused(refused), refused
        assert "which 'step_up' of the identity does not allow" in refused.problem["detail"]
    assert identity(gateway)["state"] == "fresh" and grants(provider) == before
    eventually(lambda: gateway.text().count('"message":"challenge refused"') == 2, what="the log")
    browse(gateway)
    assert all("acr_values" not in entry["asked"] for entry in provider.steps("authorize"))


def test_a_login_of_another_kind_does_not_count(configured, provider):
    """The issuer's word on how the person was authenticated is compared with what was asked for; the login before stays."""
    gateway = configured(step_up=ALLOWED)
    browse(gateway)
    assert needs_login(get(gateway, {"acr": MFA}))
    for people, word in [({"acr": "pwd"}, "acr_values"), ({"unmet": True}, "unmet_authentication_requirements")]:
        provider.post("people", people)
        told, _ = browse(gateway, 69)
        assert (told["state"], told["reason"]) == ("failed", "policy_denied") and word in told["detail"], told
        assert get(gateway).json["acr"] == "pwd" and needs_login(get(gateway, {"acr": MFA}))


def test_an_api_that_is_never_content_is_refused_in_words(configured, provider):
    """The issuer tells nobody how the person was authenticated, and the API does not like it."""
    provider.post("people", {"silent": True, "acr": "pwd"})
    gateway = configured(step_up=ALLOWED)
    browse(gateway)
    assert needs_login(get(gateway, {"acr": MFA}))
    told, _ = browse(gateway)
    assert "the issuer does not say how the person was authenticated" in told["detail"]
    assert get(gateway).status == 200
    before = grants(provider)
    for _ in range(4):
        refused = get(gateway, {"acr": MFA})
        assert is_refused(refused) and "although the last login was made for that" in refused.problem["detail"], refused
        assert get(gateway).status == 200
    assert grants(provider) == before and identity(gateway)["state"] == "fresh"


def test_an_identity_without_a_person_says_so(configured, provider):
    gateway = configured("client_credentials")
    refused = get(gateway, {"acr": MFA})
    assert is_refused(refused) and "come from no person's login" in refused.problem["detail"], refused
    assert f"acr_values '{MFA}'" in refused.problem["detail"]
    # The refusal costs one grant and one replay, as any does.
    assert grants(provider) == ["client_credentials"] * 2


def test_a_restart_forgets_the_wish_and_the_api_says_it_again(configured, provider):
    gateway = configured(step_up=ALLOWED)
    browse(gateway)
    assert needs_login(get(gateway, {"acr": MFA}))
    gateway.kill()
    gateway.start()
    assert get(gateway).status == 200 and identity(gateway)["state"] == "fresh"
    assert needs_login(get(gateway, {"acr": MFA}))
    browse(gateway)
    gateway.kill()
    gateway.start()
    # Nothing of the login before has come back from the disk.
    assert get(gateway, {"acr": MFA}).json["acr"] == MFA


def test_settings_that_say_nothing_are_refused(gateway, provider):
    def errors(**more):
        block = {"issuer": provider.issuer, "client_id": "c", "client_auth": "none", **more}
        gateway.provider(provider, tv={"oauth2": block})
        gateway.file.write_text(json.dumps(gateway.config))
        return gateway.command("check", str(gateway.file), config=False)[1]

    assert "needs 'acr_values' or 'max_age'" in errors(grant="device_code", step_up={})
    assert "is used only with 'grant: authorization_code' or 'grant: device_code'" in errors(
        grant="client_credentials", client_auth="post", client_secret="env:S", step_up={"acr_values": ["a"]}
    )
    assert "must be visible ASCII" in errors(grant="device_code", step_up={"acr_values": ["a b"]})
    assert "max_age" in errors(grant="device_code", step_up={"max_age": "0s"})


# --- glewlwyd --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with contextlib.closing(Glewlwyd(tmp_path_factory.mktemp("glewlwyd"))) as running:
        running.door = f"http://127.0.0.1:{free_port()}/cb"
        running.client("tv", SECRET, redirect_uri=[running.door])
        yield running


def test_glewlwyd_authenticates_the_person_again(gateway, server):
    """The person's session there is older than the API likes, so that glewlwyd asks for the password once more."""
    person = Person(server, "tv", "openid orders.read")
    old = set()

    def api(peer):
        for request in peer.requests():
            token = request.field("Authorization")
            if request.target == "/recent" and token in old:
                challenge = b'WWW-Authenticate: Bearer error="insufficient_user_authentication", max_age="1"'
                peer.send(answer(b"", challenge, status=b"401 Unauthorized"))
                continue
            old.add(token)
            peer.send(answer(b"in"))

    block = {
        "issuer": server.issuer,
        "grant": "authorization_code",
        "client_id": "tv",
        "client_secret": gateway.secret("client-secret", SECRET),
        "basic_encoding": "raw",
        "redirect_uri": server.door,
        "step_up": {"max_age": "1s"},
    }

    def page(lines):
        return lines.next()["prompt"]["url"]

    def place(url):
        return person.session.get(url + "&g_continue", allow_redirects=False, timeout=10).headers["Location"]

    with Scripted(api) as upstream:
        identified(gateway, upstream, {"oauth2": block, "scopes": ["openid", "orders.read"]}).start()
        lines = Lines(gateway, "only", "--no-browser")
        requests.get(person.allow(page(lines)), timeout=10)
        lines.ends()
        assert gateway.get("/").body == b"in"
        # While the login is a moment old, the gateway knows that another one would change nothing.
        eventually(lambda: needs_login(gateway.get("/recent")), what="the second that the API allows")
        assert gateway.get("/").body == b"in"
        lines = Lines(gateway, "only", "--no-browser")
        url = page(lines)
        assert dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))["max_age"] == "1"
        eventually(lambda: "login.html" in place(url), what="a page that asks who is there")
        credentials = {"username": "admin", "password": server.password}
        assert person.session.post(server.url + "/api/auth/", json=credentials).status_code == 200
        back = place(url)
        assert back.startswith(server.door), back
        requests.get(back, timeout=10)
        lines.ends()
        # A token that the API has not seen is served.
        assert gateway.get("/recent").body == b"in", gateway.text()
