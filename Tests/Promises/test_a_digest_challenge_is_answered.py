"""Promise: a server that asks for HTTP Digest is answered, and neither it nor anybody on the way sees the password."""

import contextlib
import json
import signal
import time
import types

import pytest
from digest_servers import PASSWORD, USER, Apache, Lighttpd, serving

from harness import eventually, together
from http2_peers import Server
from scripted import Scripted, answer, identified, problem_type
from strict_digest import Strict


def digest(gateway, server, password=PASSWORD, route=None, **settings):
    block = {"username": USER, "password": gateway.secret("password", password), **settings}
    return identified(gateway, server, {"digest": block}, route).start()


MD5 = {"algorithms": ["md5"]}


def test_apache_with_a_nonce_that_lasts(gateway, tmp_path):
    with serving(Apache, tmp_path) as server:
        digest(gateway, server, **MD5)
        for _ in range(5):
            answer = gateway.get("/guarded/page")
            assert (answer.status, answer.body) == (200, b"the page of guarded"), f"{answer}\n{gateway.text()}"
            assert answer.field("Authentication-Info") is None
        eventually(lambda: len(server.asked()) == 6, what="the log")
        # Bare once, and from then on with the next number each.
        assert server.statuses() == [401] + [200] * 5 and server.numbers() == [1, 2, 3, 4, 5]


def test_apache_with_a_nonce_for_each_answer(gateway, tmp_path):
    with serving(Apache, tmp_path) as server:
        digest(gateway, server, **MD5)
        for _ in range(5):
            assert gateway.get("/once/page").status == 200
        eventually(lambda: len(server.asked()) == 6, what="the log")
        # The answer names the nonce of the next request (`nextnonce`), so that none is refused.
        assert server.statuses() == [401] + [200] * 5 and server.numbers() == [1] * 5


@pytest.mark.parametrize("userhash", [False, True])
@pytest.mark.parametrize("algorithms", ["SHA-256", "SHA-512-256", "SHA-256|MD5"])
def test_lighttpd(gateway, tmp_path, algorithms, userhash):
    with serving(Lighttpd, tmp_path, algorithms=algorithms, userhash=userhash) as server:
        digest(gateway, server)
        for _ in range(3):
            answer = gateway.get("/guarded/page?q=1")
            assert answer.status == 200, f"{answer}\n{gateway.text()}\n{server.asked()}"
        eventually(lambda: len(server.asked()) == 4, what="the log")
        assert server.statuses() == [401] + [200] * 3
        assert all((USER in rest) != userhash for status, rest in server.asked() if status == 200)


def test_md5_is_answered_only_where_it_is_named(gateway, tmp_path):
    with serving(Apache, tmp_path) as server:
        digest(gateway, server)
        answer = gateway.get("/guarded/page")
        assert answer.status == 401 and "Digest" in answer.field("WWW-Authenticate")
        gateway.told(lambda event: "offers md5 alone, which 'algorithms' does not name" in event.get("reason", ""))
        assert server.numbers() == []


def test_a_wrong_password_is_tried_once(gateway, tmp_path):
    with serving(Apache, tmp_path) as server:
        digest(gateway, server, "another-password", **MD5)
        assert gateway.get("/guarded/page").status == 502
        for _ in range(3):
            assert problem_type(gateway.get("/guarded/page")) == "credential-quarantined"
        gateway.kill()
        gateway.start()
        assert problem_type(gateway.get("/guarded/page")) == "credential-quarantined"
        assert server.numbers() == [1]


# --- A strict server, for what no server of Debian does -----------------------------------------------------------------


@contextlib.contextmanager
def strict(gateway, settings=None, password=PASSWORD, route=None, **habits):
    server = Strict(**habits)
    with Scripted(server) as upstream:
        digest(gateway, upstream, password, route, **({"username": server.user} | (settings or {})))
        yield server


ALL = {"algorithms": ["sha-512-256", "sha-256", "md5"]}


@pytest.mark.parametrize("session", [False, True], ids=["", "sess"])
@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256", "SHA-512-256"])
def test_every_algorithm_in_order(gateway, algorithm, session):
    with strict(gateway, ALL, algorithm=algorithm, session=session, proves=True) as server:
        for _ in range(4):
            assert gateway.get("/a?b=%20c").status == 200, gateway.text()
        assert (len(server.taken), server.wrong, server.stale, server.made) == (4, [], 0, 1)


