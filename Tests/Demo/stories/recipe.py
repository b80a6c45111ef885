"""A protected system that Cardea has no scheme for, as far as this story goes: its exchange is declared in config/recipes."""

import json
import secrets

from stage import ADMIN, API, CALLERS, GATEWAY, ISSUER, ROOT, a_thousand_more, at_once, conclude, crash_and_outage, curl
from stage import expect, page

TITLE = "an unchanged caller, a system declared as a recipe (config/recipes/oam-webgate.yaml)"
SECRETS = {"hr-password": secrets.token_urlsafe(18)}
LAB = ["--password-file", "{folder}/hr-password"]
EMPLOYEE = "/hr/rest/employees/42"
TRY = "/hr/rest/employees/7"


def configuration(folder):
    """The very file that users read, turned to this machine."""
    text = (ROOT / "config/recipes/oam-webgate.yaml").read_text()
    for there, here in (
        ("https://oam.example.com:14100", f"http://{ISSUER}"),
        ("https://hr.example.com", f"http://{API}"),
        ("file:/run/secrets/hr-password", f"file:{folder}/hr-password"),
        ("file:/run/secrets/cardea-store-key", f"file:{folder}/store-key"),
        ("/var/lib/cardea/tokens.db", f"{folder}/tokens.db"),
    ):
        expect(there in text, True, f"{there} in the recipe")
        text = text.replace(there, here)
    path = folder / "recipe.yaml"
    path.write_text(f"{text}\nadmin: {{ listen: {ADMIN} }}\nshutdown: {{ linger: 0s, timeout: 10s }}\n")
    return path


def tell(lab, gateway):
    straight_to_the_api()
    gateway.start()
    through_cardea(lab)
    what_it_did(gateway)
    a_thousand_more(lab, 4)
    revoked_in_flight(lab)
    crash_and_outage(lab, gateway, 6)


def straight_to_the_api():
    page.step(1, "Straight to the API, as the legacy caller would")
    status, _, _, _ = curl("-A", "OIC-Agent/1.0", f"http://{API}{EMPLOYEE}")
    expect(status, 401, "status without a token")
    page.line(f"   {page.status(status)}")


def through_cardea(lab):
    page.step(2, "The same request through Cardea, by the steps of the recipe")
    lab.tell("/reset")
    status, _, body, milliseconds = curl(f"http://{GATEWAY}{EMPLOYEE}")
    expect(status, 200, "status through Cardea")
    expect(json.loads(body)["id"], 42, "the employee in the answer")
    page.line(f"   {page.status(status)}  {body.strip():<80}{milliseconds:.1f} ms")
    expect(lab.counts("register", "authenticate", "access"), (1, 1, 1), "the steps that the service saw")


def what_it_did(gateway):
    page.step(3, "What it did, step by step, without a value")
    trace = gateway.command("explain", "GET", f"http://{GATEWAY}{EMPLOYEE}", "--trace")
    secret = (gateway.folder / "hr-password").read_text()
    expect(secret in trace, False, "the password in the trace")
    for line in trace.splitlines():
        page.line(f"   {line}")
    for name in ("register", "login", "access"):
        expect(name in trace, True, f"step {name} in the trace")


def revoked_in_flight(lab):
    page.step(5, f"Token revoked in flight, {CALLERS} callers")
    lab.tell("/reset")
    statuses = at_once(CALLERS, before=lambda: lab.tell("/revoke"))
    conclude(lab, statuses, CALLERS, register=0, authenticate=0, access=1)
    page.row(f"200 × {CALLERS}", "grants 1", "no caller saw a 401")
