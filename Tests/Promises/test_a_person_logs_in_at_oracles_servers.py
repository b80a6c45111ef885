"""Promise: at OAM 11g, OAM 12c and IDCS a person logs in once, in a browser; from then on the gateway goes on without one."""

import json
import re

import pytest
import requests

from harness import call
from oracle import Oracle
from persons import Lines

PATH = "/api/employees/1"
NAMES = {"11g": "oam11g", "12c": "oam12c", "idcs": "idcs"}


@pytest.fixture
def oracle(gateway):
    return Oracle(gateway)


def browser(lab, url, password=None):
    """Shows the page, fills it in, and is sent back: that address, or the refusal."""
    page = requests.get(url, timeout=10)
    assert page.status_code == 200, (page.text, lab.get("/refusals"))
    form = {name: value for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', page.text)}
    form |= {"username": lab.user, "password": password or lab.password}
    action = re.search(r'action="([^"]*)"', page.text).group(1)
    return requests.post(f"http://{lab.issuer}{action}", data=form, allow_redirects=False, timeout=10)


def log_in(oracle, status=0):
    lines = Lines(oracle.gateway, "payroll", "--no-browser")
    back = browser(oracle.lab, lines.next()["prompt"]["url"])
    assert back.status_code == 302, (back.text, oracle.lab.get("/refusals"))
    requests.get(back.headers["Location"], timeout=10)
    rest, said = lines.ends(status)
    return json.loads(rest), said


def state(gateway):
    return call(gateway.admin, path="/readyz").json["identities"]["payroll"]


@pytest.mark.parametrize("how", ["basic", "private_key_jwt", "none"])
@pytest.mark.parametrize("dialect", NAMES)
def test_once_and_never_again(oracle, dialect, how):
    gateway = oracle.serve(dialect, oracle.proof(how), grant="authorization_code").start()
    assert state(gateway) == "login_needed"
    assert gateway.get(PATH).problem["type"] == "urn:cardea:problems/login-required"
    told, _ = log_in(oracle)
    assert told["state"] == "done"
    assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")
    gateway.kill()
    gateway.start()
    for _ in range(2):
        oracle.lab.post("/revoke")
        assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")
    counts = oracle.lab.counts()
    name = NAMES[dialect]
    assert (counts[f"{name}_code"], counts["password_attempts"]) == (1, 1)
    assert counts[f"{name}_token"] == counts[f"{name}_token_ok"] >= 3 and counts["refusals"] == 0


@pytest.mark.parametrize("where", ["header", "query"])
def test_12c_knows_the_domain_at_every_step(oracle, where):
    """Its page takes it as `domain`, whatever the token endpoint takes; and grants may be spelt in capitals."""
    oracle.lab.faults(oam12c_upper_only=True)
    gateway = oracle.serve(
        "12c", oracle.proof("basic"), grant="authorization_code", domain_in=where, grant_case="upper"
    ).start()
    log_in(oracle)
    oracle.lab.post("/revoke")
    assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")
    counts = oracle.lab.counts()
    assert counts["oam12c_upper_case"] == counts["oam12c_token"] >= 2


def test_the_page_may_be_elsewhere_and_be_asked_for_more(oracle):
    more = {
        "authorization_url": f"{oracle.base}/oauth2/rest/authz",
        "login_parameters": {"prompt": "login"},
        "redirect_uri": "http://127.0.0.1/payroll/cb",
    }
    gateway = oracle.serve("12c", oracle.proof("basic"), grant="authorization_code", **more).start()
    lines = Lines(gateway, "payroll", "--no-browser")
    url = lines.next()["prompt"]["url"]
    assert "prompt=login" in url and "domain=PayrollDomain" in url and "code_challenge_method=S256" in url
    back = browser(oracle.lab, url).headers["Location"]
    assert "/payroll/cb?" in back
    requests.get(back, timeout=10)
    lines.ends()
    assert gateway.get(PATH).status == 200, oracle.lab.get("/refusals")


def test_a_person_may_say_no(oracle):
    gateway = oracle.serve("11g", oracle.proof("basic"), grant="authorization_code").start()
    oracle.lab.faults(oam_login_denied=True)
    told, _ = log_in(oracle, status=69)
    assert told["state"] == "failed" and "access_denied" in told["detail"]
    assert state(gateway) == "login_needed" and oracle.lab.counts()["oam11g_token"] == 0


@pytest.mark.parametrize("fault", ["html", "empty", "crlf_token", "redirect", "status"])
@pytest.mark.parametrize("dialect", NAMES)
def test_a_login_ends_where_the_server_answers_nonsense(oracle, dialect, fault):
    gateway = oracle.serve(dialect, oracle.proof("basic"), grant="authorization_code").start()
    name = NAMES[dialect]
    oracle.lab.faults(**{f"issuer_{fault}": {"on": f"{name}_token", "value": 503}})
    told, _ = log_in(oracle, status=78 if fault == "redirect" else 69)
    assert told["state"] == "failed", told
    assert state(gateway) == "login_needed" and gateway.get(PATH).status == 503
    # A code is good once: it was not sent again.
    assert oracle.lab.counts()[f"{name}_token"] == 1


@pytest.mark.parametrize("dialect, count", [("11g", "oam11g_delete"), ("12c", "oam12c_revoke_known"), ("idcs", "idcs_revoke_known")])
def test_a_logout_is_told_to_the_server(oracle, dialect, count):
    urls = {"12c": "/oauth2/rest/token/revoke", "idcs": "/oauth2/v1/revoke"}
    more = {"revocation_url": oracle.base + urls[dialect]} if dialect in urls else {}
    gateway = oracle.serve(dialect, oracle.proof("basic"), grant="authorization_code", **more).start()
    log_in(oracle)
    assert gateway.get(PATH).status == 200
    rest, _ = Lines(gateway, "payroll", command="logout").ends()
    assert "revoked at the issuer" in json.loads(rest)["detail"]
    # 11g is told of the access token as well.
    assert oracle.lab.counts()[count] == (2 if dialect == "11g" else 1) and state(gateway) == "login_needed"
    gateway.stop()
    gateway.start()
    assert gateway.get(PATH).problem["type"] == "urn:cardea:problems/login-required"


def test_a_check_reaches_the_page_and_nobody(oracle):
    gateway = oracle.serve("12c", oracle.proof("basic"), grant="authorization_code")
    gateway.file.write_text(json.dumps(gateway.config))
    status, said, _ = gateway.command("check", "--live", str(gateway.file), config=False)
    assert status == 0 and "a person grants them" in said, said
