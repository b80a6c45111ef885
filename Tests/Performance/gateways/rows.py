"""The rows in which work is done: every contender able to do it, in turn, round by round."""
import statistics
import time

from . import accounting, loads, report
from .contenders import Relay

#: key: title, way, path, load
ROWS = {
    "a": ("1.1 to 1.1, kept connections", "plain_plain", "/small", "wrk"),
    "b": ("1.1 to 1.1, a connection each", "plain_plain", "/small", "close"),
    "c": ("1.1 to TLS 1.1", "plain_tls1", "/small", "wrk"),
    "d": ("1.1 to TLS h2", "plain_tls2", "/small", "wrk"),
    "e": ("TLS h2 to 1.1, 16 × 16 streams", "tls_plain", "/small", "h2load"),
    "f": ("TLS h2 to TLS h2, 16 × 16 streams", "tls_tls2", "/small", "h2load"),
    "g": ("1.1 to 1.1, 1 MB", "plain_plain", "/1m", "wrk16"),
    "h": ("1.1 to 1.1, 64 KB", "plain_plain", "/64k", "wrk16"),
}
#: h2load holds a rate only on kept connections, and its own work is too much for the load's core at 1 MB.
PACED = "acdefh"
PACED_SECONDS = 2


def address(contender, key, paced=False):
    _, way, path, _ = ROWS[key]
    port = contender.paced_port(way) if paced else contender.ports[way]
    return f"{'https' if way.startswith('tls') else 'http'}://127.0.0.1:{port}{path}"


def able(contenders, key):
    """Who can go this way at all. The relay is the floor of (a) alone: it knows one message a read."""
    way = ROWS[key][1]
    return [one for one in contenders if way not in one.lacks and (not isinstance(one, Relay) or key == "a")]


def once(contender, key, seconds):
    """One contender on one row: microseconds of processor per request, requests a second, microseconds at p50, p99, p99.9 (of wrk)."""
    load, url, pid = ROWS[key][3], address(contender, key), contender.process.pid
    before = accounting.cpu_seconds(pid)
    if load == "h2load":
        requests, length, percentiles = loads.h2load(url, seconds)
    else:
        requests, length, percentiles = loads.wrk(url, seconds, 16 if load == "wrk16" else 64, load == "close")
    used = accounting.cpu_seconds(pid) - before
    return used / requests * 1e6, requests / length, percentiles


class Noise:
    """What disturbed a round: time of the contenders' core that went to anybody else, and time that the host took."""

    def __init__(self):
        self.others, self.length, self.stolen = 0.0, 0.0, accounting.stolen_seconds()

    def watch(self, contender, work):
        began, busy, own = time.monotonic(), accounting.busy_seconds(0), accounting.cpu_seconds(contender.process.pid)
        result = work()
        own = accounting.cpu_seconds(contender.process.pid) - own
        self.others += max(0.0, accounting.busy_seconds(0) - busy - own)
        self.length += time.monotonic() - began
        return result

    def share(self):
        return round(self.others / max(self.length, 1e-9), 3)

    def taken(self):
        return round(accounting.stolen_seconds() - self.stolen, 2)


def throughput(contenders, keys, rounds, seconds, say):
    results = []
    for key in keys:
        title = ROWS[key][0]
        row = {"key": key, "title": title, "cpu_us": {}, "rps": {}, "latency_us": {}, "others_on_core": [], "stolen": [], "failed": {}}
        present = []
        for one in able(contenders, key):
            try:
                loads.warm(address(one, key, paced=True))
                present.append(one)
            except loads.Failed as failure:
                say(f"({key}) {one.name} cannot: {failure}")
                row["failed"][one.name] = str(failure)
        for _ in range(rounds):
            noise = Noise()
            for one in list(present):
                try:
                    cpu, rate, percentiles = noise.watch(one, lambda: once(one, key, seconds))
                except loads.Failed as failure:
                    # Ratios need a value in each round: who fails once is no contender of this row, and the report says so.
                    say(f"({key}) {one.name} failed: {failure}")
                    row["failed"][one.name] = str(failure)
                    present.remove(one)
                    for kind in ("cpu_us", "rps", "latency_us"):
                        row[kind].pop(one.name, None)
                    continue
                row["cpu_us"].setdefault(one.name, []).append(round(cpu, 2))
                row["rps"].setdefault(one.name, []).append(round(rate))
                if percentiles:
                    row["latency_us"].setdefault(one.name, []).append(percentiles)
            row["others_on_core"].append(noise.share())
            row["stolen"].append(noise.taken())
        middle = {name: round(statistics.median(values), 1) for name, values in row["cpu_us"].items()}
        against = report.compare(row["cpu_us"])
        say(f"({key}) {title}: {middle}" + (f"  ratio {against['ratio']:.2f} to {against['peer']}" if against else ""))
        results.append(row)
    return results


def fixed_rate(contenders, rows, keys, looks, rounds, say):
    """Latency where nobody is near the limit: a quarter of what the slowest could do, the same for all. h2load offers what is due in one
    burst every 10 ms, so at half of it the slowest would work without a rest as soon as the machine has a slow moment.

    All take part in the first `looks` rounds, and in the others Cardea and the two of its peers that had the lowest 99th percentiles:
    hiccups of the host decide a 99th percentile of two seconds, so it is the number of rounds that tells near equals apart.
    """
    results = []
    for row in rows:
        key = row["key"]
        names = [name for name in row["rps"] if name != report.FLOOR]
        if key not in keys or not names:
            continue
        rate = int(min(statistics.median(row["rps"][name]) for name in names) / 4)
        http1 = not ROWS[key][1].startswith("tls")
        connections = {"wrk16": 16, "h2load": 16}.get(ROWS[key][3], 64)
        found = {"key": key, "title": row["title"], "offered": rate, "reached": {}, "p50_us": {}, "p99_us": {}, "p999_us": {}, "stolen": []}
        present = [one for one in able(contenders, key) if one.name in names]
        for number in range(rounds):
            if number == looks:
                middle = lambda one: statistics.median(found["p99_us"][one.name])
                peers = sorted((one for one in present if one.name != report.SUBJECT and one.name in found["p99_us"]), key=middle)
                present = [one for one in present if one.name == report.SUBJECT or one in peers[:2]]
            stolen = accounting.stolen_seconds()
            # To and fro, so that what drifts within a round favours nobody.
            for one in present if number % 2 == 0 else present[::-1]:
                try:
                    percentiles, reached = loads.paced(address(one, key, paced=True), PACED_SECONDS, rate, connections, http1)
                except loads.Failed as failure:
                    say(f"({key}) {one.name} failed at a fixed rate: {failure}")
                    found.setdefault("failed", {})[one.name] = str(failure)
                    continue
                for name, value in zip(("p50_us", "p99_us", "p999_us"), percentiles):
                    found[name].setdefault(one.name, []).append(value)
                found["reached"].setdefault(one.name, []).append(round(reached))
            found["stolen"].append(round(accounting.stolen_seconds() - stolen, 2))
        for name in found.get("failed", {}):
            for kind in ("p50_us", "p99_us", "p999_us", "reached"):
                found[kind].pop(name, None)
        say(f"({key}) at {rate}/s, p99: " + ", ".join(
            f"{name} {statistics.median(values):.0f}" for name, values in found["p99_us"].items()))
        results.append(found)
    return results