@pytest.mark.parametrize(
    "habit",
    [
        {"qop": None, "algorithm": "MD5"},
        {"qop": "auth"},
        {"qop": '"auth-int,auth"'},
        {"qop": '"auth, something-new"'},
        {"opaque": None},
        {"names_algorithm": False, "algorithm": "MD5"},
        {"realm": 'a \\"quoted\\" one'},
        {"userhash": True, "user": "j\u00e4s\u00f8n"},
        {"charset": True, "user": "j\u00e4s\u00f8n d\u014d\u20ac"},
        {"user": "j\u00e4s\u00f8n"},
        {"user": 'a "quoted\\ user'},
        {"next_nonce": True, "proves": True},
        {"next_nonce": True, "session": True},
    ],
    ids=lambda habit: "-".join(habit),
)
def test_habits_of_servers(gateway, habit):
    with strict(gateway, ALL, **habit) as server:
        for _ in range(3):
            assert gateway.get("/a").status == 200, gateway.text()
        assert (len(server.taken), server.wrong, server.stale) == (3, [], 0)


@pytest.mark.parametrize("says_stale", [True, False])
def test_a_nonce_that_is_too_old_is_no_refusal(gateway, says_stale):
    """Every second request meets a 401, and nobody sees one."""
    with strict(gateway, lasts=1, says_stale=says_stale) as server:
        for _ in range(10):
            assert gateway.get("/a").status == 200, gateway.text()
        assert len(server.taken) == 10 and server.wrong == [] and server.stale == 9


def test_a_body_is_sent_again_with_the_nonce(gateway):
    with strict(gateway, lasts=1) as server:
        for number in range(4):
            assert gateway.call("POST", "/a", b"body %d" % number).status == 200
        assert [request.body for request in server.taken] == [b"body %d" % number for number in range(4)]


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256", "SHA-512-256"])
@pytest.mark.parametrize("body", [b"", b"some body", [b"in ", b"chunks"], b"x" * 60000], ids=["none", "short", "chunked", "long"])
def test_a_body_is_covered(gateway, algorithm, body):
    with strict(gateway, ALL | {"qop": ["auth", "auth-int"]}, algorithm=algorithm, qop='"auth,auth-int"') as server:
        for _ in range(3):
            assert gateway.call("POST", "/a", iter(body) if isinstance(body, list) else body).status == 200, gateway.text()
        assert all("qop=auth-int" in request.field("Authorization") for request in server.taken) and server.wrong == []


def test_many_callers_share_no_number(gateway):
    with strict(gateway) as server:
        assert all(answer.status == 200 for answer in together(60, lambda number: gateway.get(f"/{number}")))
        assert len(server.taken) == 60 and server.wrong == []


def test_over_http2_the_connection_is_the_shared_one(gateway):
    strict = Strict(proves=True)
    with Server(strict.stream) as server:
        block = {"username": USER, "password": gateway.secret("password", PASSWORD)}
        identified(gateway, server, {"digest": block}, {"http": "2"}, threads=1).start()
        for number in range(4):
            assert gateway.call("POST", f"/{number}", b"a body").status == 200, gateway.text()
        assert (len(strict.taken), strict.wrong, strict.stale, strict.made) == (4, [], 0, 1)
        assert all(answer.status == 200 for answer in together(40, lambda number: gateway.get(f"/{number}")))
        assert (len(strict.taken), strict.wrong, strict.stale, len(server.connections)) == (44, [], 0, 1)


@pytest.mark.parametrize("bare_refusal", [False, True])
def test_a_refusal_without_words_counts_all_the_same(gateway, bare_refusal):
    with strict(gateway, password="another-password", bare_refusal=bare_refusal) as server:
        assert gateway.get("/a").status == 502
        assert problem_type(gateway.get("/a")) == "credential-quarantined"
        assert len(server.wrong) == 1


@pytest.mark.parametrize("status", [b"400 No", b"407 No", b"429 No", b"500 No"])
def test_an_error_on_the_way_proves_no_password(gateway, status):
    strict = Strict()
    refusing = []

    def script(peer):
        for request in peer.requests():
            if request.field("Authorization") and not refusing:
                refusing.append(request)
                peer.send(answer(b"no", status=status))
                continue
            found, body, fields = strict.answer(request, peer.__dict__.setdefault("digest", {"nonce": None, "uses": {}}))
            lines = [f"{name}: {value}".encode() for name, value in fields]
            peer.send(answer(body, *lines, status=b"200 OK" if found == 200 else b"401 No"))

    with Scripted(script) as upstream:
        digest(gateway, upstream, "another-password")
        assert gateway.get("/a").status == int(status[:3])
        assert gateway.get("/a").status == 502
        assert problem_type(gateway.get("/a")) == "credential-quarantined"
        assert len(strict.wrong) == 1


