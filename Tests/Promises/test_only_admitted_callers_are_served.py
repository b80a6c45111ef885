"""Promise: a listener serves the programs that it should, not web pages and not other names."""

import json
import os
import socket
import ssl
import stat

import pytest

from harness import eventually, free_port
from pki import Authority
from wire import address, call


@pytest.mark.parametrize("name", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "169.254.169.254"])
def test_a_host_we_do_not_serve_is_421(hot, name):
    answer = hot.get(headers={"Host": name})
    assert answer.status in (403, 421) and answer.problem
    assert hot.lab.counts()["protected_requests"] == 0


def test_our_names_are_served(hot):
    port = hot.listen.split(":")[1]
    for name in (hot.listen, f"localhost:{port}", hot.lab.listen):
        assert hot.get(headers={"Host": name}).status == 200


@pytest.fixture
def published(gateway):
    """Beyond loopback, as in a container whose port is published: the callers' place alone admits them."""

    def start(route=None, listener=None, warm=True):
        port = gateway.listen.split(":")[1]
        gateway.webgate(route=route, changes={"listeners": {"published": {"address": f"0.0.0.0:{port}"} | (listener or {})}})
        gateway.config["routes"][0]["listen"] = "published"
        gateway.start()
        if warm:
            gateway.warm()
            gateway.lab.reset(tokens=False)
        return gateway

    return start


PLACES = [{"callers": "local"}, {"callers": {"allow": ["127.0.0.0/8"]}}, {"callers": {"unsafe_open": True}}]


@pytest.mark.parametrize("route", PLACES)
def test_a_foreign_host_is_421_beyond_loopback_too(published, route):
    gateway = published(route)
    for name in ("evil.example", "EVIL.example:80", "127.0.0.1.evil.example", "1.2.3.4.5", "256.1.1.1", "localhost.evil.example", "evil."):
        answer = gateway.get(headers={"Host": name})
        assert answer.status == 421 and answer.problem, name
    assert gateway.lab.counts()["protected_requests"] == 0

    def said():
        return [line for line in gateway.events() if line["message"] == "a Host that is not served was asked for"]

    eventually(said, what="the log naming the host")
    told = said()
    assert told[0]["host"] == "evil.example" and told[0]["key"] == "hosts" and told[0]["route"] == "hr"
    for name in ("127.0.0.1", "192.0.2.7:8080", "[2001:db8::1]:8080", "localhost", "hr", "cardea:8080", socket.gethostname()):
        assert gateway.get(headers={"Host": name}).status == 200, name
    with gateway.raw() as caller:
        caller.send(b"GET /hr/rest/employees/42 HTTP/1.0\r\n\r\n")
        assert caller.answer().status == 200


