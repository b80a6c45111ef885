"""Callers of every kind at one gateway, which judge what they get and write it down.

    callers.py FOLDER NUMBER ADDRESS SEED      calls until its input ends

How a request may end (`out`): whole, cut (visibly: before the end of what was announced), closed (before any octet of an answer), refused
(no connection), gone (the caller went away on purpose), silent (nothing more came within the caller's patience). Three words are broken
promises: wrong (whole, but not the octets that were asked for), stray (octets behind the answer, or another request's answer), told (a
canary in an answer)."""

import json
import random
import re
import socket
import ssl
import sys
import threading
import time
import zlib

import parts
from history import CANARY, Writer
from http2_peers import Caller, Reset
from places import CLEAR, SECURE
from servers import LARGE
from upstream import pattern
from wire import Raw

PATIENCE = 70.0
# Paths with their shares: routes of the run's own upstreams, files behind nginx, and the lab's systems.
WAYS = {"a": 6, "b": 4, "p": 4, "r": 3, "u": 3, "w": 1, "o": 2, "f": 2, "hr": 1, "mfp": 1}
LAB_PATHS = {"hr": "/hr/rest/employees/7", "mfp": "/mfp/api/adapters/accountsRead/employees/7"}
USERS = [f"user-{number}" for number in range(12)]


class Wanted:
    """A request and what its whole answer is."""

    count = 0
    lock = threading.Lock()

    def __init__(self, draw, prefix, method="GET", size=None, way=None):
        with Wanted.lock:
            Wanted.count += 1
            self.id = f"{prefix}{Wanted.count:x}"
        self.route = way or draw.choices(list(WAYS), list(WAYS.values()))[0]
        self.method, self.body = method, b""
        self.size = draw.choice((3, 200, 3000)) if size is None else size
        self.user = draw.choice(USERS)
        fields = [("X-Soak-Id", self.id)]
        if self.route == "u":
            fields += [("X-User", self.user), ("X-Check", self.user)]
        # A caller's own credential is deleted before the gateway's goes in.
        if self.route not in ("o", "hr", "mfp") and draw.random() < 0.1:
            fields.append(("Authorization", "Bearer callers-own-credential"))
        self.fields = fields
        if method == "PUT":
            self.path = f"/{self.route}/up"
        elif self.route in LAB_PATHS:
            self.path = LAB_PATHS[self.route]
        elif self.route == "f":
            self.path = "/f/large" if self.size > 100_000 else "/f/small"
        else:
            self.path = f"/{self.route}/{draw.choice(('down', 'chunks'))}/{self.size}"

    def head(self, host, *more):
        lines = [f"{self.method} {self.path} HTTP/1.1", f"Host: {host}"]
        lines += [f"{name}: {value}" for name, value in [*self.fields, *more]]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def judge(self, status, fields, body):
        """(how it ended, the problem's word)."""
        named = {name.lower(): value for name, value in fields}
        problem = None
        if "problem+json" in named.get("content-type", ""):
            found = re.search(rb"problems/([a-z-]+)", body)
            problem = found[1].decode() if found else "?"
        elif status == 200 and self.route not in LAB_PATHS:
            if named.get("x-soak-id") != self.id:
                return "stray", None
            if self.method == "PUT":
                fine = json.loads(body) == {"n": len(self.body), "sum": zlib.crc32(self.body)}
            elif self.route == "f":
                fine = len(body) == LARGE if self.path.endswith("large") else body == b"a small file\n"
            else:
                fine = body == pattern(self.id, self.size)
            if not fine:
                return "wrong", None
        elif status == 200 and b'"name"' not in body:
            return "wrong", None
        if CANARY.encode() in body or any(CANARY in value for _, value in fields):
            return "told", problem
        return "whole", problem


