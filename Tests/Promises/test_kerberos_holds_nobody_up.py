"""Promise: an identity of Kerberos whose KDC is silent, or not there, is an issuer that is down: nobody else waits for it."""

import contextlib
import json
import socket
import struct

import pytest

from harness import eventually, free_port
from scripted import OK, Scripted

PRINCIPAL = "anna@TEST.EXAMPLE"


def keytab(path):
    """A keytab of version 2 with one made-up key (MIT's description of the format)."""
    counted = lambda text: struct.pack(">H", len(text)) + text.encode()  # noqa: E731
    user, _, realm = PRINCIPAL.partition("@")
    entry = struct.pack(">H", 1) + counted(realm) + counted(user) + struct.pack(">IIBH", 1, 0, 1, 18)
    entry += struct.pack(">H", 32) + bytes(range(32))
    path.write_bytes(b"\x05\x02" + struct.pack(">i", len(entry)) + entry)
    path.chmod(0o600)
    return f"file:{path}"


@pytest.fixture
def realm(tmp_path, monkeypatch):
    """Makes krb5.conf name a KDC on a port."""
    def told(port):
        (tmp_path / "krb5.conf").write_text(
            "[libdefaults]\n default_realm = TEST.EXAMPLE\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            " dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
            f"[realms]\n TEST.EXAMPLE = {{\n  kdc = 127.0.0.1:{port}\n }}\n")
        monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "krb5.conf"))
    return told


def configured(gateway, upstream, folder, **token):
    key = keytab(folder / "anna.keytab")
    way = {"to": f"http://{upstream.address}", "allow_cleartext": True, "listen": gateway.listen}
    gateway.config = gateway.frame({
        "threads": 1,
        "identities": {
            "kerberos": {"negotiate": {"keytab": key, "principal": PRINCIPAL}, **token},
            "other": {"static": {"value": gateway.secret("value", "api-value-4")}},
        },
        "routes": [way | {"name": name, "match": {"path": f"/{name}/"}, "use": name} for name in ("kerberos", "other")],
    })
    return gateway


def served(peer):
    for _ in peer.requests():
        peer.send(OK)


def test_a_silent_kdc(gateway, realm, tmp_path):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0), backlog=64)) as silent, Scripted(served) as upstream:
        realm(silent.getsockname()[1])
        configured(gateway, upstream, tmp_path, token={"acquire_timeout": "1s"}).start()
        assert gateway.get("/kerberos/").status in (503, 504)
        assert [gateway.get("/other/").status for _ in range(5)] == [200] * 5
        # A KDC that is known to be silent is not waited for again.
        assert gateway.get("/kerberos/").status in (503, 504)
        assert not upstream.requests or all("kerberos" not in request.target for request in upstream.requests)
        # The library's call goes on, and the end of the process does not wait for it.
        gateway.stop(within=10)


def test_no_kdc(gateway, realm, tmp_path):
    realm(free_port())
    with Scripted(served) as upstream:
        configured(gateway, upstream, tmp_path).start()
        answer = gateway.get("/kerberos/")
        assert answer.status == 503 and answer.json["type"].endswith("issuer-unavailable"), answer
        assert "KDC" in answer.json["detail"]
        assert gateway.get("/other/").status == 200


def test_a_keytab_that_is_not_there(gateway, realm, tmp_path):
    realm(free_port())
    with Scripted(served) as upstream:
        configured(gateway, upstream, tmp_path).start()
        (tmp_path / "anna.keytab").unlink()
        eventually(lambda: gateway.get("/kerberos/").json["type"].endswith("secret-unreadable"), what="the fault")


