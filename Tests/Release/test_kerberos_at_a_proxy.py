"""A proxy on the way that wants Kerberos gets it: Debian's squid with its own helper, and a KDC of MIT's."""

import contextlib
import json

import pytest

from harness import Cardea, eventually, held, together
from kerberos import KDC, REALM
from peers import Authority, Squid, free_ports, nginx
from scripted import OK, Scripted, answer


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
def squid(kdc):
    [port] = free_ports(1)
    helper = f"/usr/lib/squid/negotiate_kerberos_auth -k {kdc.keytab('http')} -s HTTP/localhost@{REALM}"
    asks = [f"auth_param negotiate program {helper}", "auth_param negotiate children 2", "auth_param negotiate keep_alive on"]
    with contextlib.closing(Squid(port, asks=asks, environment={**kdc.variables, "KRB5RCACHENAME": "none:"})) as program:
        program.address = f"localhost:{port}"
        yield program


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """nginx in clear text and with TLS; it answers with the fields that reached it."""
    folder = tmp_path_factory.mktemp("site")
    authority = Authority(folder / "ca")
    certificate, key = authority.issue("server")
    plain, secure = free_ports(2)
    listens = f"listen 127.0.0.1:{plain}; listen 127.0.0.1:{secure} ssl;"
    # A body is read where it is passed on.
    block = f"""
client_max_body_size 8m; client_body_buffer_size 8m;
server {{ {listens} ssl_certificate {certificate}; ssl_certificate_key {key};
    location / {{ return 200 "$http_proxy_authorization|$http_authorization|$request_uri"; }}
    location /length {{ proxy_pass http://127.0.0.1:{plain}/told; proxy_set_header Length $content_length; }}
    location /told {{ return 200 "$http_length"; }} }}"""
    with contextlib.closing(nginx(folder / "site", block, [("127.0.0.1", plain), ("127.0.0.1", secure)])):
        yield authority, plain, secure


def ticket(kdc, name, **more):
    return {"keytab": f"file:{kdc.keytab(name)}", "principal": f"{name}@{REALM}", **more}


def through(gateway, to, authority, squid, block):
    key = {"static": {"value": gateway.secret("value", "api-value-4")}}
    proxy = {"url": f"http://{squid.address}", "negotiate": block}
    route = gateway.route("key", to) | {"tls": {"ca": str(authority.file)}, "proxy": proxy, "allow_cleartext": True}
    gateway.config = gateway.frame({"identities": {"key": key}, "routes": [route], "threads": 1})
    return gateway.start()


def users(squid):
    """Who asked for what was not refused, as the log has it."""
    lines = (squid.place / "access.log").read_text().splitlines()
    return [line.split()[7] for line in lines if "NONE_NONE" not in line and "407" not in line.split()[3]]


def test_tunnels(gateway, kdc, squid, site):
    authority, _, secure = site
    before = kdc.asked()
    through(gateway, f"https://127.0.0.1:{secure}", authority, squid, ticket(kdc, "anna"))
    for _ in range(5):
        answer = gateway.get("/a?b")
        assert (answer.status, answer.body) == (200, b"|api-value-4|/a?b"), (answer, gateway.text())
    gateway.stop()
    asked = eventually(squid.requests, what="squid's log")
    # One token opens it; nothing is asked for twice.
    assert asked == [("TCP_TUNNEL/200", "CONNECT", f"127.0.0.1:{secure}")] and kdc.asked() - before <= 3, asked


def test_requests_that_the_proxy_reads(gateway, kdc, squid, site):
    authority, plain, _ = site
    before = kdc.asked()
    through(gateway, f"http://127.0.0.1:{plain}", authority, squid, ticket(kdc, "anna"))
    for _ in range(5):
        answer = gateway.get("/a?b")
        assert (answer.status, answer.body) == (200, b"|api-value-4|/a?b"), (answer, gateway.text())
    assert gateway.call("POST", "/length", b"x" * 100_000).body == b"100000"
    results = eventually(lambda: len(squid.requests()) == 6 and squid.requests(), what="squid's log")
    assert {result for result, _, _ in results} == {"TCP_MISS/200"} and kdc.asked() - before <= 3, results
    assert set(users(squid)) == {f"anna@{REALM}"}


