"""What was disturbed when: the faults of a history as spans of time, so that an invariant can say where it does not hold."""

import bisect

# Seconds after the end of a disturbance in which its effects go on: leases run out, connections come back, retransmissions arrive.
AFTER = {"process": 12.0, "link": 15.0, "redis": 12.0, "lost": 12.0, "issuer": 6.0, "upstream": 3.0, "clock": 12.0, "disk": 70.0}
# A new process takes over without an end of what the old one serves.
SMOOTH = ("Upgrade", "Reload")


class Spans:
    """Spans of time, sorted, of which it can be asked whether one meets another."""

    def __init__(self, spans):
        self.spans = sorted(spans)
        self.begins = [span[0] for span in self.spans]
        self.reach = []
        for _, end in self.spans:
            self.reach.append(max(end, self.reach[-1]) if self.reach else end)

    def meet(self, begin, end):
        place = bisect.bisect_right(self.begins, end)
        return place > 0 and self.reach[place - 1] >= begin

    def within(self, begin, end):
        """Seconds of spans that lie between."""
        place = bisect.bisect_right(self.begins, end)
        total = 0.0
        for first, last in reversed(self.spans[:place]):
            total += max(0.0, min(last, end) - max(first, begin))
        return total


class Weather:
    def __init__(self, history):
        self.faults = history.all("fault")
        self.acts = history.all("act")
        self.numbers = range(1, history.run["gateways"] + 1)
        self.made = {}
        self.deaths = [record for record in history.all("life") if record["what"] == "ended"]

    def spans(self, gateway, words, after=True, smooth=True):
        """Of a gateway: its own faults and those of servers. `smooth`: upgrades count as disturbances of the process, too."""
        key = (gateway, tuple(words), after, smooth)
        if key not in self.made:
            found = []
            for fault in self.faults:
                if fault["g"] not in (0, gateway) or (not smooth and fault["name"] in SMOOTH):
                    continue
                for word in set(fault["on"]) & set(words):
                    found.append((fault["t"], fault["e"] + (AFTER[word] if after else 0)))
            if "process" in words:
                found += [(death["t"], death["t"] + AFTER["process"]) for death in self.deaths if death["g"] == gateway]
            self.made[key] = Spans(found)
        return self.made[key]

    def disturbed(self, gateway, begin, end, *words, smooth=True):
        return self.spans(gateway, words, smooth=smooth).meet(begin, end)

    def act_between(self, begin, end, *whats, identity=None):
        key = ("act", whats, identity)
        if key not in self.made:
            # What revoked tokens was at it before the answer that it has came to the run.
            begun = lambda act: act["x"].get("began", act["x"].get("before", act["t"]))  # noqa: E731
            fits = lambda act: act["what"] in whats and (identity is None or act["x"].get("identity") in (identity, None))  # noqa: E731
            self.made[key] = Spans([(begun(act), act["t"]) for act in self.acts if fits(act)])
        return self.made[key].meet(begin, end)
