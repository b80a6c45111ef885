"""Promise: of several identities the first answers whose scheme the server offers, a refusal is never followed by another one's credential, and
a challenge that asks for less than before brings out no weaker one unless the route says so."""

import base64
import contextlib
import json
import socket

import pytest
from digest_servers import PASSWORD, USER, Apache, serving

import ntlm_server
from harness import eventually, together
from http2_peers import Server
from scripted import OK, Issuer, Scripted, answer
from strict_digest import Strict
from test_a_reload_drops_nothing import reload

BASIC = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


def members(gateway, *names, password=PASSWORD, issuer=None):
    """Identities by the names of their schemes."""
    secret = {"password": gateway.secret("password", password)}
    blocks = {
        "digest": {"digest": {"username": USER, "algorithms": ["sha-256", "md5"]} | secret},
        "basic": {"basic": {"username": USER} | secret},
        "ntlm": {"ntlm": {"username": f"{ntlm_server.DOMAIN}\\{ntlm_server.USER}",
                          "password": gateway.secret("ntlm", ntlm_server.PASSWORD)}},
        "token": {"oauth2": {"token_url": f"http://{issuer}/token", "client_id": "one",
                             "client_secret": gateway.secret("client", "s3cret-of-the-client")}},
    }
    return {name: blocks[name] for name in names}


def listed(gateway, server, *names, route=None, to="http", **rest):
    way = {"name": "listed", "listen": gateway.listen, "to": f"{to}://{server.address}", "use": list(names),
           "allow_cleartext": True}
    gateway.config = gateway.frame({
        "threads": 1, "identities": members(gateway, *names, **rest), "routes": [way | (route or {})]})
    return gateway


def chosen(gateway):
    return [event["identity"] for event in gateway.events() if event.get("message") == "scheme chosen"]


class Offers:
    """A server whose offers change: `word` of each line, and what it takes: a list of values of Authorization."""

    def __init__(self, *offers, takes=()):
        self.offers, self.takes, self.got = list(offers), set(takes), []

    def __call__(self, peer):
        for request in peer.requests():
            value = request.field("Authorization")
            self.got.append(value)
            if value in self.takes:
                peer.send(OK)
            else:
                lines = [f"WWW-Authenticate: {offer}".encode() for offer in self.offers]
                peer.send(answer(b"no", *lines, status=b"401 No"))


def forget(server):
    """The next request comes on a connection of its own."""
    for peer in server.peers:
        with contextlib.suppress(OSError):
            peer.socket.shutdown(socket.SHUT_RDWR)


def test_apache_offers_the_second_of_three(gateway, tmp_path):
    with serving(Apache, tmp_path) as server:
        listed(gateway, server, "ntlm", "digest", "basic").start()
        for _ in range(4):
            assert gateway.get("/guarded/page").status == 200, gateway.text()
        eventually(lambda: len(server.asked()) == 5, what="the log")
        # Bare once; its challenge is answered at once, and those after it need none.
        assert server.statuses() == [401] + [200] * 4 and server.numbers() == [1, 2, 3, 4]
        eventually(lambda: chosen(gateway) == ["digest"], what="the choice")


def test_ntlm_before_digest(gateway, tmp_path):
    with ntlm_server.served(tmp_path / "server") as server:
        listed(gateway, server, "digest", "ntlm").start()
        for _ in range(3):
            assert gateway.get("/x").status == 200, gateway.text()
        assert server.kinds() == [0, 1, 3, 0, 0] and server.attempts == 1


@pytest.mark.parametrize("order", [["digest", "basic"], ["basic", "digest"]])
@pytest.mark.parametrize("offers", [['Digest realm="r", nonce="n", qop="auth"', 'Basic realm="r"'],
                                    ['Basic realm="r"', 'Digest realm="r", nonce="n", qop="auth"'],
                                    ['Basic realm="r", Digest realm="r", nonce="n", qop="auth"']])
