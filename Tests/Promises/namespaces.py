"""Network namespaces: places with addresses, names and redirections of their own, on one machine. Needs root."""

import contextlib
import ctypes
import itertools
import os
import pathlib
import shutil
import subprocess

from harness import Missing, executable

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
NUMBERS = itertools.count()


class Space:
    """One namespace with its loopback up. `hosts` are its names: {name: [addresses]}."""

    def __init__(self, hosts):
        self.ip = executable("CARDEA_IP", "ip", "apt-get install iproute2")
        if os.geteuid() != 0:
            raise Missing("network namespaces need root")
        self.name = f"cardea-{os.getpid()}-{next(NUMBERS)}"
        self.folder = pathlib.Path("/etc/netns") / self.name
        self.folder.mkdir(parents=True)
        lines = [f"{address} {name}\n" for name, addresses in hosts.items() for address in addresses]
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(lines))
        # No server is asked: a name that does not stand in the file is not there, at once.
        (self.folder / "nsswitch.conf").write_text("hosts: files\n")
        self.command("netns", "add", self.name, here=True)
        self.command("link", "set", "lo", "up")

    def command(self, *words, here=False):
        place = [] if here else ["-n", self.name]
        done = subprocess.run([self.ip, *place, *words], capture_output=True, text=True)
        assert done.returncode == 0, (words, done.stderr)

    @property
    def wrapper(self):
        """Words before a program that shall live here, with these names."""
        return [self.ip, "netns", "exec", self.name]

    def address(self, device, *addresses):
        for address in addresses:
            # Without `nodad` an IPv6 address may not be used for a second.
            self.command("addr", "add", address, "dev", device, *(["nodad"] if ":" in address else []))
        self.command("link", "set", device, "up")

    def filter(self, rules):
        nft = executable("CARDEA_NFT", "nft", "apt-get install nftables")
        done = subprocess.run([*self.wrapper, nft, "-f", "-"], input=rules, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    @contextlib.contextmanager
    def inside(self):
        """This thread, and what it starts, is here until the block ends. Sockets stay where they were made."""
        with open("/proc/thread-self/ns/net") as before, open(f"/var/run/netns/{self.name}") as there:
            enter(there)
            try:
                yield
            finally:
                enter(before)

    def close(self):
        subprocess.run([self.ip, "netns", "delete", self.name], capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def enter(file):
    if LIBC.setns(file.fileno(), CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def join(one, other, device, far_device):
    """A cable between two namespaces."""
    one.command("link", "add", device, "type", "veth", "peer", "name", far_device, "netns", other.name)


@contextlib.contextmanager
def as_user(uid):
    """Sockets that are made here belong to this user; the kernel's filters see it."""
    before = os.geteuid()
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(before)
