"""Promise: `cardea tokens --watch` shows the tokens again and again, outlives the gateway that it looks at, and leaves a terminal as it was."""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import tempfile
import termios

import pytest

from harness import eventually

ENTERS, LEAVES = b"\x1b[?1049h\x1b[?25l\x1b[?7l", b"\x1b[?7h\x1b[?25h\x1b[?1049l"


class Piped:
    """The command with its output in files, as a script has it."""

    def __init__(self, gateway, *arguments):
        # Nameless: a test has several of these at once.
        self.files = [tempfile.TemporaryFile(dir=gateway.folder) for _ in ("out", "err")]
        # A shell without a terminal that starts the tests behind itself has them ignore the signal, and whatever they start.
        self.process = subprocess.Popen(
            ["env", "--default-signal=INT", gateway.binary, "tokens", "--watch", "--interval", "0.5", "--config", str(gateway.file), *arguments],
            stdout=self.files[0], stderr=self.files[1], cwd=gateway.folder,
        )

    def out(self):
        return self._text(0)

    def errors(self):
        return self._text(1)

    def _text(self, which):
        return os.pread(self.files[which].fileno(), 1 << 20, 0).decode()

    def lines(self):
        """Those that are whole."""
        return [json.loads(line) for line in self.out().splitlines(True) if line.endswith("\n")]

    def end(self):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(10) == -signal.SIGINT

    def abandon(self):
        self.process.kill()
        self.process.wait()
        for file in self.files:
            file.close()


