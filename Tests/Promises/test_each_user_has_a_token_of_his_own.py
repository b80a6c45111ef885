"""Promise: where each end user has a token, nobody is ever served with another's: not under load, not by a name that looks the same,
not after a restart; and nobody's trouble is another's."""

import contextlib
import http.client
import json
import sqlite3
import subprocess
import time
import urllib.parse

import pytest

from harness import call, eventually, free_port, together
from pki import Authority
from scripted import Scripted, answer, problem_type
from test_every_grant_brings_a_token import KEY, block, claims
from wire import Raw


# --- Names ------------------------------------------------------------------------------------------------------------


class Named:
    """An issuer that gives a token with the user's name in it, and an API that checks the token against the request."""

    def __init__(self, lifetime=3600):
        self.lifetime, self.asked, self.wrong, self.refused, self.scope = lifetime, [], [], set(), None
        self.seen, self.down = [], False

    def issue(self, peer):
        for request in peer.requests():
            form = urllib.parse.parse_qs(request.body.decode())
            if self.down:
                peer.send(answer(b"", status=b"503 Service Unavailable"))
                continue
            user = form["act_as"][0].removeprefix("user:")
            self.asked.append((user, form.get("scope", [""])[0]))
            if user in self.refused:
                body = json.dumps({"error": "access_denied"}).encode()
                peer.send(answer(body, b"Content-Type: application/json", status=b"400 Bad Request"))
                continue
            grant = {"access_token": self.token(user), "token_type": "Bearer", "expires_in": self.lifetime}
            peer.send(answer(json.dumps(grant).encode(), b"Content-Type: application/json"))

    def token(self, user):
        return "t-" + user.encode().hex() + "-t"

    def serve(self, peer):
        for request in peer.requests():
            self.seen.append(request)
            user = bytes.fromhex(request.field("X-Check")).decode()
            if request.field("Authorization") != "Bearer " + self.token(user):
                self.wrong.append((user, request.field("Authorization")))
            if any(name.lower().replace("_", "-") == "x-user" for name, _ in request.fields):
                self.wrong.append("the name was forwarded")
            peer.send(answer(b"ok"))


@contextlib.contextmanager
def named(gateway, site, route=None, **changes):
    with Scripted(site.issue) as issuer, Scripted(site.serve) as api:
        who = {
            "token_url": f"http://{issuer.address}/token",
            "client_id": "front",
            "client_secret": gateway.secret("client", "c" * 20),
            "extra": {"act_as": "user:{subject}"},
        }
        way = gateway.route("only", api.address) | {"callers": "local", "subject": {"from_header": "X-User"}}
        way |= route or {}
        gateway.config = gateway.frame({"identities": {"only": {"oauth2": who}}, "routes": [way]} | changes)
        gateway.start()
        yield
        assert not site.wrong, site.wrong


def ask(gateway, user, **headers):
    return call(gateway.listen, headers={"X-User": user, "X-Check": user.encode().hex(), **headers})


def generous(**limits):
    return {"limits": {"new_subjects_per_second": 1000, **limits}}


def test_two_users_interleaved(gateway):
    site = Named()
    with named(gateway, site, **generous()):
        users = ["anna", "bert"]

        def one(number):
            host, port = gateway.listen.split(":")
            connection = http.client.HTTPConnection(host, int(port), timeout=20)
            for turn in range(60):
                user = users[(number + turn) % 2]
                connection.request("GET", "/", headers={"X-User": user, "X-Check": user.encode().hex()})
                got = connection.getresponse()
                assert got.status == 200, got.status
                got.read()
            connection.close()

        together(12, one)
        assert sorted(user for user, _ in site.asked) == users


def test_names_are_compared_to_the_last_octet(gateway):
    site = Named()
    # Case, blanks inside, letters that look alike, letters in two forms, one a part of the other.
    users = ["anna", "Anna", "anna ann", "anna  ann", "аnna", "ann", "annaa", "é", "e\u0301", "a,b", "CN=a, O=b", "x" * 256]
    with named(gateway, site, **generous()):
        for _ in range(2):
            for user in users:
                got = raw(gateway, [b"X-User:\t " + user.encode() + b" ", b"X-Check: " + user.encode().hex().encode()])
                assert got.status == 200, (user, got)
        assert sorted(user for user, _ in site.asked) == sorted(users)


