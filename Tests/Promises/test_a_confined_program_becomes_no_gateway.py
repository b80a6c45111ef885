"""Promise: the program of `cardea run --confine` changes nothing by which it would become the gateway or come to its secrets: neither the
configuration nor what `exec:` runs, no other process, and no socket outside. A reload gives it nothing that it did not have."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket

import pytest

from confined import API, SECRETS, Confined
from harness import eventually

GREETING = "hello from afar\n"


@pytest.fixture
def confined(gateway, tmp_path, monkeypatch):
    with contextlib.closing(Confined(gateway, tmp_path, monkeypatch)) as confined:
        yield confined


# --- Processes and sockets outside --------------------------------------------------------------------------------------


PROCESSES = r"""
import os, resource, signal, socket, subprocess, sys

def tried(what, act):
    try:
        act()
        print(what, "DONE")
    except OSError as error:
        print(what, type(error).__name__)

gateway, none = os.getppid(), (0, 0)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "60"])
tried("signal to the gateway", lambda: os.kill(gateway, signal.SIGHUP))
tried("signal to its parent", lambda: os.kill(int(sys.argv[1]), signal.SIGWINCH))
tried("signal by descriptor", lambda: signal.pidfd_send_signal(os.pidfd_open(gateway), signal.SIGHUP))
tried("signal to a child", lambda: child.send_signal(signal.SIGTERM))
child.wait()
for name in ("CORE", "FSIZE", "NOFILE"):
    which = getattr(resource, "RLIMIT_" + name)
    tried(f"{name} of the gateway", lambda: resource.prlimit(gateway, which, resource.getrlimit(which)))
