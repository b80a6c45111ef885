"""Promise: whatever an issuer answers, the caller learns the kind of trouble and nothing else, the identity's state and its own metric
say the same, and no octet of it goes anywhere."""

import json
import time

import pytest

from harness import call, eventually
from persons import Lines
from scripted import Scripted, answer, echo, identified

JSON = b"Content-Type: application/json"
GOOD = {"access_token": "good-token-1", "token_type": "Bearer"}


def grant(**members):
    return answer(json.dumps({**GOOD, **members}).encode(), JSON)


def refusal(status, body=b""):
    return answer(body, JSON, status=status)


# What is sent: the problem's type, the metric's reason.
ANSWERS = {
    "nothing": (answer(b"", JSON), "issuer-answer-invalid", "issuer_answer_invalid"),
    "HTML": (answer(b"<html>sign in</html>"), "issuer-answer-invalid", "issuer_answer_invalid"),
    "a list": (answer(b"[]"), "issuer-answer-invalid", "issuer_answer_invalid"),
    "no token": (answer(b"{}"), "issuer-answer-invalid", "issuer_answer_invalid"),
    "a number for a token": (grant(access_token=7), "issuer-answer-invalid", "issuer_answer_invalid"),
    "a list for a token": (grant(access_token=["a"]), "issuer-answer-invalid", "issuer_answer_invalid"),
    "a megabyte": (grant(pad="x" * 1_000_000), "issuer-answer-invalid", "issuer_answer_invalid"),
    "a token of 40 KB": (grant(access_token="x" * 40_000), "issuer-answer-invalid", "issuer_answer_invalid"),
    "CR LF in the token": (grant(access_token="a\r\nX-Evil: 1"), "issuer-answer-invalid", "issuer_answer_invalid"),
    "non-ASCII in the token": (grant(access_token="tökén"), "issuer-answer-invalid", "issuer_answer_invalid"),
    "NUL in the token": (grant(access_token="a\0b"), "issuer-answer-invalid", "issuer_answer_invalid"),
    "another token type": (grant(token_type="mac"), "issuer-answer-invalid", "issuer_answer_invalid"),
    "two tokens": (
        answer(b'{"access_token":"a","access_token":"b","token_type":"Bearer"}'),
        "issuer-answer-invalid",
        "issuer_answer_invalid",
    ),
    "deep JSON": (answer(b'{"a":' * 500 + b"1" + b"}" * 500), "issuer-answer-invalid", "issuer_answer_invalid"),
    "a negative life": (grant(expires_in=-1), "issuer-answer-invalid", "issuer_answer_invalid"),
    "a word for a life": (grant(expires_in="soon"), "issuer-answer-invalid", "issuer_answer_invalid"),
    "no HTTP": (b"\x16\x03\x01\x00\x05hello" * 10, "issuer-answer-invalid", "issuer_answer_invalid"),
    "two lengths": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "issuer-answer-invalid",
        "issuer_answer_invalid",
    ),
    "half an answer": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        "issuer-answer-invalid",
        "issuer_answer_invalid",
    ),
    "a redirect": (
        answer(b"", b"Location: http://127.0.0.1:1/token", status=b"302 Found"),
        "identity-misconfigured",
        "configuration",
    ),
    "a redirect that keeps the method": (
        answer(b"", b"Location: https://evil.example/token", status=b"307 Temporary Redirect"),
        "identity-misconfigured",
        "configuration",
    ),
    "503": (refusal(b"503 Service Unavailable"), "issuer-unavailable", "issuer_unavailable"),
    "429": (refusal(b"429 Too Many Requests"), "issuer-unavailable", "issuer_unavailable"),
    "an unknown scope": (
        refusal(b"400 Bad Request", b'{"error":"invalid_scope"}'),
        "identity-misconfigured",
        "configuration",
    ),
    "no for an answer": (refusal(b"403 Forbidden", b'{"error":"access_denied"}'), "issuer-denied", "policy_denied"),
    "a refused client": (
        refusal(b"401 Unauthorized", b'{"error":"invalid_client"}'),
        "credential-quarantined",
        "credential_rejected",
    ),
    "a person is wanted": (
        refusal(b"400 Bad Request", b'{"error":"interaction_required"}'),
        "login-required",
        "interaction_required",
    ),
}

