"""Upgrades in place as a service manager sees them: the process that serves is another one afterwards, and not a child of ours."""

import contextlib
import ctypes
import json
import os
import pathlib
import signal
import time

from harness import eventually

SUBREAPER = 36


@contextlib.contextmanager
def reaping():
    """Orphans below us become our children: their end and their status can be seen."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    assert prctl(SUBREAPER, 1, 0, 0, 0) == 0
    try:
        yield
    finally:
        prctl(SUBREAPER, 0, 0, 0, 0)


def parent(pid):
    """None for a process that has ended and was waited for."""
    try:
        # The name stands in parentheses and may have some itself.
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


class Heir:
    """A process that an upgrade has started, with the members of `subprocess.Popen` that the harness uses. It becomes our child when
    the process that it took over from has ended."""

    def __init__(self, pid):
        self.pid, self.returncode = pid, None

    def poll(self):
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid == self.pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
            except ChildProcessError:
                # The launcher of the process before it still lives, and has seen its end.
                if not os.path.exists(f"/proc/{self.pid}"):
                    self.returncode = "unseen"
        return self.returncode

    def wait(self, within=20):
        end = time.monotonic() + within
        while self.poll() is None:
            assert time.monotonic() < end, f"process {self.pid} does not end"
            time.sleep(0.01)
        return self.returncode

    def send_signal(self, number):
        if number == signal.SIGTERM:
            # Where the process before it has ended, its launcher does so in a moment; until then our heir's status would be the launcher's.
            with contextlib.suppress(AssertionError):
                eventually(lambda: parent(self.pid) in (os.getpid(), None), within=10)
        os.kill(self.pid, number)

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            self.send_signal(signal.SIGKILL)


def said(gateway, message):
    # A process that cannot start says so to a person.
    events = [json.loads(line) for line in gateway.lines("stderr") if line.startswith("{") and line.endswith("}")]
    return [event for event in events if event["message"] == message]


def told(gateway, message, before):
    """The events of this message since there were `before` of them, when there is one."""
    return eventually(lambda: said(gateway, message)[before:], within=30, what=f"'{message}' in:\n{gateway.text()[-3000:]}")


def upgrade(gateway):
    """Has the gateway upgraded and speaks with its heir from now on. Returns the old process, which drains."""
    before, old = len(said(gateway, "upgrade done")), gateway.process
    old.send_signal(signal.SIGUSR2)
    gateway.process = Heir(told(gateway, "upgrade done", before)[0]["process"])
    gateway.baseline = gateway.descriptors() + 8
    return old


def failed(gateway):
    """Tries an upgrade that must fail. Returns why it did."""
    before = len(said(gateway, "upgrade failed"))
    gateway.process.send_signal(signal.SIGUSR2)
    return told(gateway, "upgrade failed", before)[0]["reason"]
