"""Promise: `cardea check` says of the store and of the secrets what the gateway would only meet later, and changes nothing there."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from harness import eventually
from pki import Authority

KEY = "c3RvcmUta2V5LWZvci10ZXN0cy0zMi1vY3RldHMhISE="


def checked(gateway, *arguments):
    """Status, and the lines without the file's name."""
    gateway.file.write_text(json.dumps(gateway.config, indent=2))
    before = sorted(str(path) for path in gateway.folder.rglob("*"))
    status, out, errors = gateway.command("check", *arguments)
    assert sorted(str(path) for path in gateway.folder.rglob("*")) == before, "check made something"
    assert errors == ""
    return status, out.replace(f"{gateway.file}:", "").splitlines()


def line_of(gateway, word):
    """As `checked` has written it: of the word's first line."""
    lines = json.dumps(gateway.config, indent=2).splitlines()
    return 1 + next(number for number, line in enumerate(lines) if word in line)


@pytest.mark.parametrize("content", ["not a key", "A" * 32, "ab" * 31, KEY + KEY], ids=["text", "all alike", "short", "long"])
def test_a_key_that_is_none_is_an_error(gateway, content):
    gateway.webgate()
    gateway.secret("store-key", content)
    status, lines = checked(gateway)
    place = line_of(gateway, '"key":')
    reason = f"'key' of store: file:{gateway.folder}/store-key: a sealing key is 32 bytes: raw, in base64 or in hexadecimal"
    assert (status, lines) == (78, [f"{place}:5 error {reason}", "1 error"])
    status, out, _ = gateway.command("check", "--json", "--live")
    told = json.loads(out)
    assert (status, told["errors"], told["live"]) == (78, 1, []), "nothing is tried with it"
    assert (told["diagnostics"][0]["severity"], told["diagnostics"][0]["line"]) == ("error", place)


def test_each_of_several_keys_is_looked_at(gateway):
    gateway.webgate()
    gateway.config["store"]["key"] = [gateway.secret("first", KEY), gateway.secret("second", "another"), "file:/nowhere/key"]
    status, lines = checked(gateway)
    assert status == 78 and len(lines) == 3 and lines[-1] == "1 error"
    assert any("warning 'key' of store: file:/nowhere/key: No such file" in line for line in lines)
    assert any(f"error 'key' of store: file:{gateway.folder}/second: a sealing key" in line for line in lines)
    gateway.config["store"]["key"] = [gateway.secret("first", KEY)] * 9
    status, lines = checked(gateway)
    assert status == 78 and any("more than 8 keys" in line for line in lines)


def test_the_key_beside_the_store(gateway):
    gateway.webgate()
    del gateway.config["store"]["key"]
    (gateway.folder / "tokens.db.key").write_text("nonsense")
    (gateway.folder / "tokens.db.key").chmod(0o600)
    status, lines = checked(gateway)
    assert status == 78 and any(f"{line_of(gateway, 'tokens.db')}:5 error the key beside the store: {gateway.folder}/tokens.db.key: a sealing key" in line for line in lines)
    (gateway.folder / "tokens.db.key").write_text(KEY)
    assert checked(gateway)[0] == 0


def test_a_key_that_is_named_later_leaves_the_one_beside_the_store_out(gateway):
    gateway.webgate()
    own = gateway.folder / "tokens.db.key"
    own.write_text(KEY)
    own.chmod(0o600)
    named = gateway.config["store"]["key"]
    status, lines = checked(gateway)
    advice = f"write `key: [{named}, file:{own}]`, restart, and run `cardea store rotate`; remove it afterwards"
    assert status == 0 and lines[-1] == "good, 1 warning" and lines[0].endswith(advice), lines
    gateway.config["store"]["key"] = [named, f"file:{own}"]
    assert checked(gateway) == (0, ["good"])


