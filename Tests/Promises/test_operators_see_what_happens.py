"""Promise: health, metrics, logs and the command line tell the state, and never a token."""

import json
import re

import pytest

from harness import ROOT, eventually


def test_health_in_all_its_forms(hot):
    assert hot.ask("/livez").status == 200
    assert hot.ask("/readyz").status == 200
    assert hot.command("health")[0] == 0
    assert hot.command("health", "--ready")[0] == 0


def test_health_without_a_gateway(gateway):
    gateway.webgate()
    gateway.file.write_text(json.dumps(gateway.config))
    # A probe's failure is told where failures are told.
    said = f"cardea: no gateway answers at {gateway.folder}/cardea.sock\n"
    assert gateway.command("health") == (1, "", said) and gateway.command("health", "--ready") == (1, "", said)
    assert gateway.command("health", "--json") == (1, '{"good":false,"status":0}\n', "")


def test_an_issuer_in_trouble_does_not_make_us_unready(gateway):
    gateway.lab.faults(issuer_status=500)
    gateway.oauth().start()
    assert gateway.get("/api/employees/1").status == 503
    answer = gateway.ask("/readyz")
    assert answer.status == 200 and b"api" in answer.body


def test_a_required_identity_holds_readiness_back(gateway):
    gateway.lab.faults(issuer_status=500)
    gateway.oauth(token={"startup": "required", "negative_for": "1s"}).start(ready=False)
    eventually(lambda: live(gateway), within=20, what="the admin address")
    assert gateway.ask("/readyz").status == 503
    gateway.lab.faults(issuer_status=None)
    eventually(gateway.is_ready, within=20, every=0.1, what="readiness")
    gateway.baseline = gateway.descriptors()
    assert gateway.lab.counts()["token_ok"] == 1


def live(gateway):
    try:
        return gateway.ask("/livez").status == 200
    except OSError:
        return False


def total(gateway, problem):
    return gateway.metrics()["cardea_problem_answers_total", (("problem", problem),)]


def test_a_problem_that_happens_once_is_an_increase(hot):
    """Prometheus sees none in a series that begins with its first count."""
    words = re.findall(r'^## (\S+)$', (ROOT / "docs/reference/problems.md").read_text(), re.M)
    assert len(words) > 40 and {total(hot, word) for word in words} == {0}
    assert hot.get("/hr/a/%2e%2e/b").status == 400 and total(hot, "unsafe-path") == 1
    # Nor does a route that goes take its count away, which would look like a restart.
    hot.config["routes"][0]["name"] = "renamed"
    hot.file.write_text(json.dumps(hot.config))
    hot.told(lambda event: event["message"] == "reload done")
    assert hot.get("/hr/a/%2e%2e/b").status == 400
    eventually(lambda: total(hot, "unsafe-path") == 2, what="both of them")


def test_a_problem_has_one_name(hot):
    answer = hot.get("/hr/a/%2e%2e/b")
    word = answer.problem["type"].removeprefix("urn:cardea:problems/")
    assert (answer.status, word) == (400, "unsafe-path")
    assert total(hot, word) == 1
    record = eventually(lambda: next((line for line in hot.access() if line["status"] == 400), None), what="its record")
    assert record["fault"] == word
    assert hot.metrics()["cardea_problems_total", (("problem", word), ("route", "hr"))] == 1


def test_a_state_has_one_name(gateway):
    # The next try comes after all this was asked, not a second after the first one.
    gateway.lab.faults(issuer_status=503, issuer_retry_after=30)
    gateway.oauth().start()
    assert gateway.get("/api/employees/1").status == 503
    word = gateway.ask("/status").json["identities"][0]["state"]
    assert word == "negative" and gateway.ask("/readyz").json["identities"] == {"api": word}
    assert gateway.ask("/status").json["tokens"][0]["state"] == word
    assert gateway.metrics()["cardea_identity_state", (("identity", "api"), ("state", word))] == 1
    assert f">{word}</span>" in gateway.ask("/").body.decode()
    assert f" {word} " in gateway.command("tokens")[1]
    explained = gateway.command("explain", "GET", f"http://{gateway.listen}/api/employees/1")[1]
    assert word in explained and "waiting after" not in explained


