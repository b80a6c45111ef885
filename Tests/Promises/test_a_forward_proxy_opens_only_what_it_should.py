"""Promise: as a forward proxy the gateway gives a credential to configured hosts alone, opens only what it is allowed to, and leads nobody
to what listens beside it."""

import os
import pathlib
import socket
import ssl
import subprocess

import pytest

from forward import H2, OURS, THEIRS, TOKEN, Kept, laid_out, request, through
from harness import eventually, free_port
from pki import Authority


@pytest.fixture
def place(gateway, tmp_path):
    with laid_out(gateway, tmp_path) as made:
        yield made


# --- Routes, and what is none -----------------------------------------------------------------------------------------


def test_only_configured_hosts_get_the_credential(place):
    place.start(unmatched="tunnel")
    found = place.ask("http://api.test/a?b")
    assert found.status == 200 and f"https api.test /a?b auth=[Bearer {TOKEN}]" in found.body.decode(), found
    # Somewhere else the caller's own fields arrive, and nothing of ours; what it said to the proxy stays with it.
    found = place.ask("http://plain.test/c", fields="Proxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\n")
    assert found.status == 200 and "http plain.test /c auth=[] proxy=[]" in found.body.decode(), found
    # The target names the host, whatever the field says (RFC 9112 section 3.2.2).
    found = place.ask("http://plain.test/c", host="api.test")
    assert "http plain.test /c auth=[]" in found.body.decode(), found
    found = place.ask("http://api.test/c", host="plain.test")
    assert "https api.test /c auth=[Bearer" in found.body.decode(), found


def test_a_route_stands_for_its_host_on_the_ports_that_it_has(place):
    place.start(intercept=["api.test"])
    for target in ("http://api.test/", "http://api.test:80/", "http://api.test:443/", "https://api.test/"):
        assert TOKEN in place.ask(target, host="api.test").body.decode(), target
    for target in ("http://api.test:9/x", "http://api.test:8443/", "https://api.test:444/"):
        answer = place.ask(target, host="api.test")
        assert answer.status == 404 and answer.problem["type"].endswith("no-route"), (target, answer)
    assert place.connect("api.test:8443") == 404
    connection = place.opened("api.test:443")
    assert TOKEN in through(connection, request("api.test"))
    asked = [place.gateway.binary, "explain", "--config", str(place.gateway.file), "GET", "http://api.test:9/x"]
    said = subprocess.run(asked, capture_output=True, text=True).stdout
    assert "the port is none of 80, 443" in said and "no route matches" in said, said


def test_a_port_of_its_own_stands_in_the_match(place):
    place.start(unmatched="tunnel", route={"match": {"port": [8081, 8082]}, "to": "https://api.test"})
    for target in ("http://api.test:8081/", "http://whatever.test:8082/"):
        assert TOKEN in place.ask(target).body.decode(), target
    # Another port goes where the caller wants it to, and has nothing of ours.
    for target in ("http://api.test/a", "http://plain.test/b"):
        assert "auth=[] " in place.ask(target).body.decode(), target


def test_the_scheme_names_the_port_over_http2_too(place):
    place.start(route={"match": {"port": 443}, "to": "https://api.test"})
    caller = H2(place.raw().socket)
    cases = [("https", "", 200), ("http", "", 404), ("ftp", "", 404), ("http", ":443", 200), ("https", ":80", 404)]
    for scheme, port, expected in cases:
        head = ((":method", "GET"), (":scheme", scheme), (":authority", f"api.test{port}"), (":path", "/"))
        status, body = caller.ask(*head)
        assert (status, TOKEN.encode() in body) == (expected, expected == 200), (scheme, port, status)
    caller.socket.close()


def test_an_opened_connection_has_the_port_that_it_was_going_to(place):
    """Routes of one host that differ by their ports: a request is of the port of its CONNECT, whatever it says itself."""
    tls = {"ca": str(place.web.authority.pem)}
    other = {"name": "other", "listen": "edge", "match": {"host": "api.test", "port": 8443}, "to": "https://api.test", "tls": tls, "use": "none"}
    own = {**other, "name": "own", "match": {"host": "api.test"}, "use": "api"}
    for routes in ([other, own], [own, other]):
        place.start(intercept=["api.test"], routes=routes)
        for port, has in ((443, True), (8443, False)):
            for host in ("api.test", f"api.test:{port}"):
                seen = through(place.opened(f"api.test:{port}"), request(host))
                assert seen.startswith("HTTP/1.1 200") and (TOKEN in seen) == has, (port, host, seen)
        place.gateway.stop()
        for suffix in (".pem", ".crt"):
            pathlib.Path(f"{place.ca}{suffix}").unlink()


