"""Promise: a person logs in once, at a terminal, with a code or a browser; from then on the gateway goes on without one. Against
glewlwyd, a server that nobody here wrote."""

import contextlib
import json
import pathlib
import re
import signal
import subprocess
import time
import urllib.parse
import urllib.request

import pytest
import requests

import documentation
from glewlwyd import Glewlwyd
from harness import call, eventually, executable, free_port
from peers import resource_server
from persons import Lines, Person, Terminal, picture

SECRET = "s3cret+:/x"
SCOPES = "openid orders.read"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with contextlib.closing(Glewlwyd(tmp_path_factory.mktemp("glewlwyd"))) as running:
        running.port_of_callback = free_port()
        running.client("tv", SECRET, redirect_uri=[f"http://127.0.0.1:{running.port_of_callback}/cb"])
        yield running


@pytest.fixture(scope="module")
def person(server):
    return Person(server, "tv", SCOPES)


@pytest.fixture(scope="module")
def api(server):
    with resource_server(server.issuer) as origin:
        yield origin


@pytest.fixture
def configured(gateway, server, api):
    def make(grant, changes=None, **more):
        block = {
            "issuer": server.issuer,
            "grant": grant,
            "client_id": "tv",
            "client_secret": gateway.secret("client-secret", SECRET),
            "basic_encoding": "raw",
        }
        if grant == "authorization_code":
            block["redirect_uri"] = f"http://127.0.0.1:{server.port_of_callback}/cb"
        route = {**gateway.route("tv", api), "scopes": ["orders.read"]}
        identity = {"oauth2": {**block, **more}, "scopes": ["openid"]}
        gateway.config = gateway.frame({"identities": {"tv": identity}, "routes": [route], **(changes or {})})
        gateway.file.write_text(json.dumps(gateway.config))
        return gateway

    return make


def state(gateway):
    return call(gateway.admin, path="/readyz").json["identities"]["tv"]


def is_needed(gateway):
    answer = gateway.get("/")
    assert (answer.status, answer.problem["type"]) == (503, "urn:cardea:problems/login-required"), answer
    return True


def is_served(gateway):
    answer = gateway.get("/")
    assert answer.status == 200, f"{answer}\n{gateway.text()}"
    assert "orders.read" in answer.json["scope"]


# Parts of docs/how-to/login.md that differ each time: the reader's addresses, a code, a time.
CHANGING = r"https?://\S+|(?<=route )[\d.:]+|\b[A-Z0-9]{4}-[A-Z0-9]{4}\b|\d+ m \d+ s"


def assert_told(word, said):
    """What the page shows is said, line by line in this order."""
    at = 0
    for line in documentation.told("docs/how-to/login.md", word):
        pattern = ".+?".join(re.escape(part) for part in re.split(f"…|{CHANGING}", line))
        found = re.compile(pattern).search(said, at)
        assert found, f"{line!r} is not in {said[at:]!r}"
        at = found.end()


@pytest.mark.parametrize("terminal", [{"TERM": "xterm-256color"}, {"TERM": "xterm-256color", "NO_COLOR": "1"}])
def test_with_a_code_on_another_device(configured, person, terminal):
    gateway = configured("device_code")
    assert_told("good  identity", gateway.command("check", "--live")[1])
    gateway.start()
    assert state(gateway) == "login_needed"
    assert is_needed(gateway)
    terminal = Terminal(gateway, "tv", environment=terminal)
    page = terminal.until(r"(http://\S+/device)\s").group(1)
    code = terminal.until(r"enter the code\s+(\S+)\s").group(1)
    terminal.until(r"waiting.* left")
    reader = executable("CARDEA_ZBARIMG", "zbarimg", "apt-get install zbar-tools")
    image = gateway.folder / "code.pgm"
    image.write_bytes(picture(terminal.child.before))
    read = subprocess.run([reader, "-q", "--raw", image], capture_output=True, timeout=20).stdout.decode().strip()
    assert read == f"{page}?code={code}"
    person.enter(page, code)
    assert "tv: logged in" in terminal.ends()
    assert_told("To log in for", terminal.seen)
    is_served(gateway)
    assert state(gateway) == "fresh"
    # Nobody has to come again.
    gateway.kill()
    gateway.start()
    is_served(gateway)


def test_with_a_browser_on_this_machine(configured, person, server):
    gateway = configured("authorization_code").start()
    lines = Lines(gateway, "tv", "--no-browser")
    prompt = lines.next()["prompt"]
    asked = dict(urllib.parse.parse_qsl(prompt["url"].partition("?")[2]))
    assert asked["code_challenge_method"] == "S256" and len(asked["code_challenge"]) == 43
    assert asked["scope"] == SCOPES and len(asked["nonce"]) >= 22 and len(asked["state"]) >= 22
    back = person.allow(prompt["url"])
    answer = requests.get(back, timeout=10)
    assert answer.status_code == 200 and "the answer has arrived" in answer.text
    rest, _ = lines.ends()
    assert json.loads(rest)["state"] == "done"
    is_served(gateway)


