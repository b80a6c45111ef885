"""Promise: as long as one address of an upstream works, callers do not notice that another one does not."""

import collections
import contextlib
import subprocess

import pytest

from harness import eventually, executable
from load import Load
from peers import free_ports, haproxy, nginx

HOSTS = ["127.0.0.11", "127.0.0.12", "127.0.0.13"]


class Sites:
    """One nginx on each address, all on one port."""

    def __init__(self, folder):
        [self.port] = free_ports(1)
        self.places = [f"{host}:{self.port}" for host in HOSTS]
        self.programs = [self.make(folder / host, host) for host in HOSTS]

    def make(self, folder, host):
        block = f'server {{ listen {host}:{self.port}; location / {{ return 200 "{host}"; }} }}'
        return nginx(folder, block, [(host, self.port)])

    def close(self):
        for program in self.programs:
            program.close()


@pytest.fixture
def sites(tmp_path):
    with contextlib.closing(Sites(tmp_path)) as made:
        yield made


def serve(gateway, sites, addresses=None, route=None, host="api.test"):
    whole = gateway.route("none", f"http://{host}:{sites.port}") | {"addresses": addresses or sites.places}
    gateway.config = gateway.frame({"routes": [whole | (route or {})], "threads": 1})
    return gateway.start()


def counts(gateway, number):
    answers = [gateway.get(f"/{index}") for index in range(number)]
    assert [answer.status for answer in answers] == [200] * number, answers
    return collections.Counter(answer.body.decode() for answer in answers)


def test_the_addresses_share_the_load(gateway, sites):
    serve(gateway, sites)
    found = counts(gateway, 30)
    assert all(found[host] == 10 for host in HOSTS), found


def test_one_that_dies_is_not_noticed_and_comes_back(gateway, sites):
    serve(gateway, sites)
    counts(gateway, 6)
    sites.programs[1].die()
    found = counts(gateway, 60)
    assert set(found) == {HOSTS[0], HOSTS[2]}, found
    upstream = ("upstream", f"http://api.test:{sites.port}")
    metrics = gateway.metrics()
    assert metrics["cardea_upstream_ejections_total", (upstream,)] >= 1
    assert metrics["cardea_upstream_connects_total", (("result", "connected"), upstream)] >= 3
    sites.programs[1].start()
    eventually(lambda: HOSTS[1] in counts(gateway, 6), within=20, what="the address to be used again")


def test_all_but_one_may_be_gone(gateway, sites):
    for program in sites.programs[:2]:
        program.die()
    serve(gateway, sites)
    assert counts(gateway, 20) == {HOSTS[2]: 20}
    sites.programs[2].die()
    answer = gateway.get("/")
    assert answer.status == 502 and answer.json["type"].endswith("upstream-refused")
    sites.programs[0].start()
    # None is left out for good: the next request tries all.
    assert gateway.get("/").body.decode() == HOSTS[0]


def test_haproxy_that_ends_its_connections_hard(gateway, sites, tmp_path):
    """A server that takes a request and hangs up is left alone after three times, the others serve."""
    [port] = free_ports(1)
    section = f"frontend f\n  bind 127.0.0.14:{port}\n  http-request silent-drop"
    with contextlib.closing(haproxy(tmp_path / "haproxy", section, [("127.0.0.14", port)])):
        serve(gateway, sites, addresses=[f"127.0.0.14:{port}", sites.places[0]], route={"timeouts": {"response": "1s"}})
        answers = [gateway.get("/").status for _ in range(30)]
        assert answers.count(200) >= 14, answers


def test_a_name_with_several_addresses_and_a_dead_one(gateway, sites, tmp_path):
    """The name is in a hosts file of the gateway's own mount namespace; its first address answers nobody."""
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n127.0.0.99 many.test\n" + "".join(f"{host} many.test\n" for host in HOSTS))
    unshare = executable("CARDEA_UNSHARE", "unshare", "apt-get install util-linux")
    gateway.config = gateway.frame(
        {"routes": [gateway.route("none", f"http://many.test:{sites.port}")], "threads": 1}
    )
    wrapper = tmp_path / "in-namespace"
    wrapper.write_text(f"#!/bin/sh\nmount --bind {hosts} /etc/hosts && exec {gateway.binary} \"$@\"\n")
    wrapper.chmod(0o755)
    enter = tmp_path / "enter"
    enter.write_text(f"#!/bin/sh\nexec {unshare} --mount --map-root-user {wrapper} \"$@\"\n")
    enter.chmod(0o755)
    gateway.binary = str(enter)
    gateway.start()
    found = counts(gateway, 30)
    assert set(found) == set(HOSTS), found
    # The name loses an address: connections to it are not used again. The file is written in place, as it is bound.
    subprocess.run(["sh", "-c", f"printf '127.0.0.1 localhost\\n{HOSTS[2]} many.test\\n' > {hosts}"], check=True)
    sites.programs[0].die()
    sites.programs[1].die()
    eventually(lambda: set(counts(gateway, 10)) == {HOSTS[2]}, within=20, what="the new address alone")


def test_callers_do_not_notice_servers_that_are_killed_in_turn(gateway, sites):
    """Requests that a killed server took with it are sent once more, to another address."""
    serve(gateway, sites)
    with Load(gateway.listen, "/x", kept=4, fresh=2, pause=0.002) as load:
        load.kill_in_turn(sites.programs, rounds=9)
    assert not load.failures, load.failures[:5]
