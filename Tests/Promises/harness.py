"""Runs the real binaries: the lab (simulated protected systems), the gateway, and nginx with TLS before the lab."""

import concurrent.futures
import hashlib
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time

from wire import Answer, Raw, address, call, send  # noqa: F401  (the tests take them from here)

ROOT = pathlib.Path(__file__).resolve().parents[2]
CALLERS = pathlib.Path(__file__).resolve().parent / "callers"
PATTERN = b"0123456789abcdef"


class Missing(AssertionError):
    """Something a test needs is not installed or not built. This fails the test; nothing is skipped."""


def executable(variable, default, advice):
    """The program named by an environment variable, else `default` (a path in the tree or a command)."""
    name = os.environ.get(variable) or default
    path = ROOT / name if "/" in name and not name.startswith("/") else name
    found = shutil.which(str(path)) or shutil.which(str(path), path="/usr/sbin:/sbin")
    if not found:
        raise Missing(f"'{name}' is not there: {advice} (or name it in {variable})")
    return found


def eventually(condition, within=25.0, every=0.02, what="condition"):
    """Polls until `condition` gives something true and returns that; fails after `within` seconds: less than
    `negative_for`, so that what only a timer mends has not come true."""
    end = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"{what} did not come true within {within} s"
        time.sleep(every)


# Below the range that the kernel hands to outgoing connections: one of those could take a port before the gateway does. Each comes
# once a round, so two routes of one test never share one: drawn anew each time, forty met in one of thirty runs. Promises that are
# tried at once have ports of their own, since one that is free is not taken before its server starts.
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
OWN_PORTS = range(10240 + WORKER, 32768, WORKERS)
PORTS = itertools.cycle(random.sample(OWN_PORTS, len(OWN_PORTS)))


