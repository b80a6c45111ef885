"""Promise: a token goes only to the upstream it was obtained for, and only over a connection that proved who it is."""

import pytest

from harness import Nginx, address


def nothing_was_sent(gateway, answer):
    assert answer.status == 502 and answer.problem
    counts = gateway.lab.counts()
    assert (counts["check"], counts["plain_requests"], counts["issuer_calls"]) == (0, 0, 0)


def test_an_upstream_of_an_unknown_authority(gateway, nginx):
    gateway.webgate(route={"to": f"https://{nginx.address}"}).start()
    nothing_was_sent(gateway, gateway.get())


def test_an_upstream_with_another_name(gateway, nginx):
    to = {"to": f"https://other.example:{nginx.port}", "addresses": [nginx.address], "tls": {"ca": str(nginx.ca)}}
    gateway.webgate(route=to).start()
    nothing_was_sent(gateway, gateway.get())


def test_the_right_name_at_another_address(gateway, nginx):
    to = {"to": f"https://localhost:{nginx.port}", "addresses": [nginx.address], "tls": {"ca": str(nginx.ca)}}
    gateway.webgate(route=to).start().warm()


def test_an_upstream_that_speaks_no_tls(gateway, nginx):
    gateway.webgate(route={"to": f"https://{gateway.lab.listen}", "tls": {"ca": str(nginx.ca)}}).start()
    assert gateway.get().status == 502
    assert gateway.lab.counts()["issuer_calls"] == 0
    # The handshake that reached the plain port is no malformed request of ours.
    gateway.lab.reset()


def test_a_token_of_one_upstream_is_not_sent_to_another(gateway):
    gateway.webgate(route={"match": {"path": "/hr/"}})
    gateway.config["routes"].append(gateway.route("hr", gateway.lab.plain) | {"name": "other"})
    gateway.start().warm()
    answer = gateway.get("/headers")
    assert answer.status == 200
    assert not [value for name, value in answer.json["headers"] if name.lower() == "authorization"]


def test_an_identity_is_not_used_where_the_route_says_none(gateway):
    gateway.webgate(route={"match": {"path": "/hr/"}})
    gateway.config["routes"].append(gateway.route("none", gateway.lab.plain) | {"name": "open"})
    gateway.start().warm()
    fields = gateway.get("/headers", headers={"Authorization": "Bearer of-the-caller"}).json["headers"]
    assert len([name for name, _ in fields if name.lower() == "authorization"]) == 1


def test_a_token_endpoint_is_not_followed_elsewhere(gateway):
    gateway.lab.faults(issuer_redirect=True)
    gateway.oauth(token={"acquire_timeout": "3s"}).start()
    assert gateway.get("/api/employees/1").status in (502, 503)
    assert gateway.lab.counts()["issuer_calls"] <= 2


def test_the_listener_is_on_loopback_only(hot):
    _, port = address(hot.listen)
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table][1:]
    bound = {row[1] for row in rows if row[3] == "0A" and int(row[1].split(":")[1], 16) == port}
    assert bound == {f"0100007F:{port:04X}"}
