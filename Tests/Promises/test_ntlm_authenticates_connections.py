"""Promise: a server that asks for NTLM gets version 2 of it, bound to its certificate; a connection that was authenticated serves its identity
alone, and a wrong password is tried once."""

import hashlib
import json
import threading

import pytest

from harness import eventually, together
from ntlm_server import DOMAIN, PASSWORD, USER, served
from pki import Authority

WHO = f"{DOMAIN}\\{USER}"


def configured(gateway, server, password=PASSWORD, username=WHO, tls=None, block=None, **route):
    scheme = "https" if tls else "http"
    way = {"to": f"{scheme}://{server.address}", "listen": gateway.listen, "allow_cleartext": True}
    if tls:
        way["tls"] = {"ca": str(tls.pem)}
    secret = {"password": gateway.secret("password", password)}
    gateway.config = gateway.frame({
        "threads": 1,
        "identities": {"ntlm": {"ntlm": {"username": username} | secret | (block or {})}},
        "routes": [way | {"name": "ntlm", "match": {"path": "/ntlm/"}, "use": "ntlm"} | route,
                   way | {"name": "bare", "match": {"path": "/bare/"}, "use": "none"}],
    })
    return gateway


def test_a_connection_is_authenticated_once(gateway, tmp_path):
    with served(tmp_path / "server") as server:
        configured(gateway, server).start()
        for _ in range(5):
            answer = gateway.get("/ntlm/x")
            assert (answer.status, answer.body.decode().split()[0]) == (200, WHO), (answer, gateway.text())
        # Two messages, then requests that carry none.
        assert server.kinds() == [1, 3, 0, 0, 0, 0] and server.attempts == 1
        assert len({connection for connection, *_ in server.asked}) == 1


def test_answers_are_bound_to_the_certificate(gateway, tmp_path):
    authority = Authority(tmp_path / "pki")
    with served(tmp_path / "server", leaf=authority.leaf("server", "DNS:localhost")) as server:
        configured(gateway, server, tls=authority).start()
        assert gateway.get("/ntlm/x").status == 200, gateway.text()
        assert server.attempts == 1


def test_messages_within_negotiate(gateway, tmp_path):
    with served(tmp_path / "server", word="Negotiate") as server:
        configured(gateway, server, block={"scheme": "negotiate"}).start()
        assert gateway.get("/ntlm/x").status == 200, gateway.text()
        assert server.kinds() == [1, 3]


@pytest.mark.parametrize("username", [USER, f"{USER}@corp.example.com", f"{DOMAIN}\\{USER.upper()}", "corp\\ännchen"])
def test_names(gateway, tmp_path, username):
    domain, _, name = username.rpartition("\\")
    with served(tmp_path / "server", users=[(domain, name, PASSWORD)]) as server:
        configured(gateway, server, username=username).start()
        assert gateway.get("/ntlm/x").status == 200, gateway.text()


def test_nobody_else_has_the_connection(gateway, tmp_path):
    with served(tmp_path / "server") as server:
        configured(gateway, server).start()
        assert gateway.get("/ntlm/x").status == 200
        assert [gateway.get("/bare/x").status for _ in range(3)] == [401] * 3
        assert gateway.get("/ntlm/x").status == 200
        ours = {connection for connection, kind, *_ in server.asked if kind}
        assert all(status == 401 for connection, _, _, _, status in server.asked if connection not in ours)


def test_a_server_that_forgets(gateway, tmp_path):
    with served(tmp_path / "server", forgets=2) as server:
        configured(gateway, server).start()
        assert [gateway.get("/ntlm/x").status for _ in range(9)] == [200] * 9, server.asked
        assert server.attempts == 5


def test_bodies(gateway, tmp_path):
    with served(tmp_path / "server") as server:
        configured(gateway, server, on_rejected={"max_body": "1MiB", "large_body": "probe_head"}).start()
        for size in (0, 5, 100_000, 3_000_000, 100, 2_000_000):
            body = bytes(size)
            answer = gateway.call("POST", "/ntlm/x", body)
            assert answer.status == 200, (size, answer, server.asked[-6:])
            assert answer.body.decode().split()[1] == hashlib.sha256(body).hexdigest()


