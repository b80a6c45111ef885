"""A server that holds its callers to RFC 7616, and has the habits of servers in the field, one by one: for what no server of Debian does."""

import hashlib
import re
import threading
import urllib.parse

from digest_servers import HASHES, PASSWORD, REALM, USER
from scripted import answer

# Name, then a token, a quoted string, or RFC 8187's form.
PARAMETER = re.compile(r'\s*([A-Za-z*]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))\s*(?:,|$)')
QUOTED = {"username", "realm", "nonce", "uri", "response", "cnonce", "opaque"}


def parameters(value):
    found, quoted, at = {}, set(), 0
    while at < len(value):
        match = PARAMETER.match(value, at)
        assert match, value[at:]
        name = match.group(1).lower()
        assert name not in found, f"{name} twice"
        if match.group(2) is not None:
            quoted.add(name)
        found[name] = match.group(3) if match.group(2) is None else re.sub(r"\\(.)", r"\1", match.group(2))
        at = match.end()
    assert quoted == QUOTED & found.keys(), f"quotes at {quoted}"
    return found


class Streamed:
    """A stream of HTTP/2 as a request."""

    def __init__(self, stream):
        self.method, self.target, self.body = stream.method, stream.target, stream.body_sent
        self.field = lambda name: stream.field(name.lower())


class Strict:
    """Nonces belong to a connection and their numbers are in order there: over HTTP/1.1 the last one counts, over HTTP/2, whose streams pass
    each other by, all that were given do, in any order. `lasts` is how often one may be used; `says_stale` is whether what is too old is
    told apart from what is wrong."""

    def __init__(self, algorithm="SHA-256", session=False, qop='"auth"', opaque="an opaque, one", user=USER, password=PASSWORD, **habits):
        self.word = algorithm + ("-sess" if session else "")
        self.hash = lambda data: hashlib.new(HASHES[algorithm], data).hexdigest()
        self.session, self.qop, self.opaque, self.user, self.password = session, qop, opaque, user, password
        self.lasts, self.says_stale, self.names_algorithm = 1000, True, True
        self.charset = self.userhash = self.proves = self.forges = self.bare_refusal = False
        self.next_nonce = False
        self.realm, self.more = REALM, []
        self.wrong, self.taken, self.stale, self.open = [], [], 0, 0
        self.made = 0
        for name, value in habits.items():
            assert hasattr(self, name), name
            setattr(self, name, value)
        self.lock = threading.RLock()
        self.sessions = {}

    def nonce(self):
        with self.lock:
            self.made += 1
            return f"nonce-{self.made}=="

    def give(self, state):
        nonce = state["nonce"] = self.nonce()
        state["uses"][nonce] = set()
        return nonce

    def challenge(self, nonce, stale):
        told = [f'realm="{self.realm}"', f'nonce="{nonce}"']
        told += [f"qop={self.qop}"] if self.qop else []
        told += [f'opaque="{self.opaque}"'] if self.opaque else []
        told += [f"algorithm={self.word}"] if self.names_algorithm else []
        told += ["stale=true"] if stale and self.says_stale else []
        told += ["charset=UTF-8"] if self.charset else []
        told += ["userhash=true"] if self.userhash else []
        return "WWW-Authenticate", f"Digest {', '.join(told)}"

    def __call__(self, peer):
        """A connection of HTTP/1.1."""
        state = {"nonce": None, "uses": {}}
        for request in peer.requests():
            status, body, fields = self.answer(request, state)
            lines = [f"{name}: {value}".encode() for name, value in fields]
            peer.send(answer(body, *lines, status=b"200 OK" if status == 200 else b"401 No"))

    def stream(self, stream):
        """A stream of HTTP/2."""
        stream.body_sent = stream.body()
        with self.lock:
            state = stream.connection.__dict__.setdefault("digest", {"nonce": None, "uses": {}, "streams": True})
            status, body, fields = self.answer(Streamed(stream), state)
        fields = [(":status", str(status)), *((name.lower(), value) for name, value in fields)]
        stream.send_head([*fields, ("content-length", str(len(body)))])
        stream.write(body)
        stream.end()

    def answer(self, request, state):
        """Status, body and fields."""
        if request.target.startswith("/open"):
            self.open += 1
            return 200, b"open", []
        value = request.field("Authorization")
        stale = False
        if value is not None:
            verdict = self.judge(request, value, state)
            if isinstance(verdict, list):
                self.taken.append(request)
                return 200, b"yes", verdict
            stale = verdict == "stale"
            self.stale += stale
            if not stale:
                self.wrong.append((verdict, value))
                if self.bare_refusal:
                    return 401, b"no", []
        return 401, b"no", [*self.more, self.challenge(self.give(state), stale)]

    def judge(self, request, value, state):
        """The fields of the answer, `stale`, or what is wrong."""
        assert value.startswith("Digest "), value
        told = parameters(value[len("Digest ") :])
        user = self.user
        if self.userhash:
            assert told["userhash"] == "true" and told["username"] == self.hash(f"{user}:{self.realm}".encode())
        elif "username*" in told:
            assert self.charset and "username" not in told and not user.isascii()
            assert told["username*"].startswith("UTF-8''") and urllib.parse.unquote(told["username*"][7:]) == user
        else:
            assert told["username"].encode("latin-1").decode() == user, told["username"]
        assert told["realm"] == self.realm.replace("\\", "") and told["uri"] == request.target
        assert told.get("opaque", "") == (self.opaque or "")
        assert told.get("algorithm") == (self.word if self.names_algorithm else None)
        if told["nonce"] not in state["uses"] or "streams" not in state and told["nonce"] != state["nonce"]:
            return "stale"
        uses = state["uses"][told["nonce"]]
        realm = told["realm"]
        key = self.hash(f"{user}:{realm}:{self.password}".encode())
        if self.session:
            # RFC 7616 section 3.4.2: made once, by the first answer.
            made = self.sessions.setdefault(state.get("session", told["nonce"]), (told["nonce"], told["cnonce"]))
            state.setdefault("session", told["nonce"])
            key = self.hash(f"{key}:{made[0]}:{made[1]}".encode())
        covered = f"{request.method}:{request.target}"
        if told.get("qop") == "auth-int":
            covered += ":" + self.hash(request.body or b"")
        middle = told["nonce"]
        if self.qop:
            assert told["qop"] in self.qop and re.fullmatch("[0-9a-f]{8}", told["nc"]) and len(told["cnonce"]) >= 16
            middle = ":".join(told[name] for name in ("nonce", "nc", "cnonce", "qop"))
        else:
            assert not told.keys() & {"qop", "nc", "cnonce"}
        if told["response"] != self.hash(f"{key}:{middle}:{self.hash(covered.encode('latin-1'))}".encode()):
            return "response"
        number = int(told["nc"], 16) if self.qop else len(uses) + 1
        if number in uses or "streams" not in state and number != len(uses) + 1 or len(uses) >= self.lasts:
            return "stale"
        uses.add(number)
        fields = []
        if self.proves or self.forges:
            proof = self.hash(f"{key}:{middle}:{self.hash(f':{request.target}'.encode('latin-1'))}".encode())
            if self.forges:
                proof = proof[::-1]
            fields.append(f'rspauth="{proof}", cnonce="{told["cnonce"]}", nc={told["nc"]}, qop={told["qop"]}')
        if self.next_nonce:
            fields.append(f'nextnonce="{self.give(state)}"')
        return [("Authentication-Info", ", ".join(fields))] if fields else []
