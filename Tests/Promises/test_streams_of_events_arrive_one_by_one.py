"""Promise: what a server says piece by piece arrives piece by piece, and what a caller sends so too."""

import asyncio
import queue

import httpx
import pytest

import http2_peers
import origins
from origins import Over1, Over2, forward
from scripted import Scripted

WAYS = [(1, 1), (1, 2), (2, 1), (2, 2)]


class Turns:
    """A server that goes on only when the test says so, over either version."""

    def __init__(self, serve):
        self.serve, self.go, self.got = serve, queue.Queue(), queue.Queue()

    def server(self, version):
        if version == 2:
            return http2_peers.Server(lambda stream: self.serve(self, Over2(stream)))
        return Scripted(lambda peer: self.serve(self, Over1(peer)))


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0]}-to-{way[1]}")
def way(request):
    return request.param


def settings_of(version, gateway):
    return {"http1": version == 1, "http2": version == 2, "base_url": f"http://{gateway.listen}", "timeout": 20}


def caller_of(version, gateway):
    return httpx.Client(**settings_of(version, gateway))


def test_server_sent_events(gateway, way):
    def serve(turns, exchange):
        exchange.respond(200, [("content-type", "text/event-stream")])
        while event := turns.go.get(timeout=20):
            exchange.write(b"data: %s\n\n" % event)
        exchange.end()

    turns = Turns(serve)
    with turns.server(way[1]) as server:
        forward(gateway, server.address, way[1]).start()
        with caller_of(way[0], gateway) as client, client.stream("GET", "/events") as answer:
            # The head is there before the first event.
            assert answer.status_code == 200 and answer.headers["content-type"] == "text/event-stream"
            lines = answer.iter_lines()
            for index in range(20):
                turns.go.put(b"event %d" % index)
                assert next(lines).rstrip() == f"data: event {index}"
                assert next(lines).rstrip() == ""
            turns.go.put(b"")
            assert list(lines) == []


def test_long_polls(gateway, way):
    """Many answers that wait, given in the reverse order of their requests."""

    def serve(turns, exchange):
        mine = queue.Queue()
        turns.got.put(mine)
        origins.tell(exchange, {"turn": mine.get(timeout=20)})

    turns = Turns(serve)
    with turns.server(way[1]) as server:
        forward(gateway, server.address, way[1]).start()
        assert sorted(asyncio.run(polled(turns, settings_of(way[0], gateway)))) == list(range(8))


async def polled(turns, settings):
    """What eight polls of one caller are told. In one thread: of threads that share a connection of HTTP/2, the client may lose what
    one of them writes while another one sends."""
    async with httpx.AsyncClient(**settings) as client:
        answers = [asyncio.create_task(client.get("/poll")) for _ in range(8)]
        waiting = await asyncio.to_thread(lambda: [turns.got.get(timeout=20) for _ in range(8)])
        for index, one in enumerate(reversed(waiting)):
            one.put(index)
        return [answer.json()["turn"] for answer in await asyncio.gather(*answers)]


def test_an_upload_in_pieces(gateway, way):
    """Each piece is at the upstream before the next is sent."""

    def serve(turns, exchange):
        while piece := exchange.read():
            turns.got.put(piece)
        origins.tell(exchange, {})

    turns = Turns(serve)

    def pieces():
        for index in range(20):
            sent = b"piece %d" % index
            yield sent
            assert turns.got.get(timeout=20) == sent

    with turns.server(way[1]) as server:
        forward(gateway, server.address, way[1]).start()
        with caller_of(way[0], gateway) as client:
            assert client.post("/up", content=pieces()).status_code == 200
