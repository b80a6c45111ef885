"""The servers of a run, in the hub: each can be killed and started again."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import parts
import races
from harness import call, eventually, executable
from peers import Authority, Redis, nginx
from places import FILES, HUB, ISSUER, LAB, REDIS, UPSTREAMS, gateway_of

HERE = pathlib.Path(__file__).resolve().parent
LARGE = 3 << 20
# The lab's tokens live as long as those of the run's own issuer.
LAB_LIFE = 5000


class Script:
    """One of the run's own servers as a process."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        self.lock = threading.RLock()
        self.start()

    def start(self):
        words = [sys.executable, HERE / f"{self.name}.py", self.folder]
        self.log = open(pathlib.Path(self.folder) / f"{self.name}.log", "ab")
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log)
        assert self.process.stdout.readline(), f"{self.name} did not start: see {self.log.name}"

    def die(self):
        self.process.kill()
        self.forget()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def forget(self):
        self.process.wait(20)
        self.process.stdin.close()
        self.process.stdout.close()
        self.log.close()

    def close(self):
        with contextlib.suppress(Exception):
            self.thaw()
            # Ends with its input, and writes what it has first.
            self.process.stdin.close()
            self.process.wait(5)
        if self.process.poll() is None:
            self.die()


class Lab:
    """The lab in the hub: its addresses are attributes, as with the promises' Lab."""

    password, client_secret, api_key = "lab-password-1", "s:cret/ %é1", "lab-key-7f3a9c"

    def __init__(self, folder):
        binary = executable("CARDEA_LAB_BIN", ".build/debug/cardea-lab", "make build")
        words = [word for name, port in LAB.items() for word in (f"--{name}", f"{HUB}:{port}")]
        self.log = open(pathlib.Path(folder) / "lab.log", "ab")
        surroundings = os.environ | races.environment(folder)
        self.races = races.Reports(pathlib.Path(folder))
        self.process = subprocess.Popen([binary, *words], stdout=subprocess.PIPE, stderr=self.log, env=surroundings)
        line = self.process.stdout.readline()
        assert line, "the lab did not start"
        for name, value in json.loads(line).items():
            setattr(self, name, value)
        self.path = "/" + self.service.split("/", 3)[3]
        self.post("/faults", {"token_lifetime_ms": LAB_LIFE})

    def post(self, path, value=None):
        answer = call(self.control, "POST", path, json.dumps(value or {}).encode(), timeout=5)
        assert answer.status == 200, (path, answer)

    def get(self, path):
        return call(self.control, "GET", path, timeout=5).json

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()


