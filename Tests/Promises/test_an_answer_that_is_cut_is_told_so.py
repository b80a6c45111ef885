"""Promise: an answer that ends in its middle is nowhere told as a whole one: the access record, the metrics and the log say whose doing it
was and after how many bytes, and a caller of HTTP/2 gets the upstream's own reason."""

import json
import socket
import ssl
import struct
import threading

import grpc
import pytest

from frames import (
    CANCEL,
    DATA,
    ENHANCE_YOUR_CALM,
    HTTP_1_1_REQUIRED,
    INTERNAL_ERROR,
    NO_ERROR,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    Caller,
    Upstream,
    frame,
    requests,
    reset,
)
from harness import eventually
from pki import Authority
from scripted import Scripted, plain
from wire import address


def start(gateway, upstream, http="1.1", **route):
    gateway.with_identity({"static": {"value": gateway.secret("token", "token-0123456789")}})
    gateway.config["routes"][0].update({"name": "cut", "to": f"http://{upstream.address}", "http": http, **route})
    return gateway.start()


def told(gateway, side, problem, least, path="/x"):
    """What record, metrics and log say of the one answer that was cut."""
    record = eventually(lambda: next((line for line in gateway.access() if line.get("path") == path), None))
    assert record["status"] == 200 and record["incomplete"] == side and record.get("fault") == problem, record
    assert least <= record["bytes_out"] < 2_000_000, record
    samples = gateway.metrics()
    assert samples["cardea_incomplete_answers_total", (("route", "cut"), ("side", side))] == 1
    assert not any(name == "cardea_problems_total" for name, _ in samples)
    if side == "caller":
        assert "an answer was cut short" not in gateway.text()
    else:
        [event] = gateway.told(lambda event: event["message"].startswith("an answer was cut short"))
        event = json.dumps(event)
        assert side in event and problem in event and str(record["bytes_out"]) in event, event


def broken(piece):
    """An upstream that answers with a head and `piece`, and closes."""

    def script(peer):
        peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\n" + piece)

    return Scripted(script)


@pytest.mark.parametrize(
    "piece",
    [b"Content-Length: 5000\r\n\r\n" + b"x" * 1000, b"Transfer-Encoding: chunked\r\n\r\n3e8\r\n" + b"x" * 1000 + b"\r\n"],
    ids=["length", "chunks"],
)
@pytest.mark.parametrize("version", ["1.1", "2"])
def test_an_upstream_that_closes(gateway, piece, version):
    with broken(piece) as upstream:
        start(gateway, upstream)
        if version == "2":
            with Caller(gateway.listen) as caller:
                caller.send(caller.request(1, "/x"))
                assert caller.status(1) == 200 and caller.bodies[1] == b"x" * 1000
                assert caller.resets == {1: INTERNAL_ERROR}
        else:
            with gateway.raw() as raw:
                raw.send(f"GET /x HTTP/1.1\r\nHost: {gateway.listen}\r\n\r\n")
                with pytest.raises((EOFError, ConnectionResetError)):
                    raw.answer()
        told(gateway, "upstream", "upstream-closed", 1000)


@pytest.mark.parametrize("secure", [False, True], ids=["clear", "tls"])
@pytest.mark.parametrize("whole", [False, True], ids=["cut", "whole"])
def test_a_caller_that_knows_of_no_chunks(gateway, tmp_path, secure, whole):
    """The end of its connection is the end of its answer, so an answer that was cut must not end in order."""
    piece = b"Transfer-Encoding: chunked\r\n\r\n3e8\r\n" + b"x" * 1000 + b"\r\n" + (b"0\r\n\r\n" if whole else b"")
    made = None
    with broken(piece) as upstream:
        gateway.with_identity({"static": {"value": gateway.secret("token", "token-0123456789")}})
        route = gateway.config["routes"][0]
        route.update({"name": "cut", "to": f"http://{upstream.address}"})
        if secure:
            authority = Authority(tmp_path / "pki")
            certificate, key = authority.leaf("localhost", "DNS:localhost,IP:127.0.0.1")
            gateway.config["listeners"] = {"edge": {"address": gateway.listen, "tls": [{"certificate": str(certificate), "key": f"file:{key}"}]}}
            route["listen"] = "edge"
            made = ssl.create_default_context(cafile=str(authority.pem))
        gateway.start()
        caller = socket.create_connection(address(gateway.listen), timeout=10)
        if made:
            caller = made.wrap_socket(caller, server_hostname="localhost", suppress_ragged_eofs=False)
        with caller:
            caller.sendall(f"GET /x HTTP/1.0\r\nHost: {gateway.listen}\r\n\r\n".encode())
            got, fault = b"", None
            try:
                while data := caller.recv(65536):
                    got += data
            except (ConnectionResetError, ssl.SSLError) as error:
                fault = error
        if whole:
            assert fault is None and got.endswith(b"x" * 1000)
        else:
            assert fault is not None, got
            told(gateway, "upstream", "upstream-closed", 1000)