def test_the_operators_order_counts_and_no_other_follows(gateway, order, offers):
    with Scripted(Offers(*offers)) as server:
        listed(gateway, server, *order).start()
        # What is refused is not followed by another one's credential, then or later.
        assert [gateway.get("/x").status for _ in range(3)] == [502, 503, 503], gateway.text()
        assert [(value or "").split(" ")[0].lower() for value in server.script.got] == ["", order[0]]


def test_a_bearer_token_and_a_password(gateway):
    with Scripted(Issuer()) as issuer, Scripted(Offers('Bearer realm="r"', "Basic", takes=["Bearer token-1"])) as server:
        listed(gateway, server, "token", "basic", issuer=issuer.address).start()
        assert gateway.get("/x").status == 200, gateway.text()
        assert gateway.get("/x").status == 200
        assert server.script.got == [None, "Bearer token-1", "Bearer token-1"] and len(issuer.script.grants) == 1


def test_a_webgate_in_a_list(gateway):
    gateway.webgate()
    gateway.config["identities"] |= members(gateway, "basic")
    (route,) = gateway.config["routes"]
    route["use"] = [route["use"], "basic"]
    gateway.start()
    assert gateway.get().status == 200, gateway.text()
    assert gateway.get().status == 200


def test_a_server_that_asks_for_nothing_gets_nothing(gateway):
    with Scripted(Offers(takes=[None])) as server:
        listed(gateway, server, "digest", "basic").start()
        assert [gateway.get("/x").status for _ in range(3)] == [200] * 3
        assert server.script.got == [None] * 3 and chosen(gateway) == []


def test_an_offer_of_nothing_that_is_listed_passes(gateway):
    with Scripted(Offers("Mutual realm=x", "Bearer")) as server:
        listed(gateway, server, "digest", "basic").start()
        reply = gateway.get("/x")
        assert (reply.status, reply.body) == (401, b"no") and server.script.got == [None]


def test_a_weaker_offer_brings_no_password_out(gateway):
    strict = Strict()
    offers = Offers("Basic", takes=[BASIC])
    with Scripted(lambda peer: script(peer)) as server:
        script = strict
        listed(gateway, server, "digest", "basic").start()
        assert gateway.get("/x").status == 200, gateway.text()
        script = offers
        forget(server)
        for _ in range(3):
            assert gateway.get("/y").status == 401, gateway.text()
        assert BASIC not in offers.got
        # The secret is not blamed: the server did not judge it.
        script = strict
        forget(server)
        assert gateway.get("/x").status == 200, gateway.text()
    refused = gateway.told(lambda event: event["message"] == "weaker scheme refused")
    assert {event["identity"] for event in refused} == {"basic"}
    assert gateway.metrics()["cardea_glitches_total", (("kind", "weaker_scheme_refused"),)] == 3


def test_a_route_may_go_down(gateway):
    strict = Strict()
    offers = Offers("Basic", takes=[BASIC])
    with Scripted(lambda peer: script(peer)) as server:
        script = strict
        listed(gateway, server, "digest", "basic", route={"downgrade": "allow"}).start()
        assert gateway.get("/x").status == 200
        script = offers
        forget(server)
        assert gateway.get("/y").status == 200, gateway.text()
        assert gateway.get("/y").status == 200
        assert offers.got[1:] == [BASIC, BASIC]
    assert gateway.metrics()["cardea_glitches_total", (("kind", "weaker_scheme"),)] == 1
    assert gateway.told(lambda event: event["message"] == "weaker scheme chosen")


def test_a_refusal_that_offers_nothing_of_the_list_blames_no_password(gateway):
    offers = Offers("Basic", takes=[BASIC])
    with Scripted(offers) as server:
        listed(gateway, server, "basic", "digest").start()
        assert gateway.get("/x").status == 200
        offers.takes, offers.offers = set(), ["NTLM"]
        assert [gateway.get("/x").status for _ in range(5)] == [401] * 5
        offers.takes, offers.offers = {BASIC}, ["Basic"]
        assert gateway.get("/x").status == 200, gateway.text()


