"""Promise: what was done stands in the audit log, no secret does, and whoever changes, removes or moves a record, or cuts the log, is found
out; a kill at any moment and a full disk leave a log that verifies."""

import hmac
import json
import os
import re
import shutil
import stat
from collections import Counter

import pytest

from harness import call, eventually, free_port, together
from small_disk import SmallDisk
from test_a_login_is_needed_in_time import configured, log_in, needs_login, renew  # noqa: F401
from test_each_user_has_a_token_of_his_own import Named, ask, generous, named
from test_a_rotated_token_survives_a_kill_at_every_write import traced

QUERY = "planted-in-the-query"
HEADER = "planted-in-a-header"
PATH = "planted-below-the-route"
BODY = "planted-in-the-body"


class Audited:
    """A gateway with an audit log, and the first key of it, which only the test keeps."""

    def __init__(self, gateway, folder=None, **audit):
        self.gateway = gateway
        self.log = (folder or gateway.folder) / "audit.log"
        gateway.oauth(changes={"audit": {"path": str(self.log), **audit}})
        gateway.file.write_text(json.dumps(gateway.config))
        status, out, errors = gateway.command("audit", "init")
        assert status == 0, errors
        self.key = out.strip()
        assert len(self.key) == 64 and self.key not in errors
        self.key_file = self.log.with_name("audit.log.key")
        self.reference = gateway.secret("first-key", self.key)

    def verify(self, *arguments, code=0):
        status, out, errors = self.gateway.command("audit", "verify", "--key", self.reference, "--json", *map(str, arguments))
        assert status == code, (status, out, errors)
        return json.loads(out)

    def records(self, *logs):
        return [json.loads(line) for log in logs or [self.log] if log.exists() for line in log.read_text().splitlines()]

    def acts(self):
        return [record["act"] for record in self.records()]

    def wrote(self, act, count=1):
        eventually(lambda: self.acts().count(act) >= count, what=f"{count} records of {act}")


@pytest.fixture
def audited(gateway):
    return Audited(gateway)


def test_the_first_key_is_handed_out_once_and_stays_nowhere(audited):
    files = [path for path in audited.gateway.folder.iterdir() if path.is_file() and path.name != "first-key"]
    assert files and not any(audited.key in path.read_text() for path in files)
    assert stat.S_IMODE(audited.key_file.stat().st_mode) == 0o600
    status, out, errors = audited.gateway.command("audit", "init")
    assert (status, out) == (78, "") and "is there already" in errors


def test_without_a_key_nothing_is_served(gateway):
    gateway.oauth(changes={"audit": {"path": str(gateway.folder / "audit.log")}})
    gateway.start(ready=False)
    gateway.may_exit = True
    assert gateway.process.wait(20) == 78
    assert "cardea audit init" in gateway.text()
    status, out, _ = gateway.command("check")
    assert status == 78 and "cardea audit init" in out


def test_acts_are_told_and_secrets_are_not(audited):
    gateway = audited.gateway.start()
    head = {"X-Planted": HEADER}
    answer = gateway.call("POST", f"/api/employees/{PATH}?token={QUERY}", body=BODY.encode(), headers=head)
    assert answer.status in (200, 404, 405), answer
    audited.wrote("grant")
    assert gateway.command("tokens", "purge", "api")[0] == 0
    assert gateway.get("/api/employees/1").status == 200
    assert gateway.command("reset", "api")[0] == 0
    gateway.config["log"]["level"] = "debug"
    # Put in place whole: a file that is read while it is being written is a reload that was refused, an act more.
    beside = gateway.folder / "beside.yaml"
    beside.write_text(json.dumps(gateway.config, indent=2))
    beside.replace(gateway.file)
    gateway.told(lambda event: event["message"] == "reload done")
    assert gateway.command("store", "rotate")[0] == 0
    audited.wrote("rotation")
    assert gateway.stop() == 0
    acts = audited.acts()
    assert acts[0] == "start" and acts[-1] == "stop", acts
    for act, count in {"grant": 2, "purge": 1, "reset": 1, "reload": 1, "rotation": 1}.items():
        assert acts.count(act) == count, (act, acts)
    assert audited.records()[1].keys() >= {"number", "group", "time", "act", "identity", "origin", "generation", "mac"}
    text = audited.log.read_text()
    gateway.tells_no_secret(text)
    for planted in (QUERY, HEADER, PATH, BODY, audited.key):
        assert planted not in text
    result = audited.verify()
    assert result["good"] and result["keyed"] and result["end_known"] and result["first"] == 1
    # The log has a head from the start and one from the end.
    heads = [event["head"] for event in gateway.events() if event["message"] == "audit head"]
    assert heads[-1] == result["head"]
    for head in heads:
        audited.verify("--head", head)


