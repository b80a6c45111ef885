"""Promise: a reload drops no stream of HTTP/2, no connection in TLS and no WebSocket."""

import asyncio
import os
import ssl

import pytest
import websockets

from harness import eventually, merge
from load import Load, Streams
from origins import forward
from pki import Authority
from test_a_reload_drops_nothing import edition, reload
from test_websockets_pass import WebSocketServer

RELOADS = int(os.environ.get("CARDEA_RELOADS", "15"))
PATH = "/api/employees/1"


def carry(gateway, *loads):
    """Reloads under these loads, of files that differ in everything else."""
    base = gateway.config
    files = [merge(base, {"name": "edge-2", "defaults": {"route": {"timeouts": {"response": "55s"}}}}), base]
    for load in loads:
        load.__enter__()
    try:
        for round in range(RELOADS):
            marks = [load.done + 10 for load in loads]
            eventually(lambda: all(load.done > mark for load, mark in zip(loads, marks)), within=30, what="the load")
            reload(gateway, files[round % 2])
    finally:
        for load in loads:
            load.stop()
    for load in loads:
        assert load.failures == [], load.failures[:5]
        assert set(load.statuses) == {200}, load.statuses
        print(f"{edition(gateway) - 1} reloads, {load.done} requests, 0 failed, longest {load.longest * 1000:.0f} ms")


def test_streams_of_http2(gateway):
    gateway.oauth().start().warm(PATH)
    carry(gateway, Streams(gateway.listen, PATH, kept=2, fresh=1))


@pytest.mark.parametrize("protocol", ["http/1.1", "h2"])
def test_over_tls(gateway, tmp_path, protocol):
    authority = Authority(tmp_path / "pki")
    certificate, key = authority.leaf("localhost", "DNS:localhost")
    tls = [{"certificate": str(certificate), "key": f"file:{key}"}]
    gateway.oauth(route={"listen": "edge"}, changes={"listeners": {"edge": {"address": gateway.listen, "tls": tls}}}).start()
    context = ssl.create_default_context(cafile=authority.pem)
    context.set_alpn_protocols([protocol])
    kind = Streams if protocol == "h2" else Load
    with kind(gateway.listen, PATH, kept=1, fresh=0, context=context) as warm:
        eventually(lambda: warm.done, what="the first token")
    carry(gateway, kind(gateway.listen, PATH, kept=2, fresh=1, context=context))


def test_a_websocket_stays_open(gateway):
    async def talk():
        async with websockets.connect(f"ws://{gateway.listen}/chat", subprotocols=["chat"]) as one:
            for number in range(RELOADS):
                await one.send(f"before {number}")
                name = {"name": f"edge-{number}"}
                await asyncio.to_thread(reload, gateway, merge(gateway.config, name))
                assert await asyncio.wait_for(one.recv(), 20) == f"before {number}"
                await one.send("after")
                assert await asyncio.wait_for(one.recv(), 20) == "after"

    with WebSocketServer() as server:
        forward(gateway, server.address, 1).start()
        asyncio.run(talk())
        assert edition(gateway) > RELOADS
