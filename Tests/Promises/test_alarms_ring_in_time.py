"""Promise: each alert of deploy/monitoring rings for what its name says and stays silent for what comes close, says so in one sentence, and
leads to a place in the how-to "incident"."""

import pathlib
import re
import subprocess

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALERTS = ROOT / "deploy/monitoring/alerts.yaml"
RULES = {rule["alert"]: rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]}
INSTANCE = {"instance": "edge:9903", "job": "default/cardea"}
GOLDEN = ROOT / "Tests/Golden"
DAY = 86400


def series(name, values, **labels):
    """In promtool's notation; a minute from value to value."""
    text = ",".join(f'{key}="{value}"' for key, value in {**INSTANCE, **labels}.items())
    return {"series": f"{name}{{{text}}}", "values": values}


def states(name, holds, words, **labels):
    return [series(name, f"{int(word == holds)}x40", state=word, **labels) for word in words]


def identity(state):
    """States of an identity one of which holds, the way that the gateway tells them."""
    return states("cardea_identity_state", state, ["fresh", "quarantined", "login_needed", "login_due", "expired_served", "negative"], identity="hr")


def share(problem, of_hundred):
    """A hundred requests a minute, and how many of them have this answer of the gateway's own."""
    return [
        series("cardea_requests_total", "0+90x40", route="hr", code="200"),
        series("cardea_requests_total", "0+10x40", route="hr", code="404"),
        series("cardea_problems_total", f"0+{of_hundred}x40", route="hr", problem=problem),
    ]


def durations(name, slow, **labels):
    """A hundred a minute, of which some take between 5 and 10 seconds, and the others less than 0.1."""
    counts = {"0.1": 100 - slow, "5": 100 - slow, "10": 100, "+Inf": 100}
    return [series(f"{name}_bucket", f"0+{count}x40", le=bound, **labels) for bound, count in counts.items()]


def certificate(days, life=365, files=1, subject="api.example.com"):
    labels = {"use": "listener", "file": "/etc/c.pem"}
    made = []
    for number in range(files):
        name = subject if number == 0 else f"another {number}"
        last = days * DAY if number == 0 else 1000 * DAY
        made.append(series("cardea_certificate_not_after_timestamp_seconds", f"{last}x40", subject=name, **labels))
        made.append(series("cardea_certificate_not_before_timestamp_seconds", f"{(days - life) * DAY}x40", subject=name, **labels))
    return made


