"""Promise: callers that know nothing of Adobe Pass reach a media service: a person logs in once, each request gets a token of its own."""

import json
import socket
import struct

import pytest
import requests

from harness import call, eventually, together
from persons import Lines, Terminal

PLAY = "/media/CH1/play"


def adobe(gateway, identity=None, token=None, route=None, changes=None):
    lab = gateway.lab
    block = {
        "base_url": f"http://{lab.issuer}",
        "service_provider": "NORTH1",
        "mvpd": "CableCo",
        "software_statement": gateway.secret("statement", lab.api_key),
        "domain_name": "north.example",
        "calls_per_second": 1000,
        "burst": 1000,
        **(identity or {}),
    }
    block = {name: value for name, value in block.items() if value is not None}
    who = {"adobe_pass": block} | ({"token": token} if token else {})
    to = gateway.route("play", lab.listen) | {
        "inject": {"header": "X-Adobe-Authorization"},
        "resource": "{path.2}",
        **(route or {}),
    }
    gateway.config = gateway.frame({"identities": {"play": who}, "routes": [to], **(changes or {})})
    gateway.file.write_text(json.dumps(gateway.config))
    return gateway


def log_in(gateway, **rest):
    """As a person does: reads the address, opens it in a browser."""
    terminal = Lines(gateway, "play", **rest)
    told = terminal.next()
    while "prompt" not in told or not told["prompt"]:
        told = terminal.next()
    prompt = told["prompt"]
    assert prompt["code"] in prompt["url"]
    browser(prompt["url"])
    terminal.ends()
    return prompt


def browser(url):
    answer = requests.get(url, allow_redirects=False, timeout=10)
    assert (answer.status_code, answer.headers["Location"]) == (302, "https://north.example/"), answer.text


@pytest.fixture(params=["v2", "v1"])
def either(gateway, request):
    """A person has logged in, by one of the two generations of Adobe's API."""
    adobe(gateway, identity={"api": request.param}).start()
    log_in(gateway)
    return gateway


@pytest.fixture
def served(gateway):
    adobe(gateway).start()
    log_in(gateway)
    return gateway


def state(gateway):
    return call(gateway.admin, path="/readyz").json["identities"]["play"]


def test_without_a_login_callers_are_told_so_and_nothing_else(gateway):
    adobe(gateway).start()
    for _ in range(3):
        answer = gateway.get(PLAY)
        assert (answer.status, answer.problem["type"]) == (503, "urn:cardea:problems/login-required")
        assert "http" not in answer.problem.get("detail", "") and answer.field("WWW-Authenticate") is None
    assert gateway.lab.counts()["issuer_calls"] == 0
    assert state(gateway) == "login_needed"


def test_a_person_logs_in_once_and_every_request_has_its_own_token(served):
    answers = together(150, lambda i: served.get(f"/media/CH{i % 3}/employees/{i}"))
    assert {answer.status for answer in answers} == {200}
    assert [answer.json["id"] for answer in answers] == list(range(150))
    counts = served.lab.counts()
    assert (counts["adobe_authorize_ok"], counts["adobe_media_refused"]) == (150, 0)
    assert (counts["adobe_register"], counts["adobe_token"], counts["adobe_logins"]) == (1, 1, 1)
    assert "login" not in state(served)


def test_the_person_is_told_at_a_terminal(gateway):
    adobe(gateway).start()
    terminal = Terminal(gateway, "play")
    url = terminal.until(r"(http://\S+/api/v2/authenticate/NORTH1/(\w+))").group(1)
    browser(url)
    terminal.ends()
    assert gateway.get(PLAY).status == 200


def test_who_has_logged_in_need_not_do_it_again(either):
    terminal = Lines(either, "play")
    told = terminal.next()
    while told.get("state") == "running":
        told = terminal.next()
    terminal.ends()
    assert (told["state"], either.lab.counts()["adobe_logins"]) == ("done", 1)


