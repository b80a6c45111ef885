"""Promise: an operator sees what state every token is in and has it forgotten, by the command line and from the page; never a value,
never a user's name."""

import base64
import http.client
import json
import re

import pytest

from harness import call, eventually
from scripted import Local, Scripted
from small_disk import SmallDisk
from test_each_user_has_a_token_of_his_own import Named, ask, generous, named
from test_identities_never_share_a_credential import Mirror, oauth

HEAD = ["IDENTITY", "REALM / SCOPE", "UPSTREAM", "STATE", "AGE", "EXPIRES", "NEXT", "GRANTS", "LAST ERROR"]


def listed(gateway, *names):
    status, out, errors = gateway.command("tokens", "list", *names)
    assert status == 0, errors
    head, *lines = out.splitlines()
    starts = [head.index(name) for name in HEAD] + [None]
    return [{name: line[a:b].strip() for name, a, b in zip(HEAD, starts, starts[1:])} for line in lines]


def test_the_list_of_a_hot_token(hot):
    [line] = listed(hot)
    assert (line["IDENTITY"], line["REALM / SCOPE"].split(":")[0], line["STATE"]) == ("hr", "HR_WG", "fresh")
    assert line["UPSTREAM"].endswith(hot.lab.listen) and line["GRANTS"] == "1" and line["LAST ERROR"] == "–"
    assert re.fullmatch(r"\d+s", line["AGE"]) and re.fullmatch(r"in \d+m", line["EXPIRES"]) and line["NEXT"].startswith("refresh ")
    status, out, _ = hot.command("tokens", "--json")
    document = json.loads(out)
    assert status == 0 and document["tokens"][0]["state"] == "fresh" and document["identities"][0]["name"] == "hr"
    # The same facts in another command.
    _, out, _ = hot.command("explain", "GET", f"http://{hot.listen}/hr/rest/1")
    assert "token      fresh, realm HR_WG" in out and "refresh in " in out and "expires in " in out


def test_a_quarantine_and_a_pause_say_what_comes_next(gateway):
    gateway.oauth().start()
    gateway.lab.faults(issuer_status=500)
    assert gateway.get("/api/employees/1").status == 503
    [line] = listed(gateway)
    assert line["STATE"] == "negative" and line["NEXT"].startswith("retry ") and "500" in line["LAST ERROR"]
    gateway.lab.faults(issuer_status=None)
    (gateway.folder / "client-secret").write_text("a wrong one")
    gateway.secrets.append("a wrong one")
    eventually(lambda: gateway.get("/api/employees/1").status == 503 and listed(gateway)[0]["STATE"] == "quarantined", within=20, what="the quarantine")
    assert listed(gateway)[0]["NEXT"] == "cardea reset api"
    # A purge is no second chance for a refused credential.
    before = gateway.lab.counts()["token"]
    assert gateway.command("tokens", "purge", "api")[0] == 0
    assert gateway.get("/api/employees/1").status == 503
    assert gateway.lab.counts()["token"] == before


def test_a_token_of_earlier_settings_is_told_as_that(gateway):
    """It serves requests that began before a reload; whoever reads the list sees which one is the identity's."""
    gateway.oauth(route={"scopes": ["read"]}).start()
    assert gateway.get("/api/employees/1").status == 200
    gateway.lab.faults(issuer_status=500)
    gateway.config["routes"][0]["scopes"] = ["read", "write"]
    gateway.file.write_text(json.dumps(gateway.config))
    gateway.told(lambda event: event["message"] == "reload done")
    assert gateway.get("/api/employees/1").status == 503
    lines = {line["REALM / SCOPE"]: line for line in listed(gateway)}
    assert lines["read"]["NEXT"] == "of earlier settings, goes soon" and lines["read"]["STATE"] == "fresh"
    assert lines["read write"]["STATE"] == "negative" and lines["read write"]["NEXT"].startswith("retry ")
    tokens = {token["scopes"]: token.get("earlier_settings") for token in gateway.ask("/status").json["tokens"]}
    assert tokens == {"read": True, "read write": None}
    # The identity is what its own tokens are, and the page says which is which.
    assert gateway.ask("/status").json["identities"][0]["state"] == "negative"
    assert not [name for name, _ in gateway.metrics() if name == "cardea_token_expires_timestamp_seconds"]
    assert gateway.ask("/").body.decode().count("of earlier settings, goes soon") == 1


