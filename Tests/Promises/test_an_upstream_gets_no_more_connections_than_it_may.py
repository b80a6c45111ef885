"""Promise: an upstream gets no more connections than its route's limits say; who finds none waits, and too many are told so."""

import contextlib

import pytest

from harness import eventually, together
from load import Load
from peers import Authority, free_ports, nginx


@contextlib.contextmanager
def site(folder, tls=False, rest=""):
    """nginx whose /busy tells how many connections it has."""
    [port] = free_ports(1)
    listen = f"listen 127.0.0.1:{port}"
    authority = None
    if tls:
        authority = Authority(folder / "pki")
        certificate, key = authority.issue("server")
        listen += f" ssl http2; ssl_certificate {certificate}; ssl_certificate_key {key}"
    block = (
        # By a variable that is never empty: what has an empty one is not counted, and nothing would be slow.
        "limit_req_zone $server_port zone=slow:1m rate=1r/s;\n"
        f'server {{ {listen}; {rest} location / {{ return 200 "$connection"; }}'
        f" location /busy {{ stub_status; }}"
        f" location /slow {{ limit_req zone=slow burst=100; alias {folder}/; index slow; }} }}"
    )
    (folder / "slow").write_text("slow")
    with contextlib.closing(nginx(folder / "nginx", block, [("127.0.0.1", port)])):
        yield port, authority


def serve(gateway, port, authority, limits, timeouts=None):
    route = gateway.route("none", f"{'https' if authority else 'http'}://localhost:{port}") | {"limits": limits}
    route |= {"timeouts": timeouts} if timeouts else {}
    if authority:
        route |= {"tls": {"ca": [str(authority.file)]}, "http": "2"}
    gateway.config = gateway.frame({"routes": [route], "threads": 1})
    return gateway.start()


def active(gateway):
    """Connections that nginx sees, without the one that asks if there is one of its own."""
    return int(gateway.get("/busy").body.split()[2])


@pytest.mark.parametrize("tls", [False, True], ids=["h1", "h2"])
def test_many_callers_share_what_there_is(gateway, tmp_path, tls):
    with site(tmp_path, tls) as (port, authority):
        serve(gateway, port, authority, {"connections": 2})
        most = 0
        with Load(gateway.listen, "/x", kept=12, fresh=4) as load:
            for _ in range(20):
                target = load.done + 40
                eventually(lambda: load.done >= target, within=30, what="requests")
                most = max(most, active(gateway))
        assert not load.failures, load.failures[:5]
        assert 1 <= most <= 2, most
        metrics = gateway.metrics()
        upstream = ("upstream", f"https://localhost:{port}" if tls else f"http://localhost:{port}")
        states = {
            state: metrics["cardea_upstream_connections", (("state", state), upstream)] for state in ("open", "idle")
        }
        assert 1 <= sum(states.values()) <= 2 and metrics["cardea_upstream_waiters", (upstream,)] == 0, states


def test_too_many_are_told_to_come_back(gateway, tmp_path):
    with site(tmp_path) as (port, authority):
        serve(gateway, port, authority, {"connections": 1, "waiters": 2}, {"connect": "10s"})
        answers = together(12, lambda index: gateway.get("/slow/"))
        statuses = sorted(answer.status for answer in answers)
        assert set(statuses) == {200, 503} and statuses.count(200) >= 3, statuses
        refused = [answer for answer in answers if answer.status == 503]
        assert all(answer.field("Retry-After") == "1" for answer in refused)
        assert all(answer.json["type"].endswith("upstream-busy") for answer in refused)
        assert gateway.get("/x").status == 200
