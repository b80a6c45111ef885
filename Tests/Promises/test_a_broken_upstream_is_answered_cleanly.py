"""Promise: whatever the upstream sends, a caller gets a clean answer or a clean abort, never a wrong body."""

import http.client
import json
import socket
import time

import pytest

from harness import PATTERN, address, eventually, free_port, send
from scripted import Scripted, echo

STREAM = "/hr/rest/stream?bytes=200000"


def problem(answer, status=502):
    assert answer.status == status, answer
    assert answer.problem and "error=" in answer.field("Proxy-Status")


@pytest.mark.parametrize("fault", ["garbage_answer", "bare_lf_answer", "two_lengths", "huge_head"])
def test_an_answer_that_is_no_http(hot, fault):
    hot.lab.faults(**{fault: True})
    problem(hot.get())
    hot.lab.faults(**{fault: None})
    assert hot.get().status == 200


def test_an_obs_fold_is_repaired(hot):
    hot.lab.faults(folded_answer=True)
    answer = hot.get()
    assert (answer.status, answer.body) == (200, b"ok")
    assert " ".join(answer.field("X-Folded").split()) == "one two"


def test_length_and_chunked_is_read_as_chunked_then_closed(hot):
    hot.lab.faults(length_and_chunked={"times": 1})
    answer = hot.get()
    assert (answer.status, answer.body) == (200, b"ok")
    assert hot.get().status == 200


@pytest.mark.parametrize("fault", ["reset_mid_body", "truncate_body", "bad_chunk"])
@pytest.mark.parametrize("query", ["", "&chunked=1"])
def test_a_body_that_breaks_off_is_never_ended_cleanly(hot, fault, query):
    hot.lab.faults(**{fault: True})
    with hot.raw() as raw:
        raw.send(f"GET {STREAM}{query} HTTP/1.1\r\nHost: {hot.listen}\r\n\r\n")
        with pytest.raises((EOFError, ConnectionResetError, ValueError)):
            answer = raw.answer()
            # A gateway that had not sent its head yet may still answer 502.
            if answer.status == 502:
                raise EOFError
    hot.lab.faults(**{fault: None})
    assert hot.get().status == 200


def test_a_second_answer_reaches_nobody(hot):
    hot.lab.faults(two_answers=True)
    connection = http.client.HTTPConnection(*address(hot.listen), timeout=30)
    try:
        for number in range(5):
            answer = send(connection, "GET", f"/hr/rest/employees/{number}")
            assert answer.status == 200 and answer.json["id"] == number and answer.field("X-Second") is None
    finally:
        connection.close()


def test_an_interim_answer_is_no_answer(hot):
    hot.lab.faults(interim=True)
    with hot.raw() as raw:
        raw.send(f"GET /hr/rest/employees/42 HTTP/1.1\r\nHost: {hot.listen}\r\n\r\n")
        assert raw.answer().json["id"] == 42


@pytest.mark.parametrize("closes", [0, 1])
def test_an_answer_before_the_body_was_read(hot, closes):
    hot.lab.faults(early_answer={"value": closes})
    answer = hot.call("POST", "/hr/rest/echo", b"x" * 3_000_000)
    assert (answer.status, answer.json) == (200, {"early": True})
    hot.lab.faults(early_answer=None)
    assert hot.get().status == 200


def test_a_challenge_before_the_body_was_read(hot):
    hot.lab.post("/revoke")
    hot.lab.faults(early_challenge=True)
    answer = hot.call("POST", "/hr/rest/echo", b"x" * 900_000)
    assert (answer.status, answer.json["length"]) == (200, 900_000)


@pytest.mark.parametrize("method, body", [("GET", None), ("PUT", b"again")])
def test_a_connection_closed_at_its_second_use_is_tried_again(hot, method, body):
    hot.lab.faults(close_on_reuse=True)
    for _ in range(10):
        assert hot.call(method, "/hr/rest/echo", body).status == 200