def test_the_metrics_count_what_happened(hot):
    for _ in range(10):
        hot.get()
    hot.get("/hr/rest/status?code=404")
    # A request is counted when its answer has left.
    answered = "cardea_requests_total", (("code", "404"), ("route", "hr"))
    samples = eventually(lambda: (found := hot.metrics()).get(answered) == 1 and found, what="the last answer being counted")
    assert samples["cardea_requests_total", (("code", "200"), ("route", "hr"))] >= 11
    names = {name for name, _ in samples}
    for name in (
        "cardea_request_duration_seconds_bucket",
        "cardea_token_lookups_total",
        "cardea_grants_total",
        "cardea_grant_failures_total",
        "cardea_grant_duration_seconds_bucket",
        "cardea_negative_hits_total",
        "cardea_clock_skew_seconds",
        "cardea_waiters",
        "cardea_replays_total",
        "cardea_token_age_seconds",
        "cardea_store_commits_total",
        "cardea_token_expires_seconds",
        "cardea_identity_state",
        "process_resident_memory_bytes",
    ):
        assert name in names, f"{name} is not in {sorted(names)}"
    grants = sum(
        value
        for (name, labels), value in samples.items()
        if name == "cardea_grants_total" and dict(labels)["identity"] == "hr"
    )
    assert grants == 1
    hr = (("identity", "hr"),)
    assert samples["cardea_grant_duration_seconds_count", hr] == 1 and samples["cardea_negative_hits_total", hr] == 0
    assert samples["cardea_store_commits_total", (("result", "failed"),)] == 0
    hot.tells_no_secret(hot.ask("/metrics").body.decode())


def test_the_page_tells_no_secret_and_loads_nothing(hot):
    answer = hot.ask("/")
    assert answer.status == 200 and "text/html" in answer.field("Content-Type")
    text = answer.body.decode()
    assert "hr" in text and "<script src" not in text and "http://" not in text.replace("http://127.0.0.1", "")
    hot.tells_no_secret(text)


def test_the_page_has_a_time_line_of_the_last_day(hot):
    def last_day():
        return re.search(r"<b>Last day:</b> (.*?)</figcaption>", hot.ask("/").body.decode(), re.DOTALL)[1]

    # The first request found out by a challenge which token is needed.
    assert last_day().startswith("1 granted, 0 failed, 1 replayed.") and "when this process began" in last_day()
    for _ in range(5):
        hot.get()
    assert last_day().startswith("1 granted, 0 failed, 1 replayed.")
    hot.lab.post("/revoke")
    assert hot.get().status == 200
    assert last_day().startswith("2 granted, 0 failed, 2 replayed.") and "renewal in" in last_day()
    taken = "cardea_replays_total", (("result", "accepted"), ("route", "hr"))
    eventually(lambda: hot.metrics()[taken] == 2, what="the same count in the metrics")
    hot.kill()
    hot.start()
    assert last_day().startswith("0 granted, 0 failed, 0 replayed.")


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}])
def test_the_admin_address_is_not_for_web_pages(hot, headers):
    for path in ("/metrics", "/", "/readyz"):
        assert hot.ask(path, headers=headers).status in (403, 421)


def test_every_log_line_is_json(hot):
    hot.get("/hr/rest/employees/5?secret_query=1")
    hot.lab.post("/revoke")
    hot.get()
    record = eventually(
        lambda: [line for line in hot.access() if line.get("path") == "/hr/rest/employees/5"], what="an access record"
    )[0]
    assert (record["route"], record["method"], record["status"]) == ("hr", "GET", 200)
    assert "secret_query" not in hot.text()
    hot.told(lambda event: event["message"] in ("token acquired", "challenge answered"))
    assert all(isinstance(event, dict) for event in hot.events())


def test_check_live_gets_a_token(gateway):
    gateway.oauth()
    gateway.file.write_text(json.dumps(gateway.config))
    status, out, err = gateway.command("check", str(gateway.file), "--live", config=False)
    assert status == 0, out + err
    assert gateway.lab.counts()["token_ok"] == 1
    assert out.endswith("\ngood\n")
    gateway.lab.post("/issuer/stop")
    status, out, _ = gateway.command("check", str(gateway.file), "--live", config=False)
    assert status == 69 and out.endswith("\n1 of 2 failed\n"), out
    (gateway.folder / "client-secret").chmod(0o604)
    status, out, _ = gateway.command("check", str(gateway.file), "--live", config=False)
    assert status == 69 and out.endswith("\n1 of 2 failed, 1 warning\n"), out
    status, out, _ = gateway.command("check", str(gateway.file), "--live", "--json", config=False)
    told = json.loads(out)
    assert (status, told["errors"], told["failed"], [one["good"] for one in told["live"]]) == (69, 0, 1, [False, True])
    status, out, _ = gateway.command("check", str(gateway.file), "--json", config=False)
    assert status == 0 and json.loads(out)["failed"] == 0


def test_the_schema_is_json_schema(gateway):
    status, out, _ = gateway.command("schema", config=False)
    schema = json.loads(out)
    assert status == 0 and "$schema" in schema
    for key in ("identities", "routes", "store", "admin", "limits", "log"):
        assert key in schema["properties"]


def test_version(gateway):
    status, out, _ = gateway.command("version", config=False)
    assert status == 0 and out.strip()