class Callers:
    def __init__(self, folder, number, address, seed):
        self.number, self.address = number, address
        self.clear, self.secure = f"{address}:{CLEAR}", f"{address}:{SECURE}"
        self.history, self.lock = Writer(folder, f"asks-{number}"), threading.Lock()
        self.seed, self.stopping = seed, threading.Event()
        self.context = ssl.create_default_context(cafile=f"{folder}/pki/ca.pem")
        kinds = [self.kept, self.kept, self.fresh, self.fresh, self.piped, self.streams, self.up, self.down, self.slow, self.gone]
        self.threads = [threading.Thread(target=self.repeat, args=(kind, place), daemon=True) for place, kind in enumerate(kinds)]

    def run(self):
        for thread in self.threads:
            thread.start()
        sys.stdin.read()
        self.stopping.set()
        for thread in self.threads:
            thread.join(PATIENCE + 20)
        with self.lock:
            self.history.close()

    def repeat(self, kind, place):
        draw = random.Random(f"{self.seed} {self.number} {place}")
        prefix = f"{self.number}{'abcdefghijkl'[place]}"
        while not self.stopping.is_set():
            try:
                kind(draw, prefix)
            except Exception as fault:  # noqa: BLE001  a caller's own fault is told, and the run counts it
                self.say(kind.__name__, Wanted(draw, prefix), time.monotonic(), "fault", p=repr(fault)[:200])
            self.stopping.wait(draw.uniform(0.05, 0.3))

    def say(self, kind, wanted, began, out, st=None, p=None, n=None, first=None, late=None):
        with self.lock:
            self.history.note(
                "ask",
                began,
                e=time.monotonic(),
                g=self.number,
                kind=kind,
                r=wanted.route,
                id=wanted.id,
                out=out,
                st=st,
                p=p,
                n=n,
                first=first,
                late=late,
            )

    def connect(self, kind, wanted, began, small=None):
        try:
            if small is None:
                return Raw(self.clear, timeout=PATIENCE)
            made = Raw.__new__(Raw)
            made.socket, made.buffer = socket.socket(), b""
            made.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, small)
            made.socket.settimeout(PATIENCE)
            made.socket.connect((self.address, CLEAR))
            return made
        except OSError as fault:
            self.say(kind, wanted, began, "silent" if isinstance(fault, TimeoutError) else "refused", p=type(fault).__name__)
            return None

    def receive(self, kind, wanted, raw, began, late=None):
        """Reads and judges one answer. Whether the connection may be used again."""
        first = None
        try:
            status, fields, _ = raw.head()
            first = time.monotonic()
            while 100 <= status < 200:
                status, fields, _ = raw.head()
            body, ends = read_body(raw, status, fields)
        except TimeoutError:
            self.say(kind, wanted, began, "silent", first=first, late=late)
            return False
        except (OSError, EOFError, ValueError, AssertionError) as fault:
            self.say(kind, wanted, began, "cut" if first or raw.buffer else "closed", p=type(fault).__name__, first=first, late=late)
            return False
        out, problem = wanted.judge(status, fields, body)
        self.say(kind, wanted, began, out, status, problem, len(body), first, late)
        return not ends and out == "whole"

    # Kinds of callers.

    def kept(self, draw, prefix):
        """Request after request on one connection; nothing may stand behind an answer."""
        wanted, began = Wanted(draw, prefix), time.monotonic()
        raw = self.connect("kept", wanted, began)
        if raw is None:
            return
        with raw:
            for _ in range(draw.randint(5, 60)):
                if not sent(raw, wanted.head(self.clear)):
                    self.say("kept", wanted, began, "closed", p="unsent")
                    return
                if not self.receive("kept", wanted, raw, began):
                    return
                if raw.buffer:
                    self.say("kept", wanted, began, "stray")
                    return
                if self.stopping.wait(draw.uniform(0.02, 0.3)):
                    return
                wanted, began = Wanted(draw, prefix), time.monotonic()

    def fresh(self, draw, prefix):
        wanted, began = Wanted(draw, prefix), time.monotonic()
        if raw := self.connect("fresh", wanted, began):
            with raw:
                # What cannot be sent may have been answered: a caller that was refused at once.
                sent(raw, wanted.head(self.clear, ("Connection", "close")))
                self.receive("fresh", wanted, raw, began)
                if raw.buffer:
                    self.say("fresh", wanted, began, "stray")

    def piped(self, draw, prefix):
        """Several at once on one connection; answers come in their order."""
        many, began = [Wanted(draw, prefix) for _ in range(draw.randint(2, 8))], time.monotonic()
        raw = self.connect("piped", many[0], began)
        if raw is None:
            return
        with raw:
            sent(raw, b"".join(wanted.head(self.clear) for wanted in many))
            for place, wanted in enumerate(many):
                # The first waits for no other; a later one may wait for all before it.
                if not self.receive("piped", wanted, raw, began if place == 0 else time.monotonic()):
                    for rest in many[place + 1 :]:
                        self.say("piped", rest, began, "closed", p="behind")
                    return

    def streams(self, draw, prefix):
        """HTTP/2 over TLS: rounds of streams at once."""
        wanted, began = Wanted(draw, prefix), time.monotonic()
        try:
            caller = Caller(self.secure, self.context)
        except (OSError, AssertionError) as fault:
            self.say("streams", wanted, began, "silent" if isinstance(fault, TimeoutError) else "refused", p=type(fault).__name__)
            return
        caller.socket.settimeout(PATIENCE)
        with caller:
            for _ in range(draw.randint(2, 20)):
                began = time.monotonic()
                many = [Wanted(draw, prefix) for _ in range(draw.randint(1, 6))]
                asked = []
                for wanted in many:
                    try:
                        asked.append((wanted, caller.request(wanted.method, wanted.path, [(n.lower(), v) for n, v in wanted.fields])))
                    except Reset:
                        # The gateway has said that it goes (RFC 9113 section 6.8), or is gone: what was not sent is no request.
                        break
                if (
                    not all([self.stream(wanted, stream, began) for wanted, stream in asked])
                    or caller.is_over
                    or caller.went_away is not None
                ):
                    return
                if self.stopping.wait(draw.uniform(0.05, 0.3)):
                    return

    def stream(self, wanted, stream, began):
        first = None
        try:
            stream.wait(lambda: stream.fields, PATIENCE)
            status = stream.head()
            first = time.monotonic()
            body = b""
            while True:
                stream.wait(lambda: stream.pieces or stream.ended, PATIENCE)
                piece = stream.read()
                if not piece:
                    break
                body += piece
        except Reset as fault:
            self.say("streams", wanted, began, "cut" if first else "closed", p=f"reset {fault}: {stream.connection.why}", first=first)
            return False
        except AssertionError:
            self.say("streams", wanted, began, "silent", first=first)
            return False
        out, problem = wanted.judge(status, stream.fields, body)
        self.say("streams", wanted, began, out, status, problem, len(body), first)
        return out == "whole"

    def up(self, draw, prefix):
        """A large body up, with its length or in chunks."""
        wanted = Wanted(draw, prefix, "PUT", way=draw.choice("abpu"))
        wanted.body = draw.randbytes(4096) * draw.choice((16, 64, 300))
        began = time.monotonic()
        if raw := self.connect("up", wanted, began):
            with raw:
                if draw.random() < 0.5:
                    data = wanted.head(self.clear, ("Content-Length", str(len(wanted.body)))) + wanted.body
                else:
                    pieces = [wanted.body[begin : begin + 30000] for begin in range(0, len(wanted.body), 30000)]
                    data = wanted.head(self.clear, ("Transfer-Encoding", "chunked"))
                    data += b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
                sent(raw, data)
                self.receive("up", wanted, raw, began)
            self.stopping.wait(1)

    def down(self, draw, prefix):
        """A large body down."""
        wanted, began = Wanted(draw, prefix, size=draw.choice((200_000, 1 << 20, 3 << 20)), way=draw.choice("abuf")), time.monotonic()
        if raw := self.connect("down", wanted, began):
            with raw:
                sent(raw, wanted.head(self.clear))
                self.receive("down", wanted, raw, began)
            self.stopping.wait(1)

    def slow(self, draw, prefix):
        """Reads a large body with pauses, by a small window."""
        wanted, began = Wanted(draw, prefix, size=400_000, way=draw.choice("abo")), time.monotonic()
        if raw := self.connect("slow", wanted, began, small=16384):
            with raw:
                sent(raw, wanted.head(self.clear))
                pauses = draw.randint(5, 20)
                raw.socket = Sleepy(raw.socket, pauses)
                self.receive("slow", wanted, raw, began, late=0.25 * pauses)

    def gone(self, draw, prefix):
        """Goes away in the middle: of its own body, before the answer, or in the answer."""
        wanted, began = Wanted(draw, prefix, "PUT", way=draw.choice("abp")), time.monotonic()
        if raw := self.connect("gone", wanted, began):
            with raw:
                where = draw.choice(("body", "before", "answer"))
                if where == "body":
                    sent(raw, wanted.head(self.clear, ("Content-Length", "100000")) + b"x" * 5000)
                else:
                    wanted.method, wanted.path = "GET", f"/{wanted.route}/down/2000000"
                    sent(raw, wanted.head(self.clear))
                    if where == "answer":
                        try:
                            raw.socket.settimeout(5)
                            raw.socket.recv(1000)
                        except OSError:
                            pass
            self.say("gone", wanted, began, "gone")


