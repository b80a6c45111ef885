"""Promise: a server that asks for HTTP Digest is answered, and neither it nor anybody on the way sees the password."""

import contextlib

import pytest
from digest_servers import PASSWORD, USER, Apache, Lighttpd, serving

from harness import eventually, together
from http2_peers import Server
from scripted import Scripted, identified, problem_type
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
