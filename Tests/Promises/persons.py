"""A person who logs in: a browser without a screen, at glewlwyd or at the server on Authlib, and a `cardea login` under a terminal."""

import io
import json
import os
import re
import subprocess

import pexpect
import requests


class Person:
    """At glewlwyd. Its pages are a program in the browser that calls its API; so does this."""

    def __init__(self, server, client, scopes):
        self.server, self.scopes = server, scopes
        self.session = requests.Session()
        credentials = {"username": "admin", "password": server.password}
        assert self.session.post(server.url + "/api/auth/", json=credentials).status_code == 200
        grant = {"scope": scopes}
        assert self.session.put(f"{server.url}/api/auth/grant/{client}", json=grant).status_code == 200

    def enter(self, page, code):
        """The device page, as the scanned address or the typed one."""
        answer = self.session.get(page, params={"code": code, "g_continue": ""}, allow_redirects=False, timeout=10)
        assert "deviceComplete" in answer.headers.get("Location", ""), (answer.status_code, answer.headers)

    def allow(self, url):
        """The login page's way back: where the issuer sends the browser."""
        answer = self.session.get(url + "&g_continue", allow_redirects=False, timeout=10)
        assert answer.status_code == 302, answer.text
        return answer.headers["Location"]


class Terminal:
    """`cardea login` at a terminal of 120 columns."""

    def __init__(self, gateway, *arguments, environment=None, command="login"):
        self.gateway = gateway
        clean = {name: value for name, value in os.environ.items() if name not in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")}
        self.child = pexpect.spawn(
            gateway.binary,
            [command, *arguments, "--config", str(gateway.file)],
            dimensions=(60, 120),
            encoding="utf-8",
            timeout=20,
            env={**clean, **(environment or {})},
            cwd=str(gateway.folder),
        )
        self.child.logfile_read = io.StringIO()

    @property
    def seen(self):
        """Everything that was said, without colours and movements of the cursor."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", self.child.logfile_read.getvalue())

    def until(self, pattern):
        self.child.expect(pattern)
        return self.child.match

    def ends(self, status=0):
        self.child.expect(pexpect.EOF)
        self.child.close()
        said = self.child.before
        assert self.child.exitstatus == status, (self.child.exitstatus, self.child.signalstatus, said)
        return said


class Lines:
    """`cardea login --json` in a pipe: one document a line."""

    def __init__(self, gateway, *arguments, command="login"):
        self.process = subprocess.Popen(
            [gateway.binary, command, *arguments, "--json", "--config", str(gateway.file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=gateway.folder,
        )

    def next(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode()
        told = json.loads(line)
        self.flow = told["flow"]
        return told

    def ends(self, status=0):
        self.process.stdin.close()
        rest = self.process.stdout.read().decode()
        said = self.process.stderr.read().decode()
        assert self.process.wait(20) == status, (self.process.returncode, rest, said)
        return rest, said


def picture(text):
    """The QR code among lines of half blocks, on a dark terminal, as an image of eight pixels a module (PGM)."""
    ink = "\x1b[38;5;16;48;5;231m"
    lines = text.replace("\r", "").split("\n")
    coloured = any(line.startswith(ink) for line in lines)
    if coloured:
        lines = [line.removeprefix(ink).removesuffix("\x1b[0m") for line in lines if line.startswith(ink)]
    else:
        lines = [line for line in lines if set(line) & set("▀▄█")]
    rows = []
    for line in lines:
        rows.append([(mark in "█▀") != coloured for mark in line])
        rows.append([(mark in "█▄") != coloured for mark in line])
    width = max(map(len, rows))
    assert width <= 120
    scaled = []
    for row in rows:
        scaled += [b"".join((b"\xff" if light else b"\x00") * 8 for light in row + [False] * (width - len(row)))] * 8
    ground = b"\x00" * 64
    blank = b"\x00" * (width * 8 + 128) * 64
    body = b"".join(ground + line + ground for line in scaled)
    return b"P5 %d %d 255\n" % (width * 8 + 128, len(scaled) + 128) + blank + body + blank