@pytest.mark.parametrize("fault", [{"adobe_resume": {"times": 1}}, {"adobe_absolute_url": True}])
def test_other_ways_into_a_login(gateway, fault):
    adobe(gateway).start()
    gateway.lab.faults(**fault)
    log_in(gateway)
    assert gateway.get(PLAY).status == 200


def failed_login(gateway):
    terminal = Lines(gateway, "play")
    told = terminal.next()
    while told["state"] == "running":
        told = terminal.next()
    terminal.process.stdin.close()
    assert terminal.process.wait(20) != 0
    return told


@pytest.mark.parametrize("url", ["http://elsewhere.example/steal", "javascript:alert(1)", "//elsewhere.example/x", "/a b"])
def test_a_login_page_somewhere_else_is_not_shown(gateway, url):
    adobe(gateway).start()
    gateway.lab.faults(adobe_url=url)
    assert "no address that can be shown" in failed_login(gateway)["detail"]


def test_what_a_login_misses_is_named(gateway):
    adobe(gateway, identity={"domain_name": None}).start()
    assert "domainName" in failed_login(gateway)["detail"]


@pytest.mark.parametrize("api", ["v2", "v1"])
def test_a_login_that_takes_too_long_ends(gateway, api):
    adobe(gateway, identity={"api": api}).start()
    gateway.lab.faults(adobe_code_life_ms=4_000)
    assert failed_login(gateway)["state"] == "expired"


def test_a_login_at_another_provider_is_not_taken(gateway):
    adobe(gateway).start()
    gateway.lab.faults(adobe_other_mvpd="SatCo")
    terminal = Lines(gateway, "play")
    told = terminal.next()
    while not told.get("prompt"):
        told = terminal.next()
    browser(told["prompt"]["url"])
    while told["state"] == "running":
        told = terminal.next()
    assert told["state"] == "failed" and "another provider" in told["detail"]


def test_a_statement_that_was_refused_is_not_sent_again_by_requests(gateway):
    adobe(gateway, identity={"software_statement": gateway.secret("wrong", "another.software.statement")}).start()
    assert "invalid_software_statement" in failed_login(gateway)["detail"]
    for _ in range(5):
        assert gateway.get(PLAY).status == 503
    assert gateway.lab.counts()["adobe_register"] == 1


def test_device_and_client_outlive_restarts_and_logouts(served):
    assert served.get(PLAY).status == 200
    served.kill()
    served.start()
    assert served.get(PLAY).status == 200
    status, _, _ = served.command("logout", "play")
    assert status == 0
    assert served.get(PLAY).problem["type"].endswith("login-required")
    log_in(served)
    assert served.get(PLAY).status == 200
    counts = served.lab.counts()
    assert (counts["adobe_register"], counts["adobe_logout_ok"], counts["adobe_logins"]) == (1, 1, 2)


@pytest.mark.parametrize("fault", ["adobe_absolute_url", "adobe_logout_redirect"])
def test_a_logout_is_a_logout_whatever_page_it_names(served, fault):
    served.lab.faults(**{fault: True})
    status, out, err = served.command("logout", "play")
    assert (status, "revoked" in out + err) == (0, True), out + err


@pytest.mark.parametrize("api", ["v2", "v1"])
def test_the_end_of_a_login_is_told_ahead(gateway, api):
    adobe(gateway, identity={"api": api}).start()
    gateway.lab.faults(adobe_profile_life_ms=9_000)
    log_in(gateway)
    assert gateway.get(PLAY).status == 200
    eventually(lambda: "login_due" in state(gateway) or "login_needed" in state(gateway), within=10, what="a warning")
    eventually(lambda: gateway.get(PLAY).status == 503, within=10, every=0.2, what="the end of the login")
    assert gateway.get(PLAY).problem["type"].endswith("login-required")


def test_a_login_that_the_server_ended_is_over_here_too(served):
    served.lab.post("/adobe/end_logins")
    for _ in range(5):
        assert served.get(PLAY).problem["type"].endswith("login-required")
    assert served.lab.counts()["adobe_authorize"] == 1
    assert state(served) == "login_needed"


