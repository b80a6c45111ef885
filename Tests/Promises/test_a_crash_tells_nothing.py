"""Promise: a crash ends the process at once and prints nothing of its memory, also where the runtime has its helper for backtraces."""

import os
import pathlib
import shutil
import signal

import pytest

# Those by which the kernel, a trap of the program or a library ends it.
CRASHES = [signal.SIGSEGV, signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE]


def helper():
    """The toolchain's own, which the tests were built with."""
    swift = pathlib.Path(shutil.which("swiftc") or "/").resolve()
    found = sorted(swift.parent.parent.glob("**/swift-backtrace"))
    assert found, f"the toolchain of {swift} has no swift-backtrace"
    return found[0]


@pytest.mark.parametrize("number", CRASHES, ids=lambda number: number.name)
def test_it_ends_at_once(gateway, monkeypatch, number):
    monkeypatch.setenv("SWIFT_BACKTRACE", f"enable=yes,swift-backtrace={helper()}")
    gateway.oauth(changes={"sandbox": "off"}).start()
    assert gateway.get("/api/employees/1").status == 200
    gateway.may_exit = True
    os.kill(gateway.process.pid, number)
    assert gateway.process.wait(20) == -number
    said = gateway.text()
    assert "Thread 0" not in said and "Backtrace" not in said, said[-2000:]
