"""Promise: while somebody has spoilt or deleted the configuration file, the gateway that serves on with the earlier one can be asked,
purged, reset and logged out of as before, and a health probe does not have it killed."""

import json
import time

import pytest

from harness import eventually

NOT_GOOD = "cardea: the configuration is not good: "


def spoil(gateway, how):
    text = gateway.file.read_text()
    if how == "bad reference":
        gateway.config["identities"]["hr"]["oam_webgate"]["password"] = "just-a-bare-secret"
        gateway.file.write_text(json.dumps(gateway.config))
    elif how == "no YAML behind":
        assert text.endswith("\n}")
        gateway.file.write_text(text[:-2] + ',\n"limits": [}\n')
    elif how == "no YAML before":
        # Not JSON: what is looked for stands in lines of its own.
        store, admin = gateway.config["store"], gateway.config["admin"]
        lines = ["routes:", "  - {", "store:", f"  path: {store['path']}", "admin:", f"  socket: {admin['socket']}", ""]
        gateway.file.write_text("\n".join(lines))
    elif how == "empty":
        gateway.file.write_text("")
    else:
        gateway.file.unlink()


WAYS = ["bad reference", "no YAML behind", "no YAML before", "empty", "deleted"]


@pytest.mark.parametrize("how", WAYS)
def test_the_gateway_is_asked(gateway, how):
    # Where nothing but the file says it, but for a file that says nothing.
    named = how not in ("empty", "deleted")
    socket = gateway.folder / ("elsewhere.sock" if named else "cardea.sock")
    gateway.webgate(changes={"admin": {"socket": str(socket)}}).start().warm()
    spoil(gateway, how)
    for arguments in (["health"], ["health", "--ready"]):
        status, out, errors = gateway.command(*arguments)
        assert (status, out) == (0, ""), errors
        [line] = errors.splitlines()
        assert line.startswith(NOT_GOOD) and str(gateway.file) in line
        assert f" at {socket}, " in line and line.endswith("which the file names" if named else "a usual place")
    status, out, _ = gateway.command("health", "--json")
    assert (status, json.loads(out)) == (0, {"good": True, "status": 200})
    status, out, _ = gateway.command("tokens", "list", "hr", "--json")
    assert status == 0 and json.loads(out)["tokens"][0]["state"] == "fresh"
    status, out, errors = gateway.command("tokens", "purge", "hr")
    assert (status, out) == (0, "1 token purged of hr\n"), errors
    assert gateway.get().status == 200, "it serves on"
    assert gateway.command("tokens", "purge", "--route", "hr")[0] == 0
    assert gateway.command("reset", "hr")[0] == 0
    status, out, errors = gateway.command("store", "verify")
    assert status == 0 and "0 damaged" in out, errors
    # The gateway is the judge of names that no file could be asked for.
    for arguments in (["tokens", "list", "nobody"], ["tokens", "purge", "nobody"], ["reset", "nobody"], ["logout", "nobody"]):
        assert gateway.command(*arguments)[0] == 64, arguments
    # What judges the file still says what it is worth.
    assert gateway.command("check")[0] == 78
    assert gateway.command("explain", "GET", f"http://{gateway.listen}/")[0] == 78
    if how != "deleted":
        eventually(lambda: any("reload" in str(event.get("message", event)) for event in gateway.events()), what="the refused reload")
    gateway.secrets.append("just-a-bare-secret")
    gateway.tells_no_secret(gateway.text())


@pytest.mark.parametrize("how", WAYS)
def test_nobody_answers(gateway, how):
    """Then the file may be the reason, and what is wrong with it is told as before."""
    gateway.webgate()
    gateway.file.write_text(json.dumps(gateway.config, indent=2))
    spoil(gateway, how)
    for arguments in (["health"], ["tokens"], ["reset", "hr"], ["store", "verify"], ["login", "hr"], ["logout", "hr"]):
        status, _, errors = gateway.command(*arguments)
        assert status == 78, (arguments, errors)
        assert errors.startswith(NOT_GOOD) and errors.endswith(" error\n") and str(gateway.file) in errors


def test_a_gateway_in_the_runtime_folder(gateway, monkeypatch):
    """No store and no word about the socket."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(gateway.folder / "run"))
    (gateway.folder / "run").mkdir()
    gateway.webgate(changes={"store": None, "admin": {"socket": None}}).start().warm()
    assert (gateway.folder / "run" / "cardea.sock").is_socket()
    gateway.file.unlink()
    status, _, errors = gateway.command("health")
    assert status == 0 and errors.endswith(f" at {gateway.folder}/run/cardea.sock, a usual place\n")
    assert gateway.command("tokens", "purge", "--all")[1] == "1 token purged of hr\n"


def test_a_socket_that_an_included_file_names(gateway):
    gateway.webgate(changes={"admin": None, "include": "more.yaml"})
    admin = {"admin": {"listen": gateway.admin, "socket": str(gateway.folder / "s" / "included.sock")}}
    (gateway.folder / "s").mkdir()
    (gateway.folder / "more.yaml").write_text(json.dumps(admin))
    gateway.start()
    (gateway.folder / "more.yaml").write_text(json.dumps(admin)[:-1] + ', "log": {')
    status, _, errors = gateway.command("health")
    assert status == 0 and "more.yaml" in errors and "included.sock, which the file names" in errors


def test_a_socket_that_was_renamed_in_the_same_breath(gateway):
    gateway.webgate().start()
    gateway.file.write_text(json.dumps(gateway.config | {"admin": {"socket": "/nowhere/new.sock"}, "rutes": []}))
    status, _, errors = gateway.command("health")
    assert status == 0 and errors.endswith("cardea.sock, a usual place\n")


def test_another_gateway_is_not_taken_for_this_one(gateways, monkeypatch):
    """Nobody's health but its own is told, and nobody else's tokens go."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(gateways("other").folder))
    ours, other = gateways("ours").webgate(), gateways("another").webgate(changes={"store": None, "admin": {"socket": None}})
    other.start().warm()
    ours.start().warm()
    ours.file.unlink()
    assert ours.command("health")[2].endswith(f" at {ours.folder}/cardea.sock, a usual place\n")
    ours.kill()
    for arguments in (["health"], ["tokens", "purge", "--all"]):
        assert ours.command(*arguments)[0] == 78, arguments
    # The very same file by another name.
    other.file.write_text("{")
    link = other.folder / "link.yaml"
    link.symlink_to(other.file)
    for path in (str(other.file), str(link), "cardea.yaml", "./cardea.yaml"):
        status, _, errors = other.command("health", "--config", path, config=False)
        assert status == 0 and errors.endswith("/cardea.sock, a usual place\n"), (path, errors)
    other.lab.reset(tokens=False)
    assert other.get().status == 200 and other.lab.counts()["access_ok"] == 0, "its token is still there"


def test_a_good_file_is_not_spoken_of(hot):
    assert hot.command("health") == (0, "", "")
    begun = time.monotonic()
    hot.kill()
    assert hot.command("health")[0] == 1
    assert time.monotonic() - begun < 20
