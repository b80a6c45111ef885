"""An unchanged caller, a media service that wants an Adobe Pass media token for each playback, Cardea between."""

import http.client
import json
import os
import pathlib
import secrets
import signal
import subprocess
import time

from stage import ADMIN, API, CALLERS, GATEWAY, ROOT, Deviation, ask, at_once, conclude, curl, expect, page

TITLE = "an unchanged caller, a media service that wants an Adobe Pass token for each playback"
SECRETS = {"software-statement": secrets.token_urlsafe(40)}
LAB = ["--api-key-file", "{folder}/software-statement"]
CHANNEL = "/media/CH1/employees/"
TRY = f"{CHANNEL}7"


def configuration(_folder):
    return pathlib.Path(__file__).with_suffix(".yaml")


def tell(lab, gateway):
    straight_to_the_service()
    gateway.start()
    before_anybody_has_logged_in(lab)
    a_person_logs_in(lab, gateway)
    one_token_a_request(lab)
    a_channel_that_is_not_ours(lab)
    all_at_once(lab)
    after_a_crash(lab, gateway)
    what_operators_see()
    logged_out(lab, gateway)


def straight_to_the_service():
    page.step(1, "Straight to the media service, as the legacy caller would")
    status, _, body, _ = curl(f"http://{API}{CHANNEL}42")
    expect(status, 401, "status without a media token")
    page.line(f"   {page.status(status)}  {body.strip()}")


def before_anybody_has_logged_in(lab):
    page.step(2, "Through Cardea, before anybody has logged in at the pay-TV provider")
    status, _, body, _ = curl(f"http://{GATEWAY}{CHANNEL}42")
    expect((status, json.loads(body)["type"]), (503, "urn:cardea:problems/login-required"), "what the caller is told")
    expect(lab.counts("issuer_calls"), 0, "calls to Adobe")
    page.line(f"   {page.status(status)}  {json.loads(body)['title']}; Adobe was not asked")


def a_person_logs_in(lab, gateway):
    page.step(3, "A person logs in, on any device")
    page.line("   cardea login living-room")
    prompt, seconds = log_in(gateway)
    page.line(f"   {prompt['url']}  code {prompt['code']}")
    expect(lab.counts("adobe_register", "adobe_logins"), (1, 1), "registrations and logins")
    page.row("done", "registered 1 ×", f"seen {seconds:.1f} s after the person was through")


def log_in(gateway):
    """What the person was shown, and the seconds from the end of the provider's pages to the end of the command."""
    login = subprocess.Popen(
        [gateway.binary, "login", "living-room", "--json", "--config", gateway.config],
        cwd=ROOT,
        env={**os.environ, "CARDEA_DEMO_DIR": str(gateway.folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    told = {}
    for line in login.stdout:
        told = json.loads(line)
        if told.get("prompt"):
            break
    if not told.get("prompt"):
        raise Deviation(f"no address to log in at: {told}")
    expect(open_in_a_browser(told["prompt"]["url"]), 302, "the browser's way back")
    began = time.monotonic()
    rest = login.stdout.read()
    expect(login.wait(30), 0, f"the status of the login ({rest.strip()[-300:]})")
    return told["prompt"], time.monotonic() - began


def open_in_a_browser(url):
    host, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=10)
    connection.request("GET", f"/{path}")
    status = connection.getresponse().status
    connection.close()
    return status


def one_token_a_request(lab):
    page.step(4, "The same request again")
    lab.tell("/reset")
    status, _, body, milliseconds = curl(f"http://{GATEWAY}{CHANNEL}42")
    expect((status, json.loads(body)["id"]), (200, 42), "the answer through Cardea")
    page.line(f"   {page.status(status)}  {body.strip():<60}{milliseconds:.1f} ms")
    for number in range(99):
        expect(ask(GATEWAY, f"{CHANNEL}{number}")[0], 200, "status of one of a hundred")
    counted = lab.counts("adobe_authorize", "adobe_media_refused", "adobe_token")
    expect(counted, (100, 0, 0), "decisions, refused tokens, access tokens")
    page.row("200 × 100", "decisions 100", "each media token was used once, the service checks it")


def a_channel_that_is_not_ours(lab):
    page.step(5, "A channel that the subscription does not have")
    lab.tell("/reset")
    status, _, body, _ = curl(f"http://{GATEWAY}/media/DENIED-TO-US/play")
    expect((status, json.loads(body)["detail"]), (403, "authorization_denied_by_mvpd"), "what the caller is told")
    statuses = {ask(GATEWAY, "/media/DENIED-TO-US/play")[0] for _ in range(20)}
    expect((statuses, lab.counts("adobe_authorize")), ({403}, 1), "statuses, and decisions for 21 requests")
    page.row("403 × 21", "decisions 1", "the caller's own answer, with the provider's reason")


def all_at_once(lab):
    page.step(6, f"{CALLERS} callers at once, and the access token has just run out")
    lab.tell("/reset")
    statuses = at_once(CALLERS, CHANNEL, before=lambda: lab.tell("/adobe/expire_access_tokens"))
    conclude(lab, statuses, CALLERS, adobe_token=1, adobe_register=0, adobe_media_refused=0)
    page.row(f"200 × {CALLERS}", "access tokens 1", f"media tokens {CALLERS}, none of them shared")


def after_a_crash(lab, gateway):
    page.step(7, "kill -9, start again")
    gateway.end(signal.SIGKILL)
    lab.tell("/reset")
    milliseconds, status = gateway.first_answer(f"{CHANNEL}42")
    statuses = [status] + [ask(GATEWAY, f"{CHANNEL}{number}")[0] for number in range(1, 50)]
    conclude(lab, statuses, 50, adobe_register=0, adobe_token=0, adobe_sessions=0)
    page.row("200 × 50", "no new login", f"first answer {milliseconds:.0f} ms after start; same device, same client")


def what_operators_see():
    page.step(8, "What operators see")
    end = time.monotonic() + 10
    while True:
        identity = json.loads(ask(ADMIN, "/status")[1])["identities"][0]
        facts = {fact["name"]: fact["value"] for fact in identity.get("facts", [])}
        if "CH1" in facts:
            break
        if time.monotonic() > end:
            raise Deviation(f"no preauthorization in /status: {facts}")
        time.sleep(0.1)
    expect(facts["CH1"], "would be authorized", "the preview of CH1")
    page.line(f"   login ends in {identity['login_expires_in_seconds'] / 86400:.1f} days")
    for name, value in facts.items():
        page.line(f"   {name}: {value}")


def logged_out(lab, gateway):
    page.step(9, "The operator logs out, and in again")
    lab.tell("/reset")
    gateway.command("logout", "living-room")
    expect(ask(GATEWAY, f"{CHANNEL}42")[0], 503, "status after the logout")
    expect(lab.counts("adobe_logout"), 1, "logouts at Adobe")
    log_in(gateway)
    expect(ask(GATEWAY, f"{CHANNEL}42")[0], 200, "status after the second login")
    expect(lab.counts("adobe_register"), 0, "registrations")
    page.row("503, then 200", "registrations 0", "the device and its registration outlive a logout")