def test_a_new_password_answers_nothing_older(gateway, tmp_path):
    """A nonce that is remembered would be answered first, and nobody judges that: each such answer is an attempt more at the server."""
    with serving(Apache, tmp_path) as server:
        digest(gateway, server, **MD5)
        for _ in range(2):
            assert gateway.get("/guarded/page").status == 200
        (gateway.folder / "password").write_text("another-password")
        gateway.secrets.append("another-password")
        gateway.process.send_signal(signal.SIGHUP)
        eventually(lambda: gateway.ask("/readyz").json["configuration"]["edition"] == 2, what="the reload")
        # The new password is on trial then, and an open page proves nothing.
        eventually(lambda: gateway.get("/open/page").status == 200 and not server.asked()[-1][1].startswith("Digest"), what="a bare request")
        assert gateway.get("/guarded/page").status == 502
        assert problem_type(gateway.get("/guarded/page")) == "credential-quarantined"
        assert server.statuses().count(401) == 3 and server.numbers() == [1, 2, 1]


def test_two_users_of_one_server_answer_their_own_challenges(gateway):
    with Scripted(strict := Strict()) as upstream:
        secret = gateway.secret("password", PASSWORD)
        wrong = gateway.secret("wrong", "another-password")
        gateway.config = gateway.frame(
            {
                "threads": 1,
                "identities": {
                    "right": {"digest": {"username": USER, "password": secret}},
                    "wrong": {"digest": {"username": USER, "password": wrong}},
                },
                "routes": [
                    gateway.route("right", upstream.address) | {"match": {"path": "/right/"}},
                    gateway.route("wrong", upstream.address) | {"match": {"path": "/wrong/"}},
                ],
            }
        )
        gateway.start()
        assert gateway.get("/right/a").status == 200
        assert gateway.get("/wrong/a").status == 502
        for _ in range(3):
            assert gateway.get("/right/a").status == 200
            assert problem_type(gateway.get("/wrong/a")) == "credential-quarantined"
        assert len(strict.wrong) == 1 and strict.stale == 0


def test_two_servers_that_share_no_nonces(gateway, tmp_path):
    """The answer goes where the challenge came from, although the next request would go to the other one."""
    with contextlib.ExitStack() as both:
        servers = [both.enter_context(serving(Apache, tmp_path / name)) for name in "ab"]
        block = {"username": USER, "password": gateway.secret("password", PASSWORD), **MD5}
        route = {"addresses": [server.address for server in servers], "to": "http://archive.example", "allow_cleartext": True}
        identified(gateway, servers[0], {"digest": block}, route, threads=1).start()
        assert [gateway.get("/guarded/page").status for _ in range(10)] == [200] * 10
        eventually(lambda: sum(len(server.asked()) for server in servers) >= 12, what="the logs")
        assert all(server.numbers() for server in servers)


def test_octets_that_are_no_text_are_answered_as_they_are(gateway):
    with strict(gateway) as server:
        with gateway.raw() as caller:
            caller.send(b"GET /caf\xe9 HTTP/1.1\r\nHost: " + gateway.listen.encode() + b"\r\n\r\n")
            assert caller.answer().status == 200
        assert server.wrong == []


def test_a_401_in_pieces_is_answered_on_its_connection(gateway):
    strict = Strict()

    def script(peer):
        state = {"nonce": None, "uses": {}}
        for request in peer.requests():
            status, body, fields = strict.answer(request, state)
            lines = [f"{name}: {value}".encode() for name, value in fields]
            head, _, rest = answer(body, *lines, status=b"200 OK" if status == 200 else b"401 No").partition(b"\r\n\r\n")
            peer.send(head + b"\r\n\r\n")
            time.sleep(0.05)
            peer.send(rest)

    with Scripted(script) as upstream:
        digest(gateway, upstream)
        assert [gateway.get("/a").status for _ in range(3)] == [200] * 3
        assert upstream.connections == 1 and (strict.wrong, strict.stale) == ([], 0)


def one_request_each(strict):
    """A connection is ended without a word under its second request."""
    shared = {"nonce": None, "uses": {}}

    def script(peer):
        for number, request in enumerate(peer.requests()):
            if number:
                return
            status, body, fields = strict.answer(request, shared)
            lines = [f"{name}: {value}".encode() for name, value in fields]
            peer.send(answer(body, *lines, status=b"200 OK" if status == 200 else b"401 No"))

    return script


