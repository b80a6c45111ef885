"""Promise: a body in aws-chunked passes in constant memory, whatever signed it, and all its signatures are those of the gateway's key."""

import contextlib
import random

import pytest
from aws_chunks import FORMS, SIGNED, TRAILING, UNSIGNED, ZEROS, announced, encoded
from aws_signatures import KEY, KEY_ID, Service

import http2_peers
from harness import eventually
from scripted import get, identified, problem_type
from test_a_gigabyte_passes_in_constant_memory import forget, peak

DUMMY = "AWS4-HMAC-SHA256 Credential=dummy/20261128/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=" + "0" * 64
LARGE = 1 << 30


def chunking(gateway, service, route=None, settings=None, **top):
    block = {"access_key_id": gateway.secret("key-id", KEY_ID), "secret_access_key": gateway.secret("key", KEY)}
    block |= {"service": service.service, "region": service.region} | (settings or {})
    return identified(gateway, service, {"aws_sigv4": block}, {"paths": "raw"} | (route or {}), **top).start()


def put(gateway, body, fields, by="length"):
    """Uploads in one of the ways in which a message says its length, or by HTTP/2."""
    fields = {"Authorization": DUMMY, "X-Amz-Security-Token": "dummy"} | fields
    if by == "length":
        return gateway.call("PUT", "/bucket/key", body, fields)
    if by == "chunks":
        return gateway.call("PUT", "/bucket/key", iter([body[at : at + 50_000] for at in range(0, len(body), 50_000)]), fields)
    with http2_peers.Caller(gateway.listen) as caller:
        stream = caller.request("PUT", "/bucket/key", [(name.lower(), value) for name, value in fields.items()], ended=False)
        # A refusal need not wait for the end of what is refused.
        with contextlib.suppress(http2_peers.Reset):
            stream.write(body)
            stream.end()
        status = stream.head()
        return status, b"".join(iter(stream.read, b""))


def said(answer):
    return answer if isinstance(answer, tuple) else (answer.status, answer.body)


@pytest.mark.parametrize("by", ["length", "chunks", "http2"])
@pytest.mark.parametrize("version", [1, 2], ids=["to-1", "to-2"])
@pytest.mark.parametrize("payload", ["signed", "unsigned"])
def test_every_signature_is_ours(gateway, payload, version, by):
    draw = random.Random(20261128)
    with Service(payload="chunks", version=version, token="the-session-token") as service:
        settings = {"payload": payload, "session_token": gateway.secret("session-token", service.token)}
        chunking(gateway, service, {"http": {1: "1.1", 2: "2"}[version]}, settings)
        count = 0
        for form in FORMS.values():
            for length, size in ((0, 1), (1, 1), (5, 2), (66_560, 65_536), (300_000, 8192), (2_500_000, 1 << 20)):
                data = draw.randbytes(length)
                answer = said(put(gateway, encoded(data, form, size), announced(form, length), by))
                count += 1
                assert answer == (200, b"good %d" % length), (form, length, answer, service.wrong)
        assert (service.good, service.wrong) == (count, [])
        for seen in service.seen:
            assert not any("dummy" in value for _, value in seen.fields)
            assert dict(seen.fields)["x-amz-security-token"] == service.token


def test_what_is_not_in_chunks_is_signed_as_ever(gateway):
    with Service(payload="chunks") as service:
        chunking(gateway, service)
        for _ in range(2):
            assert put(gateway, b"plain", {}).body == b"good 5"
            data = encoded(b"plain", TRAILING)
            assert put(gateway, data, announced(TRAILING, 5)).body == b"good 5", service.wrong
        assert service.server.connections == 1


def test_a_lost_connection_is_made_good_with_other_signatures(gateway):
    with Service(payload="chunks") as service:
        losing = []
        serve = service.serve

        def lose(exchange):
            if exchange.target == "/bucket/key" and not losing:
                while exchange.read():
                    pass
                losing.append(exchange)
                raise EOFError
            serve(exchange)

        service.serve = lose
        chunking(gateway, service)
        assert gateway.get("/a").status == 200
        data = bytes(range(256)) * 400
        answer = put(gateway, encoded(data, TRAILING, 8192), announced(TRAILING, len(data)))
        assert (answer.status, answer.body) == (200, b"good %d" % len(data)), service.wrong
        assert len(losing) == 1 and service.server.connections == 2


# --- Refusals --------------------------------------------------------------------------------------------------------

HELLO = encoded(b"hello", SIGNED)
MALFORMED = [
    b"hello",
    HELLO[:-1],
    HELLO + b"x",
    HELLO.replace(b"5;", b"4;"),
    HELLO.replace(b"5;", b"6;"),
    HELLO.replace(b"5;", b"-5;"),
    HELLO.replace(b"5;", b"fffffffffffffff;"),
    HELLO.replace(ZEROS, ZEROS[1:]),
    HELLO.replace(b";chunk-signature=" + ZEROS, b""),
    HELLO.replace(b"\r\nhello", b"\nhello"),
    HELLO.replace(b"0;", b"5;"),
    encoded(b"hello", TRAILING),
    encoded(b"hell", SIGNED),
    b"0" * 100_000,
]


