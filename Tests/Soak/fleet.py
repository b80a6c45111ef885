"""The gateways: one configuration for all, a place, a store and a disk of its own for each, and what can be done to one."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

import parts
import races
from harness import call, executable
from issuer import CLIENTS, PASSWORDS
from places import ADMIN, CLEAR, FILES, HUB, ISSUER, LAB, RECORDER, REDIS, SECURE, UPSTREAMS
from small_disk import SmallDisk
from upgrades import Heir

# What a request may take at most, made of the times that the configuration gives: three times acquire_timeout for tokens, then connecting
# and waiting for the first octet, twice where it is sent again (docs/design/tokens.md#rule-3).
ACQUIRE, CONNECT, RESPONSE, IDLE = 4, 3, 6, 10
BOUND = 3 * ACQUIRE + 2 * (CONNECT + RESPONSE) + IDLE
SMALL = "4m"


def binary():
    return executable("CARDEA_BIN", ".build/debug/cardea", "make build")


def configuration(folder, lab, extra=0, sandbox=True):
    """Everything that the gateways share. `extra` is what a reload changes."""

    def secret(name):
        return f"file:{folder}/{name}"

    def oauth(client, **more):
        block = {"token_url": f"http://{HUB}:{ISSUER}/token", "client_id": client, "client_secret": secret(f"client-{client}")}
        network = {"timeout": "4s", "allow_cleartext": True}
        return {"oauth2": block | more, "token": token, "network": network}

    def route(name, use, to, path=None, **more):
        way = {"name": name, "listen": ["clear", "secure"], "match": {"path": path or f"/{name}/"}, "to": to, "use": use}
        way |= {"timeouts": {"connect": f"{CONNECT}s", "response": f"{RESPONSE}s", "idle": f"{IDLE}s"}, "allow_cleartext": True}
        way["callers"] = {"allow": ["10.77.0.0/16"]}
        return way | more

    token = {"acquire_timeout": f"{ACQUIRE}s", "negative_for": "4s"}
    upstream = {name: f"http://{HUB}:{port}" for name, port in UPSTREAMS.items()}
    identities = {
        "cc": oauth("cc"),
        "pw": oauth("pw", grant="password", username="anna", password=secret("password-anna")),
        "rt": oauth("rt", grant="refresh_token", refresh_token=secret("first-refresh-token")),
        "wrong": oauth("wrong", grant="password", username="bruno", password=secret("password-bruno")),
        "users": oauth("users", extra={"act_as": "user:{subject}"}),
    }
    routes = [
        route("a", "cc", upstream["A"], audience="A"),
        route("b", "cc", upstream["B"], audience="B"),
        route("p", "pw", upstream["A"], audience="P"),
        route("r", "rt", upstream["B"], audience="R"),
        route("w", "wrong", upstream["A"], audience="W"),
        route("u", "users", upstream["B"], audience="U", subject={"from_header": "X-User"}),
        route("f", "cc", f"https://{HUB}:{FILES}", audience="F", tls={"ca": f"{folder}/pki/ca.pem"}),
        route("o", "none", upstream["O"]),
    ]
    if lab:
        at = f"{HUB}:{RECORDER}"
        network = {"timeout": "4s", "allow_cleartext": True}
        hr = {"service": f"http://{at}{lab.path}", "user_agent_prefix": lab.user_agent_prefix, "client_id": lab.client_id}
        hr |= {"username": lab.user, "password": secret("hr-password")}
        identities["hr"] = {"oam_webgate": hr, "token": token, "network": network}
        teller = {"base": f"http://{at}/mfp/api", "client_id": "payroll-gateway", "client_secret": secret("mfp-secret")}
        identities["mfp"] = {"mobilefirst": teller, "token": token, "network": network}
        routes.append(route("hr", "hr", f"http://{HUB}:{LAB['listen']}"))
        routes.append(route("mfp", "mfp", f"http://{HUB}:{LAB['listen']}", path="/mfp/api/adapters/", scopes=["accountsRead"]))
    if extra:
        routes.append(route(f"x{extra % 7}", "none", upstream["O"], headers={"set": {"X-Edition": str(extra)}}))
    shared = {"url": f"redis://{HUB}:{REDIS}", "username": "cardea", "password": secret("redis-password"), "format": "new"}
    return {
        "threads": 2,
        "sandbox": "on" if sandbox else "off",
        "identities": identities,
        "routes": routes,
        "listeners": {
            "clear": {"address": f"0.0.0.0:{CLEAR}"},
            "secure": {
                "address": f"0.0.0.0:{SECURE}",
                "hosts": ["any"],
                "tls": [{"certificate": f"{folder}/pki/gateway.pem", "key": f"file:{folder}/pki/gateway.key"}],
            },
        },
        "limits": {"subjects": 200, "new_subjects_per_second": 100},
        "store": {"key": secret("fleet-key"), "shared": shared | {"allow_cleartext": True}},
        "log": {"level": "info", "format": "json", "access": "errors"},
        "shutdown": {"linger": "0s", "timeout": "10s", "takeover": "30s"},
    }


class Member:
    """A gateway. Faults take `lock` of what they do to a process, so that two of them do not undo each other."""

    def __init__(self, number, places, folder, history, spared):
        self.number, self.space, self.address = number, places.spaces[number], places.address(number)
        self.folder = pathlib.Path(folder) / f"gateway-{number}"
        self.folder.mkdir(parents=True)
        self.history, self.spared = history, spared
        self.binary = binary()
        self.disk = SmallDisk(self.folder / "disk", SMALL)
        self.store = self.folder / "disk" / "tokens.db"
        self.file = self.folder / "cardea.yaml"
        self.process, self.output, self.born = None, None, 0.0
        self.races = races.Reports(self.folder)
        # Words before the program, for clocks of its own.
        self.clocks, self.environment = [], {}
        self.lock = threading.RLock()
        self.expected_to_end = False
        self.upgrades = 0

    def configure(self, shared):
        own = {"name": f"edge-{self.number}", "admin": {"listen": f"127.0.0.1:{ADMIN}", "socket": str(self.folder / "cardea.sock")}}
        whole = shared | own | {"store": shared["store"] | {"path": str(self.store)}}
        fresh = self.file.with_suffix(".new")
        fresh.write_text(json.dumps(whole, indent=1))
        fresh.rename(self.file)

    def note(self, what, **more):
        self.history.note("life", g=self.number, what=what, pid=self.process.pid if self.process else None, **more)
        self.history.flush()

    # Life.

    def start(self):
        self.expected_to_end = False
        # Appended to, so that a log may be cut while it is written.
        self.output = [open(self.folder / name, "ab") for name in ("stdout", "stderr")]
        words = [*self.space.wrapper, *self.clocks, self.binary, "run", "--config", str(self.file)]
        self.process = subprocess.Popen(
            words, stdout=self.output[0], stderr=self.output[1], cwd=self.folder, env=self.surroundings
        )
        self.born = time.monotonic()
        self.note("start")

    @property
    def surroundings(self):
        return os.environ | races.environment(self.folder) | self.environment

    def close_output(self):
        for file in self.output or ():
            file.close()

    def kill(self):
        self.expected_to_end = True
        self.note("killed")
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.wait(20)

    def stop(self, within=40):
        self.expected_to_end = True
        self.process.send_signal(signal.SIGTERM)
        status = self.wait(within)
        self.note("stopped", status=str(status))
        return status

    def wait(self, within):
        try:
            status = self.process.wait(within)
        except (subprocess.TimeoutExpired, AssertionError):
            return None
        self.close_output()
        return status

    def signal(self, number):
        os.kill(self.process.pid, number)

    def upgrade(self, within=60):
        """None when the new process serves, else why not. The old one drains by itself."""
        before = (self.folder / "stderr").stat().st_size
        old = self.process
        self.expected_to_end = True
        self.signal(signal.SIGUSR2)
        try:
            end = time.monotonic() + within
            while time.monotonic() < end:
                for event in self.events(before):
                    if event.get("message") == "upgrade done":
                        self.process, self.born = Heir(event["process"]), time.monotonic()
                        self.note("upgraded", old=old.pid)
                        threading.Thread(target=old.wait, daemon=True).start()
                        return None
                    if event.get("message") == "upgrade failed":
                        return event.get("reason", "?")
                if old.poll() is not None:
                    self.note("ended", status=str(old.returncode))
                    return f"the old process ended with {old.returncode}"
                time.sleep(0.05)
            return "no word of it"
        finally:
            self.expected_to_end = False

    def events(self, begin=0):
        with open(self.folder / "stderr", "rb") as file:
            file.seek(begin)
            lines = file.read().rpartition(b"\n")[0].splitlines()
        found = []
        for line in lines:
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                if isinstance(event, dict):
                    found.append(event)
        return found

    # Looking at it.

    def ask(self, path, timeout=5):
        with self.space.inside():
            return call(f"127.0.0.1:{ADMIN}", "GET", path, timeout=timeout)

    def is_ready(self):
        try:
            return self.ask("/readyz", 2).status == 200
        except OSError:
            return False

    def command(self, *words, timeout=30):
        whole = [*self.space.wrapper, self.binary, *words, "--config", str(self.file)]
        return subprocess.run(whole, capture_output=True, text=True, timeout=timeout, cwd=self.folder, env=self.surroundings)

    def close(self):
        with contextlib.suppress(Exception):
            self.signal(signal.SIGCONT)
            self.kill()
        self.disk.__exit__()


def secrets_of(folder, lab):
    """Every secret as a file, and every one with the canary in it where the other side lets us choose."""
    folder = pathlib.Path(folder)
    found = {f"client-{name}": value for name, value in CLIENTS.items()}
    found |= {f"password-{user}": value for user, value in PASSWORDS.items()}
    found["password-bruno"] = "soakcanary-wrong-0"
    found["redis-password"] = "soakcanary-redis-password"
    found["fleet-key"] = "ZmxlZXQta2V5LWZvci10ZXN0cy1vZi0zMi1vY3RldHM="
    if lab:
        found |= {"hr-password": lab.password, "mfp-secret": lab.api_key}
    for name, value in found.items():
        write_secret(folder / name, value)


def write_secret(path, value):
    """As a rotation does it: a whole file, renamed into place."""
    fresh = path.with_suffix(".fresh")
    fresh.write_text(value)
    fresh.chmod(0o600)
    fresh.rename(path)


assert parts
