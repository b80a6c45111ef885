"""Promise: an upgrade costs nobody anything: a store, a shared session and a lease of an older version count for this one, and the other way round.

What the older version left is in Tests/Golden/before (see Tests/Golden/record). Where CARDEA_BEFORE names an older binary, it runs beside this
one as well; without it this one plays both."""

import contextlib
import os
import shutil
import subprocess
import threading

import pytest

import recorded
from harness import eventually
from upgrades import upgrade


@pytest.fixture
def before():
    found = recorded.expected()
    with recorded.environment(found["first"]):
        yield found


@pytest.fixture
def api():
    with contextlib.closing(recorded.Witness()) as server:
        yield server


def state(gateway, name):
    return next(one for one in gateway.ask("/status").json["identities"] if one["name"] == name)


# --- A store -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def with_its_store(gateway):
    """Makes the gateway the heir of the recorded store, with an issuer at `issuer`."""

    def make(issuer, upstream, store="tokens.db", **rest):
        shutil.copy(recorded.FOLDER / store, gateway.store)
        os.chmod(gateway.store, 0o600)
        return recorded.configure(gateway, issuer, upstream, **rest).start()

    return make


def test_a_store_serves_without_an_issuer(with_its_store, api, before):
    """Every scheme, with the very credential that the older version sent."""
    gateway = with_its_store(recorded.somewhere(), api.address)
    assert {name: api.credential(gateway, name) for name in recorded.KEPT} == before["credentials"]
    # The issuer was not even looked for.
    assert {name: state(gateway, name)["failures"] for name in recorded.KEPT} == dict.fromkeys(recorded.KEPT, 0)
    assert gateway.ask("/status").json["store"]["state"] == "serving"


def test_a_login_of_a_person_is_still_one(with_its_store, api, before):
    gateway = with_its_store(recorded.somewhere(), api.address)
    assert state(gateway, "play")["state"] != "login_needed"


def test_a_refused_password_is_not_sent_again(with_its_store, lab, before):
    """The lab challenges as it did; an issuer that would take the password is not asked."""
    place = recorded.somewhere()
    with contextlib.closing(recorded.Issuer(place, lambda path, body: (500, {}))) as issuer:
        gateway = with_its_store(place, lab.listen)
        for _ in range(3):
            answer = recorded.ask(gateway, "refused")
            assert answer.status == 503 and answer.problem["type"].endswith("credential-quarantined"), answer
        assert not issuer.was_told(recorded.SECRETS["GOLDEN_WRONG_PASSWORD"])
        assert state(gateway, "refused")["state"] == "quarantined"


def test_a_spent_refresh_token_is_not_sent_again(with_its_store, api, before):
    """A purge takes the session; what has replaced the configured token is known all the same."""
    place = recorded.somewhere()

    def answer(path, body):
        return 200, {"access_token": "new", "token_type": "Bearer", "expires_in": 60, "refresh_token": "newer"}

    with contextlib.closing(recorded.Issuer(place, answer)) as issuer:
        gateway = with_its_store(place, api.address)
        code, _, errors = gateway.command("tokens", "purge", "rotating")
        assert code == 0, errors
        assert api.credential(gateway, "rotating") == "Bearer new"
        (sent,) = [body for path, body in issuer.sent if path == "/oauth2/rest/token"]
        assert "refresh_token=" in sent and before["first"] not in sent


# --- A shared server -----------------------------------------------------------------------------------------------------


def load(redis, form, without=(), **lives):
    """Puts the recorded contents there; kinds that stand in `lives` get this many milliseconds."""
    lines = []
    for line in (recorded.FOLDER / f"fleet-{form}.redis").read_text().splitlines():
        words = line.split(" ")
        kind = words[1].split(":")[2]
        if kind in without:
            continue
        lines.append(f"PEXPIRE {words[1]} {lives[kind]}" if words[0] == "PEXPIRE" and kind in lives else line)
    done = subprocess.run([redis.cli, "-s", str(redis.socket)], input="\n".join(lines).encode(), capture_output=True, timeout=20)
    assert done.returncode == 0 and b"ERR" not in done.stdout, done


def in_use(gateway):
    eventually(lambda: gateway.ask("/status").json["shared"]["state"] == "serving", what="the shared server in use")
    return gateway


def test_a_store_brings_back_what_a_server_has_lost(with_its_store, redis, api, before):
    """The session comes with the version that it had, so that an older copy of another gateway gives way to it."""
    gateway = in_use(with_its_store(recorded.somewhere(), api.address, "member.db", shared=redis.url))
    ((key, version),) = before["versions"].items()
    assert version > 1
    eventually(lambda: redis.do("HGET", key, "version").strip() == b"%d" % version, within=30, what="the session on the server")
    assert api.credential(gateway, "password")


@pytest.mark.parametrize(("written", "read"), [("both", "old"), ("both", "both"), ("both", "new"), ("new", "both"), ("new", "new")])
def test_tokens_of_a_fleet_are_taken(gateway, redis, api, before, written, read):
    load(redis, written, without=("l", "u"))
    gateway = in_use(recorded.configure(gateway, recorded.somewhere(), api.address, store=False, shared=redis.url, form=read).start())
    # The one whose token was withdrawn has a promise of its own.
    names = [name for name in recorded.AHEAD if name != "password"]
    assert {name: api.credential(gateway, name) for name in names} == {name: before["fleet"][written][name] for name in names}


