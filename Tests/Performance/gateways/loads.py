"""The loads: wrk for HTTP/1.1, h2load for HTTP/2 and for fixed rates; both are pinned to core 1."""
import pathlib
import re
import subprocess
import tempfile

CORE = "1"
#: wrk prints no 99.9th percentile by itself.
REPORT = """done = function(summary, latency)
  io.write(string.format("RESULT %d %d %d %d %d %d %d\\n", summary.requests, summary.duration,
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9), summary.bytes))
end
"""


class Failed(Exception):
    pass


def run(command, limit):
    done = subprocess.run(["taskset", "-c", CORE, *map(str, command)], capture_output=True, text=True, timeout=limit)
    if done.returncode != 0:
        raise Failed(f"{command[0]}: {done.stderr[-500:]}{done.stdout[-500:]}")
    return done.stdout


def wrk(url, seconds, connections=64, close=False, threads=1, script_of_requests=""):
    """Requests, seconds, microseconds at p50, p99 and p99.9."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(REPORT + script_of_requests)
        script.flush()
        headers = ["-H", "Connection: close"] if close else []
        text = run(["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "-s", script.name, *headers, url],
                   seconds + 30)
    requests, duration, errors, *percentiles, _ = map(int, re.search(r"RESULT (.*)", text)[1].split())
    # A connection that the end of the run cut is no error of the proxy: wrk counts it as none either.
    if errors > 0 or requests == 0:
        raise Failed(f"{errors} of {requests} requests failed at {url}")
    return requests, duration / 1e6, percentiles


def users(url, seconds, count):
    """Each request for the next of so many users. How many were answered."""
    return wrk(url, seconds, script_of_requests=f"""
local number = 0
request = function()
  number = (number + 7919) % {count}
  return wrk.format("GET", nil, {{["X-User"] = "user" .. number}})
end
""")[0]


def several(addresses, seconds):
    """The addresses of a file, one after the other, on 64 connections. How many were answered."""
    text = run(["h2load", "--h1", "-t1", "-c64", "-D", seconds, f"-i{addresses}"], seconds + 30)
    done = int(re.search(r"status codes: (\d+) 2xx, 0 3xx, 0 4xx, 0 5xx", text)[1])
    if not done:
        raise Failed(text[-600:])
    return done


def h2load(url, seconds, connections=16, streams=16):
    text = run(["h2load", "-t1", f"-c{connections}", f"-m{streams}", "-D", seconds, url], seconds + 30)
    counts = re.search(r"requests: .* (\d+) done, (\d+) succeeded, (\d+) failed", text)
    done, succeeded, failed = map(int, counts.groups())
    bad = re.search(r"status codes: \d+ 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", text)
    if failed or done != succeeded or any(map(int, bad.groups())):
        raise Failed(f"{failed} requests failed at {url}: {text[-600:]}")
    return succeeded, float(seconds), []


def warm(url, requests=2000):
    """Connections to the origin are made, code is paged in; and whoever cannot do the work says so here."""
    http2 = url.startswith("https")
    count = 200 if url.endswith(("1m", "64k")) else requests
    text = run(["h2load", *([] if http2 else ["--h1"]), "-t1", "-c16" if http2 else "-c64", *(["-m16"] if http2 else []), f"-n{count}", url], 30)
    succeeded = int(re.search(r"status codes: (\d+) 2xx", text)[1])
    if succeeded != count:
        raise Failed(f"{count - succeeded} of {count} requests failed at {url}: {text[-600:]}")


def paced(url, seconds, rate, connections=64, http1=True):
    """Microseconds at p50, p99, p99.9 at an offered rate, and the rate that was reached.

    The first 0.3 seconds, in which connections are made, do not count. A connection of HTTP/1.1 has one request at a time: an answer that
    comes too late delays the next request of its connection, which the rate that was reached shows.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        streams = [] if http1 else ["-m16"]
        run(["h2load", *(["--h1"] if http1 else []), *streams, "-t1", f"-c{connections}", "-D", seconds,
             f"--rps={max(1, rate // connections)}", f"--log-file={log}", url], seconds + 30)
        entries = []
        for line in log.read_text().splitlines():
            began, status, microseconds = map(int, line.split("\t")[:3])
            if status != 200:
                raise Failed(f"status {status} at {url}")
            entries.append((began, microseconds))
    first = min(began for began, _ in entries) + 300_000
    times = sorted(microseconds for began, microseconds in entries if began >= first)
    if not times:
        raise Failed(f"no answer after 0.3 s at {url}")
    at = lambda share: times[min(len(times) - 1, int(len(times) * share))]
    return [at(0.5), at(0.99), at(0.999)], len(times) / (seconds - 0.3)
