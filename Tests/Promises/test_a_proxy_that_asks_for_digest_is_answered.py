"""Promise: an HTTP proxy on the way that asks for Digest is answered, and never told the password; the upstream sees nothing of it."""

import concurrent.futures
import contextlib
import json

import pytest

from harness import eventually
from peers import Authority, Squid, free_ports, nginx
from scripted import Scripted, answer, get

USER, PASSWORD = "cardea", "pass-word-of-the-proxy-7"


@pytest.fixture
def squid():
    [port] = free_ports(1)
    with contextlib.closing(Squid(port, USER, PASSWORD)) as program:
        yield program


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """nginx in clear text and with TLS; it answers with the fields that reached it."""
    folder = tmp_path_factory.mktemp("site")
    authority = Authority(folder / "ca")
    certificate, key = authority.issue("server")
    plain, secure = free_ports(2)
    listens = f"listen 127.0.0.1:{plain}; listen 127.0.0.1:{secure} ssl;"
    fields = "$http_proxy_authorization|$http_authorization|$http_host|$request_uri|$request_body"
    # A body is read where it is passed on.
    block = f"""
client_max_body_size 8m; client_body_buffer_size 8m;
server {{ {listens} ssl_certificate {certificate}; ssl_certificate_key {key};
    location / {{ return 200 "{fields}"; }}
    location /length {{ proxy_pass http://127.0.0.1:{plain}/told; proxy_set_header Length $content_length; }}
    location /told {{ return 200 "$http_proxy_authorization|$http_length"; }} }}"""
    with contextlib.closing(nginx(folder / "site", block, [("127.0.0.1", plain), ("127.0.0.1", secure)])):
        yield authority, plain, secure


def settings(gateway, proxy, password=PASSWORD, digest=("md5",)):
    address = proxy if isinstance(proxy, str) else proxy.address
    secret = gateway.secret("proxy", password)
    return {"url": f"http://{address}", "username": USER, "password": secret, "digest": list(digest)}


def through(gateway, to, authority, proxy, **route):
    key = {"static": {"value": gateway.secret("value", "api-value-4")}}
    route = gateway.route("key", to) | {"tls": {"ca": str(authority.file)}, "proxy": proxy, "allow_cleartext": True} | route
    gateway.config = gateway.frame({"identities": {"key": key}, "routes": [route], "threads": 1})
    return gateway.start()


def is_refused(answer):
    return answer.status == 502 and answer.json["type"].endswith("proxy-refused")


def test_tunnels(gateway, squid, site):
    authority, _, secure = site
    through(gateway, f"https://127.0.0.1:{secure}", authority, settings(gateway, squid))
    for _ in range(5):
        parts = gateway.get("/a?b=c").body.decode().split("|")
        assert parts[:4] == ["", "api-value-4", f"127.0.0.1:{secure}", "/a?b=c"], parts
    gateway.stop()
    asked = [("TCP_DENIED/407", "CONNECT", f"127.0.0.1:{secure}"), ("TCP_TUNNEL/200", "CONNECT", f"127.0.0.1:{secure}")]
    assert eventually(lambda: len(squid.requests()) == 2 and squid.requests(), what="squid's log") == asked


def test_absolute_targets(gateway, squid, site):
    authority, plain, _ = site
    through(gateway, f"http://127.0.0.1:{plain}", authority, settings(gateway, squid))
    for _ in range(5):
        parts = gateway.get("/a?b=c").body.decode().split("|")
        assert parts[:4] == ["", "api-value-4", f"127.0.0.1:{plain}", "/a?b=c"], parts
    body = b"x" * 60_000
    answer = gateway.call("POST", "/length", body)
    assert answer.body.decode() == f"|{len(body)}", answer
    statuses = eventually(lambda: len(squid.requests()) == 7 and [result for result, _, _ in squid.requests()], what="squid's log")
    assert statuses == ["TCP_DENIED/407"] + ["TCP_MISS/200"] * 6


def test_the_first_request_may_have_a_body(gateway, squid, site):
    authority, plain, _ = site
    through(gateway, f"http://127.0.0.1:{plain}", authority, settings(gateway, squid))
    assert gateway.call("POST", "/length", b"x" * 50_000).body == b"|50000"


