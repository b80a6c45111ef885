"""Promise: who abuses HTTP/2, as a caller or as an upstream, loses its connection or its stream; others are served meanwhile, and memory
stays bounded."""

import contextlib
import time

import pytest
from hpack import Encoder

from frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    FLOW_CONTROL_ERROR,
    HEADERS,
    MOST,
    PADDED,
    PING,
    PRIORITY,
    PROTOCOL_ERROR,
    PUSH_PROMISE,
    SETTINGS,
    Caller,
    Upstream,
    frame,
    goaway,
    requests,
    reset,
    settings,
    window,
)
from harness import eventually
from scripted import Hold, Scripted, answer, echo

# What a test may add to the gateway's resident memory: far below what any of these attacks would fill without a bound.
ROOM = 96 << 20


@pytest.fixture
def attacked(gateway):
    """Starts the gateway before an upstream; at the end others are served, and the memory is what it was."""
    with contextlib.ExitStack() as stack:
        held = []

        def start(upstream, route=None, limits=None, http="1.1"):
            stack.enter_context(upstream)
            gateway.with_identity({"static": {"value": gateway.secret("token", "token-0123456789")}})
            gateway.config["routes"][0].update({"to": f"http://{upstream.address}", "http": http, **(route or {})})
            gateway.config["limits"] = limits or {}
            gateway.start()
            held.append(gateway.resident())
            return gateway

        yield start
        assert gateway.resident() - held[0] < ROOM


def others(gateway, path="/other"):
    """A stranger comes and is served at once."""
    begun = time.monotonic()
    with Caller(gateway.listen) as caller:
        caller.send(caller.request(1, path))
        assert caller.status(1) == 200
    assert gateway.get(path).status == 200
    assert time.monotonic() - begun < 20


def flood(gateway, pieces, opening=None, before=()):
    """Sends until the gateway has had enough; the reason that it gave, and how many pieces it took."""
    caller = Caller(gateway.listen, opening)
    with caller:
        caller.send(*before)
        sent = 0
        try:
            for piece in pieces:
                caller.socket.sendall(piece)
                sent += 1
        except OSError:
            pass
        others(gateway)
        return caller.rest(), sent


# --- Callers -----------------------------------------------------------------------------------------------------------


def test_rapid_reset(attacked):
    gateway = attacked(Scripted(echo))
    with Caller(gateway.listen) as caller:
        with contextlib.suppress(OSError):
            for number in range(20000):
                stream = 2 * number + 1
                caller.send(caller.request(stream, "/reset") + reset(stream))
        others(gateway)
        assert caller.rest() in (ENHANCE_YOUR_CALM, None)
    served = sum(1 for line in gateway.access() if line.get("path") == "/reset")
    assert served < 2000, served


def test_resets_that_the_caller_makes_us_send(attacked):
    """Not its own RST_STREAM: an increment of 0 makes the gateway reset the stream (RFC 9113 section 6.9)."""
    gateway = attacked(Scripted(Hold()))
    with Caller(gateway.listen) as caller:
        sent = 0
        with contextlib.suppress(OSError):
            for number in range(20000):
                stream = 2 * number + 1
                caller.send(caller.request(stream, "/made") + window(stream, 0))
                sent += 1
        assert sent < 20000 and caller.rest() in (ENHANCE_YOUR_CALM, PROTOCOL_ERROR, None)


@pytest.mark.parametrize(
    "piece",
    [
        settings(window=65535),
        frame(PING, payload=b"12345678"),
        frame(PRIORITY, 0, 3, b"\0\0\0\0\x10"),
        window(0, 1),
        goaway(),
        frame(SETTINGS, ACK),
        # Nobody knows this one. The others have a type, but no use here: ALTSVC, ORIGIN, PRIORITY_UPDATE.
        frame(0xBE),
        frame(0x0A, payload=bytes(2)),
        frame(0x0C),
        frame(0x10, payload=bytes(4)),
    ],
    ids=[
        *("settings", "ping", "priority", "window", "goaway", "settings-ack"),
        *("unknown", "altsvc", "origin", "priority-update"),
    ],
)
def test_floods_of_frames_that_move_nothing(attacked, piece):
    gateway = attacked(Scripted(echo))
    reason, sent = flood(gateway, (piece * 100 for _ in range(20000)))
    assert sent < 20000 and reason in (ENHANCE_YOUR_CALM, PROTOCOL_ERROR, None), (reason, sent)


