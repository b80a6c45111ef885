"""Promise: where the credential goes, what the path becomes and whose word counts are the route's to say; real servers see it."""

import http.cookiejar
import subprocess
import urllib.parse
import urllib.request

import pytest

from harness import eventually, executable, free_port
from wire import call

# Whatever follows is answered with what nginx or HAProxy itself understood, not with what was sent.
NGINX = """daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log warn;
events {{ worker_connections 64; }}
http {{
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5; access_log off;
  server {{
    listen {address};
    location /base/seen {{
      return 200 "uri=$request_uri|arg=$arg_key|cookie=$cookie_sid|xff=$http_x_forwarded_for|forwarded=$http_forwarded|authorization=$http_authorization|proto=$http_x_forwarded_proto";
    }}
    location /base/folder {{ return 301 http://{address}/base/folder/; }}
    location /base/folder/ {{
      add_header Set-Cookie "sid=nginx; Path=/base/; Domain=127.0.0.1; Secure; HttpOnly";
      add_header Cache-Control "max-age=60";
      return 200 "in\\n";
    }}
    location /base/elsewhere {{ return 302 https://login.example.com/?to=http://{address}/base/; }}
  }}
}}
"""

HAPROXY = """global
  maxconn 64
defaults
  mode http
  timeout connect 5s
  timeout client 20s
  timeout server 20s
frontend f
  bind {address}
  http-request return status 200 content-type text/plain lf-string "uri=%[pathq]|arg=%[url_param(key)]|cookie=%[req.cook(sid)]|xff=%[req.fhdr(x-forwarded-for)]|forwarded=%[req.fhdr(forwarded)]|authorization=%[req.fhdr(authorization)]|proto=%[req.fhdr(x-forwarded-proto)]"
"""


class Server:
    """nginx or HAProxy with one file of configuration."""

    def __init__(self, name, folder):
        self.address = f"127.0.0.1:{free_port()}"
        file = folder / f"{name}.conf"
        file.write_text((NGINX if name == "nginx" else HAPROXY).format(folder=folder, address=self.address))
        binary = executable("CARDEA_" + name.upper(), name, f"apt-get install {name}")
        extra = ["-p", str(folder), "-e", str(folder / "error.log"), "-c"] if name == "nginx" else ["-q", "-db", "-f"]
        self.process = subprocess.Popen([binary, *extra, str(file)])
        eventually(self.answers, what=f"{name} answering")

    def answers(self):
        assert self.process.poll() is None
        try:
            return call(self.address, path="/base/seen").status == 200
        except OSError:
            return False

    def close(self):
        self.process.terminate()
        self.process.wait(10)


def seen_by_server(answer):
    """What the server made of the request."""
    body = answer.body if hasattr(answer, "body") else answer.read()
    return dict(part.split("=", 1) for part in body.decode().split("|"))


@pytest.fixture(params=["nginx", "haproxy"])
def server(request, tmp_path):
    server = Server(request.param, tmp_path)
    yield server
    server.close()


@pytest.fixture
def nginx(tmp_path):
    server = Server("nginx", tmp_path)
    yield server
    server.close()




TOKEN = "token-0123456789"


def start(gateway, server, route, token=TOKEN, changes=None):
    gateway.with_identity({"static": {"value": gateway.secret("token", token)}}, changes)
    gateway.config["routes"][0].update({"to": f"http://{server.address}/base", **route})
    return gateway.start()


@pytest.mark.parametrize(
    "query", ["key=mine", "a=1&key=mine", "%6Bey=mine&KEY=mine", "key=mine;b=2", "key[]=mine&%20key=mine", ""]
)
def test_the_query_carries_our_token_and_no_other(gateway, server, query):
    # HAProxy and nginx show a parameter as it was sent: encoded, and the first of several.
    start(gateway, server, {"inject": {"query": "key"}}, token="a+b/c= &;")
    seen = seen_by_server(gateway.get(f"/seen?{query}", headers={"Authorization": "Basic bGVnYWN5"}))
    assert urllib.parse.unquote(seen["arg"]) == "a+b/c= &;"
    assert urllib.parse.parse_qs(seen["uri"].partition("?")[2])["key"] == ["a+b/c= &;"]
    assert "mine" not in seen["uri"]
    # Where no header is injected none is taken away.
    assert seen["authorization"] == "Basic bGVnYWN5"
    [line] = eventually(gateway.access, what="the record")
    assert "=a%2Bb" not in line["path"]


def test_other_bytes_of_the_query_stay(gateway, server):
    start(gateway, server, {"inject": {"query": "key"}})
    seen = seen_by_server(gateway.get("/seen?a=%zz&&b=c;d&key=x&e=%C3%A9+"))
    assert seen["uri"] == "/base/seen?a=%zz&&b=c;d&e=%C3%A9+&key=" + TOKEN


