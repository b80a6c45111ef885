"""Promise: an HTTP proxy on the way that asks for NTLM or Negotiate is answered with messages that authenticate the connection; a password that
it refuses is shown once, and a challenge that is none costs nothing."""

import base64
import contextlib
import json
import pathlib
import socket
import subprocess

import pytest

from harness import eventually, free_port, together
from ntlm_proxy import proxied
from ntlm_server import DOMAIN, PASSWORD, USER
from peers import Authority, free_ports, nginx
from scripted import OK, Scripted, answer
from test_a_reload_drops_nothing import reload
from test_kerberos_holds_nobody_up import PRINCIPAL, keytab, realm  # noqa: F401  (a fixture)

WHO = f"{DOMAIN}\\{USER}"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """nginx in clear text and with TLS; it answers with the fields that reached it."""
    folder = tmp_path_factory.mktemp("site")
    authority = Authority(folder / "ca")
    certificate, key = authority.issue("server")
    plain, secure = free_ports(2)
    listens = f"listen 127.0.0.1:{plain}; listen 127.0.0.1:{secure} ssl;"
    block = f"""
client_max_body_size 8m; client_body_buffer_size 8m;
server {{ {listens} ssl_certificate {certificate}; ssl_certificate_key {key};
    location / {{ return 200 "$request_method|$http_proxy_authorization|$http_authorization|$request_uri"; }}
    location /length {{ proxy_pass http://127.0.0.1:{plain}/told; proxy_set_header Length $content_length; }}
    location /told {{ return 200 "$http_length"; }} }}"""
    with contextlib.closing(nginx(folder / "site", block, [("127.0.0.1", plain), ("127.0.0.1", secure)])):
        yield authority, f"http://127.0.0.1:{plain}", f"https://127.0.0.1:{secure}"


def configured(gateway, to, authority, proxy, password=PASSWORD, word="ntlm", **settings):
    key = {"static": {"value": gateway.secret("value", "api-value-4")}}
    block = {"url": f"http://{proxy.address}", "username": WHO, "password": gateway.secret("proxy", password), "ntlm": word}
    way = {"listen": gateway.listen, "allow_cleartext": True, "tls": {"ca": str(authority.file)}}
    gateway.config = gateway.frame({
        "threads": 1, "identities": {"key": key},
        "routes": [way | {"name": "key", "to": to, "use": "key", "match": {"path": "/"}, "proxy": block | settings}]})
    return gateway


def seen(path="/x", method="GET"):
    return f"{method}||api-value-4|{path}".encode()


def is_refused(answer):
    return answer.status == 502 and answer.json["type"].endswith("proxy-refused")


# MARK: - NTLM


@pytest.mark.parametrize("word", ["ntlm", "negotiate"])
@pytest.mark.parametrize("chunks", [False, True])
def test_a_tunnel(gateway, site, tmp_path, word, chunks):
    authority, _, secure = site
    with proxied(tmp_path / "proxy", word="NTLM" if word == "ntlm" else "Negotiate", chunks=chunks) as proxy:
        configured(gateway, secure, authority, proxy, word=word).start()
        for _ in range(4):
            told = gateway.get("/x")
            assert (told.status, told.body) == (200, seen()), (told, gateway.text())
        # Two messages on one connection; what goes through the tunnel is the upstream's.
        assert [(kind, method) for _, kind, method, *_ in proxy.asked] == [(1, "CONNECT"), (3, "CONNECT")]
        assert proxy.attempts == 1 and len({connection for connection, *_ in proxy.asked}) == 1


def test_requests_that_the_proxy_reads(gateway, site, tmp_path):
    authority, plain, _ = site
    with proxied(tmp_path / "proxy") as proxy:
        configured(gateway, plain, authority, proxy).start()
        for _ in range(4):
            told = gateway.get("/x")
            assert (told.status, told.body) == (200, seen()), (told, gateway.text())
        assert gateway.call("POST", "/length", b"x" * 70_000).body == b"70000"
        # The question is the proxy's alone, so that the upstream sees the requests of callers and nothing else.
        assert proxy.kinds() == [1, 3, 0, 0, 0, 0] and proxy.attempts == 1, proxy.asked
        assert [status for *_, status in proxy.asked] == [407] + [0] * 5
        assert len({connection for connection, *_ in proxy.asked}) == 1


def test_the_first_request_may_have_a_body(gateway, site, tmp_path):
    authority, plain, _ = site
    with proxied(tmp_path / "proxy") as proxy:
        configured(gateway, plain, authority, proxy).start()
        assert gateway.call("POST", "/length", b"x" * 3_000_000).body == b"3000000"
        assert proxy.kinds() == [1, 3]


