"""Promise: the key that tokens are bound to stays in its gateway. A person's login is bound to it as well, upstreams of HTTP/2 see its
proofs, and a fleet shares neither the key nor what is bound to it."""

import contextlib
import json
import urllib.parse

import pytest
import requests

from glewlwyd import Glewlwyd
from harness import Provider, call, eventually, free_port, together
from peers import resource_server
from persons import Lines, Person

SECRET = "s3cret"
KEY = "ZmxlZXQta2V5LWZvci10ZXN0cy1vZi0zMi1vY3RldHM="
ANNA = "pa ss+wörd&1"


@pytest.fixture(scope="module")
def server():
    with contextlib.closing(Provider("proofs.py")) as running:
        yield running


@pytest.fixture
def proofs(server):
    server.post("reset")
    server.post("proofs")
    return server


def configured(gateway, proofs, auth="post", route=None, **more):
    register(proofs, auth)
    block = {"issuer": proofs.issuer, "client_id": "machine", "client_auth": auth, "dpop": True, **more}
    if auth == "post":
        block["client_secret"] = gateway.secret("client-secret", SECRET)
    gateway.provider(proofs, api={"oauth2": block}, changes={"threads": 1})
    gateway.config["routes"][0].update(route or {})
    gateway.file.write_text(json.dumps(gateway.config))
    return gateway


def register(proofs, auth, *redirect_uris):
    names = {"post": "client_secret_post", "none": "none"}
    grants = ["client_credentials", "password", "authorization_code", "refresh_token"]
    grants.append("urn:ietf:params:oauth:grant-type:device_code")
    proofs.client("machine", secret=SECRET, auth=names[auth], grants=grants, redirect_uris=redirect_uris)


def claims(gateway, method="GET", path="/", body=None):
    answer = call(gateway.listens["api"], method, path, body)
    assert answer.status == 200, f"{answer}\n{gateway.text()}"
    return answer.json


def why(proofs, side):
    return [step["why"] for step in proofs.steps("proof_refused") if step["side"] == side]


# --- Logins --------------------------------------------------------------------------------------------------------------


def log_in(gateway, proofs, auth="post"):
    lines = Lines(gateway, "api", "--no-browser")
    prompt = lines.next()["prompt"]
    if prompt.get("code"):
        proofs.post("device", {"user_code": prompt["code"], "verdict": "allow"})
    else:
        # Authlib compares redirect addresses as they are, with the port.
        asked = dict(urllib.parse.parse_qsl(prompt["url"].partition("?")[2]))
        register(proofs, auth, asked["redirect_uri"])
        sent = requests.get(prompt["url"], allow_redirects=False, timeout=10)
        requests.get(sent.headers["Location"], timeout=10)
    rest, _ = lines.ends()
    assert json.loads(rest.splitlines()[-1])["state"] == "done", rest
    return prompt


@pytest.mark.parametrize("auth", ["post", "none"])
@pytest.mark.parametrize("grant", ["authorization_code", "device_code"])
def test_a_login_is_bound_and_lasts(gateway, proofs, grant, auth):
    """The refresh token of a public client is good only with the key that the code was exchanged with."""
    gateway = configured(gateway, proofs, auth, grant=grant).start()
    prompt = log_in(gateway, proofs, auth)
    bound = claims(gateway)["cnf"]["jkt"]
    if grant == "authorization_code":
        asked = dict(urllib.parse.parse_qsl(prompt["url"].partition("?")[2]))
        assert asked["dpop_jkt"] == bound
    for _ in range(2):
        gateway.kill()
        gateway.start()
        proofs.post("revoke_access", {"jti": [claims(gateway)["jti"]]})
        assert claims(gateway)["cnf"]["jkt"] == bound
    assert {entry["grant"] for entry in proofs.steps("token")[1:]} == {"refresh_token"}
    assert why(proofs, "issuer") == [] and proofs.steps("refresh_reused") == []


@pytest.mark.parametrize("grant", ["authorization_code", "device_code"])
def test_a_login_at_a_server_with_nonces(gateway, proofs, grant):
    """What was refused for want of a nonce was not used up: the same code is sent again, once."""
    proofs.post("proofs", {"issuer_nonce": "each", "api_nonce": "each"})
    gateway = configured(gateway, proofs, grant=grant).start()
    log_in(gateway, proofs)
    first = claims(gateway)
    proofs.post("revoke_access", {"jti": [first["jti"]]})
    assert claims(gateway)["cnf"] == first["cnf"]
    assert why(proofs, "issuer") == ["nonce"] and len(proofs.steps("token")) == 3


def test_a_login_without_a_gateway_makes_the_key(gateway, proofs):
    gateway = configured(gateway, proofs, "none", grant="device_code")
    log_in(gateway, proofs, "none")
    gateway.start()
    claims(gateway)
    # The refresh token that the command has stored was taken, so the key beside it is the one.
    assert why(proofs, "issuer") == [] and len(proofs.steps("token")) == 2


