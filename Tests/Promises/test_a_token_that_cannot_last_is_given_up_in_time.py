"""Promise: a token that is gone before it can be used costs a few grants and connections, never a circle of them."""

import ssl
import time
import types

import pytest

from harness import Nginx, eventually
from scripted import Issuer, Scripted, answer, echo, identified

PATIENCE = 3


def oauth(gateway, issuer):
    secret = gateway.secret("client", "c" * 20)
    block = {"token_url": f"http://{issuer.address}/token", "client_id": "a", "client_secret": secret}
    return {"oauth2": block, "token": {"acquire_timeout": f"{PATIENCE}s"}}


def timely(gateway, path="/a"):
    begun = time.monotonic()
    found = gateway.get(path)
    assert time.monotonic() - begun < PATIENCE + 2
    assert found.status in (200, 503, 504), found
    return found


@pytest.mark.parametrize("lifetime", [-1, 0, 1])
@pytest.mark.parametrize("limits", [{}, {"hot_cache": "64B"}], ids=["cache", "tiny-cache"])
def test_it_expires_at_once(gateway, lifetime, limits):
    grants = Issuer(lifetime)
    with Scripted(echo) as upstream, Scripted(grants) as issuer:
        identified(gateway, upstream, oauth(gateway, issuer), limits=limits).start()
        timely(gateway)
        assert len(grants.grants) <= 3 and upstream.connections <= 3


def test_it_expires_while_the_connection_is_made(gateway, tmp_path):
    Nginx.make_certificates(types.SimpleNamespace(folder=tmp_path))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    grants = Issuer(1)

    def script(peer):
        eventually(lambda: time.monotonic() > grants.grants[-1] + 1.2, what="the token's end")
        peer.wrap(context)
        for _ in peer.requests():
            peer.send(answer(b"ok"))

    with Scripted(script) as upstream, Scripted(grants) as issuer:
        route = {"to": f"https://{upstream.address}", "tls": {"ca": str(tmp_path / "ca.pem")}}
        identified(gateway, upstream, oauth(gateway, issuer), route).start()
        timely(gateway)
        assert len(grants.grants) <= 3 and upstream.connections <= 3


def test_a_cache_too_small_for_a_static_value(gateway):
    with Scripted(echo) as upstream:
        secret = gateway.secret("key", "k" * 40)
        block = {"static": {"header": "X-Key", "value": secret}, "token": {"acquire_timeout": f"{PATIENCE}s"}}
        identified(gateway, upstream, block, limits={"hot_cache": "64B"}).start()
        timely(gateway)
        assert upstream.connections <= 3
        assert gateway.ask("/livez").status == 200