def test_what_is_no_proxy_request_is_refused(place):
    place.start(unmatched="tunnel")
    for method, target in (("GET", "/a"), ("OPTIONS", "*")):
        answer = place.ask(target, method, host="api.test")
        assert answer.status == 400 and answer.problem["type"].endswith("origin-form-refused"), answer
    for target in (
        "http://api.test@plain.test/",
        "http://plain.test:80@api.test/",
        "http://api.test:80:90/",
        "http://api.test:99999/",
        "http:///a",
        "http://api.test%2eplain.test/",
        "ftp://plain.test/",
        "http://plain.test\\@api.test/",
        "//api.test/",
    ):
        assert place.ask(target, host="api.test").status == 400, target
    assert place.ask("http://plain.test:0/").status in (400, 404)


def asks_by(raw, target, host, *fields):
    """The number of the connection on which the request reached the server."""
    found = raw.send("\r\n".join([f"GET {target} HTTP/1.1", f"Host: {host}", *fields]) + "\r\n\r\n").answer()
    assert found.status == 200, found
    return found.field("X-Connection")


@pytest.mark.parametrize("way", ["intercepted", "unmatched"])
def test_a_connection_that_a_caller_authenticated_is_his_alone(place, way):
    if way == "intercepted":
        place.start(intercept=["api.test"], route={"use": "none"}, threads=1)
        callers = [Kept(place.opened("api.test:443")) for _ in range(2)]
        target, host = "/", "api.test"
    else:
        place.start(unmatched="tunnel", threads=1)
        callers = [place.raw() for _ in range(2)]
        target, host = "http://plain.test/", "plain.test"
    first, second = callers
    owned = asks_by(first, target, host, "Authorization: NTLM TlRMTVNTUAAB")
    for _ in range(3):
        assert asks_by(second, target, host) != owned
        assert asks_by(first, target, host) == owned
    for caller in callers:
        caller.socket.close()


@pytest.mark.parametrize("authority", ["api.test", "api.test:", "api.test:0", "u@api.test:443", "[::1:443", "/", ":443"])
def test_a_connect_to_nowhere_is_refused(place, authority):
    place.start(unmatched="tunnel")
    assert place.connect(authority) == 400


def test_unmatched_is_refused_or_tunnelled(place):
    place.start(unmatched="refuse")
    assert place.ask("http://plain.test/").status == 404
    assert place.connect("other.test:443") == 404
    place.gateway.stop()
    place.start(unmatched="tunnel")
    made = ssl.create_default_context(cafile=place.web.authority.pem)
    with made.wrap_socket(place.connect("other.test:443"), server_hostname="other.test") as connection:
        assert "https other.test / auth=[]" in through(connection, request("other.test"))
    code, out, error = place.curl(
        *("--proxy", f"http://{place.gateway.listen}", "--resolve", "x:1:127.0.0.1"),
        *("--cacert", str(place.web.authority.pem), "https://other.test/"),
    )
    assert code == 0 and "auth=[]" in out, error


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.9.9.9", "0.0.0.0", OURS, "169.254.169.254", "169.254.7.1", "100.100.100.200", "192.0.0.192"]
    + ["[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:169.254.169.254]", "[fe80::1]", "[fd00:ec2::254]", "224.0.0.1"]
    + ["rebound.test", "own.test", "metadata.test", "six.test", "mapped.test", "localhost", "LOCALHOST"]
    + ["2130706433", "0x7f000001", "017700000001", "127.1", "0"],
)
def test_nobody_is_led_to_our_own_neighbourhood(place, host):
    place.start(unmatched="tunnel")
    port = free_port()
    with socket.create_server(("0.0.0.0", port)) as trap:
        trap.settimeout(0.2)
        assert place.connect(f"{host}:{port}") in (403, 502), host
        assert place.ask(f"http://{host}:{port}/").status in (403, 502), host
        with pytest.raises(TimeoutError):
            trap.accept()


def test_a_connect_without_a_body_may_say_so(place):
    """As npm's client does; with a body nobody could tell whose the octets behind the head are."""
    place.start(unmatched="tunnel")
    connection = place.connect("plain.test:80", "Content-Length: 0\r\n")
    assert "http plain.test / auth=[]" in through(connection, request("plain.test"))
    for fields in ("Content-Length: 1\r\n", "Transfer-Encoding: chunked\r\n"):
        assert place.connect("plain.test:80", fields) == 400, fields


def test_a_name_with_mixed_addresses_leads_only_abroad(place):
    place.start(unmatched="tunnel")
    for _ in range(6):
        with socket.create_server(("0.0.0.0", 80)) as trap:
            trap.settimeout(0.1)
            assert "http mixed.test" in place.ask("http://mixed.test/").body.decode()
            with pytest.raises(TimeoutError):
                trap.accept()