def raw(gateway, fields):
    with Raw(gateway.listen) as caller:
        lines = [b"GET / HTTP/1.1", b"Host: " + gateway.listen.encode(), *fields]
        caller.send(b"\r\n".join(lines) + b"\r\n\r\n")
        return caller.answer()


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [b"X-User: anna", b"X-User: anna"],
        [b"X-User: anna", b"x-user: bert"],
        [b"X-User:"],
        [b"X-User:  "],
        [b"X_User: anna"],
        [b"X-User: " + b"x" * 257],
        [b"X-User: a\x01b"],
        [b"X-User: a\xff"],
    ],
)
def test_a_request_that_does_not_say_for_whom_it_is(gateway, fields):
    site = Named()
    with named(gateway, site, **generous()):
        got = raw(gateway, fields)
        assert (got.status, problem_type(got)) == (403, "subject-missing"), got
        assert not site.asked and not site.seen


def test_one_users_refusal_is_his_alone(gateway):
    site = Named()
    site.refused = {"mallory"}
    with named(gateway, site, **generous()):
        for _ in range(5):
            got = ask(gateway, "mallory")
            assert (got.status, problem_type(got)) == (403, "subject-refused"), got
            assert ask(gateway, "anna").status == 200
        assert len(site.asked) == 2


def test_new_users_come_no_faster_than_allowed(gateway):
    site = Named()
    with named(gateway, site, limits={"new_subjects_per_second": 3}):
        begun = time.monotonic()
        got = [ask(gateway, f"user-{number}") for number in range(12)]
        spent = time.monotonic() - begun
        served = [one for one in got if one.status == 200]
        refused = [one for one in got if one.status != 200]
        assert 3 <= len(served) <= 3 + 3 * spent + 1, got
        assert refused and all(problem_type(one) == "too-many-subjects" for one in refused)
        assert all(one.status == 503 and int(one.field("Retry-After")) >= 1 for one in refused)
        assert len(site.asked) == len(served)
        # Who is known is served meanwhile, and the others when there is room.
        assert ask(gateway, "user-0").status == 200
        eventually(lambda: ask(gateway, "user-11").status == 200, within=5, every=0.2, what="room for another")
        assert gateway.metrics()[("cardea_subjects_refused_total", ())] >= len(refused)


def test_users_beyond_the_bound_come_back_from_the_store(gateway):
    site = Named()
    users = [f"user-{number}" for number in range(40)]
    with named(gateway, site, **generous(subjects=8)):
        for _ in range(3):
            for user in users:
                assert ask(gateway, user).status == 200
        assert sorted(user for user, _ in site.asked) == sorted(users)
        assert gateway.metrics()[("cardea_subjects", ())] <= 8
        # In a burst, with everybody at once, too.
        together(24, lambda number: [ask(gateway, users[(number * 7 + turn) % 40]) for turn in range(20)])
        assert len(site.asked) == len(users)


def test_a_restart_with_the_issuer_down(gateway):
    site = Named()
    with named(gateway, site, **generous()):
        users = [f"user-{number}" for number in range(12)]
        for user in users:
            assert ask(gateway, user).status == 200
        gateway.kill()
        site.down = True
        gateway.start()
        for user in users:
            assert ask(gateway, user).status == 200
        assert ask(gateway, "stranger").status == 503
        assert len(site.asked) == len(users)


def test_nobodys_name_is_told(gateway):
    site = Named()
    site.refused = {"mallory-the-refused"}
    with named(gateway, site, **generous()):
        assert ask(gateway, "anna-the-named").status == 200
        assert ask(gateway, "mallory-the-refused").status == 403
        told = [gateway.ask(path).body.decode() for path in ("/status", "/metrics", "/")]
        told.append(gateway.command("explain", "GET", f"http://{gateway.listen}/", "-H", "X-User: anna-the-named")[1])
        gateway.stop()
        for text in [*told, gateway.text()]:
            assert "the-named" not in text and "the-refused" not in text
        # Two users are told apart all the same.
        marks = {event.get("subject") for event in gateway.events() if event.get("event", event.get("message", "")).startswith("token ")}
        assert len(marks - {None}) == 2, gateway.text()
        for path in gateway.folder.glob("tokens.db*"):
            data = path.read_bytes()
            assert b"the-named" not in data and site.token("anna-the-named").encode() not in data
        with contextlib.closing(sqlite3.connect(gateway.store)) as store:
            assert store.execute("select count(*) from rows").fetchone()[0] > 0


def test_a_reload_keeps_everybodys_token(gateway):
    site = Named()
    with named(gateway, site, **generous()):
        for user in ("anna", "bert"):
            assert ask(gateway, user).status == 200
        gateway.config["limits"]["subjects"] = 500
        gateway.file.write_text(json.dumps(gateway.config))
        eventually(lambda: json.loads(gateway.ask("/status").body)["reload"]["edition"] > 1, within=10, what="the reload")
        for user in ("anna", "bert"):
            assert ask(gateway, user).status == 200
        assert len(site.asked) == 2


