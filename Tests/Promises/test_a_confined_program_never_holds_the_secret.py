"""Promise: the program of `cardea run --confine` reaches its APIs, and never holds what opens them: not in its environment, not in files, not
by a way around the gateway."""

import ast
import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.parse
import zipfile

import pytest

from confined import API, GIT, MAPS, OPEN, SECRETS, USER, Confined
from harness import eventually, executable, free_port
from s3_store import REGION, Store

GREETING = "hello from afar\n"


@pytest.fixture
def confined(gateway, tmp_path, monkeypatch):
    with contextlib.closing(Confined(gateway, tmp_path, monkeypatch)) as confined:
        yield confined


# --- Clients that are told of the proxy by variables alone --------------------------------------------------------------


def test_curl(confined):
    curl = executable("CARDEA_CURL", "curl", "apt-get install curl")
    said = confined.run("sh", "-c", f"{curl} -sS https://{API}/greeting && {curl} -sS 'https://{MAPS}/greeting?a=1'")
    assert said == GREETING * 2


def test_python(confined):
    text = """
        import sys, urllib.request, requests
        for host in sys.argv[1:]:
            with urllib.request.urlopen(f"https://{host}/greeting") as answer:
                sys.stdout.write(answer.read().decode())
            sys.stdout.write(requests.get(f"https://{host}/greeting").text)
    """
    assert confined.python(outdented(text), API, OPEN) == GREETING * 4


def test_pip(confined):
    wheel = confined.site / "files" / "tiny-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny.py", "")
        archive.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
    index = confined.site / "simple" / "tiny" / "index.html"
    index.parent.mkdir(parents=True)
    index.write_text(f'<a href="/files/{wheel.name}">{wheel.name}</a>')
    # A user with a placeholder for a password, as a configuration for a private index has it.
    shell = f'{sys.executable} -m pip download -q --no-deps --no-cache-dir -i "https://{USER}:$GIT_PASSWORD@{GIT}/simple" tiny'
    confined.run("sh", "-c", shell)
    assert (confined.program / wheel.name).read_bytes() == wheel.read_bytes()


