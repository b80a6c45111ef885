"""Promise: README's smallest file, the unit under deploy/ and the commands between them fit together: a new user needs nothing else."""

import json
import os
import pathlib
import re
import subprocess

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
SECTION = README.split("## The smallest file for your own WebGate", 1)[1].split("\n## ", 1)[0]
FILE = re.search(r"```yaml\n(.*?)```", SECTION, re.S)[1]
COMMANDS = re.search(r"```sh\n(.*?)```", SECTION.split(FILE, 1)[1].split("```", 1)[1], re.S)[1]
UNIT = [line.split("=", 1) for line in (ROOT / "deploy/cardea.service").read_text().splitlines() if re.match(r"\w+=", line)]


def of_unit(key):
    return [value for name, value in UNIT if name == key]


def test_every_secret_is_put_where_the_units_user_reads_it():
    (kind, folder, mode, owner, group), _ = re.findall(r"^(\w) (\S+) (\d+) (\w+) (\w+) -$", (ROOT / "deploy/cardea.tmpfiles").read_text(), re.M)
    [user] = of_unit("User")
    assert (kind, mode, owner, group) == ("d", "0750", "root", user) and of_unit("Group") == [user]
    assert f"\nu {user} - " in (ROOT / "deploy/cardea.sysusers").read_text()
    named = re.findall(r"file:(\S+)", FILE)
    assert len(named) == 2 and not re.search(r"(?<!\w)(credential|env|exec|literal):", FILE)
    for path in named:
        assert os.path.dirname(path) == folder
        assert re.search(rf"install -m 0640 -g {user} .*{path}", COMMANDS), f"nobody is told to make {path}"
    [start] = of_unit("ExecStart")
    assert start.partition(" run --config ")[2] in COMMANDS
    # A service with one does not start without the file, and the first file needs none.
    assert of_unit("LoadCredential") == []
    [state] = of_unit("StateDirectory")
    assert f"path: /var/lib/{state}/" in FILE


def test_it_serves_with_what_the_unit_gives(gateway, monkeypatch):
    """The file as it stands; only servers and folders are those of the test."""
    lab, folder = gateway.lab, gateway.folder
    state, secrets = folder / "state", folder / "secrets"
    state.mkdir(mode=0o700)
    secrets.mkdir(mode=0o750)
    (secrets / "hr-password").write_text(lab.password + "\n")
    (secrets / "store-key").write_text(subprocess.run(["openssl", "rand", "-base64", "32"], capture_output=True, text=True, check=True).stdout)
    for file in secrets.iterdir():
        file.chmod(0o640)
    text = FILE
    for old, new in (
        ("https://oam.example.com:14100/oic_rest/rest/mobileoamauthentication", lab.service),
        ("OIC-Agent ", f"{lab.user_agent_prefix} "),
        ("EdgeProxy", lab.client_id),
        ("svc-hr", lab.user),
        ("127.0.0.1:8080", gateway.listen),
        ("https://hr.example.com", f"http://{lab.listen}"),
        ("/var/lib/cardea", str(state)),
        ("/etc/cardea/secrets", str(secrets)),
    ):
        assert old in text, old
        text = text.replace(old, new)
    gateway.file.write_text(f"{text}admin: {{listen: \"{gateway.admin}\"}}\n")
    gateway.file.chmod(0o644)
    monkeypatch.setenv("STATE_DIRECTORY", str(state))
    status, out, _ = gateway.command("check")
    assert (status, out) == (0, "good\n"), out
    gateway.config = {}
    gateway.start()
    assert gateway.get().status == 200
    assert gateway.command("tokens", "list", "hr", "--json")[0] == 0
    # By systemd's credentials, and by hand without their folder: said, and what would be needed.
    gateway.file.write_text(gateway.file.read_text().replace(f"file:{secrets}/", "credential:"))
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    status, out, _ = gateway.command("check")
    assert status == 0 and "LoadCredential=hr-password" in out and out.endswith("good, 2 warnings\n"), out


def admits(schema, value, root):
    """As far as JSON Schema is used here."""
    if "$ref" in schema:
        return admits(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], value, root)
    kinds = {"string": str, "object": dict, "array": list, "boolean": bool, "integer": int, "number": (int, float)}
    known = {"description", "default", "title", "$schema", "$id", "$defs", "$comment", "type", "enum", "pattern", "minimum", "maximum"}
    assert schema.keys() <= known | {"anyOf", "oneOf", "items", "properties", "additionalProperties", "required"}, schema.keys()

    def is_of(kind):
        return isinstance(value, kinds[kind]) and (kind == "boolean" or not isinstance(value, bool))

    types = schema.get("type", [])
    more = schema.get("additionalProperties")
    own = schema.get("properties", {})
    return (
        (not types or any(is_of(kind) for kind in ([types] if isinstance(types, str) else types)))
        and ("enum" not in schema or any(type(one) is type(value) and one == value for one in schema["enum"]))
        and ("pattern" not in schema or re.search(schema["pattern"], value) is not None)
        and ("minimum" not in schema or schema["minimum"] <= value <= schema.get("maximum", value))
        and ("anyOf" not in schema or any(admits(one, value, root) for one in schema["anyOf"]))
        and ("oneOf" not in schema or sum(admits(one, value, root) for one in schema["oneOf"]) == 1)
        and ("items" not in schema or all(admits(schema["items"], one, root) for one in value))
        and all(name in value for name in schema.get("required", []))
        and (
            not isinstance(value, dict)
            or all(
                admits(own[name], one, root) if name in own else more is None or more is not False and admits(more, one, root)
                for name, one in value.items()
            )
        )
    )


def test_the_schema_takes_the_examples_as_yaml_1_1_reads_them(gateway):
    """To which `off` is a boolean."""
    schema = json.loads(gateway.command("schema", config=False)[1])
    whole = yaml.safe_load((ROOT / "config" / "full.yaml").read_text())
    for name, value in whole.items():
        assert admits(schema["properties"][name], value, schema), name
    assert whole["routes"][0]["proxy"] is False and not admits(schema, whole | {"threads": "many"}, schema)
    for file in sorted((ROOT / "config").rglob("*.yaml")):
        assert admits(schema, yaml.safe_load(file.read_text()), schema), file