def test_a_purge_gets_a_new_token(hot):
    status, out, errors = hot.command("tokens", "purge", "hr")
    assert (status, out) == (0, "1 token purged of hr\n"), errors
    assert hot.get().status == 200
    assert hot.lab.counts()["access_ok"] == 1, "a new grant"
    assert hot.get().status == 200
    assert hot.lab.counts()["access_ok"] == 1
    # Also from the store: the old one does not come back with the next start.
    hot.command("tokens", "purge", "--all")
    hot.kill()
    hot.start()
    hot.lab.reset(tokens=False)
    assert hot.get().status == 200
    assert hot.lab.counts()["access_ok"] == 1


def test_a_purge_that_was_answered_outlasts_a_crash(hot):
    """Killed in the moment of the answer, which is sooner than a command can end."""
    for number in range(1, 9):
        with Local(hot.folder / "cardea.sock") as link:
            link.send("POST /tokens/purge?all=yes HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert link.answer().status == 200
            hot.kill()
        hot.start()
        hot.lab.reset(tokens=False)
        assert hot.get().status == 200
        assert hot.lab.counts()["access_ok"] == 1, f"the token came back in round {number}"


@pytest.mark.parametrize("whose", ["hr", "--all"])
@pytest.mark.alone
def test_a_purge_outlasts_a_full_disk(gateway, whose):
    """To delete a row takes space, too."""
    with SmallDisk(gateway.folder / "disk") as disk:
        gateway.store = disk.folder / "tokens.db"
        gateway.webgate().start().warm()
        disk.fill()
        status, out, errors = gateway.command("tokens", "purge", whose)
        assert (status, out) == (0, "1 token purged of hr\n"), errors
        gateway.kill()
        disk.free()
        gateway.start()
        gateway.lab.reset(tokens=False)
        assert gateway.get().status == 200
        assert gateway.lab.counts()["access_ok"] == 1, "the token came back"
        gateway.stop()


def test_a_route_is_purged_alone(gateway):
    mirror = Mirror()
    with Scripted(mirror.issue) as issuer, Scripted(mirror.serve) as api:
        routes = [
            gateway.route(name, api.address) | {"use": "one", "match": {"path": f"/{name}/"}, "scopes": [name], "name": name}
            for name in ("anna", "bert")
        ]
        who = oauth(f"http://{issuer.address}", "client_credentials", client_secret=gateway.secret("client", "c" * 20))
        who["oauth2"].pop("client_auth")
        gateway.config = gateway.frame({"identities": {"one": who}, "routes": routes})
        gateway.start()
        for name in ("anna", "bert"):
            assert gateway.get(f"/{name}/x").status == 200
        before = len(issuer.requests)
        status, out, _ = gateway.command("tokens", "purge", "--route", "anna", "--json")
        assert (status, json.loads(out)) == (0, {"identities": ["one"], "tokens": 1})
        assert gateway.get("/bert/x").status == 200 and len(issuer.requests) == before
        assert gateway.get("/anna/x").status == 200 and len(issuer.requests) == before + 1
        # And an identity's purge after a route's still takes everything.
        assert json.loads(gateway.command("tokens", "purge", "one", "--json")[1])["tokens"] == 2
        for name in ("anna", "bert"):
            assert gateway.get(f"/{name}/x").status == 200
        assert len(issuer.requests) == before + 3


@pytest.mark.parametrize("scheme", ["static", "basic"])
def test_a_fixed_credential_is_read_anew(gateway, scheme):
    block = {"static": {"value": gateway.secret("key", "v1-value")}, "basic": {"username": "u", "password": gateway.secret("key", "v1-value")}}
    mirror = Mirror()
    with Scripted(mirror.serve) as api:
        gateway.config = gateway.frame({"identities": {"one": {scheme: block[scheme]}}, "routes": [gateway.route("one", api.address)]})
        gateway.start()
        assert gateway.get("/a/x").status == 200
        assert gateway.command("tokens", "purge", "one")[0] == 0
        assert gateway.get("/a/x").status == 200
        assert len(mirror.seen["a"]) == 1


def test_users_are_counted_and_purged(gateway):
    site = Named()
    with named(gateway, site, **generous()):
        for user in ("anna-user", "bert-user"):
            assert ask(gateway, user).status == 200
        [line] = listed(gateway)
        assert line["STATE"] == "2 users"
        for out in (gateway.command("tokens")[1], gateway.command("tokens", "--json")[1], gateway.ask("/").body.decode()):
            assert "anna" not in out and "bert" not in out and site.token("anna-user") not in out
        assert gateway.command("tokens", "purge", "only")[0] == 0
        for user in ("anna-user", "bert-user"):
            assert ask(gateway, user).status == 200
        assert len(site.asked) == 4
        # Rows of users that memory has not seen since the start go, too.
        gateway.stop()
        gateway.start()
        assert gateway.command("tokens", "purge", "--route", "only")[0] == 0
        assert ask(gateway, "anna-user").status == 200
        assert len(site.asked) == 5


def test_what_is_not_there(gateway):
    gateway.oauth()
    gateway.file.write_text(json.dumps(gateway.config))
    status, _, errors = gateway.command("tokens")
    assert status == 69 and "no gateway answers at" in errors
    status, _, errors = gateway.command("tokens", "purge", "nobody")
    assert status == 64 and "no identity 'nobody'; defined: api" in errors
    status, _, errors = gateway.command("tokens", "purge")
    assert status == 64 and "say what" in errors
    status, _, errors = gateway.command("tokens", "purge", "--all", "api")
    assert status == 64


# --- From the page ----------------------------------------------------------------------------------------------------


@pytest.fixture
def watched(gateway):
    gateway.oauth(changes={"admin": {"token": gateway.secret("admin", "the-admins-token")}})
    gateway.start()
    assert gateway.get("/api/employees/1").status == 200
    return gateway


def page(gateway, method, path, **headers):
    connection = http.client.HTTPConnection(gateway.admin, timeout=10)
    connection.request(method, path, headers=headers)
    got = connection.getresponse()
    body = got.read().decode()
    connection.close()
    return got, body


def signed_in(word="the-admins-token"):
    return {"Authorization": "Basic " + base64.b64encode(f"me:{word}".encode()).decode()}


def test_buttons_only_for_who_has_signed_in(watched):
    _, body = page(watched, "GET", "/")
    assert 'method="post"' not in body and 'href="/sign-in"' in body
    for word in ("wrong", "", "the-admins-token "):
        _, body = page(watched, "GET", "/", **signed_in(word))
        assert 'method="post"' not in body
    got, _ = page(watched, "GET", "/sign-in")
    assert got.status == 401 and got.headers["WWW-Authenticate"].startswith("Basic ")
    for path in ("/sign-in", "/"):
        got, body = page(watched, "GET", path, **signed_in())
        assert got.status == 200 and 'action="/tokens/purge?identity=api"' in body and 'action="/reload"' in body
    assert "the-admins-token" not in body
    policy = got.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "form-action 'self'" in policy and "unsafe" not in policy and "<script" not in body


def test_a_button_does_what_it_says(watched):
    own = {"Origin": f"http://{watched.admin}"}
    watched.lab.reset(tokens=False)
    got, _ = page(watched, "POST", "/tokens/purge?identity=api", **own, **signed_in())
    assert (got.status, got.headers["Location"]) == (303, "/?done=purge")
    assert "Purged" in page(watched, "GET", "/?done=purge", **signed_in())[1]
    # Back to what was looked for, and nowhere else.
    got, _ = page(watched, "POST", "/tokens/purge?identity=api&q=ap%0D%0Ai&state=good", **own, **signed_in())
    assert (got.status, got.headers["Location"]) == (303, "/?done=purge&q=ap%0D%0Ai&state=good")
    assert watched.get("/api/employees/1").status == 200 and watched.lab.counts()["token_ok"] == 1
    got, _ = page(watched, "POST", "/reload", **{"Sec-Fetch-Site": "same-origin"}, **signed_in())
    assert (got.status, got.headers["Location"]) == (303, "/?done=reload")
    eventually(lambda: any(event["message"] == "reload done" for event in watched.events()), what="the reload")


def test_another_site_cannot_press_a_button(watched):
    """A browser that has signed in adds the token to whatever any page asks of this address."""
    watched.lab.reset(tokens=False)
    for headers in (
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://{watched.admin}.evil.example"},
        {"Origin": f"http://{watched.listen}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": f"http://evil.example", "Host": "evil.example"},
    ):
        for path in ("/tokens/purge?all=yes", "/reload", "/reset?identity=api"):
            got, _ = page(watched, "POST", path, **headers, **signed_in())
            assert got.status in (403, 421), (path, headers, got.status)
    for headers in ({}, signed_in("wrong"), {"Authorization": "Basic !!"}, {"Authorization": "Basic"}):
        assert page(watched, "POST", "/tokens/purge?all=yes", Origin=f"http://{watched.admin}", **headers)[0].status == 401
    assert watched.get("/api/employees/1").status == 200 and watched.lab.counts()["token_ok"] == 0
    # Scripts bring the token as Bearer, from anywhere.
    got, body = page(watched, "POST", "/tokens/purge?all=yes", Authorization="Bearer the-admins-token")
    assert got.status == 200 and json.loads(body)["tokens"] == 1
