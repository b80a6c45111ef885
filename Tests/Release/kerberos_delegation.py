"""A realm whose KDC knows who may act for whom: MIT's keeps that in a directory alone (krb5-kdc-ldap, slapd)."""

import gzip
import pathlib
import subprocess

from harness import executable, free_port
from kerberos import KDC, REALM
from peers import Program

ROOT = "cn=root,o=test"
WORD = "made-up"


class Directory(Program):
    """OpenLDAP's server with an empty tree `o=test`, to which `ROOT` may write."""

    def __init__(self, folder):
        self.folder = folder = pathlib.Path(folder)
        (folder / "data").mkdir(parents=True)
        schema = pathlib.Path("/usr/share/doc/krb5-kdc-ldap/kerberos.schema.gz")
        assert schema.exists(), "no schema of Kerberos: apt-get install krb5-kdc-ldap"
        (folder / "kerberos.schema").write_bytes(gzip.decompress(schema.read_bytes()))
        (folder / "slapd.conf").write_text(f"""include /etc/ldap/schema/core.schema
include {folder}/kerberos.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {folder}/pid
database mdb
suffix "o=test"
rootdn "{ROOT}"
rootpw {WORD}
directory {folder}/data
""")
        (folder / "tree.ldif").write_text("dn: o=test\nobjectClass: organization\no: test\n")
        port = free_port()
        self.url = f"ldap://127.0.0.1:{port}/"
        self.offline("slapadd", "tree.ldif")
        slapd = executable("CARDEA_SLAPD", "slapd", "apt-get install slapd krb5-kdc-ldap")
        super().__init__(
            [slapd, "-f", str(folder / "slapd.conf"), "-h", self.url, "-d", "0"], folder, [("127.0.0.1", port)])

    def offline(self, tool, file):
        binary = executable(f"CARDEA_{tool.upper()}", tool, "apt-get install slapd krb5-kdc-ldap")
        done = subprocess.run(
            [binary, "-f", str(self.folder / "slapd.conf"), "-l", str(self.folder / file)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def change(self, text):
        """Writes while no server runs, which needs no client of LDAP."""
        self.process.terminate()
        self.process.wait()
        (self.folder / "change.ldif").write_text(text)
        self.offline("slapmodify", "change.ldif")
        self.start()


class DelegatingKDC(KDC):
    """The KDC of `KDC`, and in its realm:

    - `gateway`, with a keytab, which may act for users towards HTTP/localhost and nowhere else;
    - `plain`, with a keytab, which may act for nobody;
    - `zoe`, who must not be delegated, and `lock`, whose account is locked;
    - HTTP/other, towards which nobody may act.
    """

    more = "forwardable = true"

    def __init__(self, folder):
        self.directory = Directory(pathlib.Path(folder) / "directory")
        super().__init__(pathlib.Path(folder) / "kdc")

    def database(self):
        return "database_module = directory"

    def modules(self):
        return f"""[dbmodules]
    directory = {{
        db_library = kldap
        ldap_kerberos_container_dn = cn=kerberos,o=test
        ldap_kdc_dn = {ROOT}
        ldap_kadmind_dn = {ROOT}
        ldap_service_password_file = {self.folder}/directory.stash
        ldap_servers = {self.directory.url}
    }}
"""

    def create(self):
        self.tool(
            "kdb5_ldap_util", "-D", ROOT, "-w", WORD, "-H", self.directory.url, "create", "-subtrees", "o=test",
            "-r", REALM, "-s", "-P", "made-up")
        # As `kdb5_ldap_util stashsrvpw` writes it, which asks a terminal.
        (self.folder / "directory.stash").write_text(f"{ROOT}#{{HEX}}{WORD.encode().hex()}\n")
        for name, flags in (("gateway", "+ok_to_auth_as_delegate"), ("plain", "")):
            self.admin(
                f"addprinc -randkey +requires_preauth {flags} {name}",
                f"ktadd -norandkey -k {self.folder}/{name}.keytab {name}")
        self.admin(
            "addprinc -randkey -allow_forwardable zoe", "addprinc -randkey -allow_tix lock", "addprinc -randkey HTTP/other",
            "addprinc -randkey admin")
        self.directory.change(
            f"dn: krbPrincipalName=gateway@{REALM},cn={REALM},cn=kerberos,o=test\nchangetype: modify\n"
            f"add: krbAllowedToDelegateTo\nkrbAllowedToDelegateTo: HTTP/localhost@{REALM}\n")

    def close(self):
        super().close()
        self.directory.close()

    def acted(self, user):
        """How many tickets the KDC gave in a user's name, or was asked for: S4U2Self."""
        return (self.folder / "kdc.log").read_text().count(f"PROTOCOL-TRANSITION s4u-client={user}@{REALM}")

    def requests(self):
        return (self.folder / "kdc.log").read_text().count("_REQ (")
