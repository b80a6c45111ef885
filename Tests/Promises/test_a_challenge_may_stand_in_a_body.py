"""Promise: a challenge that only an answer's JSON body tells is found and answered; every other answer passes as it came, and none is
held for longer than 64 KiB or five seconds."""

import gzip
import json
import threading
import time
import zlib

import pytest

import http2_peers
from harness import call, eventually, free_port, together
from origins import Gone, Over1, Over2
from peers import nginx
from scripted import Scripted, answer, problem_type

SHAPES = ["length", "chunks", "octets", "gzip", "deflate", "late"]
PLAIN = {"error": {"code": "quota"}, "text": "ä" * 300}


def shaped(exchange, status, value, shape, kind="application/json", sent=None):
    """Sends a JSON value in one of the ways that bodies come; notes it before, because the other side may be done first."""
    data = json.dumps(value, ensure_ascii=False).encode()
    fields = [("content-type", kind), ("x-mark", "one"), ("x-mark", "two")]
    if shape == "gzip":
        data = gzip.compress(data)
    if shape == "deflate":
        data = zlib.compress(data)
    if shape in ("gzip", "deflate"):
        fields.append(("content-encoding", shape))
    if shape not in ("chunks", "octets"):
        fields.append(("content-length", str(len(data))))
    if sent is not None:
        sent.append(data)
    exchange.respond(status, fields)
    if shape == "octets":
        for index in range(len(data)):
            exchange.write(data[index : index + 1])
    elif shape == "late":
        exchange.write(data[:7])
        time.sleep(0.3)
        exchange.write(data[7:])
    else:
        exchange.write(data)
    exchange.end()


class Gate:
    """Wants `Gate t-N`; says so in a JSON body with a context of its own. `/plain/…` refuses without a challenge."""

    def __init__(self, version=1, status=401, own=None):
        self.version, self.status, self.own = version, status, own
        self.contexts, self.used, self.seen, self.sent, self.opened = [], [], [], [], 0
        self.release = threading.Event()
        if version == 2:
            self.server = http2_peers.Server(lambda stream: self.serve(Over2(stream)))
        else:
            self.server = Scripted(self.connection)

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *rest):
        self.release.set()
        return self.server.__exit__(*rest)

    @property
    def address(self):
        return self.server.address

    def connection(self, peer):
        self.opened += 1
        while True:
            try:
                self.serve(Over1(peer))
            except Gone:
                return

    def serve(self, exchange):
        body = b""
        while piece := exchange.read():
            body += piece
        token = dict(exchange.fields).get("authorization")
        self.seen.append((exchange.method, exchange.target, token, body))
        kind, _, shape = exchange.target[1:].partition("/")
        if self.own and self.own(self, exchange, kind, token):
            return
        if kind == "plain":
            shaped(exchange, self.status, PLAIN, shape, sent=self.sent)
        elif token in [f"Gate t-{count + 1}" for count in range(len(self.used))]:
            shaped(exchange, 200, {"got": body.decode()}, "length")
        else:
            shaped(exchange, self.status, self.challenge(), shape)

    def challenge(self):
        self.contexts.append(f"context-{len(self.contexts)}-{'x' * 40}")
        return {"error": {"code": "login", "gate": "north", "context": self.contexts[-1]}, "text": "ö" * 300}

    def issuer(self, peer):
        """Takes a context that a challenge has brought, once."""
        for request in peer.requests():
            asked = json.loads(request.body)
            if asked["context"] in self.contexts and asked["context"] not in self.used:
                self.used.append(asked["context"])
                peer.send(answer(json.dumps({"token": f"t-{len(self.used)}"}).encode()))
            else:
                peer.send(answer(b"{}", status=b"400 No"))


