"""Promise: a named proxy tells for whom it connects; nobody else can, and nobody becomes local by it."""

import contextlib
import socket
import subprocess

import pytest

from harness import call, eventually
from pki import Authority, HAProxy


def proxied(gateway, allow, listener=None, route=None, trusted=("127.0.0.0/8",)):
    block = {"address": gateway.listen, "proxy_protocol": {"from": list(trusted)}, **(listener or {})}
    gateway.webgate(
        route={"listen": "edge", "callers": {"allow": allow} if allow else None, **(route or {})},
        changes={"listeners": {"edge": block}},
    )
    return gateway


def ask(to, head, path="/hr/rest/employees/42"):
    """One request behind a header of one's own: the status, or None for a connection that ended without an answer."""
    host, port = to.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as raw:
        try:
            raw.sendall(head + f"GET {path} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n".encode())
            data = b""
            while piece := raw.recv(65536):
                data += piece
        except (ConnectionResetError, BrokenPipeError):
            return None
    return int(data.split()[1]) if data else None


@pytest.mark.parametrize("how", ["send-proxy", "send-proxy-v2", "send-proxy-v2-ssl-cn"])
def test_haproxy_in_front(gateway, tmp_path, how):
    # HAProxy's own caller is on this machine, so it claims a loopback address, which is nobody's: only `unsafe_open` admits it.
    proxied(gateway, None, route={"callers": {"unsafe_open": True}}).start()
    with contextlib.closing(HAProxy(tmp_path / "haproxy", gateway.listen, how)) as front:
        for _ in range(3):
            assert call(front.address, path="/hr/rest/employees/42", headers={"Host": gateway.listen}).status == 200


@pytest.mark.parametrize("how", ["send-proxy", "send-proxy-v2"])
def test_a_loopback_address_that_haproxy_claims_is_not_local(gateway, tmp_path, how):
    proxied(gateway, ["127.0.0.0/8", "::1/128"]).start()
    with contextlib.closing(HAProxy(tmp_path / "haproxy", gateway.listen, how)) as front:
        assert call(front.address, path="/hr/rest/employees/42", headers={"Host": gateway.listen}).status == 403
    assert gateway.lab.counts()["protected_requests"] == 0


def test_the_claimed_address_is_admitted_and_logged(gateway):
    proxied(gateway, ["192.0.2.0/24"]).start()
    assert ask(gateway.listen, b"PROXY TCP4 192.0.2.7 10.0.0.1 12345 80\r\n") == 200
    assert ask(gateway.listen, b"PROXY TCP4 198.51.100.7 10.0.0.1 12345 80\r\n") == 403
    assert ask(gateway.listen, b"PROXY UNKNOWN\r\n") == 403
    gateway.stop()
    eventually(lambda: any("192.0.2.7" in str(line) for line in gateway.access()), what="the line in the log")


def test_without_a_header_a_named_proxy_gets_nothing(gateway):
    proxied(gateway, None, route={"callers": {"unsafe_open": True}}).start()
    for head in (b"", b"PROXY TCP4 192.0.2.7 10.0.0.1 1 80\n", b"PROXY TCP4 192.0.2.7\r\n", b"\r\n\r\n\x00\r\nQUIT\n\x31\x11\x00\x0c"):
        assert ask(gateway.listen, head) is None
    assert ask(gateway.listen, b"PROXY UNKNOWN\r\n") == 200


def test_others_are_not_served_at_all(gateway):
    proxied(gateway, None, route={"callers": {"unsafe_open": True}}, trusted=["192.0.2.1/32"]).start()
    for head in (b"", b"PROXY UNKNOWN\r\n", b"PROXY TCP4 192.0.2.7 10.0.0.1 1 80\r\n"):
        assert ask(gateway.listen, head) is None
    assert gateway.lab.counts()["protected_requests"] == 0


def test_the_limit_of_an_address_counts_callers_and_not_the_proxy(gateway):
    proxied(gateway, ["192.0.2.0/24"])
    gateway.config["limits"] = {"connections_per_address": 2}
    gateway.start()
    host, port = gateway.listen.split(":")
    held = []

    def open_(number):
        raw = socket.create_connection((host, int(port)), timeout=10)
        held.append(raw)
        raw.sendall(f"PROXY TCP4 192.0.2.{number} 10.0.0.1 1 80\r\n".encode())
        raw.sendall(f"GET /hr/rest/employees/42 HTTP/1.1\r\nHost: {gateway.listen}\r\n\r\n".encode())
        return int(raw.recv(65536).split()[1])

    try:
        assert [open_(1), open_(1), open_(2), open_(2)] == [200] * 4
        assert [open_(1), open_(2), open_(3)] == [503, 503, 200]
    finally:
        for raw in held:
            raw.close()


def test_haproxy_may_pass_tls_through(gateway, tmp_path):
    authority = Authority(tmp_path / "pki")
    certificate, key = authority.leaf("localhost", "DNS:localhost")
    proxied(
        gateway,
        None,
        listener={"tls": [{"certificate": str(certificate), "key": f"file:{key}"}]},
        route={"callers": {"unsafe_open": True}},
    ).start()
    with contextlib.closing(HAProxy(tmp_path / "haproxy", gateway.listen, "send-proxy-v2")) as front:
        done = subprocess.run(
            ["curl", "-s", "--max-time", "10", "--cacert", str(authority.pem), "-o", "/dev/null", "-w", "%{http_code}"]
            + [f"https://localhost:{front.port}/hr/rest/employees/42", "--resolve", f"localhost:{front.port}:127.0.0.1"],
            capture_output=True,
            text=True,
        )
        assert done.stdout == "200", done


@pytest.mark.parametrize("http", ["--http1.1", "--http2-prior-knowledge"])
def test_curl_may_speak_for_itself_in_either_protocol(gateway, http):
    proxied(gateway, None, route={"callers": {"unsafe_open": True}}).start()
    done = subprocess.run(
        ["curl", "-s", "--max-time", "10", "--haproxy-protocol", http, "-o", "/dev/null", "-w", "%{http_code} %{http_version}"]
        + [f"http://{gateway.listen}/hr/rest/employees/42"],
        capture_output=True,
        text=True,
    )
    assert done.stdout == ("200 2" if "2" in http else "200 1.1"), done
