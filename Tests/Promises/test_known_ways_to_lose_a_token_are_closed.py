"""Promise: what is known to have gone wrong elsewhere between a caller, a token and its issuer does not happen here."""

import base64
import json
import time
import urllib.parse

from harness import call, eventually, together
from scripted import Issuer, Scripted, answer, get, identified
from test_each_user_has_a_token_of_his_own import Named, ask, generous, named
from wire import Raw


def oauth(gateway, issuer, **more):
    who = {"token_url": f"http://{issuer.address}/token", "client_id": "edge", "client_secret": gateway.secret("client", "c" * 20)}
    return {"oauth2": who, "token": more} if more else {"oauth2": who}


class Checks:
    """An API that takes any Bearer token and notes it."""

    def __init__(self):
        self.tokens = []

    def __call__(self, peer):
        for request in peer.requests():
            self.tokens.append([value for name, value in request.fields if name.lower() == "authorization"])
            peer.send(answer(b"ok"))


class Says:
    """An issuer that answers with what it is told to."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), 0

    def __call__(self, peer):
        for _ in peer.requests():
            body = self.answers[min(self.asked, len(self.answers) - 1)]
            self.asked += 1
            peer.send(answer(body, b"Content-Type: application/json"))


GOOD = b'{"access_token":"a-token","token_type":"Bearer","expires_in":3600}'


def test_renewals_do_not_end_with_the_caller_who_came_first(gateway):
    """A grant belongs to nobody's request: its first caller leaves before it has come, and all later ones are served."""
    issued = []

    def slow(peer):
        for _ in peer.requests():
            time.sleep(0.5)
            issued.append(1)
            peer.send(answer(json.dumps({"access_token": f"t{len(issued)}", "token_type": "Bearer", "expires_in": 2}).encode(), b"Content-Type: application/json"))

    with Scripted(slow) as issuer, Scripted(Checks()) as api:
        identified(gateway, api, oauth(gateway, issuer)).start()
        with Raw(gateway.listen) as caller:
            caller.send(get(gateway, "/"))
            eventually(lambda: issuer.requests, what="the grant's begin")
        end = time.monotonic() + 5
        while time.monotonic() < end:
            assert gateway.get("/").status == 200
        assert 2 <= len(issued) <= 8


def test_a_lifetime_that_is_not_told_is_neither_none_nor_endless(gateway):
    says = Says(b'{"access_token":"one","token_type":"Bearer"}', b'{"access_token":"two","token_type":"Bearer"}')
    with Scripted(says) as issuer, Scripted(Checks()) as api:
        identified(gateway, api, oauth(gateway, issuer, default_lifetime="2s")).start()
        together(20, lambda _: gateway.get("/"))
        assert says.asked == 1, "not one grant a request"
        eventually(lambda: gateway.get("/").status == 200 and says.asked >= 2, within=10, what="a renewal")


def test_clients_of_two_issuers_are_not_mixed_up_by_equal_names(gateway):
    """Same client, same scopes, same API; where the token comes from is a part of whose it is."""
    checks = Checks()
    with Scripted(Issuer(token="first-{}".format)) as one, Scripted(Issuer(token="second-{}".format)) as two, Scripted(checks) as api:
        routes = [gateway.route(name, api.address) | {"use": name, "match": {"path": f"/{name}/"}} for name in ("one", "two")]
        gateway.config = gateway.frame({"identities": {"one": oauth(gateway, one), "two": oauth(gateway, two)}, "routes": routes})
        gateway.start()
        for _ in range(2):
            assert gateway.get("/one/x").status == gateway.get("/two/x").status == 200
        assert checks.tokens == [["Bearer first-1"], ["Bearer second-1"]] * 2


def test_the_callers_own_credential_is_not_left_in_front_of_ours(gateway):
    checks = Checks()
    with Scripted(Issuer()) as issuer, Scripted(checks) as api:
        identified(gateway, api, oauth(gateway, issuer)).start()
        assert gateway.get("/", headers={"Authorization": "Bearer of-the-caller"}).status == 200
        assert checks.tokens == [["Bearer token-1"]]


def test_a_failed_grant_is_never_an_empty_200(gateway):
    checks = Checks()
    with Scripted(Says(b"{}")) as issuer, Scripted(checks) as api:
        identified(gateway, api, oauth(gateway, issuer)).start()
        got = gateway.get("/")
        assert got.status == 503 and got.body and not checks.tokens


def test_an_odd_answer_of_the_issuer_is_not_the_end(gateway):
    """Empty, no JSON, no token, an empty token: each is tried again by itself, without a new configuration."""
    for odd in (b"", b"<html>", b"{}", b'{"access_token":""}', b"null"):
        gateway.folder.joinpath("tokens.db").unlink(missing_ok=True)
        says = Says(odd, GOOD)
        with Scripted(says) as issuer, Scripted(Checks()) as api:
            identified(gateway, api, oauth(gateway, issuer, negative_for="200ms")).start()
            assert gateway.get("/").status == 503, odd
            eventually(lambda: gateway.get("/").status == 200, within=15, every=0.1, what=f"a token after {odd!r}")
            assert gateway.stop() == 0
        assert "<html>" not in gateway.text()


