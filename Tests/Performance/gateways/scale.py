"""What grows: a second loop on two cores, and connections, routes, identities and users' tokens, in time and in memory."""
import statistics
import time

from . import accounting, growth, loads, report
from .contenders import Cardea, Envoy, HAProxy, Nginx
from .rest import StoredTokens, started
from .rows import ROWS, address

CONNECTIONS = (16, 64, 256, 1024, 4096)
ROUTES = (1, 10, 100, 500, 1000, 5000)
IDENTITIES = (1, 10, 50, 200, 1000)
TOKENS = (1, 100, 1000, 10_000, 20_000)
ROUNDS = 3


def loops(folder, pki, programs, say):
    """The same work with one loop on core 0 and with two on both cores; load and origin are wherever the kernel puts them.

    On two cores the load takes what the second loop could have, so that twice the requests cannot come out. What counts is the time of a
    request: it stays where it was if the loops share nothing.
    """
    kinds = [Cardea, Nginx, HAProxy] + ([Envoy] if programs["envoy"] else [])
    found = []
    loads.CORE = "0,1"
    contenders = []
    try:
        for number, kind in enumerate(kinds):
            for count in (1, 2):
                one = kind(folder / f"loops{count}", 22000 + 200 * number + 100 * count, pki, programs)
                one.loops = count
                contenders.append(one)
                one.start(core="0" if count == 1 else "0,1")
        for key in "ac":
            row = {"key": key, "title": ROWS[key][0], "cpu_us": {}, "rps": {}, "share_of_second": {}}
            for one in contenders:
                loads.warm(address(one, key))
            for _ in range(ROUNDS):
                for one in contenders:
                    pid = one.process.pid
                    before = accounting.by_thread(pid)
                    requests, length, _ = loads.wrk(address(one, key), 1, threads=2)
                    used = sorted((after - before.get(task, 0) for task, after in accounting.by_thread(pid).items()), reverse=True)
                    name = f"{one.name} {one.loops}"
                    row["cpu_us"].setdefault(name, []).append(round(sum(used) / requests * 1e6, 2))
                    row["rps"].setdefault(name, []).append(round(requests / length))
                    if one.loops == 2:
                        row["share_of_second"].setdefault(name, []).append(round(used[1] / sum(used), 3))
            say(f"loops ({key}): { {name: statistics.median(values) for name, values in row['cpu_us'].items()} }")
            found.append(row)
    finally:
        loads.CORE = "1"
        for one in contenders:
            one.stop()
    return found


def point(one, measure):
    """Microseconds of processor a request, and what is in memory afterwards."""
    times = []
    pid = one.process.pid
    for _ in range(ROUNDS):
        before = accounting.cpu_seconds(pid)
        requests = measure()
        times.append(round((accounting.cpu_seconds(pid) - before) / requests * 1e6, 2))
    return {"cpu_us": times, "anonymous_kb": accounting.anonymous_kb(pid)}


def connections(folder, pki, programs, say):
    """All of them busy. What is held by those that are idle is row (i)."""
    found = []
    for number, kind in enumerate((Cardea, Nginx, HAProxy)):
        one = kind(folder / "connections", 23000 + 100 * number, pki, programs)
        one.start()
        try:
            loads.warm(address(one, "a"))
            for count in CONNECTIONS:
                found.append({"who": one.name, "at": count} | point(one, lambda: loads.wrk(address(one, "a"), 1, count)[0]))
                say(f"connections: {found[-1]}")
        finally:
            one.stop()
    return found


def many(folder, pki, programs, what, numbers, say):
    """As many routes as there are paths asked for, each in turn; identities are spread over 1,000 routes."""
    found = []
    for number in numbers:
        folder_of_one = folder / f"{what}{number}"
        one = Cardea(folder_of_one, 23500, pki, programs)
        one.routes, one.identities = (number, 1) if what == "routes" else (max(IDENTITIES), number)
        addresses = folder_of_one / "addresses"
        addresses.write_text("".join(
            f"http://127.0.0.1:{one.ports['plain_plain']}/service{1 + at:05}/x\n" for at in range(max(1, min(one.routes, 1000) - 1))))
        first = started(one)
        try:
            values = point(one, lambda: loads.several(addresses, 1))
        finally:
            one.stop()
        found.append({"who": one.name, "at": number, "first_answer_ms": round(first, 1)} | values)
        say(f"{what}: {found[-1]}")
    return found


def tokens(folder, pki, programs, say):
    """One token for each user, all in memory; callers name them one after the other."""
    found = []
    one = StoredTokens(folder / "tokens", 23600, pki, programs)
    one.users = max(TOKENS)
    one.start()
    try:
        for number in TOKENS:
            one.fill(number)
            found.append({"who": one.name, "at": number} | point(one, lambda: loads.users(address(one, "a"), 1, number)))
            say(f"tokens: {found[-1]}")
    finally:
        one.stop()
    for entry, number in ((found[-1], max(TOKENS)),):
        entry["first_answer_ms"] = round(started(one, "X-User: user0"), 1)
        one.stop()
    return found


def run(folder, pki, programs, document, results, say):
    began = time.monotonic()
    document["loops"] = loops(folder, pki, programs, say)
    document["connections"] = connections(folder, pki, programs, say)
    document["routes"] = many(folder, pki, programs, "routes", ROUTES, say)
    document["identities"] = many(folder, pki, programs, "identities", IDENTITIES, say)
    document["tokens"] = tokens(folder, pki, programs, say)
    document["rounds"], document["took_seconds"] = ROUNDS, round(time.monotonic() - began)
    print("\n".join(growth.told(document)))
    results.mkdir(parents=True, exist_ok=True)
    (results / "scale.json").write_text(report.text_of(document))
    (results / "scale.svg").write_text(growth.chart(document))