class Sleepy:
    """A socket whose reader rests now and then."""

    def __init__(self, inner, pauses):
        self.inner, self.pauses = inner, pauses

    def recv(self, count):
        if self.pauses > 0:
            self.pauses -= 1
            time.sleep(0.25)
        return self.inner.recv(count)

    def __getattr__(self, name):
        return getattr(self.inner, name)


def sent(raw, data):
    try:
        raw.send(data)
        return True
    except OSError:
        return False


def read_body(raw, status, fields):
    """(the body, whether the connection ends with it)."""
    named = {name.lower(): value for name, value in fields}
    ends = named.get("connection", "").lower() == "close"
    if status in (204, 304):
        return b"", ends
    if named.get("transfer-encoding", "").lower() == "chunked":
        body = bytearray()
        while size := int(raw._until(b"\r\n").split(b";")[0], 16):
            body += raw._exactly(size)
            assert raw._exactly(2) == b"\r\n"
        while raw._until(b"\r\n"):
            pass
        return bytes(body), ends
    if "content-length" in named:
        return raw._exactly(int(named["content-length"])), ends
    raise ValueError("an answer without an end of its own")


if __name__ == "__main__":
    folder, number, address, seed = sys.argv[1:]
    Callers(folder, int(number), address, seed).run()

assert parts  # brings the promises into the path
