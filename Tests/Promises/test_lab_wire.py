"""The lab itself: a strict reader, an honest API, faults that are what they say."""

import base64
import socket
import urllib.parse

import pytest

from harness import PATTERN, Raw, call, sha256, together

OPEN = "/hr/rest/open"
HEAD = "GET /hr/rest/open/employees/1 HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    "request_",
    [
        HEAD + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        HEAD + "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        HEAD + "Content-Length: +1\r\n\r\nx",
        HEAD + "Transfer-Encoding: gzip, chunked\r\n\r\n",
        HEAD + "Transfer-Encoding: chunked\r\n\r\n5;ext=1\r\nhello\r\n0\r\n\r\n",
        HEAD + "X : y\r\n\r\n",
        HEAD + "X: a\r\n b\r\n\r\n",
        HEAD + "X: a\nY: b\r\n\r\n",
        HEAD + "X: a\x00b\r\n\r\n",
        HEAD + "Host: y\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/2.0\r\nHost: x\r\n\r\n",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)
def test_ambiguous_requests_are_refused(lab, request_):
    with Raw(lab.plain) as raw:
        assert raw.send(request_).answer().status == 400
        assert raw.is_closed()
    assert lab.counts()["malformed"] == 1


def test_bodies_are_measured(lab):
    data = bytes(range(256)) * 20_480
    for body in (data, iter([data[:70_000], data[70_000:]])):
        answer = call(lab.plain, "POST", f"{OPEN}/echo", body).json
        assert (answer["length"], answer["sha256"]) == (len(data), sha256(data))


@pytest.mark.parametrize("size", [0, 1, 55, 56, 63, 64, 65, 127, 128, 1000])
def test_digests_are_right_at_every_block_border(lab, size):
    assert call(lab.plain, "POST", "/echo", b"q" * size).json["sha256"] == sha256(b"q" * size)


def test_streams_come_in_both_framings(lab):
    for query in ("bytes=5242880", "bytes=5242880&chunked=1"):
        assert call(lab.plain, path=f"/stream?{query}").body == PATTERN * 327_680


def test_answers_without_a_body_have_none(lab):
    with Raw(lab.plain) as raw:
        for code in (204, 304):
            assert raw.send(f"GET /status?code={code} HTTP/1.1\r\nHost: x\r\n\r\n").answer().status == code
        head = raw.send("HEAD /employees/7 HTTP/1.1\r\nHost: x\r\n\r\n").answer("HEAD")
        assert int(head.field("Content-Length")) > 0
        assert raw.send("GET /employees/7 HTTP/1.1\r\nHost: x\r\n\r\n").answer().json["id"] == 7


def test_an_invitation_is_sent_before_the_body(lab):
    with Raw(lab.plain) as raw:
        raw.send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        assert raw.head()[0] == 100
        assert raw.send("ok").answer().json["length"] == 2


def test_credentials_are_echoed_only_as_a_digest(lab):
    headers = call(lab.plain, path="/headers", headers={"Authorization": "Bearer abc", "X-A": "b"}).json["headers"]
    assert ["Authorization", "sha256:" + sha256(b"Bearer abc")] in headers and ["X-A", "b"] in headers


def test_500_connections_at_once(lab):
    answers = together(500, lambda i: call(lab.plain, path="/slow?ms=300"))
    assert [answer.status for answer in answers] == [200] * 500


def test_the_issuer_stops_and_starts_on_its_port(lab):
    lab.post("/issuer/stop")
    with pytest.raises(OSError):
        call(lab.issuer, path="/.well-known/openid-configuration")
    lab.post("/issuer/start")
    assert call(lab.issuer, path="/.well-known/openid-configuration").json["issuer"] == f"http://{lab.issuer}"


def test_an_unknown_fault_is_refused(lab):
    assert call(lab.control, "POST", "/faults", b'{"hangg": true}').status == 400


PATH = f"{OPEN}/stream?bytes=1000"


