"""Promise: with `tracing` a caller's trace goes on to the upstream, and one begins where there is none; without it nothing is touched."""

import re
import subprocess

import pytest

from harness import eventually, executable, free_port
from wire import call

# nginx answers with what it received.
NGINX = """daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log warn;
events {{ worker_connections 64; }}
http {{
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5; access_log off;
  server {{
    listen {address};
    listen {framed} http2;
    location / {{ return 200 "$http_traceparent|$http_tracestate"; }}
  }}
}}
"""

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
FORM = re.compile("00-([0-9a-f]{32})-([0-9a-f]{16})-(0[01])")


@pytest.fixture
def addresses(tmp_path):
    """One for HTTP/1.1, one for HTTP/2 in clear text."""
    address, framed = (f"127.0.0.1:{free_port()}" for _ in range(2))
    folder = tmp_path / "nginx"
    folder.mkdir()
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, address=address, framed=framed))
    binary = executable("CARDEA_NGINX", "nginx", "apt-get install nginx")
    process = subprocess.Popen([binary, "-p", folder, "-e", folder / "error.log", "-c", folder / "nginx.conf"])
    eventually(lambda: answers(address), what="nginx answering")
    yield address, framed
    process.terminate()
    process.wait(10)


@pytest.fixture
def server(addresses):
    return addresses[0]


def answers(address):
    try:
        return call(address).status == 200
    except OSError:
        return False


def start(gateway, server, tracing, route=None, listener=None):
    changes = {"log": {"access": "all"}, "tracing": tracing}
    if listener:
        changes["listeners"] = {"l": {"address": gateway.listen, **listener}}
    gateway.with_identity({"static": {"value": gateway.secret("token", "abcdefghijklmnop")}}, changes)
    gateway.config["routes"][0].update({"to": f"http://{server}", **(route or {})})
    if listener:
        gateway.config["routes"][0]["listen"] = "l"
    gateway.start()


def ask(gateway, **headers):
    answer = gateway.get("/a", headers={name: value for name, value in headers.items() if value is not None})
    assert answer.status == 200, answer
    parent, _, state = answer.body.decode().partition("|")
    return parent, state


def record(gateway, trace):
    return eventually(lambda: next((line for line in gateway.access() if line.get("trace") == trace), None), what=f"the record of {trace}")


def test_a_callers_trace_goes_on(gateway, server):
    start(gateway, server, "on")
    seen = [ask(gateway, traceparent=f"00-{TRACE}-{PARENT}-01", tracestate="vendor=1,other=two") for _ in range(3)]
    parts = [FORM.fullmatch(parent).groups() for parent, _ in seen]
    assert {trace for trace, _, _ in parts} == {TRACE} and {state for _, state in seen} == {"vendor=1,other=two"}
    spans = {span for _, span, _ in parts}
    assert len(spans) == 3 and PARENT not in spans
    assert record(gateway, TRACE)["path"] == "/a"


def test_a_trace_goes_on_in_both_versions(gateway, addresses):
    start(gateway, addresses[1], "on", {"http": "2", "request_id": "echo"})
    curl = executable("CARDEA_CURL", "curl", "apt-get install curl")
    told = ["-H", f"traceparent: 00-{TRACE}-{PARENT}-01", "-H", "tracestate: a=1", "-H", "tracestate: b=2", "-H", "X-Request-Id: order-7"]
    done = subprocess.run(
        [curl, "-sS", "-i", "--http2-prior-knowledge", *told, f"http://{gateway.listen}/a"], capture_output=True, text=True, timeout=30)
    head, _, body = done.stdout.partition("\n\n")
    assert head.startswith("HTTP/2 200") and "x-request-id: order-7" in head.lower(), done
    parent, _, state = body.partition("|")
    trace, span, _ = FORM.fullmatch(parent).groups()
    assert (trace, state) == (TRACE, "a=1,b=2") and span != PARENT
    assert record(gateway, TRACE)["request_id"] == "order-7"


@pytest.mark.parametrize("unfit", [None, "nonsense", f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE.upper()}-{PARENT}-01", f"ff-{TRACE}-{PARENT}-01"])
def test_a_trace_begins_where_there_is_none(gateway, server, unfit):
    start(gateway, server, {"ratio": "100%"})
    seen = [ask(gateway, traceparent=unfit, tracestate="vendor=1") for _ in range(3)]
    parts = [FORM.fullmatch(parent).groups() for parent, _ in seen]
    traces = {trace for trace, _, _ in parts}
    assert len(traces) == 3 and TRACE not in traces and {state for _, state in seen} == {""}
    assert {flags for _, _, flags in parts} == {"01"}
    for trace in traces:
        assert record(gateway, trace)


@pytest.mark.parametrize("believed", [False, True])
def test_a_callers_mark_counts_where_it_is_believed(gateway, server, believed):
    start(gateway, server, {"ratio": "0%"}, listener={"forwarded_from": ["127.0.0.0/8"]} if believed else {"hosts": ["any"]})
    parent, _ = ask(gateway, traceparent=f"00-{TRACE}-{PARENT}-01")
    assert FORM.fullmatch(parent)[3] == ("01" if believed else "00")


def test_without_tracing_nothing_is_touched(gateway, server):
    start(gateway, server, "off")
    assert ask(gateway, traceparent=f"00-{TRACE}-{PARENT}-01", tracestate="ANY thing") == (f"00-{TRACE}-{PARENT}-01", "ANY thing")
    assert ask(gateway) == ("", "")
    # A trace that others follow is found in the record all the same.
    assert record(gateway, TRACE)


def test_an_upstream_may_be_left_out(gateway, server):
    start(gateway, server, "on", route={"headers": {"remove": ["traceparent", "tracestate"]}})
    assert ask(gateway, traceparent=f"00-{TRACE}-{PARENT}-01", tracestate="vendor=1") == ("", "")
    assert record(gateway, TRACE)
    assert "traceparent" not in gateway.command("explain", "GET", f"http://{gateway.listen}/a")[1]


def test_explain_tells_of_it(gateway, server):
    start(gateway, server, "on", route={"request_id": "send"})
    told = gateway.command("explain", "GET", f"http://{gateway.listen}/a")[1]
    assert "traceparent: of the caller's trace" in told and "X-Request-Id: " in told
