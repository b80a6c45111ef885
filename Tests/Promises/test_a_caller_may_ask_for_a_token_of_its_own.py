"""Promise: a caller that insists on its own token request gets a placeholder (`token_stub`): what it shows for it is read, bounded, and
kept nowhere."""

import contextlib
import json
import ssl
import subprocess
import time

import httpx
import pytest
import requests
from authlib.integrations.requests_client import OAuth2Session

import http2_peers
from harness import Raw, eventually, executable, free_port
from peers import Authority
from stubs import FORM, MARK, PASSWORD, SECRET, ask, assert_real, placeholder, start


# --- What the caller gets ------------------------------------------------------------------------------------------------


def test_a_client_on_authlib_works_unchanged(gateway, provider, monkeypatch):
    """With a real authorization server behind the gateway, which sees the gateway's client and never the caller's."""
    monkeypatch.setenv("AUTHLIB_INSECURE_TRANSPORT", "1")  # loopback
    provider.client("c", secret="client-c-1", auth="client_secret_post", grants=["client_credentials"])
    block = {"token_url": provider.issuer + "/token", "client_id": "c", "client_auth": "post"}
    block["client_secret"] = gateway.secret("client-secret", "client-c-1")
    identities = {"api": {"oauth2": block}}
    start(gateway, provider.api, changes={"identities": identities}, scopes=["read"])
    site = f"http://{gateway.listen}"
    for auth in ["client_secret_basic", "client_secret_post"]:
        with OAuth2Session("half-legacy", SECRET, token_endpoint_auth_method=auth, scope="read") as session:
            token = session.fetch_token(site + "/oauth/token", grant_type="client_credentials")
            assert token["access_token"].startswith(MARK) and token["expires_in"] == 3600
            answer = session.get(site + "/anything")
            assert (answer.status_code, answer.json()["scope"]) == (200, "read"), gateway.text()
    with OAuth2Session("half-legacy", SECRET) as session:
        token = session.fetch_token(site + "/oauth/token", username="anna", password=PASSWORD)
        assert session.get(site + "/anything").status_code == 200 and "refresh_token" not in token
        renewed = session.refresh_token(site + "/oauth/token", refresh_token="of-long-ago")
        assert renewed["access_token"].startswith(MARK)
    steps = provider.steps("token")
    assert len(steps) == 1 and "half-legacy" not in json.dumps(provider.post("log"))


def test_curl_too_and_its_answer_is_kept_by_no_cache(gateway, echo):
    start(gateway, echo.origin, stub={"lifetime": "90s"})
    curl = executable("CARDEA_CURL", "curl", "apt-get install curl")
    words = ["-su", f"half-legacy:{SECRET}", "-d", "grant_type=client_credentials&scope=a+b", "-D", "-", "--max-time", "10"]
    done = subprocess.run([curl, *words, f"http://{gateway.listen}/oauth/token"], capture_output=True, check=True)
    head, _, body = done.stdout.decode().partition("\r\n\r\n")
    fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n")[1:])}
    assert (fields["cache-control"], fields["pragma"], fields["content-type"]) == (
        "no-store",
        "no-cache",
        "application/json",
    )
    token = json.loads(body)
    assert set(token) == {"access_token", "token_type", "expires_in"}
    assert (token["token_type"], token["expires_in"]) == ("Bearer", 90)
    assert not echo.seen


@pytest.mark.parametrize(
    "grant",
    [
        "client_credentials",
        "password",
        "refresh_token",
        "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "urn:ietf:params:oauth:grant-type:saml2-bearer",
        "urn:ietf:params:oauth:grant-type:token-exchange",
    ],
)
def test_grants_that_need_nobody(gateway, echo, grant):
    start(gateway, echo.origin)
    answer = requests.post(f"http://{gateway.listen}/oauth/token", {"client_secret": SECRET, "grant_type": grant})
    assert answer.status_code == 200 and answer.json()["access_token"].startswith(MARK), answer.text
    # RFC 8693 §2.2.1 has one member more.
    assert ("issued_token_type" in answer.json()) == grant.endswith("token-exchange")


def error(answer, code, status=400):
    assert (answer.status, answer.json["error"]) == (status, code), answer
    assert answer.field("Cache-Control") == "no-store" and answer.field("Content-Type") == "application/json"
    assert "access_token" not in answer.json
    return answer