def test_a_proxy_that_forgets(gateway, site, tmp_path):
    authority, plain, _ = site
    with proxied(tmp_path / "proxy", forgets=2) as proxy:
        configured(gateway, plain, authority, proxy).start()
        assert [gateway.get("/x").status for _ in range(7)] == [200] * 7, gateway.text()
        assert [gateway.call("POST", "/length", b"x" * 1000).body for _ in range(4)] == [b"1000"] * 4
        assert proxy.attempts >= 5


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("ends", [None, "refusal"])
def test_a_wrong_password_is_shown_once_and_rests(gateway, site, tmp_path, scheme, ends):
    authority, plain, secure = site
    with proxied(tmp_path / "proxy", ends=ends) as proxy:
        configured(gateway, plain if scheme == "http" else secure, authority, proxy, password="wrong-word").start()
        told = gateway.get("/x")
        assert is_refused(told) and told.field("Proxy-Authenticate") is None, told
        assert "received-status=407" in told.field("Proxy-Status"), told
        assert proxy.attempts == 1 and proxy.kinds() == [1, 3], proxy.asked
        eventually(lambda: "it refuses the credential" in gateway.text(), what="the reason in the log")
        for told in together(8, lambda _: gateway.get("/x")):
            assert told.status == 503 and "which has refused this password" in told.problem["detail"], told
        assert proxy.attempts == 1
        # An operator may have put the account right.
        reload(gateway, gateway.config | {"limits": {"target_size": "4KiB"}})
        assert is_refused(gateway.get("/x")) and proxy.attempts == 2
        gateway.secret("proxy", PASSWORD)
        eventually(lambda: gateway.get("/x").status == 200, what="the new password to be used")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_connections_end_with_the_password(gateway, site, tmp_path, scheme):
    authority, plain, secure = site
    with proxied(tmp_path / "proxy", users=[(DOMAIN, USER, PASSWORD)]) as proxy:
        configured(gateway, plain if scheme == "http" else secure, authority, proxy).start()
        assert gateway.get("/x").status == 200 and proxy.attempts == 1
        proxy.users.write_text(f"{DOMAIN}:{USER}:another-word-5\n")
        gateway.secret("proxy", "another-word-5")
        eventually(lambda: gateway.get("/x").status == 200 and proxy.attempts == 2, what="a connection with the new password")
        assert [kind for kind in proxy.kinds() if kind] == [1, 3, 1, 3]


def test_many_at_once(gateway, site, tmp_path):
    authority, plain, _ = site
    with proxied(tmp_path / "proxy") as proxy:
        configured(gateway, plain, authority, proxy).start()

        def ask(number):
            told = gateway.get(f"/{number}")
            assert (told.status, told.body) == (200, seen(f"/{number}")), told

        for _ in range(4):
            together(16, ask)
        # Each connection is authenticated by itself, once.
        firsts = [connection for connection, kind, *_ in proxy.asked if kind == 1]
        assert len(firsts) == len(set(firsts)) == proxy.attempts
        gateway.stop()


def test_an_issuer_behind_it(gateway, tmp_path):
    gateway.oauth()
    with proxied(tmp_path / "proxy") as proxy:
        gateway.config["identities"]["api"]["network"] = {"proxy": {
            "url": f"http://{proxy.address}", "username": WHO, "password": gateway.secret("proxy", PASSWORD), "ntlm": "ntlm"}}
        gateway.start().warm("/api/employees/1")
        assert [(kind, method) for _, kind, method, *_ in proxy.asked][:2] == [(1, "HEAD"), (3, "POST")], proxy.asked


def test_the_proxys_word_is_not_the_issuers(gateway, tmp_path):
    """A password that the issuer has not seen is not spent when the proxy refuses its own."""
    gateway.oauth({"grant": "password", "username": "anna", "password": gateway.secret("anna", "anna-word-3")})
    with proxied(tmp_path / "proxy") as proxy:
        gateway.config["identities"]["api"]["network"] = {"proxy": {
            "url": f"http://{proxy.address}", "username": WHO, "password": gateway.secret("proxy", "wrong-word"), "ntlm": "ntlm"}}
        gateway.start()
        told = gateway.get("/api/employees/1")
        assert told.json["type"].endswith("issuer-unavailable") and "the proxy on the way" in told.json["detail"], told
        gateway.secret("proxy", PASSWORD)
        # The lab does not know the user, and says so: it has been asked now.
        eventually(lambda: "proxy" not in gateway.get("/api/employees/1").json.get("detail", "proxy"), what="the issuer to be asked")


# MARK: - Challenges that are none


def second(flags=0x00828205, length=4, place=48, pairs=b"\0\0\0\0"):
    """A second message of NTLM, as wrong as a test wants."""
    head = b"NTLMSSP\0" + (2).to_bytes(4, "little") + bytes(8) + flags.to_bytes(4, "little") + b"12345678" + bytes(8)
    field = length.to_bytes(2, "little") * 2 + place.to_bytes(4, "little")
    return base64.b64encode(head + field + pairs).decode()


