"""Promise: where a signature covers the body, the body is there before anything is sent, and what is signed is what arrives: botocore
computes the signature of what the server has received."""

import contextlib
import hashlib
import socket
import threading
import time

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest

import http2_peers
from harness import eventually, together
from origins import Gone, Over1, Over2
from recipes import recipe
from scripted import Scripted, problem_type
from test_a_recipe_signs_each_request import AUTHORIZATION, KEY

LIMIT = 1 << 20


def fault(method, target, fields, body):
    """What is wrong with a request, to somebody who holds the key."""
    names = dict(fields)
    for name in ("authorization", "x-amz-date", "x-amz-content-sha256"):
        if sum(key == name for key, _ in fields) != 1:
            return f"not one {name}"
    if names["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
        return "another body"
    found = AUTHORIZATION.fullmatch(names["authorization"])
    if not found:
        return "another shape"
    host = names.get("host") or names[":authority"]
    shown = {"Host": host, "X-Amz-Date": names["x-amz-date"], "X-Amz-Content-Sha256": names["x-amz-content-sha256"]}
    request = botocore.awsrequest.AWSRequest(method=method, url=f"http://{host}{target}", headers=shown, data=body)
    request.context["timestamp"] = names["x-amz-date"]
    signer = botocore.auth.S3SigV4Auth(botocore.credentials.Credentials("AKIDEXAMPLE", KEY), "s3", "eu-central-1")
    wanted = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    return None if found[2] == wanted else "another signature"


class Storage:
    def __init__(self, version):
        self.version, self.bodies, self.heads = version, [], 0
        if version == 2:
            self.server = http2_peers.Server(lambda stream: self.serve(Over2(stream)))
        else:
            self.server = Scripted(self.connection)

    def connection(self, peer):
        with contextlib.suppress(EOFError, Gone):
            while True:
                self.serve(Over1(peer))

    def serve(self, exchange):
        self.heads += 1
        body = b""
        while piece := exchange.read():
            body += piece
        self.bodies.append(body)
        wrong = fault(exchange.method, exchange.target, exchange.fields, body)
        data = (wrong or f"good {len(body)}").encode()
        exchange.respond(403 if wrong else 200, [("content-length", str(len(data)))])
        exchange.write(data)
        exchange.end()


@contextlib.contextmanager
def storage(gateway, version=1, **route):
    server = Storage(version)
    with server.server:
        block = recipe(
            "aws-sigv4-body",
            {
                "https://storage.example.com": f"http://{server.server.address}",
                "file:/run/secrets/storage-secret-key": gateway.secret("storage-key", KEY),
            },
        )
        way = gateway.route("storage", server.server.address) | {"http": {1: "1.1", 2: "2"}[version]} | route
        gateway.config = gateway.frame({"threads": 1, "identities": {"storage": {"recipe": block}}, "routes": [way]})
        gateway.start()
        yield server


def pour(caller):
    """As much of an unfinished body as is taken."""
    with contextlib.suppress(OSError):
        caller.send(b"u" * 599_999)


def good(answer):
    return (answer.status, answer.body.partition(b" ")[0]) == (200, b"good")


@pytest.mark.parametrize("version", [1, 2])
def test_bodies_of_every_size_and_framing(gateway, version):
    with storage(gateway, version) as server:
        for size in (None, 0, 1, 15_000, 16_384, 17_000, 300_000, LIMIT):
            body = None if size is None else b"b" * size
            answer = gateway.call("PUT" if body is not None else "GET", "/bucket/key", body)
            assert (answer.status, answer.body) == (200, f"good {size or 0}".encode())
        for pieces in ([], [b"x"], [b"y" * 40_000] * 8, [b"%d" % (index % 10) for index in range(3000)]):
            assert good(gateway.call("PUT", "/bucket/key", iter(pieces)))
            assert server.bodies[-1] == b"".join(pieces)


@pytest.mark.parametrize("version", [1, 2])
def test_callers_of_http2(gateway, version):
    with storage(gateway, version) as server, http2_peers.Caller(gateway.listen) as caller:
        for size, announced in ((0, False), (0, True), (5, True), (5, False), (200_000, False), (LIMIT, True)):
            fields = [("content-length", str(size))] if announced else []
            stream = caller.request("PUT", "/bucket/key", fields, ended=False)
            if size:
                stream.write(b"c" * size)
            stream.end([("x-after", "1")] if size == 5 else ())
            assert (stream.head(), stream.body()) == (200, b"good %d" % size)
            assert server.bodies[-1] == b"c" * size


def test_a_larger_one_is_refused_and_never_sent(gateway):
    with storage(gateway, on_rejected={"max_body": "100KiB"}) as server:
        head = f"PUT /bucket/key HTTP/1.1\r\nHost: {gateway.listen}\r\n"
        chunked = head + "Transfer-Encoding: chunked\r\n\r\n"
        for request in (
            f"{head}Content-Length: 102401\r\n\r\n" + "d" * 102_401,
            chunked + ("9c40\r\n" + "e" * 40_000 + "\r\n") * 4 + "0\r\n\r\n",
            chunked + "1\r\nf\r\n" * 102_401 + "0\r\n\r\n",
        ):
            with gateway.raw() as caller:
                # The rest is read and thrown away for a second; who needs longer is cut off, and has the answer all the same.
                with contextlib.suppress(OSError):
                    caller.send(request)
                answer = caller.answer()
            assert (answer.status, problem_type(answer)) == (413, "big-body")
            assert "102400" in answer.problem["detail"]
        with http2_peers.Caller(gateway.listen) as caller:
            stream = caller.request("PUT", "/bucket/key", ended=False)
            with contextlib.suppress(http2_peers.Reset):
                stream.write(b"g" * 110_000)
            assert stream.head() == 413
        assert server.heads == 0
        assert good(gateway.call("PUT", "/bucket/key", b"h" * 102_400))


def test_nothing_is_sent_before_the_last_byte(gateway):
    with storage(gateway) as server, gateway.raw() as caller:
        caller.send(f"PUT /slow HTTP/1.1\r\nHost: {gateway.listen}\r\nContent-Length: 10\r\n\r\n12345")
        time.sleep(0.5)
        assert server.server.connections == 0
        caller.send("67890")
        assert good(caller.answer())
        # Two at once, the second behind the first's body.
        one = f"PUT /p HTTP/1.1\r\nHost: {gateway.listen}\r\nContent-Length: 3\r\n\r\n"
        caller.send(one + "abc" + one + "xyz")
        assert good(caller.answer()) and good(caller.answer())
        assert server.bodies == [b"1234567890", b"abc", b"xyz"]


def test_a_caller_that_waits_for_100_is_told_to_go_on(gateway):
    with storage(gateway, on_rejected={"max_body": "1KiB"}) as server:
        head = f"PUT /e HTTP/1.1\r\nHost: {gateway.listen}\r\nExpect: 100-continue\r\nContent-Length: "
        with gateway.raw() as caller:
            caller.send(head + "4\r\n\r\n")
            assert caller.head()[0] == 100
            caller.send("body")
            # One interim answer, not one more of the upstream's.
            assert caller.head()[0] == 200
            assert caller._exactly(6) == b"good 4"
        with gateway.raw() as caller:
            caller.send(head + "2000\r\n\r\n")
            assert caller.head()[0] == 413
        assert server.heads == 1


@pytest.mark.parametrize("how", ["half", "reset"])
def test_a_body_that_never_ends_is_never_sent(gateway, how):
    with storage(gateway, timeouts={"idle": "1s"}) as server:
        for framing, part in (("Content-Length: 10", "123"), ("Transfer-Encoding: chunked", "5\r\n123")):
            with gateway.raw() as caller:
                caller.send(f"PUT /h HTTP/1.1\r\nHost: {gateway.listen}\r\n{framing}\r\n\r\n{part}")
                if how == "half":
                    caller.half_close()
                    assert caller.answer().status == 400
        with gateway.raw() as caller:
            caller.send(f"PUT /s HTTP/1.1\r\nHost: {gateway.listen}\r\nContent-Length: 10\r\n\r\n123")
            assert problem_type(caller.answer()) == "slow-body"
        with gateway.raw() as caller:
            caller.send(f"PUT /b HTTP/1.1\r\nHost: {gateway.listen}\r\nTransfer-Encoding: chunked\r\n\r\nno\r\n")
            assert caller.answer().status == 400
        assert server.heads == 0
        assert good(gateway.call("PUT", "/good", b"1"))


def test_a_connection_that_died_meanwhile_costs_nobody_his_request(gateway):
    """The body is still there, so it goes out once more."""
    with storage(gateway) as server:
        assert good(gateway.call("PUT", "/a", b"1"))
        for peer in server.server.peers:
            peer.socket.close()
        assert good(gateway.call("PUT", "/b", b"x" * 50_000))


def test_many_at_once(gateway):
    with storage(gateway):
        sizes = [index * 9_000 for index in range(12)]
        assert all(good(a) for a in together(12, lambda i: gateway.call("PUT", f"/o/{i}", iter([b"z" * sizes[i]]))))


def test_the_memory_for_bodies_has_a_bound(gateway):
    """Bodies that nobody finishes use it up; then there is an answer, and afterwards room again."""
    with storage(gateway) as server:
        gateway.config["limits"] = {"replay_memory": "4MiB"}
        gateway.stop()
        gateway.start()
        open_ends = [gateway.raw() for _ in range(10)]
        for caller in open_ends:
            caller.send(f"PUT /u HTTP/1.1\r\nHost: {gateway.listen}\r\nContent-Length: 600000\r\n\r\n")
            threading.Thread(target=pour, args=(caller,), daemon=True).start()
        answer = eventually(
            lambda: (found := gateway.call("PUT", "/v", b"v" * 700_000)).status == 503 and found, what="no memory left"
        )
        assert answer.field("Retry-After") == "1"
        for caller in open_ends:
            caller.socket.shutdown(socket.SHUT_RDWR)
            caller.socket.close()
        eventually(lambda: good(gateway.call("PUT", "/v", b"v" * 700_000)), what="room again")
        assert b"u" * 599_999 not in server.bodies
