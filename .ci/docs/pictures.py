"""Photographs the page of a running gateway for the site: pictures.py FOLDER

Nothing of it is committed. Where a browser, its driver or the programs are missing, it says which, and the site goes without pictures."""

import contextlib
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "Tests/Release"), str(ROOT / "Tests/Promises")]

from harness import Cardea, Lab, Missing, eventually, executable, free_port  # noqa: E402

SCHEMES = ("light", "dark")
SIZES = {"page": (1120, 860), "telephone": (390, 780)}


class Scene:
    """A gateway before the lab: one client is refused, one issuer is away, one person has to log in, two tokens are at hand."""

    def __init__(self, lab, folder):
        self.lab, self.gateway = lab, Cardea(lab, folder)
        gateway = self.gateway
        oauth = {"token_url": f"http://{lab.issuer}/token", "client_id": lab.oauth_client_id}
        oauth["client_secret"] = gateway.secret("client-secret", lab.client_secret)
        away = {"token_url": f"http://127.0.0.1:{free_port()}/token"}
        person = {"grant": "device_code", "device_authorization_url": f"http://{lab.issuer}/device"}
        webgate = gateway.webgate().config["identities"]["hr"]
        identities = {
            "hr": webgate,
            "invoices": {"oauth2": oauth},
            "billing": {"oauth2": oauth | {"client_id": "billing", "client_secret": gateway.secret("wrong-secret", "not-the-secret")}},
            "reports": {"oauth2": oauth | away},
            "calendar": {"oauth2": oauth | person},
            "archive": {"oauth2": oauth | {"client_id": "archive"}},
        }
        self.listens = {name: f"127.0.0.1:{free_port()}" for name in identities}
        routes = [{"name": name, "listen": self.listens[name], "to": f"http://{lab.listen}", "use": name} for name in identities]
        gateway.config = gateway.frame({"identities": identities, "routes": routes})
        gateway.start()

    def ask(self, name, times, expected):
        path = "/hr/rest/employees" if name == "hr" else "/api/employees"
        for number in range(times):
            gateway = self.gateway
            gateway.listen = self.listens[name]
            answer = gateway.get(f"{path}/{number + 1}")
            assert answer.status == expected, f"{name}: {answer}"

    def play(self):
        # A first look, from which on the gateway remembers what follows.
        self.gateway.ask("/")
        self.ask("hr", 240, 200)
        for _ in range(3):
            self.lab.post("/revoke")
            self.ask("invoices", 90, 200)
        for name in ("billing", "reports", "calendar"):
            self.ask(name, 4, 503)
        eventually(lambda: b"a second" in self.gateway.ask("/").body, every=0.5, what="a rate of requests on the page")


def photograph(address, folder):
    from readers import browser

    with browser() as started:
        for scheme in SCHEMES:
            for name, (width, height) in SIZES.items():
                size = {"width": width, "height": height}
                page = started.new_page(viewport=size, color_scheme=scheme, device_scale_factor=2)
                page.goto(f"http://{address}/")
                page.screenshot(path=folder / f"{name}-{scheme}.png")
                if name == "page":
                    line = page.locator("details", has=page.get_by_role("heading", name="billing", exact=True)).first
                    line.screenshot(path=folder / f"identity-{scheme}.png")
                page.close()


def take(folder):
    try:
        import axe_playwright_python  # noqa: F401
        import playwright  # noqa: F401
    except ModuleNotFoundError as missing:
        raise Missing(f"Python's '{missing.name}' is not there: make setup") from None
    executable("CHROMIUM_BIN", "chromium", "apt-get install chromium")
    with contextlib.closing(Lab()) as lab, tempfile.TemporaryDirectory() as place:
        scene = Scene(lab, place)
        try:
            scene.play()
            folder.mkdir(parents=True, exist_ok=True)
            photograph(scene.gateway.admin, folder)
        finally:
            scene.gateway.abandon()


if __name__ == "__main__":
    try:
        take(pathlib.Path(sys.argv[1]))
    except Missing as missing:
        print(f"pictures are left out: {missing}")
