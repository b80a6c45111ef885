"""Promise: a Prometheus that scrapes a gateway under load has series for every panel of deploy/monitoring's dashboard and for every alert, and
an alarm rings."""

import json
import pathlib
import re
import urllib.parse

import pytest
import yaml

from harness import call, eventually, executable, free_port
from peers import Program, Redis
from pki import Authority
from test_a_login_is_needed_in_time import SECRET as LOGIN_SECRET
from test_a_login_is_needed_in_time import log_in

ROOT = pathlib.Path(__file__).resolve().parents[2]
MONITORING = ROOT / "deploy/monitoring"
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text())
RULES = [rule for group in yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
GOLDEN = {line.split()[0]: line.split()[1:] for line in (ROOT / "Tests/Golden/metrics.txt").read_text().splitlines() if line[0] != "#"}
API = "/api/employees/1"


class Prometheus(Program):
    """Debian's, with a second between scrapes and between evaluations."""

    def __init__(self, folder, target):
        folder.mkdir()
        self.address = f"127.0.0.1:{free_port()}"
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(MONITORING / "alerts.yaml")],
            "scrape_configs": [{"job_name": "cardea", "static_configs": [{"targets": [target]}]}],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        binary = executable("CARDEA_PROMETHEUS", "prometheus", "apt-get install prometheus")
        options = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data", f"--web.listen-address={self.address}"]
        super().__init__([binary, *options], folder, [tuple(self.address.split(":"))])

    def ask(self, path):
        answer = call(self.address, path=f"/api/v1/{path}", timeout=20)
        assert answer.status == 200, answer
        return answer.json["data"]

    def query(self, expression):
        return self.ask(f"query?query={urllib.parse.quote(expression)}")["result"]


def grafanas(expression):
    """What Grafana puts in the place of its variables."""
    text = expression.replace("$__rate_interval", "1m")
    return re.sub(r"\$(job|instance|route|identity)\b", ".*", text)


def names(expression):
    """Metrics by the names of their families."""
    found = set(re.findall(r"\b(?:cardea|process)_[a-z_]+\b", re.sub(r'"[^"]*"', "", expression)))
    return {re.sub(r"_(bucket|sum|count)$", "", name) if name not in GOLDEN else name for name in found}


EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]] + [rule["expr"] for rule in RULES]


def test_panels_and_alerts_know_the_metrics_of_today():
    words = set(re.findall(r": (\S+)$", (ROOT / "Tests/Golden/words.txt").read_text(), re.M))
    words |= set(re.findall(r"^problem (\S+):", (ROOT / "Tests/Golden/words.txt").read_text(), re.M)) | {"failed"}
    deprecated = {"cardea_token_age_seconds", "cardea_token_expires_seconds", "cardea_login_expires_seconds"}
    deprecated.add("cardea_certificate_expires_timestamp_seconds")
    for expression in EXPRESSIONS:
        assert names(expression) <= set(GOLDEN) - deprecated, expression
        for name, matchers in re.findall(r"\b((?:cardea|process)_[a-z_]+)\{([^}]*)\}", expression):
            labels = GOLDEN[next(iter(names(name)))][1:]
            for label, operator, value in re.findall(r'(\w+)(=~?)"([^"]*)"', matchers):
                if label in ("job", "instance") or value.startswith("$"):
                    continue
                assert label in (labels[0].split(",") if labels else []), f"{name} has no label {label}"
                pattern = value if operator == "=~" else re.escape(value)
                assert any(re.fullmatch(pattern, word) for word in words), f"no word is {value!r}"


def test_the_dashboard_is_one():
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(numbers)) == len(numbers)
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
    known = {variable["name"] for variable in DASHBOARD["templating"]["list"]} | {"__rate_interval"}
    for panel in PANELS:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24 and panel["targets"] and panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            assert set(re.findall(r"\$\{?(\w+)", target["expr"])) <= known
    # Two panels do not lie on one another.
    taken = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        area = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not area & taken, panel["title"]
        taken |= area


