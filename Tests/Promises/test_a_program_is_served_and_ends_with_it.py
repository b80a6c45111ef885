"""Promise: `cardea run -- COMMAND` starts the program when its gateway is ready, and the two end together, with the program's status."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

ASK = """
import http.client, os, signal, sys, time
ended = []
# At once, whatever the buffering: the access log is written to the same pipe.
say = lambda line: os.write(1, f"{line}\\n".encode())
signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
signal.signal(signal.SIGUSR1, lambda *_: say("usr1"))
connection = http.client.HTTPConnection(*sys.argv[1].split(":"))
def ask():
    connection.request("GET", "/hr/rest/employees/1")
    answer = connection.getresponse()
    answer.read()
    return answer.status
say(f"first {ask()}")
if len(sys.argv) > 2:
    sys.exit(int(sys.argv[2]))
while not ended:
    time.sleep(0.02)
say(f"last {ask()}")
sys.exit(7)
"""


@pytest.fixture
def program(gateway):
    gateway.webgate()
    gateway.file.write_text(json.dumps(gateway.config))
    started = []

    def start(*command, wrap=()):
        started.append(
            subprocess.Popen(
                [*wrap, gateway.binary, "run", "--config", str(gateway.file), "--", *command],
                stdout=subprocess.PIPE,
                stderr=open(gateway.folder / "stderr.1", "wb"),
                text=True,
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def lines(process):
    """What the program says, without the access log beside it."""
    return [line for line in process.stdout.read().splitlines() if not line.startswith("{")]


def test_it_begins_when_ready_and_its_status_is_ours(gateway, program):
    process = program(sys.executable, "-c", ASK, gateway.listen, "3")
    assert process.wait(30) == 3
    assert lines(process) == ["first 200"]


def test_a_signal_ends_the_program_first_and_the_gateway_serves_it_to_the_end(gateway, program):
    process = program(sys.executable, "-c", ASK, gateway.listen)
    assert process.stdout.readline().strip() == "first 200" or process.stdout.readline().strip() == "first 200"
    process.send_signal(signal.SIGUSR1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 7
    assert "usr1" in (said := lines(process)) and said[-1] == "last 200", said


def test_a_program_that_stays_is_killed_in_time(gateway, program):
    gateway.config["shutdown"] = {"linger": "0s", "timeout": "1s"}
    gateway.file.write_text(json.dumps(gateway.config))
    process = program("sh", "-c", "trap '' TERM; echo here; while :; do sleep 0.1; done")
    assert process.stdout.readline().strip() == "here"
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.wait(20)
    assert 0.5 < time.monotonic() - began < 10


def test_a_program_that_is_not_there_is_told_apart(gateway, program):
    assert program("/nowhere/at-all").wait(30) == 127
    assert any(event.get("message") == "program cannot be started" for event in gateway.events())


def test_as_the_first_process_it_reaps_what_others_leave(gateway, program):
    orphans = "for i in 1 2 3 4 5; do (sleep 0.2 &) ; done; sleep 1; ps -eo stat= | grep -c Z; exit 4"
    # Whoever is not root is in a namespace of its own.
    user = () if os.geteuid() == 0 else ("--map-root-user",)
    process = program(
        "sh", "-c", orphans, wrap=("unshare", *user, "--pid", "--fork", "--kill-child", "--mount-proc")
    )
    assert process.wait(30) == 4
    assert lines(process)[-1] == "0"


def test_the_program_has_none_of_our_secrets(gateway, program, monkeypatch):
    """What the configuration names as a secret, and the configuration itself, stay with the gateway."""
    monkeypatch.setenv("HR_PASSWORD", gateway.lab.password)
    monkeypatch.setenv("ROUTE_TOKEN", "a-token-of-callers-0123456789")
    monkeypatch.setenv("CARDEA_CONFIG_YAML", "{}")
    monkeypatch.setenv("APP_MODE", "test")
    gateway.config["identities"]["hr"]["oam_webgate"]["password"] = "env:HR_PASSWORD"
    gateway.config["routes"].append(gateway.route("none", gateway.lab.plain) | {"name": "more", "callers": {"token": "env:ROUTE_TOKEN"}})
    gateway.file.write_text(json.dumps(gateway.config))
    process = program("env")
    assert process.wait(30) == 0
    names = {line.split("=")[0] for line in lines(process)}
    assert {"APP_MODE", "PATH"} <= names, names
    assert not names & {"HR_PASSWORD", "ROUTE_TOKEN", "CARDEA_CONFIG_YAML"}, names
