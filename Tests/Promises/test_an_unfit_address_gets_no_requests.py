"""Promise: an address that active checks find unfit gets no requests until it is fit again, and the last one is never left out."""

import collections
import contextlib
import json
import pathlib
import re
import signal

import pytest

from harness import eventually
from load import Load
from peers import Authority, free_ports, nginx

HOSTS = ["127.0.0.11", "127.0.0.12"]
CHECKS = {"path": "/healthz", "interval": "100ms", "timeout": "100ms", "healthy": 2, "unhealthy": 2}


class Sites:
    """One nginx on each address, all on one port. Its /healthz is 503 where the file `ill` exists; everything else goes on."""

    def __init__(self, folder, tls=False):
        self.authority = Authority(folder / "pki") if tls else None
        if tls:
            names = "DNS:api.test," + ",".join(f"IP:{host}" for host in HOSTS)
            self.certificate, self.key = self.authority.issue("server", alternative=names)
        [self.port] = free_ports(1)
        self.places = [f"{host}:{self.port}" for host in HOSTS]
        self.folders = [pathlib.Path(folder) / host for host in HOSTS]
        self.programs = [self.make(folder, host) for folder, host in zip(self.folders, HOSTS)]

    def make(self, folder, host):
        tls = f" ssl http2; ssl_certificate {self.certificate}; ssl_certificate_key {self.key}" if self.authority else ""
        block = (
            f"log_format seen '$request_uri $status $http_authorization $server_protocol';\n"
            f"server {{ listen {host}:{self.port}{tls}; access_log {folder}/seen.log seen;"
            f' location / {{ return 200 "{host}"; }}'
            f" location = /healthz {{ if (-f {folder}/ill) {{ return 503; }} return 204; }} }}"
        )
        return nginx(folder, block, [(host, self.port)])

    def turn(self, index, ill):
        file = self.folders[index] / "ill"
        file.touch() if ill else file.unlink()

    def checks(self, index):
        """What the server saw of checks: (status, credential, protocol)."""
        lines = (self.folders[index] / "seen.log").read_text().splitlines()
        return [tuple(line.split()[1:]) for line in lines if line.startswith("/healthz ")]

    def close(self):
        for program in self.programs:
            program.close()


@pytest.fixture
def sites(tmp_path):
    with contextlib.closing(Sites(tmp_path)) as made:
        yield made


def configure(gateway, sites, route=None, health=CHECKS):
    scheme = "https" if sites.authority else "http"
    block = {"static": {"value": gateway.secret("key", "k" * 20)}}
    whole = gateway.route("api", f"{scheme}://api.test:{sites.port}")
    whole |= {"addresses": sites.places, "health": health, "allow_cleartext": True} | (route or {})
    if sites.authority:
        whole["tls"] = {"ca": [str(sites.authority.file)]}
    gateway.config = gateway.frame({"identities": {"api": block}, "routes": [whole], "threads": 2})


def edition(gateway):
    return gateway.ask("/readyz").json["configuration"]["edition"]


def reload(gateway, sites, health):
    configure(gateway, sites, health=health)
    before = edition(gateway)
    gateway.file.write_text(json.dumps(gateway.config))
    gateway.process.send_signal(signal.SIGHUP)
    eventually(lambda: edition(gateway) > before, what=f"edition after {before}")


def hosts(gateway, number=20):
    found = [gateway.get(f"/{index}") for index in range(number)]
    assert [answer.status for answer in found] == [200] * number, found
    return collections.Counter(answer.body.decode() for answer in found)


def health(gateway):
    [upstream] = gateway.ask("/status").json["upstreams"]
    return {item["address"].split(":")[0]: item for item in upstream["addresses"]}


def is_healthy(gateway, host):
    return health(gateway)[host]["healthy"]