def test_git(confined):
    git, work = executable("CARDEA_GIT", "git", "apt-get install git"), confined.folder / "work"
    say = ["-c", "user.name=a", "-c", "user.email=a@example.test"]
    for words in (["init", "-q", work], ["-C", work, *say, "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([git, *words], check=True)
    subprocess.run([git, "clone", "-q", "--bare", work, confined.site / "repo.git"], check=True)
    subprocess.run([git, "-C", confined.site / "repo.git", "update-server-info"], check=True)
    address = f'"https://{USER}:$GIT_PASSWORD@{GIT}/repo.git"'
    said = confined.run("sh", "-c", f"{git} clone -q {address} copy && {git} -C copy log --format=%s && cat copy/.git/config")
    assert said.startswith("first\n") and "cardea-confined-" in said


def test_node(confined):
    """Before 22.21 Node.js has no proxy of its own; npm has."""
    npm = executable("CARDEA_NPM", "npm", "apt-get install npm")
    (confined.site / "tiny").write_text(json.dumps({"name": "tiny", "versions": {"1.0.0": {}}, "dist-tags": {"latest": "1.0.0"}}))
    words = ["view", "tiny", "dist-tags.latest", "--registry", f"https://{API}/", "--no-update-notifier"]
    said = confined.run(npm, *words, environment={"npm_config_cache": str(confined.program / "npm")})
    assert said.strip() == "1.0.0"


def test_java(confined):
    java = executable("CARDEA_JAVA", "java", "apt-get install default-jdk-headless")
    (confined.program / "Ask.java").write_text(
        outdented("""
            import java.net.URI;
            import java.net.http.*;
            class Ask {
                public static void main(String[] hosts) throws Exception {
                    for (var host : hosts) {
                        var uri = URI.create("https://" + host + "/greeting");
                        try (var body = uri.toURL().openStream()) { System.out.write(body.readAllBytes()); }
                        var request = HttpRequest.newBuilder(uri).build();
                        System.out.print(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body());
                    }
                    System.out.flush();
                }
            }
        """)
    )
    assert confined.run(java, "Ask.java", API, OPEN) == GREETING * 4


def test_go(confined):
    """rclone asks by the client of Go's own library."""
    rclone = executable("CARDEA_RCLONE", "rclone", "apt-get install rclone")
    words = [rclone, "--config", "/dev/null", "--retries", "1", "copyurl", "--stdout"]
    assert "".join(confined.run(*words, f"https://{host}/greeting") for host in (API, OPEN)) == GREETING * 2


def test_boto3(confined, monkeypatch):
    """Its own signature is one of placeholders, which the gateway's replaces; the store checks it."""
    with Store(confined.folder) as store:
        (name, secret), address = store.key, store.address
        keys = {"AWS_ACCESS_KEY_ID": name, "AWS_SECRET_ACCESS_KEY": secret}
        for variable, value in keys.items():
            monkeypatch.setenv(variable, value)
        block = {"access_key_id": "env:AWS_ACCESS_KEY_ID", "secret_access_key": "env:AWS_SECRET_ACCESS_KEY"}
        config = confined.gateway.config
        config["identities"]["store"] = {"aws_sigv4": block | {"service": "s3", "region": REGION}}
        route = {"name": "store", "listen": "proxy", "match": {"host": "s3.example.test"}, "to": f"http://{address}"}
        config["routes"].append(route | {"use": "store", "paths": "raw"})
        text = """
            import boto3, botocore.config, sys
            config = botocore.config.Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
            s3 = boto3.client("s3", region_name=sys.argv[1], endpoint_url="http://s3.example.test", config=config)
            s3.create_bucket(Bucket="kept", CreateBucketConfiguration={"LocationConstraint": sys.argv[1]})
            s3.put_object(Bucket="kept", Key="a b", Body=b"hello from afar\\n")
            sys.stdout.write(s3.get_object(Bucket="kept", Key="a b")["Body"].read().decode())
        """
        said = confined.python(outdented(text), REGION)
    assert said == GREETING


def test_a_listener_by_its_address(confined):
    """What the program can be told of by an address is inside as well, and there alone."""
    said = confined.run("curl", "-sS", f"http://{confined.gateway.listen}/greeting")
    assert said == GREETING


# --- What it does not hold ----------------------------------------------------------------------------------------------


LOOK = r"""
import ctypes, errno, glob, os, socket, sys
folder, proxy, outside = os.environ["FOLDER"], int(os.environ["PROXY"]), os.environ["OUTSIDE"].split()
libc = ctypes.CDLL(None, use_errno=True)

def tried(what, act):
    try:
        print("LOOK", what, act())
    except Exception as error:
        print("LOOK", what, type(error).__name__, error)

def read(path):
    with open(path, "rb") as file:
        return file.read(1 << 20)

def connect(family, address):
    with socket.socket(family) as one:
        one.settimeout(5)
        one.connect(address)
        return "CONNECTED"

def look():
    for name, value in os.environ.items():
        print("LOOK", name, value)
    for path in glob.glob("/proc/*/environ") + glob.glob("/proc/*/cmdline") + glob.glob("/proc/*/mounts"):
        tried(path, lambda: read(path))
    for path in glob.glob("/proc/[0-9]*/root") + glob.glob("/proc/[0-9]*/cwd") + glob.glob("/proc/[0-9]*/fd/*"):
        if f"/{os.getpid()}/" not in path:
            tried(path, lambda: os.readlink(path))
    for place, folders, files in os.walk(folder):
        for name in files:
            path = os.path.join(place, name)
            tried(path, lambda: read(path))
    for name in ("cardea.yaml", "store-key", "interception.pem", "tokens.db", "cardea.sock"):
        tried(name, lambda: read(os.path.join(folder, name)))

look()
tried("unix", lambda: connect(socket.AF_UNIX, os.path.join(folder, "cardea.sock")))
tried("proxy", lambda: connect(socket.AF_INET, ("127.0.0.1", proxy)))
for address in outside:
    host, port = address.rsplit(":", 1)
    tried(f"outside {address}", lambda: connect(socket.AF_INET, (host, int(port))))
tried("name", lambda: socket.getaddrinfo("example.com", 443))
tried("rename", lambda: os.rename(folder, folder + ".away"))
tried("umount", lambda: libc.umount2(folder.encode(), 2) or "UNCOVERED")
# A namespace of its own has all rights, over nothing of this.
tried("unshare", lambda: libc.unshare(0x10000000 | 0x00020000))
tried("umount", lambda: libc.umount2(folder.encode(), 2) or "UNCOVERED")
look()
print("LOOK DONE")
"""


def test_it_finds_no_secret(confined, monkeypatch):
    """Every real secret is a canary. It has more than the program should ever meet: two names of one secret, and one inside of another value."""
    monkeypatch.setenv("GH_TOKEN", SECRETS["API_TOKEN"])
    monkeypatch.setenv("DATABASE", f"https://{USER}:{SECRETS['GIT_PASSWORD']}@{GIT}/")
    monkeypatch.setenv("STORE_KEY", "c3RvcmUta2V5LWZvci10ZXN0cy0zMi1vY3RldHMhISE=")
    monkeypatch.setenv("COPY_OF_KEY", "x" + os.environ["STORE_KEY"])
    monkeypatch.setenv("APP_MODE", "test")
    gateway = confined.gateway
    gateway.config["store"]["key"] = "env:STORE_KEY"
    gateway.secret("of-nobody", "a-file-in-a-folder-of-secrets")
    with open(f"{gateway.folder}/interception.pem") as file:
        key = file.read().split("PRIVATE KEY-----\n")[1][:64]
    # In variables: a path among its arguments would be one that the program needs.
    monkeypatch.setenv("FOLDER", str(gateway.folder))
    monkeypatch.setenv("PROXY", str(confined.port))
    monkeypatch.setenv("OUTSIDE", f"{gateway.admin} {confined.apis.address} 192.0.2.1:443")
    said = confined.python(LOOK)
    assert said.endswith("LOOK DONE\n"), said
    found = [secret for secret in [*gateway.secrets, key, "identities"] if secret in said]
    assert not found, said
    seen = dict(line.split(" ", 2)[1:] for line in said.splitlines() if line.count(" ") > 1 and line.startswith("LOOK "))
    assert seen["proxy"] == "CONNECTED" and seen["APP_MODE"] == "test", said
    assert "CONNECTED" not in seen["unix"] and "UNCOVERED" not in said, said
    for line in said.splitlines():
        assert not (line.startswith("LOOK outside") and "CONNECTED" in line), line
    assert seen["GH_TOKEN"] == seen["API_TOKEN"] and seen["API_TOKEN"].startswith("cardea-confined-"), said
    assert seen["GIT_PASSWORD"] in seen["DATABASE"] and "STORE_KEY" not in seen and "COPY_OF_KEY" not in seen, said
    # A text of this run, each of its own.
    texts = {seen[name] for name in SECRETS}
    assert len(texts) == 3
    again = confined.run("sh", "-c", "echo $API_TOKEN $GIT_PASSWORD $MAPS_KEY").split()
    assert len(again) == 3 and not texts & set(again)


def test_other_forms_of_a_secret_in_variables(confined):
    """A combining mark behind the sign, a line end that is no part of the secret, escapes, base 64, and octets that are no UTF-8."""
    secret = '\u0301canary/"of" a=form'
    quoted, encoded = urllib.parse.quote(secret, safe=""), base64.b64encode(f"{USER}:{secret}".encode()).decode()
    text = r"""
        import os
        for name, value in sorted(os.environb.items()):
            if name.startswith((b"FORM_", b"API_TOKEN")):
                print(ascii(name), ascii(value))
    """
    variables = {
        "API_TOKEN": secret + "\n", "FORM_SAME": secret, "FORM_IN_URL": f"https://u:{quoted}@h/", "FORM_AUTHORIZATION": f"Basic {encoded}",
        "FORM_IN_JSON": json.dumps({"t": secret}, ensure_ascii=False), "FORM_PLUS": urllib.parse.quote_plus(secret), "FORM_LATIN": "caf\udce9=1",
        "GIT_PASSWORD": "short", "FORM_SHORT": "short", "FORM_SHORTER": "shorter",
    }  # fmt: skip
    said = confined.python(outdented(text), environment=variables)
    seen = dict(ast.literal_eval(f"({line.replace(' b', ', b', 1)})") for line in said.splitlines())
    text = seen[b"API_TOKEN"]
    assert text.startswith(b"cardea-confined-")
    assert seen.pop(b"FORM_SHORT").startswith(b"cardea-confined-") and seen.pop(b"FORM_SHORTER") == b"shorter"
    assert seen == {
        b"API_TOKEN": text, b"FORM_SAME": text, b"FORM_IN_URL": b"https://u:%s@h/" % text, b"FORM_IN_JSON": b'{"t": "%s"}' % text,
        b"FORM_PLUS": text, b"FORM_LATIN": b"caf\xe9=1",
    }  # fmt: skip


def test_files_beside_the_program(confined):
    """A secret in the program's own folder is covered alone, and the log says what that means."""
    gateway = confined.gateway
    (confined.program / "token").write_text("canary-beside-the-program")
    (confined.program / "token").chmod(0o600)
    gateway.config["identities"]["api"]["static"]["value"] = f"file:{confined.program}/token"
    said = confined.run("sh", "-c", f"exec 2>&1; ls; cat token ./token {confined.program}/token; curl -sS https://{API}/; echo done")
    assert "canary" not in said and "token" in said and "done" in said
    told = [event for event in gateway.events() if event["message"] == "file covered alone"]
    assert [event["path"] for event in told] == [str(confined.program / "token")]


# --- Where a placeholder is taken ----------------------------------------------------------------------------------------


CASES = [
    ("the field of its route", f'-H "Authorization: Bearer $API_TOKEN" https://{API}/greeting', 200, ""),
    ("with any scheme", f'-H "Authorization: token $API_TOKEN" https://{API}/greeting', 200, ""),
    ("as a user", f'-u "$API_TOKEN:" https://{API}/greeting', 200, ""),
    ("as a password", f'-u "{USER}:$GIT_PASSWORD" https://{GIT}/greeting', 200, ""),
    ("a method", f'-X "$API_TOKEN" https://{API}/greeting', 403, "the request's method holds the placeholder of API_TOKEN"),
    ("a name", f'-H "X-$API_TOKEN: 1" https://{API}/greeting', 403, "a field's name holds the placeholder of API_TOKEN"),
    (
        "another field, as Basic",
        f"""-H "$(printf 'X-A: Basic\t%s' $(printf "u:%s" $API_TOKEN | base64 -w0))" https://{API}/greeting""",
        403,
        "X-A holds",
    ),
    ("as a parameter", f'"https://{MAPS}/greeting?key=$MAPS_KEY"', 200, ""),
    ("over HTTP", f'-H "Authorization: Bearer $API_TOKEN" http://{API}/greeting', 200, ""),
    ("another field", f'-H "X-Token: $API_TOKEN" https://{API}/greeting', 403, "X-Token holds the placeholder of API_TOKEN"),
    ("the target", f'"https://{API}/greeting?t=$API_TOKEN"', 403, "target holds the placeholder of API_TOKEN"),
    ("the path", f'"https://{API}/$API_TOKEN"', 403, "target holds the placeholder of API_TOKEN"),
    ("encoded", f'"https://{API}/greeting?t=$(echo $API_TOKEN | sed s/-/%2D/g)"', 403, "API_TOKEN"),
    ("a cookie", f'-H "Cookie: a=1; t=$API_TOKEN" https://{API}/greeting', 403, "Cookie holds the placeholder of API_TOKEN"),
    ("a field where a parameter is", f'-H "Authorization: Bearer $MAPS_KEY" https://{MAPS}/greeting', 403, "elsewhere"),
    ("another parameter", f'"https://{MAPS}/greeting?other=$MAPS_KEY"', 403, "MAPS_KEY"),
    ("another route", f'-H "Authorization: Bearer $API_TOKEN" https://{GIT}/greeting', 403, "the routes 'api', 'named' take"),
    ("another route's password", f'-u "{USER}:$API_TOKEN" https://{GIT}/greeting', 403, "API_TOKEN"),
    ("a route without an identity", f'-H "Authorization: Bearer $API_TOKEN" https://{OPEN}/greeting', 403, "API_TOKEN"),
    ("two in one", f'-H "Authorization: $API_TOKEN $MAPS_KEY" https://{API}/greeting', 403, "MAPS_KEY"),
    ("of no run", f'-H "Authorization: cardea-confined-00000000" https://{API}/greeting', 403, "was not given"),
    ("nothing", f"https://{API}/greeting", 200, ""),
    ("of the caller's own", f'-H "Authorization: Bearer mine" https://{API}/greeting', 200, ""),
]


def test_a_placeholder_is_taken_in_its_place_alone(confined):
    lines = [f"curl -sS -w ' STATUS=%{{http_code}}\\n' {words}; echo --" for _, words, _, _ in CASES]
    said = confined.run("sh", "-c", "\n".join(lines)).split("--\n")
    for (name, _, status, word), one in zip(CASES, said):
        assert f"STATUS={status}" in one and word.lower() in one.lower(), (name, one)
        assert status == 200 or "urn:cardea:problems/placeholder-misplaced" in one, (name, one)
    sent = [value for _, path, fields in confined.apis.seen for value in [path, *(text for _, text in fields)]]
    assert len(confined.apis.seen) == sum(status == 200 for _, _, status, _ in CASES)
    assert not any("cardea-confined-" in value for value in sent), sent


# --- The machine, the configuration and the gateway's life ---------------------------------------------------------------


FORBIDDING = ("unshare", "--user", "--map-root-user", "sh", "-c", 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"', "sh")


def test_where_the_machine_does_not_allow_it_the_log_says_so(confined):
    said = confined.run("curl", "-sS", f"https://{API}/greeting", wrap=FORBIDDING)
    assert said == GREETING
    told = [event for event in confined.gateway.events() if event["message"] == "program not confined"]
    assert [event["level"] for event in told] == ["warn"] and told[0]["reason"].startswith("namespaces: "), told
    # It is still given placeholders.
    assert confined.run("printenv", "API_TOKEN", wrap=FORBIDDING).startswith("cardea-confined-")


def test_strictly_it_does_not_start(confined):
    said = confined.run("echo", "never", wrap=FORBIDDING, how="--confine-strictly", status=69)
    assert said == ""
    assert "does not allow it: namespaces" in "".join(confined.gateway.lines("stderr"))
    (confined.gateway.folder / "stderr.1").unlink()
    assert confined.run("curl", "-sS", f"https://{API}/greeting", how="--confine-strictly") == GREETING


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"mode": "gateway", "intercept": None}, "no listener has 'mode: forward_proxy'"),
        ({"address": "unix:/tmp/cardea-no-place.sock"}, "finds its proxy on loopback"),
    ],
)
def test_a_configuration_without_a_proxy_is_refused(confined, change, word):
    listener = confined.gateway.config["listeners"]["proxy"]
    listener.update(change)
    confined.gateway.config["listeners"]["proxy"] = {name: value for name, value in listener.items() if value}
    assert confined.run("echo", "never", status=78) == ""
    assert word in "".join(confined.gateway.lines("stderr"))
    (confined.gateway.folder / "stderr.1").unlink()