STATES = {"credential-quarantined": "quarantined", "login-required": "login_needed"}


def script(data):
    def run(peer):
        peer.request()
        peer.send(data)

    return run


# Each scheme that reads a token endpoint's answers, and where its own is.
SYSTEMS = {
    "oauth2": {"token_url": "{}/token"},
    "12c": {"base_url": "{}", "identity_domain": "PayrollDomain"},
    "11g": {"service_endpoint": "{}/ms_oauth/oauth2/endpoints/oauthservice"},
}


def start(gateway, upstream, issuer, system="oauth2", **token):
    place = {key: value.format(f"http://{issuer.address}") for key, value in SYSTEMS[system].items()}
    secret = gateway.secret("client", "client-secret-of-this-test")
    block = {**place, "client_id": "a", "client_secret": secret}
    scheme = "oauth2"
    if system != "oauth2":
        scheme, block = "oam_oauth", {"dialect": system, **block}
    policy = {"acquire_timeout": "30s", "negative_for": "60s", **token}
    return identified(gateway, upstream, {scheme: block, "token": policy}).start()


def failures(gateway):
    return {
        dict(labels)["reason"]: value
        for (name, labels), value in gateway.metrics().items()
        if name == "cardea_grant_failures_total" and value
    }


def state(gateway):
    found = [
        dict(labels)["state"]
        for (name, labels), value in gateway.metrics().items()
        if name == "cardea_identity_state" and value
    ]
    assert len(found) == 1
    return found[0]


# What Oracle's servers were seen to say instead of the standard's words.
ORACLE = {
    "a refused client in 12c's words": (
        refusal(b"400 Bad Request", b'{"errorCode":"invalid_client","errorDesc":"x","secErrorDesc":"y"}'),
        "credential-quarantined",
        "credential_rejected",
    ),
    "a code nobody knows": (
        refusal(b"400 Bad Request", b'{"errorCode":"OAUTH-00001","errorDesc":"client-secret-of-this-test"}'),
        "identity-misconfigured",
        "configuration",
    ),
    "a refused client as an object": (
        refusal(b"401 Unauthorized", b'{"error":{"code":"IDAAS-62001","message":"client-secret-of-this-test"}}'),
        "credential-quarantined",
        "credential_rejected",
    ),
    "a refused grant with 401": (
        refusal(b"401 Unauthorized", b'{"error":"invalid_grant","error_description":"Invalid+Grant%3A+revoked"}'),
        "identity-misconfigured",
        "configuration",
    ),
    "an error inside of 200": (
        answer(b'{"errorCode":"invalid_scope","errorDesc":"x"}', JSON),
        "identity-misconfigured",
        "configuration",
    ),
    "a login page": (
        answer(b"", b"Location: https://login.example/oam/server/obrareq.cgi", status=b"302 Found"),
        "identity-misconfigured",
        "configuration",
    ),
}

CASES = [
    (system, name)
    for system in SYSTEMS
    for name in (ANSWERS if system == "oauth2" else ANSWERS | ORACLE)
]


@pytest.mark.parametrize("system, name", CASES)
def test_it_has_its_fault_its_state_and_its_metric(gateway, system, name):
    data, kind, reason = (ANSWERS | ORACLE)[name]
    with Scripted(echo) as upstream, Scripted(script(data)) as issuer:
        start(gateway, upstream, issuer, system)
        found = gateway.get("/a")
        assert (found.status, found.problem["type"]) == (503, "urn:cardea:problems/" + kind), found
        for word in (b"evil", b"<html", b"good-token", b"of-this-test", issuer.address.encode()):
            assert word not in found.body.lower()
        assert (state(gateway), failures(gateway)) == (STATES.get(kind, "negative"), {reason: 1.0})
        # The next one is answered from what is known: neither is asked again.
        assert gateway.get("/a").status == 503
        assert issuer.connections == 1 and upstream.requests == []


REGISTRATION = ["pre-authorization", "register"]
REGISTERED = {
    "pre-authorization": {"access_token": "code-1", "oracle_tk_context": "pre_azc", "expires_in": 300},
    "register": {"access_token": "assertion-1", "oracle_tk_context": "client_assertion", "expires_in": 3600},
}


