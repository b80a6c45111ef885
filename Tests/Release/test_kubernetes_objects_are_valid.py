"""Release: what Debian 13's kustomize makes of deploy/kubernetes are objects that Kubernetes knows (1.29, the first with sidecars, and the
newest that the validator has), whose selectors, ports, names and rights fit each other."""

import itertools
import pathlib
import re
import shutil
import subprocess

import jsonschema
import kubernetes_validate
import pytest
import yaml

KUBERNETES = pathlib.Path(__file__).resolve().parents[2] / "deploy/kubernetes"
OVERLAYS = ("sidecar", "gateway")
VERSIONS = ("1.29", kubernetes_validate.latest_version())

# The fields that are used here, as the definition of monitoring.coreos.com/v1 has them (Prometheus Operator 0.87). It is no part of
# Kubernetes, so the validator does not know it.
LABELS = {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}}
POD_MONITOR = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "monitoring.coreos.com/v1"},
        "spec": {
            "type": "object",
            "required": ["selector", "podMetricsEndpoints"],
            "additionalProperties": False,
            "properties": {
                "selector": {"type": "object", "additionalProperties": False, "properties": {"matchLabels": LABELS}},
                "podMetricsEndpoints": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {
                            "port": {"type": "string"},
                            "path": {"type": "string"},
                            "interval": {"type": "string", "pattern": r"^(0|([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)$"},
                        },
                    },
                },
            },
        },
    },
}


@pytest.fixture(scope="session")
def rendered(tmp_path_factory):
    """The objects of each overlay."""
    root = tmp_path_factory.mktemp("trixie") / "root"
    subprocess.run(["mmdebstrap", "--quiet", "--variant=extract", "--include=base-files,kustomize", "trixie", str(root)], check=True)
    shutil.copytree(KUBERNETES, root / "kubernetes")
    made = {}
    for overlay in OVERLAYS:
        command = ["chroot", str(root), "/usr/bin/kustomize", "build", f"/kubernetes/{overlay}"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, done.stderr
        made[overlay] = list(yaml.safe_load_all(done.stdout))
    return made


@pytest.fixture(params=OVERLAYS)
def overlay(request, rendered):
    return request.param, rendered[request.param]


def of_kind(objects, kind):
    return [entry for entry in objects if entry["kind"] == kind]


def deployment(objects):
    (found,) = of_kind(objects, "Deployment")
    return found


def spec(objects):
    return deployment(objects)["spec"]["template"]["spec"]


def containers(objects):
    return spec(objects).get("initContainers", []) + spec(objects)["containers"]


def labels(objects):
    return deployment(objects)["spec"]["template"]["metadata"]["labels"]


def selectors(objects):
    """Everything that says which pods are meant, by where it stands."""
    for entry in objects:
        name, body = f"{entry['kind']} {entry['metadata']['name']}", entry.get("spec", {})
        if entry["kind"] == "NetworkPolicy":
            yield name, body["podSelector"]
        elif entry["kind"] == "Service":
            yield name, {"matchLabels": body["selector"]}
        elif "selector" in body:
            yield name, body["selector"]
    for constraint in spec(objects).get("topologySpreadConstraints", []):
        yield "spread", constraint["labelSelector"]


def selects(selector, labels):
    assert set(selector) == {"matchLabels"}, selector
    return selector["matchLabels"].items() <= labels.items()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_kind_is_as_kubernetes_has_it(overlay, version):
    for entry in overlay[1]:
        if entry["kind"] == "PodMonitor":
            jsonschema.validate(entry, POD_MONITOR)
        else:
            kubernetes_validate.validate(entry, version, strict=True)


def test_selectors_mean_these_pods_and_no_others(rendered):
    for name, objects in rendered.items():
        (other,) = [labels(rendered[another]) for another in rendered if another != name]
        found = dict(selectors(objects))
        assert {"NetworkPolicy", "PodMonitor", "Deployment"} <= {where.split()[0] for where in found}
        for where, selector in found.items():
            assert selects(selector, labels(objects)), f"{where} of {name} does not mean its pods"
            assert not selects(selector, other) and not selects(selector, {}), f"{where} of {name} means other pods, too"


def test_names_of_ports_volumes_and_objects_lead_somewhere(overlay):
    name, objects = overlay
    ports = [port["name"] for container in containers(objects) for port in container.get("ports", [])]
    assert len(set(ports)) == len(ports)
    used = {probe["httpGet"]["port"] for container in containers(objects) for key, probe in container.items() if key.endswith("Probe")}
    for policy in of_kind(objects, "NetworkPolicy"):
        used |= {port["port"] for rule in policy["spec"].get("ingress", []) for port in rule["ports"]}
    for monitor in of_kind(objects, "PodMonitor"):
        used |= {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]}
    for service in of_kind(objects, "Service"):
        used |= {port["targetPort"] for port in service["spec"]["ports"]}
    # Each port has somebody who is let in, and nobody is let in to a port that is not there.
    assert used == set(ports)
    volumes = {volume["name"]: volume for volume in spec(objects)["volumes"]}
    for container in containers(objects):
        assert {mount["name"] for mount in container.get("volumeMounts", [])} <= set(volumes)
    (config,) = of_kind(objects, "ConfigMap")
    assert volumes["config"]["configMap"]["name"] == config["metadata"]["name"]
    (account,) = of_kind(objects, "ServiceAccount")
    assert spec(objects)["serviceAccountName"] == account["metadata"]["name"]
    (source,) = volumes["secrets"]["projected"]["sources"]
    command = (KUBERNETES / name / "kustomization.yaml").read_text()
    assert re.search(r"kubectl create secret generic (\S+)", command)[1] == source["secret"]["name"]
    assert config["data"]["cardea.yaml"] == (KUBERNETES / name / "cardea.yaml").read_text()


