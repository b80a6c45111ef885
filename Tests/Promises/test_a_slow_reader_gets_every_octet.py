"""Promise: a caller that reads slowly gets its answer whole, and the answer to what it asked next."""

import contextlib
import time

from harness import eventually, together
from scripted import Narrow, Scripted, get, plain

BIG = 20 << 20


def sized(peer):
    """`/5000` is answered with 5000 octets; `?close` says that the connection ends, `?end` ends by it."""
    for request in peer.requests():
        size, _, how = request.target.strip("/").partition("?")
        size = int(size)
        fields = {
            "": b"Content-Length: %d\r\n" % size,
            "close": b"Content-Length: %d\r\nConnection: close\r\n" % size,
            "end": b"Connection: close\r\n",
            "bare": b"",
        }[how]
        peer.send(b"HTTP/1.1 200 OK\r\n" + fields + b"\r\n")
        for _ in range(size // 65536):
            peer.send(b"y" * 65536)
        peer.send(b"y" * (size % 65536))
        if how:
            return


def read_slowly(raw, seconds, size):
    """Spreads the reading of the first `size` octets evenly over so many seconds."""
    begun = time.monotonic()
    while len(raw.buffer) < size:
        due = begun + seconds * len(raw.buffer) / size
        eventually(lambda: time.monotonic() >= due, within=seconds + 1)
        if not raw._fill():
            return


def written(gateway, raw):
    """Octets that the gateway has handed to the kernel and the caller has not read, by the kernel's own table."""
    here, there = raw.socket.getsockname()[1], raw.socket.getpeername()[1]
    octets = 0
    for line in open("/proc/net/tcp").read().splitlines()[1:]:
        _, local, remote, _, queues = line.split()[:5]
        ports = int(local.split(":")[1], 16), int(remote.split(":")[1], 16)
        waiting_out, waiting_in = (int(part, 16) for part in queues.split(":"))
        octets += waiting_out if ports == (there, here) else waiting_in if ports == (here, there) else 0
    return octets


def test_two_requests_in_one_write(gateway):
    with Scripted(sized) as upstream:
        plain(gateway, upstream).start()
        with Narrow(gateway.listen) as raw:
            raw.send(get(gateway, f"/{BIG}") + get(gateway, "/7"))
            eventually(upstream.is_stuck, within=20, every=0.2, what="the reader's slowness at the upstream")
            first, second = raw.answer(), raw.answer()
        assert (first.status, len(first.body)) == (200, BIG)
        assert (second.status, second.body) == (200, b"y" * 7)


def test_a_pipeline_of_large_answers(gateway):
    with Scripted(sized) as upstream:
        plain(gateway, upstream).start()
        sizes = [1 << 20, 3, 4 << 20, 16_384, 0, 2 << 20, 5]
        with Narrow(gateway.listen) as raw:
            raw.send(b"".join(get(gateway, f"/{size}") for size in sizes))
            eventually(upstream.is_stuck, within=20, every=0.2, what="the reader's slowness at the upstream")
            assert [len(raw.answer().body) for _ in sizes] == sizes


ENDS = [(how, caller) for how in ("", "?close", "?end", "?bare") for caller in ("keeps", "closes", "1.0")] * 2


def test_an_answer_that_ends_a_connection(gateway):
    """By the upstream's word, by its close, by the caller's wish, and by HTTP/1.0."""

    def one(number):
        how, caller = ENDS[number]
        size = (5 << 20) + number * 123_457
        fields = ["Connection: close"] if caller == "closes" else []
        with Narrow(gateway.listen, room=65536) as raw:
            raw.send(get(gateway, f"/{size}{how}", *fields, version="1.0" if caller == "1.0" else "1.1"))
            read_slowly(raw, 2.5, size)
            found = raw.answer()
            return how, caller, found.status, len(found.body) - size

    with Scripted(sized) as upstream:
        plain(gateway, upstream).start()
        assert together(len(ENDS), one) == [(how, caller, 200, 0) for how, caller in ENDS]


def test_the_last_piece_waits_for_a_reader_that_begins_late(gateway):
    """Sizes just past what the kernel takes, so that some end with a piece of the answer still in us; the reader begins
    later than a closing connection waits for anything else."""
    with Scripted(sized) as upstream, contextlib.ExitStack() as stack:
        plain(gateway, upstream).start()
        with Narrow(gateway.listen) as raw:
            raw.send(get(gateway, f"/{BIG}"))
            eventually(upstream.is_stuck, within=20, every=0.2, what="the reader's slowness at the upstream")
            most = written(gateway, raw)
        assert most > 100_000
        sizes = [most + step * 4096 for step in range(-16, 32)]
        raws = [stack.enter_context(Narrow(gateway.listen)) for _ in sizes]
        for raw, size in zip(raws, sizes):
            raw.send(get(gateway, f"/{size}", "Connection: close"))
        eventually(upstream.is_stuck, within=30, every=0.2, what="the answers on their way")
        begun = time.monotonic()
        eventually(lambda: time.monotonic() > begun + 2, every=0.1)
        assert together(len(raws), lambda number: len(raws[number].answer().body)) == sizes