def test_a_flood_of_large_frames_of_an_unknown_type(attacked):
    gateway = attacked(Scripted(echo))
    reason, sent = flood(gateway, (frame(0xBE, payload=bytes(16384)) * 10 for _ in range(20000)))
    assert sent < 2000 and reason in (ENHANCE_YOUR_CALM, None), (reason, sent)


@pytest.mark.parametrize(
    "piece",
    [frame(DATA, 0, 1, bytes(16384)), frame(DATA, 0, 1) * 100, window(1, 1) * 100, frame(HEADERS, END_HEADERS, 1) * 100],
    ids=["data", "empty-data", "window", "headers"],
)
def test_floods_for_a_stream_that_is_over(attacked, piece):
    gateway = attacked(Scripted(echo))
    with Caller(gateway.listen) as caller:
        caller.send(caller.request(1, "/over"))
        assert caller.status(1) == 200
        sent = 0
        with contextlib.suppress(OSError):
            for _ in range(40000):
                caller.socket.sendall(piece)
                sent += 1
        others(gateway)
        # Without regard to the windows there is a nearer bound.
        assert sent < 40000 and caller.rest() in (ENHANCE_YOUR_CALM, FLOW_CONTROL_ERROR, None), sent


@pytest.mark.parametrize(
    "piece", [frame(DATA, 0, 1), frame(DATA, PADDED, 1, b"\0"), frame(DATA, PADDED, 1, b"\x20" + bytes(32))]
)
def test_floods_of_bodies_without_a_byte(attacked, piece):
    gateway = attacked(Scripted(echo))
    with Caller(gateway.listen) as caller:
        caller.send(caller.request(1, "/slow", "POST", ended=False))
        sent = 0
        with contextlib.suppress(OSError):
            for _ in range(20000):
                caller.socket.sendall(piece * 100)
                sent += 1
        others(gateway)
        assert sent < 20000 and caller.rest() in (ENHANCE_YOUR_CALM, None)


def test_a_flood_of_continuations(attacked):
    gateway = attacked(Scripted(echo))
    pseudo = [(":method", "GET"), (":scheme", "http"), (":authority", gateway.listen), (":path", "/")]
    first = frame(HEADERS, END_STREAM, 1, Encoder().encode(pseudo))
    # Empty ones, and ones with a field that is not to be indexed.
    for piece in (frame(CONTINUATION, 0, 1), frame(CONTINUATION, 0, 1, b"\0\1x\1y")):
        reason, sent = flood(gateway, (piece * 100 for _ in range(20000)), before=[first])
        assert sent < 20000, sent


@pytest.mark.parametrize("kind", ["malformed", "closed", "behind"])
def test_a_section_that_is_passed_over_has_no_longer_than_another(attacked, kind):
    """Its CONTINUATION is awaited, and nothing else can come meanwhile, while the requests before it wait for as long as they like."""
    hold = Hold()
    gateway = attacked(Scripted(hold), limits={"head_timeout": "1s"})
    with Caller(gateway.listen) as caller:
        caller.send(caller.request(5, "/waits"))
        if kind == "closed":
            caller.send(caller.request(7, "/over"), reset(7))
        # HPACK: an indexed :method, and a name that has a capital letter, which no field may have.
        stream, block = {"malformed": (7, b"\x82\0\1A\1b"), "closed": (7, b"\x82"), "behind": (3, b"\x82")}[kind]
        caller.send(frame(HEADERS, 0, stream, block))
        begun = time.monotonic()
        assert caller.rest() == ENHANCE_YOUR_CALM
        assert time.monotonic() - begun < 10
        hold.event.set()
    others(gateway)