def test_tickets_of_another_program(gateway, kdc, squid, site, tmp_path):
    authority, _, secure = site
    cache = tmp_path / "tickets"
    kdc.tool("kinit", "-k", "-t", kdc.keytab("bert"), "-c", f"FILE:{cache}", f"bert@{REALM}")
    through(gateway, f"https://127.0.0.1:{secure}", authority, squid, {"cache": str(cache)})
    assert gateway.get("/a?b").status == 200, gateway.text()
    gateway.stop()
    assert eventually(lambda: users(squid), what="squid's log") == [f"bert@{REALM}"]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_connections_end_with_the_keytab(gateway, kdc, squid, site, tmp_path, scheme):
    authority, plain, secure = site
    keys = tmp_path / "keys"

    def put(name):
        # In one step, as whoever rotates keys does it.
        fresh = tmp_path / "fresh"
        fresh.write_bytes((kdc.folder / f"{name}.keytab").read_bytes())
        fresh.chmod(0o600)
        fresh.rename(keys)

    put("anna")
    through(gateway, f"{scheme}://127.0.0.1:{plain if scheme == 'http' else secure}", authority, squid, {"keytab": f"file:{keys}"})
    assert gateway.get("/").status == 200, gateway.text()
    put("bert")
    # Squid tells of a tunnel at its end.
    eventually(lambda: gateway.get("/").status == 200 and f"{'bert' if scheme == 'http' else 'anna'}@{REALM}" in users(squid),
               what="connections that were authenticated before to end")
    gateway.stop()
    assert set(eventually(lambda: len(set(users(squid))) == 2 and users(squid), what="squid's log")) == {f"anna@{REALM}", f"bert@{REALM}"}


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_token_for_another_server(gateway, kdc, squid, site, scheme):
    """The proxy cannot read it; each request shows it one."""
    authority, plain, secure = site
    kdc.admin("addprinc -randkey HTTP/other.example")
    port = plain if scheme == "http" else secure
    block = ticket(kdc, "anna", service=f"HTTP/other.example@{REALM}")
    through(gateway, f"{scheme}://127.0.0.1:{port}", authority, squid, block)
    answer = gateway.get("/")
    assert answer.status == 502 and answer.json["type"].endswith("proxy-refused"), (answer, gateway.text())
    assert answer.field("Proxy-Authenticate") is None and "received-status=407" in answer.field("Proxy-Status")
    assert eventually(lambda: len(squid.requests()) == 1, what="squid's log"), squid.requests()


def test_a_wrong_key_is_tried_once(gateway, kdc, squid, site, tmp_path):
    authority, _, secure = site
    wrong = tmp_path / "wrong.keytab"
    kdc.tool("ktutil", input=f"addent -password -p anna@{REALM} -k 1 -e aes256-cts\nnot this one\nwkt {wrong}\n")
    before = kdc.asked()
    through(gateway, f"https://127.0.0.1:{secure}", authority, squid, {"keytab": f"file:{wrong}"})
    answers = [gateway.get("/") for _ in range(5)]
    assert {answer.json["type"].rpartition("/")[2] for answer in answers} == {"credential-quarantined"}, answers
    assert kdc.asked() - before <= 2 and not squid.requests(), (before, kdc.asked())
    # A right one is tried at once.
    wrong.write_bytes((kdc.folder / "anna.keytab").read_bytes())
    eventually(lambda: gateway.get("/").status == 200, what="the new keytab to be used")


