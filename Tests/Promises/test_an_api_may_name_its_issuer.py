"""Promise: an API may say in its metadata (RFC 9728) of which issuer it wants its tokens, and is believed as far as the operator allows
(`allowed_issuers`) and as the metadata is surely its own; otherwise nothing changes, no secret goes anywhere, and the log says why."""

import contextlib
import json

import pytest

from described import WELL_KNOWN, Described, identity, start
from harness import Provider, eventually
from peers import Authority
from served import Quiet, Served


@pytest.fixture(scope="module")
def other_process():
    with contextlib.closing(Provider()) as provider:
        yield provider


@pytest.fixture
def other(other_process):
    """Another authorization server, whose tokens the API takes."""
    other_process.post("reset")
    return other_process


@pytest.fixture(scope="module")
def described(other_process):
    with Described(other_process) as api:
        yield api


@pytest.fixture
def api(described):
    described.set()
    return described


class Bystander(Served):
    """A server that nobody has a reason to ask."""

    def __init__(self):
        outer = self
        self.asked = []

        class Handler(Quiet):
            def do_GET(self):
                outer.asked.append(self.path)
                self.respond(404)

        super().__init__(Handler)


@pytest.fixture
def bystander():
    with contextlib.closing(Bystander()) as server:
        yield server


def warned(gateway):
    return [line["reason"] for line in gateway.events() if "leads to no other issuer" in line.get("reason", "")]


# --- It is followed ------------------------------------------------------------------------------------------------------


def test_it_leads_to_an_allowed_issuer(gateway, provider, other, api):
    api.leads(other.issuer)
    start(gateway, api, identity(gateway, provider.issuer, provider, other, allowed_issuers=[other.issuer]))
    answer = gateway.get("/orders/1")
    assert (answer.status, answer.json["iss"]) == (200, other.issuer), f"{answer}\n{gateway.text()}"
    assert len(provider.steps("token")) == len(other.steps("token")) == 1
    # Asked once, without a credential.
    assert [entry["scheme"] for entry in api.log() if entry["path"] == WELL_KNOWN] == [""]
    # From then on the next token is had there, and the metadata is known.
    for _ in range(2):
        api.leads(other.issuer, refused=[gateway.get("/orders/1").json["jti"]])
        assert gateway.get("/orders/1").status == 200
        assert not [entry for entry in api.log() if entry["path"] == WELL_KNOWN]
    assert len(provider.steps("token")) == 1 and len(other.steps("token")) == 3 and not warned(gateway)
    # Also the next one that is had without a challenge.
    assert gateway.command("tokens", "purge", "api")[0] == 0
    assert gateway.get("/orders/1").status == 200
    assert len(provider.steps("token")) == 1 and len(other.steps("token")) == 4


def test_beside_a_token_url(gateway, provider, other, api):
    api.leads("https://unknown.example.com", other.issuer)
    who = identity(gateway, None, provider, other, allowed_issuers=[other.issuer], token_url=provider.issuer + "/token")
    del who["oauth2"]["issuer"]
    start(gateway, api, who)
    assert gateway.get("/orders/1").json["iss"] == other.issuer


def test_the_one_in_use_stays_in_use(gateway, provider, other, api):
    """An API that takes tokens of both had only a token revoked."""
    who = identity(gateway, other.issuer, provider, other, allowed_issuers=[provider.issuer])
    start(gateway, api, who)
    api.leads(provider.issuer, other.issuer, refused=[gateway.get("/x").json["jti"]])
    assert gateway.get("/x").json["iss"] == other.issuer
    assert len(other.steps("token")) == 2 and not provider.steps("token")


def test_a_slash_behind_a_bare_host_is_no_other_issuer(gateway, provider, other, api):
    """As servers write it that read the issuer as a URL."""
    api.leads(other.issuer + "/")
    start(gateway, api, identity(gateway, provider.issuer, provider, other, allowed_issuers=[other.issuer]))
    assert gateway.get("/orders/1").json["iss"] == other.issuer


