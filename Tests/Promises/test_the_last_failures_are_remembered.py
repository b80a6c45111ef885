"""Promise: an operator is told why the last requests to a route failed, where the time went and what to do, without an access log and without
a word that a caller sent."""

import json
import pathlib
import re
import shutil

import pytest

from harness import ROOT, eventually, free_port

SECRETS = ["planted-in-the-path", "planted-in-the-query", "planted-in-a-header", "planted-in-the-method"]


def told(gateway, *of):
    status, out, errors = gateway.command("explain", "--last", *of, "--json")
    assert (status, errors) == (0, "")
    return {route["route"]: route for route in json.loads(out)["routes"]}


def problems(gateway, route):
    """Word or status of each kind, the last one first, once the log thread has them."""
    return [kind.get("problem") or kind.get("status") for kind in told(gateway).get(route, {"kinds": []})["kinds"]]


def remembers(gateway, route, *kinds):
    return eventually(lambda: problems(gateway, route) == list(kinds) and told(gateway)[route], what=f"{kinds} of route {route}")


def test_a_problem_is_told_with_its_cause_and_what_to_do(gateway):
    gateway.oauth().start()
    assert "no failed request since 20" in gateway.command("explain", "--last")[1]
    gateway.lab.faults(issuer_status=500)
    for _ in range(3):
        assert gateway.get("/api/employees/1").status == 503
    route = eventually(lambda: told(gateway).get("api") if told(gateway).get("api", {"kinds": [{"count": 0}]})["kinds"][0]["count"] == 3 else None, what="three failures")
    [kind] = route["kinds"]
    assert (route["identity"], kind["problem"], kind["status"]) == ("api", "issuer-unavailable", 503)
    assert kind["read"] == "docs/how-to/incident.md#issuer-down" and kind["advice"].endswith(".")
    assert [request["method"] for request in kind["requests"]] == ["GET"] * 3
    assert all(request["seconds"] >= request["token_seconds"] for request in kind["requests"])
    status, text, _ = gateway.command("explain", "--last", "api")
    assert status == 0 and re.search(r"^route api, identity api: negative, last failure \d+s ago: .*500", text, re.M), text
    assert re.search(r"^  503 issuer-unavailable: 3 times, the last \d+s ago, the first \d+s ago$", text, re.M), text
    assert "\n    do: " in text and "\n    read: docs/how-to/incident.md#issuer-down\n" in text
    assert re.search(r"^    20\S+Z  GET  \d+ ms", text, re.M) and "\n\nremembered since 20" in text


def test_the_sections_that_it_names_are_there(gateway):
    """What it says to read is where it says."""
    words = (ROOT / "Sources/DataPath/Faults/FaultIncidents.swift").read_text()
    sections = set(re.findall(r'"([a-z0-9-]+)"$', words, re.M)) | set(re.findall(r': "([a-z0-9-]+)"', words))
    text = (ROOT / "docs/how-to/incident.md").read_text()
    assert len(sections) > 8 and not [section for section in sections if f'<a id="{section}"></a>' not in text]


def test_an_installed_command_names_the_installed_page(gateway, tmp_path, monkeypatch):
    """The path leads somewhere from wherever it is read."""
    gateway.oauth().start()
    gateway.lab.faults(issuer_status=500)
    assert gateway.get("/api/employees/1").status == 503
    remembers(gateway, "api", "issuer-unavailable")
    (tmp_path / "usr/bin").mkdir(parents=True)
    page = tmp_path / "usr/share/doc/cardea/docs/how-to/incident.md"
    page.parent.mkdir(parents=True)
    page.write_text("made up")
    shutil.copy(shutil.which(gateway.binary) or ROOT / gateway.binary, tmp_path / "usr/bin/cardea")
    monkeypatch.setattr(gateway, "binary", str(tmp_path / "usr/bin/cardea"))
    assert f"\n    read: {page}#issuer-down\n" in gateway.command("explain", "--last")[1]


def test_an_upstream_that_answers_so_itself_is_told_as_that(gateway):
    gateway.oauth().start()
    assert gateway.get("/api/employees/nobody").status == 404
    kind = remembers(gateway, "api", 404)["kinds"][0]
    assert kind["title"] == "The upstream's own answer" and "problem" not in kind and "read" not in kind
    assert kind["requests"][0]["upstream"] == gateway.lab.listen
    assert "docs/how-to" not in gateway.command("explain", "--last")[1]


