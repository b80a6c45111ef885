"""Servers of HTTP Digest that Debian has: Apache (MD5, with `nextnonce` and `rspauth`) and lighttpd (SHA-256, SHA-512-256, names as hashes)."""

import contextlib
import hashlib
import pathlib
import re

from harness import executable, free_port
from peers import Program

REALM, USER, PASSWORD = "the archive", "svc-batch", "a pass: word with \u00fc"
HASHES = {"MD5": "md5", "SHA-256": "sha256", "SHA-512-256": "sha512_256"}


def line_of_user(algorithm, user=USER, password=PASSWORD, realm=REALM):
    """As htdigest writes it, followed by what lighttpd wants for names that come as a hash."""
    hashed = lambda text: hashlib.new(HASHES[algorithm], text.encode()).hexdigest()  # noqa: E731
    return f"{user}:{realm}:{hashed(f'{user}:{realm}:{password}')}", hashed(f"{user}:{realm}")


class Logged:
    """A server whose access log holds the status, the Authorization and the request line of each request."""

    def asked(self):
        found = []
        for line in (self.folder / "access.log").read_text().splitlines():
            status, _, rest = line.partition(" ")
            found.append((int(status), rest))
        return found

    def numbers(self):
        """The `nc` of each answer that was sent."""
        return [int(found.group(1), 16) for _, rest in self.asked() if (found := re.search(r"nc=([0-9a-f]{8})", rest))]

    def statuses(self):
        return [status for status, _ in self.asked()]


class Apache(Logged):
    """`/guarded/` with a nonce that lasts, `/once/` with a nonce for each answer."""

    def __init__(self, folder, password=PASSWORD):
        self.folder = pathlib.Path(folder) / "apache"
        for name in ("guarded", "once", "open", "guarded/deep"):
            (self.folder / "root" / name).mkdir(parents=True)
            (self.folder / "root" / name / "page").write_text(f"the page of {name}")
        (self.folder / "users").write_text(line_of_user("MD5", password=password)[0] + "\n")
        self.folder.chmod(0o755)
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        modules = "\n".join(
            f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so"
            for name in ("mpm_event", "authn_core", "authn_file", "authz_core", "authz_user", "auth_digest", "dir")
        )
        guard = f"""AuthType Digest
  AuthName "{REALM}"
  AuthDigestProvider file
  AuthUserFile {self.folder}/users
  Require valid-user"""
        (self.folder / "apache.conf").write_text(
            f"""{modules}
ServerRoot {self.folder}
ServerName localhost
DefaultRuntimeDir {self.folder}
PidFile {self.folder}/apache.pid
ErrorLog {self.folder}/error.log
LogFormat "%>s %{{Authorization}}i %r" told
CustomLog {self.folder}/access.log told
Listen {self.address}
StartServers 1
ServerLimit 1
ThreadsPerChild 8
MaxRequestWorkers 8
KeepAlive On
DocumentRoot {self.folder}/root
<Location /guarded/>
  {guard}
</Location>
<Location /once/>
  {guard}
  AuthDigestNonceLifetime 0
</Location>
"""
        )
        binary = executable("CARDEA_APACHE", "apache2", "apt-get install apache2-bin")
        self.program = Program(
            [binary, "-X", "-f", str(self.folder / "apache.conf")], self.folder, [("127.0.0.1", self.port)]
        )

    def close(self):
        self.program.close()


class Lighttpd(Logged):
    def __init__(self, folder, algorithms="SHA-256", userhash=False):
        self.folder = pathlib.Path(folder) / "lighttpd"
        (self.folder / "root" / "guarded").mkdir(parents=True)
        (self.folder / "root" / "guarded" / "page").write_text("the page of guarded")
        lines = []
        for algorithm in algorithms.split("|"):
            line, name = line_of_user(algorithm)
            lines.append(f"{line}:{name}" if userhash else line)
        (self.folder / "users").write_text("\n".join(lines) + "\n")
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        hashed = '"userhash" => "enable",' if userhash else ""
        (self.folder / "lighttpd.conf").write_text(
            f"""server.modules = ("mod_auth", "mod_authn_file", "mod_accesslog")
server.document-root = "{self.folder}/root"
server.bind = "127.0.0.1"
server.port = {self.port}
server.errorlog = "{self.folder}/error.log"
accesslog.filename = "{self.folder}/access.log"
accesslog.format = "%s %{{Authorization}}i %r"
auth.backend = "htdigest"
auth.backend.htdigest.userfile = "{self.folder}/users"
auth.require = ("/guarded/" => ("method" => "digest", "algorithm" => "{algorithms}", {hashed}
  "realm" => "{REALM}", "require" => "valid-user"))
"""
        )
        binary = executable("CARDEA_LIGHTTPD", "lighttpd", "apt-get install lighttpd")
        self.program = Program(
            [binary, "-D", "-f", str(self.folder / "lighttpd.conf")], self.folder, [("127.0.0.1", self.port)]
        )

    def close(self):
        self.program.close()


@contextlib.contextmanager
def serving(kind, folder, **settings):
    server = kind(folder, **settings)
    try:
        yield server
    finally:
        server.close()