@pytest.mark.parametrize(
    "form",
    [
        b"grant_type=authorization_code&code=x",
        b"grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code",
        b"grant_type=implicit",
        b"grant_type=client_credentials%00",
        b"grant_type=" + b"x" * 5000,
    ],
)
def test_any_other_grant_is_unsupported(gateway, echo, form):
    start(gateway, echo.origin)
    error(ask(gateway, form), "unsupported_grant_type")


def test_the_operator_may_answer_fewer(gateway, echo):
    start(gateway, echo.origin, stub={"grants": ["password"]})
    error(ask(gateway), "unsupported_grant_type")
    assert ask(gateway, b"grant_type=password&username=a&password=b").status == 200


@pytest.mark.parametrize(
    "form",
    [
        b"",
        b"scope=read",
        b"grant_type=",
        b"grant_type",
        b"Grant_Type=password",
        b"xgrant_type=password&grant_typex=password",
        b"grant_type=password&grant_type=client_credentials",
        b"grant_type=password&grant_type=password",
        b"grant_type=pass%word",
        b"grant_type=password%4",
        b"\x00\xff\xfe",
    ],
)
def test_a_form_without_one_grant_is_invalid(gateway, echo, form):
    start(gateway, echo.origin)
    error(ask(gateway, form), "invalid_request")


@pytest.mark.parametrize(
    "form",
    [
        b"grant_type=client_credentials",
        b"grant%5ftype=client%5Fcredentials",
        b"a=b&grant_type=client_credentials&grant_type=&c",
        b"&&grant_type=client_credentials&&",
        b"password=%zz%&grant_type=client_credentials",
        b"x=" + b"y" * 60000 + b"&grant_type=client_credentials",
    ],
)
def test_forms_as_callers_write_them(gateway, echo, form):
    start(gateway, echo.origin)
    assert ask(gateway, form).status == 200
    chunked = gateway.call("POST", "/oauth/token", iter([form[i : i + 7000] for i in range(0, len(form), 7000)]), FORM)
    assert chunked.status == 200, chunked
    with Raw(gateway.listen) as raw:
        head = f"POST /oauth/token HTTP/1.1\r\nHost: {gateway.listen}\r\nContent-Type: {FORM['Content-Type']}\r\n"
        raw.send(head + f"Content-Length: {len(form)}\r\n\r\n")
        for octet in form[:200]:
            raw.send(bytes([octet]))
        raw.send(form[200:])
        assert raw.answer().status == 200


@pytest.mark.parametrize("type", [None, "application/json", "text/plain", "application/x-www-form-urlencodedx", ""])
def test_another_content_type_is_invalid(gateway, echo, type):
    start(gateway, echo.origin)
    headers = {} if type is None else {"Content-Type": type}
    error(ask(gateway, b"grant_type=client_credentials", headers), "invalid_request")
    typed = {"Content-Type": "Application/X-WWW-Form-Urlencoded ; charset=UTF-8"}
    assert ask(gateway, headers=typed).status == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "TRACE", "BREW"])
def test_other_methods(gateway, echo, method):
    start(gateway, echo.origin)
    answer = ask(gateway, None, {}, method)
    assert (answer.status, answer.field("Allow")) == (405, "POST, OPTIONS"), answer
    assert (answer.body == b"") == (method == "HEAD")


def test_options(gateway, echo):
    start(gateway, echo.origin)
    answer = ask(gateway, None, {}, "OPTIONS")
    assert (answer.status, answer.field("Allow"), answer.body) == (200, "POST, OPTIONS", b""), answer


# --- What it is read with ------------------------------------------------------------------------------------------------


def test_a_large_form_is_refused(gateway, echo):
    start(gateway, echo.origin)
    large = b"grant_type=client_credentials&x=" + b"y" * (64 << 10)
    for body in [large, iter([large[i : i + 4096] for i in range(0, len(large), 4096)])]:
        try:
            answer = gateway.call("POST", "/oauth/token", body, FORM)
        except (BrokenPipeError, ConnectionResetError):
            continue  # it was told before it had sent everything
        assert (answer.status, answer.problem["type"]) == (413, "urn:cardea:problems/big-body"), answer
    with Raw(gateway.listen) as raw:
        raw.send(
            f"POST /oauth/token HTTP/1.1\r\nHost: {gateway.listen}\r\nContent-Type: {FORM['Content-Type']}\r\n"
            f"Expect: 100-continue\r\nContent-Length: {1 << 40}\r\n\r\n"
        )
        status, _, _ = raw.head()
        assert status == 413


