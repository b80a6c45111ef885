"""Promise: the metrics say how each issuer is, how long grants take, how large cache and store are, what was looked up, refused, given up
and reused; with labels out of the configuration alone."""

import json
import subprocess
import time

import pytest

from harness import call, eventually, free_port
from pki import Authority
from test_a_refresh_token_is_used_once import first_refresh_token, identity as refreshing

API = "/api/employees/1"


def value(samples, name, **labels):
    return samples[name, tuple(sorted(labels.items()))]


def breaker(gateway):
    return {
        dict(labels)["state"]: number
        for (name, labels), number in gateway.metrics().items()
        if name == "cardea_issuer_breaker_state"
    }


def test_what_an_operator_asks_of_every_policy(gateway):
    """One figure for each question: tokens' age and end, grants by result, how long, waiters, replays, failures that stand."""
    gateway.oauth().start().warm(API)
    names = {name for name, _ in gateway.metrics()}
    for name in (
        "cardea_token_age_seconds",
        "cardea_token_expires_seconds",
        "cardea_grants_total",
        "cardea_grant_failures_total",
        "cardea_grant_duration_seconds_bucket",
        "cardea_grant_duration_seconds_sum",
        "cardea_waiters",
        "cardea_replays_total",
        "cardea_negative_hits_total",
        "cardea_refresh_tokens_refused_total",
        "cardea_clock_skew_seconds",
        "cardea_issuer_breaker_state",
        "cardea_issuer_breaker_opened_total",
        "cardea_hot_cache_tokens",
        "cardea_hot_cache_bytes",
        "cardea_hot_cache_limit_bytes",
        "cardea_hot_cache_evictions_total",
        "cardea_store_state",
        "cardea_store_commits_total",
        "cardea_store_lookups_total",
        "cardea_token_lookups_total",
    ):
        assert name in names, f"{name} is not in {sorted(names)}"
    samples = gateway.metrics()
    assert value(samples, "cardea_hot_cache_tokens") == 1
    assert 0 < value(samples, "cardea_hot_cache_bytes") < value(samples, "cardea_hot_cache_limit_bytes")


def test_the_store_has_a_size(gateway):
    gateway.webgate().start().warm()

    def rows():
        found = {dict(labels)["kind"]: n for (name, labels), n in gateway.metrics().items() if name == "cardea_store_rows"}
        return found if found.get("token") == 1 else None

    # The figures of a scrape are those that the one before asked for.
    assert eventually(rows, what="rows counted") == {"token": 1, "session": 1, "durable": 1, "learned": 1, "attempt": 0}
    samples = gateway.metrics()
    assert value(samples, "cardea_store_bytes", file="database") == gateway.store.stat().st_size
    assert value(samples, "cardea_store_bytes", file="log") >= 0
    assert gateway.lab.user not in gateway.ask("/metrics").body.decode()


def test_without_a_store_nothing_is_said_of_it(gateway):
    gateway.oauth(changes={"store": None}).start().warm(API)
    samples = gateway.metrics()
    assert value(samples, "cardea_store_state", state="memory") == 1
    assert not [name for name, _ in samples if name in ("cardea_store_bytes", "cardea_store_rows")]


def test_a_failing_issuer_shows(gateway):
    """Five failures in a row, over all of its keys, open the breaker; one good answer closes it."""
    gateway.oauth(token={"negative_for": "1s"})
    first = gateway.config["routes"][0]
    gateway.config["routes"] = [
        {**first, "name": f"api-{number}", "scopes": [f"s{number}"], "match": {"path": f"/api/{number}/"}} for number in range(6)
    ]
    gateway.start()
    gateway.lab.faults(issuer_status=500)
    for number in range(6):
        assert gateway.get(f"/api/{number}/x").status == 503
    assert breaker(gateway) == {"closed": 0, "open": 1, "half_open": 0}
    issuer = f"http://{gateway.lab.issuer}"
    assert value(gateway.metrics(), "cardea_issuer_breaker_opened_total", issuer=issuer) == 1
    assert gateway.lab.counts()["issuer_calls"] == 5
    gateway.lab.faults(issuer_status=None)
    # By the clock of the breaker, which nobody moves from outside.
    asked = {"closed": 1, "open": 0, "half_open": 0}
    eventually(lambda: gateway.get("/api/1/x") and breaker(gateway) == asked, within=60, every=0.2, what="the issuer tried again")


