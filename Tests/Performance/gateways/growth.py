"""The tables and the chart of what grows."""
import html
import math
import statistics

from .report import COLOURS, SUBJECT

KINDS = {
    "connections": "busy connections",
    "sharing": "callers of one TLS h2 upstream",
    "routes": "routes, all of them asked for",
    "identities": "identities, over 1,000 routes",
    "tokens": "users, each with a token",
}


def who(name):
    return SUBJECT if name.startswith(SUBJECT) else name


def told(document):
    for row in document["loops"]:
        yield f"\n({row['key']}) {row['title']}, one loop and two, two cores shared with load and origin: µs a request, requests a second"
        for name, times in row["cpu_us"].items():
            share = row["share_of_second"].get(name)
            yield (f"  {name}: {statistics.median(times):.1f} µs ({min(times):.1f}–{max(times):.1f}), {statistics.median(row['rps'][name]):.0f}/s"
                   + (f", the busier loop did {1 - statistics.median(share):.0%}" if share else ""))
    for kind, title in KINDS.items():
        yield f"\n{title}: µs a request, kB anonymous, ms to the first answer"
        for entry in document[kind]:
            yield (f"  {entry['who']} {entry['at']}: {statistics.median(entry['cpu_us']):.1f} ({min(entry['cpu_us']):.1f}–"
                   f"{max(entry['cpu_us']):.1f}), {entry['anonymous_kb']}" + (f", {entry['first_answer_ms']}" if "first_answer_ms" in entry else ""))
    yield f"\n{document['processor']}, {document['processors']} processors, {document['date']}, load before {document['load_before']:.1f}"


def nice(highest):
    """A round number not below, for the end of an axis."""
    unit = 10 ** math.floor(math.log10(highest))
    return next(unit * step for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if unit * step >= highest)


def panel(x, y, title, unit, series):
    """`series`: contender -> [(at, value, low, high)]; across on a logarithmic axis, up from 0."""
    width, height, left = 400, 150, 44
    top = nice(max(high for points in series.values() for *_, high in points) * 1.02)
    positions = sorted({at for points in series.values() for at, *_ in points})
    across = lambda at: x + left + (width - left - 20) * math.log(at / positions[0]) / math.log(positions[-1] / positions[0])
    up = lambda value: y + 26 + height * (1 - value / top)
    parts = [f'<text x="{x}" y="{y + 10}" font-weight="bold">{html.escape(title)}</text>']
    for share in (0, 0.5, 1):
        value = top * share
        parts.append(f'<line x1="{x + left}" y1="{up(value):.1f}" x2="{x + width - 20}" y2="{up(value):.1f}" stroke="#dddddd"/>'
                     f'<text x="{x + left - 6}" y="{up(value) + 4:.1f}" text-anchor="end" fill="#555555" font-size="11">{value:g}</text>')
    for at in positions:
        parts.append(f'<text x="{across(at):.1f}" y="{y + height + 42}" text-anchor="middle" fill="#555555" font-size="11">{at:,}</text>')
    parts.append(f'<text x="{x + width - 20}" y="{y + 10}" text-anchor="end" fill="#555555" font-size="11">{unit}</text>')
    for name, points in series.items():
        colour = COLOURS[who(name)]
        line = " ".join(f"{across(at):.1f},{up(value):.1f}" for at, value, *_ in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for at, value, low, high in points:
            parts.append(f'<line x1="{across(at):.1f}" y1="{up(low):.1f}" x2="{across(at):.1f}" y2="{up(high):.1f}" stroke="{colour}"/>'
                         f'<circle cx="{across(at):.1f}" cy="{up(value):.1f}" r="4" fill="{colour}"><title>{name}, {at}: {value:.1f}</title></circle>')
    return parts


def bars(x, y, row):
    """One loop beside two, of each contender."""
    names = list(dict.fromkeys(name.rsplit(" ", 1)[0] for name in row["cpu_us"]))
    top = nice(max(statistics.median(values) for values in row["cpu_us"].values()))
    height, step = 150, 84
    parts = [f'<text x="{x}" y="{y + 10}" font-weight="bold">{html.escape("(" + row["key"] + ") " + row["title"])}</text>',
             f'<text x="{x + 380}" y="{y + 10}" text-anchor="end" fill="#555555" font-size="11">µs a request, 1 loop and 2</text>']
    for number, name in enumerate(names):
        for count in (1, 2):
            value = statistics.median(row["cpu_us"][f"{name} {count}"])
            tall = height * value / top
            left = x + 20 + step * number + 34 * (count - 1)
            parts.append(f'<rect x="{left}" y="{y + 26 + height - tall:.1f}" width="30" height="{tall:.1f}" fill="{COLOURS[name]}" '
                         f'fill-opacity="{1 if count == 1 else 0.6}"/><text x="{left + 15}" y="{y + 20 + height - tall:.1f}" text-anchor="middle" '
                         f'font-size="11">{value:.1f}</text>')
        parts.append(f'<text x="{x + 52 + step * number}" y="{y + height + 42}" text-anchor="middle">{name}</text>')
    return parts


def chart(document):
    width, step = 880, 222
    height = 64 + step * (1 + len(KINDS)) + 26
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
             'font-family="system-ui, sans-serif" font-size="13" fill="#222222">', f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
             '<text x="16" y="24" font-size="15" font-weight="bold">What grows: processor time a request, and memory</text>']
    x = 16
    for name in ("cardea", "nginx", "haproxy", "envoy"):
        parts.append(f'<circle cx="{x + 6}" cy="42" r="6" fill="{COLOURS[name]}"/><text x="{x + 17}" y="46.5">{name}</text>')
        x += 34 + 7.4 * len(name)
    y = 68
    for number, row in enumerate(document["loops"]):
        parts += bars(16 + 430 * number, y, row)
    for kind, title in KINDS.items():
        y += step
        times, memory = {}, {}
        for entry in document[kind]:
            values = entry["cpu_us"]
            times.setdefault(entry["who"], []).append((entry["at"], statistics.median(values), min(values), max(values)))
            mega = entry["anonymous_kb"] / 1024
            memory.setdefault(entry["who"], []).append((entry["at"], mega, mega, mega))
        parts += panel(16, y, title, "µs a request", times)
        parts += panel(446, y, "", "MiB anonymous", memory)
    parts.append(f'<text x="16" y="{height - 10}" fill="#555555" font-size="11">{html.escape(document["processor"])}, {document["processors"]} '
                 f'processors, {document["date"]}, load before {document["load_before"]:.1f}; medians of {document["rounds"]} rounds, bars from the '
                 'least to the most</text></svg>')
    return "\n".join(parts) + "\n"
