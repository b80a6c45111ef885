"""Promise: where a server asks for it, the answer to a Digest challenge covers the request's body (`auth-int`), in the algorithm that it offers.
Against httpbin, whose server nobody here wrote.

httpbin has habits that RFC 7616 does not speak of. It offers SHA-512, which is no algorithm of the RFC (that is SHA-512-256). It remembers no
nonce and counts no numbers, so that any nonce with a right response is good, and it takes algorithm and `qop` from the answer, whatever it
offered. It computes with the path that it has decoded, and not with the target that was sent; a query ends in its 500. It serves GET alone, so
that its bodies are those of a GET, and what it reads of a body of type `application/x-www-form-urlencoded` is empty. What it wants to know of
its last nonce it keeps in the caller's cookies.
"""

import contextlib
import hashlib
import threading

import pytest
from httpbin import app
from strict_digest import parameters
from werkzeug.serving import WSGIRequestHandler, make_server

from harness import call, eventually
from scripted import identified, problem_type

USER, PASSWORD = "svc-batch", "pass-w0rd"


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_):
        pass


class Bin:
    """httpbin in this process; the answers to its challenges, as they came, and its statuses."""

    def __init__(self):
        self.seen = []
        self.server = make_server("127.0.0.1", 0, self.serve, threaded=True, request_handler=Quiet)
        self.address = f"127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def serve(self, environment, start):
        def starting(status, fields, *rest):
            self.seen.append((environment.get("HTTP_AUTHORIZATION"), int(status.split()[0])))
            return start(status, fields, *rest)

        return app(environment, starting)

    def close(self):
        self.server.shutdown()
        self.thread.join(10)
        self.server.server_close()

    @property
    def last(self):
        return parameters(self.seen[-1][0].partition(" ")[2])


@pytest.fixture
def bin():
    with contextlib.closing(Bin()) as running:
        yield running


def path(qop):
    """The password stands in httpbin's path, and so in the route; callers write the rest."""
    return f"/digest-auth/{qop}/{USER}/{PASSWORD}"


def digest(gateway, server, asked, password=PASSWORD, **settings):
    block = {"username": USER, "password": gateway.secret("password", password), **settings}
    return identified(gateway, server, {"digest": block}, {"to": f"http://{server.address}{path(asked)}"}).start()


def get(gateway, algorithm, body=b""):
    return call(gateway.listen, "GET", "/" + algorithm, body or None, {"Content-Type": "text/plain"} if body else {})


BODIES = [b"", b"x", b'{"a": [1, 2]}', bytes(range(256)) * 200, b"a" * 300_000]


@pytest.mark.parametrize("algorithm", ["SHA-256", "MD5"])
@pytest.mark.parametrize("qop", ["auth", "auth-int"])
def test_a_body_is_covered_where_it_is_asked_for(gateway, bin, qop, algorithm):
    digest(gateway, bin, qop, algorithms=["sha-256", "md5"], qop=["auth", "auth-int"])
    for number, body in enumerate(BODIES, 1):
        answer = get(gateway, algorithm, body)
        assert answer.status == 200 and answer.json == {"authenticated": True, "user": USER}, f"{answer}\n{gateway.text()}"
        assert (bin.last["qop"], bin.last["algorithm"]) == (qop, algorithm)
        assert int(bin.last["nc"], 16) == number
    # Bare once; from then on each request is served at once, with a response of its own.
    assert [status for _, status in bin.seen] == [401] + [200] * len(BODIES)
    assert len({parameters(value.partition(" ")[2])["response"] for value, _ in bin.seen[1:]}) == len(BODIES)


def test_another_body_is_refused(gateway, bin):
    """httpbin looks at the body indeed: the answer that it took is none to another body."""
    digest(gateway, bin, "auth-int", qop=["auth-int"])
    assert get(gateway, "SHA-256", b"mine").status == 200
    taken, value = bin.last, bin.seen[-1][0]
    for body, status in [(b"mine", 200), (b"yours", 401), (b"", 401)]:
        fields = {"Authorization": value, "Content-Type": "text/plain"}
        assert call(bin.address, "GET", path("auth-int") + "/SHA-256", body or None, fields).status == status, body

    def hashed(*parts):
        return hashlib.sha256(":".join(parts).encode()).hexdigest()

    key = hashed(USER, taken["realm"], PASSWORD)
    request = hashed("GET", taken["uri"], hashlib.sha256(b"mine").hexdigest())
    assert taken["response"] == hashed(key, taken["nonce"], taken["nc"], taken["cnonce"], "auth-int", request)


@pytest.mark.parametrize(
    ("qop", "algorithm", "reason"),
    [
        ("auth", "SHA-512", "an algorithm that is not known"),
        ("auth-int", "SHA-256", "offers auth-int alone, which 'qop' does not name"),
        ("auth", "MD5", "offers md5 alone, which 'algorithms' does not name"),
    ],
)
def test_what_nobody_allows_is_not_answered(gateway, bin, qop, algorithm, reason):
    digest(gateway, bin, qop)
    answer = get(gateway, algorithm)
    assert answer.status == 401 and answer.field("WWW-Authenticate").startswith("Digest "), answer
    assert bin.seen == [(None, 401)]
    eventually(lambda: reason in gateway.text(), what="the reason in the log")


def test_a_wrong_password_is_tried_once(gateway, bin):
    digest(gateway, bin, "auth-int", password="another", qop=["auth-int"])
    assert get(gateway, "SHA-256", b"x").status == 502
    assert problem_type(get(gateway, "SHA-256", b"x")) == "credential-quarantined"
    assert [bool(value) for value, _ in bin.seen] == [False, True]