@pytest.mark.parametrize(
    "challenges",
    [
        ['Basic realm="x", Bearer realm="a", resource_metadata="{api}%s"' % WELL_KNOWN],
        ['Newauth a=b, c="d,e"', 'Bearer error="invalid_token", RESOURCE_METADATA="{api}%s"' % WELL_KNOWN],
        ['Bearer error="invalid_token", Bearer resource_metadata="{api}%s"' % WELL_KNOWN],
        ['Negotiate, Bearer resource_metadata="{api}%s", Basic realm="y"' % WELL_KNOWN],
    ],
)
def test_among_several_challenges(gateway, provider, other, api, challenges):
    api.leads(other.issuer, challenges=challenges)
    start(gateway, api, identity(gateway, provider.issuer, provider, other, allowed_issuers=[other.issuer]))
    assert gateway.get("/orders/1").json["iss"] == other.issuer


@pytest.mark.parametrize(
    "resource, place, path",
    [
        ("{api}", WELL_KNOWN, "/orders/1?x=y"),
        ("{api}/orders", WELL_KNOWN + "/orders", "/orders"),
        ("{api}/orders", WELL_KNOWN + "/orders", "/orders?x=1"),
        ("{api}/orders", WELL_KNOWN + "/orders", "/orders/1"),
        ("{api}/orders/", WELL_KNOWN + "/orders/", "/orders/1"),
        # Of the very URL that was asked for it may stand anywhere (RFC 9728 §3.3).
        ("{api}/orders/1?x=%2F", "/somewhere/else.json", "/orders/1?x=%2F"),
    ],
)
def test_metadata_of_what_was_asked_for(gateway, provider, other, api, resource, place, path):
    api.leads(other.issuer, resource=resource, place=place)
    start(gateway, api, identity(gateway, provider.issuer, provider, other, allowed_issuers=[other.issuer]))
    assert gateway.get(path).status == 200, gateway.text()


def test_as_the_upstream_sees_it(gateway, provider, other, api):
    """The URL that has to be the metadata's is the one that the route has made of the caller's."""
    api.leads(other.issuer, resource="{api}/v2/orders/1", place="/anywhere")
    who = identity(gateway, provider.issuer, provider, other, allowed_issuers=[other.issuer])
    start(gateway, api, who, to=api.api + "/v2", rewrite={"strip_prefix": "/billing"})
    assert gateway.get("/billing/orders/1").status == 200, gateway.text()


def test_over_tls_as_the_route_has_it(gateway, provider, other, tmp_path):
    """The API's certificate is good for its route alone, and so it is for its metadata."""
    authority = Authority(tmp_path / "pki")
    with Described(other, *authority.issue("api"), ca=authority.file) as api:
        api.leads(other.issuer)
        who = identity(gateway, provider.issuer, provider, other, allowed_issuers=[other.issuer])
        start(gateway, api, who, tls={"ca": str(authority.file)})
        assert gateway.get("/orders/1").json["iss"] == other.issuer, gateway.text()


# --- It is not followed ----------------------------------------------------------------------------------------------------


def refused(gateway, other, reason, path="/orders/1"):
    """The API's own refusal stands, nobody else was asked, and the log says why; without a wait for the next try."""
    answer = gateway.get(path)
    assert (answer.status, answer.problem["type"]) == (502, "urn:cardea:problems/upstream-refused-credential"), answer
    assert not other.post("log")
    eventually(lambda: any(reason in text for text in warned(gateway)), what=f"the log saying {reason!r}")


def test_an_issuer_that_is_not_allowed(gateway, provider, other, api):
    api.leads(other.issuer, "not a url")
    start(gateway, api, identity(gateway, provider.issuer, provider, allowed_issuers=["https://idp.example.com"]))
    refused(gateway, other, f"its metadata names '{other.issuer}/', and allowed_issuers does not")
    # Put right, it is taken up with the next configuration.
    assert len(provider.steps("token")) == 2


@pytest.mark.parametrize("spelt", ["/.", "?", "/#", "//", "/tenant"])
def test_an_issuer_that_is_spelt_differently(gateway, provider, other, api, spelt):
    api.leads(other.issuer + spelt)
    start(gateway, api, identity(gateway, provider.issuer, provider, allowed_issuers=[other.issuer]))
    refused(gateway, other, "its metadata names")


