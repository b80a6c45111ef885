"""Invariants about the gateways themselves: what they hold, what they tell, and that they live and heal."""

import collections
import dataclasses
import math

from races import whose
from verdict import gauge

# The first half of a life is no slope (docs/design/soak.md#memory): caches fill, and the heap becomes as large as the worst storm so far
# made it. The worst of n storms is the last one with a chance of 1/n, so that the second half of a life adds as much to such a peak in
# a long run as in a short one, while what is lost with each request adds more the longer it is. It is no less than the first ten minutes.
WARM_UP, BLOCK = 600.0, 60.0
# A slope is judged over this much of a life.
LEAST = 1200.0
# What a quantity may grow by beyond twice the error of its slope: in an hour, and in all that is judged. In all it is for memory what tables
# of a fixed size hold that are touched as they are used.
ALLOWED = {"rss": 2 << 20, "fd": 2.0, "store": 64 << 10}
IN_ALL = {"rss": 8 << 20, "fd": 2.0, "store": 64 << 10}


@dataclasses.dataclass
class Slope:
    """A least-squares line through means of a minute: growth in an hour with its standard error. Minutes and not samples, since samples
    that follow each other are not independent, and would give an error far too small."""

    gateway: int
    what: str
    seconds: float
    value: float
    hourly: float
    error: float
    # Why it is not judged; none where it is.
    excuse: str | None = None

    @property
    def is_judged(self):
        return self.excuse is None

    @property
    def allowed(self):
        return min(ALLOWED[self.what], IN_ALL[self.what] * 3600 / self.seconds)

    @property
    def grows(self):
        return self.is_judged and self.hourly - 2 * self.error > self.allowed


def lives(samples):
    """Samples of each process, by (gateway, pid): what it holds is compared with itself alone."""
    found = collections.defaultdict(list)
    for sample in samples:
        found[(sample["g"], sample["pid"], round(sample["born"]))].append(sample)
    return found


def means(samples, value, begin):
    """Means of a minute each: [(seconds since `begin`, mean)]."""
    blocks = collections.defaultdict(list)
    for sample in samples:
        blocks[int((sample["t"] - begin) // BLOCK)].append(value(sample))
    return [((block + 0.5) * BLOCK, sum(values) / len(values)) for block, values in sorted(blocks.items())]


VALUES = {"rss": lambda one: one["rss"], "fd": lambda one: one["fd"], "store": lambda one: one["db"] + one["wal"]}


def slopes(history):
    """For each gateway and quantity. Lives of one gateway share a slope and have levels of their own; a store outlives its process."""
    samples = collections.defaultdict(list)
    for sample in history.all("sample"):
        samples[sample["g"]].append(sample)
    for gateway, all_of_it in sorted(samples.items()):
        for what, value in VALUES.items():
            groups = [all_of_it] if what == "store" else list(lives(all_of_it).values())
            points, seconds = [], 0.0
            for group in groups:
                begin = group[0]["t"] + max(WARM_UP, (group[-1]["t"] - group[0]["t"]) / 2)
                warm = [sample for sample in group if sample["t"] >= begin]
                found = means(warm, value, group[0]["t"])
                if len(found) < 3:
                    continue
                x, y = [sum(column) / len(found) for column in zip(*found)]
                points += [(one - x, other - y) for one, other in found]
                seconds += warm[-1]["t"] - warm[0]["t"]
            level = sum(value(sample) for sample in all_of_it) / len(all_of_it)
            width = sum(x * x for x, _ in points)
            excuse = "too short" if seconds < LEAST else "shadow memory" if what == "rss" and history.run.get("sanitizer") else None
            if len(points) < 4 or width == 0:
                yield Slope(gateway, what, seconds, level, math.nan, math.nan, "too short")
                continue
            slope = sum(x * y for x, y in points) / width
            rest = sum((y - slope * x) ** 2 for x, y in points) / max(1, len(points) - 2)
            yield Slope(gateway, what, seconds, level, slope * 3600, math.sqrt(rest / width) * 3600, excuse)


@gauge
def memory_descriptors_and_store_are_flat(history, weather, verdict):
    """What a gateway holds does not grow: the slope over its lives, less twice its error, is not above what is allowed. A run that is too
    short for a verdict says so and passes. A sanitizer keeps memory of its own for each page that was ever used."""
    for slope in slopes(history):
        if not slope.is_judged:
            verdict.excused += 1
            verdict.note(f"slopes that are not judged: {slope.excuse}")
            continue
        verdict.checked += 1
        if slope.grows:
            verdict.breaks(f"gateway {slope.gateway}: {slope.what} grows by {slope.hourly:.0f} ± {slope.error:.0f} an hour")


@gauge
def no_secret_is_told(history, weather, verdict):
    """No secret stands in a log, in what operators are shown, in an answer, in a store's file or on Redis."""
    verdict.checked = sum(record["octets"] for record in history.all("looked"))
    for leak in history.all("leak"):
        verdict.breaks(f"a secret in {leak['where']}", leak)


@gauge
def no_gateway_ends_by_itself(history, weather, verdict):
    """A gateway ends when it is told to, with status 0, and says nothing of a data race or a trap."""
    for life in history.all("life"):
        verdict.checked += 1
        if life["what"] == "ended" or (life["what"] == "stopped" and life.get("status") not in ("0", "unseen")):
            verdict.breaks(f"gateway {life['g']} {life['what']} with {life.get('status')}", life)
    for torn in history.all("torn"):
        verdict.breaks(f"{whose(torn['g'])}: {torn['line'][:200]}", torn)


@gauge
def everything_heals(history, weather, verdict):
    """When the last fault is over, every route of every gateway works again in time."""
    for heal in history.all("heal"):
        verdict.checked += 1
        if "after" not in heal:
            verdict.breaks(f"route {heal['r']} of gateway {heal['g']} does not work again", heal)


ALL = [memory_descriptors_and_store_are_flat, no_secret_is_told, no_gateway_ends_by_itself, everything_heals]