@pytest.mark.parametrize("tls", [False, True], ids=["clear", "h2"])
def test_a_server_that_turns_503_and_comes_back(gateway, tmp_path, tls):
    with contextlib.closing(Sites(tmp_path / "sites", tls)) as sites:
        configure(gateway, sites, {"http": "2"} if tls else None)
        gateway.start()
        assert set(hosts(gateway)) == set(HOSTS)
        sites.turn(0, ill=True)
        eventually(lambda: not is_healthy(gateway, HOSTS[0]), what="the check to notice")
        # The news is on its way to two loops.
        eventually(lambda: set(hosts(gateway)) == {HOSTS[1]}, what="the loops to hear of it")
        assert set(hosts(gateway, 40)) == {HOSTS[1]}
        told = gateway.command("explain", "GET", f"http://{gateway.listen}/")[1]
        assert f"{len(HOSTS)} addresses, {len(HOSTS) - 1} up" in told
        # Where an operator looks: which one, why, and how long ago.
        assert re.search(rf"; {sites.places[0]}: last failure \d+s ago: status 503", told), told
        ill, well = health(gateway)[HOSTS[0]], health(gateway)[HOSTS[1]]
        assert ill["last_failure"] == "status 503" and 0 <= ill["last_failure_seconds_ago"] < 60
        assert "last_failure" not in well and "last_failure_seconds_ago" not in well
        assert re.search(r"gets no requests</span> <span class=\"quiet\">\d+ s ago: Status 503", gateway.ask("/").body.decode())
        metrics = gateway.metrics()
        values = {
            dict(labels)["address"].split(":")[0]: value
            for (name, labels), value in metrics.items()
            if name == "cardea_upstream_healthy"
        }
        assert values == {HOSTS[0]: 0, HOSTS[1]: 1}
        sites.turn(0, ill=False)
        eventually(lambda: is_healthy(gateway, HOSTS[0]), what="the check to notice")
        eventually(lambda: set(hosts(gateway)) == set(HOSTS), what="the loops to hear of it")
        seen = [check for index in range(2) for check in sites.checks(index)]
        assert {credential for _, credential, _ in seen} == {"-"}, "checks carry no credential"
        assert {protocol for _, _, protocol in seen} == {"HTTP/2.0" if tls else "HTTP/1.1"}


def test_the_last_one_is_never_left_out(gateway, sites):
    configure(gateway, sites)
    gateway.start()
    sites.turn(0, ill=True)
    sites.turn(1, ill=True)
    eventually(lambda: not any(is_healthy(gateway, host) for host in HOSTS), what="the checks to notice")
    with Load(gateway.listen, "/x", kept=2, fresh=1, pause=0.005) as load:
        eventually(lambda: load.done > 100, what="requests")
    assert not load.failures, load.failures[:5]
    assert set(hosts(gateway)) == set(HOSTS)


def test_a_server_that_hangs_is_unfit(gateway, sites):
    configure(gateway, sites)
    gateway.start()
    sites.programs[0].freeze()
    eventually(lambda: not is_healthy(gateway, HOSTS[0]), what="the check to notice")
    assert health(gateway)[HOSTS[0]]["last_failure"] == "no answer in time"
    eventually(lambda: hosts(gateway)[HOSTS[1]] == 20, what="the loops to hear of it")
    sites.programs[0].thaw()
    eventually(lambda: is_healthy(gateway, HOSTS[0]), what="the check to notice")


def test_checks_begin_and_end_with_a_reload(gateway, sites):
    configure(gateway, sites, health="off")
    gateway.start()
    assert gateway.ask("/status").json["upstreams"] == []
    reload(gateway, sites, CHECKS)
    eventually(lambda: len(sites.checks(0)) > 2 and len(sites.checks(1)) > 2, what="checks")
    reload(gateway, sites, "off")
    eventually(lambda: gateway.ask("/status").json["upstreams"] == [], what="their end")
    hosts(gateway)
    before = [len(sites.checks(index)) for index in range(2)]
    # Ten times the interval: the one that ran may still be written, no further one comes.
    [eventually(lambda: gateway.ask("/status").status == 200) for _ in range(50)]
    assert all(len(sites.checks(index)) <= before[index] + 1 for index in range(2))


def test_once_for_all_loops(gateway, sites):
    """The interval is the process's: two loops do not ask twice as often."""
    slow = CHECKS | {"interval": "1h", "timeout": "1s"}
    configure(gateway, sites, health=slow)
    gateway.start()
    eventually(lambda: all(item["checks"] == 1 for item in health(gateway).values()), what="the first checks")
    hosts(gateway, 50)
    assert [len(sites.checks(index)) for index in range(2)] == [1, 1]