@pytest.mark.parametrize(
    "block, route, words",
    [
        ({"keytab": "env:KEYTAB"}, {}, "must be file: and an absolute path"),
        ({"keytab": "file:relative.keytab"}, {}, "must be file: and an absolute path"),
        ({"cache": "relative"}, {}, "must be an absolute path"),
        ({"keytab": "file:/k", "cache": "/c"}, {}, "must not stand beside 'keytab'"),
        ({"principal": "anna"}, {}, "needs 'keytab', or 'cache'"),
        ({"keytab": "file:/k", "service": "web"}, {}, "must be HTTP/host@REALM or HTTP@host"),
        ({"keytab": "file:/k"}, {"http": 2}, "connections, and those of HTTP/2 are shared"),
        ({"keytab": "file:/k"}, {"inject": {"header": "X-Key"}}, "writes Authorization"),
    ],
)
def test_what_is_checked(gateway, block, route, words):
    way = gateway.route("kerberos", "https://web.example.com") | route
    gateway.config = gateway.frame({"identities": {"kerberos": {"negotiate": block}}, "routes": [way]})
    gateway.file.write_text(json.dumps(gateway.config))
    status, output, _ = gateway.command("check")
    assert status != 0 and words in output, output


USERS = {"keytab": "file:/k", "for_users": {"realm": "R", "allow": "anna"}}
HEADER = {"subject": {"from_header": "X-User"}}


def users(**changes):
    """Its `for_users` with changes; a key that is None is left out."""
    rules = {key: value for key, value in (USERS["for_users"] | changes).items() if value is not None}
    return USERS | {"for_users": rules}


@pytest.mark.parametrize(
    "block, route, words",
    [
        # Whoever names a user has proven who he is.
        (USERS, HEADER | {"callers": "local"}, "'callers' needs 'tls_names' or 'unix_users'"),
        (USERS, HEADER | {"callers": {"allow": ["10.0.0.0/8"]}}, "'callers' needs 'tls_names' or 'unix_users'"),
        (USERS, HEADER | {"callers": {"token": "env:TOKEN"}}, "'callers' needs 'tls_names' or 'unix_users'"),
        (USERS, {"subject": "from_caller_token", "callers": {"token": "env:TOKEN"}}, "it names nobody"),
        (USERS, {"subject": "from_client_certificate", "callers": "local"}, "asks for no certificate"),
        (USERS, {}, "has 'for_users', so route"),
        ({"keytab": "file:/k"}, HEADER | {"callers": "local"}, "'for_users' of its 'negotiate'"),
        # Who may be acted for is said, and in a form that is understood.
        (users(allow=None), HEADER, "needs 'allow'"),
        (users(allow=[]), HEADER, "'allow' of 'for_users' of identity 'kerberos' (negotiate) has no name"),
        (users(realm=None), HEADER, "needs 'realm'"),
        (users(realm="A@B"), HEADER, "is no realm"),
        (users(allow="a*b*"), HEADER, "one '*', at the beginning or at the end"),
        (users(deny="a*b"), HEADER, "one '*', at the beginning or at the end"),
        (users(allow="anna@R"), HEADER, "a name that no user has"),
        (users(deny="HTTP/host"), HEADER, "a name that no user has"),
        ({"cache": "/c", "for_users": USERS["for_users"]}, HEADER, "needs 'keytab'"),
    ],
)
def test_what_is_checked_where_it_acts_for_users(gateway, block, route, words):
    test_what_is_checked(gateway, block, route, words)


def test_a_mistake_is_told_with_its_line(gateway):
    """The line of `subject`; and everybody in `allow` is a warning."""
    gateway.file.write_text(f"""identities:
  kerberos:
    negotiate:
      keytab: file:/k
      for_users:
        realm: R
        allow: "*"
routes:
  - listen: {gateway.listen}
    to: https://web.example.com
    use: kerberos
    callers: local
    subject: {{from_header: X-User}}
""")
    status, output, _ = gateway.command("check")
    assert status != 0 and f"{gateway.file}:13:5 error 'subject' of route" in output, output
    assert f"{gateway.file}:7:9 warning 'allow' of" in output and "whom the KDC knows" in output, output