def code(key, message):
    return hmac.digest(key, message, "sha256")


def verified_otherwise(audited):
    """Follows the chain as the documentation tells it, without a line of ours; gives its head."""
    key, group, before, count, ended = bytes.fromhex(audited.key), 0, bytes(32), 0, True
    for line in audited.log.read_bytes().splitlines():
        record = json.loads(line)
        count += 1
        assert record["number"] == count and record["group"] == group + ended
        if record["group"] > group:
            key, group = code(key, b"cardea audit next 1"), group + 1
        before = code(key, before + line[: line.rindex(b',"mac"')])
        assert record["mac"] == before.hex(), record
        ended = record.get("group_end", False)
    assert ended
    return f"{count}:{before.hex()}"


def test_another_program_verifies_the_log(audited):
    gateway = audited.gateway.start().warm("/api/employees/1")
    assert gateway.command("reset", "api")[0] == 0
    audited.wrote("reset")
    assert gateway.stop() == 0
    assert verified_otherwise(audited) == audited.verify()["head"]


def refusals(audited):
    audited.wrote("refusal")
    for record in audited.records():
        if record["act"] == "refusal":
            assert record["identity"] == "api" and re.fullmatch("[a-z_]+", record["reason"]), record
            yield record["reason"]


def test_a_refused_secret_is_told_in_a_word(audited):
    gateway = audited.gateway
    (gateway.folder / "client-secret").write_text("a wrong one")
    gateway.secrets.append("a wrong one")
    gateway.start()
    assert gateway.get("/api/employees/1").status in (502, 503)
    assert "quarantined" in refusals(audited)


def test_an_issuer_that_fails_is_told_in_a_word(audited):
    gateway = audited.gateway
    gateway.config["identities"]["api"]["oauth2"]["token_url"] = f"http://127.0.0.1:{free_port()}/token"
    gateway.start()
    assert gateway.get("/api/employees/1").status in (502, 503, 504)
    assert set(refusals(audited)) - {"quarantined"}


def test_a_token_that_an_upstream_refuses_and_the_next_one_are_told(audited):
    gateway = audited.gateway.start().warm("/api/employees/1")
    audited.wrote("grant")
    gateway.lab.reset(tokens=True)
    assert gateway.get("/api/employees/1").status == 200
    audited.wrote("grant", 2)
    assert gateway.stop() == 0
    acts = [(record["act"], record.get("reason")) for record in audited.records() if record["act"] in ("grant", "refusal")]
    assert acts == [("grant", None), ("refusal", "upstream"), ("grant", None)], acts
    generations = [record["generation"] for record in audited.records() if record["act"] == "grant"]
    assert generations[0] < generations[1]


def test_a_renewal_is_told_as_one(audited):
    gateway = audited.gateway
    gateway.config["identities"]["api"]["token"] = {"refresh_ahead": "50%"}
    gateway.lab.faults(token_lifetime_ms=2000)
    gateway.start().warm("/api/employees/1")
    eventually(lambda: gateway.get("/api/employees/1").status == 200 and "refresh" in audited.acts(), what="the renewal")
    records = [record for record in audited.records() if record["act"] in ("grant", "refresh")]
    assert [record["act"] for record in records[:2]] == ["grant", "refresh"]
    assert {(record["identity"], record["origin"]) for record in records} == {("api", f"http://{gateway.lab.listen}")}
    assert records[0]["generation"] < records[1]["generation"]


