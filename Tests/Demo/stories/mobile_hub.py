"""An unchanged caller, a custom API of an Oracle Mobile Hub backend that wants a mobile token, Cardea between."""

import json
import pathlib
import re
import secrets
import time

from stage import API, CALLERS, CONTROL, GATEWAY, Deviation, a_thousand_more, ask, at_once, conclude, crash_and_outage, curl
from stage import expect, page

TITLE = "an unchanged caller, a custom API of a Mobile Hub backend, a token of another issuer"
# The clerk's is another one than the service has.
SECRETS = {"clerk-password": secrets.token_urlsafe(18)}
LAB = []
ORDERS = "/mobile/custom/orders/employees/"
TRY = f"{ORDERS}7"
FIRST, SECOND = "5d0c7c2a-0001-4b6e-9d55-lab000000001", "5d0c7c2a-0002-4b6e-9d55-lab000000002"


def configuration(folder):
    """A copy, because the story changes it."""
    path = folder / "cardea.yaml"
    path.write_text(pathlib.Path(__file__).with_suffix(".yaml").read_text())
    return path


def tell(lab, gateway):
    straight_to_the_api()
    an_issuers_token(gateway)
    gateway.start()
    through_cardea(lab)
    a_thousand_more(lab, 3, ORDERS)
    revoked_in_flight(lab)
    crash_and_outage(lab, gateway, 5, ORDERS)
    another_backend(lab, gateway)
    a_password_that_is_wrong(lab, gateway)


def straight_to_the_api():
    page.step(1, "Straight to the API, as the legacy caller would")
    status, _, body, _ = curl(f"http://{API}{ORDERS}42")
    expect(status, 401, "status without a token")
    page.line(f"   {page.status(status)}  {json.loads(body)['o:errorCode']}")


def an_issuers_token(gateway):
    """What an outside process would do: put another issuer's token into the file."""
    answer = json.loads(ask(CONTROL, "/hub/third_party", "POST", b'{"subject": "mara"}')[1])
    (gateway.folder / "issuer-token").write_text(answer["token"])
    (gateway.folder / "issuer-token").chmod(0o600)


def through_cardea(lab):
    page.step(2, "The same request through Cardea, which exchanges the token in its file for a mobile one")
    lab.tell("/reset")
    status, head, body, milliseconds = curl(f"http://{GATEWAY}{ORDERS}42")
    expect(status, 200, "status through Cardea")
    expect((json.loads(body)["id"], of(head, "User"), of(head, "Backend")), (42, "mara", FIRST), "who was served where")
    expect(lab.counts("hub_sso", "challenge"), (1, 0), "exchanges, and refusals on the way")
    page.line(f"   {page.status(status)}  {body.strip():<80}{milliseconds:.1f} ms")


def of(head, what):
    found = re.search(rf"^X-Lab-{what}: (.*)$", head, re.M | re.I)
    return found and found[1]


def revoked_in_flight(lab):
    page.step(4, f"The mobile token revoked, {CALLERS} callers at that moment")
    lab.tell("/reset")
    statuses = at_once(CALLERS, ORDERS, before=lambda: lab.tell("/revoke"))
    conclude(lab, statuses, CALLERS, hub_sso=1, issuer_calls=1)
    page.row(f"200 × {CALLERS}", "exchanges 1", "no caller saw a 401")


def another_backend(lab, gateway):
    page.step(6, "The backend changes: a mobile token would go on reaching the old one without a sound")
    lab.tell("/reset")
    path = pathlib.Path(gateway.folder / "cardea.yaml")
    path.write_text(path.read_text().replace(FIRST, SECOND))
    began = time.monotonic()
    while lab.counts("hub_sso") == 0:
        expect(ask(GATEWAY, f"{ORDERS}42")[0], 200, "status")
        if time.monotonic() - began > 20:
            raise Deviation("the saved configuration was not used within 20 s")
        time.sleep(0.05)
    status, head, _, _ = curl(f"http://{GATEWAY}{ORDERS}42")
    expect((status, of(head, "Backend")), (200, SECOND), "status, and the backend that was reached")
    expect(lab.counts("hub_sso"), 1, "exchanges")
    page.line(f"   {page.status(status)}  backend …{SECOND[-4:]}, with a token of its own; the old one is deleted")


def a_password_that_is_wrong(lab, gateway):
    page.step(7, f"A user whose password is wrong, where every request is a login; {CALLERS} callers")
    lab.tell("/reset")
    path = "/mobile/custom/clerk/employees/"
    statuses = at_once(CALLERS, path)
    expect(set(statuses) <= {502, 503}, True, "whether nobody got through")
    expect(lab.counts("password_rejected"), 1, "wrong passwords that reached the service")
    page.row(f"refused × {CALLERS}", "password sent 1 ×", "the service would lock after 3")
    gateway.end()
    gateway.start()
    expect({ask(GATEWAY, f"{path}{number}")[0] for number in range(20)}, {503}, "the same after a restart")
    expect(lab.counts("password_rejected"), 1, "wrong passwords after a restart")
    page.row("restart, 503 × 20", "password sent 0 ×", "it knows, sealed in its store, that this one was refused")
