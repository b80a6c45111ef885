"""Has the upstream send generated answers and compares what the gateway makes of them with what was to reach the caller."""

import asyncio
import dataclasses
import re

import forwarding
import reader
from findings import Finding

PROBLEM = re.compile(rb"urn:cardea:problems/([a-z-]+)")


@dataclasses.dataclass(slots=True)
class Passed:
    """An answer as the gateway passed it on, interim ones before it. `message` is the final one by the strict reader; None: it is cut."""

    octets: bytes
    method: bytes
    message: reader.Message | None
    ended: bool
    number: int = -1
    received: bytes = b""


class Reading(asyncio.Protocol):
    """Keeps all that comes on a caller's connection, and how it ended."""

    def __init__(self):
        self.buffer, self.closed, self.reset = bytearray(), False, False
        self.awaited = None
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.buffer += data
        if self.awaited in self.buffer:
            self.finish()

    def eof_received(self):
        self.closed = True
        self.finish()

    def connection_lost(self, fault):
        self.reset = self.reset or fault is not None
        self.finish()

    def finish(self):
        if not self.ended.done():
            self.ended.set_result(None)


async def call(place, exchange, within=20.0):
    loop = asyncio.get_running_loop()
    transport, reading = await loop.create_connection(Reading, *place)
    try:
        # The last answer is a sentinel, whose body is its key.
        reading.awaited = b"\r\n\r\n" + exchange.answers[-1].key
        transport.write(exchange.requests())
        await asyncio.wait({reading.ended}, timeout=within)
        return reading, reading.ended.done()
    finally:
        transport.abort()


async def send(exchanges, place, upstream, tally, together=48):
    gate = asyncio.Semaphore(together)
    for exchange in exchanges:
        for answer in exchange.answers:
            # An upstream that says no more has to go, or everybody waits.
            answer.ends = answer.ends or meant(answer)[2] == "cut"
            upstream.answers[answer.key] = answer

    async def one(exchange):
        async with gate:
            return await call(place, exchange)

    readings = await asyncio.gather(*map(one, exchanges))
    upstream.take()
    upstream.answers.clear()
    passed = []
    for exchange, (reading, done) in zip(exchanges, readings):
        octets = bytes(reading.buffer)
        if upstream.alter:
            octets = upstream.alter(octets, exchange.number)
        passed += judge(exchange, octets, reading, done, tally)
    return passed


def meant(answer):
    """The strict reader that repairs reads the upstream's answer: (messages or None, octets behind them, why there are none)."""
    try:
        messages, end = reader.answers(answer.octets, 0, answer.method, answer.ends, repairs=True)
        return messages, answer.octets[end:], ""
    except reader.More:
        return None, b"", "cut"
    except reader.Refused as reason:
        return None, b"", str(reason)


def judge(exchange, octets, reading, done, tally):
    passed, at = [], 0
    tally.count("connections")
    for answer in exchange.answers:

        def found(what, expected, other, answer=answer, start=None):
            begin = at if start is None else start
            tally.found(
                Finding(
                    "gateway",
                    what,
                    expected,
                    other,
                    octets[begin:],
                    answer.method + b" " + answer.octets,
                    exchange.number,
                )
            )

        sentinel = answer is exchange.answers[-1]
        begin = at
        ended = reading.closed and not reading.reset
        try:
            messages, at = reader.answers(octets, at, answer.method, ended)
        except reader.Refused as reason:
            found(f"passed on what is no answer: {reason}", None, None)
            passed.append(Passed(octets[at:], answer.method, None, True, exchange.number, answer.octets))
            return passed
        except reader.More:
            if at == len(octets):
                tally.count("requests that were not answered any more")
                if not done:
                    found("no answer in time", None, None)
                return passed
            if not done:
                found("an answer does not end", meant(answer), None)
            tally.count("cut visibly")
            if meant(answer)[0]:
                found("a whole answer is cut", meant(answer), None)
            if reading.reset:
                # For callers of HTTP/1.0 the reset is what shows it, which octets that are read again do not have.
                tally.count("of these: by a reset")
            else:
                passed.append(Passed(octets[at:], answer.method, None, True, exchange.number, answer.octets))
            return passed
        final = messages[-1]
        problem = PROBLEM.search(final.body)
        expected, behind, why = meant(answer)
        if problem or answer.method == b"HEAD" and final.start[0] == 502 and not final.values(b"case"):
            tally.count(f"{final.start[0]} {problem[1].decode() if problem else '-'}")
            if expected and not behind:
                tally.count("of these: the strict reader had taken it")
        elif expected is None:
            found(f"passed on as whole what is {why}", None, final)
        else:
            compare(expected, messages, answer, found, begin)
            tally.count("passed on")
            if behind:
                tally.count("of these: with octets behind it that went nowhere")
        passed.append(Passed(octets[begin:at], answer.method, final, final.last, exchange.number, answer.octets))
        if final.last:
            if octets[at:]:
                found("octets behind an answer that ends the connection", None, octets[at:])
            if not reading.closed and not sentinel:
                found("the connection was not ended", None, None)
            return passed
    if octets[at:]:
        tally.found(
            Finding(
                "gateway",
                "octets behind the last answer",
                None,
                octets[at:],
                octets,
                exchange.requests(),
                exchange.number,
            )
        )
    return passed


def compare(expected, messages, answer, found, begin):
    status, reason, fields, body, trailers = forwarding.answer(expected[-1])
    final = messages[-1]
    framing = forwarding.FRAMING
    own = (b"connection", b"trailer", *framing)
    if final.start[0] != status:
        found("status differs", status, final.start[0], start=begin)
    if reason and final.start[1] != reason:
        found("reason differs", reason, final.start[1], start=begin)
    left = [field for field in final.fields if field[0].lower() not in own]
    wanted = [field for field in fields if field[0].lower() not in own]
    if left != wanted:
        found("fields differ", *forwarding.apart(wanted, left), start=begin)
    if final.body != body:
        found("body differs", body, final.body, start=begin)
    if [pair for pair in final.trailers if pair not in trailers]:
        found("trailers differ", trailers, final.trailers, start=begin)
    told = [message.start[0] for message in messages[:-1]]
    if answer.minor == 0 and told or not set(told) <= {message.start[0] for message in expected[:-1]}:
        found("interim answers differ", [message.start for message in expected[:-1]], told, start=begin)
    if final.framing == "close" and answer.minor:
        found("a body without an announced end", None, None, start=begin)
