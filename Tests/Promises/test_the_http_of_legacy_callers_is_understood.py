"""Promise: pipelining, Expect, HEAD, HTTP/1.0, half-closed connections: all as an origin server would."""

import json

import pytest


def get(gateway, path, *lines, version="HTTP/1.1", method="GET"):
    return "\r\n".join([f"{method} {path} {version}", f"Host: {gateway.listen}", *lines]) + "\r\n\r\n"


def test_pipelined_requests_are_answered_in_order(hot):
    with hot.raw() as raw:
        raw.send("".join(get(hot, f"/hr/rest/employees/{i}") for i in range(20)))
        assert [raw.answer().json["id"] for _ in range(20)] == list(range(20))


def test_a_slow_answer_does_not_let_a_later_one_pass(hot):
    with hot.raw() as raw:
        raw.send(get(hot, "/hr/rest/slow?ms=500") + get(hot, "/hr/rest/employees/2"))
        assert raw.answer().json == {"slow": True}
        assert raw.answer().json["id"] == 2


def test_pipelining_behind_a_body(hot):
    with hot.raw() as raw:
        raw.send(
            get(hot, "/hr/rest/echo", "Content-Length: 5", method="POST") + "hello" + get(hot, "/hr/rest/employees/3")
        )
        assert raw.answer().json["length"] == 5
        assert raw.answer().json["id"] == 3


@pytest.mark.parametrize("cold", [False, True])
def test_expect_100_continue(hot, cold):
    if cold:
        hot.lab.post("/revoke")
    with hot.raw() as raw:
        raw.send(get(hot, "/hr/rest/echo", "Content-Length: 5", "Expect: 100-continue", method="POST"))
        assert raw.head()[0] == 100
        answer = raw.send("hello").answer()
    assert (answer.status, answer.json["length"]) == (200, 5)


def test_an_unknown_expectation(hot):
    with hot.raw() as raw:
        assert raw.send(get(hot, "/hr/rest/employees/1", "Expect: miracles")).answer().status in (200, 417)


def test_head_has_a_length_and_no_body(hot):
    with hot.raw() as raw:
        head = raw.send(get(hot, "/hr/rest/employees/1", method="HEAD")).answer("HEAD")
        length = len(raw.send(get(hot, "/hr/rest/employees/1")).answer().body)
    assert (head.status, head.field("Content-Length")) == (200, str(length))


@pytest.mark.parametrize("code", [204, 304])
def test_answers_without_a_body(hot, code):
    with hot.raw() as raw:
        answer = raw.send(get(hot, f"/hr/rest/status?code={code}")).answer()
        assert answer.status == code and answer.field("Transfer-Encoding") is None
        assert raw.send(get(hot, "/hr/rest/employees/1")).answer().status == 200


@pytest.mark.parametrize("code", [200, 201, 400, 404, 409, 429, 500, 503, 599])
def test_statuses_of_the_api_are_its_own(hot, code):
    answer = hot.get(f"/hr/rest/status?code={code}")
    assert (answer.status, answer.body, answer.field("X-Lab")) == (code, b"status %d\n" % code, "status")


@pytest.mark.parametrize("path", ["/hr/rest/employees/1", "/hr/rest/stream?bytes=100000&chunked=1"])
def test_an_http_1_0_caller_gets_no_chunks_and_a_close(hot, path):
    with hot.raw() as raw:
        data = raw.send(get(hot, path, version="HTTP/1.0")).rest()
    head, _, body = data.partition(b"\r\n\r\n")
    assert b" 200 " in head.split(b"\r\n")[0] and b"chunked" not in head.lower()
    assert len(body) == 100_000 if "stream" in path else json.loads(body)["id"] == 1


def test_an_http_1_0_caller_without_a_host(hot):
    with hot.raw() as raw:
        assert b" 200 " in raw.send("GET /hr/rest/employees/1 HTTP/1.0\r\n\r\n").rest().split(b"\r\n")[0]


@pytest.mark.parametrize("cold", [False, True])
def test_a_half_closed_caller_still_gets_its_answer(gateway, cold):
    hot = gateway.webgate(route={"timeouts": {"half_closed": "60s"}}).start().warm()
    if cold:
        hot.lab.post("/revoke")
    with hot.raw() as raw:
        answer = raw.send(get(hot, "/hr/rest/slow?ms=200")).half_close().answer()
    assert answer.status == 200


def test_connection_close_is_honoured(hot):
    with hot.raw() as raw:
        assert raw.send(get(hot, "/hr/rest/employees/1", "Connection: close")).answer().status == 200
        assert raw.is_closed()


def test_bytes_pass_untouched(hot):
    with hot.raw() as raw:
        answer = raw.send(
            get(hot, "/hr/rest/headers?q=%41+b", "X-Odd-CASE: caf\xe9  \xff", "X-B: 1", "x-b: 2", method="PROPFIND")
        ).answer()
    assert answer.json["method"] == "PROPFIND" and answer.json["target"] == "/hr/rest/headers?q=%41+b"
    fields = answer.json["headers"]
    assert ["X-Odd-CASE", "caf\xe9  \xff"] in fields
    assert [field for field in fields if field[0].lower() == "x-b"] == [["X-B", "1"], ["x-b", "2"]]


def test_absolute_form_is_rewritten(hot):
    with hot.raw() as raw:
        answer = raw.send(get(hot, f"http://{hot.listen}/hr/rest/headers")).answer()
    assert answer.status == 200 and answer.json["target"] == "/hr/rest/headers"


def test_a_caller_that_leaves_does_no_harm(hot):
    for _ in range(20):
        with hot.raw() as raw:
            raw.send(get(hot, "/hr/rest/stream?bytes=5000000"))
            raw.socket.recv(1000)
        with hot.raw() as raw:
            raw.send(get(hot, "/hr/rest/echo", "Content-Length: 100000", method="POST") + "part")
    assert hot.get().status == 200