class Tolerant(Strict):
    """Refuses answers of other schemes like wrong ones."""

    def judge(self, request, value, state):
        return super().judge(request, value, state) if value.startswith("Digest ") else "another scheme"


def test_a_stronger_offer_is_taken(gateway):
    strict = Tolerant()
    offers = Offers("Basic", takes=[BASIC])
    with Scripted(lambda peer: script(peer)) as server:
        script = offers
        listed(gateway, server, "digest", "basic").start()
        assert gateway.get("/x").status == 200, gateway.text()
        script = strict
        forget(server)
        assert gateway.get("/x").status == 200, gateway.text()
        assert gateway.get("/x").status == 200
        assert len(strict.taken) == 2 and [verdict for verdict, _ in strict.wrong] == ["another scheme"]
    assert chosen(gateway)[0] == "basic"


def test_a_wrong_password_is_tried_once_and_by_one_scheme(gateway):
    strict = Strict(more=[("WWW-Authenticate", "Basic")])
    with Scripted(strict) as server:
        listed(gateway, server, "digest", "basic", password="another-than-the-right-one").start()
        assert {reply.status for reply in together(8, lambda _: gateway.get("/x"))} <= {502, 503}, gateway.text()
        assert len(strict.wrong) == 1 and strict.wrong[0][1].startswith("Digest ")


def test_many_at_once_make_one_choice(gateway):
    strict = Strict()
    with Scripted(strict):
        pass
    with Scripted(strict) as server:
        listed(gateway, server, "ntlm", "digest", "basic")
        gateway.config["threads"] = 2
        gateway.start()
        assert [reply.status for reply in together(20, lambda _: gateway.get("/x"))] == [200] * 20, gateway.text()
        assert set(chosen(gateway)) == {"digest"} and not strict.wrong


@pytest.mark.parametrize("size, first", [(0, 200), (10_000, 200), (2_000_000, 401)])
def test_bodies(gateway, size, first):
    body = b"b" * size
    strict = Strict()
    with Scripted(strict) as server:
        listed(gateway, server, "digest", "basic", route={"on_rejected": {"max_body": "64KiB"}}).start()
        assert gateway.call("POST", "/x", body).status == first, gateway.text()
        # A body that is not kept cannot be sent twice; the choice is made all the same.
        assert gateway.get("/x").status == 200
        assert gateway.call("POST", "/x", body).status == 200, gateway.text()
        assert strict.taken[-1].body == body


def test_over_http2(gateway):
    strict = Strict()
    with Server(strict.stream) as server:
        listed(gateway, server, "digest", "basic", route={"http": "2"}).start()
        for _ in range(3):
            assert gateway.get("/x").status == 200, gateway.text()


def test_the_choice_outlives_a_reload(gateway):
    with Scripted(Offers("Basic", takes=[BASIC])) as server:
        listed(gateway, server, "digest", "basic").start()
        assert gateway.get("/x").status == 200
        gateway.config["limits"] = {"target_size": "4KiB"}
        reload(gateway, gateway.config)
        assert gateway.get("/x").status == 200
        assert server.script.got == [None, BASIC, BASIC]
        # Another list begins anew.
        gateway.config["routes"][0]["use"] = ["basic", "digest"]
        reload(gateway, gateway.config)
        assert gateway.get("/x").status == 200
        assert server.script.got[3:] == [None, BASIC]


