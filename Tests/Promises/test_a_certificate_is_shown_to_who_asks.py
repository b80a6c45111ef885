"""Promise: an upstream that wants a client certificate gets the configured one, and never a request without it."""

import contextlib
import os

import pytest

from harness import eventually
from peers import Authority, free_ports, haproxy, nginx

PASSWORD = "p12-pass-word-7"


@pytest.fixture
def site(tmp_path):
    """nginx that demands a certificate of `clients` (TLS 1.3) and tells who came; another port does so with TLS 1.2."""
    servers = Authority(tmp_path / "servers", "servers")
    clients = Authority(tmp_path / "clients", "clients")
    certificate, key = servers.issue("server")
    ports = free_ports(2)
    blocks = "".join(
        f"""  server {{
    listen 127.0.0.1:{port} ssl; ssl_certificate {certificate}; ssl_certificate_key {key};
    ssl_protocols {protocol}; ssl_client_certificate {clients.file}; ssl_verify_client on; keepalive_requests 1000;
    location / {{ return 200 "$ssl_client_s_dn $connection $http_authorization"; }}
    location /refused {{ return 401 "no"; }}
  }}
"""
        for port, protocol in zip(ports, ("TLSv1.3", "TLSv1.2"))
    )
    with contextlib.closing(nginx(tmp_path / "site", blocks, [("127.0.0.1", port) for port in ports])):
        yield servers, clients, ports


def reference(gateway, path):
    """A secret file of the authority, which must not be told either."""
    gateway.secrets.append(path.read_bytes().decode("latin-1")[:200])
    return f"file:{path}"


def through(gateway, site, identity=None, tls=None, port=0, use="me", identities=None):
    servers, _, ports = site
    routes = [
        {
            **{"name": "mtls", "listen": gateway.listen, "to": f"https://127.0.0.1:{ports[port]}", "use": use},
            "tls": {"ca": str(servers.file), **(tls or {})},
        }
    ]
    config = {"routes": routes, "threads": 1, "identities": identities or {}}
    if identity is not None:
        config["identities"] = {"me": {"client_certificate": identity}}
    gateway.config = gateway.frame(config)
    return gateway.start()


@pytest.mark.parametrize("port", [0, 1], ids=["tls13", "tls12"])
@pytest.mark.parametrize("form", ["pem", "one_file", "encrypted", "pkcs12"])
def test_mutual_tls_alone(gateway, site, form, port):
    clients = site[1]
    certificate, key = clients.issue("alice")
    match form:
        case "pem":
            block = {"certificate": str(certificate), "key": reference(gateway, key)}
        case "one_file":
            both = clients.folder / "both.pem"
            both.write_bytes(key.read_bytes() + certificate.read_bytes())
            both.chmod(0o600)
            block = {"certificate": str(both)}
        case "encrypted":
            hidden = clients.encrypt("alice", PASSWORD)
            password = gateway.secret("password", PASSWORD)
            block = {"certificate": str(certificate), "key": f"file:{hidden}", "password": password}
        case "pkcs12":
            archive = clients.archive("alice", PASSWORD)
            block = {"certificate": str(archive), "password": gateway.secret("password", PASSWORD)}
    through(gateway, site, block, port=port)
    answer = gateway.get("/a")
    assert answer.status == 200 and answer.body.startswith(b"CN=alice "), answer
    # The connection is kept like any other, and no credential of ours or the caller's stands in the request but the caller's own.
    again = gateway.get("/b")
    assert again.body.split()[1] == answer.body.split()[1]


def test_beside_another_handshake(gateway, site):
    certificate, key = site[1].issue("alice")
    tls = {"certificate": str(certificate), "key": reference(gateway, key)}
    key = {"static": {"value": gateway.secret("value", "static-value-3")}}
    through(gateway, site, tls=tls, use="key", identities={"key": key})
    assert gateway.get("/").body.endswith(b" static-value-3")
    assert gateway.get("/").body.startswith(b"CN=alice ")


def test_of_several_the_one_whose_issuer_the_server_names(gateway, site, tmp_path):
    strangers = Authority(tmp_path / "strangers", "strangers")
    wrong = strangers.issue("mallory")
    right = site[1].issue("alice")
    blocks = [{"certificate": str(pair[0]), "key": reference(gateway, pair[1])} for pair in (wrong, right)]
    through(gateway, site, blocks)
    assert gateway.get("/").body.startswith(b"CN=alice ")