class Screen:
    """The command on a terminal of its own, as a person has it. What it wrote is kept as it came."""

    def __init__(self, gateway, rows=24, columns=200, term="xterm"):
        self.written = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ |= {"TERM": term}
            os.chdir(gateway.folder)
            os.execv(gateway.binary, [gateway.binary, "tokens", "--watch", "--interval", "0.5", "--config", str(gateway.file)])
        self.resize(rows, columns)

    def resize(self, rows, columns):
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        while select.select([self.terminal], [], [], 0)[0]:
            try:
                octets = os.read(self.terminal, 1 << 16)
            except OSError:  # nobody has the other end any more
                break
            if not octets:
                break
            self.written += octets
        return self.written

    def page(self):
        """The lines of the last whole page; each begins at the top and ends by wiping the rest."""
        pages = [page for page in self.read().split(b"\x1b[H") if page.endswith(b"\x1b[J")]
        return pages and [line.removesuffix(b"\x1b[K").decode() for line in re.split(rb"\r*\n", pages[-1].removesuffix(b"\x1b[J"))]

    def shows(self, text):
        return eventually(lambda: any(text in line for line in self.page() or ()), what=f"'{text}' on the screen")

    def sockets(self):
        found = set()
        for link in pathlib.Path(f"/proc/{self.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                found.add(os.readlink(link))
        return {name for name in found if name.startswith("socket:")}

    def types(self, keys):
        os.write(self.terminal, keys)

    def ended(self):
        """The status of the process, once it is gone; what it wrote last is read then."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return pid and (self.read(), status)

    def abandon(self):
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.terminal)


@pytest.fixture
def piped(gateway):
    made = []

    def make(*arguments):
        made.append(Piped(gateway, *arguments))
        return made[-1]

    yield make
    for one in made:
        one.abandon()


@pytest.fixture
def screen(gateway):
    made = []

    def make(**size):
        made.append(Screen(gateway, **size))
        return made[-1]

    yield make
    for one in made:
        one.abandon()


def test_each_look_is_a_line_of_json(hot, piped):
    watch = piped("--json")
    first, second = eventually(lambda: watch.lines()[:2] if len(watch.lines()) > 1 else None, what="two lines")
    assert first["tokens"][0]["state"] == "fresh" and first["identities"][0]["name"] == "hr" and "error" not in first
    assert second["time"] >= first["time"] and second["uptime_seconds"] > first["uptime_seconds"]
    watch.end()


def test_it_goes_on_when_the_gateway_restarts(hot, piped):
    watch, text = piped("--json"), piped()
    # Who has seen nothing of the first gateway cannot tell the second one from it.
    eventually(lambda: watch.lines() and text.out(), what="a first list of each")
    hot.stop()
    away = eventually(lambda: [line for line in watch.lines() if "error" in line], what="the line of its end")
    assert "no gateway answers at" in away[0]["error"] and "tokens" not in away[0]
    told = "no gateway answers at " + str(hot.folder)
    eventually(lambda: told in watch.errors(), what="the same for a person")
    hot.start()
    last = eventually(lambda: watch.lines()[-1] if "tokens" in watch.lines()[-1] else None, what="a list of the new gateway")
    assert last["uptime_seconds"] < 60
    eventually(lambda: "cardea: the gateway was started anew\n" in watch.errors(), what="the word of the restart")
    # However long it was away, that is one line.
    assert len([line for line in watch.lines() if "error" in line]) == 1 and watch.errors().count(told) == 1
    # The other form, one list behind the other, says the same on standard error.
    eventually(lambda: "started anew" in text.errors(), what="the word of the restart")
    assert text.out().count("IDENTITY  REALM / SCOPE") >= 2 and "no gateway" not in text.out()
    watch.end()
    text.end()


def test_another_gateway_at_the_same_socket_is_told_and_not_shown(hot, piped):
    watch = piped("--json")
    eventually(lambda: watch.lines(), what="a first line")
    hot.stop()
    # Another file with other words, the same folder: what takes the socket is not what was watched.
    mine, hot.file = hot.file, hot.folder / "other.yaml"
    ours, hot.config = hot.config, {**hot.config, "name": "edge-2"}
    hot.start()
    eventually(lambda: any("other.yaml" in line.get("error", "") for line in watch.lines()), what="the other gateway's name")
    assert "tokens" not in watch.lines()[-1]
    hot.stop()
    hot.file, hot.config = mine, ours
    hot.start()
    eventually(lambda: "tokens" in watch.lines()[-1], what="its own gateway again")
    watch.end()


def test_a_terminal_is_left_as_it_was(hot, screen):
    shown = screen()
    shown.shows("IDENTITY  REALM / SCOPE")
    page = shown.page()
    assert page[0].startswith("cardea tokens, every 0.5 s  20") and page[0].endswith("cardea.sock")
    assert page[3].startswith("hr ") and "fresh" in page[3]
    assert shown.written.startswith(ENTERS) and LEAVES not in shown.written
    shown.types(b"\x03")
    written, status = eventually(shown.ended, within=10, what="the end by Ctrl-C")
    assert os.WTERMSIG(status) == signal.SIGINT
    assert written.rstrip(b"^C").endswith(LEAVES) and written.count(LEAVES) == 1


def test_ctrl_c_ends_a_watch_whose_gateway_hangs(hot, screen):
    """The command waits for an answer for up to ten seconds; the person does not."""
    shown = screen()
    shown.shows("fresh")
    os.kill(hot.process.pid, signal.SIGSTOP)
    try:
        # A look that is answered has its socket for a moment; the one that hangs keeps it.
        seen = [shown.sockets()]
        eventually(lambda: seen.append(shown.sockets()) or seen[-1] & seen[-2], every=0.3, what="a look that gets no answer")
        shown.types(b"\x03")
        written, status = eventually(shown.ended, within=5, what="the end by Ctrl-C")
        assert os.WTERMSIG(status) == signal.SIGINT and LEAVES in written
    finally:
        os.kill(hot.process.pid, signal.SIGCONT)


def test_a_terminal_says_that_the_gateway_is_away_and_keeps_the_last_list(hot, screen):
    shown = screen()
    shown.shows("fresh")
    hot.stop()
    shown.shows("no gateway answers at")
    assert any("fresh" in line for line in shown.page()), "the last list stays"
    hot.start()
    shown.shows("the gateway was started anew at")


def test_a_small_terminal_says_what_it_leaves_out(gateway, screen):
    many = {f"id-{number:02}": {"static": {"value": gateway.secret(f"value-{number}", f"fixed-value-{number}")}} for number in range(30)}
    routes = [gateway.route(name, gateway.lab.listen) | {"match": {"path": f"/{name}/"}} for name in many]
    gateway.config = gateway.frame({"identities": many, "routes": routes})
    gateway.start()
    shown = screen(rows=10, columns=60)
    shown.shows("more lines")
    assert len(shown.page()) == 10 and shown.page()[2].startswith("IDENTITY") and shown.page()[-1] == "and 24 more lines"
    # A larger one shows more with its next page.
    shown.resize(50, 200)
    shown.shows("id-29")
    assert not any("more lines" in line for line in shown.page())


def test_a_wrong_interval_is_refused(gateway):
    gateway.webgate()
    gateway.file.write_text(json.dumps(gateway.config))
    for words, said in (
        (["--watch", "--interval", "0"], "interval"),
        (["--watch", "--interval", "0.1"], "interval"),
        (["--watch", "--interval", "3601"], "interval"),
        (["--watch", "--interval", "soon"], "interval"),
        (["--interval", "5"], "--interval goes with --watch"),
    ):
        status, out, errors = gateway.command("tokens", *words)
        assert (status, out) == (64, "") and said in errors, (words, errors)
    # Without a gateway it ends as the list does: whoever mistyped a path is told at once.
    status, _, errors = gateway.command("tokens", "--watch")
    assert status == 69 and "no gateway answers" in errors