# What is not sent to an upstream needs no type of its own.
STEPS = [
    (step, name) for step in [*REGISTRATION, "token"] for name in ANSWERS if step == "token" or name != "another token type"
]
# Whoever was sent a password and does not say what it thinks of it may have counted it: it stays home until somebody has looked.
SPENT = {"issuer-answer-invalid", "issuer-denied", "login-required"}


@pytest.mark.parametrize("step, name", STEPS)
def test_so_has_each_step_of_a_registration(gateway, step, name):
    """OAM 11g's mobile clients: what the answer to one step is worth does not depend on the steps before it."""
    data, kind, reason = ANSWERS[name]
    steps = REGISTRATION[: REGISTRATION.index(step)] if step in REGISTRATION else REGISTRATION

    def run(peer):
        peer.request()
        done = issuer.connections - 1
        if done < len(steps):
            peer.send(answer(json.dumps(REGISTERED[steps[done]]).encode(), JSON, b"Connection: close"))
        else:
            peer.send(data)

    with Scripted(echo) as upstream, Scripted(run) as issuer:
        block = {
            "dialect": "11g",
            "service_endpoint": f"http://{issuer.address}/ms_oauth/oauth2/endpoints/oauthservice",
            "client_type": "mobile",
            "client_id": "a",
            "username": "svc",
            "password": gateway.secret("password", "password-of-this-test"),
            "fetch_app_profile": False,
        }
        policy = {"acquire_timeout": "30s", "negative_for": "60s"}
        identified(gateway, upstream, {"oam_oauth": block, "token": policy}).start()
        found = gateway.get("/a")
        assert (found.status, found.problem["type"]) == (503, "urn:cardea:problems/" + kind), found
        expected = "quarantined" if step == "register" and kind in SPENT else STATES.get(kind, "negative")
        assert (state(gateway), failures(gateway)) == (expected, {reason: 1.0})
        assert gateway.get("/a").status == 503
        assert issuer.connections == len(steps) + 1 and upstream.requests == []


MISCONFIGURED = ("identity-misconfigured", "configuration")
# Of errors that are a token endpoint's, what lies before it knows none: metadata is not there, or no client is registered.
BEFORE = {name: MISCONFIGURED for name in ("no for an answer", "a refused client", "a person is wanted")}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("step", ["metadata", "registration"])
def test_so_has_what_lies_before_a_token(gateway, step, name):
    """Discovery (RFC 8414, at either well-known place) and a client that registers itself (RFC 7591)."""
    data, *told = ANSWERS[name]
    kind, reason = BEFORE.get(name, told)

    def run(peer):
        request = peer.request()
        asked.append(request.target)
        if step == "registration" and "/.well-known/" in request.target:
            names = ("token_endpoint", "registration_endpoint")
            places = {name: f"http://{issuer.address}/{name}" for name in names}
            document = {"issuer": f"http://{issuer.address}", "response_types_supported": ["code"], **places}
            peer.send(answer(json.dumps(document).encode(), JSON, b"Connection: close"))
        else:
            peer.send(data)

    asked = []
    with Scripted(echo) as upstream, Scripted(run) as issuer:
        block = {"issuer": f"http://{issuer.address}"}
        if step == "registration":
            block["registration"] = {}
        else:
            block |= {"client_id": "a", "client_secret": gateway.secret("client", "client-secret-of-this-test")}
        policy = {"acquire_timeout": "30s", "negative_for": "60s"}
        identified(gateway, upstream, {"oauth2": block, "token": policy}).start()
        found = gateway.get("/a")
        assert (found.status, found.problem["type"]) == (503, "urn:cardea:problems/" + kind), found
        assert (state(gateway), failures(gateway)) == ("negative", {reason: 1.0})
        count = len(asked)
        assert gateway.get("/a").status == 503
        assert len(asked) == count <= 2 and upstream.requests == []


