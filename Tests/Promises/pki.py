"""Certificates made with the openssl command, and HAProxy in front of a listener."""

import pathlib
import socket
import subprocess

from harness import eventually, executable, free_port

KEYS = {"ec": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"], "rsa": ["-newkey", "rsa:2048"]}


class Authority:
    """A certificate authority in a folder of its own."""

    def __init__(self, folder, name="ca"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.openssl = executable("CARDEA_OPENSSL", "openssl", "apt-get install openssl")
        self.name = name
        self.run(
            *["req", "-x509", *KEYS["ec"], "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "3650"],
            *["-subj", f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign,cRLSign"],
        )
        self.pem = self.folder / f"{name}.pem"

    def run(self, *arguments, **rest):
        return subprocess.run(
            [self.openssl, *arguments], check=True, capture_output=True, cwd=self.folder, **rest
        ).stdout

    def leaf(self, name, names, days=90, kind="ec", as_name=None):
        """A chain (leaf and authority) and its key for the subject's alternative names; returns their paths."""
        file = as_name or name
        work = self.folder / f"{file}.work"
        run = self.run
        run("req", *KEYS[kind], "-nodes", "-keyout", f"{work}.key", "-out", f"{work}.csr", "-subj", f"/CN={name}")
        pathlib.Path(f"{work}.ext").write_text(f"subjectAltName={names}\nbasicConstraints=CA:FALSE\n")
        run(
            *["x509", "-req", "-in", f"{work}.csr", "-CA", f"{self.name}.pem", "-CAkey", f"{self.name}.key"],
            *["-CAcreateserial", "-days", str(days), "-extfile", f"{work}.ext", "-out", f"{work}.crt"],
        )
        chain = pathlib.Path(f"{work}.crt").read_text() + self.pem.read_text()
        # As a rotation does it: complete files, renamed into place.
        for suffix, text in ((".pem", chain), (".key", pathlib.Path(f"{work}.key").read_text())):
            fresh = pathlib.Path(f"{work}{suffix}.new")
            fresh.write_text(text)
            fresh.chmod(0o600)
            fresh.rename(self.folder / f"{file}{suffix}")
        return self.folder / f"{file}.pem", self.folder / f"{file}.key"

    def answer(self, certificate, revoked=False):
        """The OCSP answer on a certificate, as DER in a file beside it."""
        leaf = self.folder / "ocsp.leaf"
        self.run("x509", "-in", str(certificate), "-out", str(leaf))
        serial = self.run("x509", "-in", str(leaf), "-noout", "-serial", text=True).strip().split("=")[1]
        state = "R\t401231235959Z\t200101000000Z" if revoked else "V\t401231235959Z\t"
        (self.folder / "index.txt").write_text(f"{state}\t{serial}\tunknown\t/CN=x\n")
        out = pathlib.Path(f"{certificate}.ocsp")
        ours = f"{self.name}.pem"
        self.run(
            *["ocsp", "-index", "index.txt", "-rsigner", ours, "-rkey", f"{self.name}.key", "-CA", ours],
            *["-issuer", ours, "-cert", str(leaf), "-ndays", "1", "-respout", f"{out}.new"],
        )
        pathlib.Path(f"{out}.new").rename(out)
        return out


class HAProxy:
    """HAProxy in TCP mode that says for whom it connects."""

    def __init__(self, folder, to, how):
        binary = executable("CARDEA_HAPROXY", "haproxy", "apt-get install haproxy")
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        (folder / "haproxy.cfg").write_text(
            f"""defaults
  mode tcp
  timeout connect 5s
  timeout client 60s
  timeout server 60s
listen front
  bind {self.address}
  server back {to} {how}
"""
        )
        self.process = subprocess.Popen([binary, "-db", "-q", "-f", str(folder / "haproxy.cfg")])
        eventually(self.is_listening, what="HAProxy listening")

    def is_listening(self):
        assert self.process.poll() is None, "HAProxy ended"
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=2).close()
            return True
        except OSError:
            return False

    def close(self):
        self.process.terminate()
        self.process.wait(10)
