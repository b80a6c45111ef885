"""Promise: one command says where a request would go, with which token, and what the last exchange for it did."""

import json

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
    assert status == 0
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