def test_every_waiter_of_a_slow_issuer_gets_its_token(gateway):
    def slow(peer):
        for _ in peer.requests():
            time.sleep(3)
            peer.send(answer(GOOD, b"Content-Type: application/json"))

    with Scripted(slow) as issuer, Scripted(Checks()) as api:
        identified(gateway, api, oauth(gateway, issuer)).start()
        assert {got.status for got in together(30, lambda _: gateway.get("/", timeout=20))} == {200}
        assert len(issuer.requests) == 1


def test_a_name_that_only_contains_a_host_is_not_that_host(gateway):
    checks = Checks()
    with Scripted(Issuer()) as issuer, Scripted(checks) as api:
        identified(gateway, api, oauth(gateway, issuer), route={"match": {"host": "api.internal"}}).start()
        for host in ("api.internal.attacker.example", "xapi.internal", "api.internal.", "attacker.example/api.internal"):
            assert gateway.get("/", headers={"Host": host}).status in (400, 404, 421), host
        assert not checks.tokens
        assert gateway.get("/", headers={"Host": "api.internal"}).status == 200


def test_a_token_need_not_be_anything_but_characters(gateway):
    """An opaque token is no JWT, and one that looks like a JWT need not be one."""
    for token in ("2YotnFZFEjr1zCsicMWpAA", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", "x" * 4000):
        gateway.folder.joinpath("tokens.db").unlink(missing_ok=True)
        checks = Checks()
        body = json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": 60}).encode()
        with Scripted(Says(body)) as issuer, Scripted(checks) as api:
            identified(gateway, api, oauth(gateway, issuer)).start()
            assert gateway.get("/").status == 200 and checks.tokens == [[f"Bearer {token}"]]
            assert gateway.stop() == 0


def test_without_its_secret_a_route_sends_nothing(gateway):
    checks = Checks()
    with Scripted(checks) as api:
        identified(gateway, api, {"static": {"value": f"file:{gateway.folder}/not-there"}}).start()
        assert gateway.get("/").status == 503 and not checks.tokens


def test_no_field_of_a_request_costs_another_grant(gateway):
    checks = Checks()
    with Scripted(Issuer()) as issuer, Scripted(checks) as api:
        identified(gateway, api, oauth(gateway, issuer)).start()
        for number in range(20):
            headers = {"traceparent": f"00-{number:032x}-{number:016x}-01", "X-Request-Id": str(number), "Cookie": f"n={number}"}
            assert call(gateway.listen, "POST", f"/{number}?n={number}", f"body {number}".encode(), headers).status == 200
        assert len(issuer.requests) == 1 and len(set(map(tuple, checks.tokens))) == 1


def test_a_refresh_token_that_somebody_else_has_used_is_told_of(gateway):
    """A server that rotates refuses it then, and revokes what hangs on it. Whoever looks at the log learns of it; callers do not."""
    asked = []

    def issue(peer):
        for request in peer.requests():
            form = urllib.parse.parse_qs(request.body.decode())
            asked.append(form["grant_type"][0])
            if asked[-1] == "refresh_token":
                peer.send(answer(b'{"error":"invalid_grant"}', b"Content-Type: application/json", status=b"400 Bad Request"))
                continue
            grant = {"access_token": f"t-{len(asked)}", "token_type": "Bearer", "expires_in": 3600, "refresh_token": f"refresh-{len(asked)}"}
            peer.send(answer(json.dumps(grant).encode(), b"Content-Type: application/json"))

    def api(peer):
        for request in peer.requests():
            good = request.field("Authorization") == f"Bearer t-{len(asked)}" and len(asked) == wanted[0]
            peer.send(answer(b"ok") if good else answer(b"", b"WWW-Authenticate: Bearer", status=b"401 Unauthorized"))

    wanted = [1]
    with Scripted(issue) as issuer, Scripted(api) as upstream:
        who = oauth(gateway, issuer)
        who["oauth2"] |= {"grant": "password", "username": "svc", "password": gateway.secret("password", "p" * 20)}
        identified(gateway, upstream, who).start()
        assert gateway.get("/").status == 200
        wanted[0] = 3
        assert gateway.get("/").status == 200
        assert asked == ["password", "refresh_token", "password"]
        gateway.secrets += ["refresh-1", "refresh-3"]

        def told():
            return [event for event in gateway.events() if "somebody else has used it" in event.get("reason", "")]

        [event] = eventually(told, what="a line of the log")
        assert event["level"] == "warn" and event["identity"] == "only"


def test_a_stolen_file_names_no_user(gateway):
    """Rows of end users and of what a session lives on, with the log of the file and after it has been compacted."""
    site = Named()
    with named(gateway, site, **generous()):
        for user in ("anna-the-user", "bert-the-user"):
            assert ask(gateway, user).status == 200
        gateway.kill()
        for step in (lambda: None, lambda: gateway.command("store", "compact")):
            step()
            held = b"".join(path.read_bytes() for path in gateway.folder.glob("tokens.db*"))
            assert len(held) > 4096
            for user in ("anna-the-user", "bert-the-user"):
                for word in (user, site.token(user), site.token(user)[2:-2], base64.b64encode(user.encode()).decode().rstrip("=")):
                    assert word.encode() not in held and word.encode("utf-16-le") not in held, word
