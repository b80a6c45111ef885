"""Promise: a caller that insists on TLS finds it: by name, with or without a certificate of its own, and without a gap when files
change."""

import json
import re
import socket
import ssl
import subprocess
import threading
import time

import pytest

from harness import eventually, executable
from pki import Authority


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "pki")


def secure(gateway, entries, route=None, listener=None):
    """The HR API on a TLS listener."""
    tls = []
    for entry in entries:
        certificate, key = entry[:2]
        tls.append({"certificate": str(certificate), "key": f"file:{key}", **(entry[2] if len(entry) > 2 else {})})
    gateway.webgate(
        route={"listen": "edge", **(route or {})},
        changes={"listeners": {"edge": {"address": gateway.listen, "tls": tls, **(listener or {})}}},
    )
    return gateway


def curl(gateway, authority, host="localhost", path="/hr/rest/employees/42", *more):
    """(exit code, status, verbose text, body)"""
    port = gateway.listen.split(":")[1]
    done = subprocess.run(
        [
            *[executable("CARDEA_CURL", "curl", "apt-get install curl"), "-sv", "--max-time", "10", "--cacert"],
            *[str(authority.pem), "--resolve", f"{host}:{port}:127.0.0.1", "-w", "\n%{http_code}", *more],
            f"https://{host}:{port}{path}",
        ],
        capture_output=True,
        text=True,
    )
    body, _, status = done.stdout.rpartition("\n")
    return done.returncode, int(status or 0), done.stderr, body


def s_client(gateway, *arguments, send=b"", timeout=15):
    done = subprocess.run(
        ["openssl", "s_client", "-connect", gateway.listen, *arguments], input=send, capture_output=True, timeout=timeout
    )
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def context(authority, **rest):
    made = ssl.create_default_context(cafile=authority.pem)
    for name, value in rest.items():
        setattr(made, name, value)
    return made


def handshake(gateway, made, name="localhost", session=None):
    host, port = gateway.listen.split(":")
    raw = socket.create_connection((host, int(port)), timeout=10)
    return made.wrap_socket(raw, server_hostname=name, session=session)


