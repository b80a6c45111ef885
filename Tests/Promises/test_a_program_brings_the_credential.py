"""Promise: a program of the operator's brings a credential and says when it ends; one that fails is an issuer that is down, and nothing that it
writes is told."""

import base64
import json
import pathlib
import subprocess
import sys
import time

import pytest

from harness import call, eventually, executable, free_port, together
from programs import Bringer, at
from scripted import Scripted, answer, echo, identified

SECRET = "token-that-a-program-wrote-7"


def exec_credential(version="v1", **status):
    return {"apiVersion": f"client.authentication.k8s.io/{version}", "kind": "ExecCredential", "status": status}


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


FORMS = {
    "token": ({}, {"token": SECRET, "expires_in": 300}, f"Bearer {SECRET}"),
    "token-until": ({}, {"token": SECRET, "expires_at": at(300)}, f"Bearer {SECRET}"),
    "token-without-an-end": ({"format": "token"}, {"token": SECRET, "more": {"a": [1]}}, f"Bearer {SECRET}"),
    "docker": (
        {"format": "docker", "server": "registry.example.com"},
        {"ServerURL": "registry.example.com", "Username": "ci", "Secret": SECRET + ":ä"},
        basic("ci", SECRET + ":ä"),
    ),
    "docker-identity-token": (
        {"format": "docker", "server": "registry.example.com"},
        {"ServerURL": "https://registry.example.com", "Username": "<token>", "Secret": SECRET},
        f"Bearer {SECRET}",
    ),
    "kubernetes": ({"format": "kubernetes"}, exec_credential(token=SECRET, expirationTimestamp=at(300)), f"Bearer {SECRET}"),
    "kubernetes-v1beta1": ({"format": "kubernetes"}, exec_credential("v1beta1", token=SECRET), f"Bearer {SECRET}"),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_goes_out_as_its_maker_means_it(gateway, form):
    settings, written, wanted = FORMS[form]
    program = Bringer(gateway, written)
    gateway.secrets.append(SECRET)
    with Scripted(echo) as upstream:
        identified(gateway, upstream, program.block(**settings)).start()
        # A cold burst is one run.
        assert {found.status for found in together(12, lambda number: gateway.get(f"/{number}"))} == {200}
        assert {request.field("Authorization") for request in upstream.requests} == {wanted}
        assert program.runs == 1


def test_a_program_gets_what_its_maker_says_and_nothing_of_ours(gateway, monkeypatch):
    monkeypatch.setenv("CARDEA_TEST_SECRET", "not-for-programs")
    program = Bringer(gateway, FORMS["docker"][1], '{ echo "$#:$1"; cat; echo; /usr/bin/env; } >&3')
    block = program.block(format="docker", server="registry.example.com", environment={"HOME": str(gateway.folder), "LANG": "C"})
    block["program"]["command"].append('{"an": "argument"}')
    with Scripted(echo) as upstream:
        identified(gateway, upstream, block).start()
        assert gateway.get("/").status == 200
    first, server, *variables = program.heard.decode().split("\n")
    assert (first, server) == ('1:{"an": "argument"}', "registry.example.com")
    given = dict(line.split("=", 1) for line in variables if line)
    # What a shell adds for itself.
    assert given.keys() - {"PWD", "_", "SHLVL", "OLDPWD"} == {"PATH", "LANG", "HOME"}, given
    assert (given["LANG"], given["HOME"]) == ("C", str(gateway.folder))


def test_a_plug_in_of_kubectl_learns_what_is_wanted(gateway):
    program = Bringer(gateway, exec_credential(token=SECRET), 'echo "$KUBERNETES_EXEC_INFO" >&3; cat >&3')
    with Scripted(echo) as upstream:
        identified(gateway, upstream, program.block(format="kubernetes")).start()
        assert gateway.get("/").status == 200
    asked = json.loads(program.heard)
    assert (asked["apiVersion"], asked["kind"]) == ("client.authentication.k8s.io/v1", "ExecCredential")
    assert asked["spec"] == {"interactive": False}


def test_a_token_is_fetched_anew_when_it_ends_and_when_it_is_refused(gateway):
    program = Bringer(gateway, {"token": "first-of-a-program", "expires_in": 3})
    refused = set()

    def script(peer):
        for request in peer.requests():
            is_over = request.field("Authorization") in refused
            peer.send(answer(b"", status=b"401 Unauthorized") if is_over else answer(b"ok"))

    with Scripted(script) as upstream:
        identified(gateway, upstream, program.block()).start()
        assert gateway.get("/").status == 200
        program.answers({"token": "second-of-a-program", "expires_in": 600})

        def went(token):
            assert gateway.get("/").status == 200
            return upstream.requests[-1].field("Authorization") == f"Bearer {token}"

        eventually(lambda: went("second-of-a-program"), what="the second token")
        refused.add("Bearer second-of-a-program")
        program.answers({"token": "third-of-a-program", "expires_in": 600})
        assert gateway.get("/").status == 200
        assert upstream.requests[-1].field("Authorization") == "Bearer third-of-a-program"
        assert program.runs == 3


def test_a_restart_needs_no_run(gateway):
    program = Bringer(gateway, {"token": SECRET, "expires_in": 600})
    gateway.secrets.append(SECRET)
    with Scripted(echo) as upstream:
        identified(gateway, upstream, program.block()).start()
        assert gateway.get("/").status == 200
        assert gateway.stop() == 0
        gateway.start()
        assert gateway.get("/").status == 200
        assert (program.runs, SECRET.encode() in gateway.store.read_bytes()) == (1, False)


MALFORMED = {
    "nothing": ({}, b""),
    "blanks": ({}, b" \n"),
    "text": ({}, SECRET.encode()),
    "html": ({}, f"<html>{SECRET}".encode()),
    "a list": ({}, json.dumps([SECRET]).encode()),
    "a text": ({}, json.dumps(SECRET).encode()),
    "half": ({}, json.dumps({"token": SECRET}).encode()[:-1]),
    "two": ({}, json.dumps({"token": SECRET}).encode() * 2),
    "not UTF-8": ({}, b'{"token": "' + SECRET.encode() + b'\xff"}'),
    "deep": ({}, b'{"token": "' + SECRET.encode() + b'", "a": ' + b"[" * 5000 + b"]" * 5000 + b"}"),
    "a member twice": ({}, f'{{"token": "{SECRET}", "token": "{SECRET}-b"}}'.encode()),
    "no token": ({}, {"access_token": SECRET}),
    "an empty token": ({}, {"token": ""}),
    "a token that is a number": ({}, {"token": 7}),
    "a token that is null": ({}, {"token": None}),
    "a token with a line end": ({}, {"token": SECRET + "\r\nX-Forged: a"}),
    "a token with a blank": ({}, {"token": SECRET + " b"}),
    "a token that is no ASCII": ({}, {"token": SECRET + "ä"}),
    "a token that is too long": ({}, {"token": SECRET * 1500}),
    "a life that is a text": ({}, {"token": SECRET, "expires_in": "soon"}),
    "no life": ({}, {"token": SECRET, "expires_in": 0}),
    "a negative life": ({}, {"token": SECRET, "expires_in": -(10**30)}),
    "two lives": ({}, {"token": SECRET, "expires_in": 60, "expires_at": at(60)}),
    "an end that is over": ({}, {"token": SECRET, "expires_at": at(-60)}),
    "an end in the year 0": ({}, {"token": SECRET, "expires_at": "0000-01-01T00:00:00Z"}),
    "an end that is a number": ({}, {"token": SECRET, "expires_at": int(time.time()) + 60}),
    "an end without a zone": ({}, {"token": SECRET, "expires_at": "2999-01-01T00:00:00"}),
    "an end in words": ({}, {"token": SECRET, "expires_at": "tomorrow"}),
    "docker: no user": ({"format": "docker"}, {"ServerURL": "a", "Secret": SECRET}),
    "docker: an empty user": ({"format": "docker"}, {"ServerURL": "a", "Username": "", "Secret": SECRET}),
    "docker: no secret": ({"format": "docker"}, {"ServerURL": "a", "Username": "ci"}),
    "docker: a colon in the user": ({"format": "docker"}, {"Username": "a:b", "Secret": SECRET}),
    "docker: a line end": ({"format": "docker"}, {"Username": "ci", "Secret": SECRET + "\n"}),
    "docker: an unfit token": ({"format": "docker"}, {"Username": "<token>", "Secret": SECRET + " b"}),
    "docker: an unknown server": ({"format": "docker"}, b"credentials not found in native keychain\n"),
    "kubernetes: another kind": ({"format": "kubernetes"}, exec_credential(token=SECRET) | {"kind": "Status"}),
    "kubernetes: another version": ({"format": "kubernetes"}, exec_credential("v1alpha1", token=SECRET)),
    "kubernetes: no status": ({"format": "kubernetes"}, {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}),
    "kubernetes: a certificate": ({"format": "kubernetes"}, exec_credential(clientCertificateData="a", clientKeyData=SECRET)),
    "kubernetes: over": ({"format": "kubernetes"}, exec_credential(token=SECRET, expirationTimestamp=at(-1))),
    "kubernetes: a wrong time": ({"format": "kubernetes"}, exec_credential(token=SECRET, expirationTimestamp="2999-13-01T00:00:00Z")),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_answer_is_told_without_what_was_written(gateway, what):
    settings, written = MALFORMED[what]
    program = Bringer(gateway, written)
    gateway.secrets.append(SECRET)
    if settings.get("format") == "docker":
        settings = settings | {"server": "a"}
    with Scripted(echo) as upstream:
        identified(gateway, upstream, program.block(**settings)).start()
        found = gateway.get("/")
        assert found.status in (502, 503) and SECRET.encode() not in found.body, found
        assert "program: " in found.problem["detail"], found.problem
        assert not upstream.requests
        status, out, _ = gateway.command("check", "--live")
        assert status == 69 and "program: " in out, out


FAILURES = {
    "fails": ("exit 3", "ended with status 3"),
    "is killed": ("kill -9 $$", "was killed"),
    "writes too much": (f"yes {SECRET} | head -c 70000", "wrote more than 64 KiB"),
    "takes too long": (f"printf {SECRET}; sleep 600", "took too long"),
    "says something and fails": (f"printf {SECRET}; printf {SECRET} >&2; exit 1", "ended with status 1"),
}


@pytest.mark.parametrize("what", FAILURES)
def test_a_program_that_fails_is_an_issuer_that_is_down(gateway, what):
    more, reason = FAILURES[what]
    program = Bringer(gateway, {"token": SECRET, "expires_in": 600}, more)
    gateway.secrets.append(SECRET)
    with Scripted(echo) as upstream:
        identified(gateway, upstream, program.block(timeout="1s")).start()
        found = gateway.get("/")
        assert found.status == 503 and reason in found.problem["detail"], found
        # Callers at once do not run it at once.
        before = program.runs
        assert {one.status for one in together(12, lambda _: gateway.get("/"))} == {503}
        assert program.runs <= before + 1
        assert not upstream.requests


def test_a_token_outlives_the_program_that_brought_it(gateway):
    program = Bringer(gateway, {"token": SECRET, "expires_in": 20})
    gateway.secrets.append(SECRET)
    with Scripted(echo) as upstream:
        block = program.block() | {"token": {"refresh_ahead": "90%"}}
        identified(gateway, upstream, block).start()
        assert gateway.get("/").status == 200
        program.path.unlink()


        def has_failed():
            assert gateway.get("/").status == 200
            return any("No such file" in json.dumps(event) for event in gateway.events())

        eventually(has_failed, what="a renewal that failed")
        assert gateway.get("/").status == 200
        assert {request.field("Authorization") for request in upstream.requests} == {f"Bearer {SECRET}"}


def test_a_program_that_hangs_delays_no_other(gateway):
    slow = Bringer(gateway, {"token": SECRET}, "sleep 600", name="slow")
    quick = Bringer(gateway, {"token": SECRET, "expires_in": 600}, name="quick")
    gateway.secrets.append(SECRET)
    with Scripted(echo) as upstream:
        identified(gateway, upstream, quick.block())
        gateway.config["identities"]["slow"] = slow.block(timeout="50s") | {"token": {"acquire_timeout": "50s"}}
        way = gateway.route("slow", upstream.address) | {"match": {"path": "/slow/"}}
        gateway.config["routes"].insert(0, way)
        gateway.start()
        with gateway.raw() as caller:
            caller.send(f"GET /slow/ HTTP/1.1\r\nHost: {gateway.listen}\r\n\r\n".encode())
            eventually(lambda: slow.runs == 1, what="the slow program running")
            assert gateway.get("/quick").status == 200
            assert slow.runs == 1 and quick.runs == 1


def test_a_program_that_has_left_its_group_is_killed_all_the_same(gateway):
    """It closes its output, too, so that nothing is left to wait for but its end."""
    program = gateway.folder / "away"
    program.write_text(f"#!{sys.executable} -IS\nimport os, time\nos.setpgid(0, os.getpgid(os.getppid()))\nos.close(1)\ntime.sleep(600)\n")
    program.chmod(0o700)
    block = {"program": {"command": [str(program)], "timeout": "1s", "environment": {"HOME": sys.prefix}}}
    with Scripted(echo) as upstream:
        identified(gateway, upstream, block).start()
        found = gateway.get("/")
        assert found.status == 503 and "took too long" in found.problem["detail"], found


def test_a_program_ends_with_the_gateway(gateway):
    program = Bringer(gateway, "", "echo $$ >&3; printf '\\0' >&3; exec sleep 600")
    with Scripted(echo) as upstream:
        identified(gateway, upstream, program.block()).start()
        with gateway.raw() as caller:
            caller.send(f"GET / HTTP/1.1\r\nHost: {gateway.listen}\r\n\r\n".encode())
            eventually(lambda: program.heard, what="the program running")
        gateway.stop()
        eventually(lambda: not pathlib.Path(f"/proc/{int(program.heard)}").exists(), what="its end")


def test_a_program_sees_its_own_files_and_no_others(gateway, tmp_path_factory):
    """Beside its own folder: a secret of another identity, the configuration, the store, and a place that the gateway writes to."""
    own, other = tmp_path_factory.mktemp("own"), tmp_path_factory.mktemp("other")
    (other / "secret").write_text(SECRET)
    (other / "secret").chmod(0o600)
    places = [other / "secret", gateway.file, gateway.store]
    program = Bringer(gateway, {"token": SECRET, "expires_in": 600}, "".join(
        f"(cat {place} >/dev/null && echo read {place}) 2>/dev/null >&3\n" for place in places)
        + f"(echo > {gateway.folder}/written && echo written) 2>/dev/null >&3\ncat $0 >/dev/null && echo own >&3")
    program.told.rename(own / "told")
    program.path.write_text(program.path.read_text().replace(str(program.told), f"{own}/told"))
    path = program.path.rename(own / "bring")
    gateway.secrets.append(SECRET)
    with Scripted(echo) as upstream:
        identified(gateway, upstream, {"program": {"command": [str(path)]}}, sandbox="on")
        gateway.config["identities"]["other"] = {"static": {"value": f"file:{other}/secret"}}
        gateway.config["routes"].insert(0, gateway.route("other", upstream.address) | {"match": {"path": "/other/"}})
        gateway.start()
        if not any("sandbox entered" in json.dumps(event) for event in gateway.events()):
            pytest.skip("the kernel has no Landlock")
        assert (gateway.get("/other/").status, gateway.get("/").status) == (200, 200)
        assert program.heard == b"own\n", program.heard


def test_inside_the_sandbox_a_program_reads_what_is_named(gateway, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "token").write_text(json.dumps({"token": SECRET, "expires_in": 600}))
    gateway.secrets.append(SECRET)
    program = gateway.folder / "read"
    program.write_text(f'#!/bin/sh\ncat "{elsewhere}/token"\n')
    program.chmod(0o700)
    with Scripted(echo) as upstream:
        identified(gateway, upstream, {"program": {"command": [str(program)]}}, sandbox="on").start()
        if not any("sandbox entered" in json.dumps(event) for event in gateway.events()):
            pytest.skip("the kernel has no Landlock")
        assert gateway.get("/").status == 503
        assert gateway.stop() == 0
        gateway.config["identities"]["only"]["program"]["environment"] = {"HOME": str(elsewhere)}
        gateway.start()
        assert gateway.get("/").status == 200


def checked(gateway, upstream, block):
    identified(gateway, upstream, block)
    gateway.file.write_text(json.dumps(gateway.config, indent=2))
    status, out, _ = gateway.command("check")
    return status, out


@pytest.mark.parametrize(
    "block, reason",
    [
        ({"command": ["bring"]}, "'command' of identity 'only' (program) must begin with the absolute path of a program"),
        ({"command": ["./bring"]}, "must begin with the absolute path"),
        ({"command": []}, "must begin with the absolute path"),
        ({"command": ["~/bring"]}, "must begin with the absolute path"),
        ({}, "identity 'only' (program) needs 'command'"),
        ({"command": "/bin/true"}, "'command' must be a list"),
        ({"command": ["/bin/true", "--user={subject}"]}, "has the template '{subject}'"),
        ({"command": ["/bin/true", "{secret.password}"]}, "has the template '{secret.password}'"),
        ({"command": ["/bin/true"], "environment": {"WHO": "{request.url}"}}, "'environment' of identity 'only' (program) has the template"),
        ({"command": ["/bin/true"], "timeout": "2m"}, "must be at most 1m"),
        ({"command": ["/bin/true"], "format": "aws"}, "must be one of token, docker, kubernetes"),
        ({"command": ["/bin/true"], "format": "docker"}, "needs 'server', which a helper of Docker is asked for"),
        ({"command": ["/bin/true"], "server": "a"}, "goes only with 'format: docker'"),
        ({"command": ["/bin/true"], "shell": "true"}, "unknown key 'shell'"),
    ],
)
def test_check_says_what_is_wrong(gateway, echo_upstream, block, reason):
    status, out = checked(gateway, echo_upstream, {"program": block})
    assert status == 78 and reason in out, out


@pytest.fixture
def echo_upstream():
    with Scripted(echo) as upstream:
        yield upstream


def test_check_looks_for_the_program(gateway, echo_upstream):
    program = Bringer(gateway, {"token": SECRET})
    for change, reason in [
        (lambda: program.path.chmod(0o600), "cannot be run by this user"),
        (lambda: program.path.chmod(0o722), "others can write it"),
        (lambda: program.path.unlink(), "No such file or directory"),
        (lambda: program.path.mkdir(), "not a regular file"),
    ]:
        change()
        status, out = checked(gateway, echo_upstream, program.block())
        assert status == 0 and "1 warning" in out, out
        assert f"'command' of identity 'only': {program.path}: {reason}" in out, out
        # Where it stands in the file.
        lines = gateway.file.read_text().splitlines()
        line = 1 + next(number for number, line in enumerate(lines) if str(program.path) in line)
        assert f"{gateway.file}:{line}:" in out, out
    # Nothing is run for it.
    assert program.runs == 0


def test_explain_names_the_program(gateway, echo_upstream):
    program = Bringer(gateway, {"token": SECRET})
    identified(gateway, echo_upstream, program.block()).start()
    status, out, _ = gateway.command("explain", "GET", f"http://{gateway.listen}/a")
    assert status == 0 and f"runs {program.path} for a credential" in out, out


# --- Docker ----------------------------------------------------------------------------------------------------------


class Registry:
    """Debian's docker-registry with a file of passwords (Basic)."""

    def __init__(self, folder, user, password):
        binary = executable("CARDEA_DOCKER_REGISTRY", "docker-registry", "apt-get install docker-registry")
        self.address = f"127.0.0.1:{free_port()}"
        salt = "$2b$05$abcdefghijklmnopqrstuu"
        hashed = subprocess.run(
            ["perl", "-e", "print crypt($ARGV[0], $ARGV[1])", password, salt], capture_output=True, check=True, text=True
        ).stdout
        assert hashed.startswith("$2b$05$"), "perl's crypt knows no bcrypt"
        (folder / "htpasswd").write_text(f"{user}:{hashed}\n")
        (folder / "registry.yml").write_text(
            f"""version: 0.1
log: {{level: info}}
storage: {{filesystem: {{rootdirectory: {folder}/images}}}}
http: {{addr: "{self.address}", secret: registry-secret}}
auth: {{htpasswd: {{realm: tests, path: {folder}/htpasswd}}}}
"""
        )
        self.log = folder / "registry.log"
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen([binary, "serve", str(folder / "registry.yml")], stdout=output, stderr=output)
        eventually(self.answers, what="the registry answering")

    def answers(self):
        assert self.process.poll() is None, self.log.read_text()
        try:
            return call(self.address, path="/v2/", timeout=5).status == 401
        except OSError:
            return False

    @property
    def refused(self):
        return self.log.read_text().count("error authenticating user")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def test_a_helper_of_docker_opens_a_registry(gateway, tmp_path):
    password = "password-of-the-registry-9"
    gateway.secrets.append(password)
    with Registry(tmp_path, "ci", password) as registry:
        # As the helpers themselves: `get`, the server on standard input, an error on standard output.
        more = (
            f'[ "$1" = get ] || exit 1; read server\n'
            f'[ "$server" = "http://{registry.address}" ] || {{ echo "credentials not found in native keychain"; exit 1; }}'
        )
        program = Bringer(gateway, {"ServerURL": f"http://{registry.address}", "Username": "ci", "Secret": password}, more)
        block = program.block(format="docker", server=f"http://{registry.address}")
        block["program"]["command"].append("get")
        identified(gateway, registry, block).start()
        assert gateway.get("/v2/").status == 200
        begun = gateway.call("POST", "/v2/team/app/blobs/uploads/", b"")
        assert begun.status == 202
        assert program.runs == 1 and registry.refused == 0


def test_a_password_that_a_registry_refuses_is_not_asked_for_again_and_again(gateway, tmp_path):
    password = "another-password-of-it-5"
    gateway.secrets.append(password)
    with Registry(tmp_path, "ci", "the-right-password") as registry:
        program = Bringer(gateway, {"Username": "ci", "Secret": password})
        identified(gateway, registry, program.block(format="docker", server="a")).start()
        assert {gateway.get("/v2/").status for _ in range(10)} <= {401, 502}
        # The first refusal is a reason to run it once more; what it brings then is no other.
        assert program.runs == 2 and registry.refused <= 11
        assert password.encode() not in gateway.store.read_bytes()