def test_check_says_what_would_be_missing(confined):
    def checked(*wrap):
        gateway.file.write_text(json.dumps(gateway.config))
        words = [*wrap, gateway.binary, "check", "--confine", "--config", str(gateway.file)]
        done = subprocess.run(words, capture_output=True, text=True)
        return done.returncode, done.stdout

    gateway = confined.gateway
    assert checked() == (0, "good\n")
    status, said = checked(*FORBIDDING)
    assert (status, said.splitlines()[-1]) == (0, "good, 1 warning") and "does not allow confinement (namespaces: " in said, said
    del gateway.config["listeners"]["proxy"]["intercept"]
    status, said = checked()
    assert status == 0 and "warning listener 'proxy' opens no TLS" in said, said
    gateway.config["listeners"]["proxy"]["mode"] = "gateway"
    status, said = checked()
    assert status == 78 and "no listener has 'mode: forward_proxy'" in said, said


def test_a_program_that_is_not_there_is_told_apart(confined):
    assert confined.run("/nowhere/at-all", status=127) == ""
    assert any(event["message"] == "program cannot be started" for event in confined.gateway.events())


def test_its_status_and_signals_are_as_without(confined):
    process = confined.begin("sh", "-c", "trap 'echo told; exit 9' TERM; echo here; while :; do sleep 0.05; done")
    assert process.stdout.readline() == "here\n"
    process.terminate()
    assert process.wait(30) == 9
    assert process.stdout.read() == "told\n"