# --- The caller's own token -------------------------------------------------------------------------------------------


def own(provider, name, seconds=3600):
    """A token of a user of the provider; the user is a client of its own."""
    provider.client(name, secret="s-" + name, auth="client_secret_post", grants=["client_credentials"])
    provider.post("lifetime", {"seconds": seconds})
    form = urllib.parse.urlencode(
        {"grant_type": "client_credentials", "scope": "read", "client_id": name, "client_secret": "s-" + name}
    )
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    got = call(provider.issuer.removeprefix("http://"), "POST", "/token", form.encode(), kind)
    assert got.status == 200, got
    provider.post("lifetime", {"seconds": 3600})
    return got.json["access_token"]


@pytest.fixture
def exchange(gateway, provider):
    who = block(gateway, provider, "token_exchange")
    gateway.provider(provider, api={"oauth2": who}, changes=generous())
    gateway.config["routes"][0] |= {"subject": "from_caller_token", "callers": "local"}
    return gateway.start()


def bearer(gateway, token, path="/"):
    gateway.secrets.append(token)
    return call(gateway.listens["api"], path=path, headers={"Authorization": "Bearer " + token})


def test_the_callers_token_is_exchanged_for_its_own(exchange, provider):
    tokens = {f"user{number}": own(provider, f"user{number}") for number in range(3)}

    def one(number):
        for turn in range(12):
            name = f"user{(number + turn) % 3}"
            got = bearer(exchange, tokens[name])
            assert got.status == 200, got
            assert (got.json["sub"], got.json["client_id"]) == (name, "cli ent")

    together(6, one)
    assert len(provider.steps("exchange")) == 3
    # Revoked at the API: one new exchange, of this user alone, unseen.
    provider.post("revoke_access", {"jti": [bearer(exchange, tokens["user1"]).json["jti"]]})
    assert bearer(exchange, tokens["user1"]).json["sub"] == "user1"
    assert len(provider.steps("exchange")) == 4


def test_a_token_that_the_issuer_refuses(exchange, provider):
    good = own(provider, "user0")
    for _ in range(3):
        got = bearer(exchange, good[:-6] + "AAAAAA")
        assert (got.status, problem_type(got)) == (403, "subject-refused"), got
        assert bearer(exchange, good).status == 200
    assert len(provider.steps("exchange")) == 1


VALUES = ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer a b", "Bearer ä", "Bearer " + "a" * 8193]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_no_token(exchange, provider, value):
    fields = [b"Authorization: " + value.encode("latin-1")] if value else []
    with Raw(exchange.listens["api"]) as caller:
        lines = [b"GET / HTTP/1.1", b"Host: " + exchange.listens["api"].encode(), *fields]
        caller.send(b"\r\n".join(lines) + b"\r\n\r\n")
        got = caller.answer()
    assert (got.status, problem_type(got)) == (403, "subject-missing"), got
    assert not provider.steps("exchange")


def test_nothing_outlives_what_it_was_made_from(exchange, provider):
    short = own(provider, "user0", seconds=4)
    assert bearer(exchange, short).json["sub"] == "user0"
    got = eventually(
        lambda: (lambda found: found if found.status != 200 else None)(bearer(exchange, short)),
        every=0.3, what="the end of the caller's token",
    )
    assert (got.status, problem_type(got)) == (403, "subject-refused"), got
    # Renewals before its end may have been made; after it nothing was asked.
    count = len(provider.steps("exchange"))
    assert bearer(exchange, short).status == 403
    assert len(provider.steps("exchange")) == count


def test_exchanged_tokens_survive_a_restart(exchange, provider):
    tokens = {f"user{number}": own(provider, f"user{number}") for number in range(3)}
    first = {name: bearer(exchange, token).json["jti"] for name, token in tokens.items()}
    exchange.kill()
    exchange.start()
    assert {name: bearer(exchange, token).json["jti"] for name, token in tokens.items()} == first
    # A refusal is answered with the token that the request itself brought.
    provider.post("revoke_access", {"jti": [first["user2"]]})
    assert bearer(exchange, tokens["user2"]).json["sub"] == "user2"
    assert len(provider.steps("exchange")) == 4


# --- Assertions, certificates -----------------------------------------------------------------------------------------


def test_an_assertion_in_the_users_name(gateway, provider):
    from cryptography.hazmat.primitives import serialization

    pem = KEY.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    who = block(gateway, provider, "jwt_bearer", key=gateway.secret("key", pem))
    gateway.provider(provider, api={"oauth2": who}, changes=generous())
    gateway.config["routes"][0] |= {"subject": {"from_header": "X-User"}, "callers": "local"}
    gateway.start()
    for _ in range(3):
        got = call(gateway.listens["api"], headers={"X-User": "anna"})
        assert got.status == 200 and got.json["sub"] == "anna", got
        # Not a user there. The key is none the worse for it.
        got = call(gateway.listens["api"], headers={"X-User": "Anna"})
        assert (got.status, problem_type(got)) == (403, "subject-refused"), got
    assert len(provider.steps("token")) == 1


