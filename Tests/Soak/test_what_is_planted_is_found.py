"""Each invariant holds over a history in which nothing is wrong, and breaks over the same history with one thing planted in it. An
invariant that cannot break says nothing."""

import math
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import parts  # noqa: E402
import plot  # noqa: E402
import report  # noqa: E402
from flatness import slopes  # noqa: E402
from history import CANARY, History, Told, Writer  # noqa: E402
from invariants import ALL, look  # noqa: E402
from races import NAME, Reports  # noqa: E402
from watch import leaks  # noqa: E402

RUN = {"k": "run", "t": 0.0, "seed": 1, "hours": 1, "gateways": 4, "lease": 6.0, "life": 5.0, "bound": 40, "acquire": 4}
CC = {"k": "call", "g": 1, "c": "cc", "a": "A", "u": "", "how": "client_credentials", "st": 200, "whole": True}
PW = CC | {"c": "pw", "a": "P", "how": "refresh_token"}
WRONG = CC | {"c": "wrong", "a": "W", "how": "password", "s": "bad", "st": 400}
SERVE = {"k": "serve", "g": 1, "id": "x", "r": "a", "tok": "one", "ok": True, "left": 3.0}
ASK = {"k": "ask", "g": 1, "kind": "kept", "r": "a", "id": "x", "out": "whole", "st": 200}


def call(t, base=CC, took=0.1, **more):
    return base | {"t": t, "e": t + took} | more


def ask(t, took=0.1, **more):
    return ASK | {"t": t, "e": t + took} | more


def serve(t, **more):
    return SERVE | {"t": t} | more


def fault(t, e, name, *on, g=0, **x):
    return {"k": "fault", "t": t, "e": e, "n": 1, "name": name, "g": g, "on": list(on), "x": x}


def turn(t, g=1, what="turn"):
    return {"k": "step", "t": t, "g": g, "what": what, "lease": "l"}


def held(g, hours, rss=lambda hour: 30 << 20, fd=lambda hour: 50, db=lambda hour: 90_000):
    """Samples of one life, with the unrest that a real one has."""
    found = []
    for number in range(int(hours * 360)):
        hour = number / 360
        unrest = math.sin(number * 1.7)
        sizes = {"rss": rss(hour) + unrest * 300_000, "fd": fd(hour) + round(3 * unrest), "db": db(hour), "wal": 40_000 * abs(unrest)}
        found.append({"k": "sample", "t": 10.0 * number, "g": g, "pid": 7, "born": 0.0} | sizes)
    return found


# Grants every few seconds by one gateway, then by another; a rotation with its proof; a password that was refused; callers.
GOOD = [
    RUN,
    *[call(100 + 3 * n, tok=f"t{n}") for n in range(5)],
    *[call(120 + 3 * n, g=2, tok=f"u{n}") for n in range(5)],
    turn(199.9),
    call(200, PW, s="r1", new="r2", tok="p1"),
    serve(200.3, r="p", tok="p1"),
    turn(202.5),
    call(202.6, PW, s="r2", new="r3", tok="p2"),
    turn(299.9),
    turn(299.95, what="booked"),
    call(300, WRONG),
    *[serve(100.5 + n) for n in range(4)],
    *[ask(100 + n) for n in range(10)],
    {"k": "life", "t": 1.0, "g": 1, "what": "start"},
    {"k": "life", "t": 900.0, "g": 1, "what": "stopped", "status": "0"},
    {"k": "looked", "t": 950.0, "octets": 1000},
    {"k": "heal", "t": 940.0, "g": 1, "r": "a", "after": 1.0},
    *held(1, 2),
]

PLANTED = {
    "one grant for a key in a gateway": [call(103.05)],
    "one grant for a key in the fleet": [call(100.05, g=2)],
    "no spending step without a lease": [call(230, PW, s="r3", new="r4")],
    "a refresh token is not sent after its successor was readable": [turn(240), call(240.1, PW, g=2, s="r1", st=400, reused=True)],
    "a refused password is not sent again": [turn(399.9), call(400, WRONG)],
    "a token is used until it is due": [call(101)],
    "a token is shared by the fleet": [call(101, g=3)],
    "turns lead to steps": [turn(500 + n / 30) for n in range(90)],
    "a credential goes only where it belongs": [serve(101, ok=False, why="!another user's")],
    "an expired token is not sent": [serve(101, ok=False, why="expired", left=-2.0)],
    "a refused token is not sent again": [serve(110, tok="z", why="revoked"), serve(111, tok="z", why="revoked", left=2.0)],
    "every answer is whole or visibly cut": [ask(150, out="stray")],
    "nobody waits for ever": [ask(150, 60.0)],
    "memory descriptors and store are flat": held(2, 2, rss=lambda hour: (30 << 20) + hour * (5 << 20)),
    "no secret is told": [{"k": "leak", "t": 5.0, "where": "stderr"}],
    "no gateway ends by itself": [{"k": "life", "t": 50.0, "g": 1, "what": "ended", "status": "-11"}],
    "everything heals": [{"k": "heal", "t": 941.0, "g": 2, "r": "p"}],
}