@pytest.mark.parametrize("timeout", ["30s", "1s"])
def test_the_status_of_a_program_that_had_to_be_killed(confined, timeout):
    """By a second signal, or at the end of its time."""
    confined.gateway.config["shutdown"]["timeout"] = timeout
    process = confined.begin("sh", "-c", "trap '' TERM; echo here; while :; do sleep 0.05; done")
    assert process.stdout.readline() == "here\n"
    process.terminate()
    if timeout == "30s":
        # A signal that has not been taken swallows the next one.
        eventually(lambda: not pending(process.pid) & 1 << signal.SIGTERM - 1, what="the first signal taken")
        process.terminate()
    assert process.wait(30) == 128 + signal.SIGKILL


def pending(process):
    with open(f"/proc/{process}/status") as file:
        return int(next(line for line in file if line.startswith("ShdPnd:")).split()[1], 16)


def test_a_reload_takes_what_fits_inside(confined):
    gateway = confined.gateway
    process = confined.begin("sh", "-c", f"echo here; until [ -e go ]; do sleep 0.05; done; curl -sS https://{API}/greeting")
    assert process.stdout.readline() == "here\n"
    gateway.config["listeners"]["more"] = {"address": f"127.0.0.1:{free_port()}"}
    gateway.config["routes"].append(confined.route(OPEN, "none", listen="more") | {"name": "more", "match": {"path": "/"}})
    gateway.file.write_text(json.dumps(gateway.config))
    told = gateway.told(lambda event: event["message"] == "reload refused")
    assert "outside the confined program's network" in told[0]["reason"]
    del gateway.config["listeners"]["more"], gateway.config["routes"][-1]
    gateway.config["routes"].append(confined.route(OPEN, "none") | {"name": "second", "match": {"host": "second.example.test"}})
    gateway.file.write_text(json.dumps(gateway.config))
    gateway.told(lambda event: event["message"] == "reload done")
    (confined.program / "go").touch()
    assert GREETING.strip() in process.stdout.read().splitlines()
    assert process.wait(30) == 0


def test_it_leaves_nothing_behind(confined, monkeypatch):
    folder = confined.folder / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    shell = 'cd "$(dirname "$SSL_CERT_FILE")" && ls && ! grep -l "PRIVATE KEY" *.pem *.jks'
    assert confined.run("sh", "-c", shell).split() == ["bundle.pem", "nothing", "truststore.jks"]
    assert not list(folder.iterdir())


def outdented(text):
    lines = text.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[indent:] for line in lines) + "\n"
