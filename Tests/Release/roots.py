"""New root file systems of Debian, packages to install there, and the service started there as its unit says. Needs root and the network."""

import os
import pathlib
import re
import shutil
import socket
import subprocess

from harness import ROOT, executable

# $1 is the root. Mounts and processes end with this shell.
ENTER = """
set -euo pipefail
root=$1 writable=$2
shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
if [ -n "$writable" ]; then
    mkdir -p "$root$writable"
    mount --bind "$root$writable" "$root$writable"
    mount -o remount,bind,ro "$root"
fi
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=0755 tmpfs "$root/run"
exec chroot "$root" "$@"
"""

# What systemd does with the unit's folders, user and limits; the capabilities go with the bounding set.
AS_UNIT = """
set -euo pipefail
install -d -m "$STATE_MODE" -o "$USER" -g "$GROUP" "$STATE"
install -d -m 0755 -o "$USER" -g "$GROUP" "$RUNTIME"
umask "$UMASK"
ulimit -c 0
exec setpriv --reuid "$USER" --regid "$GROUP" --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
    env -i PATH=/usr/bin LANG=C.UTF-8 STATE_DIRECTORY="$STATE" RUNTIME_DIRECTORY="$RUNTIME" $START
"""


def made(words, **more):
    """Runs a command that has to succeed; its output."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}"
    return done.stdout


class Packages:
    """The package and the one before it: the same program and files, called a lower version."""

    def __init__(self, folder):
        self.program = executable("CARDEA_BIN", ".build/release/cardea", "make binary")
        self.before = self.built(folder / "before", self.program, VERSION="0.0.9-1")
        self.now = self.built(folder / "now", self.program)

    @staticmethod
    def built(folder, program, **environment):
        made([ROOT / "deploy/package", program, folder], env={**os.environ, **environment})
        [package] = folder.glob("cardea_*.deb")
        return package


class Root:
    """A new Debian below `folder`. `suite`: bookworm, trixie."""

    def __init__(self, folder, suite):
        self.folder, self.service = pathlib.Path(folder) / suite, None
        mmdebstrap = executable("CARDEA_MMDEBSTRAP", "mmdebstrap", "apt-get install mmdebstrap")
        # A minute of network for each test of a suite otherwise; what is in it is a new Debian all the same.
        kept = ROOT / f".build/roots/{suite}.tar"
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            # Its name says to mmdebstrap that it is an archive.
            made_now = kept.with_name(f"{suite}.new.tar")
            made([mmdebstrap, "--quiet", "--variant=minbase", suite, made_now])
            os.rename(made_now, kept)
        self.folder.mkdir()
        made(["tar", "-C", self.folder, "--exclude=./dev/*", "-xf", kept])
        for name in ("resolv.conf", "hosts"):
            shutil.copy(f"/etc/{name}", self.folder / "etc" / name)

    def words(self, *words, writable="", wrapper=()):
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", ENTER, "enter", self.folder, writable]
        return [*wrapper, *enter, *words]

    def run(self, *words, wrapper=()):
        clean = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        proxies = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
        return made(self.words(*words, wrapper=wrapper), env={**clean, **proxies})

    def install(self, package):
        shutil.copy(package, self.folder / "tmp")
        self.run("apt-get", "update")
        out = self.run("apt-get", "install", "-y", "--no-install-recommends", f"/tmp/{package.name}")
        (self.folder / "tmp" / package.name).unlink()
        return out

    def unit(self):
        path = self.folder / "usr/lib/systemd/system/cardea.service"
        found = re.findall(r"^(\w+)=(.*)$", path.read_text(), re.M)
        return dict(found)

    def start(self, wrapper, log):
        """The service, without its manager."""
        unit = self.unit()
        state = f"/var/lib/{unit['StateDirectory']}"
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "USER": unit["User"],
            "GROUP": unit["Group"],
            "STATE": state,
            "STATE_MODE": unit["StateDirectoryMode"],
            "RUNTIME": f"/run/{unit['RuntimeDirectory']}",
            "UMASK": unit["UMask"],
            "START": unit["ExecStart"],
        }
        words = self.words("bash", "-c", AS_UNIT, "unit", writable=state, wrapper=wrapper)
        with open(log, "ab") as output:
            self.service = subprocess.Popen(words, stdout=output, stderr=output, env=environment)

    def inside(self):
        """The process of the service, seen from outside: the child of what made its namespaces."""
        (child,) = pathlib.Path(f"/proc/{self.service.pid}/task/{self.service.pid}/children").read_text().split()
        return pathlib.Path(f"/proc/{child}")

    def unix(self, path):
        """What /livez answers at a socket of the service: the first line."""
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(10)
            caller.connect(f"{self.inside()}/root{path}")
            caller.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return caller.recv(65536).decode()

    def stop(self):
        if self.service is None or self.service.poll() is not None:
            return
        os.kill(int(self.inside().name), 15)
        assert self.service.wait(30) == 0
