"""Medians, ratios to the best peer of the same run with their intervals, a table, JSON and a chart."""
import html
import json
import math
import re
import statistics

SUBJECT = "cardea"
FLOOR = "bare-relay"
STORED = "cardea-stored"
COLOURS = {"cardea": "#c0392b", "nginx": "#27ae60", "nginx-lua": "#16a085", "haproxy": "#2980b9", "envoy": "#8e44ad",
           "bare-relay": "#7f8c8d", "cardea-stored": "#e59866", "cardea-before": "#34495e"}


def interval(values):
    """The median, and the order statistics around it that hold it with at least 95 % (all of them below six values)."""
    ordered = sorted(values)
    count = len(ordered)
    # Binomial: the largest k with P(X < k) <= 2.5 % for X of `count` fair coins.
    below, tail, ways = 0, 0.0, 1.0
    while below < count // 2:
        tail += ways / 2 ** count
        if tail > 0.025:
            break
        below += 1
        ways = ways * (count - below + 1) / below
    low, high = max(0, below - 1), min(count - 1, count - below)
    return statistics.median(ordered), ordered[low], ordered[high]


def compare(rounds):
    """`rounds`: contender -> values, one a round. Cardea against the best of the peers that were there in every round, round by round."""
    peers = {name: values for name, values in rounds.items()
             if name not in (SUBJECT, STORED, FLOOR) and values and len(values) == len(rounds.get(SUBJECT, []))}
    if not rounds.get(SUBJECT) or not peers:
        return None
    best = min(peers, key=lambda name: statistics.median(peers[name]))
    middle, low, high = interval([ours / theirs for ours, theirs in zip(rounds[SUBJECT], peers[best])])
    return {"peer": best, "ratio": middle, "low": low, "high": high}