def test_a_head_goes_before_a_body(gateway, tmp_path):
    with served(tmp_path / "server", asks_first=True) as server:
        configured(gateway, server).start()
        for size in (5, 300_000):
            assert gateway.call("POST", "/ntlm/x", bytes(size)).status == 200, server.asked
        caller = gateway.raw()
        caller.send(f"POST /ntlm/x HTTP/1.1\r\nHost: {gateway.listen}\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        assert caller.head()[0] == 100
        caller.send("abc")
        assert caller.answer().status == 200
        # Once, where the connection was not authenticated.
        assert [(kind, method) for _, kind, method, *_ in server.asked] == [(1, "HEAD"), (3, "POST"), (0, "POST"), (0, "POST")]


def test_a_large_body_stays_with_its_head(gateway, tmp_path):
    with served(tmp_path / "one") as one, served(tmp_path / "two") as two:
        ports = [server.address.replace("localhost", "127.0.0.1") for server in (one, two)]
        configured(gateway, one, addresses=ports, on_rejected={"max_body": "1KiB", "large_body": "probe_head"}).start()
        for _ in range(4):
            assert gateway.get("/ntlm/x").status == 200
        assert [gateway.call("POST", "/ntlm/x", bytes(200_000)).status for _ in range(6)] == [200] * 6, (one.asked, two.asked)


def test_a_wrong_password_is_tried_once_by_a_server_that_hangs_up(gateway, tmp_path):
    with served(tmp_path / "server", ends_at_refusal=True) as server:
        configured(gateway, server, password="not-this-one-3").start()
        assert gateway.get("/ntlm/x").status == 502
        assert server.attempts == 1, server.asked


@pytest.mark.parametrize("order", [("tokens", "purge", "ntlm"), ("reset", "ntlm")])
def test_an_operators_word_refuses_nobody(gateway, tmp_path, order):
    with served(tmp_path / "server") as server:
        configured(gateway, server).start()
        done = threading.Event()
        answers = []

        def ask():
            while not done.is_set():
                answers.append(gateway.get("/ntlm/x").status)

        callers = [threading.Thread(target=ask) for _ in range(4)]
        for caller in callers:
            caller.start()
        for _ in range(12):
            assert gateway.command(*order)[0] == 0
        done.set()
        for caller in callers:
            caller.join()
        assert set(answers) == {200} and server.strays == 0


def test_a_wrong_password_is_tried_once(gateway, tmp_path):
    with served(tmp_path / "server") as server:
        configured(gateway, server, password="not-this-one-3").start()
        answers = together(12, lambda _: gateway.get("/ntlm/x"))
        assert {answer.status for answer in answers} <= {502, 503}
        assert server.attempts == 1, server.asked
        eventually(lambda: gateway.get("/ntlm/x").json["type"].endswith("credential-quarantined"), what="the quarantine")
        assert server.attempts == 1


def test_many_at_once(gateway, tmp_path):
    with served(tmp_path / "server", forgets=7) as server:
        configured(gateway, server).start()
        for _ in range(10):
            assert {answer.status for answer in together(20, lambda _: gateway.get("/ntlm/x"))} == {200}
        assert len({connection for connection, *_ in server.asked}) <= 20 + server.attempts
        # The connections that wait for more requests end with it.
        assert gateway.command("tokens", "purge", "ntlm")[0] == 0


def test_a_new_password_ends_connections(gateway, tmp_path):
    with served(tmp_path / "server") as server:
        configured(gateway, server).start()
        assert gateway.get("/ntlm/x").status == 200
        server.users.write_text(f"{DOMAIN}:{USER}:another-one-4\n")
        gateway.secret("password", "another-one-4")
        eventually(lambda: gateway.get("/ntlm/x").status == 200 and server.attempts == 2, what="the new password")
        assert gateway.get("/ntlm/x").status == 200 and server.attempts == 2


@pytest.mark.parametrize("order", [("tokens", "purge", "ntlm"), ("reset", "ntlm")])
def test_an_operators_word_ends_connections(gateway, tmp_path, order):
    with served(tmp_path / "server") as server:
        configured(gateway, server).start()
        assert gateway.get("/ntlm/x").status == 200
        status, _, errors = gateway.command(*order)
        assert status == 0, errors
        assert gateway.get("/ntlm/x").status == 200
        assert len({connection for connection, *_ in server.asked}) == 2


@pytest.mark.parametrize(
    "block, route, words",
    [
        ({"username": "CORP\\"}, {}, "must be a name, DOMAIN\\\\name"),
        ({"username": "a" * 300}, {}, "must have at most 256 characters"),
        ({}, {"http": 2}, "and those of HTTP/2 are shared"),
        ({}, {"inject": {"header": "X-Key"}}, "writes Authorization"),
        ({}, {"on_rejected": {"replay": "never"}}, "NTLM takes three messages"),
    ],
)
def test_what_is_checked(gateway, block, route, words):
    way = gateway.route("ntlm", "https://web.example.com") | route
    block = {"username": WHO, "password": gateway.secret("password", PASSWORD)} | block
    gateway.config = gateway.frame({"identities": {"ntlm": {"ntlm": block}}, "routes": [way]})
    gateway.file.write_text(json.dumps(gateway.config))
    status, output, _ = gateway.command("check")
    assert status != 0 and words.replace("\\\\", "\\") in output, output
