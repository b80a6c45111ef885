"""The gateway acts for each user towards a server that wants Kerberos, and for nobody else: MIT's KDC says for whom it may (S4U2Self, S4U2Proxy),
and Apache with mod_auth_gssapi says who arrived."""

import contextlib
import http.client
import json
import ssl

import pytest

from harness import Cardea, eventually, held, send, together
from kerberos import REALM, Apache
from kerberos_delegation import DelegatingKDC
from pki import Authority


def opened(folder):
    """Apache's users may look into it."""
    for place in (folder, *folder.parents[:2]):
        place.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def kdc(tmp_path_factory):
    folder = opened(tmp_path_factory.mktemp("delegation"))
    with contextlib.closing(DelegatingKDC(folder)) as kdc:
        (folder / "kdc").chmod(0o755)
        yield kdc


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def gateway(page_lab, tmp_path, kdc, monkeypatch):
    monkeypatch.setenv("KRB5_CONFIG", kdc.variables["KRB5_CONFIG"])
    with contextlib.contextmanager(held)(Cardea, page_lab, tmp_path) as make:
        yield make()


@pytest.fixture
def apache(kdc, tmp_path):
    """It believes a connection once it has been authenticated."""
    with contextlib.closing(Apache(opened(tmp_path) / "apache", kdc, once=True)) as server:
        yield server


class Edge:
    """A listener with TLS that knows callers by their certificates, and routes behind it. `/by-name/` believes the header of `proxy.test`,
    `/by-mail/` the address in a person's certificate, `/bare/` has no credential."""

    def __init__(self, gateway, authority, server, kdc, changes=None, account="gateway", **rules):
        self.gateway, self.authority = gateway, authority
        certificate, key = authority.leaf("localhost", "DNS:localhost")
        tls = {"certificate": str(certificate), "key": f"file:{key}", "client_ca": str(authority.pem)}
        way = {"listen": "edge", "to": f"http://{server.address}", "allow_cleartext": True}
        block = {
            "keytab": f"file:{kdc.keytab(account)}", "principal": f"{account}@{REALM}",
            "service": f"HTTP/localhost@{REALM}"}
        users = {"realm": REALM, "allow": ["anna", "bert", "zoe", "lock", "nobody", "süß", "éva", "e\u0301va"], "deny": ["adm*"]} | rules
        header = {"subject": {"from_header": "X-Remote-User"}, "callers": {"tls_names": ["proxy.test"]}}
        routes = [
            {"use": "named", **header},
            {"use": "mailed", "subject": "from_client_certificate", "callers": {"tls_names": ["anna@test.example"]}},
            {"use": "none", "callers": {"tls_names": ["proxy.test"]}},
            {"use": "elsewhere", **header},
        ]
        names = ("by-name", "by-mail", "bare", "elsewhere")
        gateway.config = gateway.frame({
            "threads": 1, "listeners": {"edge": {"address": gateway.listen, "tls": [tls]}},
            "identities": {
                "named": {"negotiate": block | {"for_users": users}},
                "mailed": {"negotiate": block | {"for_users": users | {"strip_suffix": "@test.example"}}},
                "elsewhere": {"negotiate": block | {"service": f"HTTP/other@{REALM}", "for_users": users}},
            },
            "routes": [
                {"name": name, "match": {"path": f"/{name}/"}, "rewrite": {"strip_prefix": f"/{name}"}, **way, **route}
                for name, route in zip(names, routes)],
            **(changes or {}),
        })

    def connection(self, names="DNS:proxy.test"):
        file = names.encode().hex()[:60]
        if not (self.authority.folder / f"{file}.pem").exists():
            self.authority.leaf("caller", names, as_name=file)
        context = ssl.create_default_context(cafile=self.authority.pem)
        context.load_cert_chain(self.authority.folder / f"{file}.pem", self.authority.folder / f"{file}.key")
        return http.client.HTTPSConnection("localhost", int(self.gateway.listen.split(":")[1]), context=context, timeout=30)

    def ask(self, *users, path="/by-name/page", names="DNS:proxy.test"):
        """Each of the headers' values in one request on a connection of its own."""
        with contextlib.closing(self.connection(names)) as connection:
            return send(connection, "GET", path, headers=[("X-Remote-User", user) for user in users])


@pytest.fixture
def edge(gateway, authority, kdc, apache):
    """Starts the gateway; `changes` are those of the file."""
    def start(changes=None, **rules):
        made = Edge(gateway, authority, apache, kdc, changes, **rules)
        gateway.start()
        return made
    return start


