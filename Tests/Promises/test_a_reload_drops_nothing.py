"""Promise: a reload drops no request, keeps what is the same, and changes nothing when the new file is not good."""

import copy
import json
import os
import signal
import socket
import time

import pytest

from harness import Lab, call, eventually, free_port, merge
from load import Load

# The full number stands in the closing notes; CARDEA_RELOADS=100 repeats it.
RELOADS = int(os.environ.get("CARDEA_RELOADS", "25"))
PATH = "/api/employees/1"


def edition(gateway):
    return gateway.ask("/readyz").json["configuration"]["edition"]


def events(gateway, message):
    return [event for event in gateway.events() if event.get("message", event.get("msg")) == message]


def write(gateway, config):
    """As an editor does: another file beside it, then a rename."""
    gateway.config = config
    fresh = gateway.folder / "cardea.yaml.new"
    fresh.write_text(json.dumps(config, indent=2) if not isinstance(config, str) else config)
    os.replace(fresh, gateway.file)


def reload(gateway, config=None):
    before = edition(gateway)
    if config is not None:
        write(gateway, config)
    gateway.process.send_signal(signal.SIGHUP)
    # A debug build takes seconds for thousands of routes.
    eventually(lambda: edition(gateway) > before, within=60, what=f"edition after {before}")


@pytest.fixture
def api(gateway):
    """A running gateway with a Bearer API, hot."""
    gateway.oauth().start().warm(PATH)
    gateway.lab.reset(tokens=False)
    return gateway


def variants(gateway):
    """Files that differ in everything but the route under load."""
    base = gateway.config
    other = {"static": {"header": "X-Api-Key", "value": gateway.secret("other-key", gateway.lab.api_key)}}
    extra = [
        {"name": f"extra-{port}", "listen": f"127.0.0.1:{port}", "to": f"http://{gateway.lab.plain}", "use": "none"}
        for port in (free_port(), free_port())
    ]
    moved = copy.deepcopy(base)
    moved["routes"] = extra + moved["routes"]
    moved["identities"] = {"other": other, **moved["identities"]}
    moved["routes"][0]["use"] = "other"
    slower = merge(base, {"defaults": {"route": {"timeouts": {"response": "55s"}}}, "name": "edge-2"})
    beside = copy.deepcopy(base)
    beside["routes"].insert(0, {**base["routes"][0], "name": "narrow", "match": {"path": "/nowhere/"}})
    beside["limits"] = {"connections_per_address": 500}
    return [moved, slower, beside, base]


def test_no_request_is_lost_over_many_reloads(api):
    files = variants(api)
    with Load(api.listen, PATH) as load:
        eventually(lambda: load.done > 50, what="the load running")
        for round in range(RELOADS):
            reload(api, files[round % len(files)])
        end = load.done
        eventually(lambda: load.done > end + 50, what="the load going on")
    assert load.failures == [], load.failures[:5]
    assert set(load.statuses) == {200}, load.statuses
    # A few more where the watch on the file was quicker than the signal; the last of them may still come.
    assert edition(api) > RELOADS
    # The token stayed, and so did the numbers.
    assert api.lab.counts()["token"] == 0, api.lab.counts()
    route = (("code", "200"), ("route", "api"))
    # One request more than the load's: the warm-up. The last one is counted behind the write of its answer.
    eventually(lambda: api.metrics()[("cardea_requests_total", route)] == load.done + 1, what="every request in the metric")
    # The log's thread writes a moment later.
    eventually(lambda: len(events(api, "reload done")) == edition(api) - 1, what="every reload in the log")
    print(f"{edition(api) - 1} reloads, {load.done} requests, longest {load.longest * 1000:.0f} ms")