def free_port():
    """Another one with each call."""
    for _ in range(200):
        port = next(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port between 10240 and 32767")


def together(count, work):
    """Runs `work(index)` on `count` threads at once; returns the results in order and raises the first failure."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=count) as pool:
        return list(pool.map(work, range(count)))


def sha256(data):
    return hashlib.sha256(data).hexdigest()


# --- The lab ---------------------------------------------------------------------------------------------------------


class Lab:
    """The running cardea-lab. Attributes are its addresses as it printed them: listen, plain, issuer, control."""

    password = "lab-password-1"
    client_secret = "s:cret/ %é1"
    api_key = "lab-key-7f3a9c"

    def __init__(self, *arguments):
        binary = executable("CARDEA_LAB_BIN", ".build/debug/cardea-lab", "swift build --product cardea-lab")
        free = [part for name in ("--listen", "--plain", "--issuer", "--control") for part in (name, "127.0.0.1:0")]
        self.process = subprocess.Popen([binary, *free, *arguments], stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        assert line, "the lab did not start"
        self.addresses = json.loads(line)
        for name, value in self.addresses.items():
            setattr(self, name, value)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def control_call(self, method, path, value=None):
        body = None if value is None else json.dumps(value).encode()
        answer = call(self.control, method, path, body)
        assert answer.status == 200, f"{path}: {answer}"
        return answer.json

    def counts(self):
        """What happened since the last reset; a kind that did not happen reads 0."""
        return Counts(self.control_call("GET", "/counts"))

    def faults(self, **values):
        self.control_call("POST", "/faults", values)

    def post(self, path, value=None):
        return self.control_call("POST", path, value if value is not None else {})

    def get(self, path):
        return self.control_call("GET", path)

    def reset(self, tokens=True):
        self.post("/reset", {"tokens": tokens})
        self.post("/issuer/start")
        self.post("/protected/start")


class Counts(dict):
    def __missing__(self, _):
        return 0


# --- The gateway -----------------------------------------------------------------------------------------------------


def merge(base, changes):
    """Maps merge, everything else replaces; None removes."""
    result = dict(base)
    for key, value in (changes or {}).items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merge(result[key], value)
        else:
            result[key] = value
    return result


class Cardea:
    """One gateway with a configuration of its own in `folder`. JSON is YAML, so the file is written as JSON."""

    def __init__(self, lab, folder):
        self.binary = executable("CARDEA_BIN", ".build/debug/cardea", "swift build --product cardea")
        self.lab, self.folder = lab, pathlib.Path(folder)
        self.listen = f"127.0.0.1:{free_port()}"
        self.admin = f"127.0.0.1:{free_port()}"
        self.file = self.folder / "cardea.yaml"
        self.store = self.folder / "tokens.db"
        self.process = None
        # Words of a program that runs the gateway, as strace.
        self.wrapper = []
        self.runs = 0
        self.may_exit = False
        self.baseline = 0
        self.secrets = [lab.password, lab.client_secret, lab.api_key]
        self.config = {}

    def secret(self, name, value):
        """Writes a secret file and returns the reference to it."""
        path = self.folder / name
        path.write_text(value)
        path.chmod(0o600)
        self.secrets.append(value)
        return f"file:{path}"

    # Configurations. Each takes changes for the whole file, merged in last.

    def frame(self, changes=None):
        base = {
            "name": "edge-1",
            "store": {
                "path": str(self.store),
                "key": self.secret("store-key", "c3RvcmUta2V5LWZvci10ZXN0cy0zMi1vY3RldHMhISE="),
            },
            "admin": {"listen": self.admin, "socket": str(self.folder / "cardea.sock")},
            "log": {"level": "info", "format": "json", "access": "all"},
            "shutdown": {"linger": "0s", "timeout": "10s"},
        }
        # Any promise can be tried inside as well: CARDEA_SANDBOX=on.
        if "CARDEA_SANDBOX" in os.environ:
            base["sandbox"] = os.environ["CARDEA_SANDBOX"]
        return merge(base, changes)

    def webgate(self, identity=None, token=None, route=None, changes=None, password=None):
        """The HR API behind its WebGate."""
        block = {
            "service": self.lab.service,
            "user_agent_prefix": self.lab.user_agent_prefix,
            "client_id": self.lab.client_id,
            "username": self.lab.user,
            "password": self.secret("hr-password", password or self.lab.password),
        }
        who = {"oam_webgate": merge(block, identity)}
        if token:
            who["token"] = token
        routes = [merge(self.route("hr", self.lab.listen), route)]
        self.config = merge(self.frame({"identities": {"hr": who}, "routes": routes}), changes)
        return self

    def oauth(self, identity=None, token=None, route=None, changes=None):
        """The Bearer API with a client-credentials identity."""
        block = {
            "token_url": f"http://{self.lab.issuer}/token",
            "client_id": self.lab.oauth_client_id,
            "client_secret": self.secret("client-secret", self.lab.client_secret),
        }
        who = {"oauth2": merge(block, identity)}
        if token:
            who["token"] = token
        routes = [merge(self.route("api", self.lab.listen), route)]
        self.config = merge(self.frame({"identities": {"api": who}, "routes": routes}), changes)
        return self

    def provider(self, provider, changes=None, **identities):
        """A route for each identity, on an address of its own, to the API of an authorization server."""
        self.listens = {name: f"127.0.0.1:{free_port()}" for name in identities}
        routes = [
            {"name": name, "listen": self.listens[name], "to": provider.api, "use": name, "scopes": ["read"]}
            for name in identities
        ]
        self.config = merge(self.frame({"identities": identities, "routes": routes}), changes)
        return self

    def with_identity(self, block, changes=None):
        """A route to the lab with any one identity."""
        routes = [self.route("only", self.lab.listen)]
        self.config = merge(self.frame({"identities": {"only": block}, "routes": routes}), changes)
        return self

    def route(self, use, to):
        return {"name": use, "listen": self.listen, "to": to if "://" in to else f"http://{to}", "use": use}

    # Life.

    def start(self, ready=True):
        if self.config:
            text = json.dumps(self.config, indent=2)
            # A command that runs beside it must not read a file that is half written.
            if not self.file.exists() or self.file.read_text() != text:
                self.file.write_text(text)
        self.runs += 1
        self.may_exit = False
        self.output = [open(self.folder / f"{name}.{self.runs}", "wb") for name in ("stdout", "stderr")]
        self.process = subprocess.Popen(
            [*self.wrapper, self.binary, "run", "--config", str(self.file)],
            stdout=self.output[0],
            stderr=self.output[1],
            cwd=self.folder,
        )
        if ready:
            eventually(self.is_ready, within=60, what="/readyz answering 200")
            self.baseline = self.descriptors()
        return self

    def is_ready(self):
        assert self.process.poll() is None, f"the gateway ended with {self.process.returncode}:\n{self.text()}"
        try:
            return call(self.admin, path="/readyz", timeout=5).status == 200
        except OSError:
            return False

    def kill(self):
        """As the kernel would: no warning, no time."""
        self.may_exit = True
        self.process.kill()
        self.process.wait()
        self._close_output()

    def stop(self, within=30):
        self.may_exit = True
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(within)
        self._close_output()
        return self.process.returncode

    def _close_output(self):
        for file in self.output:
            file.close()

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def resident(self):
        """Octets of resident memory."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def finish(self):
        """The promises that hold for every test: alive to the end, nothing malformed sent, no descriptor lost, a
        clean end, no secret told."""
        assert self.lab.counts()["malformed"] == 0, self.lab.get("/refusals")
        if self.process is not None and self.process.poll() is None:
            self.lab.post("/reset", {"tokens": False})
            self.lab.post("/close_idle")
            # Upstream pools may refill between two looks; a leak grows by what a test opened, not by a handful.
            allowed = self.baseline + 8
            try:
                eventually(
                    lambda: self.lab.post("/close_idle") and self.descriptors() <= allowed,
                    within=10,
                    every=0.1,
                    what="descriptors back at their start",
                )
                assert self.stop() == 0, self.text()
            finally:
                if self.process.poll() is None:
                    self.kill()
        elif self.process is not None:
            self._close_output()
            assert self.may_exit, f"the gateway ended by itself with {self.process.returncode}:\n{self.text()}"
        self.tells_no_secret(self.text())

    def tells_no_secret(self, text):
        for secret in set(self.secrets) | set(self.lab.get("/secrets")):
            assert secret not in text, f"a secret that begins with {secret[:4]!r} stands in:\n{text[-4000:]}"

    def abandon(self):
        if self.process is not None and self.process.poll() is None:
            self.kill()

    # What it said.

    def lines(self, name):
        found = []
        for path in sorted(self.folder.glob(f"{name}.*")):
            # The last line may be in the writing.
            found += path.read_text(errors="replace").rpartition("\n")[0].splitlines()
        return found

    def events(self):
        return [json.loads(line) for line in self.lines("stderr")]

    def told(self, holds):
        """The events of the log of which `holds` is true, as soon as there is one."""
        return eventually(lambda: [event for event in self.events() if holds(event)], what="the line in the log")

    def access(self):
        return [json.loads(line) for line in self.lines("stdout")]

    def text(self):
        return "\n".join(self.lines("stderr") + self.lines("stdout"))

    # Talking to it.

    def get(self, path="/hr/rest/employees/42", **rest):
        return call(self.listen, "GET", path, **rest)

    def call(self, method, path, body=None, headers=None, **rest):
        return call(self.listen, method, path, body, headers, **rest)

    def raw(self, **rest):
        return Raw(self.listen, **rest)

    def ask(self, path, **rest):
        """The admin address."""
        return call(self.admin, "GET", path, **rest)

    def command(self, *arguments, timeout=30, config=True):
        """Another command of the same binary: (status, stdout, stderr)."""
        extra = ["--config", str(self.file)] if config else []
        done = subprocess.run(
            [self.binary, *arguments, *extra], capture_output=True, timeout=timeout, cwd=self.folder, text=True
        )
        self.tells_no_secret(done.stdout + done.stderr)
        return done.returncode, done.stdout, done.stderr

    def warm(self, path="/hr/rest/employees/1"):
        """Gets the first token, so that the test begins hot."""
        answer = self.get(path)
        assert answer.status == 200, f"{answer}\n{self.lab.get('/refusals')}\n{self.text()}"
        return self

    def metrics(self):
        """Every sample of /metrics: {(name, ((label, value), …)): number}."""
        return parse_metrics(self.ask("/metrics").body.decode())


def parse_metrics(text):
    """The Prometheus text format, strictly: HELP and TYPE lines, labels, numbers; anything else fails."""
    label = r'[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*"'
    sample = re.compile(rf"^([a-zA-Z_:][\w:]*)(?:\{{({label}(?:,{label})*)?,?\}})? (\S+)(?: \d+)?$")
    samples = {}
    for line in text.splitlines():
        if not line or line.startswith(("# HELP ", "# TYPE ")) or line == "# EOF":
            continue
        match = sample.match(line)
        assert match, f"no metric line: {line!r}"
        pairs = re.findall(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"', match[2] or "")
        key = (match[1], tuple(sorted(pairs)))
        assert key not in samples, f"a sample stands twice: {line!r}"
        samples[key] = float(match[3])
    return samples


# --- Authorization servers ----------------------------------------------------------------------------------------------


class Provider:
    """The authorization server on Authlib with its resource server: `issuer` and `api` are their origins."""

    def __init__(self, program="authorization_server.py"):
        program = pathlib.Path(__file__).resolve().parent / "servers" / program
        self.process = subprocess.Popen([sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        assert line, "the authorization server did not start"
        for name, value in json.loads(line).items():
            setattr(self, name, value)

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)

    def post(self, what, value=None):
        body = json.dumps(value or {}).encode()
        answer = call(
            self.issuer.removeprefix("http://"),
            "POST",
            f"/control/{what}",
            body,
            {"Content-Type": "application/json"},
        )
        assert answer.status == 200, answer
        return answer.json

    def client(self, name, **members):
        self.post("clients", {"id": name, "scope": "read write admin", **members})

    def steps(self, step):
        """What happened of this kind since the last reset."""
        return [entry for entry in self.post("log") if entry["step"] == step]


# --- nginx -----------------------------------------------------------------------------------------------------------


class Nginx:
    """Debian's nginx with TLS, asking the lab's WebGate by auth_request, the plain HR API behind it."""

    def __init__(self, lab, folder, http2=False):
        self.folder = pathlib.Path(folder)
        binary = executable("CARDEA_NGINX", "nginx", "apt-get install nginx")
        self.make_certificates()
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.ca = self.folder / "ca.pem"
        temporary = "\n".join(
            f"  {kind}_temp_path {self.folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (self.folder / "nginx.conf").write_text(
            f"""daemon off; master_process off; pid {self.folder}/nginx.pid; error_log {self.folder}/error.log warn;
events {{ worker_connections 1024; }}
http {{
{temporary}
  access_log off;
  keepalive_requests 100000;
  upstream plain {{ server {lab.plain}; keepalive 32; }}
  server {{
    listen {self.address} ssl{" http2" if http2 else ""};
    ssl_certificate {self.folder}/server.pem;
    ssl_certificate_key {self.folder}/server.key;
    ssl_protocols TLSv1.2 TLSv1.3;
    client_max_body_size 64m;
    location / {{
      auth_request /_check;
      auth_request_set $gate_cookie $upstream_http_set_cookie;
      add_header Set-Cookie $gate_cookie;
      proxy_pass http://plain;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_request_buffering off;
      proxy_buffering off;
    }}
    location = /_check {{
      internal;
      proxy_pass http://plain/authorize_check;
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_set_header Transfer-Encoding "";
      proxy_set_header X-Original-URI $request_uri;
      proxy_set_header X-Original-Host $http_host;
      proxy_set_header X-Original-Proto https;
    }}
  }}
}}
"""
        )
        self.process = subprocess.Popen(
            [
                binary,
                "-p",
                str(self.folder),
                "-e",
                str(self.folder / "error.log"),
                "-c",
                str(self.folder / "nginx.conf"),
            ]
        )
        eventually(self.is_listening, what="nginx listening")

    def is_listening(self):
        assert self.process.poll() is None, (self.folder / "error.log").read_text()
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=2).close()
            return True
        except OSError:
            return False

    def make_certificates(self):
        openssl = executable("CARDEA_OPENSSL", "openssl", "apt-get install openssl")

        def run(*arguments):
            subprocess.run([openssl, *arguments], check=True, capture_output=True, cwd=self.folder)

        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        run(
            "req",
            "-x509",
            *key,
            "-keyout",
            "ca.key",
            "-out",
            "ca.pem",
            "-days",
            "2",
            "-subj",
            "/CN=Test CA",
            "-addext",
            "basicConstraints=critical,CA:TRUE",
            "-addext",
            "keyUsage=critical,keyCertSign,cRLSign",
        )
        run("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
        (self.folder / "server.ext").write_text(
            "subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n"
        )
        run(
            "x509",
            "-req",
            "-in",
            "server.csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            "server.ext",
            "-out",
            "server.pem",
        )

    def context(self):
        return ssl.create_default_context(cafile=self.ca)

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def held(kind, lab, tmp_path):
    """For a fixture: makes gateways of a kind; each is held to the promises of every test when the test has passed."""
    made = []

    def make(name="gateway"):
        folder = tmp_path / f"{name}-{len(made)}"
        folder.mkdir()
        made.append(kind(lab, folder))
        # Any fleet can be tried with two versions: every second gateway runs the binary that is named here.
        if "CARDEA_BESIDE" in os.environ and len(made) % 2 == 0:
            made[-1].binary = os.environ["CARDEA_BESIDE"]
        return made[-1]

    yield make
    try:
        for gateway in made:
            gateway.finish()
    finally:
        for gateway in made:
            gateway.abandon()
