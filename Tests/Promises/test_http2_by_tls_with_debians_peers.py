"""Promise: with TLS on both sides ALPN decides the version of each, and the servers and callers of Debian see nothing unusual."""

import hashlib
import re
import subprocess

import pytest

from harness import executable
from origins import LARGE, forward, large
from pki import Authority
from servers_of_http2 import Files, Nghttpd

FLAGS = {1: "--http1.1", 2: "--http2"}
SAID = {1: "1.1", 2: "2"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    with Files(tmp_path_factory.mktemp("files")) as server:
        (server.root / "large").write_bytes(b"".join(large()))
        yield server


def secure(gateway, folder):
    """The listener speaks TLS and both versions; returns its authority."""
    authority = Authority(folder / "pki")
    certificate, key = authority.leaf("localhost", "DNS:localhost,IP:127.0.0.1")
    tls = [{"certificate": str(certificate), "key": f"file:{key}"}]
    gateway.config["listeners"] = {"edge": {"address": gateway.listen, "tls": tls}}
    for route in gateway.config["routes"]:
        route["listen"] = "edge"
    return authority


def curl(gateway, authority, version, path, *more):
    """(status, version, X-Protocol of the upstream, body)"""
    port = gateway.listen.split(":")[1]
    done = subprocess.run(
        [
            *[executable("CARDEA_CURL", "curl", "apt-get install curl"), "-sS", "--max-time", "20", FLAGS[version]],
            *["--cacert", str(authority.pem), "--resolve", f"localhost:{port}:127.0.0.1", "-D", "/dev/stderr"],
            *[*more, f"https://localhost:{port}{path}"],
        ],
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    text = done.stderr.decode()
    first = re.match(r"HTTP/([\d.]+) (\d+)", text)
    upstream = re.search(r"(?im)^x-protocol: (\S+)", text)
    return int(first[2]), first[1], upstream and upstream[1], done.stdout


@pytest.mark.parametrize("upstream", [1, 2])
@pytest.mark.parametrize("caller", [1, 2])
def test_curl_and_nginx(gateway, files, tmp_path, caller, upstream):
    forward(gateway, files.origin(upstream), 1, {**files.route(upstream), "http": "auto"})
    authority = secure(gateway, tmp_path)
    gateway.start()
    for _ in range(2):
        status, version, protocol, body = curl(gateway, authority, caller, "/large")
        assert (status, version, protocol) == (200, SAID[caller], f"HTTP/{ {1: '1.1', 2: '2.0'}[upstream] }")
        assert hashlib.sha256(body).digest() == hashlib.sha256(b"".join(large())).digest()
    up = files.root / f"up-{caller}-{upstream}"
    more = ["-T", str(files.root / "large"), "-H", "Expect:"]
    assert curl(gateway, authority, caller, f"/{up.name}", *more)[0] == 201
    assert up.read_bytes() == b"".join(large())
    assert curl(gateway, authority, caller, "/none")[0] == 404
    assert curl(gateway, authority, caller, "/large", "-I")[0] == 200
    assert curl(gateway, authority, caller, "/large", "-H", "Range: bytes=256-511")[3] == bytes(range(256))


def test_nghttp_and_nghttpd(gateway, tmp_path):
    """Forty requests at once on one connection, and a body up."""
    nghttp = executable("CARDEA_NGHTTP", "nghttp", "apt-get install nghttp2-client")
    data = tmp_path / "data"
    data.write_bytes(b"".join(large()))
    with Nghttpd(tmp_path, "--echo-upload") as server:
        (server.root / "large").write_bytes(data.read_bytes())
        forward(gateway, server.address, 2)
        gateway.config["threads"] = 1
        gateway.start()
        url = f"http://{gateway.listen}/large"
        done = subprocess.run([nghttp, "-n", "-v", "-m", "40", url], capture_output=True, timeout=60, text=True)
        assert done.returncode == 0, done.stderr
        assert len(re.findall(r":status: 200", done.stdout)) == 40, done.stdout[-2000:]
        assert "RST_STREAM" not in done.stdout and "error" not in done.stderr.lower(), done.stderr
        done = subprocess.run([nghttp, "-d", str(data), url], capture_output=True, timeout=60)
        assert done.returncode == 0 and done.stdout == data.read_bytes(), (len(done.stdout), done.stderr[-500:])
        assert LARGE == len(done.stdout)
        assert len(set(re.findall(r"\[id=(\d+)\]", server.text()))) == 1, "one connection"