def test_what_root_makes_there_belongs_to_the_owner_of_the_folder(gateway, lab):
    """Root tries a configuration (`check --live` opens the store, which is made then) before the gateway first runs, as a user of its own."""
    user, place = 65533, gateway.folder / "state"
    place.mkdir(mode=0o700)
    os.chown(place, user, user)
    for keys in ({"key": gateway.secret("store-key", KEY)}, {"key": None}):
        gateway.webgate(changes={"store": {"path": str(place / "tokens.db"), **keys}})
        gateway.file.write_text(json.dumps(gateway.config, indent=2))
        status, out, _ = gateway.command("check", "--live")
        assert status == 0 and "logged in" in out, out
        made = {path.name: path.stat().st_uid for path in place.iterdir()}
        assert {"tokens.db", "tokens.db.lock"} <= made.keys() and set(made.values()) == {user}, made
        for path in place.iterdir():
            path.unlink()
    assert "tokens.db.key" in made


def test_a_folder_that_is_not_there(gateway):
    gateway.webgate(changes={"store": {"path": "/nowhere/at/all/tokens.db"}})
    status, lines = checked(gateway)
    folder = "'path' of store: the folder /nowhere/at/all does not exist; create it, owned by the user that runs the gateway"
    assert (status, lines) == (0, [f"{line_of(gateway, 'nowhere')}:5 warning {folder}", "good, 1 warning"])
    assert not pathlib.Path("/nowhere").exists()
    (gateway.folder / "file").write_text("")
    for path, said in (
        (gateway.folder / "file" / "tokens.db", f"{gateway.folder}/file is no folder; choose another path"),
        (gateway.folder, f"{gateway.folder} is no file; choose another path"),
    ):
        gateway.config["store"]["path"] = str(path)
        status, lines = checked(gateway)
        assert status == 0 and said in lines[0] and lines[1] == "good, 1 warning"
    # Beside where it is run, as the gateway would.
    gateway.config["store"]["path"] = "tokens.db"
    assert checked(gateway) == (0, ["good"])


def test_a_strict_look_fails_for_a_warning(gateway):
    """A pipeline that asks for no warnings is told by the status; the file is served all the same."""
    gateway.webgate()
    assert checked(gateway, "--strict") == (0, ["good"])
    gateway.config["store"]["path"] = "/nowhere/at/all/tokens.db"
    assert checked(gateway)[0] == 0
    status, lines = checked(gateway, "--strict")
    assert (status, lines[-1]) == (78, "1 warning, refused by --strict") and "warning 'path' of store" in lines[0]
    told = {}
    for strict in ([], ["--strict"]):
        status, out, _ = gateway.command("check", "--json", *strict)
        found = json.loads(out)
        told[len(strict)] = (status, found["good"], found["errors"], found["warnings"], found["diagnostics"][0]["severity"])
    assert told == {0: (0, True, 0, 1, "warning"), 1: (78, False, 0, 1, "warning")}
    # Each identity and each upstream is tried all the same, so that one run tells everything.
    status, lines = checked(gateway, "--strict", "--live")
    assert status == 78 and lines[-1].endswith(", 1 warning, refused by --strict"), lines
    assert any(line.startswith("good  upstream") for line in lines), lines
    # A mistake is told as one, and its number is that of the mistakes.
    gateway.config["routes"][0]["use"] = "nobody"
    status, lines = checked(gateway, "--strict")
    assert status == 78 and lines[-1] == "1 error", lines


