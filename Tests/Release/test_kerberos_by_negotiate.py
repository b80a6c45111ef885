"""A server that wants Kerberos gets it: a KDC of MIT's, Apache with mod_auth_gssapi, tickets out of a keytab and out of a cache."""

import contextlib

import pytest

from harness import Cardea, eventually, free_port, held, together
from kerberos import KDC, REALM, Acceptor, Apache
from pki import Authority


@pytest.fixture(scope="module")
def kdc(tmp_path_factory):
    folder = tmp_path_factory.mktemp("realm")
    for place in (folder, *folder.parents[:2]):
        place.chmod(0o755)
    with contextlib.closing(KDC(folder / "kdc")) as kdc:
        (folder / "kdc").chmod(0o755)
        yield kdc


@pytest.fixture
def gateway(page_lab, tmp_path, kdc, monkeypatch):
    monkeypatch.setenv("KRB5_CONFIG", kdc.variables["KRB5_CONFIG"])
    with contextlib.contextmanager(held)(Cardea, page_lab, tmp_path) as make:
        yield make()


@pytest.fixture
def apache(kdc, tmp_path):
    for place in (tmp_path, *tmp_path.parents[:2]):
        place.chmod(0o755)
    with contextlib.closing(Apache(tmp_path / "apache", kdc)) as server:
        yield server


def routes(gateway, server, **identities):
    """One route below /NAME/ for each identity, and one without below /bare/."""
    way = {"to": f"http://{server.address}", "allow_cleartext": True, "listen": gateway.listen}
    found = [
        way | {"name": name, "match": {"path": f"/{name}/"}, "rewrite": {"strip_prefix": f"/{name}"}, "use": use}
        for name, use in [*((name, name) for name in identities), ("bare", "none")]
    ]
    gateway.config = gateway.frame({
        "threads": 1, "identities": {name: {"negotiate": block} for name, block in identities.items()}, "routes": found})
    return gateway.start()


def keytab(kdc, name):
    return {"keytab": f"file:{kdc.keytab(name)}", "principal": f"{name}@{REALM}"}


def test_requests_carry_tickets(gateway, kdc, apache):
    routes(gateway, apache, anna=keytab(kdc, "anna"))
    before = kdc.asked()
    for _ in range(5):
        answer = gateway.get("/anna/page")
        assert (answer.status, answer.body) == (200, b"the page"), (answer, gateway.text())
    asked = apache.asked()
    assert [line[0] for line in asked] == ["200"] * 5 and len({line[2] for line in asked}) == 5, asked
    # The first tickets were had once; each request has a token of its own.
    assert kdc.asked() - before <= 3


def test_no_identity_has_another_ones_connection(gateway, kdc, tmp_path):
    """The server believes a connection once it has been authenticated; the next request on it would be anybody's."""
    for place in (tmp_path, *tmp_path.parents[:2]):
        place.chmod(0o755)
    with contextlib.closing(Apache(tmp_path / "bound", kdc, once=True)) as server:
        routes(gateway, server, anna=keytab(kdc, "anna"), bert=keytab(kdc, "bert"))
        for _ in range(3):
            assert gateway.get("/anna/page").field("Caller") == f"anna@{REALM}"
            assert gateway.get("/bert/page").field("Caller") == f"bert@{REALM}"
            assert gateway.get("/bare/page").status == 401
        together(20, lambda number: check(gateway, number))


def test_the_server_chooses_out_of_a_list(gateway, kdc, apache):
    gateway.config = gateway.frame({
        "threads": 1,
        "identities": {
            "tickets": {"negotiate": keytab(kdc, "anna")},
            "word": {"digest": {"username": "anna", "password": gateway.secret("word", "a-password-of-hers")}},
        },
        "routes": [{"listen": gateway.listen, "to": f"http://{apache.address}", "allow_cleartext": True, "use": ["word", "tickets"]}],
    })
    gateway.start()
    assert [gateway.get("/page").status for _ in range(3)] == [200] * 3, gateway.text()
    # The first request chose, and went out again with a token; the later ones have theirs at once.
    assert [line[0] for line in apache.asked()] == ["401", "200", "200", "200"], apache.asked()


def check(gateway, number):
    name = ["anna", "bert", "bare"][number % 3]
    answer = gateway.get(f"/{name}/page")
    assert answer.status == (401 if name == "bare" else 200), answer
    assert name == "bare" or answer.field("Caller") == f"{name}@{REALM}"


def test_tickets_of_another_program(gateway, kdc, apache, tmp_path):
    cache = tmp_path / "tickets"
    kdc.tool("kinit", "-k", "-t", kdc.keytab("bert"), "-c", f"FILE:{cache}", f"bert@{REALM}")
    before = cache.read_bytes()
    routes(gateway, apache, bert={"cache": str(cache), "service": f"HTTP/localhost@{REALM}"})
    assert gateway.get("/bert/page").status == 200, gateway.text()
    assert cache.read_bytes() == before