def test_a_slow_or_endless_form_is_given_up(gateway, echo):
    start(gateway, echo.origin, changes={"limits": {"head_timeout": "1s"}})
    head = f"POST /oauth/token HTTP/1.1\r\nHost: {gateway.listen}\r\nContent-Type: {FORM['Content-Type']}\r\n"
    with Raw(gateway.listen) as silent, Raw(gateway.listen) as dripping:
        silent.send(head + "Content-Length: 30\r\n\r\ngrant_type=")
        dripping.send(head + "Transfer-Encoding: chunked\r\n\r\n")
        end = time.monotonic() + 15
        dripping.socket.settimeout(0.05)
        got = b""
        while not got and time.monotonic() < end:
            dripping.send(b"1\r\na\r\n")
            try:
                got = dripping.socket.recv(65536)
            except TimeoutError:
                pass
        assert got.startswith(b"HTTP/1.1 408 "), got
        assert silent.answer().status == 408


def test_a_form_that_ends_early(gateway, echo):
    start(gateway, echo.origin)
    with Raw(gateway.listen) as raw:
        raw.send(
            f"POST /oauth/token HTTP/1.1\r\nHost: {gateway.listen}\r\nContent-Type: {FORM['Content-Type']}\r\n"
            "Content-Length: 300\r\n\r\ngrant_type=client_credentials"
        )
        raw.half_close()
        assert raw.answer().status == 400
    with Raw(gateway.listen) as raw:
        raw.send(
            f"POST /oauth/token HTTP/1.1\r\nHost: {gateway.listen}\r\nContent-Type: {FORM['Content-Type']}\r\n"
            "Transfer-Encoding: chunked\r\n\r\nzz\r\n"
        )
        assert raw.answer().status == 400


def test_the_connection_goes_on(gateway, echo):
    """Pipelined and with 100 Continue; what stands behind the form is the next request."""
    start(gateway, echo.origin)
    body = "grant_type=client_credentials&client_secret=" + SECRET
    head = f"POST /oauth/token HTTP/1.1\r\nHost: {gateway.listen}\r\nContent-Type: {FORM['Content-Type']}\r\n"
    fixed = head + f"Content-Length: {len(body)}\r\n\r\n{body}"
    chunked = head + f"Transfer-Encoding: chunked\r\n\r\n{len(body):x};x=y\r\n{body}\r\n0\r\nX-T: 1\r\n\r\n"
    get = f"GET /after HTTP/1.1\r\nHost: {gateway.listen}\r\n\r\n"
    with Raw(gateway.listen) as raw:
        raw.send(fixed + get + chunked + get + fixed)
        assert [raw.answer().status for _ in range(5)] == [200] * 5
        raw.send(head + f"Expect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n")
        assert raw.head()[0] == 100
        raw.send(body)
        assert raw.answer().status == 200
        # Refused before it is sent: no 100, and the connection ends, since the body may come or not.
        raw.send(
            f"POST /oauth/token HTTP/1.1\r\nHost: {gateway.listen}\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"
        )
        status, fields, _ = raw.head()
        assert status == 400 and ("Connection", "close") in fields
    assert [path for path, _ in echo.seen] == ["/after", "/after"]


def test_http_1_0(gateway, echo):
    start(gateway, echo.origin)
    with Raw(gateway.listen) as raw:
        raw.send(
            f"POST /oauth/token HTTP/1.0\r\nContent-Type: {FORM['Content-Type']}\r\nContent-Length: 29\r\n\r\n"
            "grant_type=client_credentials"
        )
        answer = raw.answer()
        assert answer.status == 200 and answer.json["access_token"].startswith(MARK)
        assert raw.is_closed()


