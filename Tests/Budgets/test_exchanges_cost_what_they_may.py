"""What an exchange costs the loop's thread of the release binary: instructions, allocations, system calls.

callgrind counts instructions, so that the numbers are those of a machine at rest whatever else runs on it. One caller sends one request
after another, which makes every exchange the same: two runs of different length differ by what the exchanges between them cost, and
handshakes, starts and ends drop out. The first row is also counted in Swift, without valgrind (`BudgetTests.swift`).

The numbers were taken with Debian 12 (valgrind 3.19, OpenSSL 3.0, nghttp2 1.52) on x86-64 with AVX2; allowed are three per cent more.
One goes down when the code gets better, and up only with a reason.
"""

import contextlib
import pathlib
import re
import socket
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Promises"))

from harness import eventually, executable, free_port
from pki import Authority

TOKEN = "abcdefghijklm" * 9

# caller, upstream: instructions, allocations, system calls
# What is allocated is OpenSSL's, for each record, and the object of a connection.
BUDGETS = {
    "1.1 to 1.1": ("plain", "plain", 16_380, 0, 6),
    "1.1 to 1.1, a connection each": ("close", "plain", 20_300, 1, 13),
    "1.1 to TLS 1.1": ("plain", "tls1", 31_600, 5, 7),
    "1.1 to TLS h2": ("plain", "tls2", 48_700, 5, 7),
    # This one differs by up to 2 % from one process to the next: 49,060 to 50,060 in thirty. What stands here is the middle.
    "TLS h2 to 1.1": ("tls", "plain", 49_200, 7, 7),
}
ALLOWANCE = 1.03
# The row in which each feature that is off has to cost nothing: from one process to the next it differs by 0.1 %.
NARROW = {"1.1 to 1.1": 1.005}
# The first row again, with `audit` and each way to tell uses; the loop leaves a record, and allocates and writes nothing.
AUDITED = {"counted": 16_700, "each": 16_700}
# What tracing with an export may cost the first row: the ratio, and times the instructions of the row without it.
TRACED = {"1%": 1.03, "100%": 1.10}

FEW, MANY = 100, 500

CALLS = {
    "allocations": {"malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign"},
    "system calls": {"recv", "send", "read", "write", "readv", "writev", "sendmsg", "recvmsg", "epoll_wait", "epoll_ctl", "splice",
                     "accept4", "close", "shutdown", "setsockopt", "getsockopt", "poll", "ioctl"},
}


class Profile:
    """One dump of the loop's thread."""

    def __init__(self, path):
        self.instructions = 0
        self.calls = dict.fromkeys(CALLS, 0)
        names = {}

        def name(text):
            number, _, rest = text.partition(" ")
            if rest:
                names[number] = rest.partition("@@")[0]
            return names[number]

        called = None
        for line in path.read_text(errors="replace").splitlines():
            if line.startswith("fn="):
                name(line[3:])
            elif line.startswith("cfn="):
                called = name(line[4:])
            elif line.startswith("calls="):
                for kind, functions in CALLS.items():
                    if called in functions:
                        self.calls[kind] += int(line[6:].split()[0])
            elif line.startswith("totals:"):
                self.instructions = int(line.split()[1])


class Origin:
    """nginx, which answers 200 octets to who brings the token."""

    def __init__(self, folder, leaf):
        self.ports = {way: free_port() for way in ("plain", "tls1", "tls2")}
        certificate, key = leaf
        (folder / "nginx.conf").write_text(f"""
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log error;
events {{ }}
http {{
    access_log off; keepalive_requests 1000000; http2_max_requests 1000000; default_type text/plain;
    client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder}; uwsgi_temp_path {folder};
    scgi_temp_path {folder};
    server {{
        listen 127.0.0.1:{self.ports["plain"]}; listen 127.0.0.1:{self.ports["tls1"]} ssl;
        listen 127.0.0.1:{self.ports["tls2"]} ssl http2;
        ssl_certificate {certificate}; ssl_certificate_key {key};
        if ($http_authorization != "Bearer {TOKEN}") {{ return 403; }}
        location = /small {{ return 200 "{"y" * 200}"; }}
    }}
}}
""")
        binary = executable("CARDEA_NGINX", "nginx", "apt-get install nginx")
        self.process = subprocess.Popen([binary, "-p", folder, "-c", folder / "nginx.conf"])
        eventually(lambda: answers(self.ports["plain"]), what="nginx")

    def close(self):
        self.process.terminate()
        self.process.wait(10)