def test_a_silent_kdc_delays_nobody_who_has_tickets(gateway, kdc, squid, site):
    authority, plain, _ = site
    through(gateway, f"http://127.0.0.1:{plain}", authority, squid, ticket(kdc, "anna"))
    assert gateway.get("/").status == 200
    kdc.freeze()
    try:
        # Connections of their own, each with a token out of the tickets that are there.
        together(10, lambda _: check(gateway))
    finally:
        kdc.thaw()
    gateway.stop()


def check(gateway):
    answer = gateway.get("/")
    assert answer.status == 200, answer


def test_a_server_unknown_to_the_kdc(gateway, kdc, squid, site):
    authority, _, secure = site
    through(gateway, f"https://127.0.0.1:{secure}", authority, squid, ticket(kdc, "anna", service=f"HTTP/elsewhere.example@{REALM}"))
    answer = gateway.get("/")
    assert answer.status == 503 and "not found in Kerberos database" in answer.json["detail"], answer


def test_checks_of_health_go_the_same_way(gateway, kdc, squid, site):
    authority, plain, _ = site
    through(gateway, f"http://127.0.0.1:{plain}", authority, squid, ticket(kdc, "anna"))
    gateway.stop()
    [route] = gateway.config["routes"]
    route["health"] = {"path": "/health", "interval": "1s", "timeout": "1s"}
    gateway.start()
    eventually(lambda: ("TCP_MISS/200", "GET", f"http://127.0.0.1:{plain}/health") in squid.requests(), what="a check")
    assert gateway.get("/").status == 200


def test_the_command_says_what_it_met(gateway, kdc, squid, site):
    authority, _, secure = site
    through(gateway, f"https://127.0.0.1:{secure}", authority, squid, ticket(kdc, "anna"))
    gateway.stop()
    status, output, errors = gateway.command("check", "--live")
    assert status == 0 and "connected, certificate good" in output, (output, errors)
    gateway.config["routes"][0]["proxy"]["negotiate"]["service"] = f"HTTP/elsewhere.example@{REALM}"
    gateway.file.write_text(json.dumps(gateway.config))
    status, output, _ = gateway.command("check", "--live")
    assert status != 0 and "not found in Kerberos database" in output, output


def test_a_proxy_that_wants_a_token_with_each_request(gateway, kdc, site):
    """The second request on a connection meets that; from there on each has one."""
    authority, plain, _ = site

    def script(peer):
        for request in peer.requests():
            is_known = (request.field("Proxy-Authorization") or "").startswith("Negotiate YI")
            peer.send(OK if is_known else answer(b"no!", b"Proxy-Authenticate: Negotiate", status=b"407 No"))

    with Scripted(script) as proxy:
        proxy.address = proxy.address.replace("127.0.0.1", "localhost")
        through(gateway, f"http://127.0.0.1:{plain}", authority, proxy, ticket(kdc, "anna"))
        assert [gateway.call("POST", "/", b"x" * 100).status for _ in range(6)] == [200] * 6, gateway.text()
        tokens = [request.field("Proxy-Authorization") for request in proxy.requests]
        assert [token is None for token in tokens] == [False, True] + [False] * 5, tokens
        assert len(set(tokens)) == 7


@pytest.mark.parametrize("told", ["Negotiate oQcwBaADCgEC", "Negotiate AAAA", "Negotiate =", "Negotiate " + "QUFB" * 1000, "Negotiate", "Basic realm=x"])
def test_a_challenge_that_is_none(gateway, kdc, site, told):
    authority, _, secure = site

    def script(peer):
        for _ in peer.requests():
            peer.send(answer(b"no!", f"Proxy-Authenticate: {told}".encode(), status=b"407 No"))

    with Scripted(script) as proxy:
        proxy.address = proxy.address.replace("127.0.0.1", "localhost")
        through(gateway, f"https://127.0.0.1:{secure}", authority, proxy, ticket(kdc, "anna"))
        for _ in range(2):
            refused = gateway.get("/")
            assert refused.status == 502 and refused.json["type"].endswith("proxy-refused"), (refused, gateway.text())
        assert len(proxy.requests) == 2