def test_a_login_that_its_issuer_no_longer_knows_is_told(configured, provider):  # noqa: F811
    gateway = configured()
    log = gateway.folder / "audit.log"
    gateway.config["audit"] = {"path": str(log)}
    gateway.file.write_text(json.dumps(gateway.config))
    status, _, errors = gateway.command("audit", "init")
    assert status == 0, errors
    gateway.start()
    log_in(gateway, provider)
    renew(gateway, provider)
    provider.post("forget_refresh")
    assert needs_login(gateway)

    def told():
        records = [json.loads(line) for line in log.read_text().splitlines()]
        acts = [(record["act"], record.get("reason")) for record in records]
        return acts[acts.index(("login", None)) :][1:]

    eventually(lambda: ("refusal", "interaction_required") in told(), what="the refusal")
    assert ("grant", None) in told()
    log_in(gateway, provider)
    assert gateway.command("logout", "tv")[0] == 0

    def logouts():
        records = [json.loads(line) for line in log.read_text().splitlines()]
        return [record["identity"] for record in records if record["act"] == "logout"]

    assert eventually(logouts, what="the logout") == ["tv"]


# What docs/how-to/audit.md says of a user's name.
def pseudonym(key, name):
    return hmac.digest(key.encode(), b"cardea audit subject 1" + name.encode(), "sha256")[:16].hex()


def test_whoever_has_the_key_tells_a_users_records(gateway):
    key = "a key for the names of users"
    log = gateway.folder / "audit.log"
    audit = {"path": str(log), "subject_key": gateway.secret("subject-key", key)}
    gateway.file.write_text(json.dumps(gateway.frame({"audit": audit})))
    assert gateway.command("audit", "init", str(log))[0] == 0
    with named(gateway, Named(), audit=audit, **generous()):
        for user in ("anna", "bert b", "anna"):
            assert ask(gateway, user).status == 200
        gateway.may_exit = True
        assert gateway.stop() == 0
    text = log.read_text()
    told = [record["subject"] for record in map(json.loads, text.splitlines()) if record["act"] == "grant"]
    assert told == [pseudonym(key, "anna"), pseudonym(key, "bert b")]
    assert "anna" not in text and "bert" not in text


def test_every_change_is_found(audited):
    gateway = audited.gateway.start().warm("/api/employees/1")
    for _ in range(3):
        assert gateway.command("reset", "api")[0] == 0
    audited.wrote("reset", 3)
    # A record is told as soon as its group has its next key, and seen a moment before.
    eventually(lambda: head_in_metrics(gateway)[0] == len(audited.records()), what="a head of all records")
    count, digest = head_in_metrics(gateway)
    assert gateway.stop() == 0
    audited.verify("--head", f"{count}:{digest}")
    good = audited.log.read_bytes()
    lines = good.splitlines(keepends=True)
    head = audited.verify()["head"]

    def finds(changed, code=1, *arguments):
        audited.log.write_bytes(changed)
        found = audited.verify(*arguments, code=code)
        return found.get("finding")

    assert "was changed" in finds(good.replace(b'"reset"', b'"purge"', 1))
    assert "missing" in finds(b"".join(lines[:1] + lines[2:]))
    assert "missing" in finds(b"".join(lines[1:]))
    assert "missing" in finds(b"".join([lines[0], lines[2], lines[1], *lines[3:]]))
    assert "belongs" in finds(b"".join([lines[0], lines[1], lines[1], *lines[2:]]))
    assert "within a record" in finds(good[:-20])
    assert "its end is missing" in finds(b"".join(lines[:-1]))
    # Without the key file, by a head alone, where the cut is between two groups.
    os.unlink(audited.key_file)
    groups = [json.loads(line)["group"] for line in lines]
    cut = b"".join(line for line, group in zip(lines, groups) if group < groups[-1])
    assert finds(cut, 0) is None
    assert "its end is missing" in finds(cut, 1, "--head", head)
    if groups.count(groups[-1]) > 1:
        assert "has no end" in finds(b"".join(lines[:-1]))
    assert finds(good, 0, "--head", head) is None
    assert audited.verify("--head", head)["end_known"]
    # A head of an earlier time says nothing of what came behind it.
    assert not audited.verify("--head", f"1:{json.loads(lines[0])['mac']}")["end_known"]