def test_a_logout_revokes_what_was_bound(gateway, proofs):
    gateway = configured(gateway, proofs, grant="device_code").start()
    log_in(gateway, proofs)
    claims(gateway)
    rest, _ = Lines(gateway, "api", command="logout").ends()
    assert "revoked at the issuer" in json.loads(rest)["detail"]
    assert len(proofs.steps("revoked")) == 1
    assert call(gateway.listens["api"]).problem["type"] == "urn:cardea:problems/login-required"


def test_a_token_that_nobody_bound_is_no_login(gateway, proofs):
    proofs.post("proofs", {"binds": False})
    gateway = configured(gateway, proofs, grant="device_code").start()
    lines = Lines(gateway, "api")
    proofs.post("device", {"user_code": lines.next()["prompt"]["code"], "verdict": "allow"})
    rest, _ = lines.ends(69)
    assert "did not bind the token" in rest
    assert call(gateway.listens["api"]).problem["type"] == "urn:cardea:problems/login-required"


@pytest.fixture(scope="module")
def glewlwyd(tmp_path_factory):
    with contextlib.closing(Glewlwyd(tmp_path_factory.mktemp("glewlwyd"))) as running:
        running.port_of_callback = free_port()
        running.client("tv", SECRET, redirect_uri=[f"http://127.0.0.1:{running.port_of_callback}/cb"])
        yield running


@pytest.fixture(scope="module")
def api(glewlwyd):
    with resource_server(glewlwyd.issuer, "dpop") as origin:
        yield origin


@pytest.mark.parametrize("grant", ["authorization_code", "device_code"])
def test_glewlwyd_binds_a_login(gateway, glewlwyd, api, grant):
    block = {"issuer": glewlwyd.issuer, "grant": grant, "client_id": "tv", "client_auth": "post", "dpop": True}
    block["client_secret"] = gateway.secret("client-secret", SECRET)
    if grant == "authorization_code":
        block["redirect_uri"] = f"http://127.0.0.1:{glewlwyd.port_of_callback}/cb"
    identity = {"oauth2": block, "scopes": ["openid"]}
    route = {**gateway.route("tv", api), "scopes": ["orders.read"]}
    gateway.config = gateway.frame({"identities": {"tv": identity}, "routes": [route]})
    gateway.start()
    person = Person(glewlwyd, "tv", "openid orders.read")
    lines = Lines(gateway, "tv", "--no-browser")
    prompt = lines.next()["prompt"]
    if grant == "device_code":
        person.enter(prompt["url"], prompt["code"])
    else:
        requests.get(person.allow(prompt["url"]), timeout=10)
    lines.ends()
    first = gateway.get("/")
    assert first.status == 200, f"{first}\n{gateway.text()}"
    gateway.kill()
    gateway.start()
    again = gateway.get("/orders?x=1")
    assert again.status == 200 and again.json["cnf"] == first.json["cnf"], f"{again}\n{gateway.text()}"


# --- HTTP/2 --------------------------------------------------------------------------------------------------------------


def over_http2(gateway, proofs, **more):
    return configured(gateway, proofs, route={"to": proofs.api2, "http": "2", **more}).start()


def test_requests_over_http2_are_proven(gateway, proofs):
    gateway = over_http2(gateway, proofs)
    bound = claims(gateway, path="/orders/7?secret=1")["cnf"]["jkt"]
    assert claims(gateway, "POST", "/orders", b"x" * 100_000)["cnf"]["jkt"] == bound
    answers = together(8, lambda index: call(gateway.listens["api"], path=f"/object/{index}"))
    assert {answer.status for answer in answers} == {200}
    seen = [step["claims"] for step in proofs.steps("proof") if step["side"] == "api"]
    assert [(one["htm"], one["htu"]) for one in seen[:2]] == [
        ("GET", proofs.api2 + "/orders/7"),
        ("POST", proofs.api2 + "/orders"),
    ]
    assert len({one["jti"] for one in seen}) == len(seen) == 10 and why(proofs, "api") == []
    assert proofs.steps("call")[1]["size"] == 100_000


def test_nonces_over_http2(gateway, proofs):
    proofs.post("proofs", {"api_nonce": "each"})
    gateway = over_http2(gateway, proofs)
    answer = call(gateway.listens["api"], "POST", "/orders", b"y" * 5000)
    assert answer.status == 200, f"{answer}\n{gateway.text()}"
    assert "dpop-nonce" not in str(answer.fields).lower()
    for _ in range(4):
        claims(gateway)
    assert why(proofs, "api") == ["nonce"] and len(proofs.steps("token")) == 1
    # A refused token over it is replaced, and the proof of the replay has the nonce of the refusal.
    proofs.post("revoke_access", {"jti": [claims(gateway)["jti"]]})
    claims(gateway)
    assert why(proofs, "api") == ["nonce"] and len(proofs.steps("token")) == 2


