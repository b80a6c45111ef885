"""Promise: with `tracing.endpoint` each sampled request is told to a collector as spans, a failed one always, and nothing secret ever."""

import contextlib
import json
import secrets
import signal

import pytest

from collector import Collector
from harness import eventually, free_port, together
from pki import Authority
from served import Quiet, Served

SERVER, CLIENT, INTERNAL = 2, 3, 1
PARENT = "00f067aa0ba902b7"
# Why a grant failed, as metrics and page say it.
REASONS = {
    "issuer_unavailable", "issuer_answer_invalid", "credential_rejected", "quarantined", "configuration", "interaction_required",
    "policy_denied", "timed_out", "internal",
}


@pytest.fixture
def collector():
    with contextlib.closing(Collector()) as collector:
        yield collector


def fresh():
    return secrets.token_hex(16)


def ask(gateway, trace, path="/plain/a", method="GET", sampled="01", **headers):
    return gateway.call(method, path, headers={"traceparent": f"00-{trace}-{PARENT}-{sampled}", **headers})


def named(spans):
    """By kind and name, each of which is there once."""
    words = {SERVER: "server", CLIENT: "client", INTERNAL: "internal"}
    found = {f"{words[span.kind]} {span.name}": span for span in spans}
    assert len(found) == len(spans), spans
    return found


class Origin(Served):
    """Answers with the status that the path names, in its own words."""

    def __init__(self):
        self.words = b""
        outer = self
        self.parents = parents = []

        class Handler(Quiet):
            def do_GET(self):
                parents.append(self.headers["traceparent"])
                self.respond(int(self.path.partition("?")[0].rpartition("/")[2] or 200), outer.words)

        super().__init__(Handler)


@pytest.fixture
def origin():
    with contextlib.closing(Origin()) as origin:
        yield origin


def start(gateway, collector, origin=None, ratio="100%", identity=None, **tracing):
    block = identity or {"static": {"value": gateway.secret("token", "abcdefghijklmnop")}}
    tracing = {"ratio": ratio, "endpoint": collector.origin, **tracing}
    gateway.with_identity(block, {"tracing": tracing})
    if origin:
        gateway.config["routes"][0]["to"] = origin.origin
    gateway.start()
    if origin:
        # The token is there from now on.
        gateway.get("/200")
    return gateway


def test_a_request_is_told_with_its_upstream(gateway, collector, origin):
    start(gateway, collector, origin)
    trace = fresh()
    assert ask(gateway, trace, "/200").status == 200
    request, upstream = collector.told(2, trace)
    assert (request.name, request.kind, request.parent) == ("GET only", SERVER, PARENT)
    assert request.about == {
        "http.request.method": "GET", "http.response.status_code": 200, "cardea.route": "only", "cardea.identity": "only",
    }
    assert (upstream.kind, upstream.parent, upstream.about["http.response.status_code"]) == (CLIENT, request.id, 200)
    # The upstream was told of the very span that stands for it.
    assert origin.parents[-1] == f"00-{trace}-{upstream.id}-01"
    assert request.start <= upstream.start <= upstream.end <= request.end
    assert request.resource["service.name"] == "cardea" and request.resource["service.instance.id"] == "edge-1"
    assert not request.error and not upstream.error and request.sampled
    path, headers, _ = collector.requests[0]
    assert path == "/v1/traces" and headers["Content-Type"] == "application/x-protobuf"
    # The wall clock's time, near enough that nobody looks for it elsewhere.
    record = next(line for line in gateway.access() if line.get("trace") == trace)
    assert record["status"] == 200
    eventually(lambda: gateway.metrics()[("cardea_spans_total", (("result", "exported"),))] >= 4, what="the spans counted")


