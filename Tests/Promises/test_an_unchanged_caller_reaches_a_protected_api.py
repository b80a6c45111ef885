"""Promise: a caller that works against an open API works, unchanged, against the protected one."""

import json
import subprocess
import sys

import pytest

from harness import CALLERS, PATTERN, executable, sha256

sys.path.insert(0, str(CALLERS))
import python_callers  # noqa: E402

BIG = PATTERN * 327_680
SMALL = python_callers.SMALL


def program(command, base):
    done = subprocess.run([*command, base], capture_output=True, timeout=180)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


CALLER = {
    "curl": lambda base: python_callers.with_curl(base, executable("CARDEA_CURL", "curl", "apt-get install curl")),
    "urllib": python_callers.with_urllib,
    "requests": python_callers.with_requests,
    "java": lambda base: program(
        [executable("CARDEA_JAVA", "java", "apt-get install default-jdk-headless"), str(CALLERS / "Caller.java")], base
    ),
    "node": lambda base: program(
        [executable("CARDEA_NODE", "node", "apt-get install nodejs"), str(CALLERS / "caller.mjs")], base
    ),
}


def check(rows):
    assert len(rows) in (11, 22)
    for row in rows:
        shape = row["shape"]
        assert row["status"] == 200, row
        if shape in ("down", "down_chunked"):
            assert (row["length"], row["sha256"]) == (len(BIG), sha256(BIG)), row
        elif shape.startswith(("up", "post")):
            sent = BIG if shape.startswith("up") else SMALL
            echo = json.loads(row["text"])
            assert (echo["length"], echo["sha256"], echo["method"]) == (len(sent), sha256(sent), "POST"), row
        else:
            number = int(shape[-1]) if shape[-1].isdigit() else 1
            assert json.loads(row["text"])["id"] == number, row


@pytest.mark.parametrize("name", CALLER)
def test_the_callers_work_against_the_open_api(lab, name):
    """What the promise is measured by: the same programs, no gate and no gateway."""
    check(CALLER[name](f"http://{lab.plain}/hr/rest"))


@pytest.mark.parametrize("name", CALLER)
def test_through_the_gateway_to_the_gate(gateway, name):
    gateway.webgate().start()
    check(CALLER[name](f"http://{gateway.listen}/hr/rest"))
    assert gateway.lab.counts()["access"] == 1


@pytest.mark.parametrize("name", CALLER)
def test_through_the_gateway_to_nginx_with_tls(gateway, nginx, name):
    gateway.webgate(route={"to": f"https://{nginx.address}", "tls": {"ca": str(nginx.ca)}}).start()
    check(CALLER[name](f"http://{gateway.listen}/hr/rest"))
    assert gateway.lab.counts()["access"] == 1


@pytest.mark.parametrize("name", CALLER)
def test_through_the_gateway_to_a_bearer_api(gateway, name):
    gateway.oauth().start()
    check(CALLER[name](f"http://{gateway.listen}/api"))
    assert gateway.lab.counts()["token"] == 1
