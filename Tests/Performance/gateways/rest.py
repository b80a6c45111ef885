"""Rows (i) and (j): what a process holds and does while nobody asks, and how soon it answers after its start."""
import contextlib
import socket
import statistics
import time

from . import accounting, report
from .contenders import ISSUER, ORIGIN, Cardea, Relay
from .contenders import TOKEN


def exchange(port, path="/small", *fields):
    with socket.create_connection(("127.0.0.1", port), timeout=5) as caller:
        lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Connection: close", *fields]
        caller.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        answer = b""
        while piece := caller.recv(65536):
            answer += piece
    return answer.startswith(b"HTTP/1.1 200")


class StoredTokens(Cardea):
    """Cardea with a token for each of many users, in its store and in memory."""
    name = "cardea-stored"
    users = 10_000

    def document(self):
        document = super().document()
        for name, text in (("secret", "s" * 20), ("key", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")):
            self.write(name, text).chmod(0o600)
        document["identities"]["users"] = {"oauth2": {
            "token_url": f"http://127.0.0.1:{ISSUER}/token", "client_id": "bench", "client_secret": f"file:{self.folder}/secret",
            "extra": {"act_as": "{subject}"}}}
        document["routes"] = [
            {"listen": "plain-plain", "to": f"http://127.0.0.1:{ORIGIN['plain']}", "use": "users", "subject": {"from_header": "X-User"},
             "callers": "local"}]
        document["listeners"] = {"plain-plain": document["listeners"]["plain-plain"]}
        document["limits"] |= {"subjects": self.users + 1000, "new_subjects_per_second": 1_000_000}
        document["store"] = {"path": str(self.folder / "tokens.db"), "key": f"file:{self.folder}/key"}
        return document

    def fill(self, count):
        """Tokens for the users up to `count`, each asked for once."""
        with socket.create_connection(("127.0.0.1", self.ports["plain_plain"]), timeout=10) as caller:
            answers = caller.makefile("rb")
            for number in range(self.filled, count):
                caller.sendall(f"GET /small HTTP/1.1\r\nHost: localhost\r\nX-User: user{number}\r\n\r\n".encode())
                status = answers.readline()
                if b" 200 " not in status:
                    raise SystemExit(f"{self.name}: {status!r} for user {number}")
                length = 0
                while (line := answers.readline()) not in (b"\r\n", b""):
                    name, _, value = line.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                answers.read(length)
        self.filled = count

    filled = 0


def started(one, *fields):
    """Milliseconds from the start of the process to the first answer."""
    one.start()
    while not exchange(one.ports["plain_plain"], "/small", *fields):
        pass
    return (time.monotonic() - one.began) * 1000


def starts(contenders, rounds, programs, folder, pki, say):
    """Milliseconds to the first answer, in turn; Cardea once more with a store of 10,000 tokens, of which the first answer needs one."""
    stored = StoredTokens(folder, 21500, pki, programs)
    stored.start()
    stored.fill(stored.users)
    stored.stop()
    found = {}
    for _ in range(rounds):
        for one in [*contenders, stored]:
            if isinstance(one, Relay):
                continue
            fields = ["X-User: user77"] if one is stored else []
            found.setdefault(one.name, []).append(round(started(one, *fields), 1))
            one.stop()
    say("first answer, ms: " + ", ".join(f"{name} {statistics.median(values):.0f}" for name, values in found.items()))
    return found, stored


def rest(contenders, connections, seconds, say):
    """Memory and wake-ups of idle processes, all at once, and what a connection holds that has had one exchange, one by one."""
    present = [one for one in contenders if not isinstance(one, Relay)]
    for one in present:
        started(one, *(["X-User: user77"] if isinstance(one, StoredTokens) else []))
    # Until what follows a start and a request is over: timers that end a connection, for instance.
    time.sleep(8)
    before = {one.name: accounting.wake_ups(one.process.pid) for one in present}
    time.sleep(seconds)
    results = {}
    for one in present:
        pid = one.process.pid
        results[one.name] = {
            "wake_ups_per_second": round((accounting.wake_ups(pid) - before[one.name]) / seconds, 2),
            "anonymous_kb": accounting.anonymous_kb(pid), "resident_kb": accounting.resident_kb(pid)}
    for one in present:
        if not isinstance(one, StoredTokens):
            results[one.name] |= held(one, connections, results[one.name])
        one.stop()
        say(f"idle {one.name}: {results[one.name]}")
    return results


def held(one, connections, fresh):
    pid = one.process.pid
    with contextlib.ExitStack() as stack:
        for _ in range(connections):
            caller = stack.enter_context(socket.create_connection(("127.0.0.1", one.ports["plain_plain"]), timeout=10))
            caller.sendall(b"GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n")
            if not caller.recv(4096).startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"{one.name}: no 200 on an idle connection")
        anonymous, resident = accounting.anonymous_kb(pid), accounting.resident_kb(pid)
    return {"connections": connections, "anonymous_kb_with_connections": anonymous, "resident_kb_with_connections": resident,
            "bytes_per_connection": round((anonymous - fresh["anonymous_kb"]) * 1024 / connections)}