def table(rows):
    """Text: microseconds of processor per request, and what Cardea is to the best of the others."""
    names = []
    for row in rows:
        names += [name for name in row["cpu_us"] if name not in names]
    lines = ["| work | " + " | ".join(names) + " | best peer | ratio |", "|---" * (len(names) + 3) + "|"]
    for row in rows:
        cells = []
        for name in names:
            values = row["cpu_us"].get(name)
            if not values:
                cells.append("–")
                continue
            middle, low, high = interval(values)
            cells.append(f"{middle:.1f} ({low:.1f}–{high:.1f})")
        against = compare(row["cpu_us"])
        cells += [against["peer"], f"**{against['ratio']:.2f}** ({against['low']:.2f}–{against['high']:.2f})"] if against else ["–", "–"]
        lines.append(f"| ({row['key']}) {row['title']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def table_of_rates(rates):
    """Text: latency at a fixed rate, and what Cardea's p99 is to the best of the others."""
    lines = ["| work | offered | who | p50 | p99 | p99.9 µs | p99 to the best peer |", "|---" * 7 + "|"]
    for found in rates:
        against = compare(found["p99_us"])
        for name in found["p99_us"]:
            middles = [f"{statistics.median(found[kind][name]):.0f}" for kind in ("p50_us", "p99_us", "p999_us")]
            ratio = f"**{against['ratio']:.2f}** ({against['low']:.2f}–{against['high']:.2f}, {against['peer']})" if (
                against and name == SUBJECT) else ""
            reached = statistics.median(found["reached"][name])
            late = "" if reached > 0.98 * found["offered"] else f", reached {reached:.0f}"
            lines.append(f"| ({found['key']}) | {found['offered']}/s{late} | {name} | " + " | ".join(middles) + f" | {ratio} |")
    return "\n".join(lines)


def verdict(rates):
    """Text: on which rows the 99th percentile is told apart from the best peer's, that is, 1 lies outside of the ratio's interval."""
    groups = {"lower": [], "not told apart": [], "higher": []}
    for found in rates:
        if against := compare(found["p99_us"]):
            kind = "lower" if against["high"] < 1 else "higher" if against["low"] > 1 else "not told apart"
            # Fewer rounds than an interval of 95 % needs.
            if len(found["p99_us"][SUBJECT]) < 6:
                kind = "not told apart"
            groups[kind].append(f"({found['key']})")
    return "p99 against the best peer's: " + "; ".join(f"{kind} {' '.join(keys)}" for kind, keys in groups.items() if keys)


def above_floor(rows):
    """Text: what Cardea needs more than the least that a relay in Swift could, round by round."""
    for row in rows:
        pairs = list(zip(row["cpu_us"].get(SUBJECT, []), row["cpu_us"].get(FLOOR, [])))
        if pairs:
            middle, low, high = interval([ours - floor for ours, floor in pairs])
            yield f"({row['key']}) {SUBJECT} is {middle:.1f} µs ({low:.1f}–{high:.1f}) above the {FLOOR}"


def noise(rows):
    """Text: what disturbed the run, of all rounds the median and the worst."""
    others = [value for row in rows for value in row["others_on_core"]]
    stolen = [value for row in rows for value in row["stolen"]]
    if not others:
        return ""
    spread = []
    for row in rows:
        for values in row["cpu_us"].values():
            if len(values) > 2:
                quarters = statistics.quantiles(values, n=4)
                spread.append((quarters[2] - quarters[0]) / quarters[1])
    text = (f"Noise: others had {statistics.median(others):.1%} of the contenders' core in the median round, {max(others):.1%} in the "
            f"worst; the host took {sum(stolen):.1f} s")
    return text + (f"; half of a contender's rounds lie within {statistics.median(spread):.1%} of its median" if spread else "")


def text_of(document):
    """JSON with a list of numbers on one line, so that two results can be compared."""
    text = json.dumps(document, indent=1, ensure_ascii=False)
    return re.sub(r"\[\s+([-\d.,\s]+?)\s+\]", lambda found: "[" + " ".join(found[1].split()) + "]", text) + "\n"


def lines_of(document):
    """What the chart shows: groups of (label, contender -> value, contender -> Cardea's interval as a ratio)."""
    groups = []
    for title, kind, rows in (("Processor time per request", "cpu_us", document["rows"]),
                              ("99th percentile of latency at a fixed rate", "p99_us", document["fixed_rate"])):
        lines = []
        for row in rows:
            if against := compare(row[kind]):
                values = {name: statistics.median(numbers) for name, numbers in row[kind].items()}
                lines.append((f"({row['key']}) {row['title']}", values, against))
        groups.append((title, lines))
    idle = document["idle"]
    lines = []
    for label, kind in (("(i) bytes a connection", "bytes_per_connection"), ("(j) anonymous memory", "anonymous_kb"),
                        ("(j) start to first answer", "first_answer_ms")):
        values = {name: found[kind] for name, found in idle.items() if found.get(kind) is not None}
        if SUBJECT in values and len(values) > 1:
            lines.append((label, values, None))
    groups.append(("At rest", lines))
    return [(title, lines) for title, lines in groups if lines]


def chart(document):
    """A dot for each contender on each line, as a multiple of the best peer's, on a logarithmic axis; Cardea's interval and ratio beside."""
    left, right, top, step, gap = 268, 70, 76, 27, 36
    groups = lines_of(document)
    width = 880
    height = top + sum(gap + step * len(lines) for _, lines in groups) + 46
    low, high = 0.25, 16.0
    place = lambda ratio: left + (width - left - right) * (math.log(min(max(ratio, low), high)) - math.log(low)) / (
        math.log(high) - math.log(low))
    bottom = height - 50
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
             'font-family="system-ui, sans-serif" font-size="13" fill="#222222">',
             f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
             '<text x="16" y="24" font-size="15" font-weight="bold">Cardea beside its peers: best peer = 1, left is better</text>']
    seen = [name for name in COLOURS if any(name in values for _, lines in groups for _, values, _ in lines)]
    x = 16
    for name in seen:
        parts.append(f'<circle cx="{x + 6}" cy="44" r="6" fill="{COLOURS[name]}"/><text x="{x + 17}" y="48.5">{name}</text>')
        x += 34 + 7.4 * len(name)
    for tick in (0.25, 0.5, 1, 2, 4, 8, 16):
        x = place(tick)
        parts.append(f'<line x1="{x:.1f}" y1="{top - 8}" x2="{x:.1f}" y2="{bottom}" stroke="{"#555555" if tick == 1 else "#dddddd"}"/>'
                     f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle" fill="#555555">{tick:g}</text>')
    y = top
    for title, lines in groups:
        parts.append(f'<text x="16" y="{y + 12}" font-weight="bold">{html.escape(title)}</text>')
        y += gap - 22
        for label, values, against in lines:
            y += step
            middle = y - 10
            # Bare relay and stored tokens are no peers. Without any, as with --only, a line is as a whole.
            unit = min((value for name, value in values.items() if name not in (SUBJECT, STORED, FLOOR)), default=max(values.values())) or 1
            parts.append(f'<text x="{left - 14}" y="{middle + 4}" text-anchor="end">{html.escape(label)}</text>')
            if against:
                parts.append(f'<line x1="{place(against["low"]):.1f}" y1="{middle}" x2="{place(against["high"]):.1f}" y2="{middle}" '
                             f'stroke="{COLOURS[SUBJECT]}" stroke-width="3"/>')
            for name in reversed(seen):
                if name in values:
                    ratio = against["ratio"] if against and name == SUBJECT else values[name] / unit
                    parts.append(f'<circle cx="{place(ratio):.1f}" cy="{middle}" r="6" fill="{COLOURS[name]}" '
                                 f'fill-opacity="0.85"><title>{name}: {values[name]:.1f}</title></circle>')
            if SUBJECT in values:
                ratio = against["ratio"] if against else values[SUBJECT] / unit
                parts.append(f'<text x="{width - 16}" y="{middle + 4}" text-anchor="end" font-weight="bold" '
                             f'fill="{COLOURS[SUBJECT]}">{ratio:.2f}</text>')
        y += 22
    caption = [f"{document['processor']}, {document['processors']} processors, Linux {document['kernel']}, {document['date']}, load before "
               f"{document['load_before']:.1f}; bars: Cardea's interval over all rounds, in pairs; beyond the axis: at its end",
               ", ".join(f"{one} {version}" for one, version in document["versions"].items())]
    for number, line in enumerate(caption):
        parts.append(f'<text x="16" y="{height - 18 + 14 * number}" fill="#555555" font-size="11">{html.escape(line)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