@pytest.fixture
def watched(gateway, provider, tmp_path):
    """A gateway with one of everything that is watched: a store, a fleet's server, an audit log, TLS, checks of an upstream, an
    upstream that is not there, an identity with a wrong password, a person's login whose end is known."""
    authority = Authority(tmp_path / "pki")
    certificate, key = authority.leaf("localhost", "DNS:localhost,IP:127.0.0.1")
    redis = Redis(tmp_path / "redis")
    metrics, broken = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    gateway.oauth(changes={"admin": {"metrics": metrics}, "store": {"shared": redis.url}})
    lab = gateway.lab
    payroll = {
        "oam_webgate": {
            "service": lab.service,
            "user_agent_prefix": lab.user_agent_prefix,
            "client_id": lab.client_id,
            "username": lab.user,
            "password": gateway.secret("wrong", "a-wrong-password-of-ours"),
        }
    }
    device = "urn:ietf:params:oauth:grant-type:device_code"
    provider.client("tv", secret=LOGIN_SECRET, grants=["refresh_token", device])
    provider.post("people", {"answer": {"refresh_expires_in": 3600}})
    tv = {
        "issuer": provider.issuer,
        "grant": "device_code",
        "client_id": "tv",
        "client_secret": gateway.secret("tv-secret", LOGIN_SECRET),
        "basic_encoding": provider.basic_encoding,
    }
    gateway.config["identities"] |= {"payroll": payroll, "tv": {"oauth2": tv}}
    tls = [{"certificate": str(certificate), "key": f"file:{key}"}]
    gateway.config["listeners"] = {"edge": {"address": f"127.0.0.1:{free_port()}", "tls": tls}}
    first = gateway.config["routes"][0]
    gateway.config["routes"] = [
        {**first, "match": {"path": "/api/"}, "health": {"path": API, "interval": "1s", "timeout": "1s", "statuses": [200, 401]}},
        {**first, "name": "gone", "match": {"path": "/gone/"}, "to": f"http://{broken}", "use": "none"},
        {**first, "name": "payroll", "match": {"path": "/hr/"}, "use": "payroll"},
        {"name": "tls", "listen": "edge", "to": f"http://{lab.listen}", "use": "api"},
        {"name": "tv", "listen": f"127.0.0.1:{free_port()}", "to": provider.api, "use": "tv", "scopes": ["read"]},
    ]
    log = str(gateway.folder / "audit.log")
    gateway.config["audit"] = {"path": log}
    assert gateway.command("audit", "init", log)[0] == 0
    gateway.start()
    assert log_in(gateway, provider)["state"] == "done"
    prometheus = Prometheus(tmp_path / "prometheus", metrics)
    try:
        yield gateway, prometheus
    finally:
        prometheus.close()
        redis.close()


def load(gateway):
    for path, status in ((API, 200), ("/nowhere", 404), ("/gone/1", 502)):
        assert gateway.get(path).status == status
    assert gateway.get("/hr/rest/employees/1").status == 503
    return True


def test_every_panel_shows_something_and_an_alarm_rings(watched):
    gateway, prometheus = watched

    def empty():
        load(gateway)
        queries = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
        return [f"{title}: {expression}" for title, expression in queries if not prometheus.query(grafanas(expression))]

    missing = ["?"]

    def all_show():
        missing[:] = empty()
        return not missing

    try:
        eventually(all_show, within=25, every=0.5, what="series for every query of a panel")
    except AssertionError:
        raise AssertionError("queries without series:\n" + "\n".join(missing)) from None
    # An alert may well have nothing to say; what it speaks of is there.
    lacking = {
        name
        for rule in RULES
        for name in names(rule["expr"])
        if not prometheus.query(f'count({{__name__=~"{name}(_bucket)?"}})')
    }
    assert not lacking
    for group in prometheus.ask("rules")["groups"]:
        for rule in group["rules"]:
            assert rule["health"] == "ok" and not rule.get("lastError"), rule

    def firing():
        return {alert["labels"]["alertname"]: alert for alert in prometheus.ask("alerts")["alerts"] if alert["state"] == "firing"}

    rung = eventually(lambda: firing().get("CardeaIdentityQuarantined"), what="the alarm")
    assert rung["labels"]["identity"] == "payroll" and "payroll" in rung["annotations"]["summary"]
    assert "CardeaDown" not in firing()