def test_the_sidecar_is_one_and_the_gateway_is_none(rendered):
    (cardea,) = spec(rendered["sidecar"])["initContainers"]
    assert cardea["name"] == "cardea" and cardea["restartPolicy"] == "Always"
    assert [container["name"] for container in spec(rendered["sidecar"])["containers"]] == ["legacy"]
    assert "initContainers" not in spec(rendered["gateway"])
    (cardea,) = spec(rendered["gateway"])["containers"]
    assert deployment(rendered["gateway"])["spec"]["replicas"] > 1 and "restartPolicy" not in cardea


def test_pods_are_as_the_restricted_standard_has_them(overlay):
    """https://kubernetes.io/docs/concepts/security/pod-security-standards/, and a root file system that is read-only."""
    pod, all = spec(overlay[1]), containers(overlay[1])
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod) and pod["automountServiceAccountToken"] is False
    for volume, container in itertools.product(pod["volumes"], all):
        assert set(volume) - {"name"} <= {"configMap", "projected", "emptyDir"}
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False and context["capabilities"] == {"drop": ["ALL"]}
        assert context["runAsUser"] > 0 and "privileged" not in context
        assert not [port for port in container.get("ports", []) if "hostPort" in port]
    (cardea,) = [container for container in all if container["name"] == "cardea"]
    assert cardea["securityContext"]["readOnlyRootFilesystem"] and "env" not in cardea
    assert not of_kind(overlay[1], "Secret")


def test_policies_open_what_is_needed(overlay):
    """The page's port is in no policy and no container: loopback has it, and `kubectl port-forward`."""
    name, objects = overlay
    rules = [rule for policy in of_kind(objects, "NetworkPolicy") for rule in policy["spec"].get("ingress", [])]
    anybody = {port["port"] for rule in rules if "from" not in rule for port in rule["ports"]}
    assert anybody == {"sidecar": {"probes", "legacy"}, "gateway": {"probes"}}[name]
    for policy in of_kind(objects, "NetworkPolicy"):
        for peer in (peer for rule in policy["spec"].get("ingress", []) for peer in rule.get("from", [])):
            # What kustomize adds to the pods' own labels is not asked of who calls.
            assert "app.kubernetes.io/instance" not in str(peer)
        for rule in policy["spec"].get("egress", []):
            for block in (peer["ipBlock"] for peer in rule.get("to", []) if "ipBlock" in peer):
                assert block["cidr"] != "0.0.0.0/0" or block["except"] == ["169.254.0.0/16"]