def test_the_cookie_carries_our_token_and_no_other(gateway, server):
    start(gateway, server, {"inject": {"cookie": "sid"}}, token="a+b/c=;d")
    for sent in ["sid=mine", "a=1; sid=mine; b=2", "SID=mine; %73id=mine", None]:
        seen = seen_by_server(gateway.get("/seen", headers={"Cookie": sent} if sent else {}))
        assert seen["cookie"] == "a+b/c=%3Bd"


def test_a_prefix_goes_and_comes_back(gateway, nginx):
    """A redirect and a cookie of nginx's own, followed and sent back by a client that knows neither."""
    start(gateway, nginx, {"rewrite": {"strip_prefix": "/hr"}})
    jar = http.cookiejar.CookieJar()
    client = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar), urllib.request.ProxyHandler({}))
    with client.open(f"http://{gateway.listen}/hr/folder", timeout=10) as answer:
        assert answer.url == f"http://{gateway.listen}/hr/folder/" and answer.read() == b"in\n"
        # A cache before us must not hand this to somebody whom we would not admit.
        assert answer.headers.get_all("Cache-Control") == ["max-age=60", "private"]
    assert [(cookie.name, cookie.path, cookie.secure) for cookie in jar] == [("sid", "/hr", False)]
    with client.open(f"http://{gateway.listen}/hr/seen?a", timeout=10) as answer:
        seen = seen_by_server(answer)
    assert (seen["uri"], seen["cookie"]) == ("/base/seen?a", "nginx")
    told = gateway.command("explain", "GET", f"http://{gateway.listen}/hr/seen?a")[1]
    assert f"http://{nginx.address}/base/seen?a" in told


def test_curl_follows_to_the_gateway(gateway, nginx, tmp_path):
    start(gateway, nginx, {"rewrite": {"strip_prefix": "/hr"}})
    curl = executable("CARDEA_CURL", "curl", "apt-get install curl")
    url = f"http://{gateway.listen}/hr/folder"
    arguments = ["-sL", "-c", str(tmp_path / "jar"), "-w", "%{url_effective}", url]
    done = subprocess.run([curl, *arguments], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == f"in\n{url}/"
    assert "\t/hr\tFALSE\t0\tsid\tnginx" in (tmp_path / "jar").read_text()


def test_addresses_of_others_stay(gateway, nginx):
    start(gateway, nginx, {})
    expected = f"https://login.example.com/?to=http://{nginx.address}/base/"
    assert gateway.get("/elsewhere").field("Location") == expected
    gateway.stop()
    gateway.config["routes"][0]["rewrite"] = {"response": "off"}
    gateway.start()
    assert gateway.get("/folder").field("Location") == f"http://{nginx.address}/base/folder/"


CLAIMS = {"X-Forwarded-For": "1.2.3.4", "Forwarded": "for=1.2.3.4", "X-Forwarded-Proto": "https"}


def test_a_callers_word_about_itself_is_not_passed_on(gateway, server):
    start(gateway, server, {})
    seen = seen_by_server(gateway.get("/seen", headers=CLAIMS))
    assert (seen["xff"], seen["forwarded"], seen["proto"]) == ("", "", "")


def test_a_trusted_peers_word_is_joined_with_ours(gateway, server):
    changes = {"listeners": {"l": {"address": gateway.listen, "forwarded_from": ["127.0.0.0/8"]}}}
    gateway.with_identity({"static": {"value": gateway.secret("token", TOKEN)}}, changes)
    route = {"listen": "l", "to": f"http://{server.address}/base", "forwarded": {"fields": "both", "caller": "address"}}
    gateway.config["routes"][0].update(route)
    gateway.start()
    seen = seen_by_server(gateway.get("/seen", headers=CLAIMS))
    assert (seen["xff"], seen["proto"]) == ("1.2.3.4, 127.0.0.1", "https")
    assert seen["forwarded"].startswith("for=1.2.3.4, for=127.0.0.1;host=")


def test_an_obfuscated_identifier_tells_no_address(gateway, server):
    start(gateway, server, {"forwarded": "on", "server_timing": "on"})
    answers = [gateway.get("/seen", headers=CLAIMS) for _ in range(3)]
    identifiers = {seen_by_server(answer)["forwarded"].partition(";")[0] for answer in answers}
    assert len(identifiers) == 3 and all(text.startswith("for=_") and "." not in text for text in identifiers)
    timing = answers[0].field("Server-Timing").split(", ")
    assert [part.split(";dur=")[0] for part in timing] == ["cardea-token", "cardea-connect", "cardea-upstream"]
    assert all(0 <= float(part.split(";dur=")[1]) < 5000 for part in timing)
