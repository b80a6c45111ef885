"""Promise: a credential is never cut, however long it is and whichever field it stands in."""

import pytest

from scripted import Issuer, Scripted, echo, get, identified, problem_type

OWN = {"inject": {"header": "X-Token", "value": "Key {token}"}}


def token(length):
    """No two places alike, so that a cut or a shift shows."""
    return "".join(f"{number:06d}" for number in range(length // 6 + 1))[:length]


def static(gateway, upstream, length, route):
    secret = gateway.secret("long", token(length))
    return identified(gateway, upstream, {"static": {"header": "X-Key", "value": secret}}, route)


@pytest.mark.parametrize("length", [16_000, 16_367, 16_368, 16_369, 17_000, 31_000])
def test_in_a_routes_own_field(gateway, length):
    with Scripted(echo) as upstream:
        static(gateway, upstream, length, OWN).start()
        for number in range(2):
            assert gateway.get(f"/{number}", headers={"X-After": "here"}).status == 200
        for request in upstream.requests:
            assert request.field("X-Token") == "Key " + token(length)
            assert request.field("X-Key") is None and request.field("X-After") == "here"


@pytest.mark.parametrize("length", [17_000, 31_000])
@pytest.mark.parametrize("route", [None, OWN], ids=["default", "own"])
def test_from_an_issuer(gateway, length, route):
    with Scripted(echo) as upstream, Scripted(Issuer(token=lambda _: token(length))) as issuer:
        gateway.secrets.append(token(length))
        secret = gateway.secret("client", "c" * 20)
        block = {"token_url": f"http://{issuer.address}/token", "client_id": "a", "client_secret": secret}
        identified(gateway, upstream, {"oauth2": block}, route).start()
        assert gateway.get("/a").status == 200
        name, prefix = ("X-Token", "Key ") if route else ("Authorization", "Bearer ")
        assert upstream.requests[0].field(name) == prefix + token(length)


@pytest.mark.parametrize("length", [32_768, 49_100, 49_152, 60_000, 65_000])
@pytest.mark.parametrize("route", [None, OWN], ids=["default", "own"])
def test_one_near_or_beyond_a_bound_goes_whole_or_is_refused(gateway, length, route):
    with Scripted(echo) as upstream:
        static(gateway, upstream, length, route).start()
        with gateway.raw() as raw:
            for _ in range(3):
                found = raw.send(get(gateway, "/a")).answer()
                assert found.status in (200, 503), found
                assert found.status == 503 or length < 49_152
                assert found.status == 200 or problem_type(found) in ("secret-unusable",)
        name, prefix = ("X-Token", "Key ") if route else ("X-Key", "")
        for request in upstream.requests:
            assert request.field(name) == prefix + token(length)
        assert bool(upstream.requests) == (found.status == 200)