MALFORMED = [
    "", ",", "=", "Digest", "Digest ", "Digest =", "Digest ,", "Digest realm", "Digest realm=", 'Digest realm="',     'Digest realm="r"', 'Digest realm="r", nonce', 'Digest realm="r", nonce="n", algorithm=NOPE', "Digest Digest Digest",
    'Digest realm="r", realm="r", nonce="n"', 'Digest realm="r", nonce="n", qop=auth-conf', "Digest\trealm=r", "digest;realm=r",
    "Digest realm=r nonce=n", "Digest " + "a=b, " * 70 + 'realm="r", nonce="n"', "Digest " + "x" * 3000, '"Digest"', "Dig est x", "Digest\x01",
    "Digestive realm=r", "Basi", "Basic2", "X-Basic realm=x", "Bearer Basic=x", 'Bearer realm="Basic"', 'Bearer realm="a, Basic realm=b"',
    "B\xe4sic", "(Basic)", "Basic=x", "Bearer,Mutual", ";", "\t", " " * 200, "a" * 4000, "Negotiate !!!", "NTLM x",
    'Unknown "Basic', "Unknown 'Digest'", "Unknown Digest=1", 'Unknown x="\\"', "Unknown x=Basic", "Unknown a=1 ,, b=2", "Unknown token68==",
    "Unknown =", "Unknown x=" + "y" * 3000,
]


def test_malformed_offers_choose_nothing(gateway):
    offers = Offers()
    with Scripted(offers):
        pass
    with Scripted(offers) as server:
        listed(gateway, server, "digest", "basic").start()
        for value in MALFORMED:
            offers.offers = [value.encode("latin-1").decode("latin-1")]
            assert gateway.get("/x").status == 401, value
        assert len(MALFORMED) >= 50 and set(offers.got) == {None} and chosen(gateway) == []


WRONG = {
    "none among others": ({"use": ["digest", "none"]}, "'none', which is not defined"),
    "an empty list": ({"use": []}, "is an empty list"),
    "the same twice": ({"use": ["digest", "digest"]}, "is never chosen: 'digest' before it"),
    "inject": ({"use": ["digest", "basic"], "inject": {"header": "X-Key"}}, "has several identities and 'inject'"),
    "statuses": ({"use": ["digest", "basic"], "on_rejected": {"statuses": [403]}}, "no 'statuses' in 'on_rejected'"),
    "no replay": ({"use": ["digest", "basic"], "on_rejected": {"replay": "never"}}, "needs 'replay: once'"),
    "a password in clear text": (
        {"use": ["digest", "basic"], "to": "http://far.example"}, "would send its password in clear text"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_work_is_refused(gateway, name):
    change, words = WRONG[name]
    with Scripted(Offers()) as server:
        listed(gateway, server, "digest", "basic", route=change)
        gateway.file.write_text(json.dumps(gateway.config))
        status, out, err = gateway.command("check")
        assert status != 0 and words in out + err, out + err


def test_a_scheme_without_a_name_cannot_be_chosen(gateway):
    with Scripted(Offers()) as server:
        listed(gateway, server, "digest", "basic")
        gateway.config["identities"]["basic"] = {"static": {"token": gateway.secret("t", "a-token-of-text")}}
        gateway.file.write_text(json.dumps(gateway.config))
        status, out, err = gateway.command("check")
        assert status != 0 and "answers no challenge by its scheme's name" in out + err, out + err


def test_explain_tells_of_the_list(gateway):
    with Scripted(Offers()) as server:
        listed(gateway, server, "digest", "basic")
        gateway.file.write_text(json.dumps(gateway.config))
        status, out, err = gateway.command("explain", "GET", f"http://{gateway.listen}/x")
        assert status == 0 and "digest (Digest), basic (Basic)" in out, out + err


def test_explain_and_the_status_tell_of_the_choice(gateway):
    with Scripted(Offers("Basic", takes=[BASIC])) as server:
        listed(gateway, server, "digest", "basic").start()
        url = f"http://{gateway.listen}/x"
        [route] = json.loads(gateway.ask("/status").body)["routes"]
        assert (route.get("identity"), route["identities"]) == (None, ["digest", "basic"])
        assert "no challenge of the upstream has chosen yet" in gateway.command("explain", "GET", url)[1]
        assert gateway.get("/x").status == 200
        [route] = json.loads(gateway.ask("/status").body)["routes"]
        assert route["identity"] == "basic"
        status, out, err = gateway.command("explain", "GET", url)
        assert status == 0 and "have chosen 'basic'" in out, out + err
        assert "as basic" in gateway.ask("/").body.decode()
