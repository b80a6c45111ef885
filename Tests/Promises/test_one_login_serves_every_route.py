"""Promise: single sign-on. One login serves every route that uses its identity; a logout ends it on all of them; and identities that log
in as the same user at one issuer never try more than one of them would: what was refused to one is not sent by another."""

import json

import pytest

from harness import call, eventually, free_port, together
from test_adobe_pass import adobe, log_in
from test_every_grant_brings_a_token import ANNA, SECRET
from test_mobilefirst_devices import ADAPTERS, WRONG as WRONG_PIN, device
from test_a_login_is_needed_in_time import configured, log_in as log_in_at_a_terminal  # noqa: F401  (a fixture)

WRONG = "not-the-password-9"


def routes(gateway, *changes):
    """As many routes as `changes`, each on an address of its own, like the one that is configured."""
    (first,) = gateway.config["routes"]
    gateway.places = [f"127.0.0.1:{free_port()}" for _ in changes]
    gateway.config["routes"] = [
        {**first, "name": f"way-{index}", "listen": place, **change}
        for index, (place, change) in enumerate(zip(gateway.places, changes))
    ]
    gateway.file.write_text(json.dumps(gateway.config))
    return gateway


def get(gateway, index, path, **rest):
    return call(gateway.places[index], path=path, **rest)


def kind(answer):
    return answer.problem["type"].rpartition("/")[2]


# --- One login ---------------------------------------------------------------------------------------------------------


def test_a_password_is_sent_once_for_every_route(gateway):
    """Two addresses of one API, and a third that is another origin and needs a token of its own."""
    port = gateway.lab.listen.rpartition(":")[2]
    elsewhere = {"to": f"http://localhost:{port}"}
    routes(gateway.webgate(), {}, {}, elsewhere).start()
    for path in ("/hr/rest/employees/1", "/payroll/rest/employees/1"):
        found = [get(gateway, index, path) for index in (0, 1, 2)]
        assert [answer.status for answer in found] == [200] * 3, (found, gateway.lab.get("/refusals"))
    counts = gateway.lab.counts()
    assert (counts["register"], counts["authenticate"], counts["password_rejected"]) == (1, 1, 0)


def test_cold_routes_at_once_are_one_login(gateway):
    port = gateway.lab.listen.rpartition(":")[2]
    elsewhere = {"to": f"http://localhost:{port}"}
    routes(gateway.webgate(), {}, elsewhere, {}).start()
    answers = together(60, lambda number: get(gateway, number % 3, f"/hr/rest/employees/{number}"))
    assert {answer.status for answer in answers} == {200}
    counts = gateway.lab.counts()
    assert (counts["register"], counts["authenticate"]) == (1, 1)


def test_two_names_for_one_identity_are_one_login(gateway):
    """An application that declares for itself what another one has declared logs nobody in again."""
    routes(gateway.webgate(), {}, {"use": "other"})
    gateway.config["identities"]["other"] = gateway.config["identities"]["hr"]
    gateway.start()
    assert [get(gateway, index, "/hr/rest/employees/1").status for index in (0, 1, 0, 1)] == [200] * 4
    counts = gateway.lab.counts()
    assert (counts["register"], counts["authenticate"]) == (1, 1)


def test_a_devices_answer_serves_every_scope(gateway):
    """MobileFirst: the checks that were passed are passed for every route, whatever it asks for."""
    device(gateway, answers=["PinCodeAttempts"])
    routes(gateway, {"scopes": ["accountsRead"]}, {"scopes": ["accountsRead"]}, {"scopes": ["accountsRead"]}).start()
    answers = together(30, lambda number: get(gateway, number % 3, f"{ADAPTERS}/accountsRead/employees/{number}"))
    assert {answer.status for answer in answers} == {200}, gateway.text()
    counts = gateway.lab.counts()
    assert (counts["mfp_register"], counts["mfp_judged_PinCodeAttempts"]) == (1, 1)


def test_a_person_logs_in_once_for_every_route(gateway):
    """Adobe Pass: one login, and a token for each request on each route."""
    adobe(gateway)
    routes(gateway, {}, {"resource": "CH2"}).start()
    log_in(gateway)
    for _ in range(3):
        assert get(gateway, 0, "/media/CH1/play").status == 200
        assert get(gateway, 1, "/media/CH2/play").status == 200
    assert gateway.lab.counts()["adobe_logins"] == 1


# --- One logout --------------------------------------------------------------------------------------------------------


def test_a_logout_ends_it_on_every_route(gateway):
    adobe(gateway)
    routes(gateway, {}, {"resource": "CH2"}).start()
    log_in(gateway)
    assert gateway.command("logout", "play")[0] == 0
    for index, path in ((0, "/media/CH1/play"), (1, "/media/CH2/play")):
        assert kind(get(gateway, index, path)).endswith("login-required")
    gateway.kill()
    gateway.start()
    assert kind(get(gateway, 1, "/media/CH2/play")).endswith("login-required")
    log_in(gateway)
    assert get(gateway, 0, "/media/CH1/play").status == get(gateway, 1, "/media/CH2/play").status == 200


