"""Promise: when the new process of an upgrade does not come up, the old one goes on as before, grants included, and says why."""

import json
import os
import pathlib
import signal
import socket
import subprocess

import pytest

from harness import address, call, eventually, free_port
from load import Load
from upgrades import Heir, failed, said, told, upgrade

PATH = "/api/employees/1"


pytestmark = pytest.mark.usefixtures("orphans")


@pytest.fixture
def program(gateway):
    """The gateway runs by a link in its folder; `program(path)` lets it lead elsewhere, as a release does."""
    link = gateway.folder / "cardea"
    real, gateway.binary = gateway.binary, str(link)

    def lead(target=real):
        fresh = gateway.folder / "cardea.new"
        fresh.symlink_to(target)
        os.replace(fresh, link)

    lead()
    return lead


def script(gateway, text):
    path = gateway.folder / "script"
    path.write_text(text)
    path.chmod(0o755)
    return path


def goes_on(gateway):
    """The token is revoked: the old process has to grant, and may write to the store."""
    gateway.lab.reset()
    assert gateway.get(PATH).status == 200, gateway.text()
    assert gateway.lab.counts()["token"] == 1
    assert gateway.ask("/readyz").status == 200
    status, told, errors = gateway.command("store", "verify")
    assert status == 0, told + errors


BAD = {
    "no program": (None, "No such file or directory"),
    "no executable": ("not a program\n", "Exec format error"),
    "it ends at once": ("#!/bin/sh\nexit 7\n", "the new process ended with 7"),
    "it is killed": ("#!/bin/sh\nkill -9 $$\n", "the new process ended with 137"),
    "it never speaks": ("#!/bin/sh\nexec sleep 1000\n", "not ready in time"),
}


@pytest.mark.parametrize("sandbox", ["on", "off"])
@pytest.mark.parametrize("kind", BAD)
def test_a_bad_program(gateway, program, kind, sandbox):
    text, reason = BAD[kind]
    takeover = "1s" if kind == "it never speaks" else "60s"
    gateway.oauth(changes={"shutdown": {"takeover": takeover}, "sandbox": sandbox}).start().warm(PATH)
    program(script(gateway, text) if text else gateway.folder / "nothing")
    with Load(gateway.listen, PATH, kept=1, fresh=1) as load:
        assert reason in failed(gateway)
        end = load.done + 20
        eventually(lambda: load.done > end, what="the load going on")
    assert load.failures == [], load.failures[:5]
    program()
    goes_on(gateway)
    upgrade(gateway)
    assert gateway.get(PATH).status == 200


def test_a_bad_configuration(gateway):
    gateway.oauth().start().warm(PATH)
    good = gateway.file.read_text()
    gateway.file.write_text(good.replace('"routes"', '"rutes"'))
    with Load(gateway.listen, PATH, kept=1, fresh=1) as load:
        assert f"{gateway.file}:" in (reason := failed(gateway)) and "unknown key 'rutes'" in reason, reason
    assert load.failures == [], load.failures[:5]
    gateway.file.write_text(good)
    goes_on(gateway)


def test_an_address_that_is_taken(gateway):
    gateway.oauth().start().warm(PATH)
    other = gateway.listen.replace("127.0.0.1", "127.0.0.3")
    route = dict(gateway.config["routes"][0], name="other", listen=other)
    with socket.create_server(address(other)):
        gateway.config["routes"].append(route)
        gateway.file.write_text(json.dumps(gateway.config))
        assert "another process listens there" in failed(gateway)
    gateway.config["routes"].pop()
    gateway.file.write_text(json.dumps(gateway.config))
    goes_on(gateway)


@pytest.mark.parametrize("sandbox", ["on", "off"])
def test_one_that_had_the_store_already(gateway, sandbox):
    """It waits for a token that it cannot get; hot tokens are served meanwhile, misses are told to come again, and after it the old
    process has its store back."""
    cold = {"name": "cold", "listen": f"127.0.0.1:{free_port()}", "use": "cold"}
    gateway.oauth(token={"startup": "required", "persist": False}, changes={"sandbox": sandbox})
    block = gateway.config["identities"]["api"]["oauth2"]
    gateway.config["identities"]["cold"] = {"oauth2": {**block, "extra": {"other": "1"}}}
    gateway.config["routes"].append({**gateway.config["routes"][0], **cold})
    gateway.config["shutdown"]["takeover"] = "2s"
    gateway.start().warm(PATH)
    gateway.lab.post("/issuer/stop")
    before = len(said(gateway, "upgrade failed"))
    with Load(gateway.listen, PATH, kept=1, fresh=1) as load:
        gateway.process.send_signal(signal.SIGUSR2)

        def is_refused():
            answer = call(cold["listen"], path=PATH)
            return answer if answer.problem["type"].endswith("/upgrading") else None

        answer = eventually(is_refused, what="a miss while the store is away")
        assert (answer.status, answer.field("Retry-After")) == (503, "1"), answer
        # A second one is not begun, and a reload waits.
        gateway.process.send_signal(signal.SIGUSR2)
        assert "under way" in told(gateway, "upgrade refused", 0)[0]["reason"]
        gateway.process.send_signal(signal.SIGHUP)
        assert "not ready in time" in told(gateway, "upgrade failed", before)[0]["reason"]
        eventually(lambda: said(gateway, "reload done"), what="the reload that waited")
    assert load.failures == [], load.failures[:5]
    gateway.lab.post("/issuer/start")
    # No backoff is left over from being told to come again, but the breaker of an issuer that was down may be.
    eventually(lambda: call(cold["listen"], path=PATH).status == 200, within=20, what="the miss granted")
    gateway.lab.reset()
    assert gateway.get(PATH).status == 200