# More ways in which the same invariants break.
FURTHER = [
    ("a refused password is not sent again", [turn(399.9, 2), call(400, WRONG, g=2)]),
    ("a refused password is not sent again", [fault(350, 352, "RedisWiped", "redis", "lost"), turn(399.9), call(400, WRONG)]),
    (
        "a refresh token is not sent after its successor was readable",
        [turn(210, 2), call(210.1, PW, g=2, s="q1", new="q2", tok="q"), turn(215, 3), call(215.1, PW, g=3, s="q1")],
    ),
    ("every answer is whole or visibly cut", [ask(150, out="cut")]),
    ("every answer is whole or visibly cut", [fault(149, 151, "Upgrade", "process", g=1), ask(150, out="closed")]),
    ("nobody waits for ever", [ask(150, 70.0, out="silent")]),
    ("memory descriptors and store are flat", held(2, 2, fd=lambda hour: 50 + 9 * hour)),
    ("memory descriptors and store are flat", held(2, 24, rss=lambda hour: (30 << 20) + hour * (1 << 20))),
    ("memory descriptors and store are flat", held(2, 0.8, rss=lambda hour: (30 << 20) + hour * (6 << 20))),
    ("memory descriptors and store are flat", held(2, 2, db=lambda hour: 90_000 + 300_000 * hour)),
    ("no gateway ends by itself", [{"k": "torn", "t": 5.0, "g": 1, "line": "WARNING: ThreadSanitizer: data race"}]),
    ("no gateway ends by itself", [{"k": "life", "t": 50.0, "g": 1, "what": "stopped", "status": "1"}]),
    ("no spending step without a lease", [call(230, CC, c="hr", how="register")]),
    ("no spending step without a lease", [turn(229, what="kept") | {"lease": "another"}, call(230, PW, s="r3", new="r4")]),
    ("no spending step without a lease", [turn(229), call(230, CC, c="hr", how="login")]),
    ("no spending step without a lease", [turn(229, 2), call(230, PW, s="r3", new="r4")]),
]

# What a promise does not cover is excused and not broken.
EXCUSED = [
    ("one grant for a key in the fleet", [fault(99, 101, "RedisFrozen", "redis"), call(100.05, g=2)]),
    ("one grant for a key in a gateway", [fault(98, 102, "Loss", "link", g=1), call(103.05)]),
    (
        "a refresh token is not sent after its successor was readable",
        [fault(220, 222, "RedisWiped", "redis", "lost"), turn(240, 2), call(240.1, PW, g=2, s="r1", st=400)],
    ),
    (
        "a refresh token is not sent after its successor was readable",
        [turn(210, 2), call(210.1, PW, g=2, s="q1", new="q2", tok="q", whole=False), turn(215, 3), call(215.1, PW, g=3, s="q1")],
    ),
    ("an expired token is not sent", [fault(99, 100, "Pause", "process", g=1), serve(101, left=-2.0)]),
    ("every answer is whole or visibly cut", [fault(149, 151, "Kill", "process", g=1), ask(150, out="closed")]),
    ("nobody waits for ever", [fault(150, 180, "Pause", "process", g=1), ask(150, 60.0)]),
]


def verdicts(records):
    return {verdict.name: verdict for verdict in look(Told(records))}


def test_a_good_history_holds_and_is_looked_at():
    for name, verdict in verdicts(GOOD).items():
        assert not verdict.broken, (name, verdict.broken)
        assert verdict.checked, name


def test_every_invariant_has_a_violation_planted():
    assert set(PLANTED) == {invariant.__name__.replace("_", " ") for invariant in ALL}
    assert all(invariant.__doc__ for invariant in ALL)


@pytest.mark.parametrize(("name", "records"), [*PLANTED.items(), *FURTHER])
def test_it_is_found(name, records):
    found = verdicts([*GOOD, *records])
    assert found[name].broken
    # The evidence names what was planted, where the violation is of single records.
    assert any(record in records for _, evidence in found[name].broken for record in evidence) or name.startswith(("memory", "turns"))


@pytest.mark.parametrize(("name", "records"), EXCUSED)
def test_it_is_excused(name, records):
    found = verdicts([*GOOD, *records])[name]
    assert found.excused and not found.broken