def refused(answer, *words):
    assert answer.status == 403 and answer.json["type"].endswith("subject-refused"), answer
    for word in words:
        assert word in answer.json["detail"], answer
    return answer


def test_each_user_arrives_as_himself(edge, kdc, apache):
    edge = edge()
    before = {user: kdc.acted(user) for user in ("anna", "bert")}
    for _ in range(3):
        for user in ("anna", "bert"):
            answer = edge.ask(user)
            assert (answer.status, answer.field("Caller"), answer.body) == (200, f"{user}@{REALM}", b"the page"), (
                answer, edge.gateway.text())
    # The KDC was asked once for each; each request had a token of its own.
    assert {user: kdc.acted(user) - count for user, count in before.items()} == {"anna": 1, "bert": 1}
    tokens = [line[2] for line in apache.asked()]
    assert len(set(tokens)) == len(tokens) == 6


def test_no_user_has_another_ones_connection(edge, gateway):
    edge = edge()
    # Some callers' connections carry many users, one after the other.
    def check(number):
        with contextlib.closing(edge.connection()) as connection:
            for turn in range(8):
                user = ["anna", "bert", None][(number + turn) % 3]
                path, headers = ("/by-name/page", {"X-Remote-User": user}) if user else ("/bare/page", {})
                answer = send(connection, "GET", path, headers=headers)
                # Without a credential there is nobody's connection to go out on.
                assert answer.status == (200 if user else 401), answer
                assert user is None or answer.field("Caller") == f"{user}@{REALM}", answer

    together(12, check)


def test_a_persons_certificate_names_him(edge):
    edge = edge()
    answer = edge.ask(path="/by-mail/page", names="email:anna@test.example")
    assert (answer.status, answer.field("Caller")) == (200, f"anna@{REALM}"), answer
    # The header is nobody's word there, and is not passed on as one.
    answer = edge.ask("bert", path="/by-mail/page", names="email:anna@test.example")
    assert (answer.status, answer.field("Caller")) == (200, f"anna@{REALM}"), answer


def test_nobody_names_a_user_without_having_proven_who_he_is(edge, kdc):
    edge = edge()
    before = kdc.acted("anna")
    for names in ("DNS:other.test", "email:anna@test.example"):
        answer = edge.ask("anna", names=names)
        assert answer.status == 403 and answer.json["type"].endswith("caller-refused"), answer
    assert edge.ask().status == edge.ask("anna", "bert").status == 403
    assert kdc.acted("anna") == before


@pytest.mark.parametrize(
    "user, words",
    [
        ("carl", "'allow' of the identity does not have this user"),
        ("Anna", "'allow'"),
        ("admin", "'deny' of the identity refuses this user"),
        ("ADMIN", "'deny'"),
        ("krbtgt", "'deny'"),
        ("host$", "'deny'"),
        # Texts that mean more than a name in a principal.
        ("anna@OTHER.EXAMPLE", "the subject is no name of a user"),
        (f"anna@{REALM}", "the subject is no name of a user"),
        ("HTTP/localhost", "the subject is no name of a user"),
        ("anna\\", "the subject is no name of a user"),
        ("an\\@na", "the subject is no name of a user"),
        ("an​na".encode(), "the subject is no name of a user"),
    ],
)
def test_whom_the_file_does_not_name_is_refused_here(edge, kdc, apache, user, words):
    edge = edge()
    assert edge.ask("anna").status == 200
    before = kdc.requests(), len(apache.asked())
    refused(edge.ask(user), words)
    # Neither the KDC nor the server has heard of it.
    assert (kdc.requests(), len(apache.asked())) == before


@pytest.mark.parametrize("user", ["a" * 257, b"an\xffna", "an\x01na", "an\x7fna", "\x80anna".encode("latin-1")])
def test_what_is_no_text_is_refused_here(edge, kdc, user):
    edge = edge()
    before = kdc.requests()
    # A NUL and line ends never get this far: they are no part of a field.
    with contextlib.closing(edge.connection()) as connection:
        connection.putrequest("GET", "/by-name/page")
        connection.putheader("X-Remote-User", user)
        connection.endheaders()
        answer = connection.getresponse()
        assert answer.status in (400, 403), (answer.status, answer.read())
    assert kdc.requests() == before


def test_rules_for_many_take_plain_names_alone(edge, kdc):
    """Directories hold letters of double width, and blanks, for the plain ones."""
    edge = edge(allow="*", deny="adm*")
    assert edge.ask("anna").status == 200
    for user in ("ａdmin", "ädmin", "ad min"):
        refused(edge.ask(user.encode()), "'allow'")
    refused(edge.ask("Admin"), "'deny'")