MALFORMED = {
    "no field": None,
    "another scheme": 'Basic realm="p"',
    "no message": "NTLM",
    "no base64": "NTLM !!!!",
    "short": "NTLM TlRMTVNTUAAC",
    "its first message": "NTLM " + base64.b64encode(b"NTLMSSP\0\1" + bytes(60)).decode(),
    "outside": "NTLM " + second(length=60_000),
    "behind the end": "NTLM " + second(place=0xFFFF_FFFF),
    "version 1": "NTLM " + second(flags=0x00008205),
    "no Unicode": "NTLM " + second(flags=0x00828204),
    "endless pairs": "NTLM " + second(length=8, pairs=b"\1\0\xff\xff1234"),
    "long": "NTLM " + "QUFB" * 1400,
    "octets": "NTLM \xff\xfe",
}


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("challenge", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_challenge_that_is_none(gateway, site, scheme, challenge):
    authority, plain, secure = site
    field = [f"Proxy-Authenticate: {challenge}".encode("latin-1")] if challenge else []

    def script(peer):
        for _ in peer.requests():
            peer.send(answer(b"", *field, status=b"407 No"))

    with Scripted(script) as proxy:
        configured(gateway, plain if scheme == "http" else secure, authority, proxy).start()
        told = gateway.get("/x")
        assert is_refused(told) and told.field("Proxy-Authenticate") is None, (told, gateway.text())
        # What begins the exchange is the same for everybody; nothing that is made of the password has left.
        assert len(proxy.requests) == 1, [request.head for request in proxy.requests]
        gateway.stop()


@pytest.mark.parametrize(
    "told", [b"", b"HTTP/1.1 407 No\r\n", b"\0\0\0", b"HTTP/1.1 407 No\r\nContent-Length: 9999999\r\n\r\n"])
def test_a_proxy_that_breaks_off(gateway, site, told):
    authority, plain, _ = site

    def script(peer):
        peer.request()
        peer.send(told)

    with Scripted(script) as proxy:
        configured(gateway, plain, authority, proxy).start()
        assert gateway.get("/x").status == 502
        assert gateway.get("/x").status == 502


def test_a_proxy_that_ends_the_connection_under_its_challenge(gateway, site, tmp_path):
    """The message is its connection's, so that another one is of no use."""
    authority, plain, secure = site
    with proxied(tmp_path / "proxy", ends="challenge") as proxy:
        configured(gateway, secure, authority, proxy).start()
        assert is_refused(gateway.get("/x"))
        assert proxy.kinds() == [1] and proxy.attempts == 0


@pytest.mark.parametrize("field", [b"X: y", b"Connection: close"])
def test_a_proxy_that_asks_for_nothing(gateway, site, field):
    """What answers the question is the proxy, or whoever it has been passed on to; requests follow bare."""
    authority, plain, _ = site

    def script(peer):
        for request in peer.requests():
            peer.send(answer(b"", field) if request.method == "HEAD" else OK)
            if request.method == "HEAD" and b"close" in field:
                return

    with Scripted(script) as proxy:
        configured(gateway, plain, authority, proxy).start()
        assert [gateway.get("/x").status for _ in range(3)] == [200] * 3, gateway.text()
        assert [request.method for request in proxy.requests] == ["HEAD"] + ["GET"] * 3
        assert [request.field("Proxy-Authorization") is None for request in proxy.requests] == [False] + [True] * 3


# MARK: - Kerberos without a KDC


def kerberos(gateway, proxy, folder, to="http://127.0.0.1:1", **settings):
    key = {"static": {"value": gateway.secret("value", "api-value-4")}}
    block = {"keytab": keytab(folder / "anna.keytab"), "principal": PRINCIPAL, "service": "HTTP/proxy@TEST.EXAMPLE"}
    way = {"listen": gateway.listen, "allow_cleartext": True, "use": "key"}
    gateway.config = gateway.frame({
        "threads": 1, "identities": {"key": key},
        "routes": [
            way | {"name": "kerberos", "to": to, "match": {"path": "/kerberos/"},
                   "proxy": {"url": f"http://{proxy.address}", "negotiate": block | settings}, "timeouts": {"connect": "2s"}},
            way | {"name": "other", "to": f"http://{proxy.address}", "match": {"path": "/other/"}},
        ]})
    return gateway


def served(peer):
    for _ in peer.requests():
        peer.send(OK)


@pytest.mark.parametrize("to", ["http://127.0.0.1:1", "https://127.0.0.1:1"])
def test_a_silent_kdc(gateway, realm, tmp_path, to):  # noqa: F811
    with contextlib.closing(socket.create_server(("127.0.0.1", 0), backlog=64)) as silent, Scripted(served) as proxy:
        realm(silent.getsockname()[1])
        kerberos(gateway, proxy, tmp_path, to).start()
        told = gateway.get("/kerberos/")
        assert told.status == 504 and told.json["type"].endswith("token-timeout"), (told, gateway.text())
        assert "for the proxy on the way" in told.json["detail"]
        assert [gateway.get("/other/").status for _ in range(5)] == [200] * 5
        # A KDC that is known to be silent is not waited for again.
        assert gateway.get("/kerberos/").status == 504
        assert all("kerberos" not in request.target and request.method == "GET" for request in proxy.requests)
        gateway.stop(within=10)


def test_no_kdc(gateway, realm, tmp_path):  # noqa: F811
    realm(free_port())
    with Scripted(served) as proxy:
        kerberos(gateway, proxy, tmp_path).start()
        told = gateway.get("/kerberos/")
        assert told.status == 503 and told.json["type"].endswith("issuer-unavailable"), told
        assert "KDC" in told.json["detail"]
        assert gateway.get("/other/").status == 200


def test_a_keytab_that_is_not_there(gateway, realm, tmp_path):  # noqa: F811
    realm(free_port())
    with Scripted(served) as proxy:
        kerberos(gateway, proxy, tmp_path)
        (tmp_path / "anna.keytab").unlink()
        gateway.start()
        told = gateway.get("/kerberos/")
        assert told.status == 503 and told.json["type"].endswith("secret-unreadable"), told
        assert gateway.get("/other/").status == 200


# MARK: - What is checked


def test_a_library_that_is_not_there(gateway):
    [library] = pathlib.Path("/usr/lib").glob("*/libgssapi_krb5.so.2")
    key = {"static": {"value": gateway.secret("value", "api-value-4")}}
    block = {"keytab": keytab(gateway.folder / "anna.keytab")}
    route = gateway.route("key", "https://web.example.com") | {"proxy": {"url": "http://proxy.example:3128", "negotiate": block}}
    gateway.config = gateway.frame({"identities": {"key": key}, "routes": [route]})
    gateway.file.write_text(json.dumps(gateway.config))
    hidden = ["unshare", "--mount", "sh", "-c", 'mount --bind /dev/null "$1" && shift && exec "$@"', "sh", str(library.resolve())]
    for words, is_told in ([], False), (hidden, True):
        done = subprocess.run([*words, gateway.binary, "check", str(gateway.file)], capture_output=True, text=True)
        assert done.returncode == 0, done
        assert ("'proxy' of route 'key': the GSSAPI library cannot be opened" in done.stdout + done.stderr) == is_told, done


PAIR = {"username": WHO, "password": "file:/p"}


@pytest.mark.parametrize(
    "block, words",
    [
        ({"ntlm": "ntlm"}, "needs 'username' and 'password' beside it"),
        ({"ntlm": "ntlm", **PAIR}, "speaks NTLM in clear text to proxy.example"),
        ({"ntlm": "ntlm", **PAIR, "digest": ["md5"], "allow_cleartext": True}, "has no meaning beside 'ntlm'"),
        ({"ntlm": "ntlm", **PAIR, "username": "CORP\\", "allow_cleartext": True}, "must be a name, DOMAIN\\name"),
        ({"ntlm": "maybe", **PAIR}, "must be one of off, ntlm, negotiate"),
        ({**PAIR, "allow_cleartext": True}, "has a meaning with 'ntlm' alone"),
        ({"negotiate": {}}, "needs 'keytab', or 'cache'"),
        ({"negotiate": {"keytab": "file:/k", "cache": "/c"}}, "must not stand beside 'keytab'"),
        ({"negotiate": {"keytab": "env:K"}}, "must be file: and an absolute path"),
        ({"negotiate": {"keytab": "file:/k", "service": "web"}}, "must be HTTP/host@REALM or HTTP@host"),
        ({"negotiate": {"keytab": "file:/k"}, **PAIR}, "has no meaning beside 'negotiate'"),
        ({"negotiate": {"keytab": "file:/k"}, "url": "http://192.0.2.1:3128"}, "Kerberos knows servers by name"),
    ],
)
def test_what_is_checked(gateway, block, words):
    key = {"static": {"value": gateway.secret("value", "api-value-4")}}
    route = gateway.route("key", "https://web.example.com") | {"proxy": {"url": "http://proxy.example:3128"} | block}
    gateway.config = gateway.frame({"identities": {"key": key}, "routes": [route]})
    gateway.file.write_text(json.dumps(gateway.config))
    status, output, _ = gateway.command("check")
    assert status != 0 and words in output, output
