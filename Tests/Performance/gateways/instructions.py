"""Rows (l) and (m): what routes, identities, access log and metrics add to the work of the data loop, in instructions.

Counted by callgrind, thread by thread, as the difference between a run with many requests and one with few, so that start and end cancel
out. Instructions hardly vary with the machine's load, and show per cents that times would not. What varies is how many requests share a
turn of the loop, so the cases are counted in turn several times, and the medians are compared.
"""
import pathlib
import re
import shutil
import statistics
import subprocess
import urllib.request

from .contenders import Cardea

FEW, MANY = 200, 2200
ROUNDS = 5
#: Every caller's path belongs to a route of its own where there are many routes.
PATHS = 500


class Counted(Cardea):
    """Without an admin address: (m) adds it. The sandbox would keep callgrind from writing what it counted."""
    name = "cardea-counted"
    metrics = False

    def document(self):
        document = super().document()
        document["sandbox"] = "off"
        if not self.metrics:
            document["admin"] = "off"
        return document


def run(folder, pki, programs, count, settings):
    folder.mkdir()
    gateway = Counted(folder, 21700, pki, programs)
    for name, value in settings.items():
        setattr(gateway, name, value)
    addresses = folder / "addresses"
    port = gateway.ports["plain_plain"]
    addresses.write_text("".join(f"http://127.0.0.1:{port}/service{1 + number % PATHS:05}/x\n" for number in range(PATHS - 1)))
    gateway.start(before=["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={folder}/counts"], patience=90)
    try:
        pid = gateway.process.pid
        text = subprocess.run(["taskset", "-c", "1", "h2load", "--h1", "-t1", "-c4", f"-n{count}", f"-i{addresses}"],
                              capture_output=True, text=True, timeout=300).stdout
        if f" {count} succeeded" not in text or f"status codes: {count} 2xx" not in text:
            raise SystemExit(f"instructions: {text[-800:]}")
        if gateway.metrics:
            with urllib.request.urlopen(f"http://127.0.0.1:{gateway.admin}/metrics", timeout=60) as answer:
                if b"cardea_requests_total{" not in answer.read():
                    raise SystemExit("instructions: no request is counted in /metrics")
        # Threads have their numbers in the order in which they began, as their ids are; none of them has ended.
        tasks = sorted(pathlib.Path(f"/proc/{pid}/task").glob("*"), key=lambda task: int(task.name))
        names = ["main", *((task / "comm").read_text().strip() for task in tasks[1:])]
    finally:
        gateway.stop(120)
    counts = {}
    for number, name in enumerate(names, 1):
        # What ends with the process leaves an empty file: that is the main thread, which waits.
        if found := re.search(r"^totals: (\d+)", (folder / f"counts-{number:02}").read_text(), re.M):
            counts[name] = counts.get(name, 0) + int(found[1])
    return counts


def per_request(folder, pki, programs, settings):
    few, many = (run(folder.with_name(f"{folder.name}-{count}"), pki, programs, count, settings) for count in (FEW, MANY))
    return {name: round((many[name] - few.get(name, 0)) / (MANY - FEW), 1) for name in many}


CASES = {
    "a": ("one route, one identity", {}),
    "l": ("500 routes, 50 identities", {"routes": 500, "identities": 50}),
    "m": ("access log of every request, metrics", {"access": "all", "metrics": True}),
}


def instructions(folder, pki, programs, say):
    if not shutil.which("valgrind"):
        say("(l) and (m) left out: there is no valgrind")
        return {}
    # The debug information of today's compilers is newer than what Debian's valgrind reads.
    binary = folder / "cardea-stripped"
    shutil.copy(programs["cardea"], binary)
    subprocess.run(["strip", "-g", binary], check=True)
    rounds = {key: [] for key in CASES}
    for number in range(ROUNDS):
        for key, (_, settings) in CASES.items():
            rounds[key].append(per_request(folder / f"counted-{key}-{number}", pki, programs | {"cardea": str(binary)}, settings))
    found = {}
    for key, (title, _) in CASES.items():
        threads = {name: statistics.median(counts.get(name, 0) for counts in rounds[key]) for name in rounds[key][0]}
        found[key] = {"title": title, "loop": threads["loop-0"], "loops": [counts["loop-0"] for counts in rounds[key]], "threads": threads}
        found[key]["over_a"] = round(found[key]["loop"] / found["a"]["loop"] - 1, 4)
        say(f"({key}) {title}: {found[key]}")
    return found
