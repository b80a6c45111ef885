"""Promise: another issuer's token is exchanged for a mobile one, which never outlives the backend that it is bound to."""

import contextlib
import shutil
import sqlite3

import pytest

from harness import eventually, together
from test_a_reload_drops_nothing import reload
from test_mobile_hub import BACKENDS, ORDERS, TRY, client, hub, problem, reached


def minted(gateway, name=None, **wish):
    """A token of the other issuer; with a name in a secret file, whose reference is returned."""
    token = gateway.lab.control_call("POST", "/hub/third_party", wish)["token"]
    return gateway.secret(name, token) if name else token


def exchange(gateway, block=None, kind="jwt", **rest):
    own = {"method": "token_exchange", "third_party_token": minted(gateway, "third-party", kind=kind, subject="mara")}
    return hub(gateway, own | (block or {}), **rest)


def at_token(gateway, auth, block=None, **rest):
    own = {"exchange_endpoint": "auth_token", "client_auth": auth}
    parts = client(gateway)
    if auth != "assertion":
        parts = {key: parts[key] for key in ("client_id", "client_secret")}
    return exchange(gateway, own | parts | (block or {}), **rest)


def rotated(gateway, **wish):
    (gateway.folder / "third-party").write_text(minted(gateway, **wish))


def exchanges(gateway):
    counts = gateway.lab.counts()
    return counts["hub_sso"] + counts["hub_exchange"]


@pytest.mark.parametrize("format", ["jwt", "saml_xml"])
def test_a_file_is_exchanged_once_for_all(gateway, format):
    exchange(gateway, {"token_format": format}, kind=format[:4].rstrip("_")).start()
    answers = together(30, lambda i: gateway.get(f"{ORDERS}/employees/{i}"))
    assert {reached(answer) for answer in answers} == {(200, BACKENDS[0], "mara")}, gateway.lab.get("/refusals")
    counts = gateway.lab.counts()
    assert (counts["hub_sso"], counts["challenge"]) == (1, 0)


@pytest.mark.parametrize("auth", ["basic", "form", "assertion"])
@pytest.mark.parametrize("grant", [{}, {"grant_type": "none"}])
def test_the_other_endpoint_takes_three_proofs_of_the_consumer(gateway, auth, grant):
    at_token(gateway, auth, grant).start()
    assert reached(gateway.get(TRY)) == (200, BACKENDS[0], "mara"), gateway.lab.get("/refusals")
    counts = gateway.lab.counts()
    assert (counts["hub_exchange"], counts["hub_token"]) == (1, 1 if auth == "assertion" else 0)


def test_a_secret_may_be_waived(gateway):
    at_token(gateway, "form", {"client_secret": None})
    del gateway.config["identities"]["orders"]["mobile_hub"]["client_secret"]
    gateway.lab.faults(hub_waives_secret=True)
    gateway.start()
    assert gateway.get(TRY).status == 200


def test_a_token_of_another_identity_is_exchanged(gateway):
    source = {
        "token_url": f"http://{gateway.lab.issuer}/token",
        "client_id": gateway.lab.oauth_client_id,
        "client_secret": gateway.secret("client-secret", gateway.lab.client_secret),
    }
    exchange(gateway, {"third_party_token": {"identity": "idp"}})
    gateway.config["identities"]["idp"] = {"oauth2": source}
    gateway.start()
    assert reached(gateway.get(TRY)) == (200, BACKENDS[0], "bearer")
    counts = gateway.lab.counts()
    assert (counts["token"], counts["hub_sso"]) == (1, 1)


# --- Callers ----------------------------------------------------------------------------------------------------------


def callers(gateway, block=None, **rest):
    own = {"method": "token_exchange"} | (block or {})
    return hub(gateway, own, route={"subject": "from_caller_token", "callers": "local"}, **rest)


