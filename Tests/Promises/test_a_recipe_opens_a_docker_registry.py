"""Promise: a recipe serves a system that Cardea has never heard of: Debian's docker-registry with token authentication."""

import contextlib
import hashlib
import json

import pytest

from harness import together
from recipes import recipe
from registry import Registry, TokenServer

PASSWORD = "registry:password/ä 1"


@pytest.fixture
def tokens(tmp_path):
    with contextlib.closing(TokenServer(tmp_path, PASSWORD)) as server:
        yield server


@pytest.fixture
def registry(tmp_path, tokens):
    with contextlib.closing(Registry(tmp_path, tokens)) as server:
        yield server


def configured(gateway, registry, tokens, password=PASSWORD):
    block = recipe(
        "docker-registry",
        {
            "https://auth.example.com": f"http://{tokens.address}",
            "file:/run/secrets/registry-password": gateway.secret("registry-password", password),
        },
    )
    routes = [gateway.route("registry", registry.address)]
    gateway.config = gateway.frame({"identities": {"registry": {"recipe": block}}, "routes": routes})
    return gateway.start()


def push(gateway, repository, data):
    """A blob, in one piece, as a client of registries does it that knows nothing of tokens."""
    begun = gateway.call("POST", f"/v2/{repository}/blobs/uploads/", b"")
    assert begun.status == 202, begun
    location = begun.field("Location")
    target = location[location.index("/v2/") :]
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    done = gateway.call(
        "PUT", f"{target}&digest={digest}", data, {"Content-Type": "application/octet-stream"}
    )
    assert done.status == 201, done
    return digest


def in_order(scope):
    resource, _, actions = scope.rpartition(":")
    return f"{resource}:{','.join(sorted(actions.split(',')))}" if resource else scope


def test_push_and_pull_without_a_token(gateway, registry, tokens):
    configured(gateway, registry, tokens)
    assert gateway.get("/v2/").status == 200
    digest = push(gateway, "team/app", b"layer " * 1000)
    for _ in range(20):
        answer = gateway.get(f"/v2/team/app/blobs/{digest}")
        assert (answer.status, answer.body) == (200, b"layer " * 1000)
    assert gateway.get("/v2/").status == 200
    # One token for each scope, however often it is used. The registry names the actions of one scope now in this and now in
    # that order (it walks a Go map), and a scope is what it wrote: to sort it would be to know what it means.
    assert len(set(tokens.asked)) == len(tokens.asked), tokens.asked
    assert {in_order(scope) for scope in tokens.asked} == {
        "",
        "repository:team/app:pull",
        "repository:team/app:pull,push",
    }


def test_a_burst_on_a_cold_repository_is_one_grant(gateway, registry, tokens):
    configured(gateway, registry, tokens)
    push(gateway, "team/app", b"x")
    before = len(tokens.asked)
    answers = together(50, lambda _: gateway.get("/v2/team/other/tags/list"))
    # Nothing was pushed there, and the registry says so instead of asking for a token.
    assert {answer.status for answer in answers} == {404}
    assert tokens.asked[before:] == ["repository:team/other:pull"]


def test_a_wrong_password_is_sent_once(gateway, registry, tokens):
    configured(gateway, registry, tokens, password="not-the-password-9")
    for answer in together(20, lambda _: gateway.get("/v2/team/app/tags/list")):
        assert answer.status == 503, answer
    gateway.kill()
    gateway.start()
    assert gateway.get("/v2/other/tags/list").status == 503
    assert tokens.refused == 1


def test_the_realm_of_the_challenge_is_not_asked(gateway, registry, tokens):
    """It names a port where nobody listens: a gateway that followed it would have no token."""
    configured(gateway, registry, tokens)
    assert gateway.get("/v2/").status == 200
    assert json.loads(gateway.get("/v2/").body or b"{}") == {}