def scripts(redis):
    """How many the server has run."""
    return int(redis.do("INFO", "commandstats").decode().split("cmdstat_eval:calls=")[1].split(",")[0])


@pytest.mark.parametrize(("written", "read"), [("both", "old"), ("both", "new"), ("new", "both")])
def test_a_lease_and_a_session_of_a_fleet_count(gateway, redis, api, before, written, read):
    """A gateway died in a step that may have spent a refresh token: nobody else makes one for as long as it keeps them away, and then with the
    token of the session that stands there."""
    place = recorded.somewhere()
    tokens = []

    def answer(path, body):
        tokens.append([part for part in body.split("&") if part.startswith("refresh_token=")])
        return 200, {"access_token": f"new-{len(tokens)}", "token_type": "Bearer", "expires_in": 60, "refresh_token": "next"}

    load(redis, written, l=600_000, u=600_000)
    held = redis.do("--scan", "--pattern", "*:[lu]:*").decode().split()
    assert {key.split(":")[2] for key in held} == {"l", "u"}
    with contextlib.closing(recorded.Issuer(place, answer)):
        made = recorded.configure(gateway, place, api.address, store=False, shared=redis.url, form=read)
        in_use(made.start())
        eventually(lambda: not redis.do("--scan", "--pattern", "*:settling").split(), within=30, what="the fleet come to rest")
        answers = []
        asking = threading.Thread(target=lambda: answers.append(recorded.ask(made, "password", timeout=60).status))
        before_it = scripts(redis)
        asking.start()
        eventually(lambda: scripts(redis) > before_it + 4, within=30, what="the gateway asking for its turn")
        assert tokens == []
        # The keys go, as they do when their time is over.
        for key in held:
            redis.do("DEL", key)
        asking.join()
        assert answers == [200]
        # The step used the refresh token of the session, not the password.
        assert len(tokens) == 1 and len(tokens[0]) == 1
    # The outcome stands for the others.
    assert redis.do("--scan", "--pattern", "*:u:*").split() == []


def test_attempts_of_a_fleet_count(gateway, redis, lab, before):
    place = recorded.somewhere()
    with contextlib.closing(recorded.Issuer(place, lambda path, body: (500, {}))) as issuer:
        load(redis, "both", without=("l", "u"))
        made = recorded.configure(gateway, place, lab.listen, store=False, shared=redis.url)
        in_use(made.start())
        answers = ["the mark"]

        def marked():
            answers.append(recorded.ask(made, "refused").problem)
            return answers[-1]["type"].endswith("credential-quarantined")

        eventually(marked, every=0.3, what=answers)
        assert not issuer.was_told(recorded.SECRETS["GOLDEN_WRONG_PASSWORD"])


# --- Two binaries at a time ------------------------------------------------------------------------------------------------


@pytest.fixture
def older(gateways):
    """A gateway of the version before, where there is one."""
    made = gateways("before")
    made.binary_of_now = made.binary
    made.binary = os.environ.get("CARDEA_BEFORE", made.binary)
    return made


def join(gateway, redis):
    """Starts a gateway with a store of its own as a member of the fleet."""
    gateway.webgate()
    gateway.config["store"]["shared"] = {"url": redis.url}
    return in_use(gateway.start())


def test_both_versions_share_one_grant(gateways, older, lab, redis):
    later = join(gateways("after"), redis)
    join(older, redis)
    assert older.get().status == 200 and later.get().status == 200
    assert lab.counts()["authenticate"] == 1
    lab.post("/revoke")
    assert later.get().status == 200 and older.get().status == 200
    assert lab.counts()["authenticate"] == 1


@pytest.mark.parametrize("first", ["before", "after"])
def test_a_store_goes_from_one_version_to_the_other(gateways, older, lab, first):
    """Forwards, and back when an upgrade is undone."""
    one, other = (older, gateways("after")) if first == "before" else (gateways("after"), older)
    one.webgate().start().warm()
    one.stop()
    lab.reset(tokens=False)
    other.webgate()
    other.config["store"]["path"] = str(one.store)
    other.start()
    assert other.get().status == 200
    assert lab.counts()["issuer_calls"] == 0
    other.stop()


def test_a_running_gateway_becomes_the_later_version(orphans, older, lab, tmp_path):
    """The program is replaced, as a release does it, and the process hands over its sockets and its store."""
    later, program = older.binary_of_now, tmp_path / "cardea"
    program.symlink_to(older.binary)
    older.binary = str(program)
    older.webgate().start().warm()
    lab.reset(tokens=False)
    (tmp_path / "fresh").symlink_to(later)
    os.replace(tmp_path / "fresh", program)
    old = upgrade(older)
    assert older.get().status == 200
    assert lab.counts()["issuer_calls"] == 0
    assert old.wait(20) == 0
    assert os.path.samefile(f"/proc/{older.process.pid}/exe", program)
