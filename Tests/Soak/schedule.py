"""Which fault comes when, drawn from the seed: storms of about a minute with a fault every few seconds, and calms between them in which
the promises hold without any exception."""

import contextlib
import random
import threading
import time

import faults

STORM, CALM = (40, 70), (15, 25)
GAP = (1.0, 5.0)
TOGETHER = 3


def lane(fault):
    """Faults of one lane of one gateway, or of one server, exclude each other."""
    touches = fault.touches
    for word in ("process", "clock"):
        if word in touches:
            return "process"
    return touches[0] if touches else type(fault).__name__


class Schedule:
    def __init__(self, world, seed, only=None):
        self.world, self.random = world, random.Random(seed)
        self.kinds, self.left_out = [], {}
        for kind in faults.ALL:
            if only and kind.__name__ not in only:
                continue
            if why := kind.missing(world):
                self.left_out[kind.__name__] = why
            else:
                self.kinds.append(kind)
        self.busy, self.lock, self.threads = set(), threading.Lock(), []
        self.made, self.number = {}, 0

    def run(self, until, stopping):
        """Storms and calms until that moment; every fault is over when it returns."""
        while time.monotonic() < until and not stopping.is_set():
            end = min(until, time.monotonic() + self.random.uniform(*STORM))
            while (now := time.monotonic()) < end and not stopping.is_set():
                if len(self.busy) < TOGETHER:
                    self.begin(self.draw(end - now))
                stopping.wait(self.random.uniform(*GAP))
            self.join()
            stopping.wait(min(self.random.uniform(*CALM), max(0, until - time.monotonic())))

    def draw(self, left):
        kind = self.random.choices(self.kinds, [kind.weight for kind in self.kinds])[0]
        members = [member for member in self.world.members if kind.fits(member)]
        member = self.random.choice(members) if kind.of_gateway else None
        fault = kind(self.world, member, self.random)
        fault.length = min(fault.length, max(0.1, left))
        return fault

    def begin(self, fault):
        place = (fault.member.number if fault.member else 0, lane(fault))
        with self.lock:
            if place in self.busy:
                return
            self.busy.add(place)
            self.number += 1
            number = self.number
        thread = threading.Thread(target=self.make, args=(fault, place, number), daemon=True)
        self.threads.append(thread)
        thread.start()

    def make(self, fault, place, number):
        name, began = type(fault).__name__, time.monotonic()
        try:
            with fault.member.lock if place[1] == "process" else contextlib.nullcontext():
                fault.begin()
                time.sleep(fault.length)
                fault.end()
        except Exception as trouble:  # noqa: BLE001  it is told, and what it left is put right at the end
            fault.facts["trouble"] = repr(trouble)[:300]
            self.world.say(f"fault {name} of gateway {place[0]}: {trouble!r}")
        finally:
            on = list(fault.touches)
            self.world.history.note("fault", began, e=time.monotonic(), n=number, name=name, g=place[0], on=on, x=fault.facts)
            self.world.history.flush()
            with self.lock:
                self.busy.discard(place)
                self.made[name] = self.made.get(name, 0) + 1

    def join(self):
        for thread in self.threads:
            thread.join(120)
        self.threads = [thread for thread in self.threads if thread.is_alive()]
