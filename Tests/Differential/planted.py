"""Faults that a gateway could have, planted into what it emitted: the oracle has to see each of them."""

import asyncio
import contextlib
import dataclasses
import re

import answering
import chain
import clients
import findings
import forwarding
import gateway
import making_answers
import making_requests
import origin
import requesting


def head(octets):
    """(lines of the head, body)"""
    text, _, body = octets.partition(b"\r\n\r\n")
    return text.split(b"\r\n"), body


def join(lines, body):
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def with_line(line, at=1):
    def change(octets):
        lines, body = head(octets)
        return join(lines[:at] + [line] + lines[at:], body)

    return change


def each_line(pattern, replacement):
    def change(octets):
        lines, body = head(octets)
        return join([re.sub(pattern, replacement, line) for line in lines], body)

    return change


def doubled_length(octets):
    lines, body = head(octets)
    return join([*lines, b"Content-Length: 1"], body)


def length_and_chunks(octets):
    lines, body = head(octets)
    return join([*lines, b"Transfer-Encoding: chunked"], b"0\r\n\r\n" + body)


def longer_length(octets):
    lines, body = head(octets)
    return join(
        [
            re.sub(rb"(?i)^(content-length: )(\d+)", lambda found: found[1] + b"%d" % (int(found[2]) + 3), line)
            for line in lines
        ],
        body,
    )


def shorter_length(octets):
    lines, body = head(octets)
    return join(
        [
            re.sub(rb"(?i)^(content-length: )(\d+)", lambda found: found[1] + b"%d" % (int(found[2]) - 3), line)
            for line in lines
        ],
        body,
    )


def wrong_chunk_size(octets):
    lines, body = head(octets)
    return join(lines, re.sub(rb"^([0-9a-f]+)", lambda found: b"%x" % (int(found[1], 16) - 1), body))


def changed_body(octets):
    lines, body = head(octets)
    return join(lines, body.replace(b"hello", b"Hello"))


def second_request(octets):
    return octets + b"GET /d/0badc0de HTTP/1.1\r\nHost: h.example\r\n\r\n"


def bare_line_feed(octets):
    lines, body = head(octets)
    return lines[0] + b"\r\n" + b"\n".join(lines[1:]) + b"\r\n\r\n" + body


# Name → (what changes, framing of the request it changes, whether every server has to notice: refuse it, or report something else).
REQUESTS = {
    "a second length": (doubled_length, "length", True),
    "a length that is too large": (longer_length, "length", True),
    "a length that is too small": (shorter_length, "length", True),
    "a length and chunks": (length_and_chunks, "length", True),
    "a chunk size that is too small": (wrong_chunk_size, "chunked", True),
    # Some servers repair these four, against RFC 9112 sections 5.1, 5.2 and 2.2.
    "a space before the colon": (each_line(rb"^X-A:", b"X-A :"), "length", False),
    "a folded line": (each_line(rb"^X-A: ", b"X-A:\r\n "), "length", False),
    "bare line feeds": (bare_line_feed, "length", False),
    "NUL in a value": (each_line(rb"^X-A: .*", b"X-A: a\x00b"), "length", False),
    "another target": (each_line(rb"/d/([0-9a-f]{8})\S*", rb"/d/\1/other"), "length", True),
    "another method": (each_line(rb"^POST ", b"PUT "), "length", True),
    "another field value": (each_line(rb"^X-A: .*", b"X-A: other"), "length", True),
    "a field that is gone": (each_line(rb"^X-A: ", b"X-Z: "), "length", True),
    "a field too many": (with_line(b"X-Injected: 1", 2), "length", True),
    "another Host": (each_line(rb"^Host: .*", b"Host: other.example"), "length", True),
    "another body": (changed_body, "length", True),
    "a second request": (second_request, "length", True),
}


def cut_short(octets):
    return octets[:-1]


# The same of answers. Clients are compared with the strict reader, and the strict reader with what was meant: where an altered answer is
# one that all of them read alike, only the second comparison sees it.
ANSWERS = {
    "a second length": (doubled_length, "length", False),
    "a length that is too large": (longer_length, "length", False),
    "a length that is too small": (shorter_length, "length", False),
    "a length and chunks": (length_and_chunks, "length", False),
    "a chunk size that is too small": (wrong_chunk_size, "chunked", True),
    "a space before the colon": (each_line(rb"^X-A:", b"X-A :"), "length", False),
    "a folded line": (each_line(rb"^X-A: ", b"X-A:\r\n "), "length", False),
    "NUL in a value": (each_line(rb"^X-A: .*", b"X-A: a\x00b"), "length", False),
    "another status": (each_line(rb"^HTTP/1.1 200", b"HTTP/1.1 201"), "length", False),
    "another field value": (each_line(rb"^X-A: .*", b"X-A: other"), "length", False),
    "a field too many": (with_line(b"X-Injected: 1", 2), "length", False),
    "another body": (changed_body, "length", False),
    "the end is missing": (cut_short, "chunked", True),
}