def test_idle_upstream_connections_that_closed_are_not_used(hot):
    for _ in range(10):
        assert hot.get().status == 200
        hot.lab.post("/close_idle")
    hot.lab.faults(close_idle=1)
    for _ in range(30):
        assert hot.get().status == 200


@pytest.mark.parametrize("fault", ["close_without_answer", "reset_before_answer"])
def test_no_answer_at_all(hot, fault):
    hot.lab.faults(**{fault: True})
    problem(hot.get())
    problem(hot.call("POST", "/hr/rest/echo", b"once"))
    posts = [line for line in hot.lab.get("/requests") if " POST " in line]
    assert len(posts) == 1, "a POST that may have been processed was sent again"


def test_an_upstream_that_refuses_connections(hot):
    hot.lab.post("/protected/stop")
    answer = hot.get()
    problem(answer)
    assert hot.lab.listen.encode() not in answer.body
    hot.lab.post("/protected/start")
    assert hot.get().status == 200


def test_large_bodies_arrive_whole(hot):
    assert hot.get("/hr/rest/stream?bytes=20000000&chunked=1").body == PATTERN * 1_250_000


@pytest.mark.parametrize(
    "fault, status",
    [
        ("two_header_lines", 200),
        ("two_challenges_one_line", 200),
        ("only_basic", 401),
        ("no_context", 401),
        ("bare_401", 401),
    ],
)
def test_challenges_of_every_shape(hot, fault, status):
    """A 401 that is no usable challenge is the API's own answer and passes."""
    hot.lab.post("/revoke")
    hot.lab.faults(**{fault: True})
    answer = hot.get()
    assert answer.status in ({status} if status == 200 else {401, 502}), answer
    assert hot.lab.counts()["password_attempts"] == 0


def test_an_upstream_that_is_down_is_told_once(gateway):
    port = free_port()
    route = {"name": "a", "listen": gateway.listen, "to": f"http://127.0.0.1:{port}", "use": "none"}
    gateway.config = gateway.frame({"routes": [route], "identities": {}, "threads": 1})
    gateway.start()

    def told(message):
        return [event for event in gateway.events() if event["message"] == message]

    for _ in range(3):
        problem(gateway.get("/"))
    eventually(lambda: told("upstream cannot be reached"), what="the outage to be told")
    with Scripted(echo, port=port):
        eventually(lambda: gateway.get("/").status == 200, what="the upstream to be found again")
        eventually(lambda: told("upstream is reached again"), what="that to be told")
    [outage] = told("upstream cannot be reached")
    assert outage["upstream"] == f"http://127.0.0.1:{port}" and outage["reason"] == "no address of it takes a connection"


def test_an_address_that_is_taken_is_to_be_tried_again(gateway):
    """Status 75, which the unit of systemd restarts; a configuration that is bad (78) it does not."""
    with socket.socket() as other:
        other.bind(address(gateway.listen))
        other.listen()
        route = {"name": "a", "listen": gateway.listen, "to": "http://127.0.0.1:9", "use": "none"}
        gateway.config = gateway.frame({"routes": [route], "identities": {}})
        gateway.file.write_text(json.dumps(gateway.config))
        status, out, err = gateway.command("run")
        assert status == 75 and "another process listens there" in out + err, out + err


def test_an_upstream_that_takes_connections_and_says_nothing_is_told_once(gateway):
    with Scripted(lambda peer: peer.socket.recv(1 << 16) and time.sleep(60)) as silent:
        route = {"name": "a", "listen": gateway.listen, "to": f"https://{silent.address}", "use": "none", "timeouts": {"connect": "300ms"}}
        gateway.config = gateway.frame({"routes": [route], "identities": {}, "threads": 1})
        gateway.start()
        for _ in range(3):
            assert gateway.get("/").status == 504
        eventually(lambda: [e for e in gateway.events() if e["message"] == "upstream cannot be reached"], what="the outage to be told")
        gateway.stop()
    told = [event["message"] for event in gateway.events() if event["message"].startswith("upstream ")]
    assert told == ["upstream cannot be reached"]