def test_an_upstream_whose_framing_breaks(gateway):
    def script(peer):
        for _ in peer.requests():
            peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
            assert begun.wait(15)
            peer.send(b"no chunk\r\n")

    begun = threading.Event()
    with Scripted(script) as upstream:
        start(gateway, upstream)
        with Caller(gateway.listen) as caller:
            caller.send(caller.request(1, "/x"))
            assert caller.until(lambda: 1 in caller.bodies)
            begun.set()
            assert caller.status(1) == 200 and caller.bodies[1] == b"hello"
            assert caller.resets == {1: INTERNAL_ERROR}
        told(gateway, "upstream", "upstream-garbage", 5)


@pytest.mark.parametrize("version", ["1.1", "2"])
@pytest.mark.parametrize("piece", [b"no chunk\r\n", b"5\r\nhello\r\nno chunk\r\n"], ids=["at-once", "behind-one"])
def test_one_that_breaks_beside_its_head_is_answered(gateway, piece, version):
    """Nothing was sent yet: no caller needs to guess."""

    def script(peer):
        for _ in peer.requests():
            peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + piece)

    with Scripted(script) as upstream:
        start(gateway, upstream)
        if version == "2":
            with Caller(gateway.listen) as caller:
                caller.send(caller.request(1, "/x"))
                assert caller.status(1) == 502 and b"problems/upstream-garbage" in caller.bodies[1]
        else:
            answer = gateway.get("/x")
            assert answer.status == 502 and answer.problem["type"] == "urn:cardea:problems/upstream-garbage"
        record = eventually(lambda: next(iter(gateway.access()), None))
        assert record["status"] == 502 and record["fault"] == "upstream-garbage" and "incomplete" not in record
        assert gateway.metrics()["cardea_problems_total", (("problem", "upstream-garbage"), ("route", "cut"))] == 1


def test_a_body_over_the_limit_beside_its_answer(gateway):
    """Want of room, as gRPC reads it, and neither the caller's wish nor a fault."""
    ended = threading.Event()

    def script(peer):
        peer.socket.recv(65536)
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nearly")
        assert ended.wait(15)

    with Scripted(script) as upstream:
        plain(gateway, upstream, limits={"body_size": "1KiB"}).start()
        with Caller(gateway.listen) as caller:
            caller.send(caller.request(1, "/x", "POST", ended=False))
            assert caller.until(lambda: caller.bodies.get(1) == b"early")
            caller.send(frame(DATA, 0, 1, bytes(2000)))
            assert caller.until(lambda: 1 in caller.resets)
            assert caller.resets == {1: ENHANCE_YOUR_CALM}
        ended.set()
        record = eventually(lambda: next(iter(gateway.access()), None))
        assert record["fault"] == "big-body" and record["incomplete"] == "caller", record


def test_a_caller_that_leaves(gateway):
    def script(peer):
        for _ in peer.requests():
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 500000000\r\n\r\n")
            while True:
                peer.send(bytes(65536))

    with Scripted(script) as upstream:
        start(gateway, upstream)
        with gateway.raw() as raw:
            raw.send(f"GET /x HTTP/1.1\r\nHost: {gateway.listen}\r\n\r\n")
            assert len(raw.socket.recv(30000)) > 0
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        record = eventually(lambda: next(iter(gateway.access()), None))
        assert record["status"] == 200 and record["incomplete"] == "caller" and record["bytes_out"] > 0
        assert "fault" not in record
        samples = gateway.metrics()
        assert samples["cardea_incomplete_answers_total", (("route", "cut"), ("side", "caller"))] == 1
        assert "an answer was cut short" not in gateway.text()


def endless(peer):
    for _ in peer.requests():
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 500000000\r\n\r\n")
        while True:
            peer.send(bytes(65536))


def test_a_record_of_errors_has_it_too(gateway):
    """Where only errors are recorded, a 200 that is cut is one, whoever's doing it was."""
    with Scripted(endless) as upstream:
        plain(gateway, upstream, log={"format": "json", "access": "errors"}).start()
        with gateway.raw() as raw:
            raw.send(f"GET /x HTTP/1.1\r\nHost: {gateway.listen}\r\n\r\n")
            assert raw.head()[0] == 200
        [record] = eventually(gateway.access, what="the record")
        assert (record["status"], record["incomplete"]) == (200, "caller")


def test_a_stop_that_waits_no_longer(gateway):
    with Scripted(endless) as upstream:
        plain(gateway, upstream, shutdown={"linger": "0s", "timeout": "500ms"}).start()
        with gateway.raw() as raw:
            raw.send(f"GET /x HTTP/1.1\r\nHost: {gateway.listen}\r\n\r\n")
            assert raw.head()[0] == 200
            gateway.stop()
        [record] = gateway.access()
        assert (record["status"], record["incomplete"], record["fault"]) == (200, "gateway", "draining"), record