@pytest.mark.parametrize("name", ["close_without_answer", "reset_before_answer"])
def test_faults_without_an_answer(lab, name):
    lab.faults(**{name: True})
    with Raw(lab.listen) as raw:
        assert raw.send(f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n").rest() == b""


@pytest.mark.parametrize("name", ["reset_mid_body", "truncate_body"])
def test_faults_in_the_middle_of_a_body(lab, name):
    lab.faults(**{name: True})
    with Raw(lab.listen) as raw:
        data = raw.send(f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n").rest()
    assert b"Content-Length: 1000" in data and data.endswith(b"x" * 500)


@pytest.mark.parametrize(
    "name, sign",
    [
        ("garbage_answer", b"not-http"),
        ("two_answers", b"X-Second: yes"),
        ("folded_answer", b"one\r\n two"),
        ("bare_lf_answer", b"200 OK\n"),
        ("length_and_chunked", b"Transfer-Encoding: chunked"),
        ("two_lengths", b"Content-Length: 3"),
        ("bad_chunk", b"zz\r\n"),
        ("interim", b"103 Early Hints"),
        ("huge_head", b"X-Filler"),
    ],
)
def test_faults_in_the_answer(lab, name, sign):
    lab.faults(**{name: {"times": 1}})
    with Raw(lab.listen) as raw:
        assert sign in raw.send(f"GET {PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").rest()
    assert call(lab.listen, path=PATH).body == (PATTERN * 63)[:1000]


def test_idle_connections_are_closed_when_asked(lab):
    with Raw(lab.listen) as raw:
        raw.send(f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n").answer()
        lab.post("/close_idle")
        assert raw.is_closed()
    lab.faults(close_on_reuse={"times": 1})
    with Raw(lab.listen) as raw:
        raw.send(f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n").answer()
        assert raw.send(f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n").rest() == b""


def form(**members):
    return urllib.parse.urlencode(members).encode()


def token(lab, body, user=None):
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    if user:
        pair = ":".join(urllib.parse.quote_plus(half) for half in user)
        headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    return call(lab.issuer, "POST", "/token", body, headers)


def test_the_token_endpoint_takes_basic_and_post(lab):
    client = (lab.oauth_client_id, lab.client_secret)
    for answer in (
        token(lab, form(grant_type="client_credentials", scope="read write"), client),
        token(
            lab, form(grant_type="client_credentials", scope="read write", client_id=client[0], client_secret=client[1])
        ),
    ):
        assert answer.status == 200 and answer.json["expires_in"] == 3600 and answer.json["scope"] == "read write"
        bearer = {"Authorization": "Bearer " + answer.json["access_token"]}
        assert call(lab.listen, path="/api/employees/1", headers=bearer).status == 200
        assert call(lab.listen, path="/api/scoped/write/x", headers=bearer).status == 200
        refused = call(lab.listen, path="/api/scoped/admin/x", headers=bearer)
        assert refused.status == 403 and 'scope="admin"' in refused.field("WWW-Authenticate")
    both = token(lab, form(grant_type="client_credentials", client_secret="x"), client)
    assert both.json["error"] == "invalid_request"
    wrong = token(lab, form(grant_type="client_credentials"), (client[0], "no"))
    assert wrong.status == 401 and wrong.json["error"] == "invalid_client" and wrong.field("WWW-Authenticate")
    assert token(lab, form(grant_type="client_credentials", scope="nope"), client).json["error"] == "invalid_scope"


def test_a_refresh_token_is_rotated(lab):
    client = (lab.oauth_client_id, lab.client_secret)
    first = token(lab, form(grant_type="password", username=lab.user, password=lab.password), client).json[
        "refresh_token"
    ]
    second = token(lab, form(grant_type="refresh_token", refresh_token=first), client)
    assert second.status == 200 and second.json["refresh_token"] != first
    assert token(lab, form(grant_type="refresh_token", refresh_token=first), client).json["error"] == "invalid_grant"


def test_the_basic_and_key_areas_want_their_credential(lab):
    basic = {"Authorization": "Basic " + base64.b64encode(f"{lab.user}:{lab.password}".encode()).decode()}
    assert call(lab.listen, path="/basic/employees/1").status == 401
    assert call(lab.listen, path="/basic/employees/1", headers=basic).status == 200
    assert call(lab.listen, path="/key/employees/1").status == 401
    assert call(lab.listen, path="/key/employees/1", headers={"X-Api-Key": lab.api_key}).status == 200


@pytest.mark.parametrize(
    "fault, status, sign",
    [
        ("issuer_html", 200, b"<html>"),
        ("issuer_crlf_token", 200, rb"\r\nX-Injected"),
        ("issuer_empty", 200, b""),
        ("issuer_huge_json", 200, b"0123"),
        ("issuer_redirect", 302, b""),
    ],
)
def test_the_issuer_answers_wrongly_when_asked(lab, fault, status, sign):
    lab.faults(**{fault: {"times": 1}})
    answer = token(lab, form(grant_type="client_credentials"))
    assert answer.status == status and sign in answer.body


def test_the_issuer_breaks_down_when_asked(lab):
    lab.faults(issuer_status=503, issuer_retry_after=9)
    answer = token(lab, b"")
    assert answer.status == 503 and answer.field("Retry-After") == "9"
    for fault in ("issuer_close", "issuer_reset"):
        lab.faults(issuer_status=None, **{fault: {"times": 1}})
        with pytest.raises(OSError):
            token(lab, b"")
    lab.faults(issuer_hang=True)
    with Raw(lab.issuer, timeout=0.3) as raw, pytest.raises(socket.timeout):
        raw.send("POST /token HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").answer()
