"""Promise: behind an outgoing HTTP proxy everything works as without; the proxy's credential stays with the proxy, ours with the API."""

import contextlib

import pytest

from harness import eventually
from peers import Authority, free_ports, nginx, tinyproxy

PASSWORD = "proxy-pass-word-5"


@pytest.fixture
def proxy(tmp_path):
    [port] = free_ports(1)
    with contextlib.closing(tinyproxy(tmp_path / "proxy", port, "cardea", PASSWORD)) as program:
        program.address = f"127.0.0.1:{port}"
        program.text = lambda: (tmp_path / "proxy" / "proxy.log").read_text()
        yield program


@pytest.fixture
def site(tmp_path):
    """nginx in clear text and with TLS; it answers with the fields that reached it."""
    authority = Authority(tmp_path / "ca")
    certificate, key = authority.issue("server")
    plain, secure = free_ports(2)
    listens = f"listen 127.0.0.1:{plain}; listen 127.0.0.1:{secure} ssl;"
    fields = "$http_proxy_authorization|$http_authorization|$http_host|$request_uri|$connection"
    block = f'server {{ {listens} ssl_certificate {certificate}; ssl_certificate_key {key}; location / {{ return 200 "{fields}"; }} }}'
    with contextlib.closing(nginx(tmp_path / "site", block, [("127.0.0.1", plain), ("127.0.0.1", secure)])):
        yield authority, plain, secure


def settings(gateway, proxy, password=PASSWORD):
    return {"url": f"http://{proxy.address}", "username": "cardea", "password": gateway.secret("proxy", password)}


def through(gateway, to, authority, proxy):
    key = {"static": {"value": gateway.secret("value", "api-value-4")}}
    route = gateway.route("key", to) | {"tls": {"ca": str(authority.file)}, "proxy": proxy, "allow_cleartext": True}
    gateway.config = gateway.frame({"identities": {"key": key}, "routes": [route], "threads": 1})
    return gateway.start()


def test_https_by_connect(gateway, proxy, site):
    authority, _, secure = site
    through(gateway, f"https://127.0.0.1:{secure}", authority, settings(gateway, proxy))
    answers = [gateway.get("/a?b=c") for _ in range(5)]
    parts = [answer.body.decode().split("|") for answer in answers]
    assert all(part[:4] == ["", "api-value-4", f"127.0.0.1:{secure}", "/a?b=c"] for part in parts), parts
    # One tunnel carries them all, and the proxy read nothing of it.
    assert len({part[4] for part in parts}) == 1
    assert proxy.text().count(f"CONNECT 127.0.0.1:{secure}") == 1 and "/a?b=c" not in proxy.text()


def test_http_by_absolute_targets(gateway, proxy, site):
    authority, plain, _ = site
    through(gateway, f"http://127.0.0.1:{plain}", authority, settings(gateway, proxy))
    parts = gateway.get("/a?b=c").body.decode().split("|")
    assert parts[:4] == ["", "api-value-4", f"127.0.0.1:{plain}", "/a?b=c"], parts
    assert f"http://127.0.0.1:{plain}/a?b=c" in proxy.text()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_asks_for_a_credential_is_told_apart(gateway, proxy, site, scheme):
    authority, plain, secure = site
    port = plain if scheme == "http" else secure
    through(gateway, f"{scheme}://127.0.0.1:{port}", authority, f"http://{proxy.address}")
    answer = gateway.get("/")
    assert answer.status == 502 and answer.json["type"].endswith("proxy-refused"), answer
    assert "received-status=407" in answer.field("Proxy-Status")
    assert answer.field("Proxy-Authenticate") is None


def test_a_new_password_is_used_without_a_restart(gateway, proxy, site):
    authority, _, secure = site
    through(gateway, f"https://127.0.0.1:{secure}", authority, settings(gateway, proxy, "wrong-pass-word"))
    answer = gateway.get("/")
    assert answer.status == 502 and answer.json["type"].endswith("proxy-refused"), answer
    gateway.secret("proxy", PASSWORD)
    eventually(lambda: gateway.get("/").status == 200, what="the new password to be used")


def test_without_the_proxy_nothing_goes_out(gateway, proxy, site):
    authority, _, secure = site
    proxy.die()
    through(gateway, f"https://127.0.0.1:{secure}", authority, settings(gateway, proxy))
    assert gateway.get("/").json["type"].endswith("upstream-refused")
    proxy.start()
    assert gateway.get("/").status == 200


def test_an_issuer_behind_a_proxy(gateway, proxy):
    gateway.oauth()
    gateway.config["identities"]["api"]["network"] = {"proxy": settings(gateway, proxy)}
    gateway.start().warm("/api/employees/1")
    assert f"http://{gateway.lab.issuer}/token" in proxy.text()
