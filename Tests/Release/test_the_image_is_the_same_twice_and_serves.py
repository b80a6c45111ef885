"""Promise: the container image has nothing in it but the gateway and its libraries, says what they are, is the same when it is made again,
and serves as its own user on a root file system that is read-only, under a runtime of Debian."""

import contextlib
import gzip
import io
import json
import os
import pathlib
import subprocess
import tarfile

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from harness import ROOT, call, eventually, executable
from namespaces import Space
from roots import made

USER = 65532

# crun wants the one hierarchy of control groups that systemd mounts. $1 is the bundle, $2 where crun keeps its state.
RUNTIME = """
mount --make-rprivate /
mount -t cgroup2 none /sys/fs/cgroup
exec "$CRUN" --root "$2" --cgroup-manager=disabled run --bundle "$1" cardea
"""


@pytest.fixture(scope="module")
def images(packages, tmp_path_factory):
    """The image of one package, made twice."""
    folder = tmp_path_factory.mktemp("images")
    for name in ("one", "two"):
        made([ROOT / "deploy/image", packages.now, folder / name])
    return folder


class Image:
    """An OCI layout, read as a registry's client would."""

    def __init__(self, folder):
        self.folder = folder / "layout"
        assert json.loads((self.folder / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
        [self.entry] = json.loads((self.folder / "index.json").read_text())["manifests"]
        self.manifest = json.loads(self.blob(self.entry))
        self.config = json.loads(self.blob(self.manifest["config"]))

    def blob(self, entry):
        data = (self.folder / "blobs" / entry["digest"].replace(":", "/")).read_bytes()
        assert len(data) == entry["size"]
        return data

    def files(self):
        """The archives of its layers."""
        return [self.folder / "blobs" / layer["digest"].replace(":", "/") for layer in self.manifest["layers"]]

    def layers(self):
        return [tarfile.open(fileobj=io.BytesIO(gzip.decompress(self.blob(layer)))) for layer in self.manifest["layers"]]


@pytest.fixture
def image(images):
    return Image(images / "one")


def test_the_same_package_gives_the_same_image(images):
    one, two = ({path.relative_to(images / name): path.read_bytes() for path in (images / name).rglob("*") if path.is_file()} for name in ("one", "two"))
    assert one == two


def test_there_is_nothing_in_it_but_the_gateway(image):
    entries = {entry.name: entry for layer in image.layers() for entry in layer}
    programs = {name for name, entry in entries.items() if entry.isfile() and entry.mode & 0o111 and ".so" not in name}
    assert programs == {"usr/bin/cardea"}
    assert all(entry.mode & 0o6000 == 0 for entry in entries.values())
    assert {name for name, entry in entries.items() if entry.uid or entry.gid} == {"var/lib/cardea", "run/cardea"}
    assert image.config["config"]["User"] == f"{USER}:{USER}"
    labels = image.config["config"]["Labels"]
    assert labels["org.opencontainers.image.title"] == "cardea" and labels["org.opencontainers.image.licenses"] == "Apache-2.0"


def test_it_says_what_is_in_it(images, image):
    text = (images / "one/sbom.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_5).validate_str(text) is None
    components = json.loads(text)["components"]
    known = {component["name"] for component in components}
    assert not [component["name"] for component in components if not component.get("version")]
    # Each package whose licence is inside is named, and the one library of ours that is linked in.
    inside = {pathlib.PurePath(entry.name).parts[3] for entry in image.layers()[0] if entry.name.startswith("usr/share/doc/") and entry.isfile()}
    assert inside <= known and "swift-argument-parser" in known and "ca-certificates" in known


def test_it_serves_under_a_runtime_of_debian(image, tmp_path):
    root, state, own = tmp_path / "rootfs", tmp_path / "state", tmp_path / "var"
    crun = executable("CARDEA_CRUN", "crun", "apt-get install crun")
    root.mkdir()
    for file in image.files():
        made(["tar", "-xzpf", file, "-C", root, "--numeric-owner"])
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/cardea.yaml").write_text(
        'routes: [{listen: "127.0.0.1:8080", to: "http://127.0.0.1:9901", use: none}]\nadmin: {listen: "127.0.0.1:9901"}\nstore: {path: /var/lib/cardea/tokens.db}\nshutdown: {linger: 0s}\n'
    )
    own.mkdir(mode=0o700)
    os.chown(own, USER, USER)
    config = image.config["config"]
    bundle = {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": USER, "gid": USER},
            "args": config["Entrypoint"] + config["Cmd"],
            "env": config["Env"],
            "cwd": "/",
            "noNewPrivileges": True,
            "capabilities": {"bounding": [], "effective": [], "permitted": []},
        },
        "root": {"path": str(root), "readonly": True},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            {"destination": "/etc/cardea", "type": "bind", "source": str(tmp_path / "etc"), "options": ["bind", "ro"]},
            {"destination": "/var/lib/cardea", "type": "bind", "source": str(own), "options": ["bind", "rw"]},
        ],
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]},
    }
    (tmp_path / "config.json").write_text(json.dumps(bundle))
    with contextlib.closing(Space({})) as space, open(tmp_path / "log", "wb") as log:
        words = [*space.wrapper, "unshare", "--mount", "bash", "-c", RUNTIME, "runtime", str(tmp_path), str(state)]
        running = subprocess.Popen(words, stdout=log, stderr=log, env={**os.environ, "CRUN": crun})

        def inside(*command):
            ns = ["nsenter", "--mount", f"--target={running.pid}"]
            words = [*ns, crun, "--root", str(state), "exec", "--user", f"{USER}:{USER}", "cardea", *command]
            return subprocess.run(words, capture_output=True, text=True)

        def is_healthy():
            assert running.poll() is None, (tmp_path / "log").read_text()
            return inside("/usr/bin/cardea", "health", "--ready").returncode == 0

        try:
            eventually(is_healthy, what="cardea health in the container")
            with space.inside():
                assert call("127.0.0.1:9901", path="/livez").status == 200
            assert inside("/bin/sh", "-c", "true").returncode != 0
            assert (own / "tokens.db").stat().st_uid == USER
        finally:
            subprocess.run([crun, "--root", str(state), "kill", "cardea", "TERM"])
            status = running.wait(30)
        assert status == 0, (tmp_path / "log").read_text()
