"""Promise: a line in systemd's journal has the priority of its event, so that `journalctl -p warning` shows what is wrong; elsewhere a line
is the same without one."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from harness import eventually, executable

PRIORITIES = {"debug": "7", "info": "6", "warn": "4", "error": "3"}

# What systemd does for a service before it starts it (systemd's connect_logger_as): a socket of the journal as standard output and error,
# on which the first lines say whose it is, and that lines may begin with a priority.
INTO_THE_JOURNAL = """
import os, socket, sys
to = socket.socket(socket.AF_UNIX)
to.connect(sys.argv[1])
to.sendall(b"cardea\\ncardea.service\\n6\\n1\\n0\\n0\\n0\\n")
facts = os.fstat(to.fileno())
os.environ["JOURNAL_STREAM"] = f"{facts.st_dev}:{facts.st_ino}"
os.dup2(to.fileno(), 1)
os.dup2(to.fileno(), 2)
os.execv(sys.argv[2], sys.argv[2:])
"""


class Journal:
    """A journal of its own, in a folder that nobody else sees: systemd-journald with a namespace's name, and not the machine's."""

    def __init__(self):
        daemon = executable("CARDEA_JOURNALD", "/lib/systemd/systemd-journald", "apt-get install systemd")
        user = [] if os.geteuid() == 0 else ["--map-root-user"]
        folders = "mount -t tmpfs run /run && mount -t tmpfs log /var/log && mkdir /run/systemd && exec " + str(daemon) + " cardea"
        self.process = subprocess.Popen(["unshare", *user, "--mount", "sh", "-c", folders], stderr=subprocess.DEVNULL)
        self.root = pathlib.Path(f"/proc/{self.process.pid}/root")
        self.stream = self.root / "run/systemd/journal.cardea/stdout"
        eventually(self.stream.exists, what="the journal's socket")

    def entries(self, *options):
        """Those of the gateway, as journalctl gives them."""
        folders = list(self.root.glob("var/log/journal/*")) + list(self.root.glob("run/log/journal/*"))
        found = []
        for folder in folders:
            run = subprocess.run(
                ["journalctl", "--directory", folder, "--output", "json", "--no-pager", *options, "SYSLOG_IDENTIFIER=cardea"],
                capture_output=True, text=True, check=False,
            )
            found += [json.loads(line) for line in run.stdout.splitlines()]
        return found

    def end(self):
        self.process.terminate()
        self.process.wait(20)


@pytest.fixture
def journal():
    made = Journal()
    yield made
    made.end()


def into(journal, gateway):
    gateway.wrapper = [sys.executable, "-c", INTO_THE_JOURNAL, str(journal.stream)]
    return gateway


def messages(entries):
    return [json.loads(entry["MESSAGE"]) for entry in entries]


def test_each_event_has_its_priority(gateway, journal):
    into(journal, gateway.oauth(changes={"log": {"access": "all", "level": "debug"}})).start()
    assert gateway.get("/api/employees/1").status == 200
    gateway.lab.faults(issuer_status=500)
    gateway.command("tokens", "purge", "--all")
    assert gateway.get("/api/employees/1").status == 503
    gateway.file.write_text("routes: 7")

    def told():
        entries = journal.entries()
        levels = {message.get("level", "access") for message in messages(entries)}
        return levels >= {"info", "warn", "error", "access"} and entries

    for entry in eventually(told, what="lines of every level in the journal"):
        message = json.loads(entry["MESSAGE"])
        assert entry["PRIORITY"] == PRIORITIES[message.get("level", "info")], entry
    # As an operator asks for them; the JSON is whole.
    shown = messages(journal.entries("--priority", "warning"))
    assert {message["level"] for message in shown} == {"warn", "error"}
    assert any(message["message"] == "reload refused" for message in shown)


def test_text_has_it_too(gateway, journal):
    into(journal, gateway.oauth(changes={"log": {"format": "text"}})).start()
    gateway.file.write_text("routes: 7")
    refused = eventually(lambda: [e for e in journal.entries() if "reload refused" in e["MESSAGE"]], what="the refusal")
    assert refused[0]["PRIORITY"] == "3" and refused[0]["MESSAGE"].startswith("20"), refused


def test_why_it_does_not_start_is_an_error(gateway, journal):
    gateway.file.write_text("routes: 7\nstore: 8\n")
    command = [sys.executable, "-c", INTO_THE_JOURNAL, str(journal.stream), str(gateway.binary), "run", "--config", str(gateway.file)]
    assert subprocess.run(command, check=False, timeout=60).returncode == 78
    entries = eventually(lambda: [e for e in journal.entries() if e["MESSAGE"].endswith("errors")] and journal.entries(), what="the mistakes")
    assert len(entries) >= 3 and {entry["PRIORITY"] for entry in entries} == {"3"}, entries
    assert not [entry for entry in entries if entry["MESSAGE"].startswith("<")]


@pytest.mark.parametrize("which", ["none", "stderr"])
def test_elsewhere_a_line_has_none(gateway, which):
    """A variable that was inherited says nothing of an output that leads elsewhere; each of the two is looked at."""
    gateway.oauth(changes={"log": {"access": "all"}})
    variable = "os.fstat(2)" if which == "stderr" else "os.stat('/')"
    code = (
        f"import os, sys; facts = {variable}; os.environ['JOURNAL_STREAM'] = f'{{facts.st_dev}}:{{facts.st_ino}}'; "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    gateway.wrapper = [sys.executable, "-c", code]
    gateway.start()
    assert gateway.get("/api/employees/1").status == 200
    lines = eventually(lambda: gateway.lines("stdout"), what="the access record")
    assert all(line.startswith("{") for line in lines), lines
    begins = {line.split("{")[0] for line in gateway.lines("stderr")}
    assert begins == ({"<6>"} if which == "stderr" else {""}), begins
