"""What a run says of itself: text, and a plot."""

import collections
import json
import math

import plot
from flatness import slopes
from invariants import look
from races import whose

SHOWN = 5


def counts(records, *names):
    found = collections.Counter(tuple(str(record.get(name, "–")) for name in names) for record in records)
    return sorted(found.items())


def quantile(bins, share):
    """The bin under which so large a share of all lies."""
    wanted, seen = share * sum(bins.values()), 0
    for place, count in sorted(bins.items()):
        seen += count
        if seen >= wanted:
            return place
    return max(bins)


def unit(what, value):
    if math.isnan(value):
        return "too short"
    return f"{value:.1f}" if what == "fd" else f"{value / 1024:.0f} KiB"


def text(history, verdicts, found):
    run, faults = history.run, history.all("fault")
    seconds = max((record["t"] for record in history.all("sample")), default=run["t"]) - run["t"]
    lines = [f"SEED={run['seed']}, {run['gateways']} gateways, {seconds / 60:.1f} minutes", ""]
    lines.append("Faults made:")
    lines += [f"  {name:16} {count}" for (name,), count in counts(faults, "name")]
    lines += [
        f"  with trouble: {fault['name']} at {fault['t']:.1f}: {fault['x']['trouble']}" for fault in faults if "trouble" in fault["x"]
    ]
    left_out = next(iter(history.all("left_out")), {"x": {}})["x"]
    lines += [f"  LEFT OUT: {name}: {why}" for name, why in left_out.items()] or ["  none was left out"]
    lines += [
        "",
        "What operators did: " + (", ".join(f"{what} {count}" for (what,), count in counts(history.all("act"), "what")) or "nothing"),
    ]
    by_kind, statuses, waits = collections.defaultdict(collections.Counter), collections.Counter(), collections.Counter()
    for ask in history.stream("ask"):
        by_kind[ask["kind"]][ask["out"]] += 1
        if "st" in ask:
            statuses[f"{ask['st']} {ask['p']}" if "p" in ask else str(ask["st"])] += 1
        if ask["r"] not in ("w",) and ask["out"] == "whole":
            # To a tenth of a power of ten: a run of days has too many to keep.
            waits[math.ceil(10 * math.log10(max(0.001, ask["e"] - ask["t"] - ask.get("late", 0))))] += 1
    total = sum(sum(outs.values()) for outs in by_kind.values())
    lines += ["", f"Requests: {total}, {total / max(1, seconds):.0f} a second"]
    for kind, outs in sorted(by_kind.items()):
        lines.append(f"  {kind:10}" + ", ".join(f"{out} {count}" for out, count in outs.most_common()))
    lines.append("  answers: " + ", ".join(f"{status} {count}" for status, count in statuses.most_common()))
    if waits:
        lines.append(
            "  whole ones took at most "
            + ", ".join(f"{share:.2%}: {10 ** (quantile(waits, share) / 10):.3f} s" for share in (0.5, 0.99, 0.9999, 1))
        )
    lines += ["", "Calls of issuers:"]
    calls = [call for call in history.all("call") if call.get("c")]
    lines += [f"  {client:8} {how:20} {status:5} {count}" for (client, how, status), count in counts(calls, "c", "how", "st")]
    lines += ["", "Invariants:"]
    for verdict in verdicts:
        state = "BROKEN" if verdict.broken else "held"
        lines.append(
            f"  {state:7}{verdict.name}: {verdict.checked} tried, {verdict.excused} excused"
            + (f", {len(verdict.broken)} broken" if verdict.broken else "")
        )
        lines += [f"           {what}: {count}" for what, count in verdict.notes.items()]
        for words, records in verdict.broken[:SHOWN]:
            lines.append(f"           {words}")
            for record in records:
                # What a sanitizer reports has lines of its own, and stands below.
                evidence = {name: value for name, value in record.items() if name != "report"}
                lines.append(f"             {json.dumps(evidence, separators=(',', ':'))}")
            lines += [f"             {line}" for line in around(faults, records)]
    lines += ["", "What gateways hold (mean; growth in an hour with its standard error):"]
    for slope in found:
        growth = f"{unit(slope.what, slope.hourly)} ± {unit(slope.what, slope.error)}" if not math.isnan(slope.hourly) else "too short"
        lines.append(
            f"  gateway {slope.gateway} {slope.what:6}{unit(slope.what, slope.value):>12}  {growth}"
            + ("" if slope.is_judged else f" (not judged: {slope.excuse})")
        )
    lines += reports(history)
    return "\n".join(lines) + "\n"


def reports(history):
    """What the thread sanitizer reported, each race once, with its stacks: what a reader needs to mend it."""
    found = collections.defaultdict(list)
    for torn in history.all("torn"):
        if "report" in torn:
            found[torn["line"]].append(torn)
    for line, alike in sorted(found.items(), key=lambda pair: pair[1][0]["t"]):
        yield ""
        yield f"{line}: {len(alike)} times, first of {whose(alike[0]['g'])} at {alike[0]['t']:.1f}"
        yield from (f"  {part}" for part in alike[0]["report"].splitlines())


def around(faults, records):
    """The faults that were near: what a reader asks first."""
    if not records:
        return
    begin, end = min(record["t"] for record in records) - 30, max(record.get("e", record["t"]) for record in records)
    gateways = {record.get("g") for record in records} | {0}
    for fault in faults:
        if fault["g"] in gateways and fault["e"] >= begin and fault["t"] <= end:
            yield f"fault {fault['name']} of {fault['g'] or 'all'}: {fault['t']:.2f} to {fault['e']:.2f} {fault['x'] or ''}"


def write(history):
    """Writes report.txt and soak.svg beside the history; the status that the run ends with."""
    verdicts, found = look(history), list(slopes(history))
    words = text(history, verdicts, found)
    (history.folder / "report.txt").write_text(words)
    (history.folder / "soak.svg").write_text(plot.chart(history, found))
    print(words)
    broken = [verdict for verdict in verdicts if verdict.broken]
    run = history.run
    if broken:
        print(f"BROKEN: {len(broken)} of {len(verdicts)} invariants; SEED={run['seed']}, {history.folder}")
    return 1 if broken else 0
