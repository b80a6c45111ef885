"""Promise: an upstream that wants a client certificate gets the configured one, and never a request without it."""

import base64
import contextlib
import datetime
import os

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from harness import eventually
from peers import Authority, free_ports, haproxy, nginx
from scripted import Issuer, Scripted

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


def beside(gateway, scheme, issuer):
    """An identity of each kind, and what stands in its requests."""
    value = gateway.secret("value", "static-value-3")
    bearer = b"Bearer token-1"
    match scheme:
        case "static":
            return {"static": {"value": value}}, b"static-value-3"
        case "basic":
            return {"basic": {"username": "svc", "password": value}}, b"Basic " + base64.b64encode(b"svc:static-value-3")
        case "oauth2":
            block = {"token_url": f"http://{issuer.address}/t", "client_id": "edge", "client_secret": value}
            return {"oauth2": block}, bearer
        case "recipe":
            origin = f"http://{issuer.address}"
            step = {"name": "login", "post": f"{origin}/t", "form": {"key": "{secret.key}"}, "take": {"token": {"json": "/access_token"}}}
            block = {"secrets": {"key": {"value": value, "to": origin}}, "steps": [step], "token": "{login.token}"}
            return {"recipe": block}, bearer
        case "signed":
            secret = {"key": {"value": value, "to": f"https://127.0.0.1:{issuer.port}"}}
            block = {"secrets": secret, "sign": {"proof": "{secret.key | base64}"}}
            block["inject"] = {"header": "Authorization", "value": "Signed {sign.proof}"}
            return {"recipe": block}, b"Signed " + base64.b64encode(b"static-value-3")


@pytest.mark.parametrize("scheme", ["static", "basic", "oauth2", "recipe", "signed"])
def test_beside_another_handshake(gateway, site, scheme):
    certificate, key = site[1].issue("alice")
    tls = {"certificate": str(certificate), "key": reference(gateway, key)}
    with Scripted(Issuer()) as issuer:
        issuer.port = site[2][0]
        identity, shown = beside(gateway, scheme, issuer)
        through(gateway, site, tls=tls, use="key", identities={"key": identity})
        for _ in range(3):
            answer = gateway.get("/")
            assert answer.body.startswith(b"CN=alice ") and answer.body.endswith(b" " + shown), answer
        # The certificate is for this upstream: the issuer was asked in clear text, and asked once.
        assert issuer.connections == (1 if scheme in ("oauth2", "recipe") else 0)


@pytest.mark.parametrize("port", [0, 1], ids=["tls13", "tls12"])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_of_several_the_one_whose_issuer_the_server_names(gateway, site, tmp_path, port, order):
    strangers = Authority(tmp_path / "strangers", "strangers")
    others = Authority(tmp_path / "others", "others")
    pairs = [strangers.issue("mallory"), site[1].issue("alice"), others.issue("oscar")]
    blocks = [{"certificate": str(pairs[index][0]), "key": reference(gateway, pairs[index][1])} for index in order]
    through(gateway, site, blocks, port=port)
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
        gateway.told(lambda event: "alert" in str(event) or "certificate required" in str(event))


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


def aged(authority, name, life, left):
    """A leaf of so many days, of which so many are left."""
    certificate, key = authority.issue(name)
    known = x509.load_pem_x509_certificate(certificate.read_bytes())
    issuer = serialization.load_pem_private_key((authority.folder / f"{authority.name}.key").read_bytes(), None)
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder(
        known.issuer, known.subject, known.public_key(), x509.random_serial_number(),
        now - datetime.timedelta(days=life - left), now + datetime.timedelta(days=left, minutes=5),
    )
    made = builder.sign(issuer, hashes.SHA256() if not isinstance(issuer, ed25519.Ed25519PrivateKey) else None)
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return certificate, key


@pytest.mark.parametrize("life, left, is_soon", [(100, 19, True), (100, 21, False), (1000, 29, True), (1000, 31, False), (5, 4, False)])
def test_one_that_ends_soon_is_told_while_it_serves(gateway, site, life, left, is_soon):
    """In the last fifth of its life, and at most thirty days ahead."""
    certificate, key = aged(site[1], "alice", life, left)
    through(gateway, site, {"certificate": str(certificate), "key": reference(gateway, key)})
    assert gateway.get("/").body.startswith(b"CN=alice ")
    status, output, errors = gateway.command("check")
    assert (status, "ends" in output + errors) == (0, is_soon), output + errors
    message = "client certificate ends soon; renew it"
    if not is_soon:
        assert message not in gateway.text()
    else:
        [told] = gateway.told(lambda event: event["message"] == message)
        assert (told["hours"], told["level"]) == (24 * left, "warn")
