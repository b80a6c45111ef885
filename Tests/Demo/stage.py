"""What every story of the demonstration uses: a page to tell it on, HTTP as a plain caller speaks it, the lab, the gateway.

A story is a module in `stories` that says: `TITLE`, the first line; `SECRETS`, files to be made in the demo's folder, by
their names; `LAB`, arguments for cardea-lab; `configuration(folder)`, the path of the gateway's; `TRY`, a path to try
afterwards; and `tell(lab, gateway)`, which starts the gateway when it has shown what is there without it. Every number is
measured in the run, and every claim is checked against what the lab counted.
"""

import contextlib
import http.client
import json
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
API, ISSUER, CONTROL = "127.0.0.1:9101", "127.0.0.1:14100", "127.0.0.1:9199"
GATEWAY, ADMIN = "127.0.0.1:8080", "127.0.0.1:9901"
CALLERS = 200


class Deviation(Exception):
    """What was measured is not what Cardea promises."""


def expect(found, wanted, what):
    if found != wanted:
        raise Deviation(f"{what}: {wanted} expected, {found} found")


# --- What a person sees ----------------------------------------------------------------------------------------------


class Page:
    colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def paint(self, code, text):
        return f"\x1b[{code}m{text}\x1b[0m" if self.colours else text

    def line(self, text=""):
        print(text, flush=True)

    def step(self, number, title):
        self.line(f"\n{self.paint(1, f'{number}  {title}')}")

    def status(self, code):
        return self.paint(32 if code < 300 else 33, str(code))

    def row(self, *cells):
        self.line("   " + "".join(f"{cell:<20}" for cell in cells).rstrip())


page = Page()

# --- Speaking HTTP ---------------------------------------------------------------------------------------------------


def ask(address, path, method="GET", body=None):
    """One request on a connection of its own: status and body."""
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        return send(connection, path, method, body)
    finally:
        connection.close()


def send(connection, path, method="GET", body=None):
    connection.request(method, path, body)
    answer = connection.getresponse()
    return answer.status, answer.read()


def curl(*arguments):
    """Runs curl as it is printed; returns its output."""
    page.line("   " + shlex.join(["curl", *arguments]))
    done = subprocess.run(
        ["curl", "--silent", "--show-error", "--max-time", "30", "--noproxy", "*", "--include", *arguments]
        + ["--write-out", "\n%{http_code} %{time_total}"],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise Deviation(f"curl ended with {done.returncode}: {done.stderr.strip()}")
    answer, _, numbers = done.stdout.rpartition("\n")
    status, seconds = numbers.split()
    head, _, body = answer.replace("\r\n", "\n").partition("\n\n")
    return int(status), head, body, float(seconds) * 1000


def at_once(count, path="/hr/rest/employees/", before=None):
    """Sends `count` requests for employees at one moment, each on a connection that is already open. `before` runs when all
    callers stand ready. Returns their statuses; an answer to another caller's request is a deviation."""
    outcomes = [None] * count
    gate = threading.Barrier(count, action=before)

    def work(number):
        connection = http.client.HTTPConnection(GATEWAY, timeout=30)
        try:
            connection.connect()
            gate.wait(30)
            status, body = send(connection, f"{path}{number}")
            if status == 200 and json.loads(body)["id"] != number:
                status = "an answer to somebody else's request"
            outcomes[number] = status
        except (OSError, http.client.HTTPException, ValueError, threading.BrokenBarrierError) as error:
            outcomes[number] = f"{type(error).__name__}: {error}"
            gate.abort()
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


# --- The two programs ------------------------------------------------------------------------------------------------


class Program:
    """A child in a session of its own, so that Ctrl-C reaches only this script, which then ends it in order."""

    def __init__(self, name, variable, folder):
        self.name = name
        self.binary = os.environ.get(variable) or str(ROOT / ".build/release" / name)
        if not shutil.which(self.binary):
            raise Deviation(f"{self.binary} is not there: swift build -c release --product {name}")
        self.log = folder / f"{name}.log"
        self.folder = folder
        self.process = None

    def spawn(self, *arguments, output=None):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.binary, *arguments],
                cwd=ROOT,
                env={**os.environ, "CARDEA_DEMO_DIR": str(self.folder)},
                stdin=subprocess.DEVNULL,
                stdout=output or log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def check_alive(self):
        if not self.is_running:
            raise Deviation(f"{self.name} ended by itself with {self.process.returncode}")

    def end(self, how=signal.SIGTERM, within=15):
        if not self.is_running:
            return
        self.process.send_signal(how)
        try:
            self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Deviation(f"{self.name} did not end within {within} s of {how.name}") from None

    def last_words(self):
        if not self.log.exists():
            return []
        return self.log.read_text(errors="replace").splitlines()[-15:]


