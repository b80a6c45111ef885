"""Promise: a client is known by the certificate of its connection (RFC 8705), and a token bound to it goes with it."""

import base64
import hashlib
import ssl
import subprocess
import types

import pytest

from harness import Nginx, call, eventually


@pytest.fixture
def files(tmp_path):
    """A CA, the server's certificate, and the client's."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    Nginx.make_certificates(types.SimpleNamespace(folder=folder))

    def run(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    run("req", *key, "-keyout", "client.key", "-out", "client.csr", "-subj", "/CN=machine")
    signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2"]
    run("x509", "-req", "-in", "client.csr", *signed, "-out", "client.pem")
    (folder / "client.key").chmod(0o600)
    return folder


def thumbprint(path):
    der = ssl.PEM_cert_to_DER_cert(path.read_text())
    return base64.urlsafe_b64encode(hashlib.sha256(der).digest()).decode().rstrip("=")


def start(gateway, provider, files, **members):
    sites = provider.post("tls", {name: str(files / f"{file}") for name, file in FILES.items()})
    provider.client(
        "machine", auth="tls", grants=["client_credentials"], thumbprint=thumbprint(files / "client.pem"), **members
    )
    tls = {"ca": str(files / "ca.pem"), "certificate": str(files / "client.pem"), "key": f"file:{files}/client.key"}
    block = {"client_id": "machine", "client_auth": "tls", "token_url": sites["issuer"] + "/token"}
    gateway.provider(provider, api={"oauth2": block, "network": {"tls": tls}})
    route = gateway.config["routes"][0]
    route |= {"to": sites["api"], "tls": tls}
    return sites


FILES = {"ca": "ca.pem", "certificate": "server.pem", "key": "server.key"}


def test_the_certificate_is_the_proof_and_binds_the_token(gateway, provider, files):
    start(gateway, provider, files)
    gateway.start()
    answer = call(gateway.listens["api"])
    assert answer.status == 200, f"{answer}\n{gateway.text()}"
    assert answer.json["cnf"] == {"x5t#S256": thumbprint(files / "client.pem")}
    assert provider.steps("certificate")[0]["thumbprint"] == thumbprint(files / "client.pem")


def test_metadata_names_another_endpoint_for_it(gateway, provider, files):
    sites = start(gateway, provider, files)
    provider.post("faults", {"metadata": {"mtls_endpoint_aliases": {"token_endpoint": sites["issuer"] + "/token"}}})
    block = gateway.config["identities"]["api"]["oauth2"]
    del block["token_url"]
    block["issuer"] = provider.issuer
    gateway.start()
    assert call(gateway.listens["api"]).status == 200, gateway.text()


def test_another_certificate_is_refused_once(gateway, provider, files):
    start(gateway, provider, files)
    provider.client("machine", auth="tls", grants=["client_credentials"], thumbprint="another")
    gateway.start()
    for _ in range(3):
        answer = call(gateway.listens["api"])
        assert (answer.status, answer.problem["type"]) == (503, "urn:cardea:problems/credential-quarantined"), answer
    assert len(provider.steps("refused")) == 1


def test_a_new_certificate_is_used_on_both_sides(gateway, provider, files):
    """Rotation: the token that was bound to the old certificate is refused once, unseen by the caller, and replaced."""
    start(gateway, provider, files)
    gateway.start()
    old = thumbprint(files / "client.pem")
    assert call(gateway.listens["api"]).json["cnf"] == {"x5t#S256": old}

    def run(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=files)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    run("req", *key, "-keyout", "next.key", "-out", "next.csr", "-subj", "/CN=machine")
    run("x509", "-req", "-in", "next.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2", "-out", "next.pem")
    (files / "next.key").chmod(0o600)
    new = thumbprint(files / "next.pem")
    provider.client("machine", auth="tls", grants=["client_credentials"], thumbprint=new)
    (files / "next.key").rename(files / "client.key")
    (files / "next.pem").rename(files / "client.pem")

    def renewed():
        answer = call(gateway.listens["api"])
        assert answer.status == 200, f"{answer}\n{gateway.text()}"
        return answer.json["cnf"] == {"x5t#S256": new}

    eventually(renewed, within=15, what="the new certificate on both sides")
    assert len(provider.steps("bound_elsewhere")) <= 1 and not provider.steps("refused")


def issue(files, name):
    """Another certificate of the same client, in the place of its certificate."""

    def run(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=files)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    run("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", "/CN=machine")
    run("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2", "-out", f"{name}.pem")
    (files / f"{name}.key").chmod(0o600)
    (files / f"{name}.key").rename(files / "client.key")
    (files / f"{name}.pem").rename(files / "client.pem")


def test_a_stored_token_is_its_certificates_alone(gateway, provider, files):
    """The thumbprint belongs to the token's key: what was granted to another certificate is not even tried."""
    start(gateway, provider, files)
    gateway.start()
    first = call(gateway.listens["api"]).json["jti"]
    gateway.stop()
    gateway.start()
    assert call(gateway.listens["api"]).json["jti"] == first
    gateway.stop()
    issue(files, "next")
    new = thumbprint(files / "client.pem")
    provider.client("machine", auth="tls", grants=["client_credentials"], thumbprint=new)
    gateway.start()
    answer = call(gateway.listens["api"])
    assert (answer.status, answer.json["cnf"]) == (200, {"x5t#S256": new}), gateway.text()
    assert answer.json["jti"] != first
    assert not provider.steps("bound_elsewhere") and not provider.steps("refused")