def test_metadata_elsewhere_is_not_asked_for(gateway, provider, other, api, bystander):
    """Neither at another server, nor at one that looks like the API."""
    start(gateway, api, identity(gateway, provider.issuer, provider, allowed_issuers=[other.issuer]))
    name = api.api.removeprefix("http://")
    for place in [
        bystander.origin + WELL_KNOWN,
        f"http://{name}@{bystander.origin.removeprefix('http://')}{WELL_KNOWN}",
        f"https://{name}{WELL_KNOWN}",
        f"http://localhost:{name.split(':')[1]}{WELL_KNOWN}",
        f"//{bystander.origin.removeprefix('http://')}/",
        "file:///etc/passwd",
        WELL_KNOWN,
        "",
    ]:
        api.set(challenges=[f'Bearer resource_metadata="{place}"'])
        assert gateway.get("/x").status == 502
        assert {entry["path"] for entry in api.log()} == {"/x"}
    assert not bystander.asked and not other.post("log")
    eventually(lambda: warned(gateway), what="the log saying why")


@pytest.mark.parametrize(
    "document, reason",
    [
        ({"resource": "{api}/other"}, "another resource"),
        ({"resource": "https://api.example.com/"}, "another resource"),
        ({"resource": ["{api}/"]}, "without resource"),
        ({"authorization_servers": None}, "names no authorization_servers"),
        ({"authorization_servers": []}, "names no issuer"),
        ({"authorization_servers": [["x"], 1, None]}, "names no issuer"),
        ({"authorization_servers": {"0": "x"}}, "names no authorization_servers"),
        ({"body": "<html>login</html>"}, "HTML instead of JSON"),
        ({"body": ""}, "an empty body"),
        ({"body": '{"resource": "{api}/", "resource": "{api}/"}'}, "duplicate member"),
        ({"body": '{"resource": ' + "[" * 50}, "nested too deeply"),
        ({"body": "x" * 100_000}, "cannot be read"),
        ({"body": "", "status": 404}, "status 404"),
        ({"body": "", "status": 500}, "status 500"),
    ],
)
def test_metadata_that_is_of_no_use(gateway, provider, other, api, document, reason):
    api.leads(other.issuer)
    base = {"resource": "{api}/", "authorization_servers": [other.issuer]}
    challenge = f'Bearer error="invalid_token", resource_metadata="{{api}}{WELL_KNOWN}"'
    whole = document if "body" in document else {**base, **document}
    api.set(challenges=[challenge], documents={WELL_KNOWN: whole})
    start(gateway, api, identity(gateway, provider.issuer, provider, allowed_issuers=[other.issuer]))
    refused(gateway, other, reason)
    # What is of no use is not asked for again at once.
    gateway.get("/orders/1")
    assert len([entry for entry in api.log() if entry["path"] == WELL_KNOWN]) == 1


@pytest.mark.parametrize(
    "resource, place, path",
    [
        ("{api}/orders", WELL_KNOWN + "/orders", "/orders2"),
        ("{api}/orders", WELL_KNOWN + "/orders", "/"),
        ("{api}/orders", "/elsewhere", "/orders/1"),
        ("{api}/orders?x=1", WELL_KNOWN + "/orders?x=1", "/orders/1?x=1"),
        ("{api}/", WELL_KNOWN + "/orders", "/orders"),
    ],
)
def test_metadata_of_something_else(gateway, provider, other, api, resource, place, path):
    api.leads(other.issuer, resource=resource, place=place)
    # A query is no part of where the test's API looks.
    documents = {place.partition("?")[0]: {"resource": resource, "authorization_servers": [other.issuer]}}
    api.set(challenges=[f'Bearer resource_metadata="{{api}}{place}"'], documents=documents)
    start(gateway, api, identity(gateway, provider.issuer, provider, allowed_issuers=[other.issuer]))
    refused(gateway, other, "another resource", path)


def test_redirects_are_not_followed(gateway, provider, other, api, bystander):
    for target in [bystander.origin + "/", "{api}/there"]:
        document = {"status": 302, "headers": {"Location": target}, "body": ""}
        good = {"resource": "{api}/", "authorization_servers": [other.issuer]}
        challenge = f'Bearer resource_metadata="{{api}}{WELL_KNOWN}"'
        api.set(challenges=[challenge], documents={WELL_KNOWN: document, "/there": good})
        if gateway.process is None:
            start(gateway, api, identity(gateway, provider.issuer, provider, allowed_issuers=[other.issuer]))
        refused(gateway, other, "status 302")
    assert not bystander.asked and not [entry for entry in api.log() if entry["path"] == "/there"]