def test_a_wrong_key_is_tried_once(gateway, kdc, apache, tmp_path):
    wrong = tmp_path / "wrong.keytab"
    kdc.tool("ktutil", input=f"addent -password -p anna@{REALM} -k 1 -e aes256-cts\nnot this one\nwkt {wrong}\n")
    before = kdc.asked()
    routes(gateway, apache, anna={"keytab": f"file:{wrong}"})
    eventually(lambda: gateway.get("/anna/page").json["type"].endswith("credential-quarantined"), what="the quarantine")
    told = kdc.asked()
    for _ in range(5):
        assert gateway.get("/anna/page").status == 503
    assert kdc.asked() == told and told - before <= 3, (before, told)


def test_a_silent_kdc_delays_nobody_else(gateway, kdc, apache):
    routes(gateway, apache, anna=keytab(kdc, "anna"), bert=keytab(kdc, "bert"))
    assert gateway.get("/anna/page").status == 200
    kdc.freeze()
    try:
        with_tickets = [gateway.get("/anna/page").status for _ in range(5)]
        assert with_tickets == [200] * 5
    finally:
        kdc.thaw()


def test_what_cannot_be_had_is_told(gateway, kdc, apache, tmp_path):
    routes(
        gateway, apache, absent={"keytab": f"file:{tmp_path}/absent.keytab"},
        elsewhere={**keytab(kdc, "anna"), "service": f"HTTP/elsewhere.example@{REALM}"})
    absent = gateway.get("/absent/page")
    assert absent.status == 503 and absent.json["type"].endswith("secret-unreadable"), absent
    assert "not found in Kerberos database" in gateway.get("/elsewhere/page").json["detail"]


# MARK: - A server that insists on what Negotiate can do


@pytest.fixture
def acceptor(kdc, tmp_path):
    """Starts a server with TLS that takes tokens that are bound to its certificate."""
    authority = Authority(tmp_path / "pki")
    leaf = authority.leaf("server", "DNS:localhost")
    with contextlib.ExitStack() as stack:
        yield lambda mode="good": stack.enter_context(contextlib.closing(Acceptor(tmp_path / f"{mode}-{free_port()}", kdc, leaf, mode))), authority


def secure(gateway, server, authority, mode="required", **identities):
    way = {"to": f"https://{server.address}", "tls": {"ca": str(authority.pem)}, "listen": gateway.listen}
    gateway.config = gateway.frame({
        "threads": 1, "identities": {name: {"negotiate": block | {"mutual": mode}} for name, block in identities.items()},
        "routes": [way | {"name": name, "match": {"path": f"/{name}/"}, "use": name} for name in identities]})
    return gateway.start()


def test_tokens_are_bound_to_the_servers_certificate(gateway, kdc, acceptor):
    start, authority = acceptor
    secure(gateway, start(), authority, anna=keytab(kdc, "anna"), bert=keytab(kdc, "bert"))
    numbers = {}
    for _ in range(3):
        for name in ("anna", "bert"):
            answer = gateway.get(f"/{name}/")
            assert (answer.status, answer.body) == (200, f"{name}@{REALM}".encode()), (answer, gateway.text())
            numbers.setdefault(name, set()).add(answer.field("Connection-Number"))
    # Each has one connection, and they share none.
    assert [len(found) for found in numbers.values()] == [1, 1] and numbers["anna"] != numbers["bert"]


@pytest.mark.parametrize("order", [("tokens", "purge", "anna"), ("reset", "anna")])
def test_an_operators_word_ends_connections_and_tickets(gateway, kdc, acceptor, order):
    start, authority = acceptor
    secure(gateway, start(), authority, anna=keytab(kdc, "anna"))
    before = gateway.get("/anna/").field("Connection-Number")
    assert gateway.get("/anna/").field("Connection-Number") == before
    asked = kdc.asked()
    status, output, errors = gateway.command(*order)
    assert status == 0, errors
    assert gateway.get("/anna/").field("Connection-Number") != before
    assert kdc.asked() > asked


def test_a_server_that_does_not_prove_itself(gateway, kdc, acceptor):
    start, authority = acceptor
    secure(gateway, start("mute"), authority, anna=keytab(kdc, "anna"))
    answer = gateway.get("/anna/")
    assert answer.status == 502 and "mutual: off" in answer.json["detail"], answer
    assert answer.json["type"].endswith("upstream-unproven") and "anna@" not in answer.body.decode()
    gateway.stop()
    secure(gateway, start("lying"), authority, anna=keytab(kdc, "anna"))
    answer = gateway.get("/anna/")
    assert answer.status == 502 and "does not prove who it is" in answer.json["detail"], answer
    gateway.stop()
    secure(gateway, start("mute"), authority, mode="off", anna=keytab(kdc, "anna"))
    assert gateway.get("/anna/").status == 200


def test_many_callers_at_once(gateway, kdc, acceptor):
    start, authority = acceptor
    secure(gateway, start(), authority, anna=keytab(kdc, "anna"), bert=keytab(kdc, "bert"))

    def ask(number):
        name = ["anna", "bert"][number % 2]
        answer = gateway.get(f"/{name}/")
        assert (answer.status, answer.body) == (200, f"{name}@{REALM}".encode()), answer

    for _ in range(5):
        together(20, ask)


def test_a_server_that_closes_each_connection(gateway, kdc, acceptor):
    start, authority = acceptor
    secure(gateway, start("each"), authority, anna=keytab(kdc, "anna"))
    answers = [gateway.get("/anna/") for _ in range(10)]
    assert [answer.status for answer in answers] == [200] * 10, answers[0].body
