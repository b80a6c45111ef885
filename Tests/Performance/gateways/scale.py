"""What grows: a second loop on two cores, and connections, routes, identities and users' tokens, in time and in memory."""
import contextlib
import statistics
import time

from . import accounting, growth, loads, report
from .contenders import Cardea, Envoy, HAProxy, Nginx
from .rest import StoredTokens, started
from .rows import ROWS, address

CONNECTIONS = (16, 64, 256, 1024, 4096)
ROUTES = (1, 10, 100, 1000, 5000)
IDENTITIES = (1, 10, 100, 1000)
TOKENS = (1, 10, 100, 1000, 10_000)
#: Callers of one upstream that speaks HTTP/2.
SHARING = (1, 4, 16, 64, 256)
ROUNDS = 4


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
            for _ in range(ROUNDS - 1):
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


def in_turn(kind, entries, say):
    """`entries`: (what is told of it, who, the work), all of them round by round, so that a machine whose speed drifts bends no line."""
    found = [{**told, "cpu_us": []} for told, _, _ in entries]
    for _ in range(ROUNDS):
        for entry, (_, one, work) in zip(found, entries):
            pid = one.process.pid
            before = accounting.cpu_seconds(pid)
            try:
                requests = work()
            except loads.Failed as failure:
                # Thousands of connections are not made in a second where others use the machine too.
                say(f"{kind}: {entry['who']} {entry['at']} left out of a round: {failure}")
                continue
            entry["cpu_us"].append(round((accounting.cpu_seconds(pid) - before) / requests * 1e6, 2))
            # Connections come and go: what counts is what was held with this many.
            entry["anonymous_kb"] = accounting.anonymous_kb(pid)
    for entry in found:
        say(f"{kind}: {entry}")
    return [entry for entry in found if entry["cpu_us"]]


def callers(folder, pki, programs, what, key, kinds, numbers, say):
    """All connections busy, each number with processes of its own. What is held by those that are idle is row (i)."""
    entries = []
    with contextlib.ExitStack() as stack:
        for number, kind in enumerate(kinds):
            for at, count in enumerate(numbers):
                one = kind(folder / f"{what}{count}", 23000 + 500 * number + 100 * at, pki, programs)
                one.start()
                stack.callback(one.stop)
                loads.warm(address(one, key, paced=True))
                work = lambda one=one, count=count: loads.wrk(address(one, key), 1, count)[0]
                entries.append(({"who": one.name, "at": count}, one, work))
        return in_turn(what, entries, say)


def many(folder, pki, programs, what, numbers, say):
    """As many routes as there are paths asked for, each in turn; identities are spread over 1,000 routes."""
    entries = []
    with contextlib.ExitStack() as stack:
        for at, number in enumerate(numbers):
            folder_of_one = folder / f"{what}{number}"
            one = Cardea(folder_of_one, 25000 + 100 * at, pki, programs)
            one.routes, one.identities = (number, 1) if what == "routes" else (max(IDENTITIES), number)
            addresses = folder_of_one / "addresses"
            addresses.write_text("".join(
                f"http://127.0.0.1:{one.ports['plain_plain']}/service{1 + at:05}/x\n" for at in range(max(1, min(one.routes, 1000) - 1))))
            first = started(one)
            stack.callback(one.stop)
            work = lambda addresses=addresses: loads.several(addresses, 1)
            work()
            entries.append(({"who": one.name, "at": number, "first_answer_ms": round(first, 1)}, one, work))
        return in_turn(what, entries, say)


def tokens(folder, pki, programs, say):
    """One grant for each user, all tokens in memory; callers name the users one after the other."""
    entries = []
    with contextlib.ExitStack() as stack:
        for at, number in enumerate(TOKENS):
            one = StoredTokens(folder / f"tokens{number}", 25500 + 100 * at, pki, programs)
            one.start()
            stack.callback(one.stop)
            one.fill(number)
            work = lambda one=one, number=number: loads.users(address(one, "a"), 1, number)
            entries.append(({"who": Cardea.name, "at": number}, one, work))
        return in_turn("tokens", entries, say)


def run(folder, pki, programs, document, results, say):
    began = time.monotonic()
    document["loops"] = loops(folder, pki, programs, say)
    document["connections"] = callers(folder, pki, programs, "connections", "a", (Cardea, Nginx, HAProxy), CONNECTIONS, say)
    document["sharing"] = callers(folder, pki, programs, "sharing", "d", (Cardea, HAProxy), SHARING, say)
    document["routes"] = many(folder, pki, programs, "routes", ROUTES, say)
    document["identities"] = many(folder, pki, programs, "identities", IDENTITIES, say)
    document["tokens"] = tokens(folder, pki, programs, say)
    document["rounds"], document["took_seconds"] = ROUNDS, round(time.monotonic() - began)
    print("\n".join(growth.told(document)))
    results.mkdir(parents=True, exist_ok=True)
    (results / "scale.json").write_text(report.text_of(document))
    (results / "scale.svg").write_text(growth.chart(document))