def test_a_server_that_ends_its_connections_without_a_word(gateway):
    strict = Strict()
    with Scripted(one_request_each(strict)) as upstream:
        digest(gateway, upstream)
        assert [gateway.get("/a").status for _ in range(5)] == [200] * 5
        assert strict.wrong == []


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_such_a_server_is_not_asked_for_ever(gateway, method):
    strict = Strict(password="another one")
    with Scripted(one_request_each(strict)) as upstream:
        digest(gateway, upstream)
        statuses = [gateway.call(method, "/a", b"body" if method == "POST" else None).status for _ in range(8)]
        assert (statuses[0], statuses[-1]) == (502, 503) and len(strict.wrong) <= 3, (statuses, strict.wrong)


@pytest.mark.parametrize("says_stale", [True, False])
def test_a_connection_that_was_lost_once_is_no_habit(gateway, says_stale):
    """Its server knows nonces by connection, so that none of them can be answered elsewhere."""
    strict, losses = Strict(says_stale=says_stale), [1]

    def script(peer):
        state = {"nonce": None, "uses": {}}
        for request in peer.requests():
            if request.field("Authorization") and losses:
                losses.clear()
                return
            status, body, fields = strict.answer(request, state)
            lines = [f"{name}: {value}".encode() for name, value in fields]
            # Each connection is its caller's last: the next request begins without a nonce, or with one that is not known here.
            lines += [b"Connection: close"] * (status == 200)
            peer.send(answer(body, *lines, status=b"200 OK" if status == 200 else b"401 No"))

    with Scripted(script) as upstream:
        digest(gateway, upstream)
        assert [gateway.get("/a").status for _ in range(5)] == [200] * 5, gateway.text()
        assert not losses and strict.wrong == []


@pytest.mark.parametrize("large", ["pass", "expect_continue", "probe_head"])
@pytest.mark.parametrize("chunked", [False, True])
def test_an_upload_that_cannot_be_kept_is_the_first_request(gateway, tmp_path, large, chunked):
    with serving(Apache, tmp_path) as server:
        digest(gateway, server, route={"on_rejected": {"max_body": "1KiB", "large_body": large}}, **MD5)
        body = b"x" * 300000
        answer = gateway.call("PUT", "/guarded/page", iter([body[:200000], body[200000:]]) if chunked else body)
        # The server has no method PUT; what counts is that it has taken the answer.
        assert answer.status == 405, f"{answer}\n{server.asked()}"
        assert gateway.get("/guarded/page").status == 200


def test_a_route_may_count_403_as_a_refusal(gateway):
    def script(peer):
        challenge = b'WWW-Authenticate: Digest realm="r", nonce="n", qop="auth", algorithm=SHA-256'
        for request in peer.requests():
            asked.append(request.field("Authorization"))
            peer.send(answer(b"no", *([] if asked[-1] else [challenge]), status=b"403 No" if asked[-1] else b"401 No"))

    asked = []
    with Scripted(script) as upstream:
        digest(gateway, upstream, route={"on_rejected": {"statuses": [401, 403]}})
        assert gateway.get("/a").status == 502
        assert problem_type(gateway.get("/a")) == "credential-quarantined"
        assert sum(value is not None for value in asked) == 1


def test_a_route_that_sends_nothing_again_is_refused(gateway):
    block = {"username": USER, "password": gateway.secret("password", PASSWORD)}
    identified(gateway, types.SimpleNamespace(address="127.0.0.1:9"), {"digest": block}, {"on_rejected": {"replay": "never"}})
    gateway.file.write_text(json.dumps(gateway.config))
    status, out, errors = gateway.command("check")
    assert status == 78 and "no challenge of 'digest' can be answered" in out + errors


def test_an_open_page_proves_no_password(gateway):
    with strict(gateway, password="another-password") as server:
        assert [gateway.get("/open").status for _ in range(3)] == [200] * 3
        assert server.open == 3 and server.wrong == []
        assert gateway.get("/a").status == 502
        assert problem_type(gateway.get("/open")) == "credential-quarantined"
        assert len(server.wrong) == 1


def test_a_server_that_does_not_know_the_password_is_found_out(gateway):
    with strict(gateway, forges=True) as server:
        answer = gateway.get("/a")
        assert answer.status == 502 and "does not prove that it knows the password" in answer.problem["detail"]
        assert len(server.taken) == 1


def test_another_realm_is_not_answered(gateway):
    with strict(gateway, {"realm": "the other archive"}) as server:
        assert gateway.get("/a").status == 401
        gateway.told(lambda event: "another realm" in event.get("reason", ""))
        assert server.taken == server.wrong == []
