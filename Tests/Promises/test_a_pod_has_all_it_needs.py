"""Promise: deploy/kubernetes fits the gateway: it serves as that user, without a capability, on a root file system that is read-only, with
secrets and configuration as a kubelet mounts them and renews them; probes and metrics are answered, each at a port of its own.

No cluster is needed: a mount namespace has what the manifests describe. It is made by root, as in a container of the tests. What kustomize
makes of them is looked at in Tests/Release.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest
import yaml

from harness import call, eventually, free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"

# $1 the future root; then what runs in it. /usr and what belongs to it are the machine's, read-only, everything else is made.
POD = """
set -euo pipefail
root=$1 user=$2 libraries=$3
shift 3
mount --make-rprivate /
mount -t tmpfs -o mode=0755 tmpfs "$root"
for folder in /usr /bin /sbin /lib /lib64 $libraries; do
    if [ -L "$folder" ]; then
        cp -a "$folder" "$root$folder"
    else
        mkdir -p "$root$folder"
        mount --rbind "$folder" "$root$folder"
        mount -o remount,bind,ro "$root$folder"
    fi
done
mkdir -p "$root"/{proc,dev,run/secrets/cardea,etc/cardea,var/lib/cardea,image}
cp /etc/hosts /etc/nsswitch.conf "$root/etc/"
touch "$root/etc/resolv.conf" "$root"/dev/{null,urandom}
for device in null urandom; do mount --bind "/dev/$device" "$root/dev/$device"; done
mount -t proc proc "$root/proc"
cp "$CARDEA" "$root/image/cardea"
for volume in run/secrets/cardea etc/cardea; do
    mount -t tmpfs -o mode=0755 tmpfs "$root/$volume"
    cp -a "$VOLUMES/$volume/." "$root/$volume/"
done
# An emptyDir is the group's (fsGroup).
mount -t tmpfs -o mode=2770,gid="$user" tmpfs "$root/var/lib/cardea"
mount -o remount,ro "$root/run/secrets/cardea"
mount -o remount,ro "$root/etc/cardea"
mount -o remount,ro "$root"
exec chroot "$root" /usr/bin/setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs --bounding-set=-all \
    --inh-caps=-all /usr/bin/env -i PATH=/usr/bin "$@"
"""


def manifest(name):
    return yaml.safe_load((KUBERNETES / name).read_text())


def pod_spec():
    return manifest("base/deployment.yaml")["spec"]["template"]["spec"]


def project(folder, files, version):
    """The kubelet's way: files in a folder of this version, a link to it, links to the files; the middle one is swapped at once."""
    data = folder / f"..{version}"
    data.mkdir(parents=True)
    for name, (content, mode, group) in files.items():
        (data / name).write_text(content)
        os.chown(data / name, 0, group)
        (data / name).chmod(mode)
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    (folder / "..data_tmp").symlink_to(data.name)
    os.rename(folder / "..data_tmp", folder / "..data")


def startup_probe(overlay):
    """The base's, as the overlay changes it."""
    (container,) = pod_spec()["containers"]
    probe = container["startupProbe"]
    for patch in manifest(f"{overlay}/kustomization.yaml").get("patches", []):
        for step in yaml.safe_load(patch.get("patch", "[]")):
            _, found, place = step["path"].partition("/startupProbe/")
            if found and step["op"] == "replace":
                *way, last = place.split("/")
                part = probe
                for key in way:
                    part = part[key]
                assert last in part
                part[last] = step["value"]
    return probe


