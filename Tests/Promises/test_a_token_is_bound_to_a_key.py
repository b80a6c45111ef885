"""Promise: with `dpop` every token is bound to a key that never leaves the gateway, and every request proves it (RFC 9449)."""

import contextlib
import types

import pytest

from glewlwyd import Glewlwyd
from harness import Nginx, Provider, call, eventually, together
from peers import resource_server

SECRET = "s3cret"


@pytest.fixture(scope="module")
def server():
    with contextlib.closing(Provider("proofs.py")) as running:
        yield running


@pytest.fixture
def proofs(server):
    server.post("reset")
    server.post("proofs")
    return server


def start(gateway, proofs, changes=None, **more):
    block = {
        "token_url": proofs.issuer + "/token",
        "client_id": "machine",
        "client_auth": "post",
        "client_secret": gateway.secret("client-secret", SECRET),
        "dpop": True,
        **more,
    }
    if block["client_auth"] == "none":
        del block["client_secret"]
    auth = {"post": "client_secret_post"}.get(block["client_auth"], block["client_auth"])
    grants = [block.get("grant", "client_credentials"), "refresh_token"]
    proofs.client("machine", secret=SECRET, auth=auth, grants=grants)
    gateway.provider(proofs, api={"oauth2": block}, changes={"threads": 1, **(changes or {})})
    return gateway.start()


def claims(gateway, method="GET", path="/", body=None, headers=None):
    answer = call(gateway.listens["api"], method, path, body, headers or {})
    assert answer.status == 200, f"{answer}\n{gateway.text()}"
    return answer.json


def why(proofs, side):
    return [step["why"] for step in proofs.steps("proof_refused") if step["side"] == side]


def test_token_and_requests_are_proven(gateway, proofs):
    start(gateway, proofs)
    bound = claims(gateway, path="/orders/7?secret=1")["cnf"]["jkt"]
    assert claims(gateway, "POST", "/orders", b"x" * 1000)["cnf"]["jkt"] == bound
    seen = [step["claims"] for step in proofs.steps("proof")]
    api = proofs.api
    assert [(one["htm"], one["htu"]) for one in seen] == [
        ("POST", proofs.issuer + "/token"),
        ("GET", api + "/orders/7"),
        ("POST", api + "/orders"),
    ]
    assert len({one["jti"] for one in seen}) == 3 and not why(proofs, "api") and not why(proofs, "issuer")
    assert all(len(one["jti"]) >= 16 for one in seen)


def test_what_a_caller_says_of_proofs_does_not_pass(gateway, proofs):
    start(gateway, proofs)
    forged = {"DPoP": "a.b.c", "D_PoP": "look-alike", "Authorization": "DPoP forged", "Connection": "dpop"}
    assert claims(gateway, headers=forged)["cnf"]
    headers = proofs.steps("call")[-1]["headers"]
    assert "," not in headers["Dpop"] and headers["Authorization"].startswith("DPoP ey")


def test_many_at_once(gateway, proofs):
    start(gateway, proofs, changes={"threads": 2})
    assert {a.status for a in together(8, lambda i: call(gateway.listens["api"], path=f"/object/{i}"))} == {200}
    assert len(proofs.steps("token")) == 1


# --- Nonces -------------------------------------------------------------------------------------------------------------


def test_a_nonce_that_is_wanted_is_sent(gateway, proofs):
    proofs.post("proofs", {"issuer_nonce": "once", "api_nonce": "once"})
    start(gateway, proofs)
    answer = call(gateway.listens["api"], "POST", "/orders", b"y" * 5000)
    assert answer.status == 200, f"{answer}\n{gateway.text()}"
    # It is for us alone.
    assert "DPoP-Nonce" not in str(answer.fields)
    assert (why(proofs, "issuer"), why(proofs, "api")) == (["nonce"], ["nonce"])
    assert [step["size"] for step in proofs.steps("call")] == [5000, 5000]
    for _ in range(3):
        claims(gateway)
    assert len(proofs.steps("call")) == 5 and len(proofs.steps("token")) == 1


def test_each_answer_brings_the_next_nonce(gateway, proofs):
    proofs.post("proofs", {"issuer_nonce": "each", "api_nonce": "each"})
    start(gateway, proofs)
    for _ in range(5):
        claims(gateway)
    assert why(proofs, "api") == ["nonce"]
    # A refused token is replaced by a grant whose proof has the nonce of the last answer.
    proofs.post("revoke_access", {"jti": [claims(gateway)["jti"]]})
    assert claims(gateway)["jti"] and why(proofs, "issuer") == ["nonce"] and len(proofs.steps("token")) == 2


def test_the_retry_with_a_nonce_is_not_the_replay(gateway, proofs):
    """First the token is refused, then the proof of the replay, for want of a nonce: both are mended."""
    start(gateway, proofs)
    first = claims(gateway)["jti"]
    proofs.post("proofs", {"api_nonce": "asked"})
    proofs.post("revoke_access", {"jti": [first]})
    assert claims(gateway)["jti"] != first
    assert len(proofs.steps("call")) == 4 and why(proofs, "api") == ["nonce"]