def test_a_reused_refresh_token_is_counted(gateway, provider):
    token = first_refresh_token(provider)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    reference = gateway.secret("refresh", token)
    gateway.provider(provider, api=refreshing(gateway, provider, "refresh_token", refresh_token=reference))
    client = {"secret": "client-x-1", "grants": ["password", "refresh_token"]}
    provider.client("c", auth="client_secret_post", **client)
    # Somebody else has it, and is quicker.
    body = f"grant_type=refresh_token&refresh_token={token}&client_id=c&client_secret=client-x-1".encode()
    stolen = call(provider.issuer.removeprefix("http://"), "POST", "/token", body, form)
    assert stolen.status == 200, stolen
    provider.client("c", **client)
    gateway.start()
    assert value(gateway.metrics(), "cardea_refresh_tokens_refused_total", identity="api") == 0
    assert call(gateway.listens["api"]).status == 503
    assert value(gateway.metrics(), "cardea_refresh_tokens_refused_total", identity="api") == 1
    gateway.told(lambda event: "somebody else has used it" in event.get("reason", ""))
    assert len(provider.steps("refresh_reused")) == 1


def seconds(gateway, name, **labels):
    """The sum of a histogram's times, and how many there were."""
    samples = gateway.metrics()
    return [samples.get((f"{name}_{part}", tuple(sorted(labels.items()))), 0) for part in ("sum", "count")]


def test_whose_time_it_was_shows(gateway):
    """A slow issuer and a slow API are two figures."""
    gateway.oauth()
    gateway.start()
    gateway.lab.faults(issuer_slow_ms=600)
    assert gateway.get(API).status == 200
    waited, waits = seconds(gateway, "cardea_token_wait_duration_seconds", identity="api")
    asked, answers = seconds(gateway, "cardea_upstream_duration_seconds", route="api")
    # A challenge may have come first, with a wait of its own.
    assert waits >= 1 and waited >= 0.6 > asked and answers == 1
    assert gateway.get("/api/slow?ms=700").status == 200
    later, count = seconds(gateway, "cardea_upstream_duration_seconds", route="api")
    assert count == 2 and later >= 0.7
    assert seconds(gateway, "cardea_token_wait_duration_seconds", identity="api") == [waited, waits], "no wait on a hit"


def test_a_wait_that_ends_without_a_token_counts(gateway):
    gateway.oauth()
    gateway.lab.faults(issuer_status=500)
    gateway.start()
    assert gateway.get(API).status == 503
    assert seconds(gateway, "cardea_token_wait_duration_seconds", identity="api")[1] == 1
    assert seconds(gateway, "cardea_upstream_duration_seconds", route="api")[1] == 0


def test_dates_are_moments(gateway):
    gateway.oauth().start().warm(API)
    samples, now = gateway.metrics(), time.time()
    issued, expires = (value(samples, f"cardea_token_{word}_timestamp_seconds", identity="api") for word in ("issued", "expires"))
    assert now - 60 < issued <= now + 1 and issued < expires
    assert abs(expires - issued - 3600) < 5
    # The earlier figures stay for a release, and say what to use instead.
    text = gateway.ask("/metrics").body.decode()
    deprecated = [line.split()[2] for line in text.splitlines() if line.startswith("# HELP") and "Deprecated, see cardea_" in line]
    assert {"cardea_token_age_seconds", "cardea_token_expires_seconds"} <= set(deprecated)


