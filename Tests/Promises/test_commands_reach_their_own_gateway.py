"""Promise: a command speaks with the gateway of its own configuration and store, or refuses and names both; it never tells another
gateway's health and never forgets another one's tokens."""

import json
import subprocess

import pytest

from harness import eventually


@pytest.fixture
def runtime(gateways, tmp_path, monkeypatch):
    """Where sockets of gateways without a store and without a word about it come to stand."""
    folder = tmp_path / "run"
    folder.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


NOWHERE = {"store": None, "admin": {"socket": None}}


def test_two_configurations_of_one_user(gateways, runtime):
    first = gateways("first").webgate(changes=NOWHERE).start().warm()
    second = gateways("second").webgate(changes=NOWHERE).start().warm()
    # Who comes second has no socket, and says so as loudly as it has to.
    [event] = second.told(lambda event: event["message"].startswith("no admin socket"))
    assert event["level"] == "error" and "admin.socket" in event["advice"] and "another process" in event["reason"], event
    socket = runtime / "cardea.sock"
    ways = [["health"], ["tokens"], ["tokens", "purge", "--all"], ["reset", "hr"], ["store", "verify"], ["logout", "hr"], ["login", "hr"]]
    for arguments in ways:
        status, out, errors = second.command(*arguments)
        assert (status, out) == (1 if arguments == ["health"] else 69, ""), (arguments, out, errors)
        assert f"{socket} serves {first.file}" in errors and f"not {second.file}" in errors and "--socket" in errors, errors
    status, out, _ = second.command("health", "--json")
    assert (status, json.loads(out)) == (1, {"good": False, "status": 0})
    out = second.command("explain", "GET", f"http://{second.listen}/")[1]
    assert f"serves {first.file}" in out and "hr" in out, out
    first.lab.reset(tokens=False)
    assert first.get().status == 200 and first.lab.counts()["access_ok"] == 0, "its token is still there"
    # The first one's own commands, however the file is called, from wherever.
    link = first.folder / "link.yaml"
    link.symlink_to(first.file)
    for path in (first.file, link, "cardea.yaml", "./cardea.yaml", f"../{first.folder.name}/cardea.yaml"):
        assert first.command("health", "--config", str(path), config=False) == (0, "", ""), path
    # Paths that end alike are not the same path, unless the words are the same, too.
    copy = first.folder / "a" / "cardea.yaml"
    copy.parent.mkdir()
    copy.write_text(first.file.read_text() + "\n")
    assert first.command("health", "--config", "a/cardea.yaml", config=False)[0] == 1
    copy.write_text(first.file.read_text())
    assert first.command("health", "--config", "a/cardea.yaml", config=False) == (0, "", "")


def test_a_copy_that_was_left_in_a_folder(gateway, tmp_path, monkeypatch):
    """`./cardea.yaml` is taken before the file of the machine: where it is the same the gateway is found, else its reader is told of it."""
    folder = tmp_path / "left"
    (folder / "parts").mkdir(parents=True)
    (gateway.folder / "parts").mkdir()
    (gateway.folder / "parts" / "limits.yaml").write_text('{"limits": {"subjects": 5000}}')
    gateway.webgate(changes={"include": "parts"}).start().warm()
    there, copy = gateway.file, folder / "cardea.yaml"
    monkeypatch.setattr(gateway, "folder", folder)
    text = there.read_text()
    copy.write_text(text)
    (folder / "parts" / "limits.yaml").write_text('{"limits": {"subjects": 5000}}')

    def command(*arguments):
        return gateway.command(*arguments, config=False)

    assert command("health") == (0, "", "")
    assert command("tokens")[0] == 0 and command("explain", "--last")[0] == 0
    # A word of an included file is a word of the configuration.
    (folder / "parts" / "limits.yaml").write_text('{"limits": {"subjects": 5001}}')
    for arguments in (["health"], ["tokens"], ["explain", "--last"], ["tokens", "purge", "--all"]):
        status, out, errors = command(*arguments)
        assert (status, out) == (1 if arguments == ["health"] else 69, ""), (arguments, out, errors)
        assert f"serves {there} with the store " in errors and f"not {copy} with the store " in errors, errors
        assert "which was taken because it lies in this folder; " in errors, errors
        assert errors.endswith(f"say --config {there}, or remove {copy} if it was left over\n"), errors
    (folder / "parts" / "limits.yaml").write_text('{"limits": {"subjects": 5000}}')
    # It leads to a socket at which nobody is.
    copy.write_text(json.dumps(json.loads(text) | {"admin": {"socket": "/nowhere/s"}}))
    for arguments in (["health"], ["tokens"], ["explain", "--last"]):
        status, out, errors = command(*arguments)
        assert (status, out) == (1 if arguments == ["health"] else 69, ""), (arguments, out, errors)
        assert f"no gateway answers at /nowhere/s, the socket of {copy}, which was taken because it lies in this folder" in errors, errors
    # A file that was named is what its user meant.
    assert "this folder" not in command("health", "--config", "cardea.yaml")[2]
    monkeypatch.setenv("CARDEA_CONFIG", "./cardea.yaml")
    assert "this folder" not in command("health")[2]


def test_a_socket_that_is_said(gateways, runtime):
    first = gateways("first").webgate(changes=NOWHERE).start().warm()
    second = gateways("second").webgate(changes=NOWHERE)
    second.file.write_text(json.dumps(second.config))
    socket = str(runtime / "cardea.sock")
    assert second.command("tokens", "purge", "--all", "--socket", socket)[1] == "1 token purged of hr\n"
    # Also without any configuration.
    assert first.command("health", "--socket", socket, config=False)[0] == 0
    assert first.command("reset", "hr", "--socket", socket)[0] == 0
    status, _, errors = first.command("store", "verify", "--socket", "/nowhere/s")
    assert status == 69 and "no gateway answers at /nowhere/s" in errors


def test_another_store(gateway, tmp_path, monkeypatch):
    """One file with a variable in it is two configurations."""
    monkeypatch.setenv("STORE", str(gateway.folder))
    gateway.webgate(changes={"store": {"path": "${STORE}/tokens.db"}}).start().warm()
    assert gateway.command("health")[0] == 0
    (tmp_path / "other").mkdir()
    monkeypatch.setenv("STORE", str(tmp_path / "other"))
    status, _, errors = gateway.command("tokens", "purge", "--all")
    assert status == 69 and f"store {gateway.folder}/tokens.db" in errors and f"store {tmp_path}/other/tokens.db" in errors, errors


def test_a_store_that_counts_from_the_next_start(gateway):
    """The edit of a file does not hide the gateway that serves it."""
    gateway.webgate().start().warm()
    gateway.config["store"]["path"] = str(gateway.folder / "next.db")
    gateway.file.write_text(json.dumps(gateway.config))
    eventually(lambda: gateway.command("health")[0] == 0, what="the reload")
    assert gateway.command("tokens", "purge", "hr")[0] == 0


def test_a_configuration_that_is_no_file(gateway, monkeypatch):
    gateway.webgate()
    monkeypatch.setenv("CARDEA_CONFIG_YAML", json.dumps(gateway.config))
    process = subprocess.Popen([gateway.binary, "run"], cwd=gateway.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: gateway.command("health", config=False)[0] == 0, what="the gateway")
        # A file of the same words is another configuration.
        gateway.file.write_text(json.dumps(gateway.config))
        status, _, errors = gateway.command("tokens")
        assert status == 69 and "serves CARDEA_CONFIG_YAML" in errors and f"not {gateway.file}" in errors
    finally:
        process.kill()
        process.wait()
