"""The history of a run: one file of JSON lines for each process that writes, one record a line.

Every record has `k`, its kind, and `t`, a moment of CLOCK_MONOTONIC in seconds, which all processes of the run share. What has a length
has its end in `e`. `g` is a gateway's number, 0 where it is not known. No record holds a secret: a credential stands as `print_of` it.

| kind | written by | members |
|---|---|---|
| run | the run | seed, hours, gateways, lease, life, bound, patience, sanitizer (of the gateways' build, where it has one) |
| fault | the run | n (number), name, g or 0, `on` (what is disturbed, see `fault.py`), x (what was drawn); written when it is over |
| life | the run | g, pid, what: start, killed, stopped, upgraded, ended (by itself, with status) |
| act | the run | what an operator does: what (purge, reload, secret, revoke, renew, reset), g or 0, x |
| call | issuers | e, g, c (client), a (audience), u (subject), how (client_credentials, password, refresh_token, register, login),
  s (print of the secret or refresh token), st (status), tok (print of the access token), new (print of the refresh token beside it),
  whole (answer sent), reused (the issuer saw a spent refresh token), page (answered with a page instead of a judgement) |
| judged | issuers | a call as it was decided, before its answer left: the members of call but e and whole, and n, by which the two meet |
| serve | upstreams | g, id (of the request), r (route), tok, ok, why, left (seconds that the token is good for) |
| ask | callers | e, g, kind, r, id, out, st, p (problem), n (octets), first (moment of the first octet, or none), late
  (seconds the caller took on purpose) |
| step | the run | g, what Redis gave: turn (a lease for a step that may spend), hold (another lease, one a second at most),
  kept (a lease renewed), booked (an attempt with a password); lease |
| sample | the run | g, pid, born, rss, fd, db, wal |
| heal | the run | g, r, after (seconds after the last fault until the route worked; none where it did not) |
| leak | the run | where a secret was found |
| looked | the run | octets that were searched for secrets |
| left_out | the run | x: faults that this machine cannot make, with why |
| torn | the run | g (0: the lab), line: what a gateway said about a data race or its own end; report: the sanitizer's, whole |
"""

import hashlib
import json
import pathlib
import time

CANARY = "soakcanary"


def print_of(secret):
    """Twelve digits that tell one secret from another and give none away."""
    return hashlib.sha256(secret.encode()).hexdigest()[:12] if secret else None


class Writer:
    def __init__(self, folder, name):
        self.file = open(pathlib.Path(folder) / f"{name}.jsonl", "a", buffering=1 << 16)
        self.flushed = time.monotonic()

    def note(self, k, t=None, /, **members):
        now = time.monotonic()
        record = {"k": k, "t": round(now if t is None else t, 4)}
        for name, value in members.items():
            if value is not None:
                record[name] = round(value, 4) if isinstance(value, float) else value
        self.file.write(json.dumps(record, separators=(",", ":")) + "\n")
        # A process that is killed as a fault loses a second of history at most.
        if now - self.flushed > 0.5:
            self.flush()

    def flush(self):
        self.file.flush()
        self.flushed = time.monotonic()

    def close(self):
        self.file.close()


class History:
    """What was written, read again. Requests are many and are streamed; everything else fits into memory."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.cache = {}

    def stream(self, kind, file="*"):
        """Records of a kind, in the order of their file: by their end, for what has one."""
        if kind in self.cache:
            yield from self.cache[kind]
            return
        mark = f'"k":"{kind}"'
        for path in sorted(self.folder.glob(f"{file}.jsonl")):
            with open(path) as lines:
                for line in lines:
                    # The last line of a process that was killed may be cut.
                    if line.startswith(mark, 1) and line.endswith("}\n"):
                        yield json.loads(line)

    def all(self, kind):
        if kind not in self.cache:
            found = list(self.stream(kind))
            if kind == "call":
                # An issuer that was killed has decided, and nobody knows whether its answer arrived.
                answered = {record["n"] for record in found if "n" in record}
                unseen = [record for record in self.stream("judged") if record["n"] not in answered]
                found += [record | {"k": "call", "e": record["t"], "whole": False} for record in unseen]
            self.cache[kind] = sorted(found, key=lambda record: record["t"])
        return self.cache[kind]

    @property
    def run(self):
        return self.all("run")[0]


class Told(History):
    """A history of records that stand in a list: for the tests of the invariants."""

    def __init__(self, records):
        self.cache = {}
        for record in sorted(records, key=lambda record: record["t"]):
            self.cache.setdefault(record["k"], []).append(record)

    def stream(self, kind, file="*"):
        yield from self.cache.get(kind, [])

    def all(self, kind):
        return self.cache.get(kind, [])
