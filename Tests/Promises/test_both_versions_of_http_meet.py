"""Promise: a caller and an upstream of different versions of HTTP understand each other: bodies of any size, trailers, cookies, interim
answers, and a word that is broken off is broken off on the other side too."""

import hashlib
import http.client
import json
import socket
import subprocess

import httpx
import pytest

import origins
from harness import eventually, executable
from http2_peers import Caller, Reset
from origins import LARGE, PIECE, SECRET, forward, large
from wire import address

WAYS = [(1, 1), (1, 2), (2, 1), (2, 2)]
FLAGS = {1: "--http1.1", 2: "--http2-prior-knowledge"}


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0]}-to-{way[1]}")
def way(request, gateway):
    """(caller's version, gateway, what the origin got) with the resources of `origins` behind the gateway."""
    caller, upstream = request.param
    notes = []
    with origins.origin(upstream, notes) as server:
        forward(gateway, server.address, upstream).start()
        yield caller, gateway, notes


def curl(gateway, version, path, *more, data=None):
    """(fields by name, body): of a transfer that went well."""
    command = [executable("CARDEA_CURL", "curl", "apt-get install curl"), "-s", "--max-time", "20", FLAGS[version]]
    done = subprocess.run(
        [*command, "-D", "/dev/stderr", *more, f"http://{gateway.listen}{path}"], input=data, capture_output=True
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    lines = done.stderr.decode().replace("\r", "").split("\n")
    assert lines[0].startswith(f"HTTP/{ {1: '1.1', 2: '2'}[version] } "), lines
    return lines, done.stdout


def caller_of(version, gateway):
    return httpx.Client(http1=version == 1, http2=version == 2, base_url=f"http://{gateway.listen}", timeout=20)


def test_a_request_and_its_credential(way):
    version, gateway, notes = way
    lines, body = curl(gateway, version, "/hello", "-H", "Cookie: a=1; b=2")
    fields = [tuple(pair) for pair in json.loads(body)["fields"]]
    assert ("authorization", f"Bearer {SECRET}") in fields
    assert [value for name, value in fields if name == "cookie"] in (["a=1; b=2"], ["a=1", "b=2"]), fields
    found = [line.lower() for line in lines]
    assert f"content-length: {len(body)}" in found, lines
    assert [line for line in found if line.startswith("set-cookie")] == ["set-cookie: a=1; path=/", "set-cookie: b=2"]


def test_split_cookies_are_one_field_over_http1(way):
    version, gateway, notes = way
    if version == 1:
        assert gateway.get("/hello", headers=[("Cookie", "a=1"), ("Cookie", "b=2")]).status in (200, 400)
        return
    with Caller(gateway.listen) as caller:
        stream = caller.request("GET", "/hello", [("cookie", "a=1"), ("cookie", "b=2"), ("cookie", "c=3")])
        assert stream.head() == 200
        fields = json.loads(stream.body())["fields"]
    sent = [value for name, value in fields if name == "cookie"]
    assert "; ".join(sent) == "a=1; b=2; c=3", fields
    if notes[0].__class__ is origins.Over1:
        assert len(sent) == 1, "RFC 9113 §8.2.3: joined for HTTP/1.1"


def test_five_megabytes_up(way):
    version, gateway, _ = way
    data = b"".join(large())
    _, body = curl(gateway, version, "/count", "--data-binary", "@-", "-H", "Expect:", data=data)
    assert json.loads(body) == {"count": LARGE, "sha256": hashlib.sha256(data).hexdigest(), "trailers": []}


def test_an_upload_of_unknown_length(way):
    version, gateway, _ = way
    _, body = curl(gateway, version, "/count", "-T", "-", "-X", "POST", "-H", "Expect:", data=PIECE * 20)
    assert json.loads(body)["count"] == len(PIECE) * 20


def test_a_short_upload_that_comes_with_its_head(way):
    """Head, body and end in one packet, without a length."""
    version, gateway, _ = way
    if version == 1:
        body = [b"five!"]
        assert gateway.call("POST", "/count", iter(body)).json["count"] == 5
        return
    with Caller(gateway.listen) as caller:
        with caller.changed:
            caller.flush, flush = lambda: None, caller.flush
            stream = caller.request("POST", "/count", ended=False)
            stream.write(b"five!")
            stream.end()
            caller.flush = flush
            flush()
        assert stream.head() == 200 and json.loads(stream.body())["count"] == 5


def test_five_megabytes_down(way):
    version, gateway, _ = way
    lines, body = curl(gateway, version, "/large")
    assert body == b"".join(large())
    assert f"content-length: {LARGE}" in [line.lower() for line in lines]


def test_httpx_is_served_too(way):
    version, gateway, _ = way
    with caller_of(version, gateway) as client:
        for _ in range(3):
            answer = client.post("/count", content=large())
            assert answer.http_version == {1: "HTTP/1.1", 2: "HTTP/2"}[version]
            assert answer.json()["count"] == LARGE
            assert client.get("/large").content == b"".join(large())


def test_answers_without_a_body(way):
    version, gateway, _ = way
    with caller_of(version, gateway) as client:
        head = client.head("/large")
        assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(LARGE))
        for status in (204, 304):
            answer = client.get(f"/{status}")
            assert (answer.status_code, answer.content, answer.headers["etag"]) == (status, b"", '"v1"')
            assert "transfer-encoding" not in answer.headers
        assert client.get("/hello").status_code == 200