def test_a_whole_answer_is_none(gateway):
    with Scripted(lambda peer: [peer.send(b"HTTP/1.1 200 OK\r\n\r\nall of it")]) as upstream:
        start(gateway, upstream)
        assert gateway.get("/x").body == b"all of it"
        record = eventually(lambda: next(iter(gateway.access()), None))
        assert "incomplete" not in record and "fault" not in record
        assert not any("incomplete" in name for name, _ in gateway.metrics())


# --- What a caller of HTTP/2 is told ----------------------------------------------------------------------------------

# By what the upstream resets its stream with, and what the caller then gets.
CODES = {
    INTERNAL_ERROR: INTERNAL_ERROR,
    REFUSED_STREAM: REFUSED_STREAM,
    CANCEL: CANCEL,
    ENHANCE_YOUR_CALM: ENHANCE_YOUR_CALM,
    PROTOCOL_ERROR: PROTOCOL_ERROR,
    # A part of an answer must not look whole, what we speak with the upstream is our own matter, and some codes nobody knows.
    NO_ERROR: INTERNAL_ERROR,
    HTTP_1_1_REQUIRED: INTERNAL_ERROR,
    0xBEEF: INTERNAL_ERROR,
}


class Passed:
    """The part of an answer that has come to the caller. A reset that came before it would leave no answer to cut: 502."""

    def __init__(self):
        self.parts = threading.Semaphore(0)

    def told(self):
        self.parts.release()

    def awaited(self):
        assert self.parts.acquire(timeout=25), "the caller has nothing of the answer"


@pytest.fixture
def passed():
    return Passed()


@pytest.fixture
def resetting(gateway, passed):
    """An upstream of HTTP/2 that answers `/CODE` with a head, a piece of a body, and a reset; `/-1` ends its connection."""

    def script(wire, _):
        for stream in requests(wire):
            code = int(wire.heads[stream][-1][":path"][1:])
            wire.send(wire.head(stream, [(":status", "200")], ended=False), frame(DATA, 0, stream, b"hello"))
            passed.awaited()
            if code == -1:
                # In order: closed with something unread, it would be a reset, and what was sent could be lost.
                wire.socket.shutdown(socket.SHUT_WR)
            else:
                wire.send(reset(stream, code))

    with Upstream(script) as upstream:
        yield start(gateway, upstream, http="2")


def cut(caller, stream, path, passed):
    """Asks, and lets the upstream go on when its piece is here."""
    caller.send(caller.request(stream, path))
    caller.until(lambda: stream in caller.bodies or stream in caller.ended)
    passed.told()


def test_the_upstreams_code_passes(resetting, passed):
    with Caller(resetting.listen) as caller:
        for number, (code, expected) in enumerate(CODES.items()):
            stream = 2 * number + 1
            cut(caller, stream, f"/{code}", passed)
            assert caller.status(stream) == 200 and caller.bodies[stream] == b"hello"
            assert caller.resets[stream] == expected, code
    records = eventually(lambda: len(resetting.access()) == len(CODES) and resetting.access())
    assert all(record["incomplete"] == "upstream" and record["fault"] == "upstream-closed" for record in records)


def test_a_connection_that_ends_is_an_internal_error(resetting, passed):
    with Caller(resetting.listen) as caller:
        cut(caller, 1, "/-1", passed)
        assert caller.status(1) == 200 and caller.resets[1] == INTERNAL_ERROR


def test_what_grpc_makes_of_it(gateway, passed):
    """As directly: the service's own words, and not that somebody has cancelled the call."""
    codes = {
        "/s/Internal": (INTERNAL_ERROR, grpc.StatusCode.INTERNAL),
        "/s/Refused": (REFUSED_STREAM, grpc.StatusCode.UNAVAILABLE),
        "/s/Calm": (ENHANCE_YOUR_CALM, grpc.StatusCode.RESOURCE_EXHAUSTED),
        "/s/Cancel": (CANCEL, grpc.StatusCode.CANCELLED),
    }

    def script(wire, _):
        for stream in requests(wire):
            code, _ = codes[wire.heads[stream][-1][":path"]]
            fields = [(":status", "200"), ("content-type", "application/grpc")]
            message = b"\0\0\0\0\5hello"
            wire.send(wire.head(stream, fields, ended=False), frame(DATA, 0, stream, message))
            passed.awaited()
            wire.send(reset(stream, code))

    with Upstream(script) as upstream:
        start(gateway, upstream, http="2")
        for to in (upstream.address, gateway.listen):
            with grpc.insecure_channel(to) as channel:
                for method, (_, status) in codes.items():
                    answer = channel.unary_stream(method)(b"", timeout=20)
                    assert next(answer) == b"hello"
                    passed.told()
                    with pytest.raises(grpc.RpcError) as failed:
                        next(answer)
                    assert failed.value.code() == status, (to, method)
