"""Squid that asks for NTLM of version 2 alone, judged by Samba: winbindd with users of its own, and no domain controller."""

import os
import pathlib
import shutil
import subprocess
import tempfile

from harness import executable
from peers import Squid

DOMAIN, USER = "PROXYBOX", "nobody"


class SambaSquid(Squid):
    """Squid and winbindd in namespaces of their own: the helper knows one place of winbindd's socket, which is the machine's, and both end with
    the first process. A user of Samba is one of the machine's, too; `nobody` is one everywhere."""

    def __init__(self, port, password):
        self.folder = folder = pathlib.Path(tempfile.mkdtemp(prefix="samba"))
        folder.chmod(0o755)
        for name in ("private", "lock", "state", "cache", "pid", "log", "rpc"):
            (folder / name).mkdir()
        self.settings = folder / "smb.conf"
        self.settings.write_text(f"""[global]
workgroup = CORP
netbios name = {DOMAIN}
server role = standalone server
passdb backend = tdbsam:{folder}/private/passdb.tdb
private dir = {folder}/private
lock directory = {folder}/lock
state directory = {folder}/state
cache directory = {folder}/cache
pid directory = {folder}/pid
ncalrpc dir = {folder}/rpc
log file = {folder}/log/%m
ntlm auth = ntlmv2-only
disable netbios = yes
""")
        self.passwd(password)
        # The helper, which runs as squid's user, reaches the part of winbindd that judges answers.
        privileged = folder / "state" / "winbindd_privileged"
        privileged.mkdir(mode=0o750)
        shutil.chown(privileged, group="proxy")
        helper = executable("CARDEA_NTLM_AUTH", "ntlm_auth", "apt-get install winbind")
        asks = [
            f"auth_param ntlm program {helper} --configfile={self.settings} --helper-protocol=squid-2.5-ntlmssp",
            "auth_param ntlm children 2",
            "auth_param ntlm keep_alive on",
        ]
        super().__init__(port, asks=asks)

    def start(self):
        winbindd = executable("CARDEA_WINBINDD", "winbindd", "apt-get install winbind")
        script = (
            "mkdir -p /run/samba && mount -t tmpfs tmpfs /run/samba || exit 1\n"
            f"{winbindd} --foreground --no-process-group --debug-stdout --configfile={self.settings} &\n"
            "while ! [ -S /run/samba/winbindd/pipe ]; do kill -0 $! || exit 1; done\n"
            'exec "$@"\n')
        spaces = [executable("CARDEA_UNSHARE", "unshare", "apt-get install util-linux"), "--mount", "--pid", "--fork", "--kill-child"]
        self.arguments = [*spaces, "bash", "-c", script, "bash", *self.arguments]
        super().start()

    def passwd(self, password):
        tool = executable("CARDEA_SMBPASSWD", "smbpasswd", "apt-get install samba-common-bin")
        done = subprocess.run(
            [tool, "-c", str(self.settings), "-s", "-a", USER], input=f"{password}\n{password}\n", capture_output=True, text=True,
            env=dict(os.environ))
        assert done.returncode == 0, done.stderr

    def close(self):
        super().close()
        shutil.rmtree(self.folder, ignore_errors=True)