def test_a_request_that_waits_for_its_token_says_so(gateway, collector):
    gateway.oauth(changes={"tracing": {"ratio": "100%", "endpoint": collector.origin}}).start()
    trace = fresh()
    assert ask(gateway, trace, "/api/employees/1").status == 200
    by = named(collector.told(5, trace))
    request, wait, upstream = by["server GET api"], by["internal token wait"], by["client GET api"]
    assert {"internal grant api", "client issuer call"} < by.keys()
    assert (wait.name, wait.kind, wait.parent) == ("token wait", INTERNAL, request.id)
    assert request.start <= wait.start <= wait.end <= upstream.start
    # The next one has its token already.
    trace = fresh()
    assert ask(gateway, trace, "/api/employees/1").status == 200
    assert [span.name for span in collector.told(2, trace)] == ["GET api", "GET api"]


def test_a_grant_points_at_those_who_waited(gateway, collector):
    gateway.oauth(changes={"tracing": {"ratio": "100%", "endpoint": collector.origin}})
    gateway.start()
    gateway.lab.faults(issuer_slow_ms=500)
    traces = [fresh() for _ in range(6)]
    answers = together(6, lambda index: ask(gateway, traces[index], "/api/employees/1"))
    assert {answer.status for answer in answers} == {200}
    eventually(lambda: len(collector.spans()) >= 6 * 3 + 2, what=f"all spans, not {collector.spans()}")
    requests = {span.trace: span for span in collector.spans() if span.kind == SERVER}
    [grant] = [span for span in collector.spans() if span.name == "grant api"]
    first = requests[grant.trace]
    assert grant.parent == first.id and grant.kind == INTERNAL and grant.about == {"cardea.identity": "api"}
    assert sorted(grant.links) == sorted((trace, span.id) for trace, span in requests.items() if (trace, span.id) in grant.links)
    assert len(grant.links) + grant.links_left_out == 6 and (first.trace, first.id) in grant.links
    steps = [span for span in collector.spans() if span.name == "issuer call"]
    assert steps and all(span.parent == grant.id and span.trace == grant.trace and span.kind == CLIENT for span in steps)
    assert steps[0].about == {"http.request.method": "POST", "http.response.status_code": 200, "cardea.identity": "api"}
    waits = [span for span in collector.spans() if span.name == "token wait"]
    assert len(waits) == 6 and all(grant.start - 5_000_000 <= span.end for span in waits)


def test_a_grant_that_fails_says_why_in_a_word(gateway, collector):
    words = "planted-words-of-the-issuer"
    with contextlib.closing(Wordy(words)) as issuer:
        block = {"oauth2": {"token_url": issuer.origin + "/t", "client_id": "c", "client_secret": gateway.secret("s", "value-4711")}}
        start(gateway, collector, identity=block)
        trace = fresh()
        assert ask(gateway, trace, "/a").status == 503
        by = named(collector.told(4, trace))
        request, wait, grant, step = (
            by[name] for name in ("server GET only", "internal token wait", "internal grant only", "client issuer call"))
        assert grant.error and grant.about["error.type"] in REASONS and step.error and step.about["http.response.status_code"] == 400
        assert request.error and wait.end >= grant.end - 5_000_000
        assert words.encode() not in b"".join(collector.bodies)


def test_a_replay_is_a_span_of_its_own(gateway, collector):
    gateway.oauth(changes={"tracing": {"ratio": "100%", "endpoint": collector.origin}}).start()
    assert gateway.get("/api/employees/1").status == 200
    gateway.lab.post("/revoke")
    trace = fresh()
    assert ask(gateway, trace, "/api/employees/1").status == 200
    by = named(collector.told(6, trace))
    request, wait, first, second = (by[name] for name in ("server GET api", "internal token wait", "client GET api", "client GET replay api"))
    assert by["internal grant api"].parent == request.id
    assert first.end <= wait.start <= wait.end <= second.start <= second.end <= request.end
    assert int(second.id, 16) == int(first.id, 16) + 1


