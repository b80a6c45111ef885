"""Promise: what passes is never gathered: a gigabyte each way costs a few blocks of memory."""

import pathlib
import re
import subprocess

import pytest

from harness import executable
from origins import forward
from servers_of_http2 import Files

pytestmark = pytest.mark.alone

SIZE = 1 << 30
FLAGS = {1: "--http1.1", 2: "--http2-prior-knowledge"}
ALLOWED = 12 << 20


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    with Files(tmp_path_factory.mktemp("gigabyte")) as server:
        with open(server.root / "sparse", "wb") as file:
            file.truncate(SIZE)
        yield server


def peak(gateway):
    """Octets of resident memory at most since `forget`."""
    status = pathlib.Path(f"/proc/{gateway.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) << 10


def forget(gateway):
    pathlib.Path(f"/proc/{gateway.process.pid}/clear_refs").write_text("5")


def curl(gateway, version, *more):
    done = subprocess.run(
        [
            *[executable("CARDEA_CURL", "curl", "apt-get install curl"), "-sS", "--max-time", "60", FLAGS[version]],
            *["-w", "%{http_code} %{http_version} %{size_download} %{size_upload}", *more],
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("version", [1, 2], ids=["1-to-1", "2-to-2"])
def test_down_and_up(gateway, files, version, record_property):
    to = f"http://127.0.0.1:{files.plain[version]}"
    forward(gateway, to, version, {"timeouts": {"response": "60s"}})
    gateway.config["limits"] = {"body_size": "2GiB"}
    gateway.start()
    url = f"http://{gateway.listen}"
    said = {1: "1.1", 2: "2"}[version]
    assert curl(gateway, version, "-o", "/dev/null", f"{url}/none")[0] == "404"
    forget(gateway)
    before = gateway.resident()
    down = curl(gateway, version, "-o", "/dev/null", f"{url}/sparse")
    assert down == ["200", said, str(SIZE), "0"]
    after_down = peak(gateway)
    forget(gateway)
    up = curl(gateway, version, "-o", "/dev/null", "-T", str(files.root / "sparse"), "-H", "Expect:", f"{url}/up")
    after_up = peak(gateway)
    assert up == ["201", said, "0", str(SIZE)]
    assert (files.root / "up").stat().st_size == SIZE
    (files.root / "up").unlink()
    # Seen with `pytest -rP`.
    print(f"peak of resident memory: {before >> 10} kB before, {after_down >> 10} kB down, {after_up >> 10} kB up")
    assert max(after_down, after_up) - before < ALLOWED