def test_a_renewed_certificate_is_used_at_once(gateway, site):
    clients = site[1]
    certificate, key = clients.issue("alice")
    through(gateway, site, {"certificate": str(certificate), "key": reference(gateway, key)})
    assert gateway.get("/").body.startswith(b"CN=alice ")
    fresh, fresh_key = clients.issue("bob")
    # In between the two do not match: the one before stays in use.
    os.replace(fresh_key, key)
    eventually(lambda: any("one before" in str(event) for event in gateway.events()), what="the mismatch to be told")
    assert gateway.get("/").body.startswith(b"CN=alice ")
    os.replace(fresh, certificate)
    eventually(lambda: gateway.get("/").body.startswith(b"CN=bob "), what="the renewed certificate")


def test_a_refusal_is_told_as_what_it_is(gateway, site):
    certificate, key = site[1].issue("alice")
    through(gateway, site, {"certificate": str(certificate), "key": reference(gateway, key)})
    answer = gateway.get("/refused")
    assert answer.status == 502 and answer.json["type"].endswith("upstream-refused-credential")
    assert "received-status=401" in answer.field("Proxy-Status")


def test_a_server_that_refuses_the_certificate_by_alert(gateway, site, tmp_path):
    """HAProxy refuses in the handshake; in TLS 1.3 the client hears of it when it reads the answer."""
    servers, clients, _ = site
    certificate, key = servers.issue("haproxy")
    joined = servers.folder / "haproxy-both.pem"
    joined.write_bytes(certificate.read_bytes() + key.read_bytes())
    [port] = free_ports(1)
    section = f"frontend f\n  bind 127.0.0.1:{port} ssl crt {joined} ca-file {clients.file} verify required\n"
    section += "  http-request return status 200 content-type text/plain lf-string %{+Q}[ssl_c_s_dn(cn)]"
    strangers = Authority(tmp_path / "strangers", "strangers")
    with contextlib.closing(haproxy(tmp_path / "haproxy", section, [("127.0.0.1", port)])):
        good = clients.issue("alice")
        block = {"certificate": str(good[0]), "key": reference(gateway, good[1])}
        through(gateway, (servers, clients, [port]), block)
        assert b"alice" in gateway.get("/").body
        gateway.stop()
        bad = strangers.issue("mallory")
        block = {"certificate": str(bad[0]), "key": reference(gateway, bad[1])}
        through(gateway, (servers, clients, [port]), block)
        answer = gateway.get("/")
        assert answer.status == 502 and answer.json["type"].endswith("upstream-tls"), answer
        gateway.stop()
        through(gateway, (servers, clients, [port]), use="none")
        answer = gateway.get("/")
        assert answer.status == 502 and answer.json["type"].endswith("upstream-tls"), answer
        assert any("alert" in str(event) or "certificate required" in str(event) for event in gateway.events())


def test_a_key_that_cannot_be_read_costs_its_route_alone_and_comes_back(gateway, site):
    clients = site[1]
    certificate, key = clients.issue("alice")
    aside = key.with_suffix(".aside")
    os.rename(key, aside)
    through(gateway, site, {"certificate": str(certificate), "key": f"file:{key}"})
    answer = gateway.get("/")
    assert answer.status == 503 and answer.json["type"].endswith("secret-unreadable"), answer
    os.rename(aside, key)
    eventually(lambda: gateway.get("/").status == 200, what="the key to be found")


def test_an_end_in_sight_is_told(gateway, site):
    certificate, key = site[1].issue("alice", days=30)
    gone = site[1].issue("carol", days=-1)
    blocks = [{"certificate": str(pair[0]), "key": f"file:{pair[1]}"} for pair in ((certificate, key), gone)]
    through(gateway, site, blocks)
    eventually(lambda: any("has ended" in str(event) for event in gateway.events()), what="the end told")
    assert not any("ends soon" in str(event) for event in gateway.events())
    status, output, _ = gateway.command("check")
    assert status == 0 and "has ended" in output