def test_who_takes_the_key_of_today_cuts_nothing_off_yesterday(audited):
    gateway = audited.gateway.start().warm("/api/employees/1")
    together(8, lambda _: gateway.command("reset", "api"))
    audited.wrote("reset", 8)
    gateway.kill()
    records, lines = audited.records(), audited.log.read_bytes().splitlines(keepends=True)
    sizes = Counter(record["group"] for record in records)
    group = max(number for number in sizes if sizes[number] > 1)
    last = next(index for index, record in enumerate(records) if record["group"] == group)
    # All that the machine has: the key of the group behind the last one. The key of that one is on the test's machine alone, as the first
    # group's is, so the groups behind it are taken away by hand.
    key, number = bytes.fromhex(audited.key), 0
    while number < group + 1:
        key, number = code(key, b"cardea audit next 1"), number + 1
    text = b"".join(lines[: last + 1])
    audited.log.write_bytes(text)
    words = [b"cardea-audit 1", number, last + 1, records[last]["mac"], audited.log.stat().st_ino, len(text), key.hex()]
    audited.key_file.write_text(" ".join(word.decode() if isinstance(word, bytes) else str(word) for word in words) + "\n")
    assert "has no end" in audited.verify(code=1)["finding"]
    gateway.start()
    eventually(lambda: len(audited.records()) > last + 1, what="the record of the start")
    assert gateway.stop() == 0
    assert "has no end" in audited.verify(code=1)["finding"]


def head_in_metrics(gateway):
    [(key, count)] = [(key, value) for key, value in gateway.metrics().items() if key[0] == "cardea_audit_head"]
    return int(count), dict(key[1])["hash"]


def test_a_log_is_rotated_by_renaming_it(audited):
    gateway = audited.gateway.start().warm("/api/employees/1")
    first, second = (audited.log.with_name(f"audit.log.{number}") for number in (2, 1))
    for to in (first, second):
        assert gateway.command("reset", "api")[0] == 0
        audited.wrote("reset")
        os.rename(audited.log, to)
    assert gateway.command("reset", "api")[0] == 0
    audited.wrote("reset")
    assert gateway.stop() == 0
    assert audited.verify(first, second, audited.log)["first"] == 1
    assert audited.verify(second, audited.log)["first"] > 1
    assert "missing" in audited.verify(first, audited.log, code=1)["finding"]
    assert "belongs" in audited.verify(second, first, audited.log, code=1)["finding"]


def test_an_operator_without_a_gateway_is_told_too(audited):
    gateway = audited.gateway.start().warm("/api/employees/1")
    assert gateway.stop() == 0
    assert gateway.command("store", "rotate")[0] == 0
    assert audited.acts()[-1] == "rotation"
    audited.verify()


# The system calls by which a group gets to disk. A kill at a call comes before it is done.
CALLS = {"fdatasync": 6, "fsync": 6, "renameat": 4, "pwrite64": 2, "ftruncate": 1, "unlinkat": 3, "fchown": 3}


def test_a_kill_at_every_step_leaves_a_log_that_verifies(audited):
    assert shutil.which("strace"), "strace is not there: make setup"
    gateway, kills = audited.gateway, 0
    gateway.config.pop("store")
    for name, most in CALLS.items():
        for count in range(1, most + 1):
            gateway.wrapper = traced(name, count)
            gateway.start(ready=False)
            gateway.may_exit = True
            eventually(lambda: gateway.process.poll() is not None or ready(gateway), what="ready or killed")
            for _ in range(3):
                if gateway.process.poll() is None:
                    gateway.command("reset", "api")
            survived = gateway.process.poll() is None
            if survived:
                with open(f"/proc/{gateway.process.pid}/task/{gateway.process.pid}/children") as file:
                    for child in file.read().split():
                        os.kill(int(child), 15)
                survived = gateway.process.wait(20) == 0
            kills += not survived
            gateway.wrapper = []
            # The next writer heals what the killed one left.
            before = len(audited.records()) if audited.log.exists() and audited.log.read_bytes().endswith(b"\n") else 0
            gateway.start()
            eventually(lambda: len(audited.records()) > before, what="the record of the start")
            assert gateway.stop() == 0
            audited.verify()
            if survived:
                break
    assert kills >= 8, kills