def through(gateway, gate, issuer, **challenge):
    rule = {
        "status": gate.status,
        "json": "/error/gate",
        "take": {"gate": {"json": "/error/gate"}, "context": {"json": "/error/context"}},
    }
    recipe = {
        "challenge": rule | challenge,
        "key": ["gate"],
        "steps": [
            {
                "name": "login",
                "post": f"http://{issuer.address}/login",
                "json": {"context": "{challenge.context}"},
                "take": {"token": {"json": "/token"}},
            }
        ],
        "token": "{login.token}",
        "inject": {"header": "Authorization", "value": "Gate {token}"},
    }
    route = gateway.route("only", gate.address) | {"http": {1: "1.1", 2: "2"}[gate.version]}
    gateway.config = gateway.frame({"threads": 1, "identities": {"only": {"recipe": recipe}}, "routes": [route]})
    return gateway.start()


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_found_however_the_body_comes(gateway, version, shape):
    with Gate(version) as gate, Scripted(gate.issuer) as issuer:
        through(gateway, gate, issuer)
        first = gateway.call("POST", f"/things/{shape}", b"a body")
        assert (first.status, first.json) == (200, {"got": "a body"})
        assert [token for _, _, token, _ in gate.seen] == [None, "Gate t-1"]
        for _ in range(3):
            assert gateway.get(f"/things/{shape}").status == 200
        assert len(gate.used) == 1


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_no_challenge_passes_as_it_came(gateway, version, shape):
    with Gate(version) as gate, Scripted(gate.issuer) as issuer:
        through(gateway, gate, issuer)
        for _ in range(2):
            received = gateway.get(f"/plain/{shape}")
            assert (received.status, received.body) == (401, gate.sent[-1])
            assert received.values("x-mark") == ["one", "two"]
            assert received.field("Content-Encoding") == (shape if shape in ("gzip", "deflate") else None)
            if version == 1:
                assert (received.field("Content-Length") is None) == (shape in ("chunks", "octets"))
        with http2_peers.Caller(gateway.listen) as caller:
            stream = caller.request("GET", f"/plain/{shape}")
            assert stream.head() == 401
            assert stream.body() == gate.sent[-1]
        assert gate.used == [] and gate.contexts == []


def test_an_answer_that_ends_with_its_connection(gateway):
    def closes(gate, exchange, kind, token):
        if token:
            return False
        data = json.dumps(gate.challenge() if kind == "things" else PLAIN).encode()
        exchange.peer.send(b"HTTP/1.1 401 No\r\nContent-Type: application/json\r\n\r\n" + data[:9])
        time.sleep(0.2)
        exchange.peer.send(data[9:])
        raise EOFError

    with Gate(own=closes) as gate, Scripted(gate.issuer) as issuer:
        through(gateway, gate, issuer)
        assert gateway.get("/plain/x").json == PLAIN
        assert gateway.get("/things/x").status == 200


def held_back(gate, exchange, kind, token):
    """Sends the first part of a challenge and the rest when told to."""
    if kind not in ("long", "endless", "html", "other", "fine"):
        return False
    data = json.dumps({"fill": "x" * (70_000 if kind == "long" else 20), **gate.challenge()}).encode()
    status = {"other": 400, "fine": 200}.get(kind, 401)
    exchange.respond(status, [("content-type", "text/html" if kind == "html" else "application/json")])
    exchange.write(data[:-10])
    gate.release.wait(30)
    exchange.write(data[-10:])
    exchange.end()
    return True


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kind", ["long", "endless", "html", "other", "fine"])
def test_nothing_is_held_beyond_its_bound(gateway, version, kind):
    """The caller has the answer's head while the end of its body is still to come: at once where it needs no look."""
    with Gate(version, own=held_back) as gate, Scripted(gate.issuer) as issuer:
        through(gateway, gate, issuer)
        begun = time.monotonic()
        with gateway.raw(timeout=20) as caller:
            caller.send(f"GET /{kind}/x HTTP/1.1\r\nHost: {gateway.listen}\r\n\r\n")
            status, _, _ = caller.head()
            waited = time.monotonic() - begun
            assert status == {"other": 400, "fine": 200}.get(kind, 401)
            assert (waited >= 4.9) == (kind == "endless"), waited
            assert not gate.release.is_set()
            gate.release.set()
            assert b"context-0" in caller._until(b"0\r\n\r\n")
        assert gate.used == []
        # The next request's challenge is found as ever.
        assert gateway.get("/things/length").status == 200
        if kind in ("long", "endless"):
            gateway.told(lambda event: "searched for a challenge" in event.get("reason", ""))
        else:
            assert "searched for a challenge" not in gateway.text()


def test_a_length_beyond_the_bound_is_not_held_at_all(gateway):
    def announced(gate, exchange, kind, token):
        if kind != "announced":
            return False
        data = json.dumps({"fill": "x" * 70_000, **gate.challenge()}).encode()
        exchange.respond(401, [("content-type", "application/json"), ("content-length", str(len(data)))])
        exchange.write(data[:1000])
        gate.release.wait(30)
        exchange.write(data[1000:])
        return True

    with Gate(own=announced) as gate, Scripted(gate.issuer) as issuer:
        through(gateway, gate, issuer)
        with gateway.raw(timeout=4) as caller:
            caller.send(f"GET /announced/x HTTP/1.1\r\nHost: {gateway.listen}\r\n\r\n")
            assert caller.head()[0] == 401
            gate.release.set()
            assert len(caller._exactly(70_000)) == 70_000