@pytest.mark.parametrize("path, status, error", [("/500", 500, "500"), ("/404", 404, None)])
def test_a_failure_is_told_though_nobody_sampled_it(gateway, collector, origin, path, status, error):
    start(gateway, collector, origin, ratio="0%")
    trace = fresh()
    assert ask(gateway, trace, path).status == status
    # What comes after it would stand behind it.
    last = fresh()
    assert ask(gateway, last, "/503").status == 503
    collector.told(1, last)
    found = collector.spans(trace)
    if error:
        [span] = found
        assert span.error and span.about["error.type"] == error and not span.sampled and span.parent == PARENT
        assert span.about["http.response.status_code"] == status
    else:
        assert found == []


def test_a_problem_of_the_gateways_own_is_named(gateway, collector):
    start(gateway, collector, ratio="0%")
    gateway.stop()
    gateway.config["routes"][0]["to"] = f"http://127.0.0.1:{free_port()}"
    gateway.start()
    trace = fresh()
    assert ask(gateway, trace, "/a").status == 502
    [span] = collector.told(1, trace)
    assert span.error and span.about["error.type"] == "upstream-refused"


def test_a_route_that_tells_its_upstream_nothing_is_told_all_the_same(gateway, collector, origin):
    start(gateway, collector, origin)
    gateway.stop()
    gateway.config["routes"][0]["headers"] = {"remove": ["traceparent", "tracestate"]}
    gateway.start()
    gateway.get("/200")
    trace = fresh()
    assert ask(gateway, trace, "/200").status == 200
    assert len(collector.told(2, trace)) == 2 and origin.parents[-1] is None


def test_spans_go_over_tls_with_a_secret_that_may_change(gateway, tmp_path, origin):
    authority = Authority(tmp_path / "pki")
    with contextlib.closing(Collector(authority.leaf("localhost", "DNS:localhost"))) as collector:
        key = gateway.secret("collector-key", "collector-key-4711")
        start(gateway, collector, origin, headers={"X-Api-Key": key}, network={"tls": {"ca": str(authority.pem)}}, service="edge")
        trace = fresh()
        ask(gateway, trace, "/200")
        assert collector.told(2, trace)[0].resource["service.name"] == "edge"
        assert collector.requests[-1][1]["X-Api-Key"] == "collector-key-4711"
        gateway.secret("collector-key", "collector-key-4712")
        trace = fresh()
        ask(gateway, trace, "/200")
        collector.told(2, trace)
        assert collector.requests[-1][1]["X-Api-Key"] == "collector-key-4712"


def test_a_collector_without_a_certificate_that_we_know_gets_nothing(gateway, tmp_path, origin):
    authority = Authority(tmp_path / "pki")
    with contextlib.closing(Collector(authority.leaf("localhost", "DNS:localhost"))) as collector:
        start(gateway, collector, origin)
        ask(gateway, fresh(), "/200")
        [line] = gateway.told(lambda event: event["message"] == "spans cannot be exported")
        assert line["reason"].startswith("TLS: ") and line["endpoint"] == collector.origin
        assert collector.requests == []


def test_clear_text_beyond_this_machine_is_asked_for(gateway, collector):
    gateway.with_identity({"static": {"value": "literal:x"}}, {"tracing": {"endpoint": "http://collector.example:4318"}})
    gateway.file.write_text(json.dumps(gateway.config))
    status, out, err = gateway.command("check")
    assert status != 0 and "'endpoint' of 'tracing' gets spans in clear text" in out + err


def test_a_collector_that_is_busy_is_asked_again(gateway, collector, origin):
    start(gateway, collector, origin)
    collector.statuses = [503]
    trace = fresh()
    ask(gateway, trace, "/200")
    collector.told(2, trace)
    statuses = [status for *_, status in collector.requests]
    assert statuses.count(503) == 1 and statuses[-1] == 200