def test_a_server_that_never_takes_its_nonce_is_asked_twice(gateway, proofs):
    start(gateway, proofs)
    claims(gateway)
    proofs.post("proofs", {"api_nonce": "each", "ahead": 0})
    # Each answer makes the nonce of the one before stale, also that of somebody else between two of ours.
    answers = together(4, lambda i: call(gateway.listens["api"], path=f"/{i}"))
    assert {answer.status for answer in answers} <= {200, 502}
    assert len(proofs.steps("call")) <= 1 + 8 and len(proofs.steps("token")) == 1


# --- Servers that do not bind -------------------------------------------------------------------------------------------


def test_a_token_that_nobody_bound_is_not_used(gateway, proofs):
    proofs.post("proofs", {"binds": False})
    start(gateway, proofs)
    answer = call(gateway.listens["api"])
    assert answer.status == 503, answer
    assert not proofs.steps("call")
    # Logs are written by a thread of their own.
    eventually(lambda: "the issuer did not bind the token" in gateway.text(), what="the log saying why")


def test_a_bound_token_may_be_called_bearer(gateway, proofs):
    """Seen of servers that bind tokens: what counts is what the token says of itself."""
    proofs.post("proofs", {"type": "Bearer"})
    start(gateway, proofs)
    assert claims(gateway)["cnf"]["jkt"]


# --- Keys that last -----------------------------------------------------------------------------------------------------


def test_key_and_token_outlive_the_process(gateway, proofs):
    start(gateway, proofs)
    first = claims(gateway)
    gateway.stop()
    gateway.start()
    assert claims(gateway) == first and len(proofs.steps("token")) == 1
    # Sealed: nothing of the two can be read in the file.
    stored = b"".join(path.read_bytes() for path in gateway.store.parent.glob(gateway.store.name + "*"))
    assert first["cnf"]["jkt"].encode() not in stored and first["jti"].encode() not in stored


def test_a_refresh_token_of_a_public_client_goes_with_its_key(gateway, proofs):
    password = gateway.secret("anna", "pa ss+wörd&1")
    start(gateway, proofs, client_auth="none", grant="password", username="anna", password=password)
    first = claims(gateway)
    gateway.kill()
    gateway.start()
    proofs.post("revoke_access", {"jti": [first["jti"]]})
    again = claims(gateway)
    assert again["jti"] != first["jti"] and again["cnf"] == first["cnf"]
    assert len(proofs.steps("password")) == 1 and not why(proofs, "issuer")


def test_no_key_or_token_in_any_output(gateway, proofs):
    start(gateway, proofs, changes={"log": {"level": "debug"}})
    proofs.post("proofs", {"api_nonce": "once"})
    bound = claims(gateway)
    token = proofs.steps("call")[-1]["headers"]["Authorization"].split()[1]
    proof = proofs.steps("call")[-1]["headers"]["Dpop"]
    pages = [call(gateway.admin, path=path).body.decode() for path in ("/metrics", "/status", "/")]
    for text in (gateway.text(), *pages):
        assert token not in text and proof not in text and token.split(".")[2] not in text
    assert bound["cnf"]


# --- Clocks -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ahead", [-7200, 7200])
def test_the_issuers_clock_counts(gateway, proofs, tmp_path, ahead):
    """Proofs live for seconds. What the issuer's clock says is believed over TLS."""
    Nginx.make_certificates(types.SimpleNamespace(folder=tmp_path))
    names = {"ca": "ca.pem", "certificate": "server.pem", "key": "server.key"}
    proofs.post("proofs", {"ahead": ahead})
    sites = proofs.post("tls", {name: str(tmp_path / file) for name, file in names.items()})
    start(gateway, proofs, token_url=sites["issuer"] + "/token")
    gateway.stop()
    identity = gateway.config["identities"]["api"]
    identity["network"] = {"tls": {"ca": str(tmp_path / "ca.pem")}}
    gateway.start()
    # The first proof is by our own clock: its refusal tells the issuer's.
    assert call(gateway.listens["api"]).status == 200, f"{proofs.steps('proof_refused')}\n{gateway.text()}"
    assert (why(proofs, "issuer"), why(proofs, "api")) == (["iat"], [])


# --- A server that nobody here wrote ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def glewlwyd(tmp_path_factory):
    with contextlib.closing(Glewlwyd(tmp_path_factory.mktemp("glewlwyd"))) as running:
        running.client("billing", SECRET)
        yield running


@pytest.fixture(scope="module")
def api(glewlwyd):
    with resource_server(glewlwyd.issuer, "dpop") as origin:
        yield origin


@pytest.mark.parametrize("grant", ["client_credentials", "password"])
def test_glewlwyd_binds(gateway, api, glewlwyd, grant):
    block = {
        "issuer": glewlwyd.issuer,
        "client_id": "billing",
        "client_auth": "post",
        "client_secret": gateway.secret("client-secret", SECRET),
        "grant": grant,
        "dpop": True,
    }
    if grant == "password":
        block |= {"username": "admin", "password": gateway.secret("user-password", glewlwyd.password)}
    identity = {"oauth2": block, "scopes": ["orders.read"]}
    gateway.config = gateway.frame({"identities": {"api": identity}, "routes": [gateway.route("api", api)]})
    gateway.start()
    first = gateway.get("/orders?x=1")
    assert first.status == 200, f"{first}\n{gateway.text()}"
    assert gateway.get("/").json["cnf"] == first.json["cnf"]
