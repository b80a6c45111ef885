"""Judges files of the documentation: whole configurations by `cardea check`, parts of one by the schema, other files by what reads them."""

import base64
import functools
import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import tomllib

import yaml

import documented_commands
from documentation import ROOT

# A path of the reader's machine, as a value; the lookbehind leaves addresses such as https://x/etc/ alone.
PATH = re.compile(r"(?<![\w/.-])/(?:run|etc|var|srv|tmp|home)/[\w./-]+")
# A program of the reader's own.
PROGRAM = re.compile(r"\bcommand: \[(/[\w./-]+)")
REFERENCE = re.compile(r"\bfile:([\w./-]+)")
CERTIFICATES = (".pem", ".crt", ".p12", ".key")


class Strict(yaml.SafeLoader):
    """YAML 1.1 without its dates, and without a key that stands twice."""

    def construct_mapping(self, node, deep=False):
        names = [key.value for key, _ in node.value]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise yaml.YAMLError(f"{', '.join(sorted(twice))} stands twice")
        return super().construct_mapping(node, deep)


def read(text):
    return yaml.load(text, Strict)


# --- Whole configurations -----------------------------------------------------------------------------------------------


@functools.cache
def certificate():
    """A made-up certificate with its key, as one text."""
    out = ["-keyout", "/dev/stdout", "-out", "/dev/stdout"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    made = ["openssl", "req", "-x509", *key, *out, "-days", "30", "-subj", "/CN=made-up"]
    return subprocess.run(made, capture_output=True, text=True, check=True).stdout


def accepted(text, folder, binary):
    """Lines that `cardea check` has against a whole configuration; nothing where it is good and nothing is warned of."""
    status, lines = said(text, folder, binary)
    return [] if (status, lines) == (0, ["good"]) else lines


def said(text, folder, binary):
    """The status of `cardea check` and its lines, for a configuration whose files, secrets and folders are made up in `folder`."""
    environment = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
    text = PATH.sub(lambda match: f"{folder}{match[0]}", text)
    text = PROGRAM.sub(lambda match: match[0] if match[1].startswith(str(folder)) else f"command: [{folder}{match[1]}", text)
    for path in PROGRAM.findall(text):
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(path).touch(mode=0o755)
    value = read(text)
    credentials = folder / "credentials"
    credentials.mkdir(mode=0o700, exist_ok=True)
    environment["CREDENTIALS_DIRECTORY"] = str(credentials)
    for name in re.findall(r"\bcredential:([\w.-]+)", text):
        secret(credentials / name)
    for name in re.findall(r"\benv:(\w+)", text):
        environment[name] = value_of_secret()
    for path in REFERENCE.findall(text) + [path for path in strings(value) if path.endswith(CERTIFICATES)]:
        secret(folder / path.removeprefix("file:"))
    for authority in interceptions(value):
        intercept(folder / authority, value, binary)
    for path in strings(value):
        if path.startswith((str(folder), "unix:")):
            (folder / path.removeprefix("unix:")).parent.mkdir(parents=True, exist_ok=True)
    if isinstance(value, dict) and "audit" in value:
        init = [binary, "audit", "init", value["audit"]["path"]]
        subprocess.run(init, cwd=folder, capture_output=True, check=True)
    file = folder / "cardea.yaml"
    file.write_text(text)
    done = subprocess.run([binary, "check", str(file)], capture_output=True, text=True, env=environment, cwd=folder, timeout=120)
    return done.returncode, (done.stdout + done.stderr).replace(str(folder), "").splitlines()


def value_of_secret():
    """Fits a password, a client's secret and a key of the store."""
    return base64.b64encode(secrets.token_bytes(32)).decode()


def secret(path):
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(certificate() if path.suffix in CERTIFICATES else value_of_secret() + "\n")
        path.chmod(0o600)


def strings(value):
    """Every text in it."""
    if isinstance(value, dict):
        return [text for one in value.values() for text in strings(one)]
    if isinstance(value, list):
        return [text for one in value for text in strings(one)]
    return [value] if isinstance(value, str) else []


def interceptions(value):
    """Files that name an authority for opening TLS."""
    if isinstance(value, dict):
        own = value["intercept"] if isinstance(value.get("intercept"), dict) else {}
        return ([own["ca"]] if "ca" in own else []) + [path for one in value.values() for path in interceptions(one)]
    return [path for one in value for path in interceptions(one)] if isinstance(value, list) else []


def intercept(path, value, binary):
    """An authority for the hosts of the routes, made as the documentation says."""
    routes = [route for route in value.get("routes", []) if isinstance(route, dict)]
    hosts = {re.sub(r"^\w+://|[:/].*$", "", route["to"]) for route in routes if isinstance(route.get("to"), str)}
    hosts |= {route["match"]["host"] for route in routes if "host" in route.get("match", {})}
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    out = path.with_suffix("")
    made = [binary, "ca", "init", *(word for host in sorted(hosts) for word in ("--hosts", host)), "--out", str(out)]
    subprocess.run(made, capture_output=True, text=True, check=True)


# --- Parts -----------------------------------------------------------------------------------------------------------------


@functools.cache
def schema(binary):
    return json.loads(subprocess.run([binary, "schema"], capture_output=True, text=True, check=True).stdout)


def place(value, binary):
    """The way to the uppermost block, or list of blocks, whose keys include all that the part begins with: keys, `*` for a name of the
    reader's, 0 for an item; None where there is none."""
    items = value if isinstance(value, list) else None
    wanted = {name for one in items or [value] for name in one}
    ways = [((), schema(binary))]
    while ways:
        way, part = ways.pop(0)
        if "properties" in part and wanted <= part["properties"].keys() and (items is None or way[-1:] == (0,)):
            return way
        ways += [(way, one) for choice in ("anyOf", "oneOf") for one in part.get(choice, [])]
        ways += [((*way, name), one) for name, one in part.get("properties", {}).items()]
        ways += [((*way, "*"), one) for one in [part.get("additionalProperties")] if isinstance(one, dict)]
        ways += [((*way, 0), one) for one in [part.get("items")] if one]
    return None


# Things that a part may leave out, since the whole has them. Everything else that `cardea check` finds is a fault of the part.
LEFT_OUT = re.compile(r" warning |\bneeds? '|is not defined|^\d+ errors?|^good")


def of_part(text, folder, binary):
    """A part is put where it belongs into a configuration that is otherwise empty."""
    value = read(text)
    if not isinstance(value, (dict, list)) or not all(isinstance(one, dict) for one in (value if isinstance(value, list) else [value])):
        return ["a part is a block, or a list of blocks"]
    way = place(value, binary)
    if way is None:
        names = sorted({name for one in (value if isinstance(value, list) else [value]) for name in one})
        return [f"no block of a configuration has {'all of ' if len(names) > 1 else ''}the keys {', '.join(names)}"]
    for step in reversed(way[:-1] if isinstance(value, list) else way):
        value = [value] if step == 0 else {"part" if step == "*" else step: value}
    return [line for line in said(json.dumps(value, indent=1), folder, binary)[1] if not LEFT_OUT.search(line)]


@functools.cache
def keys(binary):
    """Names of keys that a key may stand under: {key: its keys}, from every block of the schema."""
    found = {}

    def walk(part, above):
        if isinstance(part, dict):
            for name, one in part.get("properties", {}).items():
                found.setdefault(above, set()).add(name)
                walk(one, name)
            for name, one in part.items():
                if name not in ("properties", "$defs"):
                    walk(one, above)
        elif isinstance(part, list):
            for one in part:
                walk(one, above)

    walk(schema(binary), "")
    return found


def of_key(text, binary):
    """`limits.subjects`: each name stands under the one before. What does not begin with a block of the schema is no key."""
    names = text.split(".")
    under = keys(binary)
    if len(names) < 2 or names[0] not in under or not names[0]:
        return []
    for above, name in zip(names, names[1:]):
        if name not in under.get(above, ()):
            return [f"there is no key '{name}' under '{above}'"]
    return []


# --- Files of others ----------------------------------------------------------------------------------------------------------


def of_kubernetes(text, folder, binary):
    """Every object has a kind; a configuration in a ConfigMap is one that `cardea check` accepts."""
    found = []
    for value in yaml.load_all(text, Strict):
        if not isinstance(value, dict) or not {"apiVersion", "kind"} <= value.keys():
            found.append("an object has no apiVersion or no kind")
        elif value["kind"] == "ConfigMap" and "cardea.yaml" in value.get("data", {}):
            found += accepted(value["data"]["cardea.yaml"], folder, binary)
    return found


def of_nginx(text, folder, _):
    """Sections of `http` and above, as `nginx -t` reads them; Debian's module for Lua is loaded where it is needed."""
    text = re.sub(r"/etc/ssl/\S+?(?=;)", lambda match: str(made(folder, match[0])), text)
    # nginx looks up the names of its upstreams; nobody has the made-up ones.
    text = re.sub(r"(?<=proxy_pass )(https?://)[\w.-]+\.example\.com", r"\g<1>127.0.0.1", text)
    whole = text if re.search(r"^\s*events\b", text, re.M) else f"events {{}}\nhttp {{\n{text}\n}}\n"
    module = "/usr/lib/nginx/modules/"
    loads = ("ndk_http_module.so", "ngx_http_lua_module.so") if "_by_lua" in whole else ()
    head = "".join(f"load_module {module}{name};\n" for name in loads)
    file = folder / "nginx.conf"
    file.write_text(f"{head}pid {folder}/nginx.pid; error_log {folder}/error.log;\n{whole}")
    return of_program("nginx", ["-t", "-q", "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(file)])


def of_haproxy(text, folder, _):
    text = re.sub(r"/(?:etc|run)/[\w./-]+", lambda match: str(made(folder, match[0])), text)
    (folder / "haproxy.cfg").write_text(text)
    return of_program("haproxy", ["-c", "-f", str(folder / "haproxy.cfg")])


def of_envoy(text, folder, _):
    """Read by Envoy itself where the benchmark has set it up; Envoy is too large to be fetched for this alone."""
    text = re.sub(r"/etc/[\w./-]+", lambda match: str(made(folder, match[0])), text)
    (folder / "envoy.yaml").write_text(text)
    envoy = ROOT / ".build/performance/envoy/envoy/_bin/envoy"
    if not envoy.exists():
        return of_yaml(text)
    return of_program(str(envoy), ["--mode", "validate", "--log-level", "error", "-c", str(folder / "envoy.yaml")])


def made(folder, path):
    """A file that another program's configuration names, with something in it that fits."""
    file = folder / path.lstrip("/")
    secret(file)
    if file.suffix == ".map":
        file.write_text("api made-up\n")
    return file


def of_prometheus(text, folder, _):
    """A whole file as `promtool` reads it, with the rules that it names where they stand in the repository; else only YAML."""
    if "scrape_configs" not in read(text):
        return of_yaml(text)
    (folder / "prometheus.yml").write_text(text.replace("/usr/share/cardea/monitoring", str(ROOT / "deploy/monitoring")))
    return of_program("promtool", ["check", "config", str(folder / "prometheus.yml")])


def of_toml(text, *_):
    tomllib.loads(text)
    return []


def of_program(name, arguments):
    program = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    assert program, f"'{name}' is not installed: make setup"
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120)
    return [] if done.returncode == 0 else (done.stdout + done.stderr).splitlines()


@functools.cache
def lines_of_swift():
    paths = [path for folder in ("Sources", "Tests") for path in (ROOT / folder).rglob("*.swift")]
    return {line.strip() for path in paths for line in path.read_text().split("\n")}


def of_swift(text, *_):
    """Each line stands in a file of Swift, so that a page cannot show what the code no longer says."""
    return [f"no file of Swift has the line '{line.strip()}'" for line in text.split("\n") if line.strip() not in lines_of_swift()]


def of_http(text, *_):
    """A message: its first line, then fields."""
    first, *fields = text.rstrip("\n").split("\n\n", 1)[0].split("\n")
    good = re.match(r"^(HTTP/[\d.]+ \d{3}( .*)?|[A-Z]+ \S+ HTTP/[\d.]+)$", first)
    strays = [one for one in fields if not re.match(r"^([\w-]+: |\s+\S)", one)]
    return [f"'{line}' is no line of a message" for line in ([] if good else [first]) + strays]


# Directives of logrotate(8) that pages use, with the pattern of their value.
LOGROTATE = {
    "daily": "", "weekly": "", "monthly": "", "rotate": r"\d+", "nocreate": "", "missingok": "", "compress": "", "delaycompress": "",
}  # fmt: skip


def of_logrotate(text, *_):
    lines = [line.strip() for line in text.strip().split("\n")]
    faults = [] if re.fullmatch(r"(/\S+ )+\{", lines[0]) else [f"'{lines[0]}' names no log"]
    faults += [] if lines[-1] == "}" else ["the block has no end"]
    for line in lines[1:-1]:
        word, _, value = line.partition(" ")
        if word not in LOGROTATE or not re.fullmatch(LOGROTATE[word], value.strip()):
            faults.append(f"'{line}' is no directive of logrotate that is known here")
    return faults


def of_unit(text, folder, _):
    """A drop-in of the service, as systemd reads it beside the unit."""
    unit = (ROOT / "deploy/cardea.service").read_text().replace("/usr/local/bin/cardea", "/bin/true")
    (folder / "cardea.service").write_text(unit)
    (folder / "cardea.service.d").mkdir()
    (folder / "cardea.service.d/override.conf").write_text(text)
    environment = {**os.environ, "SYSTEMD_LOG_TARGET": "console", "SYSTEMD_UNIT_PATH": f"{folder}:"}
    words = ["systemd-analyze", "verify", "--man=no", "cardea.service"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)
    told = [line for line in done.stderr.splitlines() if "override.conf" in line]
    return told or ([] if done.returncode == 0 else done.stderr.splitlines())


def of_nft(text, folder, _):
    """Rules for the table and the chain that iptables and its successors have."""
    rules = "add table ip nat\nadd chain ip nat output { type nat hook output priority -100; }\n" + text.replace("skuid != cardea", "skuid != root")
    (folder / "rules.nft").write_text(rules)
    apart = ["--net"] if os.geteuid() == 0 else ["--net", "--user", "--map-root-user"]
    return of_program("unshare", [*apart, shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin") or "nft", "-c", "-f", str(folder / "rules.nft")])


def of_synopsis(text, _, binary):
    """The words of a command before its arguments."""
    return documented_commands.of_span(re.match(r"[a-z ]*", text)[0], binary)


def of_json(text, *_):
    json.loads(text)
    return []


def of_yaml(text, *_):
    list(yaml.load_all(text, Strict))
    return []


OTHERS = {
    ("yaml", "kubernetes"): of_kubernetes,
    ("yaml", "envoy"): of_envoy,
    ("yaml", "iron-proxy"): of_yaml,
    ("yaml", "prometheus"): of_prometheus,
    ("yaml", "opentelemetry-collector"): of_yaml,
    ("toml", "oauth2-proxy"): of_toml,
    ("nginx", ""): of_nginx,
    ("haproxy", ""): of_haproxy,
    ("swift", ""): of_swift,
    ("http", ""): of_http,
    ("json", ""): of_json,
    ("text", "logrotate"): of_logrotate,
    ("text", "unit"): of_unit,
    ("text", "nft"): of_nft,
    ("text", "synopsis"): of_synopsis,
}
