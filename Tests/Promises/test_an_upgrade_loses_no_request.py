"""Promise: SIGUSR2 puts a new process in the place of the old one, and no request on a hot token fails, over any protocol and on any
kind of connection; nothing that the old process has begun is cut before the drain limit."""

import asyncio
import json
import os
import pathlib
import signal
import socket
import ssl
import threading
import time

import pytest
import websockets

import frames
from harness import call, eventually, free_port
from load import Load, Streams
from origins import forward
from pki import Authority
from test_websockets_pass import WebSocketServer
from upgrades import said, upgrade

UPGRADES = int(os.environ.get("CARDEA_UPGRADES", "10"))
PATH = "/api/employees/1"


pytestmark = pytest.mark.usefixtures("orphans")


@pytest.fixture(params=["on", "off"])
def api(gateway, request):
    """A running gateway with a Bearer API, hot; inside the sandbox and outside."""
    gateway.oauth(changes={"sandbox": request.param}).start().warm(PATH)
    gateway.lab.reset(tokens=False)
    assert bool(said(gateway, "sandbox entered")) == (request.param == "on")
    return gateway


def carry(gateway, *loads):
    """Upgrades under these loads."""
    olds = []
    for load in loads:
        load.__enter__()
    try:
        for _ in range(UPGRADES):
            # Each has connections of its own to every process.
            marks = [load.done + 20 for load in loads]
            eventually(lambda: all(load.done > mark for load, mark in zip(loads, marks)), within=30, what="the load")
            olds.append(upgrade(gateway))
    finally:
        for load in loads:
            load.stop()
    for load in loads:
        assert load.failures == [], load.failures[:5]
        assert set(load.statuses) == {200}, load.statuses
        print(f"{UPGRADES} upgrades, {load.done} requests, 0 failed, longest {load.longest * 1000:.0f} ms")
    for old in olds:
        # One that ends before the process that started it is seen by that one's launcher alone.
        assert old.wait(20) in (0, "unseen")
    eventually(lambda: len(said(gateway, "stopped")) == UPGRADES, what="the clean end of each in the log")
    assert len(said(gateway, "upgrade done")) == UPGRADES


def test_new_and_kept_connections(api):
    carry(api, Load(api.listen, PATH))
    # Each process found the token in the store.
    assert api.lab.counts()["token"] == 0, api.lab.counts()


def test_who_needs_a_token_meanwhile_is_told_to_come_again(api):
    """Every request here is a miss: the token of the one before has been revoked. While neither process may grant, the answer is a
    503 that says when to come again, and nothing else."""
    answers, stopping = [], threading.Event()

    def miss():
        while not stopping.is_set():
            api.lab.post("/reset", {"tokens": True})
            answers.append(api.get(PATH))

    caller = threading.Thread(target=miss)
    caller.start()
    try:
        for _ in range(UPGRADES):
            mark = len(answers) + 5
            eventually(lambda: len(answers) > mark, within=30, what="the misses going on")
            upgrade(api)
    finally:
        stopping.set()
        caller.join(30)
    refused = [answer for answer in answers if answer.status != 200]
    for answer in refused:
        assert (answer.status, answer.problem["type"]) == (503, "urn:cardea:problems/upgrading"), answer
        assert answer.field("Retry-After") == "1", answer
    print(f"{UPGRADES} upgrades, {len(answers)} misses, {len(refused)} of them told to come again")
    assert api.get(PATH).status == 200


def test_callers_that_think_for_a_while(api):
    """Their connections are idle when the old process begins to go: it waits for their last request."""
    carry(
        api,
        Load(api.listen, PATH, kept=4, fresh=0, pause=0.05),
        Streams(api.listen, PATH, kept=2, fresh=0, pause=0.05),
        Load(api.listen, PATH, kept=1, fresh=0),
    )


def test_a_caller_that_comes_back_late(api):
    """Longer than any end waits else; its connection is there."""
    with api.raw() as raw, frames.Caller(api.listen) as wire:
        ask = f"GET {PATH} HTTP/1.1\r\nHost: {api.listen}\r\n\r\n"
        raw.send(ask)
        assert raw.answer().status == 200
        wire.send(wire.request(1, PATH))
        assert wire.status(1) == 200
        old = upgrade(api)
        # What the caller does meanwhile is this long.
        time.sleep(2.5)
        raw.send(ask)
        answer = raw.answer()
        assert (answer.status, answer.field("Connection")) == (200, "close")
        wire.send(wire.request(3, PATH))
        assert wire.status(3) == 200
    assert old.wait(20) == 0


def test_streams_of_http2(api):
    carry(api, Streams(api.listen, PATH, kept=2, fresh=1), Load(api.listen, PATH, kept=1, fresh=1))


def test_over_tls(gateway, tmp_path):
    authority = Authority(tmp_path / "pki")
    certificate, key = authority.leaf("localhost", "DNS:localhost")
    tls = [{"certificate": str(certificate), "key": f"file:{key}"}]
    listeners = {"edge": {"address": gateway.listen, "tls": tls}}
    gateway.oauth(route={"listen": "edge"}, changes={"listeners": listeners}).start()
    contexts = []
    for protocol in ("http/1.1", "h2"):
        contexts.append(ssl.create_default_context(cafile=authority.pem))
        contexts[-1].set_alpn_protocols([protocol])
    with Load(gateway.listen, PATH, kept=1, fresh=0, context=contexts[0]) as warm:
        eventually(lambda: warm.done, what="the first token")
    carry(
        gateway,
        Load(gateway.listen, PATH, kept=1, fresh=1, context=contexts[0]),
        Streams(gateway.listen, PATH, kept=1, fresh=1, context=contexts[1]),
    )


