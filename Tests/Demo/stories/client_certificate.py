"""An unchanged caller, an API that admits nobody without a certificate, Cardea between."""

import http.server
import json
import os
import pathlib
import ssl
import subprocess
import threading
import time

from stage import CALLERS, GATEWAY, Deviation, a_thousand_more, ask, at_once, conclude, curl, expect, page

TITLE = "an unchanged caller, an API behind mutual TLS"
SECRETS = {}
LAB = []
MACHINES = "/machines/"
TRY = f"{MACHINES}7"


class API(http.server.BaseHTTPRequestHandler):
    """Says who asked, by the certificate of the connection."""

    protocol_version = "HTTP/1.1"
    # Otherwise the body's packet waits for the caller's word on the head's.
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self):
        subject = dict(part[0] for part in self.connection.getpeercert()["subject"])
        body = json.dumps({"id": int(self.path.rpartition("/")[2]), "you are": subject["commonName"]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Site(http.server.ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), API)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=folder / "ca.pem")
        context.load_cert_chain(folder / "server.pem", folder / "server.key")
        context.verify_mode = ssl.CERT_REQUIRED
        # The handshake is the connection's own thread's: a slow one must hold up nobody.
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """A caller without a certificate is no news."""


def openssl(folder, *arguments):
    done = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise Deviation(f"openssl {arguments[0]}: {done.stderr.strip()}")


KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


def issue(folder, name, subject, *extra):
    """A certificate of the demo's authority, put in its place with its key at once."""
    openssl(folder, "req", *KEY, "-keyout", "new.key", "-out", "new.csr", "-subj", f"/CN={subject}", *extra)
    signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "90", "-copy_extensions", "copy"]
    openssl(folder, "x509", "-req", "-in", "new.csr", "-out", "new.pem", *signed)
    (folder / "new.key").chmod(0o600)
    for suffix in ("key", "pem"):
        os.replace(folder / f"new.{suffix}", folder / f"{name}.{suffix}")


def configuration(folder):
    certificates = folder / "certificates"
    certificates.mkdir()
    openssl(certificates, "req", "-x509", *KEY, "-keyout", "ca.key", "-out", "ca.pem", "-days", "90", "-subj", "/CN=Demo CA")
    issue(certificates, "server", "localhost", "-addext", "subjectAltName=DNS:localhost")
    issue(certificates, "client", "machine-1")
    os.environ["CARDEA_DEMO_API"] = f"localhost:{Site(certificates).server_port}"
    return pathlib.Path(__file__).with_suffix(".yaml")


def tell(lab, gateway):
    straight_to_the_api(gateway.folder / "certificates")
    gateway.start()
    through_cardea()
    a_thousand_more(lab, 3, MACHINES)
    page.step(4, f"{CALLERS} callers at once")
    conclude(lab, at_once(CALLERS, MACHINES), CALLERS)
    page.row(f"200 × {CALLERS}")
    a_new_certificate(gateway.folder / "certificates")


def straight_to_the_api(certificates):
    page.step(1, "Straight to the API, as the legacy caller would")
    place = f"https://{os.environ['CARDEA_DEMO_API']}{MACHINES}42"
    page.line(f"   curl --cacert ca.pem {place}")
    done = subprocess.run(
        ["curl", "--silent", "--show-error", "--noproxy", "*", "--cacert", certificates / "ca.pem", place],
        capture_output=True,
        text=True,
        timeout=30,
    )
    expect(done.returncode != 0 and not done.stdout, True, "a refusal without a certificate")
    page.line(f"   {done.stderr.strip()}")


def through_cardea():
    page.step(2, "The same request through Cardea, which shows its certificate")
    status, _, body, milliseconds = curl(f"http://{GATEWAY}{MACHINES}42")
    expect((status, json.loads(body)["you are"]), (200, "machine-1"), "status, and who the API says we are")
    page.line(f"   {page.status(status)}  {body.strip():<80}{milliseconds:.1f} ms")


def a_new_certificate(certificates):
    page.step(5, "The certificate is replaced, file by file, while requests go on")
    issue(certificates, "client", "machine-2")
    began = time.monotonic()
    asked = 0
    while True:
        status, body = ask(GATEWAY, f"{MACHINES}{asked}")
        expect(status, 200, "status during the change")
        asked += 1
        if json.loads(body)["you are"] == "machine-2":
            break
        if time.monotonic() - began > 30:
            raise Deviation("the new certificate was not shown within 30 s")
        time.sleep(0.02)
    page.row(f"200 × {asked}", "machine-2", f"{time.monotonic() - began:.1f} s later, without a reload")