def test_a_slope_has_an_error_that_covers_it():
    found = {slope.what: slope for slope in slopes(Told([RUN, *held(2, 2, rss=lambda hour: (30 << 20) + hour * (5 << 20))]))}
    assert abs(found["rss"].hourly - (5 << 20)) < 3 * found["rss"].error + 1000
    assert abs(found["fd"].hourly) < 3 * found["fd"].error + 0.1
    assert not found["fd"].grows and found["rss"].grows


@pytest.mark.parametrize("hours", [0.8, 2, 24])
def test_what_fills_to_its_bound_is_flat(hours):
    """A heap with the peaks of storms, of which the worst so far comes more rarely each time, and a cache that is full after minutes."""
    filled = lambda hour: (30 << 20) + (1 << 20) * math.log(1 + 50 * hour) + (3 << 20) * (1 - math.exp(-20 * hour))  # noqa: E731
    verdict = verdicts([RUN, *held(1, hours, rss=filled)])["memory descriptors and store are flat"]
    assert not verdict.broken and verdict.checked == 3


def test_memory_of_a_sanitizer_is_not_judged():
    leak = held(1, 2, rss=lambda hour: (300 << 20) + hour * (50 << 20))
    verdict = verdicts([RUN | {"sanitizer": "thread"}, *leak])["memory descriptors and store are flat"]
    assert not verdict.broken and verdict.excused == 1 and verdict.checked == 2


def test_a_short_run_is_not_judged():
    verdict = verdicts([RUN, *held(1, 0.2, rss=lambda hour: (30 << 20) + hour * (50 << 20))])["memory descriptors and store are flat"]
    assert not verdict.broken and verdict.excused == 3


RACE = """==================
WARNING: ThreadSanitizer: data race (pid=7)
  Write of size 8 at 0x1 by thread T2:
    #0 one
SUMMARY: ThreadSanitizer: data race one.swift:7 in one
==================
"""


def test_a_report_is_read_once_when_it_is_whole(tmp_path):
    reports, file = Reports(tmp_path), tmp_path / f"{NAME}.7"
    file.write_text(RACE[:60])
    assert not list(reports.new())
    file.write_text(RACE + RACE[:80])
    ((line, text),) = reports.new()
    assert line == "SUMMARY: ThreadSanitizer: data race one.swift:7 in one" and "#0 one" in text
    file.write_text(RACE + RACE)
    assert len(list(reports.new())) == 1 and not list(reports.new(over=True))


def test_a_report_that_its_writer_did_not_finish_is_read_at_the_end(tmp_path):
    reports = Reports(tmp_path)
    (tmp_path / f"{NAME}.7").write_text("FATAL: ThreadSanitizer: unexpected memory mapping\n")
    assert not list(reports.new())
    assert [line for line, _ in reports.new(over=True)] == ["FATAL: ThreadSanitizer: unexpected memory mapping"]


def test_a_race_is_shown_with_its_stacks():
    torn = {"k": "torn", "t": 5.0, "g": 2, "line": "SUMMARY: a race", "report": "first\n  #0 one\n"}
    told = Told([*GOOD, torn])
    words = report.text(told, look(told), [])
    assert "SUMMARY: a race: 1 times, first of gateway 2" in words and "    #0 one" in words


@pytest.mark.parametrize("spell", [str.encode, lambda word: word.encode().hex().encode(), lambda word: word.encode()[::-1]])
def test_a_canary_is_found_however_it_is_spelled(spell):
    assert leaks(b"before " + spell(CANARY) + b" after")
    assert not leaks(b"before soakcana after")


@pytest.mark.parametrize("before", ["", "a", "ab", "abc", "client:"])
def test_a_canary_is_found_in_base64(before):
    import base64

    assert leaks(b"Basic " + base64.b64encode((before + CANARY + "-client-cc").encode()))


def test_what_is_written_is_read_again(tmp_path):
    writer = Writer(tmp_path, "some")
    for record in GOOD:
        writer.note(record["k"], record["t"], **{name: value for name, value in record.items() if name not in ("k", "t")})
    writer.close()
    # A line that a killed process left cut.
    with open(tmp_path / "cut.jsonl", "w") as file:
        file.write('{"k":"ask","t":1')
    history = History(tmp_path)
    assert len(history.all("call")) == sum(record["k"] == "call" for record in GOOD)
    assert report.write(history) == 0
    assert "Invariants:" in (tmp_path / "report.txt").read_text()
    assert (tmp_path / "soak.svg").read_text().startswith("<svg")
    assert plot.chart(history, list(slopes(history)))


assert parts
