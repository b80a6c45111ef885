"""Where everything runs: a hub, with the servers and the callers, and a namespace for each gateway at the end of a cable of its own.

    hub 10.77.0.1 ── 10.77.1.1 ═══ 10.77.1.2 gateway 1
                  ── 10.77.2.1 ═══ 10.77.2.2 gateway 2 …

A server sees by the address who called. Nothing leads out of these namespaces."""

import contextlib
import subprocess

import parts  # noqa: F401
from harness import executable
from namespaces import Space, join

HUB = "10.77.0.1"
ISSUER, UPSTREAMS, FILES, REDIS, RECORDER = 7000, {"A": 7001, "B": 7002, "O": 7003}, 7010, 7020, 7030
LAB = {"listen": 7101, "plain": 7102, "issuer": 7103, "control": 7104}
CLEAR, SECURE, ADMIN = 8080, 8443, 9901


def gateway_of(address):
    """The number of the gateway that has this address; 0 for any other caller."""
    words = address.split(".")
    return int(words[2]) if words[:2] == ["10", "77"] else 0


class Places:
    def __init__(self, count):
        self.count = count
        self.stack = contextlib.ExitStack()
        try:
            self.hub = self.add()
            self.spaces = [None, *(self.add() for _ in range(count))]
            self.hub.command("addr", "add", f"{HUB}/32", "dev", "lo")
            self.sysctl(self.hub, "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0")
            for number in range(1, count + 1):
                self.wire(number)
        except BaseException:
            self.close()
            raise

    def add(self):
        space = Space({})
        self.stack.callback(space.close)
        return space

    def wire(self, number):
        space = self.spaces[number]
        self.sysctl(space, "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0")
        join(self.hub, space, self.device(number), "up0")
        self.hub.address(self.device(number), f"10.77.{number}.1/30")
        space.address("up0", f"{self.address(number)}/30")
        space.command("route", "add", "default", "via", f"10.77.{number}.1")

    @staticmethod
    def device(number):
        """The hub's end of the cable to a gateway."""
        return f"down{number}"

    @staticmethod
    def address(number):
        return f"10.77.{number}.2"

    def sysctl(self, space, *settings):
        sysctl = executable("CARDEA_SYSCTL", "sysctl", "apt-get install procps")
        subprocess.run([*space.wrapper, sysctl, "-qw", *settings], check=True, capture_output=True)

    def run(self, space, *words, text=None):
        """A command in a namespace: its result, good or bad."""
        return subprocess.run([*space.wrapper, *words], capture_output=True, text=True, input=text)

    def close(self):
        self.stack.close()
