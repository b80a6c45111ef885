"""Promise: a damaged store is set aside and rebuilt; a file that is not ours, or a key we lack, leaves the file alone."""

import hashlib
import json
import os

import pytest

from harness import eventually
from small_disk import SmallDisk


def readiness(gateway):
    try:
        return json.dumps(gateway.ask("/readyz").json)
    except OSError:
        return ""


def truncate(path):
    os.truncate(path, path.stat().st_size // 2)


def scramble_head(path):
    with open(path, "r+b") as file:
        file.write(b"this is no database at all, not even a bit of one" * 10)


def scramble_middle(path):
    with open(path, "r+b") as file:
        for offset in range(4096, path.stat().st_size - 64, 4096):
            file.seek(offset)
            file.write(os.urandom(64))


def empty(path):
    path.write_bytes(b"")


def noise(path):
    path.write_bytes(os.urandom(100_000))


@pytest.mark.parametrize("damage", [truncate, scramble_middle, empty])
def test_it_starts_and_serves(gateway, damage):
    gateway.oauth().start().warm("/api/employees/1")
    gateway.stop()
    for side in gateway.folder.glob("tokens.db-*"):
        side.unlink()
    damage(gateway.store)
    gateway.start()
    assert gateway.get("/api/employees/1").status == 200
    gateway.stop()
    gateway.lab.reset(tokens=False)
    gateway.start()
    assert gateway.get("/api/employees/1").status == 200
    assert gateway.lab.counts()["token"] == 0, "the rebuilt store does not keep tokens"


@pytest.mark.parametrize("damage", [scramble_head, noise])
def test_a_file_that_is_not_ours_is_left_alone(gateway, damage):
    gateway.oauth().start().warm("/api/employees/1")
    gateway.stop()
    for side in gateway.folder.glob("tokens.db-*"):
        side.unlink()
    damage(gateway.store)
    digest = hashlib.sha256(gateway.store.read_bytes()).hexdigest()
    gateway.start()
    assert gateway.get("/api/employees/1").status == 200
    gateway.told(lambda event: "not a token store" in str(event))
    gateway.stop()
    assert hashlib.sha256(gateway.store.read_bytes()).hexdigest() == digest


def test_a_damaged_file_is_kept_beside(gateway):
    gateway.oauth().start().warm("/api/employees/1")
    gateway.stop()
    scramble_middle(gateway.store)
    before = set(gateway.folder.iterdir())
    gateway.start()
    gateway.get("/api/employees/1")
    aside = [
        path
        for path in set(gateway.folder.iterdir()) - before
        if path.name.startswith("tokens.db") and not path.name.endswith(("-wal", "-shm"))
    ]
    assert aside


def wrong_key(gateway, ready=True):
    gateway.stop()
    (gateway.folder / "store-key").write_text("YW5vdGhlci1rZXktb2YtMzItb2N0ZXRzLWhlcmUhISE=")
    digest = hashlib.sha256(gateway.store.read_bytes()).hexdigest()
    gateway.lab.reset(tokens=False)
    gateway.start(ready=ready)
    return digest


def test_an_unknown_key_leaves_the_file_alone(gateway):
    gateway.oauth().start().warm("/api/employees/1")
    digest = wrong_key(gateway)
    assert gateway.get("/api/employees/1").status == 200
    [told] = gateway.told(lambda event: event["message"] == "store not used")
    assert "a key that store.key does not name" in told["reason"] and "name that key in store.key too" in told["advice"]
    gateway.stop()
    assert hashlib.sha256(gateway.store.read_bytes()).hexdigest() == digest


def test_a_key_that_is_named_later_is_told_what_to_do_and_that_works(gateway):
    gateway.webgate()
    named = gateway.config["store"].pop("key")
    gateway.start().warm()
    gateway.stop()
    own = f"file:{gateway.store}.key"
    gateway.config["store"]["key"] = named
    gateway.start(ready=False)
    [told] = gateway.told(lambda event: event["message"] == "store not used")
    assert told["advice"].startswith(own.removeprefix("file:")) and "name it in store.key too, behind the new one" in told["advice"]
    gateway.stop()
    gateway.config["store"]["key"] = [named, own]
    gateway.start()
    assert gateway.command("store", "rotate")[0] == 0
    gateway.stop()
    (gateway.folder / "tokens.db.key").unlink()
    gateway.config["store"]["key"] = named
    grants = gateway.lab.counts()["password_attempts"]
    gateway.start()
    assert gateway.get().status == 200 and gateway.lab.counts()["password_attempts"] == grants


def test_marks_that_cannot_be_read_keep_passwords_at_home(gateway):
    gateway.webgate().start().warm()
    wrong_key(gateway, ready=False)
    eventually(lambda: "identity hr: the store cannot be read" in readiness(gateway), what="a word of the store")
    answer = gateway.get()
    assert (answer.status, answer.problem["type"]) == (503, "urn:cardea:problems/store-unusable"), answer
    assert gateway.ask("/status").json["identities"][0]["state"] == "store_unusable"
    assert gateway.lab.counts()["password_attempts"] == 0
    gateway.stop()
    status, out, _ = gateway.command("check", "--live")
    assert status == 69 and f"FAIL  store {gateway.store}" in out and "FAIL  identity hr" in out, out
    assert gateway.lab.counts()["password_attempts"] == 0


def test_a_folder_that_cannot_be_written(gateway):
    gateway.oauth(changes={"store": {"path": "/proc/nowhere/tokens.db"}}).start()
    assert gateway.get("/api/employees/1").status == 200
    [told] = gateway.told(lambda event: event["message"] == "store degraded")
    assert "/proc/nowhere" in told["path"] and "see that its folder exists" in told["advice"]


def test_a_password_waits_for_a_store_that_comes_late(gateway):
    """What is known of it may stand there: a gateway that starts again and again would lock the account."""
    with SmallDisk(gateway.folder / "disk") as disk:
        disk.fill()
        store = {"path": str(disk.folder / "tokens.db"), "key": f"file:{gateway.folder}/store-key"}
        gateway.webgate(changes={"store": store}).start(ready=False)
        assert f"the disk of the folder {disk.folder} has 0 KiB left" in gateway.command("check")[1]
        eventually(lambda: "identity hr: the store cannot be read" in readiness(gateway), what="a word of the store")
        answer = gateway.get()
        assert (answer.status, answer.problem["type"]) == (503, "urn:cardea:problems/store-unusable"), answer
        assert gateway.lab.counts()["password_attempts"] == 0
        disk.free()
        eventually(lambda: gateway.get().status == 200, within=70, what="a login when the store is there")
        assert gateway.lab.counts()["password_attempts"] == 2 and gateway.lab.counts()["password_rejected"] == 0
        gateway.stop()


def test_a_second_process_does_without_the_store(gateways):
    first, second = gateways("first"), gateways("second")
    first.oauth().start().warm("/api/employees/1")
    second.oauth(changes={"store": {"path": str(first.store), "key": f"file:{first.folder}/store-key"}}).start()
    assert second.get("/api/employees/1").status == 200
    assert first.get("/api/employees/1").status == 200
