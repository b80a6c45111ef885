"""Replays what the gateway emitted to the servers, octet by octet, and compares what each understood with what was to be sent.

Many requests stand on one connection and a sentinel behind them. Answers come in order, so each belongs to one request; a server that sees
another number of requests than were written, or another request in the place of one, has parted the octets otherwise than the gateway."""

import asyncio

import forwarding
import reader
import servers
import tolerated
from findings import Finding

SENTINEL = b"GET /d/ffffffff?sentinel HTTP/1.1\r\nHost: h.example\r\n\r\n"
SENTINEL_KEY = b"ffffffff"
SWITCHING = b"\r\nConnection: upgrade\r\nUpgrade: "
TOGETHER = 40
CONNECTIONS = 3


class Line(asyncio.Protocol):
    """A connection to a server: octets are written at once, answers are read in order."""

    def __init__(self, methods):
        self.methods, self.buffer, self.at = methods, bytearray(), 0
        self.answers, self.fault = [], None
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.buffer += data
        self.read(False)

    def read(self, ended):
        try:
            while self.at < len(self.buffer):
                # The strict reader would refuse what some servers answer by themselves.
                method = self.methods[len(self.answers)] if len(self.answers) < len(self.methods) else b"GET"
                found, self.at = reader.answers(self.buffer, self.at, method, ended, repairs=True)
                self.answers.append(found[-1])
                if found[-1].last:
                    return self.finish()
            if self.methods and len(self.answers) >= len(self.methods):
                self.finish()
        except reader.More:
            pass
        except reader.Refused as reason:
            self.fault = str(reason)
            self.finish()

    def eof_received(self):
        self.read(True)
        self.finish()

    def connection_lost(self, _):
        self.finish()

    def finish(self):
        if not self.done.done():
            self.done.set_result(None)


async def write(server, octets, methods, ends=False, within=10.0):
    loop = asyncio.get_running_loop()
    transport, line = await loop.create_connection(lambda: Line(methods), "127.0.0.1", server.port)
    try:
        transport.write(octets)
        if ends:
            transport.write_eof()
        await asyncio.wait({line.done}, timeout=within)
        if not line.done.done():
            line.fault = "no answer in time"
    finally:
        transport.abort()
    return line


def reported(server, answer):
    """The request as the server understood it, found by its answer; None where the server did not hand the request on."""
    encoded = answer.values(b"x-report")
    if encoded:
        return servers.told(encoded[0])
    named = answer.values(b"x-key")
    if not named:
        return None
    found = server.reporter.reports.get(bytes.fromhex(named[0].decode()))
    return found.pop(0) if found else None


class Replay:
    """To one server. `outcomes`, for tests of the test: number of a script → what was counted or found for its requests."""

    def __init__(self, server, tally, together=TOGETHER):
        self.server, self.tally, self.together = server, tally, together
        self.seen, self.outcomes = set(), None

    def count(self, what, emission=None):
        self.tally.count(f"{self.server.name}: {what}")
        if self.outcomes is not None and emission:
            self.outcomes.setdefault(emission.number, set()).add(what)

    def fresh(self, emissions):
        """The requests whose octets were not tried before. Ids are left out of the comparison; they have the same length everywhere."""
        for emission in emissions:
            mark = hash(forwarding.CASE.sub(b"/d/........", emission.octets))
            if mark in self.seen:
                self.count("the same octets as before")
                continue
            self.seen.add(mark)
            yield emission

    async def run(self, emissions):
        whole, cut = [], []
        for emission in self.fresh(emissions):
            (whole if emission.sent else cut).append(emission)
        gate = asyncio.Semaphore(CONNECTIONS)
        # Behind a request for another protocol nothing is HTTP for certain until it was answered.
        switching = [emission for emission in whole if SWITCHING in emission.octets]
        whole = [emission for emission in whole if SWITCHING not in emission.octets]
        groups = [[emission] for emission in switching]
        groups += [whole[at : at + self.together] for at in range(0, len(whole), self.together)]
        await asyncio.gather(*(self.group(group, gate) for group in groups))
        await asyncio.gather(*(self.partial(emission, gate) for emission in cut))
        self.strays()

    async def group(self, emissions, gate):
        async with gate:
            at = 0
            while at < len(emissions):
                at += await self.once(emissions[at:])

    async def once(self, emissions):
        """Gives how many of them are settled: after an answer that ends the connection the others are written to another one."""
        octets = b"".join(emission.octets for emission in emissions)
        methods = [emission.sent.method for emission in emissions]
        if SWITCHING not in octets:
            octets, methods = octets + SENTINEL, methods + [b"GET"]
        line = await write(self.server, octets, methods)
        for emission, answer in zip(emissions, line.answers):
            self.judge(emission, answer)
        settled = len(line.answers)
        if settled > len(emissions):
            last = reported(self.server, line.answers[len(emissions)])
            if last is None or (last.method, last.target, last.body) != (b"GET", b"/d/ffffffff?sentinel", b""):
                self.found("the sentinel is another request", emissions[-1], SENTINEL, last)
            if settled > len(emissions) + 1:
                self.found("more requests than were written", emissions[-1], len(emissions) + 1, settled)
            return settled
        if line.fault == "no answer in time":
            self.found("waits for more", emissions[settled], emissions[settled].sent, bytes(line.buffer[line.at :]))
            return settled + 1
        if settled == 0:
            self.count("ended without an answer", emissions[0])
            return 1
        return settled

    def judge(self, emission, answer):
        found = reported(self.server, answer)
        if found is None:
            if answer.start[0] >= 400:
                self.count(f"refused {answer.start[0]}", emission)
            elif tolerated.answers_itself(self.server.name, emission.sent):
                self.count("answered by itself", emission)
            else:
                self.found("answered without a report", emission, emission.sent, answer.octets)
            return
        apart = forwarding.differences(
            tolerated.normalised(self.server.name, emission.sent), tolerated.normalised(self.server.name, found)
        )
        for part, one, other in apart:
            self.found(f"{part} differs", emission, one, other)
        if not apart:
            self.count("agreed", emission)

    def found(self, what, emission, expected, other):
        if self.outcomes is not None:
            self.outcomes.setdefault(emission.number, set()).add(what)
        self.tally.found(
            Finding(self.server.name, what, expected, other, emission.octets, emission.received, emission.number)
        )

    async def partial(self, emission, gate):
        """A request that does not end must not be handed on as one that does."""
        async with gate:
            line = await write(self.server, emission.octets, [], ends=True, within=0.2)
            self.count("requests that did not end")
            key = forwarding.CASE.search(emission.octets)
            handed = key and self.server.reporter and self.server.reporter.reports.pop(key[1], None)
            if handed or any(answer.values(b"x-report") for answer in line.answers):
                self.found("a request that did not end is whole", emission, None, emission.octets)

    def strays(self):
        """Requests that a server handed on and that belong to no answer."""
        if not self.server.reporter:
            return
        reporter = self.server.reporter
        for many in reporter.reports.values():
            for found in many:
                if found.key == SENTINEL_KEY:
                    continue
                self.tally.found(Finding(self.server.name, "handed on a request that was not written", None, found))
        for octets, reason in reporter.broken:
            self.count("handed on octets that are no request")
            self.tally.found(Finding(self.server.name, f"handed on what is no request: {reason}", None, octets))
        reporter.reports, reporter.broken = {}, []
