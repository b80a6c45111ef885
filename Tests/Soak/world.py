"""A whole run: places, servers, gateways, callers, and whoever looks at them; and its end, which leaves nothing behind."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import parts
import races
from fleet import ACQUIRE, BOUND, Member, binary, configuration, secrets_of, write_secret
from process_faults import FAKETIME, Clock
from harness import call, eventually
from history import Writer
from places import CLEAR, Places
from servers import Monitor, Servers
from watch import Every, Operator, Outputs, Samples

HERE = pathlib.Path(__file__).resolve().parent
LEASE = 6.0
# Gateways whose wall clock a fault may move: a library stands before the system's clock there, so that not all are run with it.
CLOCKED = (3, 4)
# What everything has to work again when the last fault is over.
HEALED_WITHIN = 60.0


def lives(pid):
    return pathlib.Path(f"/proc/{pid}").exists()


def sweep(runs):
    """What a run that was killed has left: its namespaces with the processes inside, and its disks."""
    for path in pathlib.Path("/etc/netns").glob("cardea-*-*"):
        if not lives(path.name.split("-")[1]):
            for pid in subprocess.run(["ip", "netns", "pids", path.name], capture_output=True, text=True).stdout.split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "delete", path.name], capture_output=True)
            shutil.rmtree(path, ignore_errors=True)
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        place = pathlib.Path(line.split()[1])
        owner = place.parent.parent / "pid"
        if place.name == "disk" and runs in place.parents and owner.exists() and not lives(owner.read_text()):
            subprocess.run(["umount", "--lazy", place], capture_output=True)


class World:
    def __init__(self, folder, seed, gateways, hours):
        self.folder, self.seed = pathlib.Path(folder), seed
        sweep(self.folder.parent)
        (self.folder / "pid").write_text(str(os.getpid()))
        self.stack, self.editions, self.secrets = contextlib.ExitStack(), 0, 0
        self.members, self.callers = [], []
        self.history = Writer(self.folder, "run")
        self.stack.callback(self.history.close)
        self.said = threading.Lock()
        self.known, self.known_at = set(), 0.0
        # A sanitizer opens its file and starts its reader of symbols when it has something to report, which a sandbox forbids.
        self.sanitized = races.is_sanitized(binary())
        self.hours = hours
        try:
            self.build(gateways)
        except BaseException:
            self.close()
            raise

    def say(self, text):
        with self.said:
            print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)

    def act(self, what, member, **facts):
        self.history.note("act", g=member.number if member else 0, what=what, x=facts)
        self.history.flush()

    def leak(self, where, octets=b""):
        self.history.note("leak", where=where)
        self.say(f"a secret stands in {where}")

    def lab_secrets(self):
        """Secrets that the lab minted; asked for now and then."""
        if time.monotonic() > self.known_at + 5:
            with contextlib.suppress(OSError, AssertionError, ValueError):
                self.known |= {secret.encode() for secret in self.servers.lab.get("/secrets") if len(secret) >= 12}
            self.known_at = time.monotonic()
            # What is old has expired and has been looked for.
            if len(self.known) > 20_000:
                self.known = set()
        return list(self.known)

    # The beginning.

    def build(self, gateways):
        self.places = Places(gateways)
        self.stack.callback(self.places.close)
        self.stack.enter_context(self.places.hub.inside())
        self.servers = Servers(self.folder)
        self.stack.callback(self.servers.close)
        secrets_of(self.folder, self.servers.lab)
        write_secret(self.folder / "first-refresh-token", self.servers.first_refresh_token())
        for number in range(1, gateways + 1):
            member = Member(number, self.places, self.folder, self.history, spared=number == 1)
            self.stack.callback(member.close)
            self.members.append(member)
            if number in CLOCKED and not Clock.missing(self):
                (member.folder / "clock").write_text("+0s\n")
                member.environment = {
                    "LD_PRELOAD": str(FAKETIME),
                    "FAKETIME_TIMESTAMP_FILE": str(member.folder / "clock"),
                    "FAKETIME_CACHE_DURATION": "1",
                    "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                    # Without it the library lets waits by the monotonic clock end at once, as if a disk had not answered in its time.
                    "FAKETIME_FORCE_MONOTONIC_FIX": "0",
                }
            member.configure(self.configuration())

    def configuration(self, edition=0):
        return configuration(self.folder, self.servers.lab, edition, sandbox=not self.sanitized)

    def begin(self):
        facts = {"gateways": len(self.members), "lease": LEASE, "life": 5.0, "bound": BOUND, "acquire": ACQUIRE}
        if self.sanitized:
            facts["sanitizer"] = "thread"
        self.history.note("run", seed=self.seed, hours=self.hours, **facts)
        for member in self.members:
            member.start()
        for member in self.members:
            eventually(member.is_ready, within=60, what=f"readiness of gateway {member.number}")
        monitor = Monitor(self.servers.redis, self.history)
        monitor.start()
        self.stack.callback(monitor.close)
        self.outputs, operator = Outputs(self), Operator(self)
        every = 2.0 if self.hours <= 2 else 10.0
        for seconds, work in (
            (every, Samples(self).take),
            (2.0, self.outputs.look),
            (5.0, self.outputs.races),
            (10.0, self.outputs.ask),
            (30.0, self.outputs.stores),
            (3.0, operator.look),
            (1.0, self.look_after),
        ):
            watcher = Every(self, seconds, work)
            watcher.start()
            self.stack.callback(watcher.close)
        for member in self.members:
            words = [sys.executable, HERE / "callers.py", self.folder, str(member.number), member.address, str(self.seed)]
            log = open(self.folder / f"callers-{member.number}.log", "ab")
            self.callers.append(subprocess.Popen(words, stdin=subprocess.PIPE, stderr=log))
            log.close()
        self.stack.callback(self.end_callers)

    def reap(self):
        """Launchers of gateways that were replaced become our children when their parents have ended."""
        ours = {process.pid for process in [*self.callers, *(member.process for member in self.members if member.process)]}
        for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError, IndexError):
                name, _, rest = path.read_text().rpartition(")")
                if rest.split()[:2] == ["Z", str(os.getpid())] and "cardea-launcher" in name and int(path.parent.name) not in ours:
                    os.waitpid(int(path.parent.name), os.WNOHANG)

    def look_after(self):
        """A gateway that ended by itself is written down, and started again."""
        self.reap()
        for member in self.members:
            if not member.lock.acquire(blocking=False):
                continue
            try:
                if member.process and not member.expected_to_end and member.process.poll() is not None:
                    member.note("ended", status=str(member.process.returncode))
                    self.say(f"gateway {member.number} ended by itself with {member.process.returncode}")
                    member.close_output()
                    member.start()
            finally:
                member.lock.release()

    # The end.

    def heal(self):
        """With no fault any more: how long each route of each gateway takes until it works."""
        began, left = time.monotonic(), {(member, route) for member in self.members for route in "abpruowf"}
        while left and time.monotonic() < began + HEALED_WITHIN:
            for member, route in sorted(left, key=lambda pair: (pair[0].number, pair[1])):
                path = f"/{route}/small" if route == "f" else f"/{route}/down/3"
                fields = {"X-Soak-Id": "heal", "X-User": "healer", "X-Check": "healer"}
                try:
                    answer = call(f"{member.address}:{CLEAR}", "GET", path, headers=fields, timeout=BOUND)
                except OSError:
                    continue
                refused = answer.status == 503 and b"credential-quarantined" in answer.body
                if refused if route == "w" else answer.status == 200:
                    left.discard((member, route))
                    self.history.note("heal", g=member.number, r=route, after=time.monotonic() - began)
            time.sleep(0.5)
        for member, route in left:
            self.history.note("heal", g=member.number, r=route)

    def end_callers(self):
        for process in self.callers:
            with contextlib.suppress(OSError):
                process.stdin.close()
        for process in self.callers:
            try:
                process.wait(100)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.callers = []

    def end(self):
        """Callers first, so that every request has its end; then what gateways left."""
        self.heal()
        self.end_callers()
        self.outputs.look()
        self.outputs.ask()
        for member in self.members:
            status = member.stop()
            if status != 0:
                self.history.note("torn", g=member.number, line=f"a stop ended with {status}")
        self.outputs.look()
        self.outputs.races(over=True)
        self.outputs.stores()
        seen = self.servers.redis.everything()
        from watch import leaks

        if leaks(seen, self.lab_secrets()):
            self.leak("Redis")
        self.history.note("looked", octets=self.outputs.octets + len(seen))
        self.history.flush()

    def close(self):
        self.stack.close()


assert parts