class Lab(Program):
    def __init__(self, folder, arguments):
        super().__init__("cardea-lab", "CARDEA_LAB_BIN", folder)
        self.arguments = [argument.format(folder=folder) for argument in arguments]

    def start(self):
        self.spawn(
            *("--listen", API, "--issuer", ISSUER, "--control", CONTROL),
            *self.arguments,
            output=subprocess.PIPE,
        )
        if not self.process.stdout.readline():
            raise Deviation("cardea-lab did not start")

    def look(self, path):
        return json.loads(ask(CONTROL, path)[1])

    def tell(self, path, **values):
        expect(ask(CONTROL, path, "POST", json.dumps(values).encode())[0], 200, f"the lab's answer to POST {path}")

    def counts(self, *names):
        counts = self.look("/counts")
        expect(counts.get("malformed", 0), 0, "malformed requests that reached the lab")
        found = tuple(counts.get(name, 0) for name in names)
        return found[0] if len(found) == 1 else found


class Gateway(Program):
    def __init__(self, folder, config):
        super().__init__("cardea", "CARDEA_BIN", folder)
        # As a person at the top of the tree would write it.
        path = pathlib.Path(config)
        self.config = str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)

    def launch(self):
        self.spawn("run", "--config", self.config)

    def command(self, *arguments):
        """Another command of the same program, as it is printed; returns its output."""
        page.line("   " + shlex.join(["cardea", *arguments]))
        done = subprocess.run(
            [self.binary, *arguments, "--config", self.config],
            cwd=ROOT,
            env={**os.environ, "CARDEA_DEMO_DIR": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=30,
        )
        expect(done.returncode, 0, f"the status of cardea {arguments[0]} ({done.stderr.strip()})")
        return done.stdout

    def start(self):
        self.launch()
        end = time.monotonic() + 20
        while True:
            self.check_alive()
            with contextlib.suppress(OSError):
                if ask(ADMIN, "/readyz")[0] == 200:
                    return
            if time.monotonic() > end:
                raise Deviation("cardea was not ready within 20 s")
            time.sleep(0.005)

    def first_answer(self, path):
        """Starts, and asks until somebody listens; returns milliseconds from start to answer, and its status."""
        started = time.monotonic()
        self.launch()
        while True:
            try:
                status = ask(GATEWAY, path)[0]
                return (time.monotonic() - started) * 1000, status
            except ConnectionRefusedError:
                self.check_alive()
                if time.monotonic() - started > 20:
                    raise Deviation("cardea did not listen within 20 s") from None
                time.sleep(0.001)

    def forget(self):
        for path in self.folder.glob("tokens.db*"):
            path.unlink()


# --- What more than one story tells ----------------------------------------------------------------------------------


def a_thousand_more(lab, number, path="/hr/rest/employees/"):
    page.step(number, "A thousand more, one after the other on one connection")
    lab.tell("/reset")
    connection = http.client.HTTPConnection(GATEWAY, timeout=30)
    statuses, times = [], []
    for number in range(1000):
        began = time.perf_counter()
        statuses.append(send(connection, f"{path}{number}")[0])
        times.append((time.perf_counter() - began) * 1000)
    connection.close()
    times.sort()
    conclude(lab, statuses, 1000, issuer_calls=0, challenge=0)
    page.row("200 × 1000", "issuer calls 0", f"p50 {times[499]:.2f} ms  p99 {times[989]:.2f} ms")


def crash_and_outage(lab, gateway, number, path="/hr/rest/employees/"):
    page.step(number, "kill -9, issuer stopped, start again")
    gateway.end(signal.SIGKILL)
    lab.tell("/reset")
    lab.tell("/issuer/stop")
    milliseconds, status = gateway.first_answer(f"{path}42")
    statuses = [status] + [ask(GATEWAY, f"{path}{number}")[0] for number in range(1, 100)]
    conclude(lab, statuses, 100, issuer_calls=0, challenge=0)
    page.row("200 × 100", "issuer calls 0", f"first answer {milliseconds:.0f} ms after start")
    lab.tell("/issuer/start")


def conclude(lab, statuses, wanted, **counted):
    others = {str(status) for status in statuses if status != 200}
    if others:
        good = statuses.count(200)
        raise Deviation(f"{wanted} answers with 200 expected, {good} found; the others: {'; '.join(sorted(others))}")
    expect(len(statuses), wanted, "answers")
    expect(lab.counts(*counted), tuple(counted.values()), "the lab's counts of " + ", ".join(counted))
