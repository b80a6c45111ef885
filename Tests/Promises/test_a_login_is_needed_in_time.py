"""Promise: what a login brought is kept through rotation, restarts and changed configurations, and its end is told ahead. Against
a server on Authlib, whose refresh tokens are replaced at each use."""

import http.client
import json
import socket
import time
import urllib.parse

import pytest
import requests

from harness import call, eventually, send
from persons import Lines, Terminal
from test_the_store_is_cared_for_while_it_serves import spellings

SECRET = "client-x-1"


@pytest.fixture
def configured(gateway, provider):
    def make(grant="device_code", token=None, **more):
        provider.client(
            "tv",
            secret=SECRET,
            grants=["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
            redirect_uris=["http://127.0.0.1/callback"],
        )
        block = {
            "issuer": provider.issuer,
            "grant": grant,
            "client_id": "tv",
            "client_secret": gateway.secret("client-secret", SECRET),
            "basic_encoding": provider.basic_encoding,
            **more,
        }
        gateway.provider(provider, tv={"oauth2": block, **({"token": token} if token else {})})
        gateway.file.write_text(json.dumps(gateway.config))
        return gateway

    return make


def log_in(gateway, provider, verdict="allow", status=0):
    lines = Lines(gateway, "tv")
    code = lines.next()["prompt"]["code"]
    provider.post("device", {"user_code": code, "verdict": verdict})
    rest, said = lines.ends(status)
    return json.loads(rest.splitlines()[-1])


def get(gateway):
    return call(gateway.listens["tv"])


def identity(gateway):
    return call(gateway.admin, path="/status").json["identities"][0]


def reloads(gateway):
    return gateway.ask("/readyz").json["configuration"]["edition"]


def metric(gateway, name):
    return {line for line in call(gateway.admin, path="/metrics").body.decode().splitlines() if line.startswith(name)}


def needs_login(gateway):
    answer = get(gateway)
    return answer.status == 503 and answer.problem["type"] == "urn:cardea:problems/login-required"


def renew(gateway, provider):
    answer = get(gateway)
    assert answer.status == 200, f"{answer}\n{gateway.text()}"
    provider.post("revoke_access", {"jti": [answer.json["jti"]]})
    return answer.json


def test_refresh_tokens_roll_and_outlive_a_kill(configured, provider):
    gateway = configured().start()
    log_in(gateway, provider)
    for _ in range(3):
        assert renew(gateway, provider)["sub"] == "anna"
    gateway.kill()
    gateway.start()
    for _ in range(3):
        renew(gateway, provider)
    assert provider.steps("refresh_reused") == []
    assert {entry["grant"] for entry in provider.steps("token")[1:]} == {"refresh_token"}


def test_a_stolen_file_shows_nothing_of_a_login(configured, provider):
    """With the log of the file, and after it has been compacted."""
    gateway = configured().start()
    log_in(gateway, provider)
    renew(gateway, provider)
    identifier = renew(gateway, provider)["jti"]
    refresh_tokens = provider.post("refresh_tokens")
    assert refresh_tokens
    gateway.kill()
    for step in (lambda: None, lambda: gateway.command("store", "compact")):
        step()
        held = b"".join(path.read_bytes() for path in gateway.folder.glob("tokens.db*"))
        assert len(held) > 4096
        for word in (*refresh_tokens, identifier, SECRET, provider.issuer):
            for spelling in spellings(word):
                assert len(spelling) < 6 or spelling not in held, word


def test_a_dead_refresh_token_asks_for_the_person(configured, provider):
    gateway = configured().start()
    log_in(gateway, provider)
    renew(gateway, provider)
    provider.post("forget_refresh")
    assert needs_login(gateway)
    assert identity(gateway)["advice"] == "cardea login tv"
    assert call(gateway.admin, path="/readyz").json["identities"] == {"tv": "login_needed"}
    assert call(gateway.admin, path="/readyz").status == 200
    assert 'cardea_identity_state{identity="tv",state="login_needed"} 1' in metric(gateway, "cardea_identity_state")
    page = call(gateway.admin, path="/").body.decode()
    assert "needs a person to log in" in page and "cardea login tv" in page
    _, explained, _ = gateway.command("explain", "GET", f"http://{gateway.listens['tv']}/")
    assert "login_needed" in explained and "cardea login tv" in explained
    refused = len(provider.steps("refused"))
    for _ in range(5):
        assert needs_login(gateway)
    assert len(provider.steps("refused")) == refused
    log_in(gateway, provider)
    renew(gateway, provider)


def test_its_end_is_told_ahead(configured, provider):
    provider.post("people", {"answer": {"refresh_expires_in": 20}})
    gateway = configured().start()
    log_in(gateway, provider)
    assert get(gateway).status == 200
    assert identity(gateway)["state"] == "fresh"
    left = identity(gateway)["login_expires_in_seconds"]
    assert 10 < left <= 20
    assert metric(gateway, 'cardea_login_expires_seconds{identity="tv"}')
    # Known across a restart as well.
    gateway.kill()
    gateway.start()
    assert identity(gateway)["login_expires_in_seconds"] <= left
    eventually(lambda: identity(gateway)["state"] == "login_due", within=25, every=0.2, what="a warning")
    assert get(gateway).status == 200
    assert "soon needs a person" in call(gateway.admin, path="/").body.decode()
    eventually(lambda: identity(gateway)["state"] == "login_needed", within=10, every=0.2, what="the end")

    def told():
        return [event["message"] for event in gateway.events() if event.get("message", "").startswith("login needed")]

    # Logs are written by a thread of their own.
    eventually(lambda: told()[-2:] == ["login needed soon", "login needed"], what="the log saying so")


def test_a_person_may_say_no(configured, provider):
    gateway = configured().start()
    told = log_in(gateway, provider, "deny", 69)
    assert told["state"] == "failed" and "access_denied" in told["detail"]
    assert needs_login(gateway)
    log_in(gateway, provider)
    counted = metric(gateway, "cardea_logins_total")
    assert {line for line in counted if not line.endswith(" 0")} == {
        'cardea_logins_total{identity="tv",result="policy_denied"} 1',
        'cardea_logins_total{identity="tv",result="done"} 1',
    }


def test_a_code_runs_out(configured, provider):
    provider.post("people", {"expires_in": 3})
    gateway = configured().start()
    lines = Lines(gateway, "tv")
    lines.next()
    rest, _ = lines.ends(69)
    assert json.loads(rest)["state"] == "expired"
    assert 'cardea_logins_total{identity="tv",result="expired"} 1' in metric(gateway, "cardea_logins_total")


def test_an_issuer_that_wants_fewer_questions_gets_fewer(configured, provider):
    provider.post("people", {"slow_down": 1})
    gateway = configured().start()
    lines = Lines(gateway, "tv")
    code = lines.next()["prompt"]["code"]
    eventually(lambda: provider.steps("poll"), what="the first question")
    began = time.monotonic()
    provider.post("device", {"user_code": code, "verdict": "allow"})
    lines.ends()
    # One second, and five more.
    assert time.monotonic() - began > 5.5
    assert len(provider.steps("poll")) == 1


def test_a_login_says_for_what_it_waits(configured, provider):
    gateway = configured().start()
    terminal = Terminal(gateway, "tv")
    code = terminal.until(r"([A-Z0-9]{4}-?[A-Z0-9]{4})\s")[1]
    terminal.until(r"waiting for the code to be entered, \d+ m \d+ s left")
    provider.post("faults", {"token": {"status": 503}})
    terminal.until(r"the issuer is busy; asking again, \d+ m \d+ s left")
    provider.post("faults", {"token": None})
    provider.post("device", {"user_code": code, "verdict": "allow"})
    terminal.ends()


def test_a_login_in_a_browser_says_for_what_it_waits(configured, provider):
    gateway = configured(grant="authorization_code").start()
    terminal = Terminal(gateway, "tv", "--no-browser")
    terminal.until(r"waiting for the browser to come back, \d+ m \d+ s left")
    terminal.child.sendintr()
    terminal.child.expect("cancelled")


def test_an_issuer_that_fails_is_asked_again(configured, provider):
    gateway = configured().start()
    lines = Lines(gateway, "tv")
    code = lines.next()["prompt"]["code"]
    provider.post("faults", {"token": {"status": 503}})
    eventually(lambda: provider.steps("fault"), what="a question that failed")
    provider.post("device", {"user_code": code, "verdict": "allow"})
    provider.post("faults", {"token": None})
    lines.ends()
    assert get(gateway).status == 200


def test_a_change_and_its_return_need_no_second_login(configured, provider):
    gateway = configured().start()
    log_in(gateway, provider)
    renew(gateway, provider)
    before = gateway.file.read_text()
    changed = json.loads(before)
    changed["identities"]["tv"]["oauth2"]["extra"] = {"flavour": "other"}
    gateway.file.write_text(json.dumps(changed))
    eventually(lambda: identity(gateway)["state"] == "login_needed", what="the change")
    assert needs_login(gateway)
    gateway.file.write_text(before)
    eventually(lambda: get(gateway).status == 200, what="the return")
    for _ in range(3):
        renew(gateway, provider)
    assert len(provider.steps("authorize")) + len(provider.steps("refresh_reused")) == 0
    assert provider.steps("revoked") == []


def test_a_logout_finds_what_an_earlier_configuration_left(configured, provider):
    gateway = configured().start()
    log_in(gateway, provider)
    renew(gateway, provider)
    before = gateway.file.read_text()
    changed = json.loads(before)
    changed["identities"]["tv"]["oauth2"]["extra"] = {"flavour": "other"}
    gateway.file.write_text(json.dumps(changed))
    eventually(lambda: identity(gateway)["state"] == "login_needed", what="the change")
    rest, _ = Lines(gateway, "tv", command="logout").ends()
    assert "revoked at the issuer" in json.loads(rest)["detail"]
    assert len(provider.steps("revoked")) == 1
    edition = reloads(gateway)
    gateway.file.write_text(before)
    eventually(lambda: reloads(gateway) > edition, what="the return")
    eventually(lambda: needs_login(gateway), what="nothing to come back")


def test_a_logout_without_a_gateway(configured, provider):
    gateway = configured().start()
    log_in(gateway, provider)
    renew(gateway, provider)
    gateway.stop()
    rest, _ = Lines(gateway, "tv", command="logout").ends()
    assert json.loads(rest)["state"] == "done"
    assert len(provider.steps("revoked")) == 1
    gateway.start()
    assert needs_login(gateway)


def test_a_login_without_a_refresh_token_lasts_as_long_as_its_access_token(configured, provider):
    provider.post("people", {"refresh": False})
    gateway = configured().start()
    assert "no refresh token" in log_in(gateway, provider)["detail"]
    told = renew(gateway, provider)
    assert told["sub"] == "anna"
    # It was refused: nothing is left to send.
    assert needs_login(gateway) or get(gateway).status == 502
    assert needs_login(gateway)
    log_in(gateway, provider)
    assert get(gateway).status == 200


def test_a_check_asks_nobody(configured, provider):
    gateway = configured()
    status, said, _ = gateway.command("check", "--live", str(gateway.file), config=False)
    assert status == 0, said
    assert "no token was asked for" in said and "nobody is logged in" in said
    assert provider.steps("token") == [] and provider.steps("poll") == []


# --- The browser's way back ------------------------------------------------------------------------------------------


def at_socket(gateway, method, path):
    connection = http.client.HTTPConnection("localhost", timeout=10)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(gateway.folder / "cardea.sock"))
    try:
        return send(connection, method, path)
    finally:
        connection.close()


