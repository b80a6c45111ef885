"""A person who logs in: a browser without a screen, at glewlwyd or at the server on Authlib, and a `cardea login` under a terminal."""

import html
import json
import os
import re
import subprocess
import urllib.parse

import pexpect
import requests

from harness import eventually


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
        return json.loads(line)

    def ends(self, status=0):
        self.process.stdin.close()
        rest = self.process.stdout.read().decode()
        said = self.process.stderr.read().decode()
        assert self.process.wait(20) == status, (self.process.returncode, rest, said)
        return rest, said


def picture(text):
    """The QR code among lines of half blocks, as an image of eight pixels a module (PGM)."""
    lines = [line for line in text.replace("\r", "").split("\n") if "▀" in line or "▄" in line]
    rows = []
    for line in lines:
        rows.append([mark in "█▀" for mark in line])
        rows.append([mark in "█▄" for mark in line])
    width = max(map(len, rows))
    scaled = []
    for row in rows:
        dots = b"".join((b"\xff" if light else b"\x00") * 8 for light in row + [False] * (width - len(row)))
        scaled += [dots] * 8
    # What readers ask for around it, beyond what a terminal's line gives.
    body = b"".join(b"\xff" * 16 + line + b"\xff" * 16 for line in scaled)
    blank = b"\xff" * (width * 8 + 32) * 16
    return b"P5 %d %d 255\n" % (width * 8 + 32, len(scaled) + 32) + blank + body + blank