def test_users_are_told_apart_by_octets(edge, kdc):
    """Two spellings of one text are two users: what is remembered of the first is not said of the second."""
    edge = edge()
    for user in ("\u00e9va", "e\u0301va"):
        before = kdc.requests()
        refused(edge.ask(user.encode()), "does not know this user")
        assert kdc.requests() > before
        before = kdc.requests()
        refused(edge.ask(user.encode()), "does not know this user")
        assert kdc.requests() == before


def test_whom_the_kdc_refuses_is_told_so_and_nobody_else_is(edge, kdc, gateway):
    edge = edge()
    refused(edge.ask("zoe"), "must not be delegated", "forwardable")
    refused(edge.ask("lock"), "locked")
    refused(edge.ask("nobody"), "does not know this user")
    refused(edge.ask("süß".encode()), "does not know this user")
    # Towards a server for which the account has no right.
    refused(edge.ask("anna", path="/elsewhere/page"), "may not act for users")
    # They are remembered, the keytab is none the worse for them, and the others are served.
    asked = kdc.requests()
    for user in ("zoe", "lock", "nobody"):
        refused(edge.ask(user))
    assert kdc.requests() == asked
    answer = edge.ask("bert")
    assert (answer.status, answer.field("Caller")) == (200, f"bert@{REALM}"), answer
    assert "quarantined" not in gateway.text()


def test_an_account_without_the_right_acts_for_nobody(gateway, authority, kdc, apache):
    edge = Edge(gateway, authority, apache, kdc, account="plain")
    gateway.start()
    refused(edge.ask("anna"), "may not act for users")
    assert apache.asked() == []


def test_a_purge_and_a_reset_forget_users(edge, gateway, kdc):
    edge = edge()
    for order in (("tokens", "purge", "named"), ("reset", "named")):
        assert [edge.ask("anna").status for _ in range(2)] == [200, 200]
        before = kdc.acted("anna")
        status, _, errors = gateway.command(*order)
        assert status == 0, errors
        assert edge.ask("anna").status == 200
        assert kdc.acted("anna") == before + 1


def test_a_silent_kdc_stops_only_users_who_have_no_ticket(edge, kdc):
    edge = edge()
    assert edge.ask("anna").status == 200
    kdc.freeze()
    try:
        assert edge.ask("bert").status in (503, 504)
        answers = [edge.ask("anna") for _ in range(3)]
        assert [answer.status for answer in answers] == [200] * 3, answers[0].body
        # Known to be silent, it is not waited for again.
        assert edge.ask("zoe").status in (503, 504)
    finally:
        kdc.thaw()


def test_a_live_check_tries_the_accounts_own_ticket(gateway, authority, kdc, apache):
    Edge(gateway, authority, apache, kdc)
    gateway.file.write_text(json.dumps(gateway.config))
    before = kdc.acted("anna")
    status, output, errors = gateway.command("check", "--live")
    assert status == 0, output + errors
    assert "token obtained in its own name; one in a user's name needs a subject and was not tried" in output, output
    assert kdc.acted("anna") == before


def test_what_is_done_in_a_users_name_stands_in_the_audit_log(gateway, authority, kdc, apache):
    log = gateway.folder / "audit.log"
    key = gateway.secret("subject-key", "a-key-of-subjects-for-tests")
    edge = Edge(gateway, authority, apache, kdc, {"audit": {"path": str(log), "subject_key": key}})
    gateway.file.write_text(json.dumps(gateway.config))
    status, _, errors = gateway.command("audit", "init")
    assert status == 0, errors
    gateway.start()
    assert edge.ask("anna").status == 200 and edge.ask("anna").status == 200
    refused(edge.ask("admin"))
    refused(edge.ask("zoe"))

    def records():
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        return [line for line in lines if line.get("service")]

    found = eventually(lambda: len(records()) >= 3 and records(), what="the records")
    assert [(line["act"], line.get("reason")) for line in found] == [
        ("grant", None), ("refusal", "subject_refused"), ("refusal", "subject_refused")], found
    assert {(line["identity"], line["service"]) for line in found} == {("named", f"HTTP/localhost@{REALM}")}
    # Users are told apart, and not named.
    assert len({line["subject"] for line in found}) == 3
    assert not any(name in log.read_text() for name in ("anna", "admin", "zoe"))