def door(prompt):
    asked = dict(urllib.parse.parse_qsl(prompt["url"].partition("?")[2]))
    return asked["redirect_uri"], asked["state"]


def test_only_the_answer_ends_the_wait(configured, provider):
    gateway = configured("authorization_code").start()
    # Authlib compares redirect addresses as they are; RFC 8252 §7.3 has servers leave the port out.
    lines = Lines(gateway, "tv", "--no-browser")
    prompt = lines.next()["prompt"]
    uri, state = door(prompt)
    provider.client("tv", secret=SECRET, grants=["authorization_code", "refresh_token"], redirect_uris=[uri])
    host = uri.split("/")[2]
    for query, status in [
        ("", 400),
        ("?code=x", 400),
        ("?code=x&state=guessed", 400),
        (f"?code=x&state={state}x", 400),
        ("?error=access_denied", 400),
        ("?error=access_denied&state=guessed", 400),
        (f"?code=x%0d%0aSet-Cookie:a&state={state}", 400),
        (f"?code=%00&state={state}", 400),
        (f"?code=x&state={state}&state={state}", 400),
        (f"?code=%C3%A9&state={state}", 400),
        (f"?code={'x' * 8300}&state={state}", 400),
        (f"?code={'x' * 100_000}&state={state}", 414),
    ]:
        answer = call(host, "GET", "/callback" + query)
        assert answer.status == status, (query[:60], answer)
        assert answer.field("Content-Type").startswith("text/plain")
        assert b"Set-Cookie" not in answer.body
    assert call(host, "GET", "/favicon.ico").status == 404
    assert call(host, "POST", f"/callback?code=x&state={state}").status == 405
    assert call(host, "GET", f"/callback?code=x&state={state}", None, {"Host": "evil.example"}).status == 421
    back = requests.get(prompt["url"], allow_redirects=False, timeout=10).headers["Location"]
    first = requests.get(back, timeout=10)
    assert first.status_code == 200
    lines.ends()
    assert get(gateway).status == 200
    with pytest.raises(requests.ConnectionError):
        requests.get(back, timeout=2)


