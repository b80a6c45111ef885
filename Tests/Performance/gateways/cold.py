"""Row (k): ten thousand callers at once, and no token yet. The issuer counts what it is asked."""
import http.server
import json
import select
import socket
import statistics
import threading
import time

from . import accounting
from .contenders import ORIGIN, TOKEN, Cardea

ISSUER = 19091


class Issuer(http.server.ThreadingHTTPServer):
    """Holds its answers until it is told to give them."""
    daemon_threads = True

    def __init__(self):
        self.grants, self.lock = 0, threading.Lock()
        self.let_go = threading.Event()
        super().__init__(("127.0.0.1", ISSUER), Answer)


class Answer(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            self.server.grants += 1
        self.server.let_go.wait(60)
        body = json.dumps({"access_token": TOKEN.removeprefix("Bearer "), "token_type": "Bearer", "expires_in": 3600}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class ColdCardea(Cardea):
    name = "cardea-cold"

    def document(self):
        document = super().document()
        self.write("secret", "s" * 20).chmod(0o600)
        document["identities"] = {"api": {
            "oauth2": {"token_url": f"http://127.0.0.1:{ISSUER}/token", "client_id": "bench",
                       "client_secret": f"file:{self.folder}/secret"},
            # The issuer answers when all callers have come, which takes longer on a busy machine.
            "token": {"acquire_timeout": "60s"}, "network": {"timeout": "60s"}}}
        document["routes"] = [{"listen": "plain-plain", "to": f"http://127.0.0.1:{ORIGIN['plain']}", "use": "api",
                               # All at once they would need as many connections to the origin as there are callers.
                               "limits": {"connections": 256, "waiters": 10_000}, "timeouts": {"connect": "60s"}}]
        document["listeners"] = {"plain-plain": document["listeners"]["plain-plain"]}
        return document


def quiet(pid, patience=30):
    """Until the gateway has nothing more to do: every caller waits for the token."""
    until, before = time.monotonic() + patience, -1.0
    while time.monotonic() < until:
        now = accounting.cpu_seconds(pid)
        if now == before:
            return
        before = now
        time.sleep(0.2)
    raise SystemExit("cold: the gateway does not come to rest while its callers wait for a token")


def once(folder, number, callers, pki, programs):
    folder = folder / f"cold{number}"
    folder.mkdir()
    gateway, issuer = ColdCardea(folder, 21600, pki, programs), Issuer()
    thread = threading.Thread(target=issuer.serve_forever, daemon=True)
    thread.start()
    sockets = {}
    try:
        gateway.start()
        pid = gateway.process.pid
        ready = select.epoll()
        before = accounting.cpu_seconds(pid)
        for _ in range(callers):
            caller = socket.create_connection(("127.0.0.1", gateway.ports["plain_plain"]), timeout=10)
            caller.sendall(b"GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n")
            ready.register(caller.fileno(), select.EPOLLIN)
            sockets[caller.fileno()] = caller
        quiet(pid)
        waiting_kb = accounting.anonymous_kb(pid)
        early = len(ready.poll(0))
        released = time.monotonic()
        issuer.let_go.set()
        statuses, times = {}, []
        while len(times) < callers and (events := ready.poll(30)):
            for descriptor, _ in events:
                answer = sockets[descriptor].recv(4096)
                times.append((time.monotonic() - released) * 1000)
                status = answer[9:12].decode("ascii", "replace")
                statuses[status] = statuses.get(status, 0) + 1
                ready.unregister(descriptor)
        used = accounting.cpu_seconds(pid) - before
        times.sort()
        return {"callers": callers, "grants": issuer.grants, "answered": len(times), "statuses": statuses, "answered_early": early,
                "anonymous_kb_waiting": waiting_kb, "cpu_us_per_caller": round(used / callers * 1e6, 1),
                "median_ms_after_grant": round(statistics.median(times), 1) if times else None,
                "last_ms_after_grant": round(times[-1], 1) if times else None}
    finally:
        issuer.let_go.set()
        for caller in sockets.values():
            caller.close()
        gateway.stop()
        issuer.shutdown()
        issuer.server_close()
        thread.join()


def cold(folder, pki, programs, callers, rounds, say):
    """A run is right with one grant, no answer before it, and 200 for every caller."""
    runs = [once(folder, number, callers, pki, programs) for number in range(rounds)]
    for run in runs:
        run["right"] = run["grants"] == 1 and run["answered_early"] == 0 and run["statuses"] == {"200": callers}
        say(f"(k) {run}")
    return runs