def test_a_collector_that_is_away_costs_no_request(gateway, collector, origin):
    start(gateway, collector, origin)
    collector.close()
    for _ in range(20):
        assert ask(gateway, fresh(), "/200").status == 200
    gateway.told(lambda event: event["message"] == "spans cannot be exported" and event["reason"] == "connection refused")
    eventually(lambda: gateway.metrics()[("cardea_spans_total", (("result", "failed"),))] >= 40, what="the spans counted")


def test_the_last_spans_are_not_lost_with_the_process(gateway, collector, origin):
    start(gateway, collector, origin)
    trace = fresh()
    ask(gateway, trace, "/200")
    gateway.stop()
    assert len(collector.spans(trace)) == 2


def test_a_reload_begins_and_ends_the_export(gateway, collector, origin):
    start(gateway, collector, origin)
    told = gateway.config["tracing"]

    def reload(tracing):
        gateway.config["tracing"] = tracing
        gateway.file.write_text(json.dumps(gateway.config))
        done = reloads(gateway)
        gateway.process.send_signal(signal.SIGHUP)
        eventually(lambda: reloads(gateway) > done, what="the reload")

    reload("on")
    silent = fresh()
    ask(gateway, silent, "/200")
    reload(told)
    trace = fresh()
    ask(gateway, trace, "/200")
    collector.told(2, trace)
    assert collector.spans(silent) == []


def reloads(gateway):
    return gateway.metrics()[("cardea_reloads_total", (("result", "done"),))]


class Wordy(Served):
    """An issuer that refuses with a text of its own."""

    def __init__(self, words):
        self.asked = asked = []

        class Handler(Quiet):
            def do_POST(self):
                asked.append(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                self.respond(400, b'{"error": "invalid_grant", "error_description": "%s"}' % words.encode(), "application/json")

        super().__init__(Handler)


def test_nothing_planted_comes_out(gateway, collector, origin):
    """Whatever a caller, an end user, an API or an issuer says stays here: no octet of it is exported."""
    planted = {name: f"planted-{name}-{secrets.token_hex(6)}" for name in
               ("path", "query", "header", "value", "cookie", "subject", "issuer", "id", "method", "state", "agent", "answer")}
    origin.words = planted["answer"].encode()
    with contextlib.closing(Wordy(planted["issuer"])) as issuer:
        block = {"oauth2": {"token_url": f"{issuer.origin}/{planted['issuer']}", "client_id": "c",
                            "client_secret": gateway.secret("s", planted["value"]), "extra": {"act_as": "{subject}"}}}
        fixed = {"static": {"value": gateway.secret("token", planted["header"] + "-token")}}
        gateway.with_identity(fixed, {"tracing": {"ratio": "100%", "endpoint": collector.origin}, "identities": {"api": block}})
        users = gateway.route("api", origin.origin) | {"callers": "local", "subject": {"from_header": "X-User"}, "match": {"path": "/users/"}}
        gateway.config["routes"] = [users, gateway.route("only", origin.origin)]
        gateway.start()
        headers = {
            f"X-{planted['header']}": planted["value"], "Cookie": f"s={planted['cookie']}", "X-User": planted["subject"],
            "tracestate": f"v={planted['state']}", "User-Agent": planted["agent"], "X-Request-Id": planted["id"],
        }
        traces = []
        for place in ("", "/users"):
            for path in (f"/{planted['path']}/200", f"/{planted['path']}/500", f"/200?{planted['query']}={planted['query']}"):
                for method in ("GET", "POST", planted["method"].upper().replace("-", "")):
                    trace = fresh()
                    ask(gateway, trace, place + path, method=method, **headers)
                    traces.append(trace)
        assert len(traces) == 18 and issuer.asked
        eventually(lambda: set(traces) <= {span.trace for span in collector.spans()}, what="spans of each")
    out = b"".join(collector.bodies).lower()
    assert b"cardea.route" in out and b"only" in out and b"_other" in out and b"identity-" in out
    for name, text in planted.items():
        for form in (text, text.upper().replace("-", "")):
            assert form.lower().encode() not in out, name