def test_a_folder_that_this_user_may_not_write(gateway):
    # To root nothing is forbidden by a file's mode, unless it runs without the capability that says so. Another user would not
    # do in its place: the clone may stand in a home folder, where no other user finds the binary.
    user = os.geteuid()
    without = ["setpriv", "--bounding-set", "-dac_override"] if user == 0 else []
    place = pathlib.Path(tempfile.mkdtemp(dir=gateway.folder))
    try:
        text = {
            "identities": {"a": {"static": {"value": "env:V"}}},
            "routes": [{"listen": "127.0.0.1:8080", "to": "https://u.example.com", "use": "a"}],
            "store": {"path": str(place / "tokens.db"), "key": "env:K"},
        }
        (place / "cardea.yaml").write_text(json.dumps(text))
        place.chmod(0o555)

        def asked():
            return subprocess.run(
                [*without, gateway.binary, "check", place / "cardea.yaml"], cwd="/",
                env={"V": "value", "K": KEY, "PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=30,
            )

        done = asked()
        said = f"user {user}, who runs this check, cannot write into the folder {place} (Permission denied)"
        advice = "; make it owned by the user that runs the gateway"
        assert done.returncode == 0 and f"warning 'path' of store: {said}{advice}\ngood, 1 warning\n" in done.stdout, done
        place.chmod(0o777)
        assert asked().stdout == "good\n"
        (place / "tokens.db").write_text("")
        (place / "tokens.db").chmod(0)
        done = asked()
        assert f"cannot read and write {place}/tokens.db (Permission denied){advice}" in done.stdout, done
    finally:
        place.chmod(0o700)
        shutil.rmtree(place)


# --- Secret files that others can read ---------------------------------------------------------------------------------


OPEN = "others can read it; chmod o-r"


def told_of_open_files(gateway):
    return [(event["secret"], event["reason"]) for event in gateway.events() if event["message"] == "secret file is open to others"]


def test_strict_is_judged_as_the_gateway_will(gateway):
    gateway.webgate(changes={"secret_files": "strict", "identities": {"other": {"static": {"value": "file:/nowhere/key"}}}})
    (gateway.folder / "hr-password").chmod(0o644)
    status, lines = checked(gateway)
    place = line_of(gateway, '"password":')
    reason = f"'password' of identity 'hr': file:{gateway.folder}/hr-password: {OPEN} (secret_files: strict)"
    assert status == 78 and lines[-1] == "1 error" and any(line.startswith(f"{place}:") and line.endswith(f" error {reason}") for line in lines), lines
    # Nobody else may read it, so another user's check could not: no error.
    assert any(" warning 'value' of identity 'other': file:/nowhere/key: No such file" in line for line in lines)
    gateway.start()
    assert gateway.get().status == 503 and gateway.lab.counts()["password_attempts"] == 0
    assert told_of_open_files(gateway) == [], "refused, not tolerated"
    (gateway.folder / "hr-password").chmod(0o640)
    assert gateway.command("check")[0] == 0


def test_strict_counts_for_keys_of_certificates_and_of_the_store(gateway, tmp_path):
    certificate, key = (str(path) for path in Authority(tmp_path / "pki").leaf("server", "IP:127.0.0.1"))
    gateway.webgate(changes={"secret_files": "strict"})
    gateway.config["listeners"] = {
        "tls": {"address": gateway.listen, "tls": [{"certificate": certificate, "key": f"file:{key}"}]}
    }
    gateway.config["routes"][0]["listen"] = "tls"
    for path in (key, gateway.folder / "store-key"):
        os.chmod(path, 0o604)
    status, lines = checked(gateway)
    errors = [line.partition(" error ")[2] for line in lines if " error " in line]
    assert status == 78 and sorted(error.partition(":")[0] for error in errors) == ["'key' of store", "'tls.key' of listener 'tls'"], lines


def test_a_running_gateway_says_it_once(gateway):
    gateway.webgate()
    (gateway.folder / "hr-password").chmod(0o644)
    status, lines = checked(gateway)
    said = ("'password' of identity 'hr'", f"file:{gateway.folder}/hr-password: {OPEN}")
    assert status == 0 and lines[-1] == "good, 1 warning" and lines[0].endswith(f" warning {said[0]}: {said[1]}")
    gateway.start()
    eventually(lambda: told_of_open_files(gateway) == [said], what="the word of the open file")
    [event] = gateway.told(lambda event: event["message"] == "secret file is open to others")
    assert event["level"] == "warn"
    assert gateway.warm().get().status == 200
    # With a reload what is new is said, and nothing anew.
    gateway.config["identities"]["late"] = {"static": {"value": gateway.secret("late", "a late secret")}}
    gateway.config["routes"].append(gateway.route("late", gateway.lab.listen) | {"match": {"path": "/late/"}})
    (gateway.folder / "late").chmod(0o604)
    gateway.file.write_text(json.dumps(gateway.config))
    late = ("'value' of identity 'late'", f"file:{gateway.folder}/late: {OPEN}")
    eventually(lambda: len(told_of_open_files(gateway)) > 1, what="the word of the late file")
    assert told_of_open_files(gateway) == [said, late]
    assert gateway.get().status == 200


def test_nothing_is_said_of_closed_files(hot):
    assert told_of_open_files(hot) == []


# --- What a start would refuse, or serve only in part ------------------------------------------------------------------


def refused_alike(gateway, word):
    """By the check, at the line with the word, and by the start."""
    status, lines = checked(gateway)
    [error] = [line for line in lines if " error " in line]
    assert status == 78 and error.startswith(f"{line_of(gateway, word)}:"), lines
    assert gateway.command("run")[0] == 78
    return error


def test_a_key_of_another_certificate(gateway, tmp_path):
    authority = Authority(tmp_path / "pki")
    (certificate, _), (_, key) = authority.leaf("one", "IP:127.0.0.1"), authority.leaf("two", "IP:127.0.0.1")
    gateway.webgate(route={"listen": "edge"})
    tls = {"certificate": str(certificate), "key": f"file:{key}"}
    gateway.config["listeners"] = {"edge": {"address": gateway.listen, "tls": [tls]}}
    assert "do not belong together" in refused_alike(gateway, '"certificate":')
    tls["certificate"] = "/nowhere/one.pem"
    assert "/nowhere/one.pem: No such file" in refused_alike(gateway, '"certificate":')
    tls |= {"certificate": str(certificate), "key": "file:/nowhere/key"}
    assert "'tls.key' of listener 'edge': file:/nowhere/key: No such file" in refused_alike(gateway, '"key": "file:/nowhere')
    # What another user or the service's own environment may have is no mistake of the file.
    tls["key"] = "credential:tls-key"
    status, lines = checked(gateway)
    assert status == 0 and "warning 'tls.key' of listener 'edge': credential:tls-key" in lines[0] and lines[1] == "good, 1 warning"


def test_authorities_that_are_not_there(gateway, tmp_path):
    gateway.webgate(route={"to": "https://127.0.0.1:1", "tls": {"ca": "/nowhere/ca.pem"}})
    status, lines = checked(gateway)
    said = "certificate authorities in /nowhere/ca.pem cannot be read: No such file or directory"
    assert (status, lines) == (0, [f"{line_of(gateway, '/nowhere/ca.pem')}:9 warning 'tls.ca' of route 'hr': {said}", "good, 1 warning"])
    # Nobody can use one that holds nothing.
    (tmp_path / "ca.pem").write_text("no certificate")
    gateway.config["routes"][0]["tls"]["ca"] = str(tmp_path / "ca.pem")
    status, lines = checked(gateway)
    assert status == 78 and " error 'tls.ca' of route 'hr': " in lines[0], lines
    del gateway.config["routes"][0]["tls"]
    gateway.config["tracing"] = {"endpoint": "https://collector.example", "network": {"tls": {"ca": "/nowhere/else.pem"}}}
    status, lines = checked(gateway)
    assert status == 0 and lines[0].startswith(f"{line_of(gateway, '/nowhere/else.pem')}:"), lines
    assert " warning 'tls.ca' of tracing: certificate authorities in /nowhere/else.pem cannot be read" in lines[0], lines


def test_a_secret_that_is_not_there(gateway):
    """At its own line, and a relative path as it is looked for; a start says what the first request will miss."""
    gateway.webgate(identity={"password": "file:secrets/hr"})
    status, lines = checked(gateway)
    said = f"file:secrets/hr: No such file or directory ({gateway.folder}/secrets/hr)"
    assert (status, lines[-1]) == (0, "good, 1 warning")
    assert lines[0].startswith(f"{line_of(gateway, 'secrets/hr')}:") and lines[0].endswith(f" warning 'password' of identity 'hr': {said}")
    gateway.start()
    told = lambda: [event for event in gateway.events() if event["message"] == "secret cannot be read"]  # noqa: E731
    [event] = eventually(told, what="the word of the secret")
    assert (event["level"], event["secret"], event["reason"]) == ("error", "'password' of identity 'hr'", said)