def test_a_broken_file_changes_nothing_and_says_why(api):
    good = api.config
    with Load(api.listen, PATH, kept=1, fresh=1) as load:
        write(api, "routes:\n  - listen: 127.0.0.1:1\n    too: http://127.0.0.1:2\n")
        api.process.send_signal(signal.SIGHUP)
        told = eventually(lambda: api.ask("/readyz").json["configuration"].get("refused"), what="the refusal")
        begun = load.done
        eventually(lambda: load.done > begun + 20, what="the load going on")
    assert load.failures == []
    assert f"{api.file}:3:5" in told and "too" in told, told
    assert api.ask("/readyz").status == 200
    api.told(lambda event: event["message"] == "reload refused" and f"{api.file}:3:5" in event["reason"])
    assert api.metrics()[("cardea_reloads_total", (("result", "refused"),))] >= 1
    reload(api, good)
    assert "refused" not in api.ask("/readyz").json["configuration"]


def test_a_change_before_the_file_is_watched_is_seen(gateway):
    """The gateway serves, and its watch on the file comes late: strace holds it up."""
    gateway.wrapper = [
        "strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=inotify_init1", "-e", "inject=inotify_init1:delay_enter=2000000",
    ]  # fmt: skip
    gateway.oauth().start()
    assert edition(gateway) == 1
    write(gateway, merge(gateway.config, {"name": "changed-early"}))
    eventually(lambda: edition(gateway) == 2, what="the reload")