@pytest.mark.parametrize("threads", [[4, 1, 3], [1, 2]])
def test_a_changed_number_of_loops_closes_no_queue(api, threads):
    """Each loop has a socket of its own: none may be lost with its loop."""
    with Load(api.listen, PATH, kept=2, fresh=4) as load:
        for count in threads:
            api.config["threads"] = count
            fresh = pathlib.Path(f"{api.file}.new")
            fresh.write_text(json.dumps(api.config))
            fresh.rename(api.file)
            upgrade(api)
            end = load.done + 60
            eventually(lambda: load.done > end, what="the load going on")
            loops = [thread for thread in pathlib.Path(f"/proc/{api.process.pid}/task").iterdir()]
            names = [(thread / "comm").read_text().strip() for thread in loops]
            assert sum("loop-" in name for name in names) == count, names
    assert load.failures == [], load.failures[:5]


def test_unix_sockets_and_operators_are_handed_over_too(gateway):
    path, probes = str(gateway.folder / "callers.sock"), f"127.0.0.1:{free_port()}"
    gateway.oauth(route={"listen": f"unix:{path}"}, changes={"admin": {"probes": probes}}).start()
    inode = os.stat(path).st_ino

    def ask():
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(20)
            caller.connect(path)
            caller.sendall(f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            return caller.recv(65536).split(b" ")[1]

    for _ in range(3):
        assert ask() == b"200"
        with socket.create_connection(tuple(probes.split(":"))) as kept:
            upgrade(gateway)
            # Who was connected to the old one learns that it is over.
            kept.settimeout(20)
            assert kept.recv(65536) == b""
        assert call(probes, path="/readyz").status == 200
        assert gateway.ask("/readyz").status == 200
        status, told, errors = gateway.command("reset", "api")
        assert status == 0, told + errors
    assert os.stat(path).st_ino == inode


def test_a_websocket_stays_until_the_drain_limit(gateway):
    async def talk():
        async with websockets.connect(f"ws://{gateway.listen}/chat", subprotocols=["chat"]) as early:
            await early.send("before")
            assert await early.recv() == "before"
            old = await asyncio.to_thread(upgrade, gateway)
            async with websockets.connect(f"ws://{gateway.listen}/chat", subprotocols=["chat"]) as late:
                for word in ("one", "two"):
                    for each in (early, late):
                        await each.send(word)
                        assert await each.recv() == word
                assert old.poll() is None
                # The limit comes: the early one is cut, the late one knows nothing of it.
                with pytest.raises(websockets.ConnectionClosed):
                    await asyncio.wait_for(early.recv(), 20)
                await late.send("after")
                assert await late.recv() == "after"
            assert await asyncio.to_thread(old.wait, 20) == 0

    with WebSocketServer() as server:
        forward(gateway, server.address, 1)
        gateway.config["shutdown"]["timeout"] = "3s"
        gateway.start()
        asyncio.run(talk())


def test_what_has_begun_ends_with_the_old_process(api):
    """A slow answer, and a body that is still on its way."""
    with api.raw() as slow, api.raw() as upload:
        slow.send(f"GET /api/slow?ms=1500 HTTP/1.1\r\nHost: {api.listen}\r\n\r\n")
        upload.send(f"POST /api/echo HTTP/1.1\r\nHost: {api.listen}\r\nContent-Length: 10\r\n\r\n12345")
        eventually(lambda: any("slow" in line for line in api.lab.get("/requests")), what="the request upstream")
        old = upgrade(api)
        upload.send("67890")
        assert upload.answer().status == 200
        assert slow.answer().status == 200
        assert old.wait(20) == 0


def test_the_new_process_may_be_upgraded_while_the_old_one_drains(api):
    with api.raw() as slow:
        slow.send(f"GET /api/slow?ms=1500 HTTP/1.1\r\nHost: {api.listen}\r\n\r\n")
        eventually(lambda: any("slow" in line for line in api.lab.get("/requests")), what="the request upstream")
        olds = [upgrade(api), upgrade(api)]
        assert slow.answer().status == 200
        assert olds[0].wait(20) == 0
        assert olds[1].wait(20) in (0, "unseen")
    assert api.get(PATH).status == 200


def test_the_launcher_is_small_and_dies_with_the_gateway(api):
    children = pathlib.Path(f"/proc/{api.process.pid}/task/{api.process.pid}/children").read_text().split()
    assert len(children) == 1, children
    launcher = pathlib.Path(f"/proc/{children[0]}")
    assert (launcher / "comm").read_text().strip() == "cardea-launcher"
    # Standard input, output and errors; its socket; its signals.
    assert len(list((launcher / "fd").iterdir())) == 5
    sizes = dict(line.split(":", 1) for line in (launcher / "smaps_rollup").read_text().splitlines()[1:])
    private = sum(int(sizes[name].split()[0]) for name in ("Private_Clean", "Private_Dirty"))
    print(f"launcher: {private} kB of its own, {sizes['Pss'].strip()} with its share")
    assert private < 4096
    api.may_exit = True
    api.process.send_signal(signal.SIGKILL)
    api.process.wait()
    eventually(lambda: not launcher.exists() or "Z" in (launcher / "stat").read_text().split()[2], what="its end")