def test_a_small_head_that_unpacks_to_a_large_one(attacked):
    """One field of 4000 octets in the table, then an octet for each time that it is meant."""
    gateway = attacked(Scripted(echo))
    for count, expected in ((2, 200), (17, 431)):
        with Caller(gateway.listen) as caller:
            caller.send(caller.request(1, "/bomb", fields=[("x-big", "a" * 3900)] * count))
            assert caller.status(1) == expected, count
            # The connection and its table go on.
            caller.send(caller.request(3, "/after"))
            assert caller.status(3) == 200
    callers = [Caller(gateway.listen) for _ in range(20)]
    for caller in callers:
        with caller:
            with contextlib.suppress(OSError):
                for number in range(200):
                    caller.send(caller.request(2 * number + 1, "/bomb", fields=[("x-big", "a" * 3900)] * 4000))
            # It is over; the reason may be lost behind a reset.
            assert caller.rest() in (ENHANCE_YOUR_CALM, None)
    others(gateway)


def test_a_head_over_the_limit_is_431(attacked):
    gateway = attacked(Scripted(echo), limits={"header_size": "8KiB"})
    with Caller(gateway.listen) as caller:
        caller.send(caller.request(1, "/", fields=[(f"x-{number}", "b" * 500) for number in range(20)]))
        assert caller.status(1) == 431
        caller.send(caller.request(3, "/", fields=[(f"x-{number}", "b") for number in range(300)]))
        assert caller.status(3) == 431
        caller.send(caller.request(5))
        assert caller.status(5) == 200


def test_more_streams_than_were_offered(attacked):
    hold = Hold()
    gateway = attacked(Scripted(hold))
    with Caller(gateway.listen) as caller:
        caller.send(*(caller.request(2 * number + 1) for number in range(400)))
        caller.until(lambda: len(caller.resets) >= 272)
        assert len(caller.resets) == 272 and not caller.heads
        hold.event.set()
        assert caller.until(lambda: len(caller.ended) == 400)
        assert len(caller.heads) == 128
    others(gateway)


def test_a_window_that_is_never_opened(attacked):
    """The head of the answer comes, its body cannot: the stream is given up in the route's time, and so is the upstream's connection."""
    body = answer(b"z" * (8 << 20))

    def large(peer):
        for request in peer.requests():
            peer.send(body if request.target == "/large" else answer(b"small"))

    gateway = attacked(Scripted(large), route={"timeouts": {"idle": "1s"}})
    with Caller(gateway.listen, settings(window=0)) as caller:
        caller.send(*(caller.request(2 * number + 1, "/large") for number in range(100)))
        assert caller.until(lambda: len(caller.heads) == 100)
        assert gateway.resident() < ROOM * 2
        begun = time.monotonic()
        while not gateway.access():
            others(gateway)
            # The gateway looks every ten seconds whether somebody reads.
            assert time.monotonic() - begun < 60
        assert caller.until(lambda: len(caller.resets) == 100)
        # The connection itself has done nothing wrong.
        caller.send(settings(window=65535), caller.request(201, "/small"))
        assert caller.status(201) == 200


def test_a_window_that_opens_by_one(attacked):
    body = answer(b"z" * (1 << 20))

    def large(peer):
        for request in peer.requests():
            peer.send(body if request.target == "/large" else answer(b"small"))

    gateway = attacked(Scripted(large), route={"timeouts": {"idle": "1s"}})
    with Caller(gateway.listen, settings(window=0)) as caller:
        caller.send(caller.request(1, "/large"))
        # The second window of ten seconds is the first in which bytes waited from its begin.
        end = time.monotonic() + 60
        caller.socket.settimeout(0.2)
        while 1 not in caller.resets and caller.gone is None:
            assert time.monotonic() < end, "a byte now and then has kept the answer for a minute"
            caller.send(window(1, 1))
            with contextlib.suppress(TimeoutError):
                if caller.read() is None:
                    break
        others(gateway)


def test_a_caller_that_reads_nothing_at_all(attacked):
    """Windows wide open, the socket never read: what waits is bounded, whatever else it sends."""
    body = answer(b"z" * (64 << 20))

    def large(peer):
        for request in peer.requests():
            peer.send(body if request.target == "/large" else answer(b"small"))

    upstream = Scripted(large)
    gateway = attacked(upstream, route={"timeouts": {"idle": "1s"}})
    callers = [Caller(gateway.listen, settings(window=MOST), buffer=4096) for _ in range(4)]
    for caller in callers:
        caller.send(window(0, MOST - 65535), *(caller.request(2 * number + 1, "/large") for number in range(50)))
    eventually(upstream.is_stuck, within=20, every=0.3, what="the upstream being slowed down")
    others(gateway)
    eventually(lambda: len([1 for line in gateway.access() if line["path"] == "/large"]) == 200, within=30)
    for caller in callers:
        caller.socket.close()


