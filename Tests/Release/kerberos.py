"""A realm of Kerberos with its KDC, and Apache as a server of it (mod_auth_gssapi)."""

import os
import pathlib
import shutil
import subprocess

from harness import executable, free_port
from peers import Program

REALM = "TEST.EXAMPLE"


class KDC(Program):
    """MIT's KDC on a port of 127.0.0.1, with two users (anna, bert), their keytabs, and the service HTTP/localhost."""

    # A line of krb5.conf.
    more = ""

    def __init__(self, folder):
        self.folder = folder = pathlib.Path(folder)
        folder.mkdir(parents=True)
        port = free_port()
        (folder / "krb5.conf").write_text(f"""[libdefaults]
    default_realm = {REALM}
    dns_lookup_kdc = false
    dns_lookup_realm = false
    dns_canonicalize_hostname = false
    qualify_shortname = ""
    {self.more}
[realms]
    {REALM} = {{
        kdc = 127.0.0.1:{port}
    }}
[domain_realm]
    localhost = {REALM}
""")
        (folder / "kdc.conf").write_text(f"""[kdcdefaults]
    kdc_listen = 127.0.0.1:{port}
    kdc_tcp_listen = 127.0.0.1:{port}
[realms]
    {REALM} = {{
        {self.database()}
        key_stash_file = {folder}/stash
        acl_file = {folder}/kadm5.acl
    }}
[logging]
    kdc = FILE:{folder}/kdc.log
{self.modules()}
""")
        self.variables = {**os.environ, "KRB5_CONFIG": str(folder / "krb5.conf"), "KRB5_KDC_PROFILE": str(folder / "kdc.conf")}
        self.create()
        for name in ("anna", "bert"):
            self.admin(f"addprinc -randkey +requires_preauth {name}", f"ktadd -norandkey -k {folder}/{name}.keytab {name}")
        self.admin("addprinc -randkey HTTP/localhost", f"ktadd -norandkey -k {folder}/http.keytab HTTP/localhost")
        (folder / "http.keytab").chmod(0o644)
        super().__init__(
            [executable("CARDEA_KDC", "krb5kdc", "apt-get install krb5-kdc"), "-n", "-r", REALM], folder, [("127.0.0.1", port)],
            environment=self.variables)

    # Where the principals are.

    def database(self):
        return f"database_name = {self.folder}/principal"

    def modules(self):
        return ""

    def create(self):
        self.tool("kdb5_util", "create", "-s", "-r", REALM, "-P", "made-up")

    def tool(self, name, *arguments, **more):
        binary = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin") or name
        done = subprocess.run([binary, *arguments], env=self.variables, capture_output=True, text=True, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def admin(self, *orders):
        for order in orders:
            self.tool("kadmin.local", "-r", REALM, "-q", order)

    def keytab(self, name):
        return str(self.folder / f"{name}.keytab")

    def asked(self):
        """How many tickets for getting tickets were given."""
        return (self.folder / "kdc.log").read_text().count("AS_REQ")


class Apache(Program):
    """Answers who it was asked by. `once`: the connection stays authenticated (`GssapiConnectionBound`)."""

    def __init__(self, folder, kdc=None, once=False, users=None):
        """`users`: a file of NTLM's users (gss-ntlmssp), in the place of a KDC."""
        self.folder = folder = pathlib.Path(folder)
        (folder / "root").mkdir(parents=True)
        (folder / "root" / "page").write_text("the page")
        folder.chmod(0o755)
        port = free_port()
        self.address = f"localhost:{port}"
        modules = "\n".join(
            f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so"
            for name in ("mpm_event", "authn_core", "authz_core", "authz_user", "auth_gssapi", "headers", "dir")
        )
        (folder / "apache.conf").write_text(f"""ServerName localhost
Listen 127.0.0.1:{port}
PidFile {folder}/pid
ErrorLog {folder}/error.log
{modules}
User www-data
Group www-data
DocumentRoot {folder}/root
LogFormat "%>s %{{Authorization}}i %u %k" short
CustomLog {folder}/access.log short
<Directory {folder}/root>
  AuthType GSSAPI
  AuthName "the realm"
  {"GssapiAllowedMech ntlmssp" if users else f'GssapiCredStore keytab:{kdc.keytab("http")}'}
  GssapiConnectionBound {"On" if once else "Off"}
  Require valid-user
  Header set Caller "expr=%{{REMOTE_USER}}"
</Directory>
""")
        binary = executable("CARDEA_APACHE", "apache2", "apt-get install apache2-bin libapache2-mod-auth-gssapi")
        super().__init__(
            [binary, "-X", "-f", str(folder / "apache.conf")], folder, [("127.0.0.1", port)],
            environment={**(kdc.variables if kdc else os.environ), "KRB5RCACHENAME": "none:", "NTLM_USER_FILE": str(users)})

    def asked(self):
        return [line.split() for line in (self.folder / "access.log").read_text().splitlines()]


class Acceptor(Program):
    """`kerberos_acceptor.py`, in the mode that it is given."""

    def __init__(self, folder, kdc, leaf, mode):
        folder.mkdir(parents=True)
        port = free_port()
        self.address = f"localhost:{port}"
        script = pathlib.Path(__file__).with_name("kerberos_acceptor.py")
        # Not the Python of the tests: it has no GSSAPI, and PyPI's is compiled where it is installed.
        python = executable("CARDEA_SYSTEM_PYTHON", "/usr/bin/python3", "apt-get install python3-gssapi")
        super().__init__(
            [python, str(script), *map(str, leaf), kdc.keytab("http"), str(port), mode], folder, [("127.0.0.1", port)],
            environment=kdc.variables)
