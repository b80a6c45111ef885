"""Promise: an upstream connection that a caller authenticates (NTLM, Negotiate) serves no other caller, and ends with its owner."""

import base64
import contextlib
import hashlib
import os
import subprocess
import threading

import pytest

from harness import eventually, executable
from http2_peers import Caller, Server
from peers import Authority, free_ports, nginx
from scripted import Scripted, answer, plain
from wire import Raw

HTTP_1_1_REQUIRED = 0xD
MAGIC = b"NTLMSSP\0"
PASSWORDS = {"ada": b"lovelace", "bob": b"builder"}


def message(kind, rest=b""):
    return base64.b64encode(MAGIC + kind.to_bytes(4, "little") + rest).decode()


def proof(user, nonce):
    return hashlib.sha256(PASSWORDS[user] + nonce).hexdigest()


class Strict:
    """A server that authenticates connections in three messages. It takes a third message only where it sent the second, and afterwards
    everybody on the connection for the user."""

    def __init__(self):
        self.users = []

    def __call__(self, peer):
        user, nonce = None, None
        for request in peer.requests():
            words = (request.field("Authorization") or "").split(" ", 1)
            content = base64.b64decode(words[1]) if len(words) == 2 else b""
            if words[0] == "NTLM" and content[8:12] == b"\1\0\0\0":
                nonce = os.urandom(8)
                more = (0).to_bytes(8, "little") + (0x8201).to_bytes(4, "little") + nonce + bytes(16)
                peer.send(answer(b"", b"WWW-Authenticate: NTLM " + message(2, more).encode(), status=b"401 Unauthorized"))
                continue
            if words[0] == "NTLM" and content[8:12] == b"\3\0\0\0" and nonce:
                # A real client's message is not computed again here: that it answers on the connection is what counts.
                user, shown = "program", content[12:].decode("latin-1").split(" ")
                if shown[0] == "test":
                    user = shown[1] if shown[2] == proof(shown[1], nonce) else None
                nonce = None
            if user is None:
                peer.send(answer(b"who?", b"WWW-Authenticate: NTLM", status=b"401 Unauthorized"))
            else:
                self.users.append((peer.number, user))
                peer.send(answer(f"{user} {peer.number}".encode()))


def get(path="/", *fields, host="localhost"):
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", *fields]
    return "\r\n".join(lines) + "\r\n\r\n"


def log_in(raw, user, path="/", host="localhost"):
    """The three messages on one connection; the last answer."""
    first = raw.send(get(path, f"Authorization: NTLM {message(1)}", host=host)).answer()
    assert first.status == 401, first
    nonce = base64.b64decode(first.field("WWW-Authenticate").split(" ")[1])[24:32]
    third = message(3, f"test {user} {proof(user, nonce)}".encode())
    return raw.send(get(path, f"Authorization: NTLM {third}", host=host)).answer()


@pytest.mark.parametrize("mode", ["gateway", "forward_proxy"])
def test_nobody_else_is_served_on_it(gateway, mode):
    with Scripted(Strict()) as upstream:
        path = "/"
        if mode == "forward_proxy":
            path = "http://localhost/"
            entry = {"edge": {"address": gateway.listen, "mode": mode}}
            plain(gateway, upstream, {"listen": "edge", "match": {"host": "localhost"}}, listeners=entry).start()
        else:
            plain(gateway, upstream).start()
        with gateway.raw() as ada, gateway.raw() as bob, gateway.raw() as nobody:
            assert log_in(ada, "ada", path).body == b"ada 0"
            for _ in range(3):
                assert nobody.send(get(path)).answer().status == 401
            assert log_in(bob, "bob", path).body.startswith(b"bob")
            for _ in range(3):
                # Without a credential from here on: the connection stands for the user.
                assert ada.send(get(path)).answer().body == b"ada 0"
                assert bob.send(get(path)).answer().body.startswith(b"bob")
                assert nobody.send(get(path)).answer().status == 401