tried("own limit", lambda: resource.setrlimit(resource.RLIMIT_CORE, none))
tried("a pair of streams", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC))
tried("a pair of packets", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
for kind in (socket.SOCK_DGRAM, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, socket.SOCK_RAW):
    tried("a pair of datagrams", lambda: socket.socketpair(socket.AF_UNIX, kind)[0].sendto(b"out", sys.argv[2]))
"""


def test_it_reaches_no_process_and_no_socket_outside(confined):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as outside:
        outside.bind(str(confined.program / "log.sock"))
        outside.setblocking(False)
        said = confined.python(PROCESSES, str(os.getpid()), str(confined.program / "log.sock"))
        with pytest.raises(BlockingIOError):
            outside.recv(100)
    told = [event for event in confined.gateway.events() if event["message"] == "program confined"]
    inside = told[0]["signals"] == "inside"
    assert inside or kernel() < (6, 12), "a kernel that keeps signals inside"
    lines = said.splitlines()
    for line in lines:
        own = line.startswith(("own limit", "a pair of streams", "a pair of packets", "signal to a child"))
        assert line.endswith("DONE") == (own or line.startswith("signal") and not inside), said
    assert len(lines) == 13


def kernel():
    return tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])


# --- The configuration --------------------------------------------------------------------------------------------------


# A configuration that would be refused if it were read.
OTHER = "nonsense: 1\n"


def after_a_reload(confined, shell, **rest):
    """The events, and what the program says, that reload tells of after what the program did."""
    process = confined.begin("sh", "-c", f"{shell}; echo here; until [ -e go ]; do sleep 0.05; done; curl -sS https://{API}/greeting", **rest)
    said = []
    for line in process.stdout:
        if line == "here\n":
            break
        said.append(line)
    process.send_signal(signal.SIGHUP)
    told = confined.gateway.told(lambda event: event["message"].startswith("reload "))
    (confined.program / "go").touch()
    rest = process.stdout.read()
    assert process.wait(30) == 0 and GREETING.strip() in rest.splitlines(), rest
    return told, "".join(said)


def test_a_configuration_that_would_be_found_first_is_not_taken(confined):
    """The gateway was started without --config, and found that of the machine; the program writes one where it works."""
    etc = confined.folder / "etc"
    shutil.copytree("/etc", etc, symlinks=True, ignore=lambda place, names: [name for name in names if not os.access(f"{place}/{name}", os.R_OK)])
    (etc / "cardea").mkdir(exist_ok=True)
    confined.gateway.file = etc / "cardea" / "cardea.yaml"
    wrap = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", 'mount --bind "$0" /etc && exec "$@"', str(etc))
    told, _ = after_a_reload(confined, f"printf '{OTHER}' > cardea.yaml; ls cardea.yaml", wrap=wrap, named=False)
    assert [event["message"] for event in told] == ["reload done"], told


def test_a_link_on_the_way_to_it_is_not_followed_again(confined):
    real = confined.folder / "release"
    real.mkdir()
    (confined.folder / "current").symlink_to(real)
    confined.gateway.file = confined.folder / "current" / "cardea.yaml"
    shell = f"cd ..; mv current old && mkdir current && printf '{OTHER}' > current/cardea.yaml && echo moved; cd program"
    told, said = after_a_reload(confined, shell)
    assert said == "moved\n" and [event["message"] for event in told] == ["reload done"], told


# A user without rights over the files of others, and over the modes of its own, whoever runs the tests.
PLAIN = ("unshare", "--user", "--map-user=1000", "--map-group=1000")


def test_a_folder_above_it_stays_where_it_is(confined):
    """Its owner may change the mode, and then its name."""
    deep = confined.folder / "locked" / "etc" / "cardea"
    deep.mkdir(parents=True)
    confined.gateway.file = deep / "cardea.yaml"
    confined.gateway.file.touch()
    deep.parent.parent.chmod(0o555)
    shell = "cd ..; chmod 755 locked; mv locked/etc locked/old && echo moved; ls locked; cd program"
    told, said = after_a_reload(confined, f"exec 2>&1; {shell}", wrap=PLAIN)
    assert "moved" not in said and "busy" in said and said.endswith("etc\n"), said
    assert [event["message"] for event in told] == ["reload done"], told


def test_a_file_in_the_place_of_the_covered_one_is_not_taken(confined):
    """An editor writes a new file and gives it the name; a program that works beside it sees that one, and may write it."""
    gateway = confined.gateway
    gateway.file = confined.program / "cardea.yaml"
    process = confined.begin("sh", "-c", f"echo here; until [ -e go ]; do sleep 0.05; done; curl -sS https://{API}/greeting")
    assert process.stdout.readline() == "here\n"
    (confined.program / "new").write_text(gateway.file.read_text())
    (confined.program / "new").rename(gateway.file)
    told = gateway.told(lambda event: event["message"].startswith("reload "))
    assert told[0]["message"] == "reload refused" and "put in the place of" in told[0]["reason"] and str(gateway.file) in told[0]["reason"]
    (confined.program / "go").touch()
    assert GREETING.strip() in process.stdout.read().splitlines() and process.wait(30) == 0
    alone = [event["path"] for event in gateway.events() if event["message"] == "file covered alone"]
    assert str(gateway.file) in alone


def refused(confined, *words, **rest):
    """A start that does not come to be, for a reason with the words."""
    assert confined.run("echo", "never", status=78, **rest) == ""
    said = "".join(confined.gateway.lines("stderr"))
    assert all(word in said for word in words), said
    (confined.gateway.folder / f"stderr.{confined.gateway.runs}").unlink()


def test_what_a_changeable_link_leads_to_is_refused(confined):
    """A program that tells a secret, and an included file."""
    tools, link = confined.folder / "tools", confined.folder / "bin"
    tools.mkdir()
    link.symlink_to(tools)
    (tools / "token").write_text(f"#!/bin/sh\necho {SECRETS['API_TOKEN']}\n")
    (tools / "token").chmod(0o755)
    (tools / "more.yaml").write_text("{}\n")
    config = confined.gateway.config
    config["identities"]["api"]["static"]["value"] = f"exec:{link}/token"
    refused(confined, f"goes by the link '{link}'", f"write '{tools}/token'")
    status, said, _ = confined.gateway.command("check", "--confine")
    assert status == 78 and f"goes by the link '{link}'" in said, said
    config["identities"]["api"]["static"]["value"] = f"exec:{tools}/token"
    config["include"] = str(link / "more.yaml")
    refused(confined, f"goes by the link '{link}'", f"write '{tools}/more.yaml'")
    config["include"] = str(tools / "more.yaml")
    assert confined.run("curl", "-sS", f"https://{API}/greeting") == GREETING


def test_a_folder_of_included_files_is_not_the_programs(confined):
    confined.gateway.config["include"] = str(confined.program)
    refused(confined, f"'{confined.program}' is included")


def test_what_it_is_given_as_standard_input_leads_nowhere(confined):
    """A folder is a way below the mounts, and the configuration itself may be read by it."""
    folder = os.open(confined.gateway.folder, os.O_RDONLY)
    try:
        refused(confined, "standard input is a folder", stdin=folder)
    finally:
        os.close(folder)
    real = confined.gateway.file
    real.write_text(json.dumps(confined.gateway.config))
    confined.gateway.file = Given(real)
    with open(real) as file:
        refused(confined, "'/dev/stdin' is standard input", stdin=file)


class Given:
    """A configuration that the gateway is given as its standard input."""

    def __init__(self, file):
        self.file = file

    def write_text(self, text):
        self.file.write_text(text)

    def __str__(self):
        return "/dev/stdin"


# --- Secrets that come later --------------------------------------------------------------------------------------------


def test_a_reload_brings_no_secret_that_it_sees(confined, monkeypatch):
    monkeypatch.setenv("OTHER_TOKEN", "canary-in-another-variable")
    gateway, later = confined.gateway, confined.folder / "later"
    later.mkdir()
    (later / "token").write_text("canary-of-a-reload")
    (later / "token").chmod(0o600)
    gateway.secrets.append("canary-of-a-reload")
    # The sandbox would refuse most of them as well.
    gateway.config["sandbox"] = "off"
    process = confined.begin("sh", "-c", f"echo here; until [ -e go ]; do sleep 0.05; done; curl -sS https://{API}/greeting")
    assert process.stdout.readline() == "here\n"
    api, count = gateway.config["identities"]["api"]["static"], 0
    cases = [
        ("env:OTHER_TOKEN", "variables that the confined program has: OTHER_TOKEN"),
        (f"file:{later}/token", f"places that the confined program sees: {later}"),
        (f"exec:{later}/token", f"places that the confined program sees: {later}/token"),
        (f"file:{confined.folder}/nowhere/token", f"places that the confined program sees: {confined.folder}/nowhere"),
    ]
    for value, word in cases:
        api["value"], count = value, count + 1
        gateway.file.write_text(json.dumps(gateway.config))
        told = eventually(lambda: refusals(gateway)[count - 1 :], what="the refusal")
        assert word in told[0]["reason"], told
    # A variable that nobody has, and a file in a folder that is hidden.
    gateway.secret("another", SECRETS["API_TOKEN"])
    api["value"] = f"file:{gateway.folder}/another"
    gateway.file.write_text(json.dumps(gateway.config))
    gateway.told(lambda event: event["message"] == "reload done")
    (confined.program / "go").touch()
    assert GREETING.strip() in process.stdout.read().splitlines() and process.wait(30) == 0


def refusals(gateway):
    return [event for event in gateway.events() if event["message"] == "reload refused"]


def test_a_secret_that_nothing_would_hide_when_it_comes(confined):
    late = confined.folder / "vault" / "token"
    identity = confined.gateway.config["identities"]["api"]["static"]
    identity["value"] = f"file:{late}"
    refused(confined, f"'{late}' is not there", "folder of its own")
    identity["value"] = f"exec:{late}"
    refused(confined, f"'{late}' is not there")
    # With its folder it may come.
    late.parent.mkdir()
    identity["value"] = f"file:{late}"
    # A secret that could not be read is not looked for at every request.
    shell = f"echo here; until [ -e go ]; do sleep 0.05; done; cat {late} 2>&1; until curl -sS https://{API}/greeting | grep hello; do sleep 0.1; done"
    process = confined.begin("sh", "-c", shell)
    assert process.stdout.readline() == "here\n"
    late.write_text(SECRETS["API_TOKEN"])
    late.chmod(0o600)
    (confined.program / "go").touch()
    said = process.stdout.read()
    assert process.wait(30) == 0 and SECRETS["API_TOKEN"] not in said and GREETING in said, said


@pytest.mark.parametrize("command", ["/bin/cat ../vault/token", "/usr/bin/xargs --arg-file={} echo", "/usr/bin/xargs -a{} echo", "/bin/cat {}"])
def test_what_exec_reads_is_hidden(confined, command):
    """However its arguments name it."""
    file = confined.folder / "vault" / "token"
    file.parent.mkdir()
    file.write_text(SECRETS["API_TOKEN"])
    confined.gateway.config["identities"]["api"]["static"]["value"] = "exec:" + command.format(file)
    said = confined.run("sh", "-c", f"curl -sS https://{API}/greeting; cat ../vault/token; echo done")
    assert said == GREETING + "done\n"


# --- The gateway's life -------------------------------------------------------------------------------------------------


def test_no_child_is_left_with_descriptors_closed(confined):
    """Nobody would end the one that waits for a gateway that has ended."""
    confined.gateway.config["nonsense"] = 1
    marker = f"marker-of-{confined.port}"
    assert confined.run(marker, status=78, preexec_fn=lambda: os.close(0)) == ""
    eventually(lambda: not with_word(marker), what="the child's end")
    (confined.gateway.folder / f"stderr.{confined.gateway.runs}").unlink()


def with_word(word):
    found = []
    for file in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = file.read_bytes().split(b"\0")
            found += [words] if word.encode() in words else []
    return found


def test_the_gateway_is_in_its_sandbox(confined):
    """Its own, outside of which the program is; it removes its folder from inside."""
    folder = confined.folder / "temporary"
    folder.mkdir()
    process = confined.begin("sh", "-c", "trap 'echo told; exit 9' TERM; echo here; while :; do sleep 0.05; done", environment={"TMPDIR": str(folder)})
    assert process.stdout.readline() == "here\n" and len(list(folder.iterdir())) == 1
    process.terminate()
    assert process.wait(30) == 9 and process.stdout.read() == "told\n"
    assert not list(folder.iterdir())
    told = [event["message"] for event in confined.gateway.events()]
    if os.path.exists("/sys/kernel/security/landlock") or kernel() >= (6, 12):
        assert "sandbox entered" in told, told


def test_where_its_folder_cannot_be_made_it_is_named(confined):
    refused(confined, "/nowhere/at/all", "TMPDIR", environment={"TMPDIR": "/nowhere/at/all"})
