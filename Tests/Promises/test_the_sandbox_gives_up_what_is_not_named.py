"""Promise: with sandbox: on, only what the configuration names can be opened, by the gateway and by the programs that it
starts; all that it serves, it serves inside as well."""

import glob
import json
import os
import shutil
import subprocess
import tempfile

import pytest

from harness import eventually, merge

KEY = "lab-key-7f3a9c"


def program(gateway, script, name="fetch-key"):
    """A program for an exec: secret, in a folder of its own."""
    folder = gateway.folder / "programs"
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o700)
    return f"exec:{path}"


def api_key(gateway, value, changes=None):
    return gateway.with_identity({"static": {"value": value, "header": "X-Api-Key"}}, merge({"sandbox": "on"}, changes))


@pytest.fixture
def outside():
    """A folder that no configuration names."""
    folder = tempfile.mkdtemp(prefix="outside-", dir="/var/tmp")
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("sandbox, status", [("off", 200), ("on", 502)])
def test_a_program_cannot_read_what_is_not_named(gateway, outside, sandbox, status):
    with open(f"{outside}/key", "w") as file:
        file.write(KEY)
    value = program(gateway, f"cat {outside}/key 2>/dev/null || echo refused\n")
    api_key(gateway, value, {"sandbox": sandbox}).start()
    assert gateway.get("/key/employees/1").status == status


@pytest.mark.parametrize("sandbox, left", [("off", True), ("on", False)])
def test_a_program_cannot_write_or_start_what_is_not_named(gateway, outside, sandbox, left):
    shutil.copy("/bin/true", f"{outside}/true")
    script = f"""
        (: > {outside}/a)
        {outside}/true && : > {outside}/b
        kill -0 {os.getpid()} && : > {outside}/c
        echo {KEY}
    """
    api_key(gateway, program(gateway, script), {"sandbox": sandbox}).start()
    assert gateway.get("/key/employees/1").status == 200
    assert (sorted(os.listdir(outside)) == ["a", "b", "c", "true"]) is left
    assert left or os.listdir(outside) == ["true"]


def test_a_file_among_the_arguments_is_named(gateway, outside):
    with open(f"{outside}/key", "w") as file:
        file.write(KEY)
    api_key(gateway, f"exec:/bin/cat {outside}/key").start()
    assert gateway.get("/key/employees/1").status == 200


def test_what_it_serves_is_served_inside(gateway):
    gateway.webgate(changes={"sandbox": "on"}).start().warm()
    assert gateway.command("reset", "hr")[0] == 0
    assert gateway.get().status == 200
    assert gateway.ask("/metrics").body.count(b"process_resident_memory_bytes") > 0
    tasks = os.listdir(f"/proc/{gateway.process.pid}/task")
    names = {open(f"/proc/{gateway.process.pid}/task/{task}/comm").read() for task in tasks}
    assert {"keeper\n", "loop-0\n"} <= names
    # The store was written inside, and is read again inside.
    gateway.kill()
    gateway.lab.reset(tokens=False)
    gateway.start()
    assert gateway.get().status == 200
    assert gateway.lab.counts()["grants"] == 0


def test_secrets_as_kubernetes_mounts_them_are_renewed(gateway, outside):
    """Links to a link to a folder, and the middle one is swapped."""
    os.mkdir(f"{outside}/..1")
    with open(f"{outside}/..1/api-key", "w") as file:
        file.write("lab-key-of-yesterday")
    os.symlink("..1", f"{outside}/..data")
    os.symlink("..data/api-key", f"{outside}/api-key")
    os.chmod(f"{outside}/..1/api-key", 0o600)
    api_key(gateway, f"file:{outside}/api-key").start()
    assert gateway.get("/key/employees/1").status == 502
    os.mkdir(f"{outside}/..2")
    with open(f"{outside}/..2/api-key", "w") as file:
        file.write(KEY)
    os.chmod(f"{outside}/..2/api-key", 0o600)
    os.symlink("..2", f"{outside}/..data_tmp")
    os.rename(f"{outside}/..data_tmp", f"{outside}/..data")
    eventually(lambda: gateway.get("/key/employees/1").status == 200, what="the new value to be used")


def test_a_reload_that_needs_more_says_so_and_changes_nothing(gateway, outside):
    api_key(gateway, gateway.secret("api-key", KEY)).start()
    assert gateway.get("/key/employees/1").status == 200
    with open(f"{outside}/key", "w") as file:
        file.write("another")
    os.chmod(f"{outside}/key", 0o600)
    gateway.config["identities"]["only"]["static"]["value"] = f"file:{outside}/key"
    gateway.file.write_text(json.dumps(gateway.config))
    eventually(lambda: f"restart needed: outside the sandbox: {outside}" in gateway.text(), what="the refusal")
    assert gateway.get("/key/employees/1").status == 200
    # What stays inside is taken.
    gateway.config["identities"]["only"]["static"]["value"] = gateway.secret("second-key", "wrong-key-of-tomorrow")
    gateway.file.write_text(json.dumps(gateway.config))
    eventually(lambda: gateway.get("/key/employees/1").status == 502, what="the reload")


def test_what_cannot_be_inside_is_served_outside_and_says_so(gateway, outside):
    """A program behind -- is somebody else's, and its files are not ours to forbid."""
    with open(f"{outside}/key", "w") as file:
        file.write("read")
    api_key(gateway, gateway.secret("api-key", KEY))
    gateway.file.write_text(json.dumps(gateway.config))
    command = [gateway.binary, "run", "--config", gateway.file, "--", "/bin/cat", f"{outside}/key"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, cwd=gateway.folder)
    assert (done.returncode, done.stdout) == (0, "read")
    assert "serving without a sandbox" in done.stderr and "would be inside" in done.stderr


def test_a_store_among_the_files_of_others_is_not_opened_to_all_of_them(gateway):
    store = f"/var/tmp/cardea-{os.getpid()}.db"
    try:
        api_key(gateway, gateway.secret("api-key", KEY), {"store": {"path": store}}).start()
        assert gateway.get("/key/employees/1").status == 200
        eventually(lambda: "give it one of its own" in gateway.text(), what="the warning")
    finally:
        gateway.stop()
        for file in glob.glob(f"{store}*"):
            os.remove(file)


# A kernel that knows no landlock_create_ruleset: a seccomp filter answers ENOSYS to the call and lets all others pass.
WITHOUT_LANDLOCK = """
import ctypes, os, struct, sys
instructions = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x00050000 | 38), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in instructions))
filter = struct.pack("HxxxxxxQ", len(instructions), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filter, 0, 0) == 0, ctypes.get_errno()
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_a_kernel_without_it_serves_and_says_so(gateway):
    api_key(gateway, gateway.secret("api-key", KEY))
    gateway.wrapper = ["python3", "-c", WITHOUT_LANDLOCK]
    gateway.start()
    assert gateway.get("/key/employees/1").status == 200
    eventually(lambda: "serving without a sandbox" in gateway.text(), what="the warning")
