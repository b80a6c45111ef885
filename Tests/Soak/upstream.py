"""The protected upstreams: each judges every credential by what it was issued for, writes it down, and refuses what is revoked.

    upstream.py FOLDER      serves until its input ends

The first part of a path is the route that the request must have taken: a and b (client credentials, each with an audience), p (a
password), r (a refresh token of the configuration), w (a wrong password: nothing may ever arrive), u (a user's own token), f (behind
nginx), o (no credential at all). Then comes what is wanted: `down/SIZE` or `chunks/SIZE`, `up`."""

import asyncio
import json
import sys
import time
import zlib

import tokens
from history import CANARY, Writer, print_of
from places import HUB, UPSTREAMS, gateway_of
from server import Answer, end_of_input, serve

# Which client and audience a route's token has to be of, and at which upstream its requests arrive.
ROUTES = {
    "a": ("cc", "A", "A"),
    "b": ("cc", "B", "B"),
    "p": ("pw", "P", "A"),
    "r": ("rt", "R", "B"),
    "w": ("wrong", "W", "A"),
    "u": ("users", "U", "B"),
    "f": ("cc", "F", "A"),
}


def pattern(name, size):
    """The octets of an answer, which its caller can tell from any other answer's."""
    line = f"{name}\n".encode()
    return (line * (size // len(line) + 1))[:size]


def pieces(name, size):
    """The same in pieces."""
    line = f"{name}\n".encode()
    block = line * (65536 // len(line))
    for begin in range(0, size, len(block)):
        yield block[: size - begin]


class Upstream:
    def __init__(self, folder):
        self.history = Writer(folder, "serves")
        self.revoked = 0.0

    def at(self, name):
        async def respond(request):
            if request.target == "/control/revoke":
                self.revoked = time.monotonic()
                return Answer(200, json.dumps({"before": self.revoked}).encode()), None
            return await self.answer(name, request)

        return respond

    async def answer(self, name, request):
        words = request.target.split("?")[0].strip("/").split("/")
        route = words[0]
        by_nginx = route == "check"
        if by_nginx:
            # nginx asks before it serves a file; it says which gateway called.
            route, request.gateway = "f", gateway_of(request.field("x-real-ip") or "")
        identity = request.field("x-soak-id") or "?"
        why, token, left = self.judge(name, route, request)
        self.history.note("serve", request.arrived, g=request.gateway, id=identity, r=route, tok=token, ok=not why, why=why, left=left)
        fields = [("X-Soak-Id", identity)]
        if why:
            challenge = [] if route == "o" else [("WWW-Authenticate", 'Bearer realm="soak", error="invalid_token"')]
            return Answer(401, f"refused: {why}\n".encode(), fields + challenge), None
        if by_nginx:
            return Answer(200, b"", fields), None
        match words[1:]:
            case ["down", size]:
                return Answer(200, pieces(identity, int(size)), fields, length=int(size)), None
            case ["chunks", size]:
                return Answer(200, pieces(identity, int(size)), fields), None
            case ["up", *_]:
                found = {"n": len(request.body), "sum": zlib.crc32(request.body)}
                return Answer(200, json.dumps(found).encode(), fields), None
        return Answer(404, b"", fields), None

    def judge(self, name, route, request):
        """(why it is refused, print of the token, seconds that it is good for). A word with `!` is a broken promise, not a refusal."""
        shown = request.values("authorization")
        if route == "o":
            return ("!credential on an open route" if any(CANARY in value for _, value in request.fields) else None), None, None
        if route not in ROUTES:
            return "!no such route", None, None
        client, audience, place = ROUTES[route]
        if not shown:
            return "none", None, None
        text = shown[0].removeprefix("Bearer ")
        facts, token = tokens.opened(text, "at"), print_of(text)
        if len(shown) > 1 or facts is None:
            return "!not one token of the issuer", token, None
        # A long body arrives after the credential was chosen.
        left = facts["x"] - request.arrived
        if place != name:
            return "!another origin", token, left
        if (facts["c"], facts["a"]) != (client, audience):
            return f"!for {facts['c']} at {facts['a']}", token, left
        if route == "u" and facts["u"] != f"user:{request.field('x-check')}":
            return "!another user's", token, left
        if any(key.replace("_", "-") == "x-user" for key, _ in request.fields) and route == "u":
            return "!the user's name was forwarded", token, left
        if facts["i"] < self.revoked:
            return "revoked", token, left
        if left < 0:
            return "expired", token, left
        return None, token, left


if __name__ == "__main__":
    upstream = Upstream(sys.argv[1])
    asyncio.run(serve([(HUB, port, upstream.at(name)) for name, port in UPSTREAMS.items()], end_of_input))
    upstream.history.close()