def test_callers_with_http2(gateway, echo, tmp_path):
    """By ALPN with httpx, and in clear text with h2: bodies without a length, in pieces, refused before their end."""
    authority = Authority(tmp_path / "pki")
    certificate, key = authority.issue("edge")
    tls = f"127.0.0.1:{free_port()}"
    listeners = {
        "plain": {"address": gateway.listen},
        "edge": {"address": tls, "tls": [{"certificate": str(certificate), "key": f"file:{key}"}]},
    }
    both = {"listen": ["plain", "edge"]}
    start(gateway, echo.origin, changes={"listeners": listeners}, stub_route=both, **both)
    with httpx.Client(http2=True, verify=ssl.create_default_context(cafile=authority.file)) as client:
        site = f"https://localhost:{tls.rpartition(':')[2]}"
        answer = client.post(site + "/oauth/token", data={"grant_type": "password", "password": PASSWORD})
        assert answer.http_version == "HTTP/2" and answer.json()["access_token"].startswith(MARK), answer.text
        mine = {"Authorization": "Bearer " + answer.json()["access_token"]}
        assert client.get(site + "/data", headers=mine).status_code == 200
        assert client.post(site + "/oauth/token", json={}).json()["error"] == "invalid_request"
    assert_real(echo)
    fields = [("content-type", FORM["Content-Type"])]
    with http2_peers.Caller(gateway.listen) as caller:
        stream = caller.request("POST", "/oauth/token", fields, ended=False)
        for piece in [b"grant_ty", b"pe=client_", b"credentials&a=b"]:
            stream.write(piece)
        stream.end()
        assert stream.head() == 200 and json.loads(stream.body())["token_type"] == "Bearer"
        endless = caller.request("POST", "/oauth/token", fields, ended=False)
        with contextlib.suppress(http2_peers.Reset):
            while not endless.fields:
                endless.write(b"x" * 8192)
        assert endless.head() == 413
        assert caller.request("GET", "/oauth/token").head() == 405


# --- What is told of it --------------------------------------------------------------------------------------------------


def test_the_form_is_told_nowhere(gateway, echo):
    """The harness looks for every secret in all that the gateway said; here also in its store and its memory's own words."""
    start(gateway, echo.origin, changes={"log": {"level": "debug", "format": "json", "access": "all"}})
    form = {"grant_type": "password", "username": "u", "password": PASSWORD, "client_secret": SECRET}
    site = f"http://{gateway.listen}/oauth/token?client_secret={SECRET}"
    assert requests.post(site, form).status_code == 200
    assert requests.post(site, {**form, "grant_type": "no"}).status_code == 400
    lines = eventually(
        lambda: [line for line in gateway.access() if line.get("route") == "stub"][1:] and gateway.access(), what="two lines"
    )
    assert {(line["path"], line["status"]) for line in lines} == {("/oauth/token", 200), ("/oauth/token", 400)}
    for text in [gateway.text(), gateway.ask("/metrics").body.decode(), gateway.ask("/status").body.decode()]:
        assert SECRET not in text and "half-legacy" not in text
    metrics = gateway.metrics()
    assert sum(value for (name, labels), value in metrics.items() if ("route", "stub") in labels and "requests" in name)
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in gateway.folder.glob("tokens.db*"))
    status, out, _ = gateway.command("explain", "POST", f"http://{gateway.listen}/oauth/token")
    assert status == 0 and "answers token requests itself" in out, out


def test_it_comes_and_goes_with_a_reload(gateway, echo):
    start(gateway, echo.origin)
    token = placeholder(gateway)
    stub = gateway.config["routes"].pop(0)
    gateway.file.write_text(json.dumps(gateway.config))
    eventually(lambda: ask(gateway).status == 501 or echo.seen, what="the API's own answer")
    gateway.config["routes"].insert(0, stub)
    gateway.file.write_text(json.dumps(gateway.config))
    eventually(lambda: ask(gateway).status == 200, what="the placeholder")
    echo.seen.clear()
    assert gateway.call("GET", "/p", None, {"Authorization": f"Bearer {token}"}).status == 200
    assert_real(echo)


def test_mistakes_are_named(gateway):
    """All at once, each with its line."""
    gateway.file.write_text(
        """identities: {a: {static: {value: env:V}}}
defaults: {route: {timeouts: {idle: 30s}, callers: local}}
routes:
  - listen: 127.0.0.1:1
    match: {path: /token}
    token_stub: {grants: [authorization_code], lifetime: soon}
    to: https://api.example.com
    use: a
    scopes: [read]
  - {listen: "127.0.0.1:2", token_stub: {}}
"""
    )
    status, out, _ = gateway.command("check", str(gateway.file), config=False)
    assert status == 78, out
    for words in [
        "has 'to' beside 'token_stub'",
        "has 'use' beside 'token_stub'",
        "'scopes' of route '127.0.0.1:1/token' has no meaning beside 'token_stub'",
    ]:
        assert words in out, out
    assert ":6:" in out and ":9:" in out and "timeouts" not in out and "127.0.0.1:2" not in out, out
