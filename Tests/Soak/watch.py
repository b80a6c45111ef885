"""Who looks at the gateways while they run: samples of what they hold, what they say, and the operator who mends what only an operator
can."""

import base64
import contextlib
import os
import pathlib
import subprocess
import threading
import time

from fleet import write_secret
from harness import parse_metrics
from history import CANARY
from races import whose

LOG_BOUND = 64 << 20
DEATHS = (b"ThreadSanitizer", b"AddressSanitizer", b"Fatal error", b"SIGILL", b"Illegal instruction", b"exclusive access")


def spellings(secret):
    """A secret as it would stand somewhere: itself, in hexadecimal digits, backwards, and in base64 at each of three places."""
    octets = secret.encode()
    found = [octets, octets.hex().encode(), octets[::-1]]
    for shift in range(3):
        # Without the digits that its neighbours share.
        found.append(base64.b64encode(bytes(shift) + octets)[4 if shift else 0 :].rstrip(b"=")[: len(octets) - 3])
    return found


CANARIES = spellings(CANARY)


def leaks(octets, secrets=()):
    return any(spelling in octets for spelling in CANARIES) or any(secret in octets for secret in secrets)


class Every(threading.Thread):
    """Does something again and again; a failure of it is told and ends nothing."""

    def __init__(self, world, seconds, work):
        super().__init__(daemon=True)
        self.world, self.seconds, self.work = world, seconds, work
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.wait(self.seconds):
            try:
                self.work()
            except Exception as trouble:  # noqa: BLE001
                self.world.say(f"{self.work.__qualname__}: {trouble!r}")

    def close(self):
        self.stopping.set()
        self.join(30)


class Samples:
    def __init__(self, world):
        self.world = world

    def take(self):
        for member in self.world.members:
            process = member.process
            if process is None:
                continue
            with contextlib.suppress(OSError):
                resident = int(pathlib.Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
                descriptors = len(os.listdir(f"/proc/{process.pid}/fd"))
                sizes = [path.stat().st_size if path.exists() else 0 for path in (member.store, member.store.with_name("tokens.db-wal"))]
                self.world.history.note(
                    "sample", g=member.number, pid=process.pid, born=member.born, rss=resident, fd=descriptors, db=sizes[0], wal=sizes[1]
                )


class Outputs:
    """Reads what gateways write, once, and cuts a log that has grown."""

    def __init__(self, world):
        self.world, self.read, self.rest = world, {}, {}
        self.octets = 0

    def look(self):
        secrets = self.world.lab_secrets()
        for member in self.world.members:
            for name in ("stdout", "stderr"):
                self.log(member, member.folder / name, secrets)

    def log(self, member, path, secrets):
        if not path.exists():
            return
        with open(path, "rb") as file:
            file.seek(self.read.get(path, 0))
            new = file.read(8 << 20)
        self.read[path] = self.read.get(path, 0) + len(new)
        self.octets += len(new)
        whole, _, self.rest[path] = (self.rest.get(path, b"") + new).rpartition(b"\n")
        if leaks(whole, secrets):
            self.world.leak(f"{path.name} of gateway {member.number}", whole)
        if any(word in whole for word in DEATHS):
            for line in whole.splitlines():
                if any(word in line for word in DEATHS):
                    self.world.history.note("torn", g=member.number, line=line.decode(errors="replace")[:400])
        if self.read[path] > LOG_BOUND:
            # The newest half goes beside it; whoever writes appends, and goes on at the new end.
            path.with_name(f"{path.name}.before").write_bytes(new[-(LOG_BOUND // 2) :])
            os.truncate(path, 0)
            self.read[path] = 0

    def races(self, over=False):
        """What the thread sanitizer says of gateways and of the lab."""
        for number, reports in [(0, self.world.servers.lab.races), *((member.number, member.races) for member in self.world.members)]:
            for line, text in reports.new(over):
                self.world.history.note("torn", g=number, line=line[:400], report=text)
                self.world.say(f"{whose(number)}: {line}")

    def ask(self):
        """What operators are shown."""
        secrets = self.world.lab_secrets()
        for member in self.world.members:
            for path in ("/metrics", "/status", "/readyz"):
                with contextlib.suppress(OSError):
                    body = member.ask(path, 3).body
                    self.octets += len(body)
                    if leaks(body, secrets):
                        self.world.leak(f"{path} of gateway {member.number}", body)

    def stores(self):
        """What lies on disks, and on the shared server."""
        secrets = self.world.lab_secrets()
        places = [
            (f"store of gateway {member.number}", path) for member in self.world.members for path in member.folder.glob("disk/tokens.db*")
        ]
        places += [("file of Redis", path) for path in (self.world.servers.folder / "redis").glob("appendonlydir/*")]
        for name, path in places:
            with contextlib.suppress(OSError):
                octets = path.read_bytes()
                self.octets += len(octets)
                if leaks(octets, secrets):
                    self.world.leak(f"{name}: {path.name}", octets)


class Operator:
    """Mends what only an operator can: a session whose newest refresh token is lost, and an attempt whose answer was not seen."""

    PATIENCE = 12.0

    def __init__(self, world):
        self.world, self.since, self.renewed = world, {}, 0.0

    def look(self):
        for member in self.world.members:
            try:
                samples = parse_metrics(member.ask("/metrics", 3).body.decode())
            except (OSError, AssertionError):
                continue
            for (name, labels), value in samples.items():
                labels = dict(labels)
                if name != "cardea_identity_state" or labels["identity"] == "wrong":
                    continue
                if value and labels["state"] in ("quarantined", "login_needed", "failed"):
                    self.mend(member, labels["identity"])
                elif value and labels["state"] in ("fresh", "refresh_due", "acquiring", "idle"):
                    self.since.pop((member.number, labels["identity"]), None)

    def mend(self, member, identity):
        began = self.since.setdefault((member.number, identity), time.monotonic())
        waited = time.monotonic() - began
        if waited < self.PATIENCE:
            return
        if identity == "rt" and waited < 3 * self.PATIENCE:
            # One file is everybody's.
            if time.monotonic() < self.renewed + self.PATIENCE:
                return
            self.renewed = time.monotonic()
            write_secret(self.world.folder / "first-refresh-token", self.world.servers.first_refresh_token())
            self.world.act("renew", member, identity=identity)
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = member.command("reset", identity, timeout=20).returncode
                self.world.act("reset", member, identity=identity, status=status)
            self.since[(member.number, identity)] = time.monotonic()
