"""Promise: what is broken is named wherever an operator looks, log, `tokens`, `explain`, `/status` and page: the issuer by host and port,
the upstream by its address, and since when."""

import json
import re
import socket
import ssl
import threading

import pytest

from harness import eventually, free_port
from pki import Authority


def page(gateway):
    return re.sub(r"<[^>]+>", " ", gateway.ask("/").body.decode())


def test_an_issuer_that_is_down(gateway):
    place = f"127.0.0.1:{free_port()}"
    gateway.oauth(identity={"token_url": f"http://{place}/token"}).start()
    answer = gateway.get("/api/employees/1")
    assert answer.status == 503 and place.encode() not in answer.body, "where the issuer stands is no caller's matter"
    said = f"issuer unavailable: token: connection refused (at {place})"
    [event] = gateway.told(lambda event: event["message"] == "token cannot be had")
    assert event["reason"] == said
    assert re.search(rf"\d+s ago: {re.escape(said)}", gateway.command("tokens")[1])
    out = gateway.command("explain", "GET", f"http://{gateway.listen}/api/employees/1")[1]
    assert re.search(rf"last failure \d+s ago: {re.escape(said)}", out), out
    status = gateway.ask("/status").json
    assert status["identities"][0]["last_failure"] == status["tokens"][0]["last_failure"] == said
    assert 0 <= status["identities"][0]["last_failure_seconds_ago"] < 60
    assert re.search(rf"Last failure, \d+ s ago\s+Issuer unavailable: token: connection refused \(at {re.escape(place)}\)", page(gateway))
    code, out, _ = gateway.command("check", "--live")
    assert code == 69 and re.search(rf"^FAIL  identity \w+  \d+ ms  {re.escape(said)} ", out, re.M), out


def test_an_answer_of_an_issuer(gateway):
    gateway.lab.faults(issuer_status=500)
    gateway.oauth().start()
    assert gateway.get("/api/employees/1").status == 503
    assert f"(at {gateway.lab.issuer})" in gateway.command("tokens")[1]


def test_an_upstream_that_is_down(gateway):
    origin = f"http://127.0.0.1:{free_port()}"
    gateway.oauth(route={"to": origin}).start()
    assert gateway.ask("/status").json["upstreams"] == []
    assert gateway.get("/api/employees/1").status == 502
    reason = "no address of it takes a connection"
    [told] = gateway.ask("/status").json["upstreams"]
    assert (told["upstream"], told["addresses"], told["outage"]["reason"]) == (origin, [], reason), told
    assert re.search(rf"cannot be reached\s+for \d+ s: N{reason[1:]}", page(gateway))
    url = f"http://{gateway.listen}/api/employees/1"
    assert re.search(rf"upstream +{origin}/api/employees/1, cannot be reached for \d+s: {reason}", gateway.command("explain", "GET", url)[1])
    # Over when a connection has come about.
    with socket.create_server(("127.0.0.1", int(origin.rpartition(":")[2]))) as server:
        threading.Thread(target=lambda: server.accept()[0].close()).start()
        gateway.get("/api/employees/1")
    eventually(lambda: gateway.ask("/status").json["upstreams"] == [], what="the end of the outage")


def test_a_peer_that_speaks_no_tls(gateway):
    """A frequent mistake, of which OpenSSL speaks as of a wrong version."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                with server.accept()[0] as one:
                    one.recv(4096)
                    one.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            except OSError:
                return

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        gateway.oauth(route={"to": f"https://127.0.0.1:{server.getsockname()[1]}"}).start()
        assert gateway.get("/api/employees/1").status == 502
        [told] = gateway.ask("/status").json["upstreams"]
        assert "127.0.0.1 does not speak TLS on this port" in told["outage"]["reason"], told
        status, out, _ = gateway.command("check", "--live")
        assert status == 69 and "does not speak TLS on this port" in out and out.count("(route api)") == 2, out
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(10)


def test_an_authority_that_has_ended(gateway, tmp_path):
    """The server's own certificate is good, and is not what is told of."""
    authority = Authority(tmp_path / "pki")
    _, key = authority.leaf("localhost", "DNS:localhost")
    certificate = authority.folder / "localhost.work.crt"
    # The same authority's certificate, as it was until yesterday.
    old = authority.folder / "old.pem"
    (authority.folder / "ca.ext").write_text("basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n")
    authority.run("x509", "-x509toreq", "-in", "ca.pem", "-signkey", "ca.key", "-out", "ca.csr")
    authority.run("x509", "-req", "-in", "ca.csr", "-signkey", "ca.key", "-days", "-1", "-extfile", "ca.ext", "-out", str(old))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def serve():
            try:
                with context.wrap_socket(server.accept()[0], server_side=True) as one:
                    one.recv(1)
            except OSError:
                pass

        thread = threading.Thread(target=serve)
        thread.start()
        gateway.oauth(route={"to": f"https://localhost:{port}", "tls": {"ca": str(old)}}).start()
        assert gateway.get("/api/employees/1").status == 502
        thread.join(10)
    [told] = gateway.ask("/status").json["upstreams"]
    assert "the authority 'ca' that vouches for localhost has expired" in told["outage"]["reason"], told


def test_the_log_says_what_was_granted(gateway):
    gateway.oauth(route={"scopes": ["read"]}).start().warm("/api/employees/1")
    [event] = gateway.told(lambda event: event["message"] == "token acquired")
    assert event["scopes"] == "read" and 0 < event["expires_in_seconds"] <= 86_400, event


def test_counts_agree(gateway):
    """A secret that cannot be read is a failure like any other."""
    gateway.with_identity({"static": {"value": "file:/nowhere/key"}}).start()
    assert gateway.get("/").status == 503
    [identity] = gateway.ask("/status").json["identities"]
    assert identity["failures"] >= 1 and identity["last_failure"] and identity["last_failure_seconds_ago"] >= 0


@pytest.mark.parametrize("arguments", [["tokens", "purge", "late"], ["reset", "late"], ["logout", "late"]])
def test_a_name_that_the_gateway_has_not_taken_up(hot, arguments):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        hot.config["identities"]["late"] = {"static": {"value": "env:HOME"}}
        hot.config["routes"].append({"listen": f"127.0.0.1:{taken.getsockname()[1]}", "to": "http://127.0.0.1:1", "use": "late"})
        hot.file.write_text(json.dumps(hot.config))
        eventually(lambda: any(event["message"] == "reload refused" for event in hot.events()), what="the refusal")
        status, _, errors = hot.command(*arguments)
        assert status == 64 and "identity" in errors and "{" not in errors, errors


def test_refusals_are_told_in_words(gateway):
    gateway.webgate(changes={"store": None}).start().warm()
    status, out, errors = gateway.command("store", "verify")
    assert status == 69 and "{" not in out + errors, (out, errors)


def test_a_request_without_a_route(gateway):
    gateway.webgate(route={"match": {"path": "/hr/"}}).start()
    assert gateway.command("explain", "GET", f"http://{gateway.listen}/hr/x")[0] == 0
    assert gateway.command("explain", "GET", f"http://{gateway.listen}/other")[0] == 1