def test_each_callers_own_token_is_exchanged_and_serves_nobody_else(gateway):
    callers(gateway).start()
    people = {name: minted(gateway, subject=name) for name in ("ada", "ben", "cem")}

    def ask(index):
        name = sorted(people)[index % 3]
        answer = gateway.get(f"{ORDERS}/employees/{index}", headers={"Authorization": f"Bearer {people[name]}"})
        return name, reached(answer)

    for name, found in together(30, ask):
        assert found == (200, BACKENDS[0], name)
    assert gateway.lab.counts()["hub_sso"] == 3
    assert gateway.get(TRY).status == 403
    assert gateway.lab.counts()["hub_sso"] == 3


def test_a_caller_whose_token_is_refused_harms_nobody(gateway):
    callers(gateway).start()
    good = {"Authorization": f"Bearer {minted(gateway, subject='ada')}"}
    for number in range(3):
        bad = {"Authorization": f"Bearer not-a-token-{number}"}
        assert gateway.get(TRY, headers=bad).status == 403
        assert gateway.get(TRY, headers=good).status == 200


def test_the_mobile_token_does_not_outlive_the_callers(gateway):
    callers(gateway).start()
    short = {"Authorization": f"Bearer {minted(gateway, subject='ada', life_ms=4000)}"}
    assert gateway.get(TRY, headers=short).status == 200
    # The backend says six hours.
    eventually(lambda: gateway.get(TRY, headers=short).status in (401, 403), every=0.3, what="the caller's end")


# --- Refusals ---------------------------------------------------------------------------------------------------------


def test_an_assertion_that_says_it_is_over_is_not_sent(gateway):
    exchange(gateway)
    rotated(gateway, stated_ms=0)
    gateway.start()
    for _ in range(3):
        assert gateway.get(TRY).status == 503
    assert exchanges(gateway) == 0
    rotated(gateway)
    eventually(lambda: gateway.get(TRY).status == 200, within=45, every=0.3, what="the new token in use")


@pytest.mark.parametrize("make", [exchange, lambda gateway: at_token(gateway, "basic")])
def test_an_assertion_that_is_refused_is_sent_once(gateway, make):
    make(gateway)
    # Over by the server's clock alone.
    rotated(gateway, life_ms=0, stated_ms=3_600_000)
    gateway.start()
    answers = together(20, lambda i: gateway.get(f"{ORDERS}/employees/{i}"))
    assert {answer.status for answer in answers} == {503}
    assert problem(gateway.get(TRY)) == "credential-quarantined"
    assert (exchanges(gateway), gateway.lab.counts()["hub_expired_assertions"]) == (1, 1)
    # Nor after a restart: the mark is on disk.
    gateway.kill()
    gateway.start()
    assert {gateway.get(TRY).status for _ in range(3)} == {503}
    assert exchanges(gateway) == 1
    rotated(gateway)
    eventually(lambda: gateway.get(TRY).status == 200, within=20, every=0.2, what="the new token in use")


def test_a_token_that_was_rotated_while_it_was_sent_is_no_refusal(gateway):
    token, fresh, seen = gateway.folder / "token", gateway.folder / "fresh", gateway.folder / "seen"
    token.write_text(minted(gateway, life_ms=0, stated_ms=3_600_000))
    fresh.write_text(minted(gateway))
    gateway.secrets += [token.read_text(), fresh.read_text()]
    # Each reading brings the next one.
    program = gateway.folder / "rotating"
    program.write_text(f"#!/bin/sh\nif [ -e {seen} ]; then cat {fresh}; else cat {token}; : > {seen}; fi\n")
    program.chmod(0o700)
    exchange(gateway, {"third_party_token": f"exec:{program}"}, changes={"sandbox": "off"})
    gateway.start()
    assert gateway.get(TRY).status == 200, gateway.text()
    assert exchanges(gateway) == 2


def test_an_exchange_in_trouble_is_asked_twice_more(gateway):
    exchange(gateway).start()
    gateway.lab.faults(issuer_status={"value": 502, "on": "hub_sso", "times": 2})
    assert gateway.get(TRY).status == 200
    assert exchanges(gateway) == 3


def test_a_revoked_token_is_replaced_unseen(gateway):
    exchange(gateway).start().warm(TRY)
    gateway.lab.faults(reject_tokens={"times": 1})
    assert gateway.get(TRY).status == 200
    counts = gateway.lab.counts()
    assert (counts["hub_sso"], counts["challenge"]) == (2, 1)


