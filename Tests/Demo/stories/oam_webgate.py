"""An unchanged caller, a WebGate-protected HR API, a Mobile & Social token service, Cardea between."""

import json
import re
import secrets

from stage import API, CALLERS, GATEWAY, ROOT, Deviation, a_thousand_more, at_once, conclude, crash_and_outage, curl
from stage import expect, page

TITLE = "an unchanged caller, a WebGate-protected HR API, a Mobile & Social token service"
SECRETS = {"hr-password": secrets.token_urlsafe(18)}
LAB = ["--password-file", "{folder}/hr-password"]
EMPLOYEE = "/hr/rest/employees/42"
TRY = "/hr/rest/employees/7"


def configuration(_folder):
    return ROOT / "config/demo.yaml"


def tell(lab, gateway):
    straight_to_the_api()
    gateway.start()
    through_cardea(lab)
    a_thousand_more(lab, 3)
    cold_token(lab, gateway)
    revoked_in_flight(lab)
    crash_and_outage(lab, gateway, 6)


def straight_to_the_api():
    page.step(1, "Straight to the API, as the legacy caller would")
    # To a User-Agent without its prefix this WebGate answers with a redirect to the login page.
    status, head, _, _ = curl("-A", "OIC-Agent/1.0", f"http://{API}{EMPLOYEE}")
    expect(status, 401, "status without a token")
    field = re.search(r'^WWW-Authenticate: (OAM-Auth realm="[^"]*", request-ctx=")([^"]*)"$', head, re.M | re.I)
    if not field:
        raise Deviation(f"no OAM-Auth challenge in:\n{head}")
    page.line(f'   {page.status(status)}  WWW-Authenticate: {field[1]}{field[2][:11]}…"')


def through_cardea(lab):
    page.step(2, "The same request through Cardea")
    lab.tell("/reset")
    status, _, body, milliseconds = curl(f"http://{GATEWAY}{EMPLOYEE}")
    expect(status, 200, "status through Cardea")
    expect(json.loads(body)["id"], 42, "the employee in the answer")
    page.line(f"   {page.status(status)}  {body.strip():<80}{milliseconds:.1f} ms")
    refused, served, calls = lab.counts("api_401", "api_ok", "issuer_calls")
    names = []
    for request in lab.look("/requests"):
        site, _, target = request.split(" ", 2)
        if site == "protected":
            names.append(f"replay {200 if served else '?'}" if names else f"upstream {401 if refused else '?'}")
        elif site == "issuer":
            names.append(target.rpartition("/")[2])
    expect(names, ["upstream 401", "register", "authenticate", "access", "replay 200"], "what the lab saw")
    expect((refused, served, calls), (1, 1, 3), "challenges, answers and issuer calls")
    page.line(f"        {' · '.join(names)}        ({calls} issuer calls)")


def cold_token(lab, gateway):
    page.step(4, f"{CALLERS} callers at once, cold token")
    gateway.end()
    gateway.forget()
    gateway.start()
    lab.tell("/reset")
    conclude(lab, at_once(CALLERS), CALLERS, register=1, authenticate=1, access=1)
    page.row(f"200 × {CALLERS}", "grants 1")


def revoked_in_flight(lab):
    page.step(5, f"Token revoked in flight, {CALLERS} callers")
    lab.tell("/reset")
    statuses = at_once(CALLERS, before=lambda: lab.tell("/revoke"))
    conclude(lab, statuses, CALLERS, register=0, authenticate=0, access=1)
    page.row(f"200 × {CALLERS}", "grants 1", "no caller saw a 401")