def test_an_allowed_issuer_whose_own_metadata_is_of_another(gateway, provider, other, api):
    """RFC 8414 §3.3: before it has proven who it is, it gets no secret."""
    api.leads(other.issuer)
    other.post("faults", {"metadata": {"issuer": "https://idp.example.com"}})
    start(gateway, api, identity(gateway, provider.issuer, provider, other, allowed_issuers=[other.issuer]))
    answer = gateway.get("/orders/1")
    assert (answer.status, answer.problem["type"]) == (503, "urn:cardea:problems/issuer-answer-invalid"), answer
    assert {entry["step"] for entry in other.post("log")} == {"metadata"}


def test_an_allowed_issuer_that_refuses_the_client(gateway, provider, other, api):
    """That is no word on the identity's own issuer: nothing is quarantined, and the secret does not go there again soon."""
    api.leads(other.issuer)
    start(gateway, api, identity(gateway, provider.issuer, provider, allowed_issuers=[other.issuer]))
    answer = gateway.get("/orders/1")
    assert (answer.status, answer.problem["type"]) == (503, "urn:cardea:problems/identity-misconfigured"), answer
    for _ in range(3):
        eventually(lambda: gateway.get("/orders/1").status == 502, every=0.2, what="the upstream being asked again")
    assert len(other.steps("refused")) == 1
    assert "quarantined" not in gateway.command("tokens")[1]
    # An API that takes what the identity's own issuer gives is served.
    api.leads(other.issuer, challenges=["Bearer"], documents={"/own": {"status": 200, "headers": {}, "body": "{}"}})
    eventually(lambda: gateway.get("/own").status == 200, what="the identity's own issuer serving")


def test_nobody_asked_for_it(gateway, provider, other, api):
    """Without allowed_issuers the pointer means nothing."""
    api.leads(other.issuer)
    start(gateway, api, identity(gateway, provider.issuer, provider))
    answer = gateway.get("/orders/1")
    assert answer.status == 502 and {entry["path"] for entry in api.log()} == {"/orders/1"}
    assert not other.post("log") and not warned(gateway)


def test_one_bad_url_does_not_cut_off_the_others(gateway, provider, other, api):
    """A path that refuses everything, with metadata of no use, while the token is good elsewhere."""
    start(gateway, api, identity(gateway, other.issuer, other, allowed_issuers=[provider.issuer]))
    good = gateway.get("/orders/1").json
    refusal = {"status": 401, "headers": {"WWW-Authenticate": f'Bearer resource_metadata="{api.api}/evil"'}, "body": ""}
    api.set(documents={"/bad": refusal, "/evil": {"resource": "{api}/", "authorization_servers": [provider.issuer]}})
    assert gateway.get("/bad").status == 502
    again = gateway.get("/orders/1")
    assert again.status == 200 and again.json["jti"] != good["jti"] and again.json["iss"] == other.issuer
    assert not provider.post("log")
    eventually(lambda: warned(gateway), what="the log saying why")


def test_a_live_check_finds_them(gateway, provider, other, api):
    """Before the API sends anybody there."""
    for allowed, is_good in [(other.issuer, True), (other.issuer + "/", False), ("http://127.0.0.1:9", False)]:
        who = identity(gateway, provider.issuer, provider, allowed_issuers=[allowed])
        gateway.config = gateway.frame({"identities": {"api": who}, "routes": [gateway.route("api", api.api)]})
        gateway.file.write_text(json.dumps(gateway.config))
        status, out, error = gateway.command("check", str(gateway.file), "--live", config=False)
        assert (status == 0) == is_good, out + error
        assert is_good or f"allowed_issuers: {allowed}: " in out, out
    assert not other.steps("token")


def test_explain_names_them(gateway, provider, other, api):
    start(gateway, api, identity(gateway, provider.issuer, provider, allowed_issuers=[other.issuer]))
    status, out, _ = gateway.command("explain", "GET", f"http://{gateway.listen}/x")
    assert status == 0 and f"the API's metadata may lead to another issuer: {other.issuer}" in out, out