@pytest.mark.parametrize("name", ANSWERS)
def test_so_has_a_login(gateway, name):
    """Where device codes are asked for (RFC 8628): the terminal learns the reason, the metric counts it, and nobody is logged in."""
    data, _, reason = ANSWERS[name]
    with Scripted(echo) as upstream, Scripted(script(data)) as issuer:
        block = {
            "token_url": f"http://{issuer.address}/token",
            "device_authorization_url": f"http://{issuer.address}/device",
            "grant": "device_code",
            "client_id": "a",
            "client_secret": gateway.secret("client", "client-secret-of-this-test"),
        }
        identified(gateway, upstream, {"oauth2": block}).start()
        rest, _ = Lines(gateway, "only").ends(78 if reason == "configuration" else 69)
        told = json.loads(rest)
        assert (told["state"], told["reason"]) == ("failed", reason), told
        for word in ("evil", "<html", "good-token", "of-this-test"):
            assert word not in rest.lower()
        logins = {
            dict(labels)["result"]: value
            for (metric, labels), value in gateway.metrics().items()
            if metric == "cardea_logins_total" and value
        }
        assert (logins, state(gateway)) == ({reason: 1.0}, "login_needed")
        assert gateway.get("/a").problem["type"] == "urn:cardea:problems/login-required"
        assert issuer.connections == 1


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(
    "life", [None, "3600", 3600.5, 10**18, 1e300, "10000000000000000000000"], ids=lambda life: str(life)[:12]
)
def test_odd_lives_that_can_be_understood(gateway, life, system):
    members = {} if life is None else {"expires_in": life}
    with Scripted(echo) as upstream, Scripted(script(grant(**members))) as issuer:
        start(gateway, upstream, issuer, system)
        assert gateway.get("/a").status == 200
        left = next(
            value for (name, _), value in gateway.metrics().items() if name == "cardea_token_expires_seconds"
        )
        # Nothing lives longer than a year, and what does not say lives for the default of five minutes.
        assert (200 < left <= 300) if life is None else (3000 < left <= 366 * 86400)


def drip(data, pause):
    def run(peer):
        peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
        while True:
            peer.send(data)
            time.sleep(pause)

    return run


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_body_that_drips(gateway, system):
    with Scripted(echo) as upstream, Scripted(drip(b" ", 0.2)) as issuer:
        start(gateway, upstream, issuer, system, acquire_timeout="2s")
        gateway.stop()
        gateway.config["identities"]["only"]["network"] = {"timeout": "1s"}
        gateway.start()
        begun = time.monotonic()
        found = gateway.get("/a")
        assert time.monotonic() - begun < 9
        assert (found.status, found.problem["type"]) == (504, "urn:cardea:problems/token-timeout"), found
        assert (state(gateway), failures(gateway)) == ("negative", {"timed_out": 1.0})


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_body_without_end(gateway, system):
    with Scripted(echo) as upstream, Scripted(drip(b"x" * 8192, 0)) as issuer:
        start(gateway, upstream, issuer, system)
        before = gateway.resident()
        found = gateway.get("/a")
        assert (found.status, found.problem["type"]) == (503, "urn:cardea:problems/issuer-answer-invalid"), found
        assert (state(gateway), failures(gateway)) == ("negative", {"issuer_answer_invalid": 1.0})
        eventually(lambda: issuer.is_stuck() or issuer.peers[0].socket.fileno() < 0, every=0.2, what="the end of it")
        assert gateway.resident() - before < 16 << 20


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_head_without_end(gateway, system):
    def run(peer):
        peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\n")
        for number in range(1_000_000):
            peer.send(b"X-%d: %s\r\n" % (number, b"y" * 1000))

    with Scripted(echo) as upstream, Scripted(run) as issuer:
        start(gateway, upstream, issuer, system)
        found = gateway.get("/a")
        assert (found.status, found.problem["type"]) == (503, "urn:cardea:problems/issuer-answer-invalid"), found
        assert (state(gateway), failures(gateway)) == ("negative", {"issuer_answer_invalid": 1.0})


def test_nothing_of_it_is_told(gateway):
    """An error's words may quote what was sent."""
    body = json.dumps({"error": "invalid_scope", "error_description": "client-secret-of-this-test"}).encode()
    with Scripted(echo) as upstream, Scripted(script(refusal(b"400 Bad Request", body))) as issuer:
        start(gateway, upstream, issuer)
        assert b"of-this-test" not in gateway.get("/a").body
        assert b"of-this-test" not in call(gateway.admin, path="/").body