def test_an_address_that_we_get_later_is_ours_too(place):
    place.start(unmatched="tunnel")
    assert place.connect("10.91.0.9:80") in (502, 504)
    place.space.address("inner", "10.91.0.9/24")
    with socket.create_server(("10.91.0.9", 80)) as trap:
        trap.settimeout(0.2)
        eventually(lambda: place.connect("10.91.0.9:80") == 403, what="the new address to be known as ours")


def test_what_is_sent_behind_a_refused_connect_is_no_request(place):
    place.start(unmatched="refuse")
    inside = "GET http://api.test/inner HTTP/1.1\r\nHost: api.test\r\n\r\n"
    for head in ("", "Content-Length: 70\r\n", "Transfer-Encoding: chunked\r\n"):
        with place.raw() as raw:
            raw.send(f"CONNECT other.test:443 HTTP/1.1\r\nHost: other.test:443\r\n{head}\r\n{inside}")
            answer = raw.answer()
            assert answer.status in (400, 404) and answer.field("Connection") == "close", answer
            assert raw.rest() == b""


def test_a_connect_with_a_body_is_refused(place):
    place.start(unmatched="tunnel", intercept=["api.test"])
    for authority in ("other.test:443", "api.test:443"):
        for fields in ("Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"):
            assert place.connect(authority, fields) == 400


def test_who_is_refused_by_a_route_may_not_use_the_proxy(place):
    place.start(unmatched="tunnel", intercept=["api.test"], route={"callers": {"allow": ["192.0.2.0/24"]}})
    assert place.ask("http://plain.test/").status == 403
    assert place.connect("other.test:443") == 403
    assert place.connect("api.test:443") == 403


# --- Interception -----------------------------------------------------------------------------------------------------


def test_an_authority_is_made_once_and_speaks_for_its_hosts_alone(place):
    assert place.authority("api.test", "*.api.test").returncode == 0
    before = pathlib.Path(f"{place.ca}.pem").read_bytes()
    again = place.authority("evil.test")
    assert again.returncode != 0 and "is there already" in again.stderr
    assert pathlib.Path(f"{place.ca}.pem").read_bytes() == before
    assert os.stat(f"{place.ca}.pem").st_mode & 0o777 == 0o600
    # Only one of the two is there: nothing is written either.
    pathlib.Path(f"{place.ca}2.crt").write_text("")
    assert place.authority("api.test", out=f"{place.ca}2").returncode != 0
    assert not pathlib.Path(f"{place.ca}2.pem").exists()
    # With the stolen key somebody signs for whom he likes.
    folder = place.folder / "theft"
    thief = Authority(folder, "unused")
    for suffix, mark in ((".key", "PRIVATE KEY"), (".pem", "CERTIFICATE")):
        text = before.decode()
        start = text.index(f"-----BEGIN {mark}")
        end = text.index(f"-----END {mark}-----") + len(f"-----END {mark}-----\n")
        (folder / f"stolen{suffix}").write_text(text[start:end])
    thief.name, thief.pem = "stolen", folder / "stolen.pem"
    for names, good in (
        ("DNS:api.test", True),
        ("DNS:a.api.test", True),
        ("DNS:evil.test", False),
        ("DNS:xapi.test", False),
        ("DNS:api.test,DNS:evil.test", False),
        (f"IP:{THEIRS}", False),
        ("IP:::1", False),
    ):
        leaf, _ = thief.leaf("x", names)
        code = subprocess.run(
            ["openssl", "verify", "-x509_strict", "-CAfile", str(thief.pem), str(leaf)], capture_output=True, text=True
        )
        assert (code.returncode == 0) == good, (names, code.stdout, code.stderr)
        assert good or "subtree violation" in code.stderr, code.stderr


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_an_opened_host_gets_the_credential(place, version):
    place.start(intercept=["api.test"])
    code, out, error = place.curl(
        *("--proxy", f"http://{place.gateway.listen}", version, "--cacert", f"{place.ca}.crt", "-w", "%{http_version}"),
        *("https://api.test/one", "https://api.test/two"),
    )
    assert code == 0, error
    assert out.count(f"auth=[Bearer {TOKEN}]") == 2 and "api.test /two" in out, out
    assert out.endswith("2" if version == "--http2" else "1.1")


def test_a_host_that_is_not_to_be_opened_is_passed_untouched(place):
    place.start(unmatched="tunnel", intercept=["api.test"])
    made = ssl.create_default_context(cafile=place.web.authority.pem)
    for name in ("second.api.test", "other.test"):
        with made.wrap_socket(place.connect(f"{name}:443"), server_hostname=name) as connection:
            assert "auth=[]" in through(connection, request(name))