class Servers:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.stack = contextlib.ExitStack()
        try:
            self.authority = Authority(self.folder / "pki")
            self.authority.issue("gateway", "localhost")
            self.authority.issue("files", HUB, f"IP:{HUB}")
            self.issuer = self.held(Script("issuer", self.folder))
            self.upstream = self.held(Script("upstream", self.folder))
            self.lab = self.held(Lab(self.folder))
            self.recorder = self.held(Script("recorder", self.folder))
            self.redis = self.held(self.make_redis())
            self.files = self.held(self.make_files())
        except BaseException:
            self.close()
            raise

    def held(self, server):
        self.stack.callback(server.close)
        return server

    def make_redis(self):
        allowed = "+hello +auth +ping +select +info +subscribe +eval +get +set +del +exists +incr +expire +pexpire +pttl +hget +hset +hdel"
        rule = f"cardea on >soakcanary-redis-password ~cardea:* &cardea:* -@all {allowed} +hkeys +publish"
        redis = Redis(self.folder / "redis", acl=[rule], keeps=True, place=(HUB, REDIS))
        redis.lock = threading.RLock()
        return redis

    def make_files(self):
        """nginx over TLS and HTTP/2, which asks the upstream about every credential before it serves a file."""
        root = self.folder / "nginx" / "root" / "f"
        root.mkdir(parents=True)
        (self.folder / "nginx").chmod(0o755)
        (root / "large").write_bytes(bytes(range(256)) * (LARGE // 256))
        (root / "small").write_bytes(b"a small file\n")
        block = f"""
  keepalive_requests 100000;
  server {{
    listen {HUB}:{FILES} ssl http2;
    ssl_certificate {self.folder}/pki/files.pem; ssl_certificate_key {self.folder}/pki/files.key;
    root {root.parent};
    location / {{
      auth_request /_check;
      auth_request_set $id $upstream_http_x_soak_id;
      add_header X-Soak-Id $id;
    }}
    location = /_check {{
      internal; proxy_pass http://{HUB}:{UPSTREAMS["A"]}/check; proxy_pass_request_body off;
      proxy_set_header Content-Length ""; proxy_set_header X-Real-IP $remote_addr;
    }}
  }}"""
        server = nginx(self.folder / "nginx", block, [(HUB, FILES)])
        server.lock = threading.RLock()
        return server

    # What an operator does.

    def issuer_mode(self, **mode):
        call(f"{HUB}:{ISSUER}", "POST", "/control/mode", json.dumps(mode).encode(), timeout=5)

    def first_refresh_token(self):
        return call(f"{HUB}:{ISSUER}", "POST", "/control/first", b"{}", timeout=5).json["token"]

    def revoke(self):
        return call(f"{HUB}:{UPSTREAMS['A']}", "POST", "/control/revoke", b"{}", timeout=5).json["before"]

    def wipe_redis(self):
        """Everything that it kept is gone, and it runs again."""
        self.redis.die()
        for path in (self.folder / "redis").glob("appendonlydir/*"):
            path.unlink()
        self.redis.start()

    def close(self):
        self.stack.close()


class Monitor(threading.Thread):
    """Writes down what Redis gave to gateways: leases, turns (leases of steps that may spend something), their renewals, and attempts with
    passwords that were booked. Redis shows each script with its caller, and behind it every command that the script ran; a counter that
    goes up, or an end that is put off, is a lease that was given, and not only asked for (`Sources/Fleet/Redis/FleetScripts.swift`)."""

    def __init__(self, redis, history):
        super().__init__(daemon=True)
        self.redis, self.history = redis, history
        self.stopping, self.held = threading.Event(), {}
        # Of the script that runs: its caller, and whether it knows a lock of spending.
        self.caller, self.spends = 0, False

    def run(self):
        while not self.stopping.is_set():
            words = [self.redis.cli, "-s", str(self.redis.socket), "monitor"]
            self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace")
            for line in self.process.stdout:
                self.look(line, time.monotonic() - time.time())
            self.process.wait()
            self.stopping.wait(0.02)

    def look(self, line, shift):
        # 1700000000.123456 [0 10.77.1.2:4711] "EVAL" "…" "6" "cardea:…:l:…" …
        # 1700000000.123457 [0 lua] "INCR" "cardea:…:g:…"
        moment, _, rest = line.partition(" [")
        place, _, command = rest.partition("] ")
        place = place.partition(" ")[2]
        if place != "lua":
            self.caller = gateway_of(place.partition(":")[0])
            self.spends = ":u:" in command
            return
        word = command[1:8].partition('"')[0].upper()
        if not self.caller or word not in ("INCR", "PEXPIRE", "HSET"):
            return
        moment = float(moment) + shift
        if word == "INCR" and ":g:" in command:
            self.note("turn" if self.spends else "hold", moment, command.partition(":g:")[2][:12])
        elif word == "PEXPIRE" and ":l:" in command:
            self.note("kept", moment, command.partition(":l:")[2][:12])
        elif word == "HSET" and ":a:" in command:
            self.note("booked", moment, command.partition(":a:")[2][:12])

    def note(self, what, moment, lease):
        # Leases of tokens are given again and again; that a gateway was given some is enough.
        if what == "hold":
            if moment < self.held.get(self.caller, 0) + 1:
                return
            self.held[self.caller] = moment
        self.history.note("step", moment, g=self.caller, what=what, lease=lease)

    def close(self):
        self.stopping.set()
        with contextlib.suppress(Exception):
            self.process.kill()


assert parts and eventually