# --- How long ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "faults",
    [
        {"expires_in": 5},
        {"expires_in": 5, "hub_expires_string": True},
        {"no_expires_in": True, "hub_answer": "jwt"},
        {"no_expires_in": True, "hub_answer": "jwt", "hub_milliseconds": True},
        {"no_expires_in": True, "hub_answer": "saml"},
        {"expires_in": 5, "hub_no_type": True},
    ],
    ids=lambda faults: "-".join(sorted(faults)) + ("-" + faults["hub_answer"] if "hub_answer" in faults else ""),
)
def test_a_life_of_five_seconds_is_believed_in_every_form(gateway, faults):
    gateway.lab.faults(**({"hub_answer": {"value": faults["hub_answer"]}} if "hub_answer" in faults else {}))
    gateway.lab.faults(**{key: value for key, value in faults.items() if key != "hub_answer"}, token_lifetime_ms=5_000)
    exchange(gateway).start().warm(TRY)
    assert gateway.get(TRY).status == 200
    assert exchanges(gateway) == 1

    def again():
        assert gateway.get(TRY).status == 200
        return exchanges(gateway) > 1

    eventually(again, within=15, every=0.2, what="a second exchange")
    assert gateway.lab.counts()["challenge"] == 0


def test_what_is_known_of_nothing_ends_with_what_was_given(gateway):
    gateway.lab.faults(no_expires_in=True)
    exchange(gateway)
    rotated(gateway, life_ms=6_000)
    gateway.start().warm(TRY)
    rotated(gateway)

    def again():
        assert gateway.get(TRY).status == 200
        return exchanges(gateway) > 1

    eventually(again, within=15, every=0.3, what="a second exchange")


# --- Binding ----------------------------------------------------------------------------------------------------------


def access_rows(gateway):
    """In a copy, since the gateway owns its store alone."""
    folder = gateway.folder / "copy"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in gateway.folder.glob("tokens.db*"):
        if not path.name.endswith("-shm"):
            shutil.copy(path, folder / path.name)
    with contextlib.closing(sqlite3.connect(folder / "tokens.db")) as database:
        return database.execute("select count(*) from rows where kind = 1").fetchone()[0]


def test_tokens_outlive_a_restart_only_if_asked(gateway):
    for keeps in (False, True):
        gateway.lab.reset()
        exchange(gateway, {"persist_tokens": keeps}).start().warm(TRY)
        gateway.kill()
        gateway.start()
        assert gateway.get(TRY).status == 200
        assert exchanges(gateway) == (1 if keeps else 2)
        gateway.stop()
        gateway.store.unlink()


CHANGES = {
    "backend": {"backend_id": BACKENDS[1]},
    "version": {"backend_version": "2.0"},
    "base": {"base_url": None},
}


@pytest.mark.parametrize("change", sorted(CHANGES))
@pytest.mark.parametrize("way", ["reload", "restart"])
def test_a_changed_backend_is_purged_at_once(gateway, change, way):
    """A token keeps reaching the backend it was had at: one that is used after the change goes wrong without a sound."""
    exchange(gateway, {"persist_tokens": True}).start().warm(TRY)
    eventually(lambda: access_rows(gateway) == 1, what="the token in the store")
    block = gateway.config["identities"]["orders"]["mobile_hub"]
    before = dict(block)
    after = dict(CHANGES[change])
    if change == "base":
        after["base_url"] = before["base_url"].replace("127.0.0.1", "localhost")
    for values in (after, before):
        block.clear()
        block.update({**before, **values} if values is after else before)
        told = exchanges(gateway)
        if way == "reload":
            reload(gateway, gateway.config)
        else:
            gateway.kill()
            gateway.start()
        # The old row is gone before anybody asks, and does not come back with the old configuration.
        eventually(lambda: access_rows(gateway) == 0, what="an empty store")
        assert reached(gateway.get(TRY))[:2] == (200, block["backend_id"])
        assert exchanges(gateway) == told + 1
        eventually(lambda: access_rows(gateway) == 1, what="the new token in the store")
