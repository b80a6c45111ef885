"""Medians, ratios to the best peer of the same run with their intervals, a table, JSON and a chart."""
import html
import statistics

SUBJECT = "cardea"
FLOOR = "bare-relay"
COLOURS = {"cardea": "#c0392b", "nginx": "#27ae60", "nginx-lua": "#16a085", "haproxy": "#2980b9", "envoy": "#8e44ad",
           "bare-relay": "#7f8c8d"}


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
    """`rounds`: contender -> values, one a round. Cardea against the best peer, round by round."""
    peers = {name: values for name, values in rounds.items() if name not in (SUBJECT, FLOOR)}
    if SUBJECT not in rounds or not peers:
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


def chart(rows, caption):
    """A dot for each contender on each row: processor time per request as a multiple of the best peer's, on a logarithmic axis."""
    import math
    left, right, top, step = 250, 30, 64, 34
    width, height = 900, top + step * len(rows) + 60
    low, high = 0.5, 6.0
    place = lambda ratio: left + (width - left - right) * (math.log(min(max(ratio, low), high)) - math.log(low)) / (
        math.log(high) - math.log(low))
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
             f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
             f'<text x="{left}" y="20" font-weight="bold">Processor time per request, best peer = 1 (left is better)</text>']
    seen = [name for name in COLOURS if any(row["cpu_us"].get(name) for row in rows)]
    for number, name in enumerate(seen):
        x = left + number * 105
        parts.append(f'<circle cx="{x + 5}" cy="38" r="5" fill="{COLOURS[name]}"/><text x="{x + 15}" y="42">{name}</text>')
    for tick in (0.5, 0.7, 1, 1.5, 2, 3, 4, 6):
        x = place(tick)
        bold = ' stroke-width="2"' if tick == 1 else ""
        parts.append(f'<line x1="{x:.1f}" y1="{top - 8}" x2="{x:.1f}" y2="{height - 44}" stroke="#cccccc"{bold}/>'
                     f'<text x="{x:.1f}" y="{height - 28}" text-anchor="middle" fill="#555555">{tick:g}</text>')
    for number, row in enumerate(rows):
        y = top + step * number + 14
        parts.append(f'<text x="{left - 12}" y="{y + 4}" text-anchor="end">({row["key"]}) {html.escape(row["title"])}</text>')
        against = compare(row["cpu_us"])
        if not against:
            continue
        unit = statistics.median(row["cpu_us"][against["peer"]])
        for name in reversed(seen):
            if values := row["cpu_us"].get(name):
                x = place(statistics.median(values) / unit)
                parts.append(f'<circle cx="{x:.1f}" cy="{y}" r="6" fill="{COLOURS[name]}" fill-opacity="0.9"/>')
    parts.append(f'<text x="12" y="{height - 8}" fill="#555555" font-size="11">{html.escape(caption)}</text></svg>')
    return "\n".join(parts) + "\n"
