"""Promise: a loopback listener serves local programs, not web pages and not other names."""

import base64

import pytest


@pytest.mark.parametrize("name", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "169.254.169.254"])
def test_a_host_we_do_not_serve_is_421(hot, name):
    answer = hot.get(headers={"Host": name})
    assert answer.status in (403, 421) and answer.problem
    assert hot.lab.counts()["protected_requests"] == 0


def test_our_names_are_served(hot):
    port = hot.listen.split(":")[1]
    for name in (hot.listen, f"localhost:{port}", hot.lab.listen):
        assert hot.get(headers={"Host": name}).status == 200


@pytest.mark.parametrize(
    "headers", [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
)
def test_a_web_page_is_403(hot, headers):
    answer = hot.get(headers=headers)
    assert answer.status == 403 and answer.problem
    assert hot.lab.counts()["protected_requests"] == 0


def test_browsers_when_allowed(gateway):
    gateway.webgate(route={"callers": {"browsers": True}}).start().warm()
    assert gateway.get(headers={"Origin": "https://app.example"}).status == 200


def test_an_address_that_is_not_allowed_is_403(gateway):
    gateway.webgate(route={"callers": {"allow": ["10.0.0.0/8"]}}).start()
    assert gateway.get().status == 403
    assert gateway.lab.counts()["protected_requests"] == 0


def test_no_route_is_404(gateway):
    gateway.webgate(route={"match": {"path": "/hr/"}}).start().warm()
    for path in ("/", "/other", "/hrx", "/HR/rest/employees/1"):
        answer = gateway.get(path)
        assert answer.status == 404 and answer.problem
    assert gateway.get("/hr/rest/employees/1").status == 200


def test_a_refusal_never_falls_through_to_the_next_route(gateway):
    gateway.webgate(route={"callers": {"allow": ["10.0.0.0/8"]}})
    open_ = gateway.route("hr", gateway.lab.listen) | {"name": "second"}
    gateway.config["routes"].append(open_)
    gateway.start()
    assert gateway.get().status == 403