def test_trailers_of_an_answer(way):
    version, gateway, _ = way
    if version == 1:
        with raw(gateway, b"GET /trailers HTTP/1.1\r\nHost: localhost\r\nTE: trailers\r\nConnection: TE, close\r\n\r\n") as caller:
            text = b"".join(iter(lambda: caller.recv(65536), b""))
        body, _, trailers = text.partition(b"0\r\n")
        assert b"body " in body and b"before" in body
        assert b"x-digest: sum-1\r\n" in trailers.lower() and b"x-more: two words\r\n" in trailers.lower(), text
        return
    with Caller(gateway.listen) as caller:
        stream = caller.request("GET", "/trailers", [("te", "trailers")])
        assert stream.head() == 200 and stream.body() == b"body before"
        assert stream.trailers == [("x-digest", "sum-1"), ("x-more", "two words")]


def raw(gateway, data):
    caller = socket.create_connection(address(gateway.listen), timeout=20)
    caller.sendall(data)
    return caller


def test_trailers_of_a_request(way):
    version, gateway, _ = way
    if version == 1:
        head = b"POST /count HTTP/1.1\r\nHost: localhost\r\nTrailer: x-sum\r\nTransfer-Encoding: chunked\r\n"
        with raw(gateway, head + b"Connection: close\r\n\r\n" + b"5\r\nhello\r\n0\r\nX-Sum: 99\r\n\r\n") as caller:
            answer = http.client.HTTPResponse(caller)
            answer.begin()
            found = json.loads(answer.read())
    else:
        with Caller(gateway.listen) as caller:
            stream = caller.request("POST", "/count", [("trailer", "x-sum")], ended=False)
            stream.write(b"hello")
            stream.end([("x-sum", "99")])
            assert stream.head() == 200
            found = json.loads(stream.body())
    assert found["count"] == 5 and found["trailers"] == [["x-sum", "99"]]


def test_interim_answers_pass(way):
    version, gateway, _ = way
    lines, _ = curl(gateway, version, "/interim")
    assert " 103" in lines[0] and "link: </style.css>; rel=preload" in [line.lower() for line in lines], lines
    assert any(line.startswith("HTTP/") and " 200" in line for line in lines[1:]), lines


def test_an_answer_that_breaks_off_does_not_look_whole(way):
    version, gateway, _ = way
    if version == 1:
        with raw(gateway, b"GET /broken HTTP/1.1\r\nHost: localhost\r\n\r\n") as caller, pytest.raises(
            (http.client.IncompleteRead, ConnectionError)
        ):
            answer = http.client.HTTPResponse(caller)
            answer.begin()
            answer.read()
    else:
        with Caller(gateway.listen) as caller:
            stream = caller.request("GET", "/broken")
            with pytest.raises(Reset):
                stream.head()
                stream.body()
            assert isinstance(stream.code, int), "the stream ends, not the connection"
            after = caller.request("GET", "/hello")
            assert after.head() == 200 and after.body()
    assert gateway.get("/hello").status == 200


def test_a_caller_that_goes_while_it_is_answered_stops_the_answer(way):
    version, gateway, notes = way
    if version == 1:
        caller = raw(gateway, b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert caller.recv(65536)
        caller.close()
    else:
        caller = Caller(gateway.listen)
        stream = caller.request("GET", "/endless")
        assert stream.head() == 200 and stream.read()
        stream.reset()
    eventually(lambda: notes[0].was_given_up, what="the upstream learning of it")
    if version == 2:
        after = caller.request("GET", "/hello")
        assert after.head() == 200 and after.body()
        caller.close()


def test_a_caller_that_goes_while_it_sends_stops_the_request(way):
    version, gateway, notes = way
    if version == 1:
        caller = raw(gateway, b"POST /swallow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n" + PIECE)
    else:
        caller = Caller(gateway.listen)
        stream = caller.request("POST", "/swallow", [("content-length", "9000000")], ended=False)
        stream.write(PIECE)
    eventually(lambda: notes, what="the request at the upstream")
    if version == 1:
        caller.close()
    else:
        stream.reset()
    eventually(lambda: notes[0].was_given_up, what="the upstream learning of it")
    if version == 2:
        after = caller.request("GET", "/hello")
        assert after.head() == 200 and after.body()
        caller.close()