# By alert: what rings, with labels and the sentence after 30 minutes; what does not.
CASES = {
    "CardeaDown": (
        [series("up", "1x5 0x40")], {}, "Cardea at edge:9903 does not answer Prometheus",
        [[series("up", "1x40")], [series("up", "1x28 0x1 1x10")], [{"series": 'up{job="another",instance="x"}', "values": "0x40"}]],
    ),
    "CardeaNotReady": (
        [series("cardea_ready", "0x40")], {}, "Cardea at edge:9903 says that no traffic should come; its /readyz says why",
        [[series("cardea_ready", "1x40")], [series("cardea_ready", "1x27 0x20")]],
    ),
    "CardeaGetsNoToken": (
        share("issuer-unavailable", 6), {"route": "hr"}, "6% of the requests to hr are answered without a token",
        [share("issuer-unavailable", 4), share("upstream-refused", 50), share("no-route", 10), share("login-requires", 10)],
    ),
    "CardeaInternalError": (
        [series("cardea_problem_answers_total", "0x20 1x20", problem="internal")], {"problem": "internal"},
        "Cardea at edge:9903 has answered a request with a mistake of its own; cardea explain --last says to which route",
        [[series("cardea_problem_answers_total", "1x40", problem="internal")], [series("cardea_problem_answers_total", "0+1x40", problem="draining")]],
    ),
    "CardeaLoginNeeded": (
        identity("login_needed"), {"identity": "hr", "state": "login_needed"}, "A person has to log in for hr; until then its callers get 503",
        [identity("fresh"), identity("login_due")],
    ),
    "CardeaLoginDue": (
        identity("login_due"), {"identity": "hr", "state": "login_due"}, "The login for hr ends soon",
        [identity("fresh"), [series("cardea_identity_state", "0x20 1x20", state="login_due", identity="hr")]],
    ),
    "CardeaIdentityQuarantined": (
        identity("quarantined"), {"identity": "hr", "state": "quarantined"},
        "The secret of hr was refused and is not sent again until it changes", [identity("fresh"), identity("negative")],
    ),
    "CardeaGrantsFail": (
        identity("expired_served"), {"identity": "hr"}, "hr gets no new token; the present one serves while it is good",
        [identity("fresh"), identity("login_due"), [series("cardea_identity_state", "0x27 1x20", state="negative", identity="hr")]],
    ),
    "CardeaIssuerDown": (
        states("cardea_issuer_breaker_state", "open", ["closed", "open", "half_open"], issuer="https://idp"),
        {"issuer": "https://idp", "state": "open"}, "The issuer https://idp has failed so often that it is left alone for a while",
        [states("cardea_issuer_breaker_state", "closed", ["closed", "open", "half_open"], issuer="https://idp")],
    ),
    "CardeaUpstreamRefusesCredential": (
        share("upstream-refused-credential", 10), {"route": "hr"}, "The API of hr refuses fresh tokens: 10% of the requests",
        [share("upstream-refused-credential", 4), share("upstream-refused", 50)],
    ),
    "CardeaUpstreamDown": (
        share("upstream-connect-timeout", 10), {"route": "hr"}, "The API of hr does not answer: 10% of the requests",
        [share("upstream-closed", 4), share("upstream-refused-credential", 50), share("upstream-busy", 50)],
    ),
    "CardeaUpstreamAddressUnfit": (
        [series("cardea_upstream_healthy", "0x40", upstream="https://api", address="192.0.2.1:443", path="/h")],
        {"upstream": "https://api", "address": "192.0.2.1:443", "path": "/h"}, "192.0.2.1:443 of https://api fails its checks and gets no requests",
        [[series("cardea_upstream_healthy", "1x40", upstream="https://api", address="192.0.2.1:443", path="/h")]],
    ),
    "CardeaUpstreamSlow": (
        durations("cardea_upstream_duration_seconds", 50, route="hr"), {"route": "hr"},
        "The API of hr takes 9.9s to begin its answers (99th percentile)",
        [durations("cardea_upstream_duration_seconds", 0, route="hr"), durations("cardea_token_wait_duration_seconds", 50, identity="hr")],
    ),
    "CardeaTokensAwaited": (
        durations("cardea_token_wait_duration_seconds", 50, identity="hr"), {"identity": "hr"},
        "Requests wait 9.9s for a token of hr (99th percentile of those that wait)",
        [durations("cardea_token_wait_duration_seconds", 0, identity="hr"), durations("cardea_upstream_duration_seconds", 50, route="hr")],
    ),
    "CardeaLimitReached": (
        share("too-many-waiters", 1), {"route": "hr", "problem": "too-many-waiters"},
        "Requests to hr are refused because a bound is reached: too-many-waiters", [share("upstream-busy", 0), share("draining", 9)],
    ),
    "CardeaFewDescriptorsLeft": (
        [series("process_open_fds", "900x40"), series("process_max_fds", "1000x40")], {}, "Cardea at edge:9903 has 90% of its file descriptors in use",
        [[series("process_open_fds", "700x40"), series("process_max_fds", "1000x40")]],
    ),
    "CardeaLogLinesDropped": (
        [series("cardea_log_dropped_total", "0x25 7x20")], {}, "Cardea at edge:9903 could not write all of its log",
        [[series("cardea_log_dropped_total", "7x40")]],
    ),
    "CardeaStoreDegraded": (
        states("cardea_store_state", "degraded", ["memory", "serving", "degraded", "refused"]), {},
        "Cardea at edge:9903 does not use its store; tokens will not outlive it, and passwords are not sent",
        [states("cardea_store_state", holds, ["memory", "serving", "degraded", "refused"]) for holds in ("memory", "serving")],
    ),
    "CardeaStoreWritesFail": (
        [series("cardea_store_commits_total", "0x25 1x20", result="failed")], {"result": "failed"},
        "Cardea at edge:9903 could not write to its store; the disk may be full",
        [[series("cardea_store_commits_total", "1x40", result="failed"), series("cardea_store_commits_total", "0+9x40", result="good")]],
    ),
    "CardeaAuditNotWritten": (
        [series("cardea_audit_writing", "1x5 0x40")], {}, "Cardea at edge:9903 cannot write its audit log",
        [[series("cardea_audit_writing", "1x40")], [series("cardea_audit_writing", "1x20 0x1 1x20")]],
    ),
    "CardeaAuditRecordsDropped": (
        [series("cardea_audit_dropped_total", "0x25 5x20")], {}, "Cardea at edge:9903 has left records out of its audit log",
        [[series("cardea_audit_dropped_total", "5x40")]],
    ),
    "CardeaAuditBlocks": (
        # What a gateway tells of one refusal: the route's series begins with it.
        [
            series("cardea_problem_answers_total", "0x28 1x20", problem="audit-unavailable"),
            series("cardea_problems_total", "_x28 1x20", route="hr", problem="audit-unavailable"),
        ],
        {"problem": "audit-unavailable"}, "Cardea at edge:9903 refuses requests because the audit log has no place for their records",
        [[series("cardea_problem_answers_total", "9x40", problem="audit-unavailable")], share("issuer-unavailable", 6)],
    ),
    "CardeaFleetServerAway": (
        states("cardea_shared_state", "degraded", ["connecting", "serving", "degraded"]), {"state": "serving"},
        "Cardea at edge:9903 shares no tokens; steps that send a password wait for the shared server",
        [states("cardea_shared_state", "serving", ["connecting", "serving", "degraded"])],
    ),
    "CardeaCertificateExpires": (
        certificate(20), {"use": "listener", "file": "/etc/c.pem", "subject": "api.example.com"},
        "api.example.com in /etc/c.pem (listener) ends in 19d 23h 30m 0s",
        # Far off; a day's certificate in the middle of its day; one of a public list.
        [certificate(30), certificate(0.5, life=1), certificate(20, files=11)],
    ),
    "CardeaReloadRefused": (
        [series("cardea_configuration_last_reload_successful", "1x5 0x40")], {},
        "Cardea at edge:9903 runs on with its old configuration; the new one has a mistake",
        [[series("cardea_configuration_last_reload_successful", "1x40")], [series("cardea_configuration_last_reload_successful", "0x20 1x20")]],
    ),
    "CardeaSecretUnreadable": (
        [series("cardea_grant_failures_total", "0x20 1x20", identity="hr", reason="secret_unreadable")],
        {"identity": "hr", "reason": "secret_unreadable"}, "A secret of hr is gone, not readable or of no use",
        [[series("cardea_grant_failures_total", "0x20 1x20", identity="hr", reason="timed_out")]],
    ),
}


