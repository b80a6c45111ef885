"""Faults of a gateway's process: its end, its clocks, its configuration, its disk."""

import contextlib
import os
import pathlib
import signal
import subprocess

from fault import Fault
from harness import Missing, executable

FAKETIME = next(iter(sorted(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)


class Kill(Fault):
    """kill -9, and a new start after a while."""

    weight, seconds, touches, kills = 3, (0.1, 8), ("process",), True

    def begin(self):
        self.member.kill()

    def end(self):
        self.member.start()


class Pause(Fault):
    """SIGSTOP, shorter or longer than a lease."""

    weight, seconds, touches = 3, (0.5, 12), ("process",)

    def begin(self):
        self.member.signal(signal.SIGSTOP)

    def end(self):
        self.member.signal(signal.SIGCONT)


class Upgrade(Fault):
    """Another process takes over."""

    weight, seconds, touches, kills = 2, (0, 0), ("process",), True

    def begin(self):
        if why := self.member.upgrade():
            self.facts["failed"] = why


class Restart(Fault):
    """SIGTERM, and a new start."""

    weight, seconds, touches, kills = 1, (0.1, 3), ("process",), True

    def begin(self):
        self.facts["status"] = self.member.stop()
        if self.facts["status"] is None:
            self.member.kill()

    def end(self):
        self.member.start()


class Reboot(Fault):
    """kill -9, and a start with other clocks since boot, as after a reboot of the machine."""

    weight, seconds, touches, kills = 1, (0.5, 5), ("process", "clock"), True

    @classmethod
    def missing(cls, world):
        try:
            done = subprocess.run(
                [executable("CARDEA_UNSHARE", "unshare", "apt-get install util-linux"), "-T", "--boottime", "1000", "true"],
                capture_output=True,
                text=True,
            )
        except Missing as why:
            return str(why)
        return None if done.returncode == 0 else f"no time namespaces: {done.stderr.strip()}"

    def prepare(self, draw):
        # Clocks of a namespace may not stand before its machine's boot; less than the machine's own age is left.
        self.facts["boot"] = draw.choice((-200, 1000, 100_000))

    def begin(self):
        self.member.kill()
        offset = str(self.facts["boot"])
        self.member.clocks = ["unshare", "-T", "--boottime", offset, "--monotonic", offset]

    def end(self):
        self.member.start()


class Clock(Fault):
    """The wall clock jumps by up to 100 s, and back at the end."""

    weight, seconds, touches = 2, (3, 15), ("clock",)

    @classmethod
    def missing(cls, world):
        if not FAKETIME:
            return "libfaketime is not installed: apt-get install faketime"
        # It stands before the C library, and so does a sanitizer: not every build bears both.
        member = world.members[0]
        surroundings = os.environ | {"LD_PRELOAD": str(FAKETIME), "FAKETIME": "+40s"}
        try:
            # Two libraries that both stand before the C library may wait for each other for ever.
            done = subprocess.run([member.binary, "version"], capture_output=True, text=True, env=surroundings, timeout=10)
        except subprocess.TimeoutExpired:
            return "the program does not start with libfaketime"
        return None if done.returncode == 0 else f"the program does not run with libfaketime: {(done.stderr.splitlines() or ['?'])[0]}"

    def prepare(self, draw):
        self.facts["jump"] = draw.choice((-100, -40, -10, 10, 40, 100))

    @classmethod
    def fits(cls, member):
        return bool(member.environment)

    def set(self, seconds):
        (self.member.folder / "clock").write_text(f"{seconds:+d}s\n")

    def begin(self):
        self.set(self.facts["jump"])

    def end(self):
        self.set(0)


class Reload(Fault):
    """SIGHUP with a route more or less."""

    weight, seconds, touches = 2, (0, 0), ()

    def begin(self):
        self.world.editions += 1
        self.member.configure(self.world.configuration(self.world.editions))
        self.member.signal(signal.SIGHUP)
        self.world.act("reload", self.member)


class FullDisk(Fault):
    """No free block where the store lies."""

    weight, seconds, touches = 2, (3, 15), ("disk",)

    def begin(self):
        self.member.disk.fill()

    def end(self):
        with contextlib.suppress(FileNotFoundError):
            self.member.disk.free()
