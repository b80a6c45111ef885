"""All that runs: the gateway between a generator and a capturing upstream, and the servers that read what was captured."""

import asyncio
import contextlib
import math
import os
import tempfile
import time

import answering
import clients
import gateway
import making_answers
import making_requests
import origin
import replaying
import requesting
import servers
from findings import Tally

AT_ONCE = 400


@contextlib.asynccontextmanager
async def running(upstream):
    """The gateway in front of it; gives the addresses of its listeners."""
    lab = gateway.Lab()
    with tempfile.TemporaryDirectory() as folder:
        cardea = gateway.Cardea(lab, folder)
        places = gateway.configure(cardea, upstream.address)
        try:
            await asyncio.to_thread(cardea.start)
            yield places
            # Alive to the end, nothing lost, a clean end.
            upstream.close()
            await asyncio.sleep(0)
            await asyncio.to_thread(cardea.finish)
        finally:
            cardea.abandon()
            lab.close()
            upstream.close()


@contextlib.asynccontextmanager
async def readers(tally, together=replaying.TOGETHER):
    with tempfile.TemporaryDirectory() as folder:
        # For servers that give up root.
        os.chmod(folder, 0o755)
        made = await servers.started(folder)
        try:
            yield [replaying.Replay(server, tally, together) for server in made]
        finally:
            for server in made:
                server.close()


async def requests(count, seed, first=0, progress=None, until=math.inf):
    """Sends `count` generated requests, sentinels counted, from the script with this number on, or as many as there is time for
    (monotonic seconds); gives the tally."""
    tally, generator = Tally(), making_requests.Generator(seed)
    upstream = await origin.Origin().start()
    sent, number = 0, first
    async with readers(tally) as replays, running(upstream) as places:
        routes = gateway.routes(upstream.address)
        while sent < count and time.monotonic() < until:
            scripts = []
            while len(scripts) < AT_ONCE and sent < count:
                scripts.append(generator.script(number))
                sent, number = sent + scripts[-1].count, number + 1
            emissions = await requesting.send(scripts, places, routes, upstream, tally)
            await asyncio.gather(*(replay.run(emissions) for replay in replays))
            if progress:
                progress(sent, tally)
    tally.count("requests generated", sent)
    return tally


async def answers(count, seed, first=0, progress=None, until=math.inf):
    """Has `count` generated answers pass, sentinels counted, from the connection with this number on, or as many as there is
    time for; gives the tally."""
    # Clients count in a thread of their own.
    tally, read, generator = Tally(), Tally(), making_answers.Generator(seed)
    upstream = await origin.Answering().start()
    sent, number = 0, first
    with contextlib.closing(clients.Clients(read)) as every:
        async with running(upstream) as places:
            comparing = asyncio.create_task(asyncio.sleep(0))
            while sent < count and time.monotonic() < until:
                exchanges = []
                while len(exchanges) < AT_ONCE and sent < count:
                    exchanges.append(generator.exchange(number))
                    sent, number = sent + len(exchanges[-1].answers), number + 1
                passed = await answering.send(exchanges, places[0], upstream, tally)
                # Clients read while the next ones pass.
                await comparing
                comparing = asyncio.create_task(asyncio.to_thread(every.compare, passed))
                if progress:
                    progress(sent, read)
            await comparing
    tally.add(read)
    tally.count("answers generated", sent)
    return tally
