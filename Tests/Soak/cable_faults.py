"""Faults of a gateway's cable: what is lost on it, how much it carries, and when it arrives."""

import pathlib
import time

from fault import Fault
from harness import Missing, executable
from places import REDIS
from relay import Relay


def lacks_nft(world):
    try:
        nft = executable("CARDEA_NFT", "nft", "apt-get install nftables")
    except Missing as why:
        return str(why)
    rules = "table inet probe {\n chain c {\n numgen random mod 100 < 50 drop\n }\n}\n"
    done = world.places.run(world.places.hub, nft, "-f", "-", text=rules)
    world.places.run(world.places.hub, nft, "delete", "table", "inet", "probe")
    return None if done.returncode == 0 else f"no nftables: {done.stderr.strip()}"


class Rules(Fault):
    """Rules of nftables in the hub, in a table of the gateway's own."""

    touches = ("link",)

    @classmethod
    def missing(cls, world):
        return lacks_nft(world)

    def rules(self):
        """The statements, each for one direction."""
        raise NotImplementedError

    @property
    def table(self):
        return f"{type(self).__name__.lower()}{self.member.number}"

    def begin(self):
        lines = "".join(
            f" chain {hook} {{\n type filter hook {hook} priority 0\n{self.rules(word)} }}\n"
            for hook, word in (("input", "saddr"), ("output", "daddr"))
        )
        self.world.places.hub.filter(f"table ip {self.table} {{\n{lines}}}\n")

    def end(self):
        self.world.places.hub.filter(f"delete table ip {self.table}\n")


class Loss(Rules):
    """A share of all packets is lost."""

    weight, seconds = 2, (2, 10)

    def prepare(self, draw):
        self.facts["percent"] = draw.choice((3, 10, 30))

    def rules(self, word):
        return f" ip {word} {self.member.address} numgen random mod 100 < {self.facts['percent']} drop\n"


class Cut(Rules):
    """The cable is out, or in one direction alone."""

    weight, seconds = 2, (1, 10)

    def prepare(self, draw):
        self.facts["direction"] = draw.choice(("both", "saddr", "daddr"))

    def rules(self, word):
        return f" ip {word} {self.member.address} drop\n" if self.facts["direction"] in ("both", word) else ""


class CutRedis(Rules):
    """A gateway does not reach Redis, and the others do."""

    weight, seconds, touches = 2, (2, 20), ("redis",)

    def rules(self, word):
        port = "dport" if word == "saddr" else "sport"
        return f" ip {word} {self.member.address} tcp {port} {REDIS} drop\n"


class Narrow(Fault):
    """The cable toward the gateway, and its own, carry little."""

    weight, seconds, touches = 1, (3, 12), ("link",)

    @classmethod
    def missing(cls, world):
        try:
            tc = executable("CARDEA_TC", "tc", "apt-get install iproute2")
        except Missing as why:
            return str(why)
        device = world.places.device(1)
        done = world.places.run(
            world.places.hub, tc, "qdisc", "add", "dev", device, "root", "tbf", "rate", "1mbit", "burst", "32kbit", "latency", "50ms"
        )
        world.places.run(world.places.hub, tc, "qdisc", "del", "dev", device, "root")
        return None if done.returncode == 0 else f"no tbf: {done.stderr.strip()}"

    def prepare(self, draw):
        self.facts["rate"] = draw.choice(("300kbit", "1mbit", "4mbit"))

    def ends(self):
        return ((self.world.places.hub, self.world.places.device(self.member.number)), (self.member.space, "up0"))

    def begin(self):
        for space, device in self.ends():
            words = ("root", "tbf", "rate", self.facts["rate"], "burst", "32kbit", "latency", "100ms")
            self.world.places.run(space, "tc", "qdisc", "add", "dev", device, *words)

    def end(self):
        for space, device in self.ends():
            self.world.places.run(space, "tc", "qdisc", "del", "dev", device, "root")


class Detour(Fault):
    """All packets of the gateway go through a relay that delays them and lets some overtake others."""

    weight, seconds, touches = 2, (3, 12), ("link",)

    @classmethod
    def missing(cls, world):
        return None if pathlib.Path("/dev/net/tun").exists() else "no /dev/net/tun"

    def prepare(self, draw):
        self.facts |= {"delay": draw.choice((0.005, 0.05, 0.2)), "spread": draw.choice((0.005, 0.02, 0.1))}
        self.seed = draw.random()

    def begin(self):
        number, hub, space = self.member.number, self.world.places.hub, self.member.space
        self.relay = Relay(hub, space, f"relay{number}", self.facts["delay"], self.facts["spread"], self.seed)
        hub.command("route", "replace", f"{self.member.address}/32", "dev", f"relay{number}")
        space.command("route", "replace", "default", "dev", "relay0")
        # The hub's end of the cable is on the link and would go around the relay.
        space.command("route", "replace", f"10.77.{number}.1/32", "dev", "relay0")

    def end(self):
        number, hub, space = self.member.number, self.world.places.hub, self.member.space
        space.command("route", "replace", "default", "via", f"10.77.{number}.1", "dev", "up0")
        space.command("route", "delete", f"10.77.{number}.1/32", "dev", "relay0")
        hub.command("route", "delete", f"{self.member.address}/32", "dev", f"relay{number}")
        # What it still holds arrives first.
        time.sleep(self.facts["delay"] + self.facts["spread"])
        self.facts |= {"passed": self.relay.passed, "overtaken": self.relay.overtaken}
        self.relay.close()
