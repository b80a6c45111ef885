"""A gateway of fifty identities and two hundred routes, some of each in trouble, and a browser that reads its page."""

import contextlib
import json

import axe_playwright_python.base
from playwright.sync_api import sync_playwright

from harness import Cardea, eventually, executable, free_port, together
from scripted import Scripted, answer

IDENTITIES, ROUTES = 50, 200
# What is wrong with the first of them, and one whose password nobody has judged; then come those with tokens, at last those not asked for.
REFUSED, CUT_OFF, LOGIN, UNPROVEN, IDLE = range(0, 3), range(3, 6), range(6, 8), range(8, 9), range(46, IDENTITIES)
# A route that leads to where nobody listens, with a token that is good; and some whose upstream fails.
ASTRAY, FAILING = 159, (60, 61)
TROUBLED = len(REFUSED) + len(CUT_OFF) + len(LOGIN)
TOKEN = "the-page's-own-token"
SIZES = {"wide": (1280, 900), "narrow": (390, 844)}


def issuer(peer):
    for request in peer.requests():
        lifetime = 300 + 40 * len(request.body)
        if b"refused" in request.body:
            peer.send(answer(b'{"error":"invalid_client"}', b"Content-Type: application/json", status=b"401 Unauthorized"))
            continue
        body = {"access_token": "made-up-token", "token_type": "Bearer", "expires_in": lifetime}
        peer.send(answer(json.dumps(body).encode(), b"Content-Type: application/json"))


def api(peer):
    for request in peer.requests():
        status = b"503 Service Unavailable" if "/failing" in request.target else b"200 OK"
        peer.send(answer(b"here", status=status))


class Scene:
    """The gateway with its issuer and its upstream, asked once on every route that an identity in use has."""

    def __init__(self, lab, folder, issuer, api):
        self.gateway = Cardea(lab, folder)
        gateway, closed = self.gateway, f"127.0.0.1:{free_port()}"
        self.names = [f"{word}-{n:02}" for n, word in enumerate(["billing", "payroll", "search", "reports", "archive"] * 10)]
        secret = gateway.secret("client-secret", "a-client-secret-of-the-page")
        identities = {}
        for n, name in enumerate(self.names):
            block = {"token_url": f"http://{issuer}/token", "client_id": name, "client_secret": secret}
            if n in REFUSED:
                block["client_id"] = f"refused-{n}"
            if n in CUT_OFF:
                block["token_url"] = f"http://{closed}/token"
            if n in LOGIN:
                block |= {"grant": "device_code", "device_authorization_url": f"http://{issuer}/device"}
            # Else the token's request would not have the client in its body.
            identities[name] = {"oauth2": block | {"client_auth": "post"}, "token": {"negative_for": "10m"}}
            if n in UNPROVEN:
                identities[name] = {"basic": {"username": name, "password": secret}}
        routes = []
        for n in range(ROUTES):
            to = closed if n == ASTRAY else api
            routes.append(
                gateway.route(self.names[n % IDENTITIES], to) | {"name": f"route-{n:03}", "match": {"path": f"/r{n:03}/"}}
            )
        changes = {"identities": identities, "routes": routes, "admin": {"token": gateway.secret("admin", TOKEN)}}
        gateway.config = gateway.frame(changes | {"log": {"access": "off"}})
        gateway.start()
        # A first look, from which on the gateway remembers what follows.
        gateway.ask("/")
        asked = [n for n in range(ROUTES) if n % IDENTITIES not in (*UNPROVEN, *IDLE)]
        together(16, lambda part: [gateway.get(f"/r{n:03}/{'failing' if n in FAILING else 'x'}") for n in asked[part::16]])
        eventually(self.is_seen, every=0.5, what="failures of the last minutes on the page")
        self.address = f"http://{gateway.admin}"

    def is_seen(self):
        return self.gateway.ask("/").body.count(b"5xx lately") == len(FAILING)


@contextlib.contextmanager
def scene(lab, folder):
    with contextlib.ExitStack() as peers:
        one, other = (peers.enter_context(Scripted(script)) for script in (issuer, api))
        made = Scene(lab, folder, one.address, other.address)
        try:
            yield made
            # The gateway keeps connections as long as its peers do, within its times; and its end asks for few.
            peers.close()
            made.gateway.finish()
        finally:
            made.gateway.abandon()


@contextlib.contextmanager
def browser():
    """Debian's Chromium, without a window."""
    program = executable("CHROMIUM_BIN", "chromium", "apt-get install chromium")
    with sync_playwright() as playwright:
        # Tests run as root, for whom its sandbox does not start; it reads nothing but the page.
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield started
        finally:
            started.close()


def axe(page):
    """What axe finds: every rule, of every level."""
    # By the debugger, which no policy of the page stops.
    page.evaluate((axe_playwright_python.base.AXE_FILE_PATH).read_text() + "; null")
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{rule['id']} ({rule['impact']}): {rule['help']}: {node['target']} {node['failureSummary']}"
        for rule in found["violations"]
        for node in rule["nodes"][:3]
    ]