def test_a_session_that_the_provider_invalidated_needs_a_login(served):
    assert served.get("/media/INVALIDATED/play").problem["type"].endswith("login-required")
    assert served.get(PLAY).problem["type"].endswith("login-required")


def test_a_denial_is_the_callers_with_its_code(served):
    for _ in range(10):
        answer = served.get("/media/DENIED/play")
        assert (answer.status, answer.problem["type"]) == (403, "urn:cardea:problems/resource-denied")
        assert answer.problem["detail"] == "authorization_denied_by_mvpd"
    # A caller that insists does not use up what Adobe allows.
    assert served.lab.counts()["adobe_authorize"] == 1
    assert served.get(PLAY).status == 200


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize(
    "code, kind",
    [
        ("authorization_denied_by_parental_controls", "resource-denied"),
        ("authorization_denied_by_degradation_rule", "resource-denied"),
        ("something_new_denied", "resource-denied"),
        ("authenticated_profile_invalidated", "login-required"),
        ("too_many_resources", "identity-misconfigured"),
        ("invalid_integration", "identity-misconfigured"),
        ("internal_server_error", "issuer-unavailable"),
    ],
)
def test_every_class_of_error_is_told_apart(served, code, kind, wrapped):
    served.lab.faults(adobe_error=code, adobe_wrapped_error=wrapped)
    answer = served.get(PLAY)
    assert answer.problem["type"] == f"urn:cardea:problems/{kind}", answer.problem
    assert code in answer.problem["detail"] and "said by Adobe" not in answer.body.decode()


def test_a_permit_may_lack_times_of_its_own(served):
    served.lab.faults(adobe_no_outer_times=True)
    assert served.get(PLAY).status == 200


@pytest.mark.parametrize("fault", ["adobe_retry", "adobe_inner_retry"])
def test_what_adobe_asks_to_try_again_is_tried_three_times(served, fault):
    served.lab.faults(**{fault: {"times": 2}})
    assert served.get(PLAY).status == 200
    assert served.lab.counts()["adobe_authorize"] == 3
    served.lab.faults(**{fault: True})
    assert (served.get(PLAY).status, served.lab.counts()["adobe_authorize"]) == (504, 6)


def test_an_access_token_that_ran_out_is_replaced_with_the_same_client(either):
    either.lab.post("/adobe/expire_access_tokens")
    assert {answer.status for answer in together(20, lambda _: either.get(PLAY))} == {200}
    counts = either.lab.counts()
    assert (counts["adobe_token"], counts["adobe_register"], counts["adobe_media_refused"]) == (2, 1, 0)


def test_an_access_token_of_another_provider_is_replaced_once(served):
    served.lab.faults(adobe_other_provider_token={"times": 1})
    assert served.get(PLAY).status == 200
    served.lab.faults(adobe_other_provider_token=True)
    answer = served.get(PLAY)
    assert answer.problem["type"].endswith("identity-misconfigured")
    assert "invalid_access_token_service_provider" in answer.problem["detail"]
    assert served.lab.counts()["adobe_token"] == 3


def test_a_client_that_is_gone_registers_anew_only_with_a_login(served):
    served.lab.faults(adobe_invalid_client={"times": 1})
    served.lab.post("/adobe/expire_access_tokens")
    for _ in range(5):
        assert served.get(PLAY).status == 503
    assert served.lab.counts()["adobe_register"] == 1
    log_in(served)
    assert served.get(PLAY).status == 200
    assert served.lab.counts()["adobe_register"] == 2


def test_a_login_belongs_to_one_device(served):
    served.stop()
    adobe(served, identity={"device": {"id": "another"}}).start()
    assert served.get(PLAY).problem["type"].endswith("login-required")