class Pod:
    def __init__(self, gateway):
        self.spec = pod_spec()
        (self.container,) = self.spec["containers"]
        self.container["startupProbe"] = startup_probe("sidecar")
        self.user = self.container["securityContext"]["runAsUser"]
        (secrets,) = [volume["projected"] for volume in self.spec["volumes"] if "projected" in volume]
        self.mode = secrets["defaultMode"]
        self.gateway, self.folder = gateway, gateway.folder
        config = manifest("sidecar/cardea.yaml")
        lab = gateway.lab
        # What is the reader's to change, and ports of our own.
        config["identities"]["hr"]["oam_webgate"].update(
            service=lab.service, user_agent_prefix=lab.user_agent_prefix, client_id=lab.client_id, username=lab.user
        )
        config["routes"][0].update(to=f"http://{lab.listen}", listen=gateway.listen)
        self.probes, self.metrics = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        assert set(config["admin"]) == {"listen", "probes", "metrics"}
        config["admin"] = {"listen": gateway.admin, "probes": self.probes, "metrics": self.metrics}
        config["shutdown"] = {"linger": "0s"}
        project(self.folder / "etc/cardea", {"cardea.yaml": (yaml.safe_dump(config), 0o644, 0)}, 1)
        self.renew_secrets(self.folder / "run/secrets/cardea", "a password of yesterday", 1)

    def renew_secrets(self, folder, password, version):
        key = "c3RvcmUta2V5LWZvci10ZXN0cy0zMi1vY3RldHMhISE="
        group = self.spec["securityContext"]["fsGroup"]
        files = {"hr-password": (password, self.mode, group), "store-key": (key, self.mode, group)}
        project(folder, files, version)

    def start(self):
        (self.folder / "root").mkdir()
        binary = shutil.which(self.gateway.binary) or str(ROOT / self.gateway.binary)
        linked = subprocess.run(["ldd", binary], capture_output=True, text=True, check=True).stdout
        paths = {os.path.dirname(word) for word in linked.split() if word.startswith("/")}
        outside = sorted(path for path in paths if not path.startswith(("/lib", "/usr/")))
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "bash", "-c", POD, "pod", str(self.folder / "root")]
            + [str(self.user), " ".join(outside), "/image/cardea", *self.container["args"]],
            env={**os.environ, "CARDEA": binary, "VOLUMES": str(self.folder)},
            stdout=open(self.folder / "stdout.1", "wb"),
            stderr=open(self.folder / "stderr.1", "wb"),
        )
        eventually(lambda: self.answers(self.container["startupProbe"]), within=20, what="the startup probe")

    def answers(self, probe):
        assert self.process.poll() is None, self.gateway.text()
        get = probe["httpGet"]
        assert get["port"] == "probes"
        try:
            return call(self.probes, path=get["path"], timeout=5).status == 200
        except OSError:
            return False

    def inside(self):
        """The process in its namespaces, seen from outside."""
        (child,) = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return pathlib.Path(f"/proc/{child}")

    def status(self):
        lines = (self.inside() / "status").read_text().splitlines()
        return {name: value.split() for name, value in (line.split(":", 1) for line in lines)}


@pytest.fixture
def pod(gateway):
    pod = Pod(gateway)
    try:
        pod.start()
        yield pod
    finally:
        # The child first: to change the user takes back that it dies with its parent.
        if pod.process.poll() is None:
            os.kill(int(pod.inside().name), signal.SIGKILL)
        pod.process.wait()
    gateway.tells_no_secret(gateway.text())


def test_it_serves_as_the_manifest_has_it(pod):
    gateway, container = pod.gateway, pod.container
    assert pod.answers(container["readinessProbe"]) and pod.answers(container["livenessProbe"])
    (endpoint,) = manifest("base/pod-monitor.yaml")["spec"]["podMetricsEndpoints"]
    assert b"cardea_build_info" in call(pod.metrics, path=endpoint["path"]).body
    status = pod.status()
    assert status["Uid"] == status["Gid"] == [str(pod.user)] * 4
    assert int(status["CapEff"][0], 16) == int(status["CapBnd"][0], 16) == 0
    assert status["NoNewPrivs"] == ["1"]
    # Root inside could not write there either.
    with pytest.raises(OSError):
        (pod.inside() / "root/etc/another").write_text("")
    assert gateway.get().status == 503
    # The kubelet swaps a link; it does so past the read-only mount of the container.
    secrets = pod.inside() / "root/run/secrets/cardea"
    subprocess.run(
        ["nsenter", "--mount", f"--target={pod.inside().name}", "mount", "-o", "remount,rw"]
        + [str(gateway.folder / "root/run/secrets/cardea")],
        check=True,
    )
    pod.renew_secrets(secrets, gateway.lab.password, 2)
    eventually(lambda: gateway.get().status == 200, what="the new password to be used")
    assert (pod.inside() / "root/var/lib/cardea/tokens.db").stat().st_uid == pod.user
    eventually(lambda: "sandbox entered" in gateway.text(), what="the line in the log")


@pytest.mark.parametrize("overlay", ["sidecar", "gateway"])
def test_a_token_that_is_awaited_costs_no_restart(gateway, overlay):
    """While the issuer is away a kubelet starts the container again at most once a day, at any of its probes."""
    probes = f"127.0.0.1:{free_port()}"
    changes = {"admin": {"probes": probes}}
    gateway.oauth(identity={"token_url": f"http://127.0.0.1:{free_port()}/token"}, token={"startup": "wait"}, changes=changes)
    gateway.start(ready=False)
    (container,) = pod_spec()["containers"]

    def status(probe):
        try:
            return call(probes, path=probe["httpGet"]["path"], timeout=5).status
        except OSError:
            return None

    eventually(lambda: status(container["livenessProbe"]) == 200, what="the gateway")
    gateway.baseline = gateway.descriptors()
    assert status(container["readinessProbe"]) == 503
    probe = startup_probe(overlay)
    patience = probe["periodSeconds"] * probe["failureThreshold"]
    assert status(probe) == 200 or patience >= 86400, f"the container is ended after {patience} s"


