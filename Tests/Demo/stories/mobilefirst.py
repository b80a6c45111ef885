"""An unchanged caller, the adapters of a MobileFirst server that challenges for a PIN, Cardea between."""

import json
import pathlib
import secrets
import time

from stage import API, CALLERS, GATEWAY, Deviation, a_thousand_more, ask, at_once, conclude, crash_and_outage, curl
from stage import expect, page

TITLE = "an unchanged caller, the adapters of a MobileFirst server that challenges for a PIN"
SECRETS = {"teller-pin": secrets.token_urlsafe(9)}
LAB = ["--pin-file", "{folder}/teller-pin"]
ACCOUNTS = "/mfp/api/adapters/accountsRead/employees/"
TRY = f"{ACCOUNTS}7"


def configuration(_folder):
    return pathlib.Path(__file__).with_suffix(".yaml")


def tell(lab, gateway):
    straight_to_the_adapter()
    gateway.start()
    through_cardea(lab)
    a_thousand_more(lab, 3, ACCOUNTS)
    a_pin_that_is_wrong(lab, gateway)
    the_right_one(lab, gateway)
    crash_and_outage(lab, gateway, 6, ACCOUNTS)
    the_same_device(lab, gateway)


def straight_to_the_adapter():
    page.step(1, "Straight to the adapter, as the legacy caller would")
    status, head, _, _ = curl(f"http://{API}{ACCOUNTS}42")
    expect(status, 401, "status without a token")
    expect("WWW-Authenticate: Bearer" in head, True, "a Bearer challenge")
    page.line(f"   {page.status(status)}  WWW-Authenticate: Bearer")


def through_cardea(lab):
    page.step(2, "The same request through Cardea, which registers as a device and answers the challenge")
    lab.tell("/reset")
    status, _, body, milliseconds = curl(f"http://{GATEWAY}{ACCOUNTS}42")
    expect(status, 200, "status through Cardea")
    expect(json.loads(body)["id"], 42, "the employee in the answer")
    page.line(f"   {page.status(status)}  {body.strip():<80}{milliseconds:.1f} ms")
    calls = [request.split(" ")[2].partition("?")[0] for request in lab.look("/requests") if "issuer " in request]
    names = [call.rpartition("/")[2] for call in calls]
    expect(names, ["self", "preauthorize", "preauthorize", "authorization", "token"], "what the server was asked")
    expect(lab.counts("mfp_challenges", "mfp_judged_PinCodeAttempts"), (1, 1), "challenges, and PINs that were judged")
    page.line("        register · preauthorize 401 · preauthorize with the PIN 200 · authorization · token")


def a_pin_that_is_wrong(lab, gateway):
    page.step(4, f"Somebody changes the PIN on the server, {CALLERS} callers")
    lab.tell("/reset")
    lab.tell("/pin", pin=secrets.token_urlsafe(9))
    lab.tell("/mfp/forget")
    lab.tell("/revoke")
    statuses = at_once(CALLERS, ACCOUNTS)
    expect(set(statuses), {503}, "what the callers are told")
    expect(lab.counts("mfp_wrong_PinCodeAttempts"), 1, "wrong PINs that reached the server")
    page.row(f"503 × {CALLERS}", "PIN sent 1 ×", "the server would lock after 3")
    gateway.end()
    gateway.start()
    expect({ask(GATEWAY, f"{ACCOUNTS}{number}")[0] for number in range(20)}, {503}, "the same after a restart")
    expect(lab.counts("mfp_wrong_PinCodeAttempts"), 1, "wrong PINs after a restart")
    page.row("restart, 503 × 20", "PIN sent 0 ×", "it knows, sealed in its store, that this one was refused")


def the_right_one(lab, gateway):
    page.step(5, "The operator writes the new PIN into the file")
    pin = secrets.token_urlsafe(9)
    lab.tell("/pin", pin=pin)
    (gateway.folder / "teller-pin").write_text(pin)
    began = time.monotonic()
    while ask(GATEWAY, f"{ACCOUNTS}42")[0] != 200:
        if time.monotonic() - began > 20:
            raise Deviation("the new PIN was not used within 20 s")
        time.sleep(0.05)
    expect(lab.counts("mfp_wrong_PinCodeAttempts", "mfp_register"), (1, 0), "wrong PINs and registrations")
    page.row("200", "wrong PINs 0", f"{time.monotonic() - began:.1f} s later, without a command or a restart")


def the_same_device(lab, gateway):
    page.step(7, f"All tokens revoked, {CALLERS} callers: still the device that registered once")
    lab.tell("/reset")
    lab.tell("/mfp/forget")
    # A reset of the lab brings its first PIN back.
    lab.tell("/pin", pin=(gateway.folder / "teller-pin").read_text())
    statuses = at_once(CALLERS, ACCOUNTS, before=lambda: lab.tell("/revoke"))
    conclude(lab, statuses, CALLERS, mfp_register=0, mfp_token=1, mfp_judged_PinCodeAttempts=1)
    page.row(f"200 × {CALLERS}", "registrations 0", "PIN sent 1 ×, no caller saw a challenge")