@pytest.mark.parametrize("how", ["deny", "other issuer", "no issuer"])
def test_an_answer_may_end_it_badly(configured, provider, how):
    provider.post("people", {"deny": {"deny": True}, "other issuer": {"named": "https://evil.example"}, "no issuer": {"iss": False}}[how])
    gateway = configured("authorization_code").start()
    lines = Lines(gateway, "tv", "--no-browser")
    prompt = lines.next()["prompt"]
    uri, _ = door(prompt)
    provider.client("tv", secret=SECRET, grants=["authorization_code", "refresh_token"], redirect_uris=[uri])
    back = requests.get(prompt["url"], allow_redirects=False, timeout=10).headers["Location"]
    page = requests.get(back, timeout=10)
    assert page.status_code == 200 and "failed" in page.text
    rest, _ = lines.ends(69)
    told = json.loads(rest)
    assert told["state"] == "failed"
    assert ("access_denied" if how == "deny" else "iss") in told["detail"]
    assert provider.steps("token") == []
    assert needs_login(gateway)


def test_a_second_answer_finds_nobody(configured, provider):
    """While the code is being exchanged, the wait is over, and the same address once more changes nothing."""
    gateway = configured("authorization_code").start()
    lines = Lines(gateway, "tv", "--no-browser")
    prompt = lines.next()["prompt"]
    uri, _ = door(prompt)
    provider.client("tv", secret=SECRET, grants=["authorization_code", "refresh_token"], redirect_uris=[uri])
    back = requests.get(prompt["url"], allow_redirects=False, timeout=10).headers["Location"]
    target = urllib.parse.quote(back.partition("?")[2], safe="")
    said = [at_socket(gateway, "POST", f"/login/redirect?flow={lines.flow}&answer={target}").json for _ in range(2)]
    assert [reply["is_answer"] for reply in said] == [True, False]
    lines.ends()
    assert len(provider.steps("token")) == 1


def test_what_cannot_be_done_is_said(configured, provider):
    gateway = configured()
    assert Lines(gateway, "nobody").ends(64)[1].startswith("cardea: no identity 'nobody'; defined: tv")
    assert "nothing is to be pasted" in Lines(gateway, "tv", "--paste").ends(64)[1]
    plain = json.loads(gateway.file.read_text())
    plain["identities"]["tv"]["oauth2"]["grant"] = "client_credentials"
    gateway.file.write_text(json.dumps(plain))
    assert "needs no person" in Lines(gateway, "tv").ends(64)[1]
    plain["identities"]["tv"]["oauth2"]["grant"] = "device_code"
    del plain["store"]
    gateway.file.write_text(json.dumps(plain))
    assert "would be forgotten at once" in Lines(gateway, "tv").ends(78)[1]