def test_what_a_caller_says_of_proofs_does_not_pass_over_http2(gateway, proofs):
    gateway = over_http2(gateway, proofs)
    forged = {"DPoP": "a.b.c", "D_PoP": "look-alike", "Authorization": "DPoP forged"}
    assert call(gateway.listens["api"], headers=forged).status == 200
    headers = proofs.steps("call")[-1]["headers"]
    assert "," not in headers["Dpop"] and headers["Authorization"].startswith("DPoP ey")


# --- Fleets --------------------------------------------------------------------------------------------------------------


def fleet(gateways, proofs, redis, count=2, auth="post", password=None, **more):
    made = []
    for index in range(count):
        gateway = gateways(f"edge{index}")
        if password:
            more |= {"grant": "password", "username": "anna", "password": gateway.secret("anna", password)}
        configured(gateway, proofs, auth, **more)
        shared = {"path": str(gateway.store), "key": gateway.secret("fleet-key", KEY), "shared": redis.url}
        gateway.config["store"] = shared
        made.append(gateway.start())
    for gateway in made:
        eventually(lambda: gateway.ask("/status").json["shared"]["state"] == "serving", what="the shared store in use")
    return made


# What the fleet notes of the server itself.
OWN = {b"epoch", b"settling"}


def kept(redis):
    return {key.rsplit(b":", 1)[-1] for key in redis.do("--scan").split()}


def test_each_gateway_has_a_key_and_a_token_of_its_own(gateways, proofs, redis):
    made = fleet(gateways, proofs, redis, 3)
    assert {gateway.ask("/status").json["shared"]["taken"] for gateway in made} == {0}
    together(12, lambda index: claims(made[index % 3]))
    bound = [claims(gateway)["cnf"]["jkt"] for gateway in made]
    assert len(set(bound)) == 3 and len(proofs.steps("token")) == 3
    # Nothing was put there, not even sealed; and one gateway's refusal costs the others nothing.
    assert kept(redis) <= OWN
    proofs.post("revoke_access", {"jti": [claims(made[0])["jti"]]})
    assert [claims(gateway)["cnf"]["jkt"] for gateway in made] == bound
    assert len(proofs.steps("token")) == 4 and why(proofs, "api") == []


def test_refresh_tokens_of_a_fleet_stay_with_their_keys(gateways, proofs, redis):
    """Each logs in with the password, once, and refreshes what it was given itself."""
    made = fleet(gateways, proofs, redis, auth="none", password=ANNA)
    for gateway in made:
        # A server that has just come up allows no password yet.
        eventually(lambda: call(gateway.listens["api"]).status == 200, within=20, every=0.5, what="a token")
    for _ in range(3):
        for gateway in made:
            proofs.post("revoke_access", {"jti": [claims(gateway)["jti"]]})
    made[0].kill()
    made[0].start()
    bound = {claims(gateway)["cnf"]["jkt"] for gateway in made}
    assert len(bound) == 2 and len(proofs.steps("password")) == 2
    assert why(proofs, "issuer") == [] and proofs.steps("refresh_reused") == []


def test_a_refused_password_is_known_to_all_all_the_same(gateways, proofs, redis):
    made = fleet(gateways, proofs, redis, 3, password="not-the-password-9")
    eventually(lambda: call(made[0].listens["api"]).status == 503 and proofs.steps("password"), within=20, every=0.5, what="an attempt")
    for _ in range(3):
        for gateway in made:
            answer = call(gateway.listens["api"])
            assert answer.problem["type"] == "urn:cardea:problems/credential-quarantined", answer
    assert len(proofs.steps("password")) == 1


def test_a_login_is_one_gateways(gateways, proofs, redis):
    made = fleet(gateways, proofs, redis, grant="device_code")
    log_in(made[0], proofs)
    claims(made[0])
    assert call(made[1].listens["api"]).problem["type"] == "urn:cardea:problems/login-required"
    log_in(made[1], proofs)
    assert claims(made[0])["cnf"] != claims(made[1])["cnf"]
    assert kept(redis) <= OWN
    # A logout at one is no logout at the other.
    Lines(made[0], "api", command="logout").ends()
    proofs.post("revoke_access", {"jti": [claims(made[1])["jti"]]})
    assert claims(made[1])["cnf"]
    assert call(made[0].listens["api"]).problem["type"] == "urn:cardea:problems/login-required"


def test_one_refresh_token_for_a_fleet_of_keys_is_refused(gateway, proofs):
    token = gateway.secret("refresh-token", "x-refresh-token")
    configured(gateway, proofs, grant="refresh_token", refresh_token=token)
    gateway.config["store"]["shared"] = "redis://127.0.0.1:1"
    gateway.file.write_text(json.dumps(gateway.config))
    status, said, error = gateway.command("check", str(gateway.file), config=False)
    assert status == 78 and "does not go with 'store.shared'" in said + error, (said, error)