def test_routes_are_asked_for_by_name_or_by_url(gateway):
    gateway.oauth().start()
    dead = free_port()
    gateway.config["routes"].insert(0, gateway.route("api", f"127.0.0.1:{dead}") | {"name": "dead", "match": {"path": "/dead/"}})
    gateway.config["routes"][1]["match"] = {"path": "/api/"}
    gateway.stop()
    gateway.start()
    assert gateway.get("/dead/1").status == 502 and gateway.get("/api/employees/nobody").status == 404
    remembers(gateway, "dead", "upstream-refused")
    remembers(gateway, "api", 404)
    # The one that failed last comes first.
    _, text, _ = gateway.command("explain", "--last")
    assert text.index("route api") < text.index("route dead")
    for words in (["dead"], [f"http://{gateway.listen}/dead/2"], ["POST", f"http://{gateway.listen}/dead/2"]):
        assert list(told(gateway, *words)) == ["dead"], words
    kind = told(gateway, "dead")["dead"]["kinds"][0]
    assert kind["read"].endswith("#upstream-down") and kind["requests"][0]["upstream"] == f"127.0.0.1:{dead}"
    status, _, errors = gateway.command("explain", "--last", "nobody")
    assert (status, errors) == (64, "cardea: no route 'nobody'; defined: dead, api\n")
    status, _, errors = gateway.command("explain", "--last", f"http://{gateway.listen}/other/")
    assert status == 1 and "is no route's" in errors, errors
    status, _, errors = gateway.command("explain", "--last", "--trace")
    assert status == 64 and "--last goes with a route or a URL alone" in errors
    status, _, errors = gateway.command("explain", "GET")
    assert status == 64 and "say METHOD and URL" in errors


@pytest.mark.parametrize("access", ["off", "errors", "all"])
def test_nothing_that_a_caller_sent_is_remembered(gateway, access):
    """Whatever is logged: what operators ask for over the admin address is not what callers wrote."""
    gateway.oauth(changes={"log": {"access": access}}).start()
    secrets = [f"/api/employees/{SECRETS[0]}?token={SECRETS[1]}", {"X-Secret": SECRETS[2], "Authorization": "Bearer " + SECRETS[2]}]
    assert gateway.call("GET", secrets[0], headers=secrets[1]).status == 404
    gateway.call(SECRETS[3], secrets[0], headers=secrets[1])
    assert gateway.call("GET", f"/{SECRETS[0]}/../%2e%2e//x?{SECRETS[1]}", headers=secrets[1]).status >= 400
    eventually(lambda: sum(kind["count"] for route in told(gateway).values() for kind in route["kinds"]) >= 3, what="three failures")
    for answer in (gateway.command("explain", "--last")[1], gateway.command("explain", "--last", "--json")[1], gateway.ask("/failures").body.decode()):
        assert "404" in answer and not [secret for secret in SECRETS if secret in answer]
    # With access: off the records that tell of failures are no lines, and none of them is a line that was dropped.
    gateway.stop()
    assert bool(gateway.access()) == (access != "off")
    assert not [event for event in gateway.events() if event["message"] == "log lines dropped"]


def test_a_flood_of_one_kind_leaves_the_others(gateway):
    gateway.oauth().start()
    gateway.lab.faults(issuer_status=500)
    assert gateway.get("/api/employees/1").status == 503
    remembers(gateway, "api", "issuer-unavailable")
    gateway.lab.faults(issuer_status=None)
    eventually(lambda: gateway.get("/api/employees/1").status == 200, within=30, every=0.2, what="a token")
    for number in range(300):
        assert gateway.get(f"/api/employees/none-{number}").status == 404
    eventually(lambda: told(gateway)["api"]["kinds"][0]["count"] == 300, what="all of the flood")
    kinds = told(gateway)["api"]["kinds"]
    assert [kind.get("problem") for kind in kinds] == [None, "issuer-unavailable"] and len(kinds[0]["requests"]) == 4
    assert len(gateway.ask("/failures").body) < 8192


def test_it_begins_anew_with_the_gateway(gateway):
    gateway.oauth().start()
    assert gateway.get("/api/employees/nobody").status == 404
    remembers(gateway, "api", 404)
    before = json.loads(gateway.command("explain", "--last", "--json")[1])["since"]
    gateway.stop()
    status, _, errors = gateway.command("explain", "--last")
    assert status == 69 and "failures are remembered by the running gateway alone" in errors
    gateway.start()
    document = json.loads(gateway.command("explain", "--last", "--json")[1])
    assert document["routes"] == [] and document["since"] > before


def test_a_reload_keeps_what_is_remembered(gateway):
    gateway.oauth().start()
    assert gateway.get("/api/employees/nobody").status == 404
    remembers(gateway, "api", 404)
    gateway.config["routes"][0]["name"] = "renamed"
    pathlib.Path(gateway.file).write_text(json.dumps(gateway.config))
    eventually(lambda: any(event["message"] == "reload done" for event in gateway.events()), what="the reload")
    assert gateway.get("/api/employees/nobody").status == 404
    remembers(gateway, "renamed", 404)
    assert list(told(gateway)) == ["renamed", "api"] and "identity" not in told(gateway, "api")["api"]