def request(connection, name="localhost"):
    connection.sendall(f"GET /hr/rest/employees/42 HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
    return read_answer(connection)


def read_answer(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        assert piece, data
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
    while len(body) < length:
        piece = connection.recv(65536)
        assert piece, data
        body += piece
    return int(head.split()[1])


def test_common_clients_are_served_over_both_versions(gateway, authority):
    secure(gateway, [authority.leaf("localhost", "DNS:localhost")]).start()
    for tls, version in (((), "TLSv1.3"), (("--tls-max", "1.2"), "TLSv1.2")):
        for http, chosen in (("--http2", "h2"), ("--http1.1", "http/1.1")):
            code, status, text, _ = curl(gateway, authority, "localhost", "/hr/rest/employees/42", http, *tls)
            assert (code, status) == (0, 200), text
            assert f"SSL connection using {version}" in text and f"ALPN: server accepted {chosen}" in text, text
    code, _, text, _ = curl(gateway, authority, "localhost", "/", "--tls-max", "1.1")
    assert code == 35, text
    connection = handshake(gateway, context(authority))
    for _ in range(3):
        assert request(connection) == 200
    connection.close()
    assert gateway.lab.counts()["malformed"] == 0


def test_only_forward_secret_ciphers_are_spoken(gateway, authority):
    secure(gateway, [authority.leaf("localhost", "DNS:localhost", kind="rsa")]).start()
    for cipher in ("AES128-GCM-SHA256", "ECDHE-RSA-AES128-SHA", "DHE-RSA-AES128-GCM-SHA256", "NULL-SHA256:@SECLEVEL=0"):
        code, text = s_client(gateway, "-tls1_2", "-cipher", cipher)
        assert code != 0 and ("handshake failure" in text or "no ciphers" in text), text
    code, text = s_client(gateway, "-tls1_2")
    assert code == 0 and "ECDHE-RSA-AES256-GCM-SHA384" in text, text
    code, text = s_client(gateway, "-tls1_2", "-cipher", "ECDHE-RSA-CHACHA20-POLY1305:ECDHE-RSA-AES256-GCM-SHA384")
    assert code == 0 and "New, TLSv1.2, Cipher is ECDHE-RSA-CHACHA20-POLY1305" in text, text


def test_the_name_decides_the_certificate(gateway, authority):
    one = authority.leaf("one.example", "DNS:one.example")
    rest = authority.leaf("rest", "DNS:*.two.example,DNS:Exact.one.example")
    exact = authority.leaf("exact", "DNS:a.two.example")
    secure(gateway, [one, rest, exact]).start()
    for name, subject in (
        ("one.example", "one.example"),
        ("ONE.example", "one.example"),
        ("b.two.example", "rest"),
        ("exact.one.example", "rest"),
        ("a.two.example", "exact"),
        ("a.b.two.example", "one.example"),
        ("two.example", "one.example"),
        ("unknown.example", "one.example"),
    ):
        _, text = s_client(gateway, "-servername", name)
        assert re.search(rf"subject=CN ?= ?{re.escape(subject)}\n", text), f"{name}: {text}"
    _, text = s_client(gateway, "-noservername")
    assert re.search(r"subject=CN ?= ?one.example\n", text), text


def test_a_protocol_that_we_do_not_speak_is_refused_clearly(gateway, authority):
    secure(gateway, [authority.leaf("localhost", "DNS:localhost")]).start()
    code, text = s_client(gateway, "-alpn", "imap")
    assert code != 0 and "no application protocol" in text, text
    for offered in ("http/1.1", "h9,http/1.1", "http/1.0"):
        code, text = s_client(gateway, "-alpn", offered)
        assert code == 0, text


def test_clear_text_on_a_tls_port_is_told_what_is_wrong(gateway, authority):
    secure(gateway, [authority.leaf("localhost", "DNS:localhost")]).start()
    answer = gateway.get()
    assert answer.status == 400 and b"https://" in answer.body
    assert answer.field("Content-Type") == "text/plain"


def test_garbage_is_not_answered(gateway, authority):
    secure(gateway, [authority.leaf("localhost", "DNS:localhost")]).start()
    host, port = gateway.listen.split(":")
    for data in (b"\x00" * 64, b"\x16\x03\x01\xff\xff" + b"x" * 200, b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", b"\x80"):
        with socket.create_connection((host, int(port)), timeout=5) as raw:
            raw.sendall(data)
            raw.shutdown(socket.SHUT_WR)
            got = b""
            try:
                while piece := raw.recv(4096):
                    got += piece
            except ConnectionResetError:
                pass
            # An alert at most.
            assert len(got) <= 7 and (not got or got[0] == 21), got
    assert curl(gateway, authority)[1] == 200


def test_a_silent_caller_is_let_go(gateway, authority):
    secure(gateway, [authority.leaf("localhost", "DNS:localhost")]).start()
    host, port = gateway.listen.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as raw:
        raw.sendall(b"\x16\x03\x01\x02\x00")
        begun = time.monotonic()
        assert raw.recv(1) == b""
        assert 8 < time.monotonic() - begun < 25


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_are_resumed_on_every_loop(gateway, authority, version):
    secure(gateway, [authority.leaf("localhost", "DNS:localhost")])
    gateway.config["threads"] = 4
    gateway.start()
    made = context(authority, maximum_version=version)
    session, resumed = None, 0
    for _ in range(12):
        connection = handshake(gateway, made, session=session)
        assert request(connection) == 200
        resumed += connection.session_reused
        session = connection.session
        connection.close()
    assert resumed == 11


def test_a_changed_certificate_is_taken_up_without_a_gap(gateway, authority):
    first = authority.leaf("localhost", "DNS:localhost", as_name="live")
    secure(gateway, [first]).start()
    made = context(authority)
    old = handshake(gateway, made)
    assert request(old) == 200
    serial = old.getpeercert()["serialNumber"]
    failures, stop = [], threading.Event()

    def load():
        own = context(authority)
        while not stop.is_set():
            try:
                connection = handshake(gateway, own)
                if request(connection) != 200:
                    failures.append("status")
                connection.close()
            except (OSError, AssertionError) as error:
                failures.append(repr(error))

    worker = threading.Thread(target=load)
    worker.start()
    try:
        seen = {serial}
        for _ in range(5):
            authority.leaf("localhost", "DNS:localhost", as_name="live")

            def serves_another():
                connection = handshake(gateway, made)
                number = connection.getpeercert()["serialNumber"]
                connection.close()
                fresh = number not in seen
                seen.add(number)
                return fresh

            eventually(serves_another, what="the new certificate being shown")
            assert request(old) == 200
    finally:
        stop.set()
        worker.join()
    assert failures == []
    old.close()
    eventually(lambda: [e for e in gateway.events() if "taken up" in json.dumps(e)], what="an event")


def test_a_broken_new_certificate_leaves_the_old_one(gateway, authority):
    certificate, key = authority.leaf("localhost", "DNS:localhost", as_name="live")
    secure(gateway, [(certificate, key)]).start()
    sound = key.read_text()
    broken = certificate.parent / "broken"
    broken.write_text("no key at all")
    broken.chmod(0o600)
    broken.rename(key)
    event = eventually(
        lambda: next((e for e in gateway.events() if "cannot be used" in json.dumps(e)), None), what="an event"
    )
    assert "live" in json.dumps(event)
    assert curl(gateway, authority)[1] == 200
    broken.write_text(sound)
    broken.chmod(0o600)
    broken.rename(key)
    assert curl(gateway, authority)[1] == 200


def test_without_a_certificate_it_does_not_start(gateway, authority):
    certificate, key = authority.leaf("localhost", "DNS:localhost")
    secure(gateway, [(certificate, key)])
    certificate.unlink()
    gateway.file.write_text(json.dumps(gateway.config))
    status, _, error = gateway.command("run")
    assert status == 78 and str(certificate) in error, error


def test_callers_are_known_by_their_certificates(gateway, authority, tmp_path):
    others = Authority(tmp_path / "others", "others")
    certificate, key = authority.leaf("localhost", "DNS:localhost")
    callers = {"tls_names": ["app.example", "spiffe://example/ns/x/sa/y"]}
    secure(gateway, [(certificate, key, {"client_ca": str(authority.pem)})], route={"callers": callers}).start()

    def status(by, *names):
        pem, secret = by.leaf("caller", names[0], as_name="caller")
        return curl(gateway, authority, "localhost", "/hr/rest/employees/42", "--cert", str(pem), "--key", str(secret))

    assert status(authority, "DNS:app.example")[1] == 200
    assert status(authority, "URI:spiffe://example/ns/x/sa/y")[1] == 200
    assert status(authority, "DNS:other.example,DNS:APP.example")[1] == 200
    assert status(authority, "DNS:other.example")[1] == 403
    assert status(authority, "DNS:*.example")[1] == 403
    # A name in the subject alone is none.
    assert status(authority, "email:app.example@x.example")[1] == 403
    assert status(others, "DNS:app.example")[1] == 0
    code, got, text, _ = curl(gateway, authority)
    assert (code != 0 and got == 0) and "certificate required" in text, text
    for maximum in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        made = context(authority, maximum_version=maximum)
        pem, secret = authority.leaf("caller", "DNS:app.example", as_name="caller")
        made.load_cert_chain(pem, secret)
        session = None
        for _ in range(3):
            connection = handshake(gateway, made, session=session)
            assert request(connection) == 200
            assert not connection.session_reused
            session = connection.session
            connection.close()


def test_a_stapled_answer_is_sent_and_follows_its_file(gateway, authority):
    certificate, key = authority.leaf("localhost", "DNS:localhost")
    answer = authority.answer(certificate)
    secure(gateway, [(certificate, key, {"ocsp": str(answer)})]).start()
    _, text = s_client(gateway, "-status", "-servername", "localhost")
    assert "OCSP Response Status: successful" in text and "Cert Status: good" in text, text
    authority.answer(certificate, revoked=True)

    def is_gone():
        return "no response sent" in s_client(gateway, "-status", "-servername", "localhost")[1]

    eventually(is_gone, what="the revoked answer staying home")
    event = eventually(lambda: next((e for e in gateway.events() if "OCSP" in json.dumps(e)), None), what="an event")
    assert "revoked" in json.dumps(event)
    assert curl(gateway, authority)[1] == 200


def test_an_end_is_seen(gateway, authority):
    certificate, key = authority.leaf("localhost", "DNS:localhost", days=3650)
    gone = authority.leaf("gone", "DNS:gone.example", days=-1)
    secure(gateway, [(certificate, key), gone]).start()

    def said():
        return [event for event in gateway.events() if "has expired" in json.dumps(event)]

    assert "gone.pem" in json.dumps(eventually(said, what="an event")[0])
    assert len(said()) == 1
    found = {
        dict(labels)["file"]: value
        for (name, labels), value in gateway.metrics().items()
        if name == "cardea_certificate_expires_timestamp_seconds"
    }
    assert -2 < (found[str(gone[0])] - time.time()) / 86400 < -0.9
    assert 3600 < (found[str(certificate)] - time.time()) / 86400 <= 3650


def test_a_check_reads_the_certificates(gateway, authority):
    sound = authority.leaf("localhost", "DNS:localhost")
    gone = authority.leaf("gone", "DNS:gone.example", days=-1)
    secure(gateway, [sound, gone, (sound[0], gone[1])])
    gateway.file.write_text(json.dumps(gateway.config))
    status, out, _ = gateway.command("check")
    assert status == 78, out
    assert re.search(r"warning.*gone\.pem.*has expired", out) and re.search(r"error.*do not belong together", out), out