def test_an_address_that_is_taken_changes_nothing(api):
    """The new route and the new listener come together or not at all."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        config = copy.deepcopy(api.config)
        free = free_port()
        for port in (free, taken.getsockname()[1]):
            config["routes"].append(
                {"name": f"r{port}", "listen": f"127.0.0.1:{port}", "to": f"http://{api.lab.plain}", "use": "none"}
            )
        write(api, config)
        api.process.send_signal(signal.SIGHUP)
        told = eventually(lambda: api.ask("/readyz").json["configuration"].get("refused"), what="the refusal")
    assert "another process listens there" in told, told
    with pytest.raises(OSError):
        call(f"127.0.0.1:{free}", timeout=5)
    assert api.get(PATH).status == 200
    assert edition(api) == 1


def test_a_changed_file_is_taken_up_without_a_signal(api):
    port = free_port()
    config = copy.deepcopy(api.config)
    config["routes"].append(
        {"name": "new", "listen": f"127.0.0.1:{port}", "to": f"http://{api.lab.plain}", "use": "none"}
    )
    write(api, config)
    eventually(lambda: edition(api) == 2, within=5, what="the reload")
    assert call(f"127.0.0.1:{port}", path="/hr/rest/employees/1").status == 200
    # In place, too, as a shell's redirection writes.
    del config["routes"][-1]
    api.file.write_text(json.dumps(config))
    eventually(lambda: edition(api) == 3, within=5, what="the second reload")
    with pytest.raises(OSError):
        call(f"127.0.0.1:{port}", timeout=5)
    # What changes beside the file is nobody's reason to read it.
    (api.folder / "something-else").write_text("x")
    time.sleep(0.5)
    assert edition(api) == 3


def test_kubernetes_swaps_a_link(gateway):
    gateway.oauth()
    for name in ("one", "two"):
        (gateway.folder / name).mkdir()
        (gateway.folder / name / "cardea.yaml").write_text(json.dumps(merge(gateway.config, {"name": name})))
    data = gateway.folder / "..data"
    data.symlink_to("one")
    gateway.file.symlink_to("..data/cardea.yaml")
    gateway.config = {}
    gateway.start()
    assert edition(gateway) == 1
    swap = gateway.folder / "..data_tmp"
    swap.symlink_to("two")
    os.replace(swap, data)
    eventually(lambda: edition(gateway) == 2, within=5, what="the reload")


def test_what_began_before_ends_as_it_began(api):
    """A slow answer over a reload that takes its route away, on a connection that goes on to the next routes."""
    with api.raw() as raw:
        raw.send(f"GET /api/slow?ms=1500 HTTP/1.1\r\nHost: {api.listen}\r\n\r\n")
        eventually(lambda: any("slow" in line for line in api.lab.get("/requests")), what="the request upstream")
        config = copy.deepcopy(api.config)
        config["routes"] = [{"name": "other", "listen": api.listen, "to": f"http://{api.lab.plain}", "use": "none"}]
        reload(api, config)
        assert raw.answer().status == 200
        # The route is another one by now, and the API behind it asks for nobody's token.
        raw.send(f"GET /hr/rest/employees/1 HTTP/1.1\r\nHost: {api.listen}\r\n\r\n")
        assert raw.answer().status == 200
    eventually(
        lambda: [line["route"] for line in api.access() if line["path"].startswith(("/api/slow", "/hr/"))]
        == ["api", "other"],
        what="both in the access log under their own names",
    )


def test_a_listener_that_goes_says_so_to_its_callers(api):
    port = free_port()
    config = copy.deepcopy(api.config)
    gone = {"name": "gone", "listen": f"127.0.0.1:{port}", "to": f"http://{api.lab.plain}", "use": "none"}
    config["routes"].append(gone)
    reload(api, config)
    with Load(f"127.0.0.1:{port}", "/hr/rest/employees/1", kept=2, fresh=0) as load:
        eventually(lambda: load.done > 20, what="the load running")
        config = copy.deepcopy(config)
        config["routes"].pop()
        reload(api, config)
        eventually(lambda: load.failures, within=5, what="the address refusing")
    # Every answer came; what failed is a new connection to an address that is no more.
    assert {failure[1] for failure in load.failures} == {"connect"}, load.failures[:5]


def test_a_changed_identity_gets_a_token_of_its_own(api):
    """What makes an identity another one is what its issuer sees, not what it is called here."""
    first = api.config
    config = merge(first, {"identities": {"api": {"oauth2": {"extra": {"changed": "1"}}}}})
    reload(api, config)
    assert api.get(PATH).status == 200
    assert api.lab.counts()["token"] == 1, api.lab.counts()
    renamed = copy.deepcopy(config)
    renamed["identities"] = {"another-name": renamed["identities"].pop("api")}
    renamed["routes"][0]["use"] = "another-name"
    reload(api, renamed)
    assert api.get(PATH).status == 200
    # A name is no part of an identity.
    assert api.lab.counts()["token"] == 1, api.lab.counts()


def test_a_secret_elsewhere_is_read_at_once(gateway):
    lab = gateway.lab
    gateway.with_identity({"static": {"header": "X-Api-Key", "value": gateway.secret("wrong", "not-the-key")}}).start()
    assert gateway.get("/key/employees/1").status == 502
    config = copy.deepcopy(gateway.config)
    config["identities"]["only"]["static"]["value"] = gateway.secret("right", lab.api_key)
    reload(gateway, config)
    eventually(lambda: gateway.get("/key/employees/1").status == 200, within=5, what="the other value in use")


def test_what_needs_a_restart_is_named(api):
    reload(api, merge(api.config, {"threads": 3, "limits": {"headers": 64, "target_size": "4KiB"}, "name": "edge-9"}))
    named = ["threads", "limits.headers", "limits.target_size"]
    assert api.ask("/readyz").json["configuration"]["needs_restart"] == named
    assert api.get(PATH).status == 200


def test_learned_realms_survive(gateway):
    """A challenge-driven route moves in the file and keeps what it learned: no second challenge, no second grant."""
    gateway.webgate().start().warm()
    gateway.lab.reset(tokens=False)
    config = copy.deepcopy(gateway.config)
    config["routes"].insert(
        0, {"name": "first", "listen": f"127.0.0.1:{free_port()}", "to": f"http://{gateway.lab.plain}", "use": "none"}
    )
    for _ in range(3):
        reload(gateway, config)
        assert gateway.get().status == 200
        config = copy.deepcopy(config)
        config["routes"].reverse()
    counts = gateway.lab.counts()
    assert counts["challenge"] == 0, counts
