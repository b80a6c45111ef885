"""Promise: under systemd the gateway takes its sockets by activation and says when it is ready, reloads, ends and still lives."""

import json
import os
import signal
import socket
import struct
import subprocess

import pytest

from harness import call, eventually, free_port
from load import Load
from upgrades import upgrade

# What systemd does between fork and exec: sockets from 3 on, and the process's own number.
ACTIVATE = """
import os, sys
count = int(sys.argv[1])
os.environ["LISTEN_PID"] = str(os.getpid())
if "WATCHDOG_USEC" in os.environ:
    os.environ["WATCHDOG_PID"] = str(os.getpid())
os.environ["LISTEN_FDS"] = str(count)
os.environ["LISTEN_FDNAMES"] = ":".join(["cardea"] * count)
os.execv(sys.argv[2], sys.argv[2:])
"""


class Manager:
    """The service manager's end of the notification socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.socket.settimeout(20)
        self.said = []

        # As `NotifyAccess=main`: from others than the main process nothing is taken; None until somebody says who it is.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.main = None

    def until(self, name):
        while True:
            data, control, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(12))
            sender = struct.unpack("iii", control[0][2])[0]
            message = dict(line.split("=", 1) for line in data.decode().splitlines())
            if self.main not in (None, sender):
                continue
            self.main = int(message.get("MAINPID", sender))
            self.said.append(message)
            if name in message:
                return message


@pytest.fixture
def systemd(gateway):
    gateway.webgate()
    gateway.file.write_text(json.dumps(gateway.config))
    started = []

    def start(sockets=(), notify=None, **environment):
        import sys

        def hand_over():
            # Behind all of them first: a target may be another one's source.
            copies = [os.dup2(listening.fileno(), 100 + index) for index, listening in enumerate(sockets)]
            for index, copy in enumerate(copies):
                os.dup2(copy, 3 + index)

        path = notify or str(gateway.folder / "notify")
        manager = Manager(path if not path.startswith("@") else "\0" + path[1:])
        gateway.runs = 1
        gateway.output = [open(gateway.folder / f"{name}.1", "wb") for name in ("stdout", "stderr")]
        gateway.process = subprocess.Popen(
            [sys.executable, "-c", ACTIVATE, str(len(sockets)), gateway.binary, "run", "--config", str(gateway.file)],
            stdout=gateway.output[0],
            stderr=gateway.output[1],
            env={**os.environ, "NOTIFY_SOCKET": path, **environment},
            preexec_fn=hand_over,
            close_fds=False,
        )
        started.append(manager)
        return manager

    yield start
    gateway.baseline = 200
    for manager in started:
        manager.socket.close()


def test_readiness_reloads_and_the_end_are_told(gateway, systemd):
    manager = systemd()
    ready = manager.until("READY")
    assert ready["MAINPID"] == str(gateway.process.pid) and gateway.listen in ready["STATUS"]
    assert call(gateway.listen, path="/hr/rest/employees/1").status == 200
    gateway.process.send_signal(signal.SIGHUP)
    assert int(manager.until("RELOADING")["MONOTONIC_USEC"]) > 0
    manager.until("READY")
    gateway.may_exit = True
    gateway.process.send_signal(signal.SIGTERM)
    manager.until("STOPPING")
    assert gateway.process.wait(20) == 0


def test_what_is_waited_for_is_told(gateway, systemd):
    gateway.oauth({"token_url": f"http://127.0.0.1:{free_port()}/token"}, token={"startup": "required"})
    gateway.file.write_text(json.dumps(gateway.config))
    manager = systemd()
    while "no token yet" not in (said := manager.until("STATUS"))["STATUS"]:
        assert "READY" not in said
    assert said == {"STATUS": "not ready: identity api has no token yet"}


def test_what_only_an_operator_can_mend_is_no_reason_to_be_killed(gateway, systemd):
    """systemd ends what does not say that it has started; other routes would go down with it, and `/readyz`, which names the reason."""
    gateway.start().warm()
    gateway.stop()
    (gateway.folder / "store-key").write_text("YW5vdGhlci1rZXktb2YtMzItb2N0ZXRzLWhlcmUhISE=")
    manager = systemd()
    ready = manager.until("READY")
    assert ready["STATUS"].endswith("; not ready: identity hr: the store cannot be read"), ready
    assert gateway.listen in ready["STATUS"] and gateway.ask("/readyz").status == 503
    gateway.process.send_signal(signal.SIGHUP)
    manager.until("RELOADING")
    assert "not ready" in manager.until("READY")["STATUS"]


def test_signs_of_life_come_in_half_the_time(gateway, systemd):
    manager = systemd(notify="@cardea-promise-" + str(os.getpid()), WATCHDOG_USEC="400000")
    for _ in range(3):
        manager.until("WATCHDOG")


def test_sockets_are_taken_by_address_and_outlive_the_process(gateway, systemd):
    """What connects before the gateway runs waits, and is served; nobody is refused."""
    host, port = gateway.listen.split(":")
    other = socket.create_server(("127.0.0.1", 0))
    with socket.create_server((host, int(port))) as listening, other:
        early = socket.create_connection((host, int(port)), timeout=20)
        early.sendall(f"GET /hr/rest/employees/1 HTTP/1.1\r\nHost: {gateway.listen}\r\n\r\n".encode())
        manager = systemd(sockets=[other, listening])
        manager.until("READY")
        assert early.recv(65536).startswith(b"HTTP/1.1 200"), gateway.text()
        early.close()
        with Load(gateway.listen, "/hr/rest/employees/1", kept=2, fresh=2) as load:
            eventually(lambda: load.done > 100, what="the load running")
        assert load.failures == []
        gateway.told(lambda event: "inherited socket" in event["message"])


def test_a_unix_socket_may_be_inherited_too(gateway, systemd):
    path = str(gateway.folder / "callers.sock")
    gateway.config["routes"][0]["listen"] = f"unix:{path}"
    gateway.file.write_text(json.dumps(gateway.config))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        systemd(sockets=[listening]).until("READY")
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(20)
            caller.connect(path)
            caller.sendall(b"GET /hr/rest/employees/1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert caller.recv(65536).startswith(b"HTTP/1.1 200")


def test_an_upgrade_names_the_next_main_process(orphans, gateway, systemd):
    """Sockets by activation go on, readiness and signs of life come from the process that serves, and the end of the old one is no
    end of the service."""
    host, port = gateway.listen.split(":")
    with socket.create_server((host, int(port))) as listening:
        manager = systemd(sockets=[listening], WATCHDOG_USEC="400000")
        manager.until("READY")
        for _ in range(2):
            with Load(gateway.listen, "/hr/rest/employees/1", kept=1, fresh=1) as load:
                eventually(lambda: load.done > 20, what="the load running")
                old = upgrade(gateway)
                mark = load.done + 20
                eventually(lambda: load.done > mark, what="the load going on")
            assert load.failures == []
            while manager.main == old.pid:
                assert "STOPPING" not in manager.until("MAINPID")
            assert manager.main == gateway.process.pid
            assert old.wait(20) in (0, "unseen")
            for _ in range(2):
                manager.until("WATCHDOG")
        assert not any("STOPPING" in message for message in manager.said)
        gateway.may_exit = True
        gateway.process.send_signal(signal.SIGTERM)
        manager.until("STOPPING")
        assert gateway.process.wait(20) == 0
