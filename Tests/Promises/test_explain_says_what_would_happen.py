"""Promise: one command says where a request would go, with which token, and what the last exchange for it did."""

import json

from harness import eventually
from recipes import RecipeCardea


def explain(gateway, path, *more):
    return gateway.command("explain", "GET", f"http://{gateway.listen}{path}", *more)


def test_route_identity_key_and_token(hot):
    status, text, errors = explain(hot, "/hr/rest/employees/42")
    assert status == 0, errors
    assert "hr: matches" in text
    assert f"http://{hot.lab.listen}/hr/rest/employees/42" in text
    assert "realm HR_WG" in text and "fresh" in text


def test_why_a_route_does_not_match(gateway):
    narrow = {"match": {"path": "/only/", "methods": ["POST"]}}
    gateway.webgate(route=narrow).start()
    status, text, _ = explain(gateway, "/hr/1")
    assert status == 1
    assert "hr: no, the path is not below /only/" in text
    assert "the caller would get 404" in text
    status, text, _ = explain(gateway, "/only/1")
    assert "hr: no, the method is none of POST" in text


def test_without_a_gateway_the_configuration_speaks_alone(gateway):
    gateway.webgate()
    gateway.file.write_text(json.dumps(gateway.config))
    status, text, errors = explain(gateway, "/hr/1", "--json")
    assert status == 0, errors
    document = json.loads(text)
    assert (document["route"], document["identity"], document["scheme"]) == ("hr", "hr", "oam_webgate")
    assert document["challenge_driven"] is True
    assert "tokens" not in document
    assert any("no gateway answers" in note for note in document["notes"])
    status, _, errors = gateway.command("explain", "GET", "/no/url")
    assert status == 64 and "absolute URL" in errors


def line(text, name):
    return next(line[len(name) :].strip() for line in text.splitlines() if line.startswith(name + " "))


def test_what_is_put_in_and_what_a_refusal_leads_to(gateway):
    gateway.webgate(route={"on_rejected": {"max_body": "64KiB"}}).start().warm()
    status, text, errors = explain(gateway, "/hr/1")
    assert status == 0, errors
    assert line(text, "injects").startswith("Authorization: OAM-Auth ••••••••; the caller's own: dropped")
    assert f"User-Agent: {gateway.lab.user_agent_prefix}/1.0 (prefix)" in text
    told = line(text, "on 401")
    assert "one grant, one replay" in told and "bodies up to 64 KiB" in told
    assert f"{gateway.lab.user} at 127.0.0.1" in line(text, "identity")
    assert str(gateway.file) in line(text, "route")
    assert "last issue" not in text


def test_other_places_and_other_ends(gateway):
    inject = {"header": "X-Key", "value": "Key {token};v=1", "caller_value": {"keep_as": "X-Caller-Key"}}
    refused = {"replay": "never", "final": "pass"}
    gateway.oauth(route={"inject": inject, "on_rejected": refused, "headers": {"set": {"X-Zone": "secret-looking-1"}}})
    gateway.file.write_text(json.dumps(gateway.config))
    _, text, _ = explain(gateway, "/api/1")
    assert line(text, "injects") == "X-Key: Key ••••••••;v=1; the caller's own: kept as X-Caller-Key"
    assert "set by the route: X-Zone" in text and "secret-looking-1" not in text
    assert line(text, "on 401") == "one grant, no replay: the answer passes"
    gateway.oauth(route={"inject": {"query": "key"}})
    gateway.file.write_text(json.dumps(gateway.config))
    _, text, _ = explain(gateway, "/api/1")
    assert line(text, "injects") == "query parameter key=••••••••; the caller's own: dropped"
    value = gateway.secret("value", "fixed-value-1")
    gateway.with_identity({"static": {"value": value, "prefix": "ApiKey "}})
    gateway.file.write_text(json.dumps(gateway.config))
    _, text, _ = explain(gateway, "/1")
    assert line(text, "injects") == "Authorization: ApiKey ••••••••; the caller's own: dropped"
    assert line(text, "on 401") == "no other credential; a refusal that stays is a 502"


def test_the_last_trouble_and_its_end(gateway):
    gateway.lab.faults(issuer_status=500)
    gateway.oauth(token={"negative_for": "1s"}).start()
    assert gateway.get("/api/employees/1").status == 503
    _, text, _ = explain(gateway, "/api/employees/1")
    assert "500" in line(text, "last issue") and line(text, "last issue").endswith("and not over")
    gateway.lab.faults(issuer_status=None)
    eventually(lambda: gateway.get("/api/employees/1").status == 200, within=30, every=0.2, what="a token")
    _, text, _ = explain(gateway, "/api/employees/1")
    assert "500" in line(text, "last issue") and "then good after" in line(text, "last issue")
    _, document, _ = explain(gateway, "/api/employees/1", "--json")
    issue = json.loads(document)["identity_state"]["last_issue"]
    assert issue["failures"] >= 1 and issue["lasted_seconds"] >= 0


def test_the_last_run_of_a_recipe_without_its_values(lab, tmp_path):
    gateway = RecipeCardea(lab, tmp_path)
    try:
        gateway.webgate().start()
        status, text, _ = explain(gateway, "/hr/1", "--trace")
        assert "none since the start" in text
        assert gateway.get().status == 200
        status, text, errors = explain(gateway, "/hr/1", "--trace")
        assert status == 0, errors
        for step in ("register (durable)", "login (session)", "access (access)"):
            assert step in text
        assert "token (" in text and "user_token (" in text and "context (" in text
        gateway.tells_no_secret(text)
        _, document, _ = explain(gateway, "/hr/1", "--trace", "--json")
        run = json.loads(document)["run"]
        assert [step["status"] for step in run["steps"]] == [200, 200, 200]
        gateway.tells_no_secret(document)
        gateway.finish()
    finally:
        gateway.abandon()


def test_a_refused_password_shows_in_the_trace(lab, tmp_path):
    gateway = RecipeCardea(lab, tmp_path)
    try:
        gateway.webgate(password="not-the-password-9").start()
        assert gateway.get().status == 503
        _, text, _ = explain(gateway, "/hr/1", "--trace")
        assert "register: status 401" in text and "cardea reset hr" in text
        gateway.tells_no_secret(text)
        gateway.finish()
    finally:
        gateway.abandon()