@pytest.mark.parametrize("scopes", [("read", "read"), ("read", "write")])
def test_tokens_of_a_login_end_with_it_on_every_route(configured, provider, scopes):
    """Each route has an access token of its own, good for an hour; after the logout none of them leaves the gateway."""
    gateway = configured()
    routes(gateway, *({"scopes": [scope]} for scope in scopes))
    gateway.config["identities"]["tv"]["scopes"] = ["read", "write"]
    gateway.start()
    log_in_at_a_terminal(gateway, provider)
    told = [get(gateway, index, "/") for index in (0, 1)]
    assert [answer.status for answer in told] == [200, 200], gateway.text()
    assert {answer.json["sub"] for answer in told} == {"anna"}
    assert gateway.command("logout", "tv")[0] == 0
    for index in (0, 1):
        assert kind(get(gateway, index, "/")).endswith("login-required")
    gateway.kill()
    gateway.start()
    for index in (0, 1):
        assert kind(get(gateway, index, "/")).endswith("login-required")


def test_two_names_for_one_persons_login_are_a_mistake(configured):
    """Which of the two a logout would end could not be said."""
    gateway = configured()
    gateway.config["identities"]["stage"] = gateway.config["identities"]["tv"]
    routes(gateway, {}, {"use": "stage"})
    status, out, err = gateway.command("check", str(gateway.file), config=False)
    assert status == 78 and "'stage' is the same login as 'tv'" in out + err


# --- One quarantine ----------------------------------------------------------------------------------------------------


def two_webgates(gateway, first, second):
    """The same user at the same service, by two identities that differ in what they tell of their device."""
    routes(gateway.webgate(password=first), {}, {"use": "other"})
    other = json.loads(json.dumps(gateway.config["identities"]["hr"]))
    other["oam_webgate"]["device_claims"] = {"sdkversion": "11.1.2.3.9"}
    if second != first:
        other["oam_webgate"]["password"] = gateway.secret("other-password", second)
    gateway.config["identities"]["other"] = other
    return gateway


def test_what_was_refused_to_one_is_not_sent_by_the_other(gateway):
    two_webgates(gateway, WRONG, WRONG).start()
    answers = together(40, lambda number: get(gateway, number % 2, "/hr/rest/employees/1"))
    assert {(answer.status, kind(answer)) for answer in answers} == {(503, "credential-quarantined")}
    assert gateway.lab.counts()["password_rejected"] == 1
    gateway.kill()
    gateway.start()
    for index in (1, 0):
        assert kind(get(gateway, index, "/hr/rest/employees/1")) == "credential-quarantined"
    assert (gateway.lab.counts()["password_rejected"], gateway.lab.get("/state")["locked"]) == (1, False)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_another_password_of_the_same_user_is_another_attempt(gateway, order):
    """Each value is tried once: one that is right serves, whatever became of the wrong one."""
    two_webgates(gateway, WRONG, gateway.lab.password).start()
    for _ in range(3):
        for index in order:
            answer = get(gateway, index, "/hr/rest/employees/1")
            assert (answer.status == 200) == (index == 1), (index, answer, gateway.text())
    assert gateway.lab.counts()["password_rejected"] == 1


def test_one_new_password_frees_both(gateway):
    two_webgates(gateway, WRONG, WRONG).start()
    for index in (0, 1):
        assert get(gateway, index, "/hr/rest/employees/1").status == 503
    (gateway.folder / "hr-password").write_text(gateway.lab.password)
    for index in (0, 1):
        eventually(lambda: get(gateway, index, "/hr/rest/employees/1").status == 200, within=20, every=0.2, what="service")
    assert gateway.lab.counts()["password_rejected"] == 1


def test_a_reset_of_one_is_one_more_attempt_for_both(gateway):
    two_webgates(gateway, WRONG, WRONG).start()
    for index in (0, 1):
        assert get(gateway, index, "/hr/rest/employees/1").status == 503
    assert gateway.command("reset", "hr")[0] == 0
    for _ in range(3):
        for index in (0, 1):
            assert get(gateway, index, "/hr/rest/employees/1").status == 503
    assert gateway.lab.counts()["password_rejected"] == 2


def test_two_clients_of_one_user_share_his_quarantine(gateway, provider):
    """OAuth's password grant: the account is the user's, whichever client asks."""
    identities = {}
    for name in ("one", "two"):
        provider.client(name, secret=SECRET, auth="client_secret_post", grants=["password"])
        identities[name] = {
            "oauth2": {
                "token_url": provider.issuer + "/token",
                "grant": "password",
                "client_id": name,
                "client_auth": "post",
                "client_secret": gateway.secret(f"client-{name}", SECRET),
                "username": "anna",
                "password": gateway.secret("anna", WRONG),
            }
        }
    gateway.provider(provider, **identities).start()
    before = len(provider.steps("password"))
    for _ in range(3):
        for name in ("one", "two"):
            assert call(gateway.listens[name]).status == 503
    assert len(provider.steps("password")) - before == 1
    (gateway.folder / "anna").write_text(ANNA)
    gateway.secrets.append(ANNA)
    for name in ("one", "two"):
        eventually(lambda: call(gateway.listens[name]).status == 200, within=20, every=0.2, what=f"service for {name}")


def test_a_refused_pin_closes_both_devices_of_a_user(gateway):
    """MobileFirst: the PIN is the user's; another application that would send the same one does not."""
    device(gateway, pin=WRONG_PIN, answers=["PinCodeAttempts"])
    routes(gateway, {}, {"use": "second"})
    second = json.loads(json.dumps(gateway.config["identities"]["teller"]))
    second["mobilefirst"]["application"] = "com.acme.kiosk"
    gateway.config["identities"]["second"] = second
    gateway.start()
    path = f"{ADAPTERS}/accountsRead/employees/1"
    for _ in range(3):
        for index in (0, 1):
            assert get(gateway, index, path).status == 503
    assert gateway.lab.counts()["mfp_wrong_PinCodeAttempts"] == 1