def test_connect_name_and_host_agree(place):
    place.start(unmatched="tunnel", intercept=["api.test", "second.api.test"])
    # The name of the handshake is another one than that of the CONNECT.
    for name in ("second.api.test", "other.test"):
        with pytest.raises((ssl.SSLError, OSError)):
            place.opened("api.test:443", name)
    assert "Bearer" in through(place.opened("API.test:443", "api.TEST"), request("Api.Test:443"))
    games = [
        request("second.api.test"),
        request("other.test"),
        request("api.test.other.test"),
        request("api.test.").replace("api.test.", "xapi.test"),
        "GET http://second.api.test/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n",
        "GET https://other.test/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
    ]
    for text in games:
        assert through(place.opened("api.test:443"), text).startswith("HTTP/1.1 421"), text
    # As the second request of a good connection it is no better.
    both = request("api.test", more="") + request("second.api.test")
    seen = through(place.opened("api.test:443"), both)
    assert seen.count("HTTP/1.1 200") == 1 and seen.count("HTTP/1.1 421") == 1, seen
    # A tunnel in the tunnel.
    text = "CONNECT other.test:443 HTTP/1.1\r\nHost: other.test:443\r\n\r\n"
    assert through(place.opened("api.test:443"), text).startswith("HTTP/1.1 405")


def test_a_path_without_a_route_is_not_let_out_of_an_opened_connection(place):
    place.start(unmatched="tunnel", intercept=["api.test"], route={"match": {"host": "api.test", "path": "/in/"}})
    assert through(place.opened("api.test:443"), request("api.test", "/out")).startswith("HTTP/1.1 404")
    assert "Bearer" in through(place.opened("api.test:443"), request("api.test", "/in/x"))


def plain(authority, path="/", method="GET"):
    return ((":method", method), (":scheme", "https"), (":authority", authority), (":path", path))


def test_names_agree_on_every_stream_of_http2(place):
    place.start(unmatched="tunnel", intercept=["api.test", "second.api.test"])
    caller = H2(place.opened("api.test:443", protocols=["h2"]))
    status, body = caller.ask(*plain("api.test"))
    assert status == 200 and TOKEN.encode() in body
    for fields in (
        plain("second.api.test"),
        plain("other.test"),
        ((":method", "GET"), (":scheme", "https"), (":path", "/"), ("host", "second.api.test")),
        ((":method", "GET"), (":scheme", "https"), (":path", "/")),
        (*plain("api.test"), ("host", "second.api.test")),
        plain("api.test@other.test"),
        plain("api.test", "https://other.test/"),
        plain("api.test", "//other.test/"),
        plain("api.test", "/ HTTP/1.1\r\nHost: other.test\r\n\r\n"),
        plain("api.test\r\nx: y"),
        plain("api.test", method="GET / HTTP/1.1\r\nX:"),
        ((":method", "CONNECT"), (":authority", "other.test:443")),
        (*plain("api.test", method="CONNECT"), (":protocol", "websocket")),
        (*plain("api.test"), ("connection", "authorization")),
        (*plain("api.test"), ("transfer-encoding", "chunked")),
        (*plain("api.test"), (":authority", "other.test")),
    ):
        status, body = caller.ask(*fields)
        assert status in (None, 400, 404, 405, 421), (fields, status, body)
        assert b"other.test" not in body and b"second" not in body, (fields, body)
        if status is None:
            caller = H2(place.opened("api.test:443", protocols=["h2"]))
    status, body = caller.ask(*plain("api.test", "/last"))
    assert status == 200 and b"https api.test /last" in body
    log = (place.web.folder / "access.log").read_text()
    assert "X:" not in log, log


def test_an_upstream_that_cannot_prove_itself_gets_no_leaf(place):
    place.start(unmatched="tunnel", intercept=["api.test", "bad.test"])
    with pytest.raises((ssl.SSLError, OSError)):
        place.opened("bad.test:443")
    told = "no certificate is shown for a host whose upstream did not prove itself"
    eventually(lambda: told in place.gateway.text(), what="the operator being told why")
    assert TOKEN not in (place.web.folder / "access.log").read_text()


def test_clear_text_in_an_opened_tunnel_is_no_request(place):
    place.start(unmatched="tunnel", intercept=["api.test"])
    connection = place.connect("api.test:443")
    seen = through(connection, request("api.test"))
    assert "Bearer" not in seen and not seen.startswith("HTTP/1.1 200"), seen
    assert (place.web.folder / "access.log").read_text() == ""