def promtool(folder, tests):
    document = {"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": tests}
    (folder / "tests.yaml").write_text(yaml.safe_dump(document))
    done = subprocess.run(["promtool", "test", "rules", str(folder / "tests.yaml")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def expectation(alert, expected):
    return {"interval": "1m", "alert_rule_test": [{"eval_time": "30m", "alertname": alert, "exp_alerts": expected}]}


def test_every_alert_is_tried():
    assert set(CASES) == set(RULES)
    subprocess.run(["promtool", "check", "rules", str(ALERTS)], check=True, capture_output=True)


@pytest.mark.parametrize("alert", RULES)
def test_it_rings(tmp_path, alert):
    given, labels, summary, _ = CASES[alert]
    rule = RULES[alert]
    expected = {
        "exp_labels": {**rule["labels"], **INSTANCE, **labels},
        "exp_annotations": {"summary": summary, "runbook_url": rule["annotations"]["runbook_url"]},
    }
    promtool(tmp_path, [{"input_series": given, **expectation(alert, [expected])}])


@pytest.mark.parametrize("alert", RULES)
def test_it_is_silent(tmp_path, alert):
    near = CASES[alert][3]
    assert near
    promtool(tmp_path, [{"input_series": given, **expectation(alert, [])} for given in near])


def anchors(text):
    """Those that a forge makes of headings, and those that stand there."""
    made = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in re.findall(r"^#+ (.*)$", text, re.M)}
    return made | set(re.findall(r'<a id="([^"]+)"', text))


@pytest.mark.parametrize("alert", RULES)
def test_it_leads_to_a_page(alert):
    rule = RULES[alert]
    assert rule["labels"]["severity"] in ("warning", "critical")
    path, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert path == "docs/how-to/incident.md" and anchor in anchors((ROOT / path).read_text()), f"{path} has no #{anchor}"


def test_every_failure_of_our_own_rings_somewhere():
    """Answers of 5xx, by the words of today; a new one wants an alert, or a reason here."""
    silent = {
        "draining": "an act of whoever stops it",
        "upgrading": "an act of whoever upgrades it, for a moment",
        "unsupported-version": "a caller's mistake",
        "unknown-transfer-coding": "a caller's mistake",
    }
    words = re.findall(r"^problem (\S+): 5\d\d", (GOLDEN / "words.txt").read_text(), re.M)
    patterns = [pattern for rule in RULES.values() for pattern in re.findall(r'problem=~?"([^"]+)"', rule["expr"])]
    for word in words:
        rings = [pattern for pattern in patterns if re.fullmatch(pattern, word)]
        assert len(rings) == (word not in silent), f"{word}: {rings}"
    for pattern in patterns:
        assert any(re.fullmatch(pattern, word) for word in words), pattern