def ready(gateway):
    try:
        return call(gateway.admin, path="/readyz", timeout=5).status == 200
    except OSError:
        return False


@pytest.mark.alone
def test_a_full_disk_stops_no_caller_and_the_log_goes_on_afterwards(gateway):
    with SmallDisk(gateway.folder / "disk") as disk:
        audited = Audited(gateway, disk.folder)
        gateway.start().warm("/api/employees/1")
        audited.wrote("grant")
        disk.fill()
        # The log's last block may have room: a few records fill it.
        for _ in range(40):
            assert gateway.command("reset", "api")[0] == 0
        gateway.told(lambda event: event["message"] == "audit log cannot be written")
        assert gateway.get("/api/employees/1").status == 200
        assert gateway.metrics()[("cardea_audit_writing", ())] == 0
        disk.free()
        gateway.told(lambda event: event["message"] == "audit log works again")
        assert gateway.stop() == 0
        assert audited.acts().count("reset") == 40
        audited.verify()


@pytest.mark.alone
def test_what_an_end_loses_on_a_full_disk_is_told(gateway):
    with SmallDisk(gateway.folder / "disk") as disk:
        audited = Audited(gateway, disk.folder)
        gateway.start().warm("/api/employees/1")
        audited.wrote("grant")
        disk.fill()
        for _ in range(40):
            assert gateway.command("reset", "api")[0] == 0
        gateway.told(lambda event: event["message"] == "audit log cannot be written")
        written = audited.acts().count("reset")
        assert gateway.stop() == 0
        [lost] = [event for event in gateway.events() if event["message"] == "audit records lost"]
        # With the uses of the first request and the record of the end.
        assert lost["count"] == 40 - written + 2
        disk.free()


def test_uses_are_counted_by_caller_and_minute(audited):
    gateway = audited.gateway.start()
    for _ in range(5):
        assert gateway.get("/api/employees/1").status == 200
    assert gateway.stop() == 0
    uses = [record for record in audited.records() if record["act"] == "uses"]
    assert sum(record["count"] for record in uses) == 5
    for record in uses:
        assert (record["caller"], record["identity"]) == ("127.0.0.1", "api") and record["generation"] > 0
        assert record["minute"].endswith(":00.000Z")
    audited.verify()


def test_each_use_may_be_a_record(gateway):
    audited = Audited(gateway, uses="each")
    gateway.start()
    for _ in range(5):
        assert gateway.get("/api/employees/1").status == 200
    audited.wrote("use", 5)
    assert gateway.stop() == 0
    assert audited.acts().count("use") == 5
    audited.verify()


@pytest.mark.alone
def test_without_a_place_for_its_record_no_request_is_served_where_the_file_says_so(gateway):
    with SmallDisk(gateway.folder / "disk") as disk:
        audited = Audited(gateway, disk.folder, uses="each", on_trouble="block")
        gateway.start().warm("/api/employees/1")
        audited.wrote("use")
        disk.fill()
        answer = eventually(lambda: (lambda a: a if a.status == 503 else None)(gateway.get("/api/employees/1")), what="a refusal")
        assert answer.json["type"].endswith("/audit-unavailable")
        # What is refused costs the upstream no connection each.
        before = gateway.lab.counts()["protected_connections"]
        for _ in range(30):
            assert gateway.get("/api/employees/1").status == 503
        assert gateway.lab.counts()["protected_connections"] - before < 5
        disk.free()
        eventually(lambda: gateway.get("/api/employees/1").status == 200, what="an answer again")
        assert gateway.stop() == 0
        audited.verify()
