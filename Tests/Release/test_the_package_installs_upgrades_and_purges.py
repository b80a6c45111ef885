"""Promise: the package installs on a new Debian 12 and 13, serves as its own user with the file that comes with it, keeps tokens and a
login over an upgrade, and leaves nothing but the user when it is purged."""

import contextlib
import json
import re
import subprocess
import sys

import pytest

from harness import ROOT, Provider, call, eventually
from namespaces import Space
from roots import Root, made
from test_a_refresh_token_is_used_once import first_refresh_token

sys.path.insert(0, str(ROOT / ".ci" / "docs"))

import links  # noqa: E402

# systemd's score of the unit, in tenths: the network and other users are what the gateway is there for.
EXPOSURE = 17
ADMIN, CALLERS = "127.0.0.1:9901", "127.0.0.1:8080"


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def installed(request, packages, tmp_path_factory):
    """A root with the older package, and a network of its own: the first file names a port that this machine may use for something else."""
    root = Root(tmp_path_factory.mktemp("root"), request.param)
    root.before = set(names(root))
    root.install(packages.before)
    with contextlib.closing(Space({})) as space:
        root.space, root.log = space, root.folder.parent / "log"
        yield root
        root.stop()


def names(root):
    """What is called by our name."""
    return made(["find", root.folder, "-xdev", "-name", "*cardea*", "-printf", "%P\n"]).split()


def serve(root):
    root.start(root.space.wrapper, root.log)

    def is_live():
        assert root.service.poll() is None, root.log.read_text()
        try:
            return ask(root, ADMIN, "/livez").status == 200
        except OSError:
            return False

    eventually(is_live, what="/livez answering 200")


def ask(root, address, path="/"):
    with root.space.inside():
        return call(address, path=path, timeout=10)


def test_it_has_the_programs_version(packages):
    version = made([packages.program, "version"]).split()[-1]
    assert made(["dpkg-deb", "--field", packages.now, "Version"]).startswith(f"{version}-")


def test_links_of_its_pages_lead_somewhere(installed):
    """What debhelper moves or compresses is not there for a link."""
    documents = installed.folder / "usr/share/doc/cardea"
    assert len(links.pages(documents)) > 60
    assert not (faults := links.faults(documents)), "\n".join(faults)


def test_it_begins_with_a_file_that_lives(installed):
    passwd = installed.run("getent", "passwd", "cardea").strip().split(":")
    assert passwd[5:] == ["/var/lib/cardea", "/usr/sbin/nologin"]
    assert installed.run("stat", "-c", "%a %U %G", "/etc/cardea/secrets").strip() == "750 root cardea"
    assert "cardea.service" in installed.run("ls", "/etc/systemd/system/multi-user.target.wants")
    said = installed.run("cardea", "check")
    assert said == "good\n", said
    serve(installed)
    with installed.space.inside():
        assert installed.unix("/run/cardea/first.sock").startswith("HTTP/1.1 200")
    status = (installed.inside() / "status").read_text()
    assert f"Uid:\t{passwd[2]}\t{passwd[2]}\t{passwd[2]}\t{passwd[2]}" in status and "CapEff:\t0000000000000000" in status
    installed.stop()


def test_the_unit_is_good_and_tight(installed):
    unit = "/lib/systemd/system/cardea.service"
    said = installed.run("env", "SYSTEMD_LOG_TARGET=console", "systemd-analyze", "verify", "--man=no", unit, unit.replace("service", "socket"))
    assert "cardea" not in said, said
    installed.run("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE}", "--no-pager", unit)


@pytest.fixture
def provider(installed):
    with installed.space.inside():
        provider = Provider()
    yield provider
    with installed.space.inside():
        provider.close()


def configure(root, provider):
    """The way that the first file itself describes: everything below its words is replaced, secrets stand in their folder."""
    secrets = {
        "refresh": first_refresh_token(provider),
        "client-secret": "client-x-1",
        "store-key": "c3RvcmUta2V5LWZvci10ZXN0cy0zMi1vY3RldHMhISE=",
    }
    for name, value in secrets.items():
        (root.folder / "etc/cardea/secrets" / name).write_text(value)
        root.run("chown", "root:cardea", f"/etc/cardea/secrets/{name}")
        root.run("chmod", "0640", f"/etc/cardea/secrets/{name}")
    block = {
        "token_url": provider.issuer + "/token",
        "grant": "refresh_token",
        "client_id": "c",
        "client_secret": "file:/etc/cardea/secrets/client-secret",
        "refresh_token": "file:/etc/cardea/secrets/refresh",
    }
    ours = {
        "identities": {"api": {"oauth2": block}},
        "routes": [{"listen": CALLERS, "to": provider.api, "use": "api", "scopes": ["read"]}],
        "store": {"path": "/var/lib/cardea/tokens.db", "key": "file:/etc/cardea/secrets/store-key"},
        "admin": {"listen": ADMIN},
    }
    file = root.folder / "etc/cardea/cardea.yaml"
    lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in ours.items())
    text, times = re.subn(r"^routes:\n.*", lambda _: lines, file.read_text(), flags=re.M | re.S)
    assert times == 1
    file.write_text(text)
    return text


def test_an_upgrade_keeps_tokens_and_the_login(installed, packages, provider):
    with installed.space.inside():
        text = configure(installed, provider)
        serve(installed)
        before = call(CALLERS)
        assert before.status == 200, f"{before}\n{installed.log.read_text()}"
        installed.stop()
        steps = len(provider.steps("token"))
    # By this machine's network, since the mirror may be asked.
    assert "0.0.9-1" in installed.run("dpkg-query", "-W", "cardea")
    installed.install(packages.now)
    assert "0.0.9-1" not in installed.run("dpkg-query", "-W", "cardea")
    assert (installed.folder / "etc/cardea/cardea.yaml").read_text() == text
    with installed.space.inside():
        serve(installed)
        after = call(CALLERS)
        assert after.status == 200 and after.json["jti"] == before.json["jti"], "the token of before is used"
        assert len(provider.steps("token")) == steps
        # The configured refresh token is spent; only the store has its successor.
        provider.post("revoke_access", {"jti": [after.json["jti"]]})
        later = call(CALLERS)
        assert later.status == 200 and later.json["jti"] != after.json["jti"], installed.log.read_text()
        assert provider.steps("refresh_reused") == []
        installed.stop()


def test_a_purge_leaves_only_the_user(installed):
    installed.run("apt-get", "purge", "-y", "cardea")
    user = installed.run("getent", "passwd", "cardea").split(":")[2]
    assert set(names(installed)) == installed.before
    owned = subprocess.run(["find", installed.folder, "-xdev", "-uid", user], capture_output=True, text=True).stdout
    assert owned == ""