def test_explain_says_that_there_is_one_for_each(gateway):
    with named(gateway, Named(), **generous()):
        assert ask(gateway, "anna").status == 200
        _, out, _ = gateway.command("explain", "GET", f"http://{gateway.listen}/x")
        assert "subject by header x-user" in out, out
        status = json.loads(gateway.ask("/status").body)
        assert status["subjects"]["in_memory"] == 1 and len(status["tokens"]) == 1, status


def test_the_name_in_the_callers_certificate(gateway, tmp_path):
    authority = Authority(tmp_path / "pki")
    certificate, key = authority.leaf("localhost", "DNS:localhost")
    files = {"certificate": str(certificate), "key": f"file:{key}", "client_ca": str(authority.pem)}
    edge = {"listeners": {"edge": {"address": gateway.listen, "tls": [files]}}}
    route = {"listen": "edge", "subject": "from_client_certificate"}

    def status(user, names):
        pem, secret = authority.leaf("user", names, as_name=user.encode().hex())
        done = subprocess.run(
            [
                *["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--cacert", str(authority.pem), "--max-time", "10"],
                *["--cert", str(pem), "--key", str(secret), "-H", "X-Check: " + user.encode().hex()],
                f"https://localhost:{gateway.listen.split(':')[1]}/",
            ],
            capture_output=True,
            text=True,
        )
        return int(done.stdout)

    site = Named()
    with named(gateway, site, route, **generous(), **edge):
        for _ in range(2):
            assert status("anna@a.example", "email:anna@a.example") == 200
            assert status("spiffe://a.example/bert", "URI:spiffe://a.example/bert") == 200
        # Whose is a certificate of two, or of nobody?
        assert status("anna@a.example", "email:anna@a.example,email:bert@a.example") == 403
        assert status("x", "IP:127.0.0.9") == 403
        assert sorted(user for user, _ in site.asked) == ["anna@a.example", "spiffe://a.example/bert"]


# --- Scopes -----------------------------------------------------------------------------------------------------------


def test_wider_tokens_serve_their_own_user_only(gateway):
    site = Named()
    wide, narrow = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    with named(gateway, site, **generous()):
        gateway.stop()
        way = gateway.config["routes"][0]
        gateway.config["routes"] = [
            way | {"name": "wide", "listen": wide, "scopes": ["read", "write"]},
            way | {"name": "narrow", "listen": narrow, "scopes": ["read"]},
        ]
        gateway.start()

        def one(listen, user):
            assert call(listen, headers={"X-User": user, "X-Check": user.encode().hex()}).status == 200

        for listen, user in [(wide, "anna"), (narrow, "anna"), (narrow, "bert"), (wide, "bert"), (narrow, "anna")]:
            one(listen, user)
        assert site.asked == [("anna", "read write"), ("bert", "read"), ("bert", "read write")]


def test_what_one_user_needs_more_is_not_asked_for_another(gateway, provider):
    who = block(gateway, provider, "token_exchange", allowed_scopes=["read", "write"])
    gateway.provider(provider, api={"oauth2": who}, changes=generous())
    gateway.config["routes"][0] |= {"subject": "from_caller_token", "callers": "local"}
    gateway.start()
    tokens = {name: own(provider, name) for name in ("user0", "user1")}
    assert bearer(gateway, tokens["user0"]).json["scope"] == "read"
    wide = bearer(gateway, tokens["user0"], path="/?needs=write")
    assert wide.status == 200 and set(wide.json["scope"].split()) == {"read", "write"}, wide
    assert bearer(gateway, tokens["user1"]).json["scope"] == "read"
    # What the operator does not allow is not asked for, whoever is concerned.
    assert bearer(gateway, tokens["user1"], path="/?needs=admin").status == 403
    assert len(provider.steps("exchange")) == 3


def test_a_live_check_reaches_the_issuer_only(gateway, provider):
    who = block(gateway, provider, "token_exchange")
    gateway.provider(provider, api={"oauth2": who}, changes=generous())
    gateway.config["routes"][0] |= {"subject": "from_caller_token", "callers": "local"}
    gateway.file.write_text(json.dumps(gateway.config))
    status, out, err = gateway.command("check", "--live", config=False, *[str(gateway.file)])
    assert status == 0 and "per subject" in out + err, out + err
    assert not provider.steps("exchange")