def test_the_names_of_the_certificate_that_was_shown_are_served(published, tmp_path):
    """Somebody whom its authority believes says that they are ours; those of another certificate have not been shown."""
    authority = Authority(tmp_path / "pki")
    entries = []
    for name, names in (("gw.example", "DNS:gw.example,DNS:*.apps.example"), ("other.example", "DNS:other.example")):
        certificate, key = authority.leaf(name, names)
        entries.append({"certificate": str(certificate), "key": f"file:{key}"})
    gateway = published({"callers": "local"}, {"tls": entries}, warm=False)
    context = ssl.create_default_context(cafile=authority.pem)

    def status(host, called="gw.example"):
        with socket.create_connection(address(gateway.listen), timeout=15) as plain:
            with context.wrap_socket(plain, server_hostname=called) as caller:
                caller.sendall(f"GET /hr/rest/employees/42 HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
                return int(caller.makefile("rb").readline().split()[1])

    for host in ("gw.example", "GW.example:8443", "hr.apps.example"):
        assert status(host) == 200, host
    for host in ("evil.example", "gw.example.evil.example", "apps.example", "a.b.apps.example", "other.example"):
        assert status(host) == 421, host
    assert status("other.example", called="other.example") == 200
    assert status("gw.example", called="other.example") == 421


def test_hosts_name_what_else_is_served(published):
    gateway = published({"callers": "local", "hosts": "*.apps.example"}, {"hosts": ["gw.example"]})
    for name, status in (("gw.example", 200), ("hr.apps.example:8080", 200), ("apps.example", 421), ("a.b.apps.example", 421)):
        assert gateway.get(headers={"Host": name}).status == status, name


def test_any_host_when_it_is_said(published):
    gateway = published({"callers": "local"}, {"hosts": ["any"]})
    assert gateway.get(headers={"Host": "evil.example"}).status == 200


def test_a_caller_that_proves_itself_may_use_any_name_beyond_loopback(gateway):
    port = gateway.listen.split(":")[1]
    gateway.webgate(route={"listen": f"0.0.0.0:{port}", "callers": {"token": gateway.secret("caller-token", "caller-token-1234")}})
    gateway.start()
    proof = {"Authorization": "Bearer caller-token-1234"}
    assert gateway.get(headers=proof | {"Host": "gw.example"}).status == 200
    assert gateway.get(headers={"Host": "gw.example"}).status == 401


def test_check_says_who_could_not_call(gateway):
    port = gateway.listen.split(":")[1]
    gateway.webgate(route={"listen": f"0.0.0.0:{port}", "callers": "local"}).start()
    status, out, err = gateway.command("check")
    assert status == 0 and "by their place alone" in out + err and "'hosts'" in out + err


def test_every_field_about_the_page_counts(hot):
    for values in (["same-origin", "cross-site"], ["none", "same-site"]):
        assert hot.get(headers=[("Sec-Fetch-Site", value) for value in values]).status == 403
    assert hot.get(headers=[("Sec-Fetch-Site", "none"), ("Sec-Fetch-Site", "same-origin")]).status == 200


@pytest.mark.parametrize(
    "headers", [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
)
def test_a_web_page_is_403(hot, headers):
    answer = hot.get(headers=headers)
    assert answer.status == 403 and answer.problem
    assert hot.lab.counts()["protected_requests"] == 0


def test_the_very_address_that_was_called_is_no_other_site(hot):
    port = hot.listen.split(":")[1]
    for host in (hot.listen, f"localhost:{port}"):
        assert hot.get(headers={"Host": host, "Origin": f"http://{host}"}).status == 200, host
    assert hot.get(headers={"Host": "localhost:80", "Origin": "http://LOCALHOST"}).status == 200
    for origin in (f"https://{hot.listen}", f"http://localhost:{port}", "http://127.0.0.1", f"http://{hot.listen}.evil.example", "http://"):
        assert hot.get(headers={"Origin": origin}).status == 403, origin
    both = [("Origin", f"http://{hot.listen}"), ("Origin", "http://evil.example")]
    assert hot.get(headers=both).status == 403
    assert hot.get(headers={"Origin": f"http://{hot.listen}", "Sec-Fetch-Site": "cross-site"}).status == 403
    assert hot.get(headers={"Host": "evil.example", "Origin": "http://evil.example"}).status == 421


def test_where_any_host_is_served_an_origin_that_equals_it_is_none_of_ours(published):
    gateway = published({"callers": "local"}, {"hosts": ["any"]})
    assert gateway.get(headers={"Host": "evil.example", "Origin": "http://evil.example"}).status == 403


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


# --- Ways in beside the routes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("told, mode", [(None, 0o660), ("0600", 0o600), ("0666", 0o666)])
def test_a_unix_socket_is_not_for_everybody(gateway, told, mode):
    path = gateway.folder / "callers.sock"
    listener = {"address": f"unix:{path}"} | ({"socket": {"mode": told, "group": str(os.getgid())}} if told else {})
    gateway.webgate(changes={"listeners": {"own": listener}})
    gateway.config["routes"][0]["listen"] = "own"
    before = os.umask(0)
    try:
        gateway.start()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert stat.S_IMODE((gateway.folder / "cardea.sock").stat().st_mode) == 0o600


def test_idle_connections_keep_no_probe_out(gateway):
    probes = f"127.0.0.1:{free_port()}"
    gateway.webgate(changes={"admin": {"probes": probes}}).start()
    for place, path in ((probes, "/readyz"), (gateway.admin, "/status")):
        crowd = [socket.create_connection(address(place)) for _ in range(80)]
        try:
            assert call(place, path=path, timeout=5).status == 200
            # Sixteen of one address are left at most, and these for two seconds.
            eventually(lambda: all(is_over(one) for one in crowd), within=10, what="the idle connections' end")
        finally:
            for one in crowd:
                one.close()


def test_the_metrics_address_opens_nothing_else(gateway):
    """Whoever scrapes needs no way to the page; a page of another site cannot read what a scraper can."""
    metrics, secret = f"127.0.0.1:{free_port()}", "a-token-of-32-letters-or-so-long"
    gateway.webgate(changes={"admin": {"metrics": metrics, "token": gateway.secret("admin", secret)}}).start()
    answer = call(metrics, path="/metrics")
    assert answer.status == 200 and b"cardea_build_info" in answer.body
    token = {"Authorization": f"Bearer {secret}"}
    for path in ("/", "/status", "/readyz", "/livez", "/place", "/sign-in", "/metrics/", "/metrics/../status"):
        answer = call(metrics, path=path, headers=token)
        assert answer.status == 404 and b"cardea_" not in answer.body, path
    for path in ("/reset?identity=hr", "/reload", "/tokens/purge?all=true", "/store/rotate"):
        assert call(metrics, "POST", path, headers=token).status == 404, path
    assert call(metrics, "POST", "/metrics").status == 405
    assert call(metrics, path="/metrics", headers={"Host": "rebound.example"}).status == 421
    assert call(metrics, path="/metrics", headers={"Origin": "http://evil.example"}).status == 403


def is_over(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_the_page_beyond_loopback_is_for_who_brings_the_token(gateway):
    port = gateway.admin.split(":")[1]
    gateway.webgate(changes={"admin": {"listen": f"0.0.0.0:{port}"}}).start()
    for path in ("/livez", "/readyz", "/metrics"):
        assert gateway.ask(path).status == 200, path
    for path in ("/", "/status"):
        answer = gateway.ask(path)
        assert answer.status == 403 and b"admin.token" in answer.body and b"open_status" in answer.body, path
    assert gateway.command("tokens")[0] == 0
    gateway.stop()
    gateway.config["admin"]["open_status"] = True
    gateway.start()
    assert gateway.ask("/status").status == 200
    gateway.stop()
    gateway.config["admin"] |= {"open_status": False, "token": gateway.secret("admin-token", "sixteen-letters-")}
    gateway.start()
    assert gateway.ask("/status").status == 401
    assert gateway.ask("/status", headers={"Authorization": "Bearer sixteen-letters-"}).status == 200


def test_an_admin_token_that_can_be_guessed_is_refused(gateway):
    gateway.webgate(changes={"admin": {"token": gateway.secret("admin-token", "fifteen-letters")}})
    gateway.file.write_text(json.dumps(gateway.config))
    for command in ("check", "run"):
        status, out, err = gateway.command(command)
        assert status == 78 and "16 characters" in out + err, (command, status, out + err)


def test_callers_are_not_told_where_secrets_lie(gateway):
    gateway.oauth()
    gateway.start()
    path = gateway.folder / "client-secret"
    path.unlink()
    answer = gateway.get()
    assert answer.status == 503 and answer.problem["type"].endswith("secret-unreadable"), answer
    assert str(gateway.folder) not in answer.body.decode() and "client_secret" in answer.body.decode()
    eventually(lambda: str(path) in gateway.text(), what="the log naming the file")
