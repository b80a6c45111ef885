"""An unchanged caller, an archive that asks for HTTP Digest, Cardea between."""

import atexit
import hashlib
import json
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import time

from stage import CALLERS, GATEWAY, Deviation, a_thousand_more, ask, at_once, conclude, curl, expect, page

TITLE = "an unchanged caller, an archive that asks for HTTP Digest"
SECRETS = {"archive-password": secrets.token_urlsafe(24)}
LAB = []
PAPERS = "/papers/"
TRY = f"{PAPERS}7"
USER, REALM = "svc-batch", "The archive"


class Archive:
    """lighttpd as Debian has it, with SHA-256. Its log has the status of each answer."""

    def __init__(self, folder, password):
        program = shutil.which("lighttpd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        if program is None:
            raise Deviation("lighttpd is not there: apt-get install lighttpd")
        self.log = folder / "access.log"
        papers = folder / "root" / "papers"
        papers.mkdir(parents=True)
        for number in range(1000):
            (papers / str(number)).write_text(json.dumps({"id": number}))
        hashed = hashlib.sha256(f"{USER}:{REALM}:{password}".encode()).hexdigest()
        (folder / "users").write_text(f"{USER}:{REALM}:{hashed}\n")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        (folder / "lighttpd.conf").write_text(
            f"""server.modules = ("mod_auth", "mod_authn_file", "mod_accesslog")
server.document-root = "{folder}/root"
server.bind = "127.0.0.1"
server.port = {self.port}
server.errorlog = "{folder}/error.log"
server.max-keep-alive-requests = 10000
accesslog.filename = "{self.log}"
accesslog.format = "%s"
auth.backend = "htdigest"
auth.backend.htdigest.userfile = "{folder}/users"
auth.require = ("/" => ("method" => "digest", "algorithm" => "SHA-256", "realm" => "{REALM}", "require" => "valid-user"))
"""
        )
        self.command = [program, "-D", "-f", str(folder / "lighttpd.conf")]
        self.start()
        atexit.register(self.end)

    def start(self):
        self.process = subprocess.Popen(self.command)
        began = time.monotonic()
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=2).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() - began > 10:
                    raise Deviation("lighttpd does not listen") from None
                time.sleep(0.02)

    def restart(self):
        """With a new secret of its own, so that it knows no nonce that it gave."""
        self.end()
        self.start()

    def statuses(self):
        return [int(line) for line in self.log.read_text().split()]

    def end(self):
        """In order, so that its log is whole."""
        self.process.terminate()
        self.process.wait(10)


ARCHIVE = []


def configuration(folder):
    place = folder / "archive"
    place.mkdir()
    ARCHIVE.append(Archive(place, SECRETS["archive-password"]))
    os.environ["CARDEA_DEMO_API"] = ARCHIVE[0].address
    return pathlib.Path(__file__).with_suffix(".yaml")


def tell(lab, gateway):
    [archive] = ARCHIVE
    straight_to_the_archive(archive)
    gateway.start()
    through_cardea()
    a_thousand_more(lab, 3, PAPERS)
    page.step(4, f"{CALLERS} callers at once")
    conclude(lab, at_once(CALLERS, PAPERS), CALLERS)
    page.row(f"200 × {CALLERS}")
    nonces_that_are_gone(archive)
    what_it_cost(archive)


def straight_to_the_archive(archive):
    page.step(1, "Straight to the archive, as the legacy caller would")
    status, head, _, _ = curl(f"http://{archive.address}{PAPERS}42")
    expect(status, 401, "status without an answer to the challenge")
    challenge = next(line for line in head.splitlines() if line.lower().startswith("www-authenticate:"))
    page.line(f"   {page.status(status)}  {challenge}")


def through_cardea():
    page.step(2, "The same request through Cardea, which answers the challenge")
    status, _, body, milliseconds = curl(f"http://{GATEWAY}{PAPERS}42")
    expect((status, json.loads(body)["id"]), (200, 42), "status and paper")
    page.line(f"   {page.status(status)}  {body.strip():<80}{milliseconds:.1f} ms")


def nonces_that_are_gone(archive):
    page.step(5, "The archive is restarted and has forgotten its nonces")
    archive.restart()
    for number in range(100):
        status, _ = ask(GATEWAY, f"{PAPERS}{number}")
        expect(status, 200, "status after the restart")
    page.row("200 × 100")


def what_it_cost(archive):
    page.step(6, "What the archive saw")
    archive.restart()
    statuses = archive.statuses()
    asked, refused = len(statuses), statuses.count(401)
    expect(statuses.count(200), 1 + 1000 + CALLERS + 100, "papers that it gave")
    expect(refused < asked / 10, True, "few requests that had to be sent twice")
    page.row(f"{asked} requests", f"{refused} without a nonce that it knew")
