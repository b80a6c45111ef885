"""A Debian that boots: systemd as the first process of namespaces of its own, with the network of a `Space`. Needs root."""

import os
import pathlib
import re
import subprocess

from harness import Missing, eventually

# $1 is a control group of its own: systemd's units are groups below it. Whoever enters a network sees no groups any more.
JOIN = """
set -euo pipefail
echo $$ >"$1/cgroup.procs"
shift
exec "$@"
"""
NAMESPACES = ["unshare", "--mount", "--pid", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child"]
# $1 is the root.
BOOT = """
set -euo pipefail
mount --make-rprivate /
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=0755 tmpfs dev
for device in null zero full random urandom tty; do
    touch "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=0755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
hostname gateway
pivot_root . mnt
exec chroot . env -i container=namespaces bash -c "umount -l /mnt && exec /lib/systemd/systemd --log-target=console --show-status=0"
"""


class Machine:
    """`root` (a `Root`) with systemd in it, started; commands in it are those of its administrator."""

    def __init__(self, root, space):
        self.log = root.folder.parent / "console"
        self.group = groups() / f"cardea-{os.getpid()}-{root.folder.name}"
        self.group.mkdir()
        with open(self.log, "wb") as console:
            words = ["bash", "-c", JOIN, "join", self.group, *space.wrapper, *NAMESPACES, "bash", "-c", BOOT, "boot", root.folder]
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=console, stderr=console)

        def is_up():
            assert self.process.poll() is None, self.log.read_text(errors="replace")
            # Hardware that is not there lets units of other packages fail.
            return self.first() and self.said("systemctl is-system-running")[1].strip() in ("running", "degraded")

        try:
            eventually(is_up, within=120, every=0.2, what="the machine being up")
        except BaseException:
            self.close()
            raise

    def first(self):
        """The process that is the first one inside; None before there is one."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        is_systemd = children and pathlib.Path(f"/proc/{children[0]}/comm").read_text().strip() == "systemd"
        return children[0] if is_systemd else None

    def said(self, script):
        """Status and everything that the administrator's shell says, in the home folder, without a terminal."""
        clean = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/root", "TERM": "dumb", "DEBIAN_FRONTEND": "noninteractive"}
        words = ["nsenter", "--target", self.first(), "--all", "--root", "--wd", "bash", "-c", f"cd /root\n{script}"]
        done = subprocess.run(words, env=clean, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        return done.returncode, done.stdout

    def run(self, script):
        """What is said by commands that all have to succeed."""
        status, out = self.said(f"set -euo pipefail\n{script}")
        assert status == 0, f"{script}: {status}\n{out}"
        return out

    def close(self):
        # With the first process goes everything inside.
        self.process.kill()
        self.process.wait()
        events = self.group / "cgroup.events"
        eventually(lambda: "populated 0" in events.read_text(), what="the end of what ran inside")
        for path, _, _ in os.walk(self.group, topdown=False):
            os.rmdir(path)


def groups():
    """Where the one hierarchy of control groups is mounted."""
    found = re.search(r"^\S+ (\S+) cgroup2 ", pathlib.Path("/proc/self/mounts").read_text(), re.M)
    if not found:
        raise Missing("systemd inside needs control groups: mount -t cgroup2 none /sys/fs/cgroup/unified")
    return pathlib.Path(found[1])
