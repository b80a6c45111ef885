"""Promise: connections that the kernel redirects are served as if their callers had named the gateway, or pass as if it were not there."""

import contextlib
import socket
import ssl
import subprocess

import pytest

from forward import OURS, THEIRS, TOKEN, laid_out, request, through
from namespaces import Space, as_user, join

NOBODY = 65534


@pytest.fixture
def place(gateway, tmp_path):
    with laid_out(gateway, tmp_path) as made:
        yield made


def redirect(place):
    port = place.gateway.listen.split(":")[1]
    place.space.filter(
        f"table ip t {{ chain out {{ type nat hook output priority -100;"
        f" meta skuid {NOBODY} tcp dport {{ 80, 443 }} redirect to :{port};\n}}\n}}\n"
    )


def dial(port):
    with as_user(NOBODY):
        return socket.create_connection((THEIRS, port), timeout=10)


def secure(place, name, file):
    return ssl.create_default_context(cafile=file).wrap_socket(dial(443), server_hostname=name)


def check_redirected(place, connect):
    """What holds however the kernel redirects."""
    ours = f"{place.ca}.crt"
    assert f"https api.test /x auth=[Bearer {TOKEN}]" in through(connect(80), request("api.test", "/x"))
    # Each request of a connection is for the host that it names.
    seen = through(connect(80), request("api.test", "/x", "") + request("plain.test", "/y"))
    assert f"auth=[Bearer {TOKEN}]" in seen and "http plain.test /y auth=[]" in seen, seen
    with ssl.create_default_context(cafile=ours).wrap_socket(connect(443), server_hostname="api.test") as opened:
        assert f"https api.test / auth=[Bearer {TOKEN}]" in through(opened, request("api.test"))
    with ssl.create_default_context(cafile=ours).wrap_socket(connect(443), server_hostname="api.test") as opened:
        assert through(opened, request("second.api.test")).startswith("HTTP/1.1 421")
    for name in ("second.api.test", "other.test"):
        made = ssl.create_default_context(cafile=place.web.authority.pem)
        with made.wrap_socket(connect(443), server_hostname=name) as passed:
            assert f"https {name} / auth=[]" in through(passed, request(name))


def check_refused(place, connect):
    assert through(connect(80), request("plain.test")).startswith("HTTP/1.1 404")
    made = ssl.create_default_context(cafile=place.web.authority.pem)
    with pytest.raises((ssl.SSLError, OSError)):
        made.wrap_socket(connect(443), server_hostname="other.test")


def transparent(place, unmatched, **rest):
    return place.start("transparent", unmatched, intercept=["api.test"], **rest)


@pytest.mark.parametrize("everywhere", [False, True])
def test_connections_redirected_by_their_user_are_served(place, everywhere):
    if everywhere:
        listener = {"address": "0.0.0.0:" + place.gateway.listen.split(":")[1]}
        transparent(place, "tunnel", listener=listener, route={"callers": {"allow": ["0.0.0.0/0"]}})
    else:
        transparent(place, "tunnel")
    redirect(place)
    check_redirected(place, dial)
    # Those that were not redirected are not led round in a circle.
    for text in (request("plain.test"), request("api.test"), request(place.gateway.listen)):
        assert through(place.raw().socket, text) == ""
    if everywhere:
        port = int(place.gateway.listen.split(":")[1])
        assert through(socket.create_connection((OURS, port), timeout=10), request("api.test")) == ""


def test_redirected_connections_that_no_route_takes_are_refused(place):
    transparent(place, "refuse")
    redirect(place)
    check_refused(place, dial)


def test_what_was_secret_on_the_way_here_goes_on_in_no_clear_text(place):
    """No route takes the path; the host's own TLS was opened by us."""
    transparent(place, "tunnel", route={"match": {"host": "api.test", "path": "/in/"}})
    redirect(place)
    opened = secure(place, "api.test", f"{place.ca}.crt")
    assert through(opened, request("api.test", "/out")).startswith("HTTP/1.1 404")
    assert (place.web.folder / "access.log").read_text() == ""


@pytest.mark.parametrize("unmatched", ["tunnel", "refuse"])
def test_connections_of_other_machines_are_taken_from_the_road(place, unmatched):
    """TPROXY: the gateway's namespace is the router of a third one."""
    with contextlib.ExitStack() as stack:
        third = Space({})
        stack.callback(third.close)
        join(place.space, third, "office", "desk")
        place.space.address("office", "10.92.0.1/24")
        third.address("desk", "10.92.0.2/24")
        third.command("route", "add", "default", "via", "10.92.0.1")
        place.far.command("route", "add", "10.92.0.0/24", "via", OURS)
        subprocess.run([*place.space.wrapper, "sysctl", "-qw", "net.ipv4.ip_forward=1"], check=True)
        port = place.gateway.listen.split(":")[1]
        place.space.command("rule", "add", "fwmark", "1", "lookup", "100")
        place.space.command("route", "add", "local", "0.0.0.0/0", "dev", "lo", "table", "100")
        place.space.filter(
            f"table ip t {{ chain pre {{ type filter hook prerouting priority mangle; iifname office"
            f" tcp dport {{ 80, 443 }} tproxy to 127.0.0.1:{port} meta mark set 1 accept;\n}}\n}}\n"
        )

        def connect(port):
            with third.inside():
                return socket.create_connection((THEIRS, port), timeout=10)

        transparent(place, unmatched, route={"callers": {"allow": ["10.92.0.0/24"]}})
        (check_redirected if unmatched == "tunnel" else check_refused)(place, connect)
