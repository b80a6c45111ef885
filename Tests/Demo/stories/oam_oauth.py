"""An unchanged caller, an API behind the OAuth service of OAM 11g that only knows mobile clients, Cardea between."""

import json
import pathlib
import secrets
import time

from stage import API, CALLERS, GATEWAY, Deviation, a_thousand_more, ask, at_once, conclude, crash_and_outage, curl
from stage import expect, page

TITLE = "an unchanged caller, an API behind the OAuth service of OAM 11g that only knows mobile clients"
SECRETS = {"stock-password": secrets.token_urlsafe(18)}
LAB = ["--password-file", "{folder}/stock-password"]
STOCK = "/api/employees/"
TRY = f"{STOCK}7"


def configuration(_folder):
    return pathlib.Path(__file__).with_suffix(".yaml")


def tell(lab, gateway):
    straight_to_the_api()
    gateway.start()
    through_cardea(lab)
    a_thousand_more(lab, 3, STOCK)
    revoked_in_flight(lab)
    a_password_that_is_wrong(lab, gateway)
    the_right_one(lab, gateway)
    crash_and_outage(lab, gateway, 7, STOCK)


def straight_to_the_api():
    page.step(1, "Straight to the API, as the legacy caller would")
    status, head, _, _ = curl(f"http://{API}{STOCK}42")
    expect(status, 401, "status without a token")
    expect("WWW-Authenticate: Bearer" in head, True, "a Bearer challenge")
    page.line(f"   {page.status(status)}  WWW-Authenticate: Bearer")


def through_cardea(lab):
    page.step(2, "The same request through Cardea, which registers as a mobile client does")
    lab.tell("/reset")
    status, _, body, milliseconds = curl(f"http://{GATEWAY}{STOCK}42")
    expect(status, 200, "status through Cardea")
    expect(json.loads(body)["id"], 42, "the employee in the answer")
    page.line(f"   {page.status(status)}  {body.strip():<80}{milliseconds:.1f} ms")
    seen = lab.counts("oam11g_profile", "oam11g_pre", "oam11g_register", "oam11g_token", "password_attempts")
    expect(seen, (1, 1, 1, 3, 1), "profile, pre-authorization, registration, token calls, passwords")
    page.line("        application profile · pre-authorization code · client assertion · token by the user assertion")


def revoked_in_flight(lab):
    page.step(4, f"The token revoked under {CALLERS} callers")
    lab.tell("/reset")
    statuses = at_once(CALLERS, STOCK, before=lambda: lab.tell("/revoke"))
    conclude(lab, statuses, CALLERS, oam11g_token=1, oam11g_register=0, password_attempts=0)
    page.row(f"200 × {CALLERS}", "token calls 1", "by the assertions at hand, no password")


def a_password_that_is_wrong(lab, gateway):
    page.step(5, f"The server forgets client and user, and the password was changed; {CALLERS} callers")
    lab.tell("/reset")
    lab.tell("/password", password=secrets.token_urlsafe(18))
    lab.tell("/oracle/forget_clients", renewals=True)
    lab.tell("/revoke")
    expect(set(at_once(CALLERS, STOCK)), {503}, "what the callers are told")
    expect(lab.counts("password_rejected"), 1, "wrong passwords that reached the server")
    page.row(f"503 × {CALLERS}", "password sent 1 ×", "the server would lock after 3")
    gateway.end()
    gateway.start()
    expect({ask(GATEWAY, f"{STOCK}{number}")[0] for number in range(20)}, {503}, "the same after a restart")
    expect(lab.counts("password_rejected"), 1, "wrong passwords after a restart")
    page.row("restart, 503 × 20", "password sent 0 ×", "it knows, sealed in its store, that this one was refused")


def the_right_one(lab, gateway):
    page.step(6, "The operator writes the new password into the file")
    password = secrets.token_urlsafe(18)
    lab.tell("/password", password=password)
    (gateway.folder / "stock-password").write_text(password)
    began = time.monotonic()
    while ask(GATEWAY, f"{STOCK}42")[0] != 200:
        if time.monotonic() - began > 20:
            raise Deviation("the new password was not used within 20 s")
        time.sleep(0.05)
    expect(lab.counts("password_rejected", "oam11g_register"), (1, 1), "wrong passwords and registrations")
    page.row("200", "registered 1 ×", f"{time.monotonic() - began:.1f} s later, without a command or a restart")
