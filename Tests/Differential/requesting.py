"""Sends scripts through the gateway and compares what its upstream received with what was to be sent."""

import asyncio
import dataclasses
import re

import forwarding
import origin as origins
import reader
from findings import Finding


@dataclasses.dataclass(slots=True)
class Emission:
    """A request as the gateway forwarded it. `sent` is None for one that did not end."""

    octets: bytes
    sent: forwarding.Sent | None
    number: int = -1
    received: bytes = b""


def understood(script):
    """The requests of a script by the strict reader; how it ends: "" behind a whole one, "last" behind one that ends the connection,
    "cut" within one, "refused"; and the method that what is behind them begins with."""
    octets, at, found = script.octets, 0, []
    try:
        while at < len(octets):
            message, at = reader.request(octets, at)
            found.append(message)
            options = [option.lower() for option in reader.members(message.fields, b"connection")]
            if b"close" in options or message.start[2] == 0 and b"keep-alive" not in options:
                return found, "last", b""
        return found, "", b""
    except reader.More:
        return found, "cut", b"HEAD" if re.match(rb"[^A-Za-z]*HEAD[^!-~]", octets[at:]) else b"GET"
    except reader.Refused:
        return found, "refused", b"HEAD" if re.match(rb"[^A-Za-z]*HEAD[^!-~]", octets[at:]) else b"GET"


PROBLEM = re.compile(rb"problems/([a-z-]+)")


async def send(scripts, places, routes, origin, tally, together=48):
    """Gives the emissions of these scripts."""
    gate = asyncio.Semaphore(together)
    read = [understood(script) for script in scripts]

    async def one(script, messages, ends, behind):
        async with gate:
            wanted = [message.start[0] for message in messages]
            return await origins.call(places[script.route], script.segments, wanted, behind, ends)

    callers = await asyncio.gather(*(one(script, *pair) for script, pair in zip(scripts, read)))
    # The rest of a request that a refusal has cut may still be on its way to the upstream.
    await asyncio.sleep(0.02)
    whole, cut, broken = origin.take()
    emissions = []
    for octets, reason in broken:
        tally.found(Finding("gateway", f"emitted what is no request: {reason}", None, None, octets))
    for script, (messages, ends, _), caller in zip(scripts, read, callers):
        emissions += judge(script, messages, ends, caller, routes[script.route], whole, tally)
    for key, many in whole.items():
        for octets in many:
            tally.found(Finding("gateway", "forwarded a request that nobody sent", None, key, octets))
    tally.count("requests that did not end", len(cut))
    return emissions + [Emission(octets, None) for octets in cut]


def judge(script, messages, ends, caller, route, whole, tally):
    emissions = []

    def found(what, expected, other, octets=b""):
        tally.found(Finding("gateway", what, expected, other, octets, script.octets, script.number))

    tally.count("scripts")
    tally.count(f"scripts that end {ends or 'whole'}")
    if caller.fault:
        found(caller.fault, [message.start for message in messages], bytes(caller.buffer))
    tally.count("known: a refusal of HEAD has a body", caller.bodies_for_head)
    tally.count("connections reset while something was written", caller.reset)
    refused = False
    for index, message in enumerate(messages):
        sent = forwarding.request(message, route)
        captured = whole.get(sent.key)
        octets = captured.pop(0) if captured else None
        answer = caller.answers[index] if index < len(caller.answers) else None
        tally.count("requests by the strict reader")
        if answer is None:
            if octets:
                found("forwarded a request and did not answer it", sent, None, octets)
            elif not refused and not caller.reset:
                found("neither forwarded nor answered", sent, bytes(caller.buffer))
            tally.count("requests behind a refusal" if refused else "requests without an answer")
            continue
        named = answer.values(b"case")
        if not named:
            problem = PROBLEM.search(answer.body)
            tally.count(f"refused {answer.start[0]} {problem[1].decode() if problem else '-'}")
            tally.count("of these: the strict reader had taken it")
            refused |= answer.last
            if octets:
                found("refused a request and forwarded it", sent, answer.octets, octets)
            continue
        if named != [sent.key.hex().encode()]:
            found("an answer to another request", sent.key, named)
        if octets is None:
            found("answered and not forwarded", sent, answer.octets)
            continue
        try:
            again, end = reader.request(octets)
            if end < len(octets):
                raise reader.Refused("octets behind it")
        except (reader.More, reader.Refused) as reason:
            found(f"emitted what is no request: {reason!r}", sent, None, octets)
            emissions.append(Emission(octets, sent, script.number, script.octets))
            continue
        apart = forwarding.differences(sent, forwarding.understood(again))
        for part, one, other in apart:
            found(f"{part} differs", one, other, octets)
        # Trailers that were left out are not looked for behind the servers.
        sent.trailers = again.trailers
        if again.values(b"expect") and not again.body and again.framing == "none":
            # A known fault, counted and not found anew: RFC 9110 section 10.1.1 wants no expectation where no content is. The gateway
            # sends one on while nothing stands behind the head.
            tally.count("known: an expectation without content is forwarded")
        tally.count("forwarded")
        emissions.append(Emission(octets, sent, script.number, script.octets))
    extra = caller.answers[len(messages) :]
    if ends == "refused":
        if len(caller.answers) <= len(messages) and not refused and not caller.fault:
            tally.count("ended without an answer")
        for answer in extra[:1]:
            problem = PROBLEM.search(answer.body)
            tally.count(f"refused {answer.start[0]} {problem[1].decode() if problem else '-'}")
    for answer in extra:
        if answer.values(b"case"):
            found("answered more requests than were sent", len(messages), answer.octets)
    if ends in ("cut", "refused", "") and len(extra) > (0 if not ends else 1):
        found("more answers than requests", len(messages), len(caller.answers))
    return emissions
