"""Promise: on a route with `answers: conceal` what is secret in a signed request does not come back and nothing else is touched, and what
cannot be looked into is not asked for or refused."""

import base64
import gzip
import hashlib
import json

import pytest

from echoes import SECRET, shows
from scripted import Scripted, get, identified, problem_type
from wire import call

CONCEAL = {"answers": "conceal"}


def start(gateway, upstream):
    block = {"static": {"value": gateway.secret("value", SECRET), "prefix": "Bearer "}}
    return identified(gateway, upstream, block, CONCEAL).start()


# --- Signatures --------------------------------------------------------------------------------------------------------


def signing(gateway, upstream, sign, inject):
    secret = {"value": gateway.secret("key", SECRET), "to": f"http://{upstream.address}"}
    recipe = {"secrets": {"key": secret}, "sign": sign, "inject": [{"header": name, "value": value} for name, value in inject.items()]}
    return identified(gateway, upstream, {"recipe": recipe}, CONCEAL).start()


def test_a_secret_within_the_fields_of_a_signed_request(gateway):
    """Alone among other texts, encoded, and in a cookie."""
    fields = {
        "X-Auth": "id=7;key={secret.key};at={sign.at}",
        "X-Encoded": "Key {'svc:' secret.key | base64}",
        "Cookie": "sid={secret.key | url}; lang=en",
    }

    def script(peer):
        for request in peer.requests():
            body = json.dumps({"key": SECRET, "user": f"svc:{SECRET}", "head": request.fields}).encode()
            peer.send(
                b"HTTP/1.1 200 OK\r\nX-Key: %s\r\nSet-Cookie: sid=the-next-one\r\nSet-Cookie: theme=dark\r\nContent-Length: %d\r\n\r\n%s"
                % (SECRET.encode(), len(body), body)
            )

    with Scripted(script) as upstream:
        signing(gateway, upstream, {"at": "{now}"}, fields)
        answer = call(gateway.listen)
        assert SECRET in upstream.requests[0].field("X-Auth")
        assert answer.status == 200 and not shows(answer.body) and b"id=7;key=" in answer.body, answer
        assert base64.b64encode(f"svc:{SECRET}".encode()) not in answer.body
        assert not shows(answer.field("X-Key")) and answer.values("Set-Cookie") == ["theme=dark"]


def test_what_is_no_secret_of_a_signed_request_stays(gateway):
    """Times above all: they stand in many answers."""

    def script(peer):
        for request in peer.requests():
            time, signature = request.field("X-Time"), request.field("X-Signature")
            body = json.dumps({"time": int(time), "until": int(time) + 60, "path": request.field("X-Path"), "signature": signature})
            peer.send(f"HTTP/1.1 200 OK\r\nX-Time: {time}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())

    with Scripted(script) as upstream:
        sign = {"text": "{request.method} {now}", "sig": "{sign.text | hmac_sha256(secret.key) | hex}"}
        signing(gateway, upstream, sign, {"X-Signature": "v1={sign.sig}", "X-Time": "{now}", "X-Path": "{request.path}"})
        answer = call(gateway.listen, path="/a/long/path")
        sent = upstream.requests[0]
        assert answer.field("X-Time") == sent.field("X-Time") and answer.json["time"] == int(sent.field("X-Time"))
        assert answer.json["path"] == "/a/long/path" and answer.json["signature"] == "v1=" + "*" * 64


def test_hashes_and_dates_of_a_request_to_aws_stay(gateway):
    """Many answers have the hash of an empty body in them."""
    nothing, session = hashlib.sha256().hexdigest(), "FQoGZXIvYXdzEJr//////token+of=a=session"

    def script(peer):
        for request in peer.requests():
            signature = request.field("Authorization").partition("Signature=")[2]
            parts = [nothing, request.field("X-Amz-Date"), request.field("X-Amz-Security-Token"), signature]
            body = "\n".join(parts).encode()
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with Scripted(script) as upstream:
        block = {
            "aws_sigv4": {
                "access_key_id": gateway.secret("id", "AKIDEXAMPLE12345"),
                "secret_access_key": gateway.secret("secret", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
                "session_token": gateway.secret("session", session),
                "region": "us-east-1",
                "service": "s3",
            }
        }
        identified(gateway, upstream, block, CONCEAL | {"paths": "raw"}).start()
        answer = call(gateway.listen, path="/SHA256SUMS")
        assert answer.status == 200, answer
        assert answer.body.decode().split("\n") == [nothing, upstream.requests[0].field("X-Amz-Date"), "*" * len(session), "*" * 64]


# --- What cannot be looked into ----------------------------------------------------------------------------------------


def test_no_coding_and_no_range_is_asked_for(gateway):
    def script(peer):
        for request in peer.requests():
            body = request.head + b"\r\n"
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with Scripted(script) as upstream:
        start(gateway, upstream)
        asked = {"Range": "bytes=0-9", "If-Range": '"v1"', "Request-Range": "bytes=0-9", "X-Ms-Range": "bytes=0-9"}
        asked |= {"A-IM": "gzip", "Grpc-Accept-Encoding": "gzip"}
        assert call(gateway.listen, headers={"Accept-Encoding": "gzip, br"} | asked).status == 200
        request = upstream.requests[0]
        assert request.field("Accept-Encoding") == "identity"
        assert not any(request.field(name) for name in asked), request.head


@pytest.mark.parametrize("coding", ["gzip", "br", "identity, gzip"])
def test_a_coding_that_nobody_asked_for_is_refused(gateway, coding):
    def script(peer):
        for request in peer.requests():
            body = gzip.compress(request.head)
            peer.send(
                b"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s" % (coding.encode(), len(body), body)
            )

    with Scripted(script) as upstream:
        start(gateway, upstream)
        answer = call(gateway.listen)
        assert answer.status == 502 and problem_type(answer) == "upstream-encoded", answer


@pytest.mark.parametrize("head", ["206 Part\r\nContent-Range: bytes 0-9/99", "226 IM Used\r\nIM: vcdiff", "200 OK\r\nGrpc-Encoding: gzip"])
def test_a_part_that_nobody_asked_for_is_refused(gateway, head):
    def script(peer):
        for request in peer.requests():
            peer.send(f"HTTP/1.1 {head}\r\nContent-Length: 10\r\n\r\n0123456789".encode())

    with Scripted(script) as upstream:
        start(gateway, upstream)
        answer = call(gateway.listen)
        assert answer.status == 502 and problem_type(answer) == "upstream-encoded", answer


def test_a_request_stays_in_http(gateway):
    def script(peer):
        for request in peer.requests():
            body = json.dumps(request.fields).encode()
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with Scripted(script) as upstream:
        start(gateway, upstream)
        with gateway.raw() as raw:
            answer = raw.send(
                get(gateway, "/", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
            ).answer()
        assert answer.status == 200 and not shows(answer.body)
        assert upstream.requests[0].field("Upgrade") is None


def test_hexadecimal_is_out_of_reach(gateway):
    """As the documentation says."""

    def script(peer):
        for request in peer.requests():
            body = request.field("Authorization").encode().hex().encode()
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with Scripted(script) as upstream:
        start(gateway, upstream)
        assert bytes.fromhex(call(gateway.listen).body.decode()) == f"Bearer {SECRET}".encode()