@pytest.mark.parametrize("version", [1, 2])
def test_a_body_that_breaks_off_is_a_502(gateway, version):
    def breaks(gate, exchange, kind, token):
        if kind != "breaks":
            return False
        exchange.respond(401, [("content-type", "application/json"), ("content-length", "100")])
        exchange.write(b'{"error":')
        exchange.abort()
        return True

    with Gate(version, own=breaks) as gate, Scripted(gate.issuer) as issuer:
        through(gateway, gate, issuer)
        for _ in range(2):
            assert problem_type(gateway.get("/breaks/x")) == "upstream-closed"
        assert gateway.get("/things/length").status == 200


@pytest.mark.parametrize(
    "coding, data",
    [
        ("br", b"\x0b\x02\x80{}\x03"),
        ("gzip", b"no gzip at all"),
        ("gzip", gzip.compress(b'{"error": {"gate": "north", "context": "' + b"x" * 10_000_000 + b'"}}')),
        ("gzip, gzip", gzip.compress(gzip.compress(b'{"error": {"gate": "north"}}'))),
    ],
    # The compressed data has the time in it, and workers that collect different names refuse to begin.
    ids=["unknown", "damaged", "larger-than-looked-at", "twice"],
)
def test_what_cannot_be_decoded_passes_untouched(gateway, coding, data):
    def coded(gate, exchange, kind, token):
        if kind != "coded":
            return False
        fields = [("content-type", "application/problem+json; charset=utf-8"), ("content-encoding", coding)]
        exchange.respond(401, [*fields, ("content-length", str(len(data)))])
        exchange.write(data)
        return True

    with Gate(own=coded) as gate, Scripted(gate.issuer) as issuer:
        through(gateway, gate, issuer)
        received = gateway.get("/coded/x")
        assert (received.status, received.body, received.field("Content-Encoding")) == (401, data, coding)
        assert gate.used == []


def test_a_scout_that_saw_too_much_opens_no_path(gateway):
    """Nobody knows whether the path is guarded, so the next request asks again, without a credential."""
    with Gate(own=held_back) as gate, Scripted(gate.issuer) as issuer:
        gate.release.set()
        through(gateway, gate, issuer)
        assert gateway.get("/long/x").status == 401
        assert gateway.get("/long/../long/y").status == 400
        # Below the same directory: had the path been learned as open, this would be the caller's 401.
        gate.own = None
        assert gateway.get("/long/length").status == 200


def test_many_callers_share_one_grant(gateway):
    with Gate() as gate, Scripted(gate.issuer) as issuer:
        through(gateway, gate, issuer)
        answers = together(30, lambda index: gateway.call("PUT", f"/things/late?{index}", b"%d" % index))
        assert [one.json["got"] for one in answers] == [str(index) for index in range(30)]
        assert len(gate.used) == 1


def test_a_caller_that_leaves_meanwhile_takes_nothing_along(gateway):
    with Gate(own=held_back) as gate, Scripted(gate.issuer) as issuer:
        through(gateway, gate, issuer)
        with gateway.raw() as caller:
            caller.send(f"GET /endless/x HTTP/1.1\r\nHost: {gateway.listen}\r\n\r\n")
            eventually(lambda: gate.seen, what="the request under way")
        gate.release.set()
        assert gateway.get("/things/length").status == 200


def test_nginx_compresses_its_refusals(gateway, tmp_path):
    """A real server: gzip as callers ask for it, in chunks, for a 403 (nginx compresses no 401)."""
    port = free_port()
    body = json.dumps({"error": {"gate": "north", "context": "context-of-nginx"}, "text": "y" * 2000})
    site = (
        "gzip on; gzip_types application/json; gzip_min_length 1;\n"
        f"server {{ listen 127.0.0.1:{port};\n"
        "  location / { default_type application/json;\n"
        f"    if ($http_authorization != 'Gate t-1') {{ return 403 '{body}'; }}\n"
        "    return 200 '{\"fine\": true}'; } }\n"
    )
    server = nginx(tmp_path / "nginx", site, [("127.0.0.1", port)])
    try:
        with Gate(status=403) as gate, Scripted(gate.issuer) as issuer:
            gate.contexts.append("context-of-nginx")
            through(gateway, gate, issuer)
            gateway.stop()
            gateway.config["routes"][0]["to"] = f"http://127.0.0.1:{port}"
            gateway.start()
            asks = {"Accept-Encoding": "gzip"}
            assert call(f"127.0.0.1:{port}", headers=asks).field("Content-Encoding") == "gzip"
            answer = gateway.get("/", headers=asks)
            assert answer.status == 200 and len(gate.used) == 1
    finally:
        server.close()
