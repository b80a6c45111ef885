"""A proxy on the way that wants NTLM gets it: Debian's squid, whose helper asks Samba."""

import contextlib

import pytest

from harness import Cardea, eventually, held, together
from peers import free_ports
from samba import DOMAIN, USER, SambaSquid
from test_kerberos_at_a_proxy import site, users  # noqa: F401  (a fixture)

PASSWORD = "pass-wörd-of-nobody-4"


@pytest.fixture
def gateway(page_lab, tmp_path):
    with contextlib.contextmanager(held)(Cardea, page_lab, tmp_path) as make:
        yield make()


@pytest.fixture(scope="module")
def squid():
    [port] = free_ports(1)
    with contextlib.closing(SambaSquid(port, PASSWORD)) as program:
        yield program


@pytest.fixture(autouse=True)
def anew(squid):
    squid.before = len(squid.requests())


def asked(squid):
    return squid.requests()[squid.before:]


def through(gateway, to, authority, squid, password=PASSWORD, username=f"{DOMAIN}\\{USER}"):
    key = {"static": {"value": gateway.secret("value", "api-value-4")}}
    secret = gateway.secret("proxy", password)
    proxy = {"url": f"http://{squid.address}", "username": username, "password": secret, "ntlm": "ntlm"}
    route = gateway.route("key", to) | {"tls": {"ca": str(authority.file)}, "proxy": proxy, "allow_cleartext": True}
    gateway.config = gateway.frame({"identities": {"key": key}, "routes": [route], "threads": 1})
    return gateway.start()


@pytest.mark.parametrize("username", [f"{DOMAIN}\\{USER}", USER, f"{DOMAIN.lower()}\\{USER.upper()}"])
def test_tunnels(gateway, squid, site, username):  # noqa: F811
    authority, _, secure = site
    through(gateway, f"https://127.0.0.1:{secure}", authority, squid, username=username)
    for _ in range(5):
        answer = gateway.get("/a?b")
        assert (answer.status, answer.body) == (200, b"|api-value-4|/a?b"), (answer, gateway.text())
    gateway.stop()
    results = eventually(lambda: len(asked(squid)) == 2 and asked(squid), what="squid's log")
    assert [(result, method) for result, method, _ in results] == [("TCP_DENIED/407", "CONNECT"), ("TCP_TUNNEL/200", "CONNECT")]


def test_requests_that_the_proxy_reads(gateway, squid, site):  # noqa: F811
    authority, plain, _ = site
    through(gateway, f"http://127.0.0.1:{plain}", authority, squid)
    assert gateway.call("POST", "/length", b"x" * 100_000).body == b"100000", gateway.text()
    for _ in range(5):
        answer = gateway.get("/a?b")
        assert (answer.status, answer.body) == (200, b"|api-value-4|/a?b"), (answer, gateway.text())
    results = eventually(lambda: len(asked(squid)) >= 7 and asked(squid), what="squid's log")
    assert [(result, method) for result, method, _ in results] == [
        ("TCP_DENIED/407", "HEAD"), ("TCP_MISS/200", "POST"), *[("TCP_MISS/200", "GET")] * 5]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_wrong_password_is_tried_once_a_request(gateway, squid, site, scheme):  # noqa: F811
    authority, plain, secure = site
    through(gateway, f"{scheme}://127.0.0.1:{plain if scheme == 'http' else secure}", authority, squid, password="wrong-word-5")
    answer = gateway.get("/")
    assert answer.status == 502 and answer.json["type"].endswith("proxy-refused"), (answer, gateway.text())
    assert answer.field("Proxy-Authenticate") is None
    results = eventually(lambda: len(asked(squid)) >= 2 and asked(squid), what="squid's log")
    assert [result for result, _, _ in results] == ["TCP_DENIED/407"] * 2
    gateway.secret("proxy", PASSWORD)
    eventually(lambda: gateway.get("/").status == 200, what="the new password to be used")


def test_many_at_once(gateway, squid, site):  # noqa: F811
    authority, plain, _ = site
    through(gateway, f"http://127.0.0.1:{plain}", authority, squid)

    def ask(_):
        answer = gateway.get("/a?b")
        assert (answer.status, answer.body) == (200, b"|api-value-4|/a?b"), answer

    for _ in range(3):
        together(12, ask)
    gateway.stop()
    assert all(DOMAIN in user for user in users(squid)), users(squid)
