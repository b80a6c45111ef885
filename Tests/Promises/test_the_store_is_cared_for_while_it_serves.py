"""Promise: the sealing key is replaced, the file verified and compacted, with a gateway running or without; a stolen file tells nothing."""

import base64
import json
import os
import subprocess

from harness import call, eventually

OLD = "c3RvcmUta2V5LWZvci10ZXN0cy0zMi1vY3RldHMhISE="
NEW = base64.b64encode(bytes(range(32))).decode()


def told(gateway, *words):
    code, out, err = gateway.command("store", *words, "--json")
    assert code == 0, (code, out, err)
    return json.loads(out)


def files(gateway):
    found = {path.name: path.read_bytes() for path in gateway.folder.glob("tokens.db*") if not path.name.endswith(".key")}
    assert found
    return found


def spellings(text):
    octets = text.encode()
    yield from (octets, octets.hex().encode(), octets.hex().upper().encode(), octets[::-1], text.encode("utf-16-le"))
    # Base 64 at each of its three alignments, without the ends that depend on the neighbours.
    for shift in range(3):
        yield base64.b64encode(bytes(shift) + octets)[4:-4]


def test_a_stolen_file_shows_no_token_no_user_and_no_scope(gateway):
    gateway.oauth(route={"scopes": ["write"], "audience": "audience-of-the-api"}).start().warm("/api/employees/1")
    issued = gateway.lab.get("/secrets")
    words = [*issued, "audience-of-the-api", "scope", gateway.lab.oauth_client_id, gateway.lab.listen, "127.0.0.1", "Bearer"]
    assert issued
    # With the log that has not moved into the database yet, and after it has.
    for stop in (gateway.kill, None):
        if stop:
            stop()
        else:
            told(gateway, "compact")
        for name, data in files(gateway).items():
            for word in words:
                for spelling in spellings(word):
                    assert len(spelling) < 6 or spelling not in data, (name, word)


def test_a_stolen_file_shows_no_user_of_a_login(hot):
    hot.kill()
    for name, data in files(hot).items():
        for word in [hot.lab.user, hot.lab.client_id, hot.lab.password, *hot.lab.get("/secrets")]:
            for spelling in spellings(word):
                assert len(spelling) < 6 or spelling not in data, (name, word)


def test_the_key_is_replaced_while_it_serves(hot):
    hot.config["store"]["key"] = [hot.secret("new-key", NEW), hot.secret("store-key", OLD)]
    hot.stop()
    hot.start()
    done = told(hot, "rotate")
    assert done["is_done"] and done["resealed"] > 0 and done["damaged"] == 0, done
    assert hot.get().status == 200
    assert told(hot, "verify")["damaged"] == 0
    hot.kill()
    # The old key is not needed any more, and opens nothing.
    hot.config["store"]["key"] = hot.secret("new-key", NEW)
    hot.lab.reset(tokens=False)
    hot.lab.post("/issuer/stop")
    hot.start()
    assert hot.get().status == 200
    assert hot.lab.counts()["issuer_calls"] == 0


def test_a_key_that_waits_for_a_restart_seals_nothing_yet(hot):
    """Whoever took the old key away after a rotation that did nothing would lose every row."""
    hot.config["store"]["key"] = [hot.secret("new-key", NEW), hot.secret("store-key", OLD)]
    hot.file.write_text(json.dumps(hot.config, indent=2))
    eventually(lambda: "store" in call(hot.admin, path="/readyz").json["configuration"]["needs_restart"], what="the reload")
    code, out, err = hot.command("store", "rotate")
    assert (code, out) == (69, "") and "count from the next start on" in err, (code, out, err)
    assert told(hot, "verify")["damaged"] == 0
    hot.stop()
    hot.start()
    assert told(hot, "rotate")["resealed"] > 0


def test_a_key_of_our_own_is_replaced_too(hot):
    """Without store.key; and the new key counts from then on without a restart of the gateway."""
    hot.stop()
    for path in hot.folder.glob("tokens.db*"):
        path.unlink()
    del hot.config["store"]["key"]
    hot.start().warm()
    before = (hot.folder / "tokens.db.key").read_bytes()
    first = told(hot, "rotate")
    after = (hot.folder / "tokens.db.key").read_bytes()
    assert first["resealed"] > 0 and before != after and len(after.splitlines()) == 1
    hot.kill()
    hot.lab.reset(tokens=False)
    hot.start()
    assert hot.get().status == 200
    assert hot.lab.counts()["issuer_calls"] == 0


def test_a_refused_password_stays_refused_after_a_rotation(gateway):
    gateway.webgate(password="wrong-password-1").start()
    assert gateway.get().status == 503
    tried = gateway.lab.counts()["authenticate"]
    gateway.config["store"]["key"] = [gateway.secret("new-key", NEW), gateway.secret("store-key", OLD)]
    gateway.stop()
    gateway.file.write_text(json.dumps(gateway.config, indent=2))
    assert told(gateway, "rotate")["resealed"] > 0
    gateway.config["store"]["key"] = gateway.secret("new-key", NEW)
    gateway.start()
    answer = gateway.get()
    assert answer.status == 503 and answer.problem["type"].endswith("credential-quarantined"), answer
    assert gateway.lab.counts()["authenticate"] == tried


def test_without_a_gateway_the_file_is_opened(hot):
    hot.stop()
    assert told(hot, "verify")["rows"] > 0
    assert told(hot, "compact")["bytes"] == os.path.getsize(hot.store)
    assert told(hot, "rotate")["resealed"] == 0
    code, out, _ = hot.command("store", "verify")
    assert code == 0 and "0 damaged" in out


def test_a_damaged_row_is_told_and_left(hot):
    hot.stop()
    subprocess.run(["sqlite3", hot.store, "UPDATE rows SET expires = 7 WHERE sequence = (SELECT max(sequence) FROM rows)"], check=True)
    data = hot.store.read_bytes()
    code, out, _ = hot.command("store", "verify", "--json")
    assert code == 1 and json.loads(out)["damaged"] == 1, out
    assert hot.store.read_bytes() == data


def test_a_gateway_that_cannot_be_reached_keeps_its_file(hot):
    (hot.folder / "cardea.sock").rename(hot.folder / "elsewhere.sock")
    code, _, err = hot.command("store", "compact")
    assert code == 69 and "another process has" in err, err


def test_a_file_that_is_not_there_is_not_made(gateway):
    gateway.oauth()
    gateway.file.write_text(json.dumps(gateway.config))
    code, _, err = gateway.command("store", "verify")
    assert code == 69 and "there is no store" in err, err
    assert not gateway.store.exists()