def test_the_browser_is_opened(configured, person, server):
    gateway = configured("authorization_code").start()
    opened = gateway.folder / "opened"
    browser = gateway.folder / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$1" >{opened}.part && env >{opened}.env && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    terminal = Terminal(gateway, "tv", environment={"BROWSER": str(browser), "A_SECRET": "not for browsers"})
    eventually(opened.exists, what="the browser")
    back = person.allow(opened.read_text().strip())
    assert requests.get(back, timeout=10).status_code == 200
    assert "tv: logged in" in terminal.ends()
    assert "not for browsers" not in (gateway.folder / "opened.env").read_text()
    is_served(gateway)


def test_with_a_browser_elsewhere(configured, person):
    gateway = configured("authorization_code").start()
    terminal = Terminal(gateway, "tv", "--paste")
    url = terminal.until(r"(http://\S+/auth\?\S+)\s").group(1)
    terminal.until("Paste that address here")
    terminal.child.sendline("http://127.0.0.1/cb?code=x&state=guessed")
    terminal.until("belongs to no login")
    terminal.child.sendline(person.allow(url))
    assert "tv: logged in" in terminal.ends()
    is_served(gateway)


def test_with_a_file_that_was_spoilt_meanwhile(configured, person):
    """Only the gateway knows then where the browser comes back, and the person brings the address."""
    gateway = configured("authorization_code").start()
    gateway.file.write_text("{")
    terminal = Terminal(gateway, "tv")
    terminal.until("the configuration is not good")
    url = terminal.until(r"(http://\S+/auth\?\S+)\s").group(1)
    terminal.until("Paste that address here")
    terminal.child.sendline(person.allow(url))
    assert "tv: logged in" in terminal.ends()
    is_served(gateway)
    status, out, errors = gateway.command("logout", "tv")
    assert status == 0, errors
    assert_told("logged out", out)
    assert is_needed(gateway)


def test_a_code_with_a_file_that_was_deleted_meanwhile(configured, person):
    gateway = configured("device_code").start()
    gateway.file.unlink()
    lines = Lines(gateway, "tv")
    prompt = lines.next()["prompt"]
    person.enter(prompt["url"], prompt["code"])
    lines.ends()
    is_served(gateway)


def test_without_a_gateway(configured, person):
    """The store is opened by the command itself, and what it keeps serves the gateway that starts later."""
    gateway = configured("device_code")
    lines = Lines(gateway, "tv")
    prompt = lines.next()["prompt"]
    person.enter(prompt["url"], prompt["code"])
    lines.ends()
    gateway.start()
    is_served(gateway)


def test_a_logout_forgets_everywhere(configured, person, server):
    gateway = configured("device_code").start()
    lines = Lines(gateway, "tv")
    prompt = lines.next()["prompt"]
    person.enter(prompt["url"], prompt["code"])
    lines.ends()
    is_served(gateway)
    rest, _ = Lines(gateway, "tv", command="logout").ends()
    assert "revoked at the issuer" in json.loads(rest)["detail"]
    assert is_needed(gateway)
    assert state(gateway) == "login_needed"
    gateway.stop()
    gateway.start()
    assert is_needed(gateway)


def is_asking(process):
    """Waits in recvfrom(2), by the numbers of x86-64 and arm64."""
    return pathlib.Path(f"/proc/{process}/syscall").read_text().split()[0] in ("45", "207")


def test_an_interruption_is_no_end_of_the_gateway(configured, person):
    gateway = configured("device_code").start()
    terminal = Terminal(gateway, "tv")
    terminal.until("waiting")
    gateway.process.send_signal(signal.SIGSTOP)
    try:
        eventually(lambda: is_asking(terminal.child.pid), what="the command asking the gateway")
        # A full disk may take as long.
        time.sleep(3)
        terminal.child.sendintr()
        terminal.child.expect_exact("^C")
    finally:
        gateway.process.send_signal(signal.SIGCONT)
    terminal.child.expect("cancelled")
    terminal.child.wait()
    gateway.told(lambda event: event.get("reason") == "cancelled where it was started")
    assert is_needed(gateway)


def test_an_interrupted_login_ends_in_the_gateway(configured, person):
    gateway = configured("device_code").start()
    terminal = Terminal(gateway, "tv")
    code = terminal.until(r"enter the code\s+(\S+)").group(1)
    terminal.until("waiting")
    terminal.child.sendintr()
    terminal.child.expect("cancelled")
    terminal.child.wait()
    terminal.child.close()
    assert terminal.child.signalstatus == 2
    gateway.told(lambda event: event.get("reason") == "cancelled where it was started")
    assert gateway.metrics()[("cardea_logins_total", (("identity", "tv"), ("result", "cancelled")))] == 1
    assert is_needed(gateway)
