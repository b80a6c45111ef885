"""Release: `cardea audit verify` follows a million records, which this page wrote as the documentation says, within seconds, and finds the
one that was changed, removed or moved."""

import hmac
import os
import resource
import subprocess

import pytest

RECORDS = 1_000_000
GROUP = 200
# Of processor time, which a busy machine does not make longer.
SECONDS = 30


def code(key, message):
    return hmac.digest(key, message, "sha256")


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """The lines of a log of many groups; beside it its first key."""
    folder = tmp_path_factory.mktemp("audit")
    first = bytes(range(32))
    (folder / "first-key").write_text(first.hex() + "\n")
    lines, key, before = [], first, bytes(32)
    for index in range(RECORDS):
        if index % GROUP == 0:
            key = code(key, b"cardea audit next 1")
        after = f',"after":"{before.hex()}"' if index == 0 else ""
        text = f'{{"number":{index + 1},"group":{index // GROUP + 1}{after},"act":"use","identity":"billing"'
        if index % GROUP == GROUP - 1:
            text += ',"group_end":true'
        before = code(key, before + text.encode())
        lines.append(f'{text},"mac":"{before.hex()}"}}\n'.encode())
    (folder / "head").write_text(f"{RECORDS}:{before.hex()}")
    return folder, lines


def verify(folder, lines):
    file = folder / "audit.log"
    file.write_bytes(b"".join(lines))
    head, key = (folder / "head").read_text(), f"file:{folder}/first-key"
    before = used()
    done = subprocess.run([os.environ["CARDEA_BIN"], "audit", "verify", "--key", key, "--head", head, file], capture_output=True, text=True)
    took = used() - before
    assert took < SECONDS, took
    return done.returncode, done.stdout + done.stderr


def used():
    """Seconds of a processor that the processes begun here have had."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_a_log_that_nobody_changed_is_good(log):
    folder, lines = log
    status, said = verify(folder, lines)
    assert status == 0 and f"{RECORDS} records, as they were written" in said, said


@pytest.mark.parametrize(
    "name, changed, words",
    [
        ("changed", lambda some: [some[0].replace(b"billing", b"bullion"), *some[1:]], "record 500001 was changed"),
        ("removed", lambda some: some[1:], "record 500001 is missing"),
        ("moved", lambda some: [some[1], some[0], *some[2:]], "record 500001 is missing"),
        ("repeated", lambda some: [some[0], *some], "belongs"),
    ],
)
def test_one_record_in_the_middle_is_missed(log, name, changed, words):
    folder, lines = log
    middle = RECORDS // 2
    status, said = verify(folder, lines[:middle] + changed(lines[middle:]))
    assert status == 1 and words in said, said


def test_one_record_cut_off_the_end_is_missed(log):
    folder, lines = log
    status, said = verify(folder, lines[:-1])
    assert status == 1 and "its end is missing" in said, said