# --- Upstreams ---------------------------------------------------------------------------------------------------------


def hostile(attack):
    """Answers `/other` like any server; everything else is for the attack."""

    def script(wire, number):
        for stream in requests(wire):
            if wire.heads[stream][-1][":path"] == "/other":
                wire.send(wire.head(stream, [(":status", "200")]))
            else:
                attack(wire, stream)

    return Upstream(script)


def attack_data_first(wire, stream):
    wire.send(frame(DATA, END_STREAM, stream, b"hello"))


def attack_push(wire, stream):
    promised = wire.encoder.encode([(":method", "GET"), (":scheme", "http"), (":authority", "x"), (":path", "/p")])
    wire.send(frame(PUSH_PROMISE, END_HEADERS, stream, (2).to_bytes(4, "big") + promised))


def attack_huge_head(wire, stream):
    wire.send(wire.head(stream, [(":status", "200"), *[("x-big", "a" * 3900)] * 4000]))


def attack_large_head(wire, stream):
    wire.send(wire.head(stream, [(":status", "200"), *[("x-big", "a" * 3900)] * 20]))


def attack_interim(wire, stream):
    piece = wire.head(stream, [(":status", "103"), ("link", "a" * 3000)], ended=False)
    for _ in range(3000):
        piece += wire.head(stream, [(":status", "103"), ("link", "a" * 3000)], ended=False)
    wire.send(piece)


def attack_goaway(wire, stream):
    wire.send(goaway(0) * 50)
    wire.socket.close()


def attack_reset(wire, stream):
    wire.send(reset(stream, 0x7))


def attack_two_heads(wire, stream):
    wire.send(wire.head(stream, [(":status", "200")], False), wire.head(stream, [(":status", "200")]))


def attack_length(wire, stream):
    wire.send(wire.head(stream, [(":status", "200"), ("content-length", "2")], False))
    wire.send(frame(DATA, END_STREAM, stream, b"hello"))


def attack_no_status(wire, stream):
    wire.send(wire.head(stream, [("x", "y")]))


def attack_bad_field(wire, stream):
    wire.send(wire.head(stream, [(":status", "200"), ("x", "y\r\nset-cookie: z=1")]))


def attack_pings(wire, stream):
    for _ in range(5000):
        wire.socket.sendall(frame(PING, payload=b"12345678") * 100)


def attack_settings(wire, stream):
    for _ in range(5000):
        wire.socket.sendall(settings(window=1) * 100)


ATTACKS = [value for name, value in sorted(globals().items()) if name.startswith("attack_")]
# In these a good head comes first. What has begun cannot become another answer: it is cut off, and never looks whole.
CUT = (attack_two_heads, attack_length)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__[7:])
def test_a_hostile_upstream(attacked, attack):
    """Each of its answers is a clean fault to the caller that asked, over either version, and nothing to the others."""
    upstream = hostile(attack)
    gateway = attacked(upstream, http="2", route={"timeouts": {"response": "3s"}})
    others(gateway)
    for _ in range(3):
        with gateway.raw() as raw:
            raw.send(f"GET /attack HTTP/1.1\r\nHost: {gateway.listen}\r\n\r\n")
            if attack in CUT:
                with pytest.raises(EOFError):
                    assert raw.answer().status in (502, 504)
                    raise EOFError
            else:
                answer = raw.answer()
                assert answer.status in (502, 504) and answer.problem, answer
                assert not answer.field("set-cookie")
        with Caller(gateway.listen) as caller:
            caller.send(caller.request(1, "/attack"))
            status = caller.status(1)
            assert status in (502, 504) or attack in CUT and 1 in caller.resets, (status, caller.resets)
        others(gateway)
    # A storm makes no storm of ours: a request is tried a few times, not for ever.
    assert len(upstream.wires) < 60, len(upstream.wires)