def test_it_ends_in_the_time_that_it_is_given(pod):
    os.kill(int(pod.inside().name), signal.SIGTERM)
    assert pod.process.wait(20) == 0
    assert pod.spec["terminationGracePeriodSeconds"] > 25


@pytest.mark.parametrize("overlay", ["sidecar", "gateway"])
def test_what_the_manifests_name_is_there(overlay):
    """What a schema cannot say: names and ports that must agree with each other."""
    spec = pod_spec()
    (container,) = spec["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert set(mounts) == {volume["name"] for volume in spec["volumes"]}
    assert container["args"] == ["run", "--config", f"{mounts['config']}/cardea.yaml"]
    config = (KUBERNETES / overlay / "cardea.yaml").read_text()
    # Whoever follows the first lines makes the secrets that the configuration names.
    command = (KUBERNETES / overlay / "kustomization.yaml").read_text().split("kubectl create secret", 1)[1].splitlines()[0]
    made = set(re.findall(r"--from-(?:file|literal)=([\w-]+)", command))
    assert {f"{mounts['secrets']}/{name}" for name in made} == set(re.findall(r"file:(\S+)", config))
    settings = yaml.safe_load(config)
    assert settings["store"]["path"].startswith(mounts["state"] + "/")
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    if overlay == "gateway":
        (served,) = [entry for entry in manifest("gateway/replicas.yaml")["spec"]["template"]["spec"]["containers"]]
        ports |= {port["name"]: port["containerPort"] for port in served["ports"]}
        (listener,) = settings["listeners"].values()
        assert listener["address"] == f"0.0.0.0:{ports['http']}"
        (port,) = manifest("gateway/service.yaml")["spec"]["ports"]
        assert port["targetPort"] == "http" in ports
    else:
        # To the service beside it alone.
        assert settings["routes"][0]["listen"].startswith("127.0.0.1:")
        (service,) = manifest("sidecar/service.yaml")["spec"]["template"]["spec"]["containers"]
        assert service["env"][0]["value"] == "http://" + settings["routes"][0]["listen"]
    for name in ("probes", "metrics"):
        assert settings["admin"][name] == f"0.0.0.0:{ports[name]}"
    assert settings["admin"]["listen"].startswith("127.0.0.1:"), "the page is for whoever may forward a port"
    assert len(set(ports.values())) == len(ports)


@pytest.mark.parametrize("overlay", ["sidecar", "gateway"])
def test_the_configuration_of_a_pod_is_good(gateway, overlay):
    """Read as it stands; only the folders are those of the test."""
    text = (KUBERNETES / overlay / "cardea.yaml").read_text()
    for path in re.findall(r"file:(\S+)", text):
        gateway.secret(os.path.basename(path), "c3RvcmUta2V5LWZvci10ZXN0cy0zMi1vY3RldHMhISE=")
    text = text.replace("/run/secrets/cardea", str(gateway.folder)).replace("/var/lib/cardea", str(gateway.folder))
    gateway.file.write_text(text)
    assert gateway.command("check") == (0, "good\n", ""), "without a warning"


def test_every_file_is_part_of_a_kustomization():
    named, files = set(), set()
    for folder in ("base", "sidecar", "gateway"):
        kustomization = manifest(f"{folder}/kustomization.yaml")
        names = {*kustomization["resources"], *(patch["path"] for patch in kustomization.get("patches", []) if "path" in patch)}
        names |= {file for maker in kustomization.get("configMapGenerator", []) for file in maker["files"]}
        named |= {f"{folder}/{name}" for name in names | {"kustomization.yaml"} if name != "../base"}
        files |= {f"{folder}/{file.name}" for file in (KUBERNETES / folder).iterdir()}
    assert named == files
    assert not [name for name in files if manifest(name).get("kind") == "Secret"], "a password does not belong beside the manifests"


def test_the_image_has_the_libraries_that_the_program_loads(gateway):
    """Built packages are named in the container file by hand; a new library is easily forgotten there."""
    linked = subprocess.run(["ldd", gateway.binary], capture_output=True, text=True, check=True).stdout
    packages = {"libnghttp2": "libnghttp2-14", "libssl": "libssl3", "libsqlite3": "libsqlite3-0", "libyaml": "libyaml-0-2", "libz": "zlib1g"}
    text = (DEPLOY / "Dockerfile").read_text().split("FROM debian:12-slim")[1]
    system = {"libc", "libm", "libgcc_s", "ld-linux-x86-64", "ld-linux-aarch64", "libcrypto", "libstdc++", "linux-vdso"}
    for line in linked.splitlines():
        name, _, place = line.strip().partition(" => ")
        library = os.path.basename(name.split()[0]).split(".so")[0].split("-0")[0]
        if library in system or "/swift/" in place:
            continue
        assert packages.get(library), f"{library} has no package here"
        assert packages[library] in text
