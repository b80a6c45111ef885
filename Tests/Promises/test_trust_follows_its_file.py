"""Promise: the authorities that a file names are the ones that count, from the moment that it names them."""

import concurrent.futures
import contextlib
import http.client
import os
import shutil
import socket
import threading

import pytest

from harness import eventually
from peers import Authority, free_ports, nginx
from scripted import Scripted


class Site:
    """nginx twice: behind the certificate of one authority at /old, behind another's at /new. Each also hands out tokens."""

    def __init__(self, folder, protocol):
        self.folder = folder
        self.authorities = {name: Authority(folder / name, name) for name in ("old", "new")}
        self.ports = dict(zip(self.authorities, free_ports(2)))
        blocks = ""
        for name, authority in self.authorities.items():
            certificate, key = authority.issue("server")
            blocks += f"""  server {{
    listen 127.0.0.1:{self.ports[name]} ssl{protocol}; ssl_certificate {certificate}; ssl_certificate_key {key};
    keepalive_requests 1000;
    location / {{ return 200 "$connection $http_authorization"; }}
    location /token {{
      default_type application/json; return 200 '{{"access_token": "{name}-token", "token_type": "Bearer", "expires_in": 600}}';
    }}
  }}
"""
        self.bundle = folder / "bundle" / "ca.pem"
        self.bundle.parent.mkdir()
        self.server = nginx(folder / "site", blocks, [("127.0.0.1", port) for port in self.ports.values()])

    def trust(self, *names):
        fresh = self.bundle.with_suffix(".fresh")
        fresh.write_bytes(b"".join(self.authorities[name].file.read_bytes() for name in names))
        os.replace(fresh, self.bundle)

    def route(self, gateway, name, tls):
        return {
            **{"name": name, "listen": gateway.listen, "match": {"path": f"/{name}/"}, "tls": tls},
            **{"to": f"https://127.0.0.1:{self.ports[name]}", "use": "none"},
        }

    def through(self, gateway, tls):
        routes = [self.route(gateway, name, tls) for name in self.ports]
        gateway.config = gateway.frame({"routes": routes, "threads": 1, "identities": {}})
        return gateway.start()


@pytest.fixture(params=["", " http2"], ids=["http1", "http2"])
def site(request, tmp_path):
    site = Site(tmp_path, request.param)
    with contextlib.closing(site.server):
        yield site


def statuses(gateway):
    return [gateway.get(f"/{name}/x").status for name in ("old", "new")]


def told(gateway, *words):
    return any(all(word in str(event) for word in words) for event in gateway.events())


def test_a_replaced_file_counts_at_once_and_for_connections_that_stand(gateway, site):
    site.trust("old")
    site.through(gateway, {"ca": str(site.bundle)})
    assert statuses(gateway) == [200, 502]
    connection = gateway.get("/old/x").body.split()[0]
    assert gateway.get("/old/x").body.split()[0] == connection, "a connection that is kept"
    site.trust("old", "new")
    eventually(lambda: statuses(gateway) == [200, 200], what="both to be trusted")
    site.trust("new")
    eventually(lambda: statuses(gateway) == [502, 200], what="the old one to be refused, whose connection stood")
    answer = gateway.get("/old/x")
    assert answer.json["type"].endswith("upstream-tls"), answer
    site.trust("old", "new")
    eventually(lambda: statuses(gateway) == [200, 200], what="both to be trusted again")


