"""A relay for packets between the hub and a gateway: each is held for a while that is drawn anew, so that they come late and in another
order. The kernel's netem is not everywhere; this needs /dev/net/tun alone."""

import contextlib
import fcntl
import heapq
import os
import random
import select
import struct
import threading
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000


def tunnel(space, name):
    """One end of the relay in a namespace: a descriptor of whole packets."""
    with space.inside():
        file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    space.command("link", "set", name, "up")
    return file


class Relay:
    """Stands between two namespaces until it is closed: who routes into its devices is delayed."""

    def __init__(self, hub, space, name, delay, spread, seed):
        self.delay, self.spread, self.random = delay, spread, random.Random(seed)
        self.ends = [tunnel(hub, name), tunnel(space, "relay0")]
        self.held, self.number, self.passed, self.overtaken = [], 0, 0, 0
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        latest = [0, 0]
        while not self.stopping.is_set():
            wait = 0.05 if not self.held else max(0.0, min(0.05, self.held[0][0] - time.monotonic()))
            for file in select.select(self.ends, [], [], wait)[0]:
                with contextlib.suppress(BlockingIOError):
                    for _ in range(64):
                        packet = os.read(file, 65536)
                        due = time.monotonic() + self.delay + self.random.uniform(0, self.spread)
                        self.number += 1
                        heapq.heappush(self.held, (due, self.number, 1 - self.ends.index(file), packet))
            now = time.monotonic()
            while self.held and self.held[0][0] <= now:
                _, number, end, packet = heapq.heappop(self.held)
                self.passed += 1
                self.overtaken += number < latest[end]
                latest[end] = max(latest[end], number)
                with contextlib.suppress(OSError):
                    os.write(self.ends[end], packet)

    def close(self):
        self.stopping.set()
        self.thread.join()
        for file in self.ends:
            os.close(file)