@pytest.mark.parametrize("by", ["length", "chunks", "http2"])
@pytest.mark.parametrize("version", [1, 2], ids=["to-1", "to-2"])
def test_malformed_bodies_are_a_400_and_reach_nobody_whole(gateway, version, by):
    with Service(payload="chunks", version=version) as service:
        chunking(gateway, service, {"http": {1: "1.1", 2: "2"}[version]})
        for body in MALFORMED:
            answer = put(gateway, body, announced(SIGNED, 5), by)
            assert said(answer)[0] == 400, (body, said(answer))
            if by != "http2":
                assert problem_type(answer) == "malformed-request" and "of its body" in answer.problem["detail"]
        assert put(gateway, HELLO, announced(SIGNED, 5)).status == 200
        eventually(lambda: service.cut == len(service.seen) - 1, what="the end of every upload")
        assert (service.good, service.wrong) == (1, [])


def test_a_chunk_is_held_up_to_a_bound(gateway):
    with Service(payload="chunks") as service:
        chunking(gateway, service, settings={"max_chunk": "100KiB"})
        for length, status in ((102_400, 200), (102_401, 413), (102_400, 200)):
            answer = put(gateway, encoded(bytes(length), SIGNED, 1 << 20), announced(SIGNED, length))
            assert answer.status == status, answer
            if status == 413:
                assert problem_type(answer) == "big-body" and "'max_chunk'" in answer.problem["detail"]
        # Nobody has to hold what is not signed.
        answer = put(gateway, encoded(bytes(500_000), UNSIGNED, 1 << 20), announced(UNSIGNED, 500_000))
        assert answer.body == b"good 500000", service.wrong


def test_what_is_held_is_bounded_for_all_uploads_together(gateway):
    with Service(payload="chunks") as service:
        chunking(gateway, service, limits={"replay_memory": "1MiB"})
        for length, status in ((900_000, 200), (1 << 20, 503), (900_000, 200)):
            answer = put(gateway, encoded(bytes(length), SIGNED, 1 << 20), announced(SIGNED, length))
            assert answer.status == status, answer
            assert status == 200 or problem_type(answer) == "out-of-buffers"
        assert (service.good, service.wrong) == (2, [])


@pytest.mark.parametrize(
    "fields, reason",
    [
        ({"X-Amz-Content-Sha256": "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD"}, "none of the forms"),
        ({"X-Amz-Content-Sha256": "STREAMING-AWS4-HMAC-SHA256-EVENTS"}, "none of the forms"),
        ({"X-Amz-Content-Sha256": "UNSIGNED-PAYLOAD"}, "none of the forms"),
        ({"X-Amz-Decoded-Content-Length": "five"}, "not one number"),
        ({"X-Amz-Trailer": "x-amz-checksum-crc32"}, "do not agree on trailers"),
    ],
)
@pytest.mark.parametrize("payload", ["signed", "unsigned"])
def test_announcements_that_disagree_are_not_signed(gateway, payload, fields, reason):
    with Service(payload="chunks") as service:
        chunking(gateway, service, settings={"payload": payload})
        answer = put(gateway, HELLO, announced(SIGNED, 5) | fields)
        assert (answer.status, problem_type(answer)) == (400, "unsignable-request") and reason in answer.problem["detail"]
        with gateway.raw() as caller:
            lines = [f"{name}: {value}" for name, value in announced(SIGNED, 0).items()]
            answer = caller.send(get(gateway, "/a", *lines)).answer()
            assert (answer.status, problem_type(answer)) == (400, "unsignable-request"), answer
            assert "not there" in answer.problem["detail"]
            assert caller.send(get(gateway, "/good")).answer().status == 200
        assert (service.good, service.wrong) == (1, [])


def test_a_caller_that_leaves_half_way_leaves_nothing_whole(gateway):
    with Service(payload="chunks") as service:
        chunking(gateway, service)
        body = encoded(bytes(200_000), SIGNED)
        lines = [f"{name}: {value}" for name, value in announced(SIGNED, 200_000).items()]
        for kept in (10, 70_000, len(body) - 1):
            with gateway.raw() as caller:
                caller.send(get(gateway, "/a", *lines, f"Content-Length: {len(body)}", method="PUT") + body[:kept])
                eventually(lambda: len(service.seen) > service.cut, what="the upload's head")
            eventually(lambda: service.cut == len(service.seen), what="the upload's end")
        assert (service.good, service.wrong) == (0, [])


# --- Memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.alone
def test_a_gigabyte_in_constant_memory(gateway):
    size = 1 << 20
    part = b"%x;chunk-signature=%s\r\n%s\r\n" % (size, ZEROS, random.Random(1).randbytes(size))
    end = encoded(b"", SIGNED)
    with Service(payload="chunks") as service, contextlib.ExitStack() as stack:
        chunking(gateway, service, {"timeouts": {"response": "60s"}})
        assert put(gateway, HELLO, announced(SIGNED, 5)).status == 200
        forget(gateway)
        before = gateway.resident()
        caller = stack.enter_context(gateway.raw(timeout=60))
        lines = [f"{name}: {value}" for name, value in announced(SIGNED, LARGE).items()]
        length = LARGE // size * len(part) + len(end)
        caller.send(get(gateway, "/a", *lines, f"Content-Length: {length}", method="PUT"))
        for _ in range(LARGE // size):
            caller.send(part)
        answer = caller.send(end).answer()
        assert (answer.status, answer.body) == (200, b"good %d" % LARGE), service.wrong
        print(f"peak of resident memory: {before >> 10} kB before, {peak(gateway) >> 10} kB at most")
        assert peak(gateway) - before < 12 << 20