def test_a_file_that_is_no_bundle_leaves_what_was_read(gateway, site):
    site.trust("old")
    site.through(gateway, {"ca": str(site.bundle)})
    assert statuses(gateway) == [200, 502]
    whole = site.authorities["new"].file.read_bytes()
    for broken, reason in (
        (b"no certificate\n", "no PEM certificate found"),
        (site.authorities["old"].file.read_bytes() + whole[: len(whole) // 2] + whole, "certificate 2: "),
    ):
        site.bundle.write_bytes(broken)
        eventually(lambda: told(gateway, "authorities cannot be used", reason, "those before"), what="the fault to be told")
        assert statuses(gateway) == [200, 502]
    site.bundle.unlink()
    eventually(lambda: told(gateway, "authorities cannot be used", "No such file"), what="the fault to be told")
    assert statuses(gateway) == [200, 502]
    site.trust("new")
    eventually(lambda: statuses(gateway) == [502, 200], what="the bundle to be read")


def test_a_file_that_comes_later(gateway, site):
    site.through(gateway, {"ca": str(site.bundle)})
    assert statuses(gateway) == [502, 502]
    words = ("authorities cannot be used", str(site.bundle), "No such file", "none")
    eventually(lambda: told(gateway, *words), what="the missing file to be told")
    site.trust("old", "new")
    eventually(lambda: statuses(gateway) == [200, 200], what="the bundle to be read")


def test_a_link_that_is_swapped(gateway, site):
    """As Kubernetes changes a mounted volume: the file is a link through a folder that is replaced."""
    folder = site.bundle.parent
    for name in site.authorities:
        (folder / f"..{name}").mkdir()
        shutil.copy(site.authorities[name].file, folder / f"..{name}" / "ca.pem")
    (folder / "..data").symlink_to("..old")
    site.bundle.symlink_to("..data/ca.pem")
    site.through(gateway, {"ca": str(site.bundle)})
    assert statuses(gateway) == [200, 502]
    (folder / "..fresh").symlink_to("..new")
    os.replace(folder / "..fresh", folder / "..data")
    eventually(lambda: statuses(gateway) == [502, 200], what="the other bundle to count")


def test_the_systems_file(gateway, site):
    site.trust("old")
    gateway.wrapper = ["env", f"SSL_CERT_FILE={site.bundle}"]
    site.through(gateway, {})
    assert statuses(gateway) == [200, 502]
    site.trust("new")
    eventually(lambda: statuses(gateway) == [502, 200], what="the other bundle to count")


def test_an_issuer_is_judged_anew(gateway, site):
    site.trust("old")
    who = {
        **{"token_url": f"https://127.0.0.1:{site.ports['old']}/token", "client_id": "edge"},
        **{"client_secret": gateway.secret("client", "c" * 20)},
    }
    route = site.route(gateway, "new", {"ca": str(site.authorities["new"].file)}) | {"use": "me"}
    identity = {"oauth2": who, "network": {"tls": {"ca": str(site.bundle)}}}
    gateway.config = gateway.frame({"routes": [route], "threads": 1, "identities": {"me": identity}})
    gateway.start()
    assert gateway.get("/new/x").body.endswith(b" Bearer old-token")
    site.trust("new")
    eventually(lambda: told(gateway, "certificate authorities read", str(site.bundle)), what="the bundle to be read")
    assert gateway.command("tokens", "purge", "me")[0] == 0
    answer = gateway.get("/new/x")
    assert answer.status == 503, answer
    site.trust("old")
    eventually(lambda: gateway.get("/new/x").status == 200, within=30, what="the issuer to be trusted again")


def test_a_handshake_that_began_before_serves_nobody_else(gateway, site):
    """Its request is the last that the authority vouches for: over HTTP/2 the connection would be everybody's."""
    opened = threading.Event()

    def hold(peer):
        opened.wait(60)
        with socket.create_connection(("127.0.0.1", site.ports["old"])) as server:
            threading.Thread(target=pump, args=(server, peer.socket), daemon=True).start()
            pump(peer.socket, server)

    def pump(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    site.trust("old")
    with Scripted(hold) as relay, concurrent.futures.ThreadPoolExecutor() as pool:
        route = site.route(gateway, "old", {"ca": str(site.bundle)}) | {"to": f"https://{relay.address}", "timeouts": {"connect": "30s"}}
        gateway.config = gateway.frame({"routes": [route], "threads": 1, "identities": {}})
        gateway.start()
        first = pool.submit(gateway.get, "/old/x")
        eventually(lambda: relay.connections == 1, what="the first handshake to begin")
        site.trust("new")
        eventually(lambda: told(gateway, "certificate authorities read"), what="the bundle to be read")
        second = http.client.HTTPConnection(gateway.listen, timeout=30)
        second.request("GET", "/old/x")
        # The one loop has looked at what stood there before this.
        assert gateway.get("/nowhere").status == 404
        opened.set()
        assert first.result(30).status in (200, 502)
        assert second.getresponse().status == 502
        assert [gateway.get("/old/x").status for _ in range(3)] == [502] * 3
