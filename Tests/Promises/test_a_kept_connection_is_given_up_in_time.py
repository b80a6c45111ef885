"""Promise: a server that closes kept connections early loses no request: its word on how long it keeps them is heeded, and what cannot be
sent again goes out on a connection that was just in use, else on a new one."""

import contextlib
import time

from harness import eventually
from peers import free_ports, nginx
from scripted import OK, Scripted, get, plain


def once(peer):
    """Answers the first request of a connection. The next one finds the connection closed, as the server has meant to all along."""
    peer.request()
    peer.send(OK)
    peer.request()


def test_what_cannot_be_sent_again_goes_out_on_a_new_one(gateway):
    with Scripted(once) as upstream:
        plain(gateway, upstream, {"timeouts": {"reuse": "1ms"}}).start()
        with gateway.raw() as raw:
            for number in range(10):
                assert raw.send(get(gateway, f"/{number}", "Content-Length: 4", method="POST") + b"once").answer().status == 200
                time.sleep(0.005)
                assert raw.send(get(gateway, f"/{number}", "Content-Length: 4", method="PUT") + b"once").answer().status == 200
                time.sleep(0.005)
        assert upstream.connections == 20 and len(upstream.requests) == 20


def test_one_that_is_in_use_serves_it(gateway):
    def script(peer):
        for _ in peer.requests():
            peer.send(OK)

    with Scripted(script) as upstream:
        plain(gateway, upstream, {"timeouts": {"reuse": "60s"}}).start()
        with gateway.raw() as raw:
            for number in range(10):
                assert raw.send(get(gateway, f"/{number}", "Content-Length: 4", method="POST") + b"once").answer().status == 200
        assert upstream.connections == 1


def idle(gateway, upstream):
    return gateway.metrics()["cardea_upstream_connections", (("state", "idle"), ("upstream", upstream))]


def test_a_servers_word_is_heeded(gateway, tmp_path):
    [silent, speaking] = free_ports(2)
    block = (
        f"server {{ listen 127.0.0.1:{silent}; keepalive_timeout 60s; location / {{ return 200 a; }} }}"
        f"server {{ listen 127.0.0.1:{speaking}; keepalive_timeout 60s 1s; location / {{ return 200 b; }} }}"
    )
    listening = [("127.0.0.1", silent), ("127.0.0.1", speaking)]
    with contextlib.closing(nginx(tmp_path / "nginx", block, listening)):
        ways = {path: f"http://127.0.0.1:{port}" for path, port in (("/a", silent), ("/b", speaking))}
        routes = [
            gateway.route("none", to) | {"name": path[1:], "match": {"path": path}} for path, to in ways.items()
        ]
        gateway.config = gateway.frame({"routes": routes, "threads": 1})
        gateway.start()
        assert gateway.get("/a").body == b"a" and gateway.get("/b").body == b"b"
        eventually(lambda: idle(gateway, ways["/b"]) == 0, within=10, what="the end of the connection")
        assert idle(gateway, ways["/a"]) == 1
