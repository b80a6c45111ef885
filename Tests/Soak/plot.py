"""The plot of a run: faults over time, requests by outcome, and what each gateway holds, with its slope."""

import collections
import html
import math

COLOURS = ["#1f5fa8", "#c2571a", "#2d7d46", "#7a3e9d", "#8a6d1d", "#555555"]
OUTS = {"whole": "#2d7d46", "problem": "#d9a400", "cut": "#c2571a", "refused": "#7a3e9d", "silent": "#b00020"}
LEFT, RIGHT, WIDTH, PANEL, GAP = 120, 30, 1000, 110, 46


class Drawing:
    def __init__(self, begin, end):
        self.begin, self.end, self.y, self.parts = begin, max(end, begin + 1), 56, []

    def x(self, moment):
        return LEFT + (WIDTH - LEFT - RIGHT) * (moment - self.begin) / (self.end - self.begin)

    def text(self, x, y, words, more=""):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" {more}>{html.escape(words)}</text>')

    def panel(self, title, top, unit):
        """A frame whose value axis goes from 0 to `top`; brings the place of a value."""
        y, high = self.y, self.y + PANEL
        self.text(LEFT, y - 8, title, 'font-weight="bold"')
        for share in (0, 0.5, 1):
            line = high - PANEL * share
            self.parts.append(f'<line x1="{LEFT}" y1="{line:.1f}" x2="{WIDTH - RIGHT}" y2="{line:.1f}" stroke="#dddddd"/>')
            self.text(LEFT - 8, line + 4, unit(top * share), 'text-anchor="end" fill="#555555" font-size="11"')
        self.y += PANEL + GAP
        return lambda value: high - PANEL * min(1.0, value / top)

    def line(self, points, colour):
        if points:
            places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            self.parts.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.3"/>')

    def time_axis(self):
        span = self.end - self.begin
        step = next(step for step in (30, 60, 300, 600, 1800, 3600, 14400, 43200, 1 << 30) if span / step <= 12)
        for tick in range(0, int(span) + 1, step):
            label = f"{tick} s" if step < 60 else f"{tick / 60:g} min" if step < 3600 else f"{tick / 3600:g} h"
            self.text(self.x(self.begin + tick), self.y - 24, label, 'text-anchor="middle" fill="#555555" font-size="11"')

    def legend(self, names):
        x = LEFT + 260
        for name, colour in names:
            self.parts.append(f'<rect x="{x}" y="{self.y - 18}" width="10" height="10" fill="{colour}"/>')
            self.text(x + 14, self.y - 9, name, 'font-size="11"')
            x += 26 + 7 * len(name)

    def svg(self, title):
        height = self.y + 10
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        head += 'font-family="system-ui, sans-serif" font-size="13" fill="#222222">'
        back = f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
        back += f'<text x="16" y="24" font-size="15" font-weight="bold">{html.escape(title)}</text>'
        return "\n".join([head, back, *self.parts, "</svg>"]) + "\n"


def draw_faults(drawing, faults):
    names = sorted({fault["name"] for fault in faults})
    drawing.text(LEFT, drawing.y - 8, "Faults, by the gateway that had them (grey: all)", 'font-weight="bold"')
    for row, name in enumerate(names):
        y = drawing.y + 13 * row
        drawing.text(LEFT - 8, y + 9, name, 'text-anchor="end" font-size="10"')
        drawn = {}
        for fault in faults:
            # Of a run of days, only what can be told apart.
            if fault["name"] == name and drawing.x(fault["e"]) > drawn.get(fault["g"], 0) + 0.5:
                drawn[fault["g"]] = drawing.x(fault["e"])
                colour = COLOURS[(fault["g"] or len(COLOURS)) - 1]
                width = max(1.5, drawing.x(fault["e"]) - drawing.x(fault["t"]))
                drawing.parts.append(f'<rect x="{drawing.x(fault["t"]):.1f}" y="{y + 1}" width="{width:.1f}" height="9" fill="{colour}"/>')
    drawing.y += 13 * len(names) + GAP


def word(ask):
    if ask["out"] == "whole":
        return "problem" if "p" in ask else "whole"
    return {"closed": "cut", "wrong": "silent", "stray": "silent", "told": "silent", "fault": "silent"}.get(ask["out"], ask["out"])


def draw_requests(drawing, history):
    width = max(1.0, (drawing.end - drawing.begin) / 240)
    bins = collections.defaultdict(collections.Counter)
    for ask in history.stream("ask"):
        bins[int((ask["e"] - drawing.begin) / width)][word(ask)] += 1
    top = max((sum(bins[place][name] for name in OUTS) / width for place in bins), default=1)
    drawing.legend(OUTS.items())
    place_of = drawing.panel("Requests a second, by their end", top, lambda value: f"{value:.0f}")
    for place, found in bins.items():
        level = 0.0
        for name, colour in OUTS.items():
            if count := found[name] / width:
                y = place_of(level + count)
                x = drawing.x(drawing.begin + place * width)
                if x > WIDTH - RIGHT:
                    continue
                size = f'width="{(WIDTH - LEFT - RIGHT) / 240:.2f}" height="{max(0.5, place_of(level) - y):.1f}"'
                drawing.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{colour}"/>')
                level += count


def draw_held(drawing, history, slopes):
    kinds = {"rss": ("Resident memory", 1 << 20, "MiB"), "fd": ("Descriptors", 1, ""), "store": ("Store, with its log", 1 << 10, "KiB")}
    for what, (title, scale, unit) in kinds.items():
        value = (lambda one: (one["db"] + one["wal"]) / scale) if what == "store" else (lambda one: one[what] / scale)  # noqa: B023
        samples = history.all("sample")
        top = 1.15 * max((value(sample) for sample in samples), default=1)
        found = [slope for slope in slopes if slope.what == what and not math.isnan(slope.hourly)]
        drawing.legend([(f"gateway {number}", COLOURS[number - 1]) for number in sorted({sample["g"] for sample in samples})])
        place_of = drawing.panel(title, top, lambda value: f"{value:.0f} {unit}")  # noqa: B023
        step = max(1, len(samples) // 1500)
        for number in sorted({sample["g"] for sample in samples}):
            lines = collections.defaultdict(list)
            for sample in [sample for sample in samples if sample["g"] == number][::step]:
                lines[sample["pid"]].append((drawing.x(sample["t"]), place_of(value(sample))))
            for points in lines.values():
                drawing.line(points, COLOURS[number - 1])
        words = "; ".join(f"{slope.gateway}: {slope.hourly / scale:+.2f} ± {slope.error / scale:.2f}" for slope in found)
        drawing.text(
            LEFT,
            drawing.y - GAP + 16,
            f"growth in an hour, {unit or 'number'}: {words or 'too short to say'}",
            'font-size="11" fill="#555555"',
        )


def chart(history, slopes):
    run, samples = history.run, history.all("sample")
    drawing = Drawing(run["t"], max((sample["t"] for sample in samples), default=run["t"] + 1))
    draw_faults(drawing, history.all("fault"))
    draw_requests(drawing, history)
    draw_held(drawing, history, slopes)
    drawing.y += 8
    drawing.time_axis()
    minutes = (drawing.end - drawing.begin) / 60
    return drawing.svg(f"Soak: {run['gateways']} gateways, {minutes:.0f} minutes, SEED={run['seed']}")