def test_callers_wait_their_turn_in_what_adobe_allows(gateway):
    gateway.lab.faults(adobe_throttle=True)
    adobe(gateway, identity={"calls_per_second": None, "burst": None}, token={"acquire_timeout": "5s"}).start()
    log_in(gateway)
    answers = together(24, lambda _: gateway.get(PLAY))
    served = [answer for answer in answers if answer.status == 200]
    refused = [answer for answer in answers if answer.status != 200]
    # Those that would wait for more than five seconds are told at once.
    assert len(served) >= 5 and len(refused) >= 5, [answer.status for answer in answers]
    assert {(answer.status, answer.field("Retry-After")) for answer in refused} == {(503, "5")}
    counts = gateway.lab.counts()
    assert (counts["adobe_throttled"], counts["adobe_media_refused"]) == (0, 0)
    assert counts["adobe_authorize"] == len(served)


def test_a_throttle_that_others_have_emptied_is_met_with_patience(served):
    served.lab.faults(adobe_throttle=True)
    for _ in range(11):
        requests.get(f"http://{served.lab.issuer}/o/client/token", timeout=5)
    assert served.lab.counts()["adobe_throttled"] >= 1
    answer = served.get(PLAY)
    assert answer.status in (200, 503)
    if answer.status == 503:
        assert "throttled" in answer.problem["detail"]
    served.told(lambda event: event.get("msg", event.get("message")) == "issuer throttles")


def test_a_request_that_does_not_name_its_resource_asks_nobody(served):
    for path in ("/media", "/media/a%0Ab/play"):
        assert served.get(path).problem["type"].endswith("resource-missing")
    assert served.lab.counts()["adobe_authorize"] == 0


@pytest.mark.parametrize("api", ["v2", "v1"])
def test_mrss_and_the_query(gateway, api):
    adobe(
        gateway,
        identity={"api": api},
        route={
            "resource": '<rss version="2.0"><channel><title>{path.2}</title></channel></rss>',
            "inject": {"query": "token"},
        },
    ).start()
    log_in(gateway)
    answer = gateway.get("/mrss/CH1/employees/7?quality=hd&token=forged")
    assert (answer.status, answer.json["id"]) == (200, 7), (answer.body, gateway.lab.get("/refusals"))


def test_a_callers_own_token_does_not_pass(served):
    answer = served.get(PLAY, headers={"X-Adobe-Authorization": "forged"})
    assert answer.status == 200
    assert served.lab.counts()["adobe_media_refused"] == 0


def test_a_refusal_of_the_service_is_the_callers(served):
    served.lab.faults(adobe_media_refuses={"times": 1})
    assert served.get(PLAY).status == 401
    assert served.lab.counts()["adobe_authorize"] == 1


def test_where_a_route_says_so_a_refused_token_is_followed_by_one_more(gateway):
    adobe(gateway, route={"on_rejected": {"statuses": [401]}}).start()
    log_in(gateway)
    gateway.lab.faults(adobe_media_refuses={"times": 1})
    assert gateway.get(PLAY).status == 200
    assert gateway.lab.counts()["adobe_authorize"] == 2
    gateway.lab.faults(adobe_media_refuses=True)
    assert gateway.get(PLAY).status == 502
    assert gateway.lab.counts()["adobe_authorize"] == 4


def test_a_token_never_goes_out_twice(served):
    """On connections that die under the request: it is lost, and the next request has another."""
    assert served.get(PLAY).status == 200
    served.lab.faults(reset_before_answer={"times": 1})
    assert served.get(PLAY).status == 502
    served.lab.faults(close_on_reuse=True)
    assert {served.get(PLAY).status for _ in range(5)} == {200}
    counts = served.lab.counts()
    assert counts["adobe_media_refused"] == 0
    assert counts["adobe_authorize"] == counts["protected_requests"] == 7