# --- What the oracle sees of them --------------------------------------------------------------------------------------


@dataclasses.dataclass(slots=True)
class Seen:
    """How a planted fault was seen: whether the strict reader found it, and which servers or clients refused it or read it otherwise."""

    by_reader: bool
    by_others: set


REQUEST = {
    "length": b"POST /d/%08x HTTP/1.1\r\nHost: h.example\r\nX-A: plain\r\nContent-Length: 5\r\n\r\nhello",
    "chunked": b"POST /d/%08x HTTP/1.1\r\nHost: h.example\r\nX-A: plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
}
ANSWER = {
    "length": b"HTTP/1.1 200 OK\r\nX-A: plain\r\nContent-Length: 5\r\n\r\nhello",
    "chunked": b"HTTP/1.1 200 OK\r\nX-A: plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
}
UNCHANGED = "nothing"


async def requests():
    """Sends a good request for each fault, alters it behind the gateway, and gives name → Seen; one is not altered."""
    faults = [(UNCHANGED, (lambda octets: octets, "length", False)), *REQUESTS.items()]
    scripts = []
    for number, (_, (_, framing, _)) in enumerate(faults):
        octets = REQUEST[framing] % (number * 8) + making_requests.Generator.sentinel(0, number * 8 + 7)
        scripts.append(making_requests.Script(0, [octets], number, 2))
    upstream = await origin.Origin().start()

    def alter(octets):
        case = int(forwarding.CASE.search(octets)[1], 16)
        return faults[case // 8][1][0](octets) if case % 8 == 0 else octets

    upstream.alter = alter
    tally = findings.Tally(keep=1000)
    async with chain.readers(tally, together=1) as replays, chain.running(upstream) as places:
        for replay in replays:
            replay.outcomes = {}
        emissions = await requesting.send(scripts, places, gateway.routes(upstream.address), upstream, tally)
        # Sentinels of the scripts agree, and would stand beside what became of the altered ones.
        emissions = [emission for emission in emissions if emission.sent and b"?sentinel" not in emission.sent.target]
        await asyncio.gather(*(replay.run(emissions) for replay in replays))
    reader_found = {finding.number for finding in tally.findings if finding.who == "gateway"}
    return {
        name: Seen(
            number in reader_found,
            {replay.server.name for replay in replays if replay.outcomes.get(number, set()) - {"agreed"}},
        )
        for number, (name, _) in enumerate(faults)
    }


async def answers():
    """The same of answers."""
    faults = [(UNCHANGED, (lambda octets: octets, "length", False)), *ANSWERS.items()]
    exchanges = []
    for number, (_, (_, framing, _)) in enumerate(faults):
        key = b"%08x" % (number * 8 + 7)
        last = making_answers.Answer(b"GET", 1, [making_answers.sentinel(key)], False, key)
        exchanges.append(
            making_answers.Exchange(
                number, [making_answers.Answer(b"GET", 1, [ANSWER[framing]], False, b"%08x" % (number * 8)), last]
            )
        )
    upstream = await origin.Answering().start()

    def alter(octets, number):
        at = octets.index(b"HTTP/1.1", 1)
        change = faults[number][1][0]
        # Where the end is missing nothing follows.
        return change(octets[:at]) + (b"" if change is cut_short else octets[at:])

    upstream.alter = alter
    tally = findings.Tally(keep=1000)
    with contextlib.closing(clients.Clients(tally)) as every:
        async with chain.running(upstream) as places:
            passed = await answering.send(exchanges, places[0], upstream, tally)
            # The altered ones alone.
            await asyncio.to_thread(
                every.compare, [one for one in passed if b"X-Sentinel" not in one.octets.partition(b"\r\n\r\n")[0]]
            )
    reader_found = {finding.number for finding in tally.findings if finding.who == "gateway"}
    return {
        name: Seen(number in reader_found, every.noticed.get(number, set())) for number, (name, _) in enumerate(faults)
    }
