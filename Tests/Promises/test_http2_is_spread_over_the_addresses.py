"""Promise: over HTTP/2, too, the addresses of an upstream share the load, and one that dies is left alone."""

import collections
import contextlib

import pytest

from harness import eventually
from load import Load
from peers import Authority, free_ports, nginx

HOSTS = ["127.0.0.11", "127.0.0.12"]


class Sites:
    """One nginx with HTTP/2 over TLS on each address, all on one port. Each says who it is and what was spoken."""

    def __init__(self, folder):
        self.authority = Authority(folder / "pki")
        names = "DNS:api.test," + ",".join(f"IP:{host}" for host in HOSTS)
        self.certificate, self.key = self.authority.issue("server", alternative=names)
        [self.port] = free_ports(1)
        self.places = [f"{host}:{self.port}" for host in HOSTS]
        self.programs = [self.make(folder / host, host) for host in HOSTS]

    def make(self, folder, host):
        block = (
            f"server {{ listen {host}:{self.port} ssl http2; ssl_certificate {self.certificate};"
            f" ssl_certificate_key {self.key};"
            f' location / {{ return 200 "{host} $server_protocol $connection"; }} }}'
        )
        return nginx(folder, block, [(host, self.port)])

    def close(self):
        for program in self.programs:
            program.close()


@pytest.fixture
def sites(tmp_path):
    with contextlib.closing(Sites(tmp_path)) as made:
        yield made


def serve(gateway, sites):
    whole = gateway.route("none", f"https://api.test:{sites.port}")
    whole |= {"addresses": sites.places, "tls": {"ca": [str(sites.authority.file)]}, "http": "2"}
    gateway.config = gateway.frame({"routes": [whole], "threads": 1})
    return gateway.start()


def answers(gateway, number):
    found = [gateway.get(f"/{index}") for index in range(number)]
    assert [answer.status for answer in found] == [200] * number, found
    return [answer.body.decode().split() for answer in found]


def test_each_address_gets_its_share_on_one_connection(gateway, sites):
    serve(gateway, sites)
    found = answers(gateway, 40)
    assert {protocol for _, protocol, _ in found} == {"HTTP/2.0"}
    assert collections.Counter(host for host, _, _ in found) == {host: 20 for host in HOSTS}
    assert len({(host, connection) for host, _, connection in found}) == 2


def test_one_that_dies_is_not_noticed_and_comes_back(gateway, sites):
    serve(gateway, sites)
    answers(gateway, 4)
    sites.programs[0].die()
    assert {host for host, _, _ in answers(gateway, 30)} == {HOSTS[1]}
    sites.programs[0].start()
    eventually(lambda: HOSTS[0] in {host for host, _, _ in answers(gateway, 4)}, within=20, what="the address again")
    found = answers(gateway, 40)
    assert collections.Counter(host for host, _, _ in found) == {host: 20 for host in HOSTS}
    assert len({(host, connection) for host, _, connection in found}) == 2


def test_callers_do_not_notice_servers_that_are_killed_in_turn(gateway, sites):
    serve(gateway, sites)
    with Load(gateway.listen, "/x", kept=4, fresh=2, pause=0.002) as load:
        load.kill_in_turn(sites.programs, rounds=6)
    assert not load.failures, load.failures[:5]