def test_callers_that_leave_take_their_turn_with_them(gateway):
    adobe(gateway, identity={"calls_per_second": 1, "burst": 1}, token={"acquire_timeout": "60s"}).start()
    log_in(gateway)
    before = gateway.lab.counts()["adobe_authorize"]
    for _ in range(5):
        host, port = gateway.listen.split(":")
        with socket.create_connection((host, int(port))) as caller:
            caller.sendall(f"GET {PLAY} HTTP/1.1\r\nHost: {gateway.listen}\r\n\r\n".encode())
            # Without a farewell: one that has only said its last word may still want to hear the answer.
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert gateway.get(PLAY, timeout=30).status == 200
    assert gateway.lab.counts()["adobe_authorize"] - before <= 2


def test_operators_see_the_login_and_what_it_would_open(gateway):
    adobe(gateway, identity={"preauthorize": ["CH1", "DENIED"]}).start()
    call(gateway.admin, path="/status")
    assert gateway.lab.counts()["issuer_calls"] == 0
    log_in(gateway)

    def told():
        facts = call(gateway.admin, path="/status").json["identities"][0]["facts"]
        return {fact["name"]: fact["value"] for fact in facts}

    eventually(lambda: "CH1" in told(), within=10, every=0.1, what="a preview")
    assert told() == {
        "mvpd": "CableCo",
        "type": "regular",
        "metadata": "maxRating, userID, zip (encrypted)",
        "CH1": "would be authorized",
        "DENIED": "would be denied: preauthorization_denied_by_mvpd",
    }
    page = call(gateway.admin, path="/").body.decode()
    assert "mvpd: CableCo" in page and "CH1: would be authorized" in page
    assert gateway.lab.counts()["adobe_preauthorize"] == 1


def test_nothing_of_it_is_told_to_the_service_but_the_token(served):
    answer = served.get("/media/CH1/headers", headers={"X-Own": "1"})
    names = [name.lower() for name, _ in answer.json["headers"]]
    assert names.count("x-adobe-authorization") == 1 and "authorization" not in names
    assert not {"ap-device-identifier", "x-device-info"} & set(names)


def test_adobe_hears_nothing_of_the_caller(served):
    assert served.get(PLAY, headers={"X-Own": "1", "Cookie": "a=b", "X-Forwarded-For": "192.0.2.1"}).status == 200
    assert served.lab.counts()["refusals"] == 0


def test_an_outage_is_told_as_one(served):
    served.lab.post("/issuer/stop")
    assert served.get(PLAY).problem["type"].endswith("issuer-unavailable")
    served.lab.post("/issuer/start")
    eventually(lambda: served.get(PLAY).status == 200, within=20, every=0.3, what="service after the outage")


def test_a_hostile_answer_is_no_token(served):
    for fault in ("issuer_html", "issuer_empty", "issuer_empty_object", "issuer_huge_json", "issuer_redirect", "issuer_garbage"):
        served.lab.faults(**{fault: {"on": "adobe_authorize", "times": 1}})
        answer = served.get(PLAY)
        assert answer.status == 503, (fault, answer)
    eventually(lambda: served.get(PLAY).status == 200, within=20, every=0.3, what="service after all that")
    assert "profile" not in served.text()


def test_a_live_check_reaches_the_issuer_and_registers_nobody(gateway):
    adobe(gateway)
    status, out, err = gateway.command("check", "--live")
    assert gateway.lab.counts()["adobe_register"] == 0, out + err
    gateway.may_exit = True


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"inject": None}, "needs 'inject'"),
        ({"resource": None}, "needs 'resource'"),
        ({"resource": "{path.0}"}, "knows only"),
        ({"on_rejected": {"statuses": [401], "large_body": "probe_head"}}, "good for one request"),
    ],
)
def test_a_route_says_where_and_for_what(gateway, changes, said):
    adobe(gateway)
    for key, value in changes.items():
        if value is None:
            del gateway.config["routes"][0][key]
        else:
            gateway.config["routes"][0][key] = value
    gateway.file.write_text(json.dumps(gateway.config))
    status, out, err = gateway.command("check", str(gateway.file), config=False)
    assert status == 78 and said in out + err, out + err
    gateway.may_exit = True