@pytest.mark.parametrize("body", [b"x" * 3_000_000, [b"y" * 1_000_000] * 3], ids=["length", "chunks"])
def test_the_first_request_may_have_a_body_that_is_not_kept(gateway, squid, site, body):
    authority, plain, _ = site
    through(gateway, f"http://127.0.0.1:{plain}", authority, settings(gateway, squid))
    answer = gateway.call("POST", "/length", body)
    assert answer.status == 200 and answer.body.startswith(b"|"), answer


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_wrong_password_is_tried_once_a_request(gateway, squid, site, scheme):
    authority, plain, secure = site
    port = plain if scheme == "http" else secure
    through(gateway, f"{scheme}://127.0.0.1:{port}", authority, settings(gateway, squid, "wrong-word"))
    answer = gateway.get("/")
    assert is_refused(answer) and "received-status=407" in answer.field("Proxy-Status"), answer
    assert answer.field("Proxy-Authenticate") is None
    results = eventually(lambda: len(squid.requests()) >= 2 and [result for result, _, _ in squid.requests()], what="squid's log")
    assert results == ["TCP_DENIED/407"] * 2
    gateway.secret("proxy", PASSWORD)
    eventually(lambda: gateway.get("/").status == 200, what="the new password to be used")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_algorithm_that_is_not_named_is_not_answered(gateway, squid, site, scheme):
    authority, plain, secure = site
    port = plain if scheme == "http" else secure
    through(gateway, f"{scheme}://127.0.0.1:{port}", authority, settings(gateway, squid, digest=["sha-256", "sha-512-256"]))
    assert is_refused(gateway.get("/"))
    eventually(lambda: "offers md5 alone" in gateway.text(), what="the reason in the log")
    assert [result for result, _, _ in squid.requests()] == ["TCP_DENIED/407"]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_nonces_that_end_are_replaced_unseen(gateway, site, scheme):
    authority, plain, secure = site
    port = plain if scheme == "http" else secure
    [own] = free_ports(1)
    few = ["auth_param digest nonce_max_count 3", "auth_param digest nonce_garbage_interval 1 second"]
    with contextlib.closing(Squid(own, USER, PASSWORD, few)) as squid:
        # A new tunnel for each request, so that tunnels are what nonces end under.
        through(gateway, f"{scheme}://127.0.0.1:{port}", authority, settings(gateway, squid))
        for _ in range(12):
            assert gateway.get("/close" if scheme == "https" else "/").status == 200


def test_many_at_once(gateway, squid, site):
    authority, plain, _ = site
    through(gateway, f"http://127.0.0.1:{plain}", authority, settings(gateway, squid))
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        statuses = [answer.status for answer in pool.map(lambda _: gateway.get("/"), range(200))]
    assert statuses == [200] * 200


def test_an_issuer_behind_it(gateway, squid):
    gateway.oauth()
    gateway.config["identities"]["api"]["network"] = {"proxy": settings(gateway, squid)}
    gateway.start().warm("/api/employees/1")
    results = [(result, method) for result, method, target in squid.requests() if target.endswith("/token")]
    assert results == [("TCP_DENIED/407", "POST"), ("TCP_MISS/200", "POST")], squid.requests()


def test_what_is_checked(gateway, site):
    authority, plain, _ = site
    key = {"static": {"value": gateway.secret("value", "api-value-4")}}
    cases = {
        "'digest' of 'proxy'": {"digest": ["md5"]},
        "must name an algorithm": {"digest": [], "username": USER, "password": gateway.secret("proxy", PASSWORD)},
        "sha-1": {"digest": ["sha-1"], "username": USER, "password": gateway.secret("proxy", PASSWORD)},
    }
    for words, proxy in cases.items():
        route = gateway.route("key", f"http://127.0.0.1:{plain}") | {"proxy": {"url": "http://proxy.example:3128"} | proxy}
        gateway.config = gateway.frame({"identities": {"key": key}, "routes": [route | {"allow_cleartext": True}]})
        gateway.file.write_text(json.dumps(gateway.config))
        status, output, _ = gateway.command("check")
        assert status != 0 and words in output, (words, output)


@pytest.mark.parametrize("route", [{"use": "none"}, {"on_rejected": {"replay": "never"}}, {"on_rejected": {"methods": ["GET"]}}])
def test_a_route_that_replays_nothing_loses_no_body(gateway, squid, site, route):
    authority, plain, _ = site
    through(gateway, f"http://127.0.0.1:{plain}", authority, settings(gateway, squid), **route)
    assert [gateway.call("POST", "/length", b"abc").body for _ in range(3)] == [b"|3"] * 3


def test_the_proxys_word_is_not_the_issuers(gateway, squid):
    """A password that the issuer has not seen is not spent when the proxy refuses its own."""
    gateway.oauth({"grant": "password", "username": "anna", "password": gateway.secret("anna", "anna-word-3")})
    gateway.config["identities"]["api"]["network"] = {"proxy": settings(gateway, squid, "wrong-word")}
    gateway.start()
    answer = gateway.get("/api/employees/1")
    assert answer.json["type"].endswith("issuer-unavailable") and "the proxy on the way" in answer.json["detail"], answer
    gateway.secret("proxy", PASSWORD)
    # The lab does not know the user, and says so: it has been asked now.
    eventually(lambda: "proxy" not in gateway.get("/api/employees/1").json.get("detail", "proxy"), what="the issuer to be asked")


def test_what_the_proxy_tells_us_is_not_told(gateway, site):
    """`nextnonce` and `rspauth` are the proxy's word to us, in the head and in trailers."""
    def script(peer):
        for request in peer.requests():
            if request.field("Proxy-Authorization") is None:
                peer.send(answer(b"", b'Proxy-Authenticate: Digest realm="p", nonce="n", qop="auth"', status=b"407 No"))
            else:
                peer.send(b'HTTP/1.1 200 OK\r\nProxy-Authentication-Info: nextnonce="m"\r\nTransfer-Encoding: chunked\r\n\r\n'
                          b'1\r\nx\r\n0\r\nProxy-Authentication-Info: nextnonce="o"\r\nOther: y\r\n\r\n')

    authority, plain, _ = site
    with Scripted(script) as proxy:
        through(gateway, f"http://127.0.0.1:{plain}", authority, settings(gateway, proxy.address))
        raw = gateway.raw()
        raw.send(get(gateway, "/", "TE: trailers", "Connection: close"))
        told = raw.rest()
    assert b"200 OK" in told and b"other: y" in told.lower() and b"proxy-authentication-info" not in told.lower(), told
