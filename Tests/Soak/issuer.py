"""The run's own authorization server: client credentials, passwords, and refresh tokens that rotate. It writes down every call with the
gateway that made it, keeps families of refresh tokens in a file so that it may be killed at any moment, and takes a second use of one
for theft (RFC 9700 §4.14.2).

    issuer.py FOLDER      serves until its input ends"""

import asyncio
import base64
import json
import pathlib
import random
import secrets
import sys
import time
import urllib.parse

import tokens
from history import CANARY, Writer, print_of
from places import HUB, ISSUER
from server import Answer, end_of_input, serve

CLIENTS = {name: f"{CANARY}-client-{name}" for name in ("cc", "pw", "rt", "wrong", "users")}
PASSWORDS = {"anna": f"{CANARY}-password-anna", "bruno": f"{CANARY}-nobody-knows-this-one"}
JSON = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]


class Families:
    """How far each family of refresh tokens has come: lines of `family number`, a negative number once it is revoked."""

    def __init__(self, folder):
        path = pathlib.Path(folder) / "families"
        self.newest = {}
        if path.exists():
            for line in path.read_text().splitlines():
                family, _, number = line.partition(" ")
                self.newest[family] = int(number)
        self.file = open(path, "a", buffering=1)

    def put(self, family, number):
        self.newest[family] = number
        self.file.write(f"{family} {number}\n")

    def first(self, client):
        family = f"{client}-{len(self.newest)}"
        self.put(family, 1)
        return tokens.refresh(family, 1)

    def next(self, token):
        """(the successor or none, whether a spent one was shown)."""
        facts = tokens.opened(token, "rt")
        if facts is None:
            return None, False
        newest = self.newest.get(facts["f"], -1)
        if newest != facts["m"]:
            if newest > 0:
                self.put(facts["f"], -1)
            return None, True
        self.put(facts["f"], newest + 1)
        return tokens.refresh(facts["f"], newest + 1), False


class Issuer:
    def __init__(self, folder):
        self.history, self.families = Writer(folder, "calls"), Families(folder)
        self.random = random.Random()
        self.mode = {}

    async def respond(self, request):
        began = time.monotonic()
        if request.target == "/control/mode":
            self.mode = json.loads(request.body)
            return Answer(200, b"{}"), None
        if request.target == "/control/first":
            return Answer(200, json.dumps({"token": self.families.first("rt")}).encode()), None
        form, facts = self.read(request)
        if self.mode.get("fails") == "unavailable":
            return Answer(503, b"not now\n"), self.told(began, request, facts, 503)
        if self.mode.get("fails") == "page":
            page = b"<html>please log in to the network</html>"
            # Whoever shows such a page has seen what was sent, and says nothing of it.
            return Answer(200, page, [("Content-Type", "text/html")]), self.told(began, request, facts | {"page": True}, 200)
        facts, status, grant = self.judge(form, facts)
        # On the record before anything leaves: whoever kills the issuer now makes an answer that nobody sees.
        facts["n"] = secrets.token_hex(4)
        self.history.note("judged", began, g=request.gateway, st=status, **facts)
        self.history.flush()
        pause = self.random.choice((0.002, 0.01, 0.03, 0.2)) + self.mode.get("slow", 0)
        await asyncio.sleep(pause)
        closes = self.mode.get("fails") == "cut"
        body = json.dumps(grant).encode()
        if closes:
            return Answer(status, body[: len(body) // 2], JSON, len(body), True), self.told(began, request, facts, status)
        return Answer(status, body, JSON), self.told(began, request, facts, status)

    def told(self, began, request, facts, status):
        def note(whole):
            ended = time.monotonic()
            self.history.note("call", began, e=ended, g=request.gateway, st=status, whole=whole, **facts)
            self.history.flush()

        return note

    @staticmethod
    def read(request):
        """The form, and what is written down of a call before it is judged."""
        form = {name: values[0] for name, values in urllib.parse.parse_qs(request.body.decode()).items()}
        kind, _, code = (request.field("authorization") or "").partition(" ")
        words = base64.b64decode(code).decode().partition(":") if kind == "Basic" else ("", "", "")
        form |= {"client": urllib.parse.unquote_plus(words[0]), "client_secret": urllib.parse.unquote_plus(words[2])}
        how = form.get("grant_type", "")
        facts = {"c": form["client"], "a": form.get("audience", ""), "u": form.get("act_as", ""), "how": how}
        if how in ("password", "refresh_token"):
            facts["s"] = print_of(form.get(how, ""))
        return form, facts

    def judge(self, form, facts):
        """(what is written down, status, the answer). The moment of the token is that of the judgement."""
        client, how = form["client"], facts["how"]
        if CLIENTS.get(client) != form["client_secret"]:
            return facts, 401, {"error": "invalid_client"}
        refresh = None
        if how == "password":
            if PASSWORDS.get(form.get("username")) != form.get("password"):
                return facts, 400, {"error": "invalid_grant"}
            refresh = self.families.first(client)
        elif how == "refresh_token":
            refresh, reused = self.families.next(form.get("refresh_token"))
            if reused:
                facts["reused"] = True
            if refresh is None:
                return facts, 400, {"error": "invalid_grant"}
        elif how != "client_credentials":
            return facts, 400, {"error": "unsupported_grant_type"}
        token = tokens.access(client, facts["a"], facts["u"], time.monotonic())
        grant = {"access_token": token, "token_type": "Bearer", "expires_in": int(tokens.LIFE)}
        facts["tok"] = print_of(token)
        if refresh:
            grant["refresh_token"], facts["new"] = refresh, print_of(refresh)
        return facts, 200, grant


if __name__ == "__main__":
    issuer = Issuer(sys.argv[1])
    asyncio.run(serve([(HUB, ISSUER, issuer.respond)], end_of_input))
    issuer.history.close()