def test_the_old_process_dies_in_the_middle(gateway):
    """The new one has the sockets and the store, and waits for a word that does not come: it serves."""
    gateway.oauth(token={"startup": "required", "persist": False}).start().warm(PATH)
    gateway.lab.post("/issuer/stop")
    opened, old = len(said(gateway, "store opened")), gateway.process
    old.send_signal(signal.SIGUSR2)
    told(gateway, "store opened", opened)
    new = [pid for pid in os.listdir("/proc") if pid.isdigit() and pid != str(old.pid) and serves(pid, gateway)]
    assert len(new) == 1, new
    old.kill()
    old.wait()
    gateway.process = Heir(int(new[0]))
    gateway.lab.post("/issuer/start")
    eventually(gateway.is_ready, within=20, what="the new process ready")
    assert gateway.get(PATH).status == 200
    gateway.baseline = gateway.descriptors() + 8


def serves(pid, gateway):
    name = pathlib.Path(f"/proc/{pid}/comm")
    return str(gateway.file).encode() in _line(pid) and name.read_text().strip() != "cardea-launcher"


def test_the_launcher_may_be_killed(gateway):
    gateway.oauth().start().warm(PATH)
    children = pathlib.Path(f"/proc/{gateway.process.pid}/task/{gateway.process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
    assert "launcher" in failed(gateway)
    goes_on(gateway)


def test_a_stop_in_the_middle(gateway, program):
    """The new process does not come up behind one that was told to end."""
    gateway.oauth().start().warm(PATH)
    marker = gateway.folder / "began"
    program(script(gateway, f"#!/bin/sh\ntouch {marker}\nexec sleep 1000\n"))
    gateway.process.send_signal(signal.SIGUSR2)
    eventually(marker.exists, what="the new process")
    children = lambda: [
        pid for pid in os.listdir("/proc") if pid.isdigit() and b"sleep\x001000" in _line(pid) and _ours(pid, gateway)
    ]
    eventually(children, what="the new process asleep")
    assert gateway.stop() == 0
    eventually(lambda: not children(), what="its end")


def _line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _ours(pid, gateway):
    try:
        return os.readlink(f"/proc/{pid}/cwd") == str(gateway.folder)
    except OSError:
        return False


def test_what_cannot_be_upgraded_says_so(gateway):
    """A program behind `--` belongs to its gateway."""
    gateway.oauth()
    gateway.file.write_text(json.dumps(gateway.config))
    gateway.runs, gateway.may_exit = 1, True
    gateway.output = [open(gateway.folder / f"{name}.1", "wb") for name in ("stdout", "stderr")]
    gateway.process = subprocess.Popen(
        [gateway.binary, "run", "--config", str(gateway.file), "--", "sleep", "1000"],
        stdout=gateway.output[0], stderr=gateway.output[1], cwd=gateway.folder,
    )
    eventually(lambda: said(gateway, "program started"), what="the program")
    gateway.process.send_signal(signal.SIGUSR2)
    assert "program behind --" in told(gateway, "upgrade refused", 0)[0]["reason"]
    gateway.stop()


def test_the_first_process_of_a_container_says_so(gateway):
    """In a process namespace of its own, where it is the first one."""
    gateway.wrapper = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    gateway.oauth().start().warm(PATH)
    outer = gateway.process.pid
    inner = int(pathlib.Path(f"/proc/{outer}/task/{outer}/children").read_text().split()[0])
    os.kill(inner, signal.SIGUSR2)
    assert "container" in told(gateway, "upgrade refused", 0)[0]["reason"]
    assert gateway.get(PATH).status == 200
    os.kill(inner, signal.SIGTERM)
    gateway.may_exit = True
    gateway.process.wait(20)
