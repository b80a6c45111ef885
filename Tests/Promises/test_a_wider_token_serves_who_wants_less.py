"""Promise: a valid token that was granted more serves a route that wants less; what was granted less than asked for is used, and told."""

import json

import pytest

from harness import call, eventually, free_port
from scripted import Scripted, answer


class Site:
    """An issuer that grants what it is asked for, or less, and an API that notes the tokens it sees."""

    def __init__(self, grants=None):
        self.grants, self.asked, self.seen, self.revoked = grants, [], [], set()

    def issue(self, peer):
        for request in peer.requests():
            scope = dict(pair.split("=") for pair in request.body.decode().split("&")).get("scope", "").replace("+", " ")
            self.asked.append(scope.replace("%20", " "))
            grant = {"access_token": f"token-{len(self.asked)}", "token_type": "Bearer", "expires_in": 3600}
            if self.grants is not None:
                grant["scope"] = self.grants
            peer.send(answer(json.dumps(grant).encode(), b"Content-Type: application/json"))

    def serve(self, peer):
        for request in peer.requests():
            token = request.field("Authorization").removeprefix("Bearer ")
            if token in self.revoked:
                peer.send(answer(b"", b'WWW-Authenticate: Bearer error="invalid_token"', status=b"401 Unauthorized"))
                continue
            self.seen.append(token)
            peer.send(answer(b"ok"))


@pytest.fixture
def served(gateway):
    """Starts a gateway with one route for each set of scopes; returns a function that calls one of them."""
    open_sites = []

    def start(site, *sets, **more):
        issuer, api = Scripted(site.issue).__enter__(), Scripted(site.serve).__enter__()
        open_sites.extend([issuer, api])
        who = {
            "token_url": f"http://{issuer.address}/token",
            "client_id": "a",
            "client_secret": gateway.secret("client", "c" * 20),
        }
        listens = [f"127.0.0.1:{free_port()}" for _ in sets]
        routes = [
            {"listen": listen, "to": f"http://{api.address}", "use": "api", **route}
            for listen, route in zip(listens, sets)
        ]
        gateway.config = gateway.frame({"identities": {"api": {"oauth2": who}}, "routes": routes, **more})
        gateway.start()

        def one(number):
            assert call(listens[number]).status == 200
            return site.seen[-1]

        return one

    yield start
    for site in open_sites:
        site.__exit__(None)


def scopes(*names):
    return {"scopes": list(names)}


def test_who_wants_less_gets_what_is_there(gateway, served):
    site = Site()
    one = served(site, scopes("a", "b", "c"), scopes("c", "a"), scopes("a", "d"), scopes())
    assert one(0) == "token-1"
    assert one(1) == "token-1"
    assert one(3) == "token-1"
    # Not covered: one more.
    assert one(2) == "token-2"
    assert site.asked == ["a b c", "a d"]
    assert gateway.metrics()[("cardea_wider_tokens_used_total", (("identity", "api"),))] == 2


def test_no_other_member_of_the_key_may_differ(served):
    site = Site()
    one = served(site, scopes("a", "b"), scopes("a") | {"audience": "x"}, scopes("a") | {"resource": "https://x.example/"})
    assert [one(number) for number in range(3)] == ["token-1", "token-2", "token-3"]


def test_a_refusal_is_answered_with_a_grant_of_ones_own(served):
    site = Site()
    one = served(site, scopes("a", "b"), scopes("a"))
    assert (one(0), one(1)) == ("token-1", "token-1")
    site.revoked.add("token-1")
    assert one(1) == "token-2"
    assert site.asked == ["a b", "a"]
    # The lender finds out by itself, once.
    assert one(0) == "token-3"
    assert one(1) == "token-2"


def test_a_grant_of_less_is_used_and_told(gateway, served):
    site = Site(grants="a")
    one = served(site, scopes("a", "b"), scopes("b"), scopes("a"))
    assert one(0) == "token-1"
    # It counts for what it is: not for b, but for a.
    assert one(1) == "token-2"
    one(2)
    assert one(0) == "token-1"
    assert site.asked == ["a b", "b"]
    assert gateway.metrics()[("cardea_narrower_grants_total", (("identity", "api"),))] == 2
    token = next(one for one in json.loads(gateway.ask("/status").body)["tokens"] if one["scopes"] == "a b")
    assert token["granted"] == "a"
    listen = gateway.config["routes"][0]["listen"]
    _, out, _ = gateway.command("explain", "GET", f"http://{listen}/")
    assert "granted a" in out, out
    eventually(lambda: gateway.text().count("granted fewer scopes") == 2, what="two lines in the log")
    told = [line for line in gateway.lines("stderr") if "granted fewer scopes" in line]
    assert '"a b"' in told[0], told


def test_after_a_restart_too(gateway, served):
    site = Site()
    one = served(site, scopes("a", "b"), scopes("a"))
    assert one(0) == "token-1"
    gateway.kill()
    gateway.start()
    assert one(1) == "token-1"
    assert site.asked == ["a b"]
