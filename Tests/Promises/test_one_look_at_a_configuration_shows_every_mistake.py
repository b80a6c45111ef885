"""Promise: all mistakes at once, each with file, line, column and the nearest valid word."""

import json
import re

import pytest

MISTAKES = """\
identities:
  hr:
    oam_webgate:
      service: https://oam.example.com:14100/oic_rest/rest/mobileoamauthentication
      user_agent_prefix: OIC-Agent
      client_id: EdgeProxy
      username: svc-hr
      pasword: file:/run/secrets/hr-password
    token:
      refresh_ahead: 20
  both:
    basic: { username: a, password: env:A }
    static: { value: env:B }
  billing:
    oauth2:
      token_url: https://idp.example.com/token
      client_id: billing
      client_secret: just-a-bare-secret
      grant: client_credential
routes:
  - listen: 127.0.0.1:8080
    to: https://hr.example.com
    use: h
  - listen: 0.0.0.0:8081
    to: https://hr.example.com
    use: hr
    name: old
  - listen: 127.0.0.1:8082
    to: http://api.example.com
    use: billing
  - listen: 127.0.0.1:8083
    to: https://api.example.com
    use: billing
    use: hr
    on_rejected: { max_body: lots }
    timeouts: { connect: 5 }
logs: { level: info }
"""

EXPECTED = {
    8: "password",
    10: "unit",
    11: "both",
    18: "literal:",
    19: "client_credentials",
    23: "'h'",
    24: "callers",
    29: "allow_cleartext",
    34: "use",
    35: "max_body",
    36: "connect",
    37: "log",
}


def test_ten_and_more_mistakes_in_one_look(gateway):
    gateway.file.write_text(MISTAKES)
    status, out, err = gateway.command("check", str(gateway.file), config=False)
    assert status == 78
    found = {}
    for line in (out + err).splitlines():
        match = re.match(r"(\S+):(\d+):(\d+)\s+error\s+(.*)", line)
        if match:
            assert match[1].endswith("cardea.yaml") and int(match[3]) >= 1
            found.setdefault(int(match[2]), []).append(match[4])
    for number, word in EXPECTED.items():
        near = [text for other in (number - 1, number, number + 1) for text in found.get(other, [])]
        assert any(word in text for text in near), f"line {number} wants '{word}': {found}"
    assert "just-a-bare-secret" not in out + err


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("json: {user: bob, pass: {secret.pw}}", '{secret.pw} in \'json\''),
        ("json: {user: bob, more: [{secret.pw}]}", 'write "{secret.pw}" in quotes'),
        ("form: {pass: {secret.pw}}", "a value that begins with { needs quotes"),
        ("text: {secret.pw}", "a value that begins with { needs quotes"),
    ],
)
def test_a_template_without_quotes_is_told(gateway, body, said):
    """YAML takes it for a map; the issuer would get its name for the password."""
    gateway.file.write_text(f"""\
routes: [{{listen: {gateway.listen}, to: "http://127.0.0.1:9", use: me}}]
identities:
  me:
    recipe:
      secrets: {{pw: {{value: "env:PW", to: "http://127.0.0.1:9"}}}}
      steps:
        - name: login
          post: http://127.0.0.1:9/t
          {body}
          take: {{token: {{json: /t}}}}
      token: "{{login.token}}"
""")
    status, out, err = gateway.command("check", str(gateway.file), config=False)
    assert status == 78 and f"{gateway.file}:9:" in out + err and said in out + err, out + err
    gateway.file.write_text(gateway.file.read_text().replace("{secret.pw}", '"{secret.pw}"'))
    status, out, err = gateway.command("check", str(gateway.file), config=False)
    assert status == 0, out + err


def test_run_refuses_the_same_file(gateway):
    gateway.file.write_text(MISTAKES)
    status, out, err = gateway.command("run")
    assert status == 78 and "pasword" in out + err


def test_a_good_file_is_good(gateway):
    gateway.webgate()
    gateway.file.write_text(json.dumps(gateway.config))
    status, out, err = gateway.command("check", str(gateway.file), config=False)
    assert status == 0, out + err


def test_a_file_with_a_byte_order_mark_is_read_as_one_without(gateway):
    gateway.webgate(changes={"include": "more.yaml", "log": None})
    log = "\ufefflog:\n  level: info\n  format: json\n  access: all\nlimits:\n  connections: 100\n"
    (gateway.folder / "more.yaml").write_text(log, encoding="utf-8")
    lines = [f"{key}: {json.dumps(value)}" for key, value in gateway.config.items()]
    gateway.file.write_text("\n".join(lines), encoding="utf-8-sig")
    assert gateway.command("check") == (0, "good\n", "")
    gateway.file.write_text("\n".join([*lines, "rutes: []"]), encoding="utf-8-sig")
    status, out, _ = gateway.command("check")
    assert status == 78 and f"{gateway.file}:{len(lines) + 1}:1 error unknown key 'rutes'" in out
    gateway.file.write_text("\n".join(lines), encoding="utf-8-sig")
    gateway.config = None
    gateway.start()
    assert gateway.get().status == 200


@pytest.mark.parametrize(
    "text",
    [
        "",
        "identities:",
        "[]",
        "a: &x [*x]",
        "routes: {" * 500,
        "identities: !!python/object:os.system {}",
        "\x00\x01",
        "? ? ? :",
        "a: " + "[" * 5000,
    ],
)
def test_nonsense_is_an_error_not_a_crash(gateway, text):
    gateway.file.write_text(text)
    assert gateway.command("check", str(gateway.file), config=False)[0] == 78


def test_a_missing_file_is_named(gateway):
    status, out, err = gateway.command("check", "/nowhere/cardea.yaml", config=False)
    assert status != 0 and "/nowhere/cardea.yaml" in out + err


def test_an_unknown_command_is_bad_usage(gateway):
    assert gateway.command("rnu", config=False)[0] == 64


def test_a_secret_that_cannot_be_read_stops_only_its_identity(gateway):
    gateway.webgate(
        changes={"identities": {"other": {"static": {"value": "file:/nowhere/key", "header": "X-Api-Key"}}}}
    )
    gateway.config["routes"].insert(0, gateway.route("other", gateway.lab.listen) | {"match": {"path": "/key/"}})
    gateway.start()
    assert gateway.get("/key/employees/1").status == 503
    assert gateway.get("/hr/rest/employees/1").status == 200


def test_a_secret_file_that_others_can_write_is_refused(gateway):
    gateway.webgate()
    (gateway.folder / "hr-password").chmod(0o666)
    gateway.start()
    assert gateway.get().status == 503
    assert gateway.lab.counts()["password_attempts"] == 0