def test_a_refused_reload_shows_until_one_succeeds(gateway):
    gateway.oauth().start()
    assert value(gateway.metrics(), "cardea_configuration_last_reload_successful") == 1
    gateway.file.write_text(json.dumps({**gateway.config, "nonsense": 1}))
    eventually(lambda: value(gateway.metrics(), "cardea_configuration_last_reload_successful") == 0, what="the refusal in the metrics")
    gateway.file.write_text(json.dumps({**gateway.config, "limits": {"connections": 77}}))
    eventually(lambda: value(gateway.metrics(), "cardea_configuration_last_reload_successful") == 1, what="the reload in the metrics")
    assert value(gateway.metrics(), "cardea_configuration_restart_needed") == 1


def test_every_certificate_and_authority_tells_its_dates(gateway, tmp_path):
    """Shown to callers, of callers, shown to the API, of the API, and the one that signs for intercepted hosts; by name, and never a key."""
    ours, theirs = Authority(tmp_path / "ours", name="Our CA"), Authority(tmp_path / "theirs", name="Their CA")
    shown, shown_key = ours.leaf("localhost", "DNS:localhost", days=40)
    client, client_key = theirs.leaf("machine", "DNS:machine.test", days=20)
    made = gateway.command("ca", "init", "--hosts", "api.test", "--out", str(tmp_path / "interception"), config=False)
    assert made[0] == 0, made
    upstream = {"ca": str(theirs.pem), "certificate": str(client), "key": f"file:{client_key}"}
    served = {"certificate": str(shown), "key": f"file:{shown_key}", "client_ca": str(ours.pem)}
    proxy = {"address": f"127.0.0.1:{free_port()}", "mode": "forward_proxy"}
    proxy["intercept"] = {"ca": f"{tmp_path}/interception.pem", "hosts": ["api.test"]}
    gateway.oauth(changes={"listeners": {"edge": {"address": f"127.0.0.1:{free_port()}", "tls": [served]}, "proxy": proxy}})
    gateway.config["routes"] += [
        {"name": "tls", "listen": "edge", "to": "https://localhost:1", "use": "api", "tls": upstream},
        {"name": "proxied", "listen": "proxy", "match": {"host": "api.test"}, "to": "https://api.test", "use": "api"},
    ]
    gateway.start()

    def days(name):
        samples = {key: number for key, number in gateway.metrics().items() if key[0] == f"cardea_certificate_{name}_timestamp_seconds"}
        said = {}
        for (_, labels), number in samples.items():
            labels = dict(labels)
            said[labels["use"], labels["file"], labels["subject"]] = round((number - time.time()) / 86400)
        return said

    last = days("not_after")
    [intercepted] = [key for key in last if key[0] == "interception"]
    assert intercepted[1] == f"{tmp_path}/interception.pem" and last.pop(intercepted) > 300
    assert last == {
        ("listener", str(shown), "localhost"): 40,
        ("listener", str(shown), "Our CA"): 3650,
        ("callers", str(ours.pem), "Our CA"): 3650,
        ("client", str(client), "machine"): 20,
        ("client", str(client), "Their CA"): 3650,
        ("authority", str(theirs.pem), "Their CA"): 3650,
    }
    assert set(days("not_before").values()) <= {0, -1} and len(days("not_before")) == 7
    # Renewed in place.
    theirs.leaf("machine", "DNS:machine.test", days=77)
    eventually(lambda: days("not_after")["client", str(client), "machine"] == 77, what="the new date")


def test_prometheus_own_lint_finds_nothing(gateway):
    gateway.webgate().start().warm()
    gateway.get("/nowhere")
    done = subprocess.run(["promtool", "check", "metrics"], input=gateway.ask("/metrics").body, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("path", ["/api/in-the-path-1", "/hr/?in_the_query=1"])
def test_no_label_comes_from_a_request(gateway, path):
    gateway.oauth().start().warm(API)
    gateway.get(path, headers={"X-Name": "in-a-header"})
    text = gateway.ask("/metrics").body.decode()
    for word in ("in-the-path", "in_the_query", "in-a-header"):
        assert word not in text
