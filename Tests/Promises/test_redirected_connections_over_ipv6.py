"""Promise: connections over IPv6 that the kernel redirects are served like those over IPv4, also where the caller means an address and no
name."""

import socket
import ssl
import subprocess

import pytest

from forward import TOKEN, laid_out, request, through
from harness import eventually, executable
from namespaces import as_user

OURS, THEIRS = "fd91::1", "fd91::2"
NOBODY = 65534


@pytest.fixture
def place(gateway, tmp_path):
    with laid_out(gateway, tmp_path) as made:
        made.space.address("inner", f"{OURS}/64")
        made.far.address("outer", f"{THEIRS}/64")
        folder = tmp_path / "six"
        folder.mkdir()
        pair = made.web.authority.leaf("six", f"IP:{THEIRS},DNS:api.test")
        temporary = "".join(
            f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (folder / "nginx.conf").write_text(
            f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log info; user root;"
            f"events {{}} http {{ {temporary} access_log off;"
            f"server {{ listen [{THEIRS}]:80; listen [{THEIRS}]:443 ssl; ssl_certificate {pair[0]};"
            f" ssl_certificate_key {pair[1]};"
            ' location / { return 200 "$scheme $http_host $request_uri auth=[$http_authorization]\\n"; } } }'
        )
        nginx = executable("CARDEA_NGINX", "nginx", "apt-get install nginx")
        words = ["-p", str(folder), "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]
        process = subprocess.Popen([*made.far.wrapper, nginx, *words])
        eventually(lambda: answers(80), what="nginx listening")
        yield made
        process.terminate()
        process.wait(10)


def answers(port):
    try:
        dial(port, as_root=True).close()
        return True
    except OSError:
        return False


def dial(port, as_root=False):
    if as_root:
        return socket.create_connection((THEIRS, port), timeout=10)
    with as_user(NOBODY):
        return socket.create_connection((THEIRS, port), timeout=10)


def start(place, unmatched, mode="transparent"):
    """Routes by name and by address, on a listener that IPv6 can be redirected to, or that is a proxy."""
    port = place.gateway.listen.split(":")[1]
    if mode == "transparent":
        place.space.filter(
            "table ip6 t { chain out { type nat hook output priority -100;"
            f" meta skuid {NOBODY} tcp dport {{ 80, 443 }} redirect to :{port};\n}}\n}}\n"
        )
    done = place.authority("api.test", f"[{THEIRS}]")
    assert done.returncode == 0, done.stderr
    place.gateway.config = place.gateway.frame(
        {
            "identities": {"api": {"static": {"value": place.gateway.secret("token", f"Bearer {TOKEN}")}}},
            "listeners": {
                "edge": {
                    "address": f"[::]:{port}" if mode == "transparent" else place.gateway.listen,
                    "mode": mode,
                    "unmatched": unmatched,
                    "intercept": {"ca": f"{place.ca}.pem", "hosts": ["api.test", f"[{THEIRS}]"]},
                }
            },
            "routes": [
                {
                    "name": name,
                    "listen": "edge",
                    "match": {"host": host},
                    "to": f"https://{host}",
                    "addresses": [f"[{THEIRS}]:443"],
                    "tls": {"ca": str(place.web.authority.pem)},
                    "use": "api",
                    "callers": {"allow": ["fd91::/64", "127.0.0.1"]},
                }
                for name, host in (("named", "api.test"), ("numbered", f"[{THEIRS}]"))
            ],
        }
    )
    place.gateway.start()


@pytest.mark.parametrize("host", ["api.test", f"[{THEIRS}]", f"[{THEIRS}]:80"])
def test_in_clear_text(place, host):
    start(place, "refuse")
    # What the route sends on is the authority of its own `to`.
    shown = host.removesuffix(":80")
    assert f"https {shown} /x auth=[Bearer {TOKEN}]" in through(dial(80), request(host, "/x"))


def test_opened_by_name_and_by_address(place):
    start(place, "tunnel")
    made = ssl.create_default_context(cafile=f"{place.ca}.crt")
    with made.wrap_socket(dial(443), server_hostname="api.test") as opened:
        assert f"https api.test / auth=[Bearer {TOKEN}]" in through(opened, request("api.test"))
    # No server name is sent for an address; the leaf is for the address all the same.
    with made.wrap_socket(dial(443), server_hostname=THEIRS) as opened:
        assert f"https [{THEIRS}] / auth=[Bearer {TOKEN}]" in through(opened, request(f"[{THEIRS}]"))
    with made.wrap_socket(dial(443), server_hostname=THEIRS) as opened:
        assert through(opened, request("api.test")).startswith("HTTP/1.1 421")


def test_what_no_route_takes_goes_where_it_was_going(place):
    start(place, "tunnel")
    made = ssl.create_default_context(cafile=place.web.authority.pem)
    made.check_hostname = False
    with made.wrap_socket(dial(443), server_hostname="other.test") as passed:
        assert "https other.test / auth=[]" in through(passed, request("other.test"))
    assert "http other.test / auth=[]" in through(dial(80), request("other.test"))


def test_an_address_behind_connect(place):
    start(place, "refuse", "forward_proxy")
    with place.opened(f"[{THEIRS}]:443", THEIRS) as opened:
        assert f"https [{THEIRS}] / auth=[Bearer {TOKEN}]" in through(opened, request(f"[{THEIRS}]"))
    with place.opened(f"[{THEIRS}]:443", THEIRS) as opened:
        assert through(opened, request("[fd91::3]")).startswith("HTTP/1.1 421")
    assert place.connect("[fd91::3]:443") == 404