def test_it_ends_with_its_owner(gateway):
    ended = threading.Event()
    strict = Strict()

    def script(peer):
        strict(peer)
        ended.set()

    with Scripted(script) as upstream:
        plain(gateway, upstream).start()
        with gateway.raw() as ada:
            assert log_in(ada, "ada").body == b"ada 0"
            assert not ended.is_set()
        assert ended.wait(10), "the owner is gone and its connection is still there"
        assert gateway.get("/").status == 401


def test_at_the_bound_it_gives_way(gateway):
    with Scripted(Strict()) as upstream:
        plain(gateway, upstream, {"limits": {"connections": 1}}).start()
        with gateway.raw() as ada, gateway.raw() as nobody:
            assert log_in(ada, "ada").body == b"ada 0"
            assert nobody.send(get()).answer().status == 401
            # She has to log in again, and can.
            assert ada.send(get()).answer().status == 401
            assert log_in(ada, "ada").body.startswith(b"ada")


def test_a_real_client_logs_in(gateway):
    curl = executable("CARDEA_CURL", "curl", "apt-get install curl")
    with Scripted(Strict()) as upstream:
        plain(gateway, upstream).start()
        url = f"http://{gateway.listen}/"
        done = subprocess.run(
            [curl, "-sS", "--max-time", "20", "--ntlm", "-u", "ada:lovelace", url, url], capture_output=True, text=True
        )
        assert done.stdout == "program 0program 0", done
        assert gateway.get("/").status == 401


def test_over_http2_the_caller_is_sent_to_http1(gateway):
    with Scripted(Strict()) as upstream:
        plain(gateway, upstream).start()
        with Caller(gateway.listen) as caller:
            for scheme in ("NTLM " + message(1), "Negotiate YIIabc="):
                stream = caller.request("GET", "/", [("authorization", scheme)])
                stream.wait(lambda: False)
                assert stream.code == HTTP_1_1_REQUIRED
            assert not upstream.requests
            # The connection stays for what needs none of its own.
            other = caller.request("GET", "/", [("authorization", "Basic YTpi")])
            assert other.head() == 401 and len(upstream.requests) == 1
        eventually(
            lambda: [line.get("fault") for line in gateway.access()].count("connection-shared") == 2, what="two records"
        )


def test_over_http2_alone_it_is_not_forwarded(gateway):
    def script(stream):
        stream.send_head([(":status", "200")], ended=True)

    with Server(script) as upstream:
        gateway.config = gateway.frame(
            {"routes": [gateway.route("none", upstream.address) | {"http": "2"}], "threads": 1}
        )
        gateway.start()
        refused = gateway.get("/", headers={"Authorization": "Negotiate YIIabc="})
        assert refused.status == 502 and refused.json["type"].endswith("/connection-shared")
        assert "http: auto" in refused.json["detail"]
        assert not upstream.streams
        assert gateway.get("/").status == 200


def test_an_upstream_of_both_versions_is_spoken_to_in_http1(gateway, tmp_path):
    authority = Authority(tmp_path / "pki")
    certificate, key = authority.issue("server")
    [port] = free_ports(1)
    block = (
        f"server {{ listen 127.0.0.1:{port} ssl http2; ssl_certificate {certificate}; ssl_certificate_key {key};"
        ' location / { return 200 "$server_protocol $connection"; } }'
    )
    with contextlib.closing(nginx(tmp_path / "nginx", block, [("127.0.0.1", port)])):
        route = gateway.route("none", f"https://localhost:{port}") | {"tls": {"ca": [str(authority.file)]}}
        gateway.config = gateway.frame({"routes": [route], "threads": 1})
        gateway.start()
        with Raw(gateway.listen) as owner:
            assert gateway.get("/").body.startswith(b"HTTP/2.0 ")
            first = owner.send(get("/", "Authorization: Negotiate YIIabc=")).answer().body
            assert first.startswith(b"HTTP/1.1 ")
            assert gateway.get("/").body.startswith(b"HTTP/2.0 ")
            # On the same connection, also without the credential.
            assert owner.send(get("/")).answer().body == first
            assert gateway.get("/").body.startswith(b"HTTP/2.0 ")