class Measured:
    """The gateway under callgrind, with a listener for each row."""

    def __init__(self, folder, origin, authority, leaf, uses=None, tracing=None):
        self.folder = folder
        self.ports = {row: free_port() for row in BUDGETS}
        self.dumps = 0
        (folder / "token").write_text(TOKEN)
        (folder / "token").chmod(0o600)
        lines = ["threads: 1", "admin: off"]
        if uses:
            lines.append(f"audit: {{path: '{folder}/audit.log', uses: {uses}}}")
        if tracing:
            lines.append(f"tracing: {tracing}")
        lines += ["identities:", f"  api: {{static: {{value: 'file:{folder}/token', prefix: 'Bearer '}}}}", "listeners:"]
        routes = ["routes:"]
        for number, (row, (caller, upstream, *_)) in enumerate(BUDGETS.items()):
            certificate, key = leaf
            tls = f", tls: [{{certificate: {certificate}, key: 'file:{key}'}}]" if caller == "tls" else ""
            lines.append(f"  l{number}: {{address: '127.0.0.1:{self.ports[row]}'{tls}}}")
            scheme = "http" if upstream == "plain" else "https"
            to = f"{scheme}://localhost:{origin.ports[upstream]}"
            if upstream == "plain":
                to = f"http://127.0.0.1:{origin.ports[upstream]}"
            version = "" if upstream == "plain" else f", http: '{2 if upstream == 'tls2' else 1.1}', tls: {{ca: {authority.pem}}}"
            routes.append(f"  - {{listen: l{number}, to: '{to}', use: api{version}}}")
        (folder / "cardea.yaml").write_text("\n".join(lines + routes) + "\n")
        # valgrind of Debian 12 does not read the debug information that Swift writes; names of functions are enough.
        binary = folder / "cardea"
        source = executable("CARDEA_RELEASE_BIN", ".build/release/cardea", "make release")
        objcopy = executable("CARDEA_OBJCOPY", "objcopy", "apt-get install binutils")
        subprocess.run([objcopy, "--strip-debug", source, binary], check=True)
        if uses:
            subprocess.run([binary, "audit", "init", folder / "audit.log"], check=True, capture_output=True)
        valgrind = executable("CARDEA_VALGRIND", "valgrind", "apt-get install valgrind")
        self.vgdb = str(pathlib.Path(valgrind).with_name("vgdb"))
        self.log = open(folder / "log", "wb")
        self.process = subprocess.Popen(
            [valgrind, "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={folder}/profile",
             f"--vgdb-prefix={folder}/vgdb", binary, "run", "--config", folder / "cardea.yaml"],
            stdout=self.log, stderr=subprocess.STDOUT,
        )
        eventually(lambda: self.is_ready(), within=60, what=f"the gateway under callgrind: {folder}/log")

    def is_ready(self):
        assert self.process.poll() is None, (self.folder / "log").read_text(errors="replace")[-3000:]
        return answers(self.ports["1.1 to 1.1"])

    def send(self, row, count):
        caller = BUDGETS[row][0]
        h2load = executable("CARDEA_H2LOAD", "h2load", "apt-get install nghttp2-client")
        url = f"{'https' if caller == 'tls' else 'http'}://127.0.0.1:{self.ports[row]}/small"
        version = [] if caller == "tls" else ["--h1", "-H", "Connection: close"] if caller == "close" else ["--h1"]
        done = subprocess.run([h2load, *version, "-c1", "-m1", "-n", str(count), url], capture_output=True, text=True, timeout=120)
        assert re.search(rf"\b{count} 2xx\b", done.stdout), done.stdout + done.stderr

    def take(self):
        """What was counted since the last time, of the loop's thread: the one with the most system calls. By instructions it would be
        another one, now and then: on a machine that is busy with other things the start goes on beside the first exchanges."""
        self.dumps += 1
        subprocess.run(
            [self.vgdb, f"--vgdb-prefix={self.folder}/vgdb", f"--pid={self.process.pid}", "dump"], check=True, timeout=60,
            capture_output=True)
        found = [Profile(path) for path in self.folder.glob(f"profile.{self.dumps}-*")]
        assert found, sorted(path.name for path in self.folder.iterdir())
        return max(found, key=lambda profile: profile.calls["system calls"])

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
    except OSError:
        return False


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder, an origin, and who vouches for it."""
    folder = tmp_path_factory.mktemp("budgets")
    folder.chmod(0o755)
    authority = Authority(folder / "pki")
    leaf = authority.leaf("localhost", "DNS:localhost,IP:127.0.0.1")
    (folder / "nginx").mkdir()
    with contextlib.closing(Origin(folder / "nginx", leaf)) as origin:
        yield folder, origin, authority, leaf


@pytest.fixture(scope="module")
def measured(place):
    with contextlib.closing(Measured(*place)) as gateway:
        yield gateway


def cost(measured, row):
    """Instructions of an exchange, and its calls."""
    # The first requests make what later ones find: connections, blocks, tables.
    measured.send(row, 60)
    measured.take()
    measured.send(row, FEW)
    few = measured.take()
    measured.send(row, FEW + MANY)
    many = measured.take()
    instructions = (many.instructions - few.instructions) / MANY
    each = {kind: (many.calls[kind] - few.calls[kind]) / MANY for kind in CALLS}
    print(f"{row}: {instructions:.0f} instructions, {each}")
    assert instructions > 5_000, "nothing was measured"
    return instructions, each


@pytest.mark.parametrize("row", BUDGETS)
def test_an_exchange_costs_no_more_than_it_may(measured, row):
    _, _, instructions, allocations, calls = BUDGETS[row]
    took, each = cost(measured, row)
    assert took <= instructions * NARROW.get(row, ALLOWANCE)
    # A connection's first requests and its last may differ from the others by a handful.
    assert each["allocations"] <= allocations + 0.05
    assert each["system calls"] <= calls + 0.05


@pytest.mark.parametrize("uses", AUDITED)
def test_a_record_of_its_use_costs_no_allocation_and_no_system_call(place, uses):
    folder, *others = place
    row = "1.1 to 1.1"
    _, _, _, allocations, calls = BUDGETS[row]
    (folder / uses).mkdir()
    with contextlib.closing(Measured(folder / uses, *others, uses)) as measured:
        took, each = cost(measured, row)
    assert took <= AUDITED[uses] * ALLOWANCE
    assert each["allocations"] <= allocations + 0.05
    assert each["system calls"] <= calls + 0.05


@pytest.mark.parametrize("ratio", TRACED)
def test_a_traced_exchange_costs_little_more(place, tmp_path, measured, ratio):
    _, *others = place
    row = "1.1 to 1.1"
    _, _, _, allocations, calls = BUDGETS[row]
    # Nobody listens there. What becomes of the spans is other threads' work.
    tracing = f"{{ratio: '{ratio}', endpoint: 'http://127.0.0.1:{free_port()}'}}"
    with contextlib.closing(Measured(tmp_path, *others, tracing=tracing)) as traced:
        took, each = cost(traced, row)
    without, _ = cost(measured, row)
    print(f"tracing at {ratio}: {took / without - 1:.1%}")
    assert took <= without * TRACED[ratio]
    assert each["allocations"] <= allocations + 0.05
    # The log thread is woken some dozen times a second, whatever the ratio.
    assert each["system calls"] <= calls + 0.2
