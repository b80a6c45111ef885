"""An unchanged caller, a server of a Windows domain that wants Kerberos, Cardea between."""

import atexit
import json
import os
import pathlib
import shutil
import sys

from stage import CALLERS, GATEWAY, ROOT, Deviation, a_thousand_more, ask, at_once, conclude, curl, expect, page

# The realm and the server are those of the tests.
sys.path += [str(ROOT / "Tests/Release"), str(ROOT / "Tests/Promises")]

from kerberos import KDC, REALM, Apache  # noqa: E402

TITLE = "an unchanged caller, a server that wants Kerberos"
SECRETS = {}
LAB = []
REPORTS = "/reports/"
TRY = f"{REPORTS}7"
REALMS = []


def configuration(folder):
    path = os.environ.get("PATH", "") + ":/usr/sbin"
    for program, package in (("krb5kdc", "krb5-kdc"), ("kadmin.local", "krb5-admin-server"), ("apache2", "apache2-bin")):
        if shutil.which(program, path=path) is None:
            raise Deviation(f"{program} is not there: apt-get install {package} libapache2-mod-auth-gssapi")
    if os.geteuid() != 0:
        raise Deviation("the server gives up its own rights once it has its key, so this story begins as root")
    # Apache's own user has to pass.
    folder.chmod(0o711)
    kdc = KDC(folder / "realm")
    atexit.register(kdc.close)
    (folder / "realm").chmod(0o711)
    server = Apache(folder / "server", kdc)
    atexit.register(server.close)
    reports = folder / "server" / "root" / "reports"
    reports.mkdir()
    for number in range(1000):
        (reports / str(number)).write_text(json.dumps({"id": number}))
    REALMS.append((kdc, server))
    os.environ["KRB5_CONFIG"] = kdc.variables["KRB5_CONFIG"]
    os.environ["CARDEA_DEMO_API"] = server.address
    return pathlib.Path(__file__).with_suffix(".yaml")


def tell(lab, gateway):
    [(kdc, server)] = REALMS
    straight_to_the_server(server)
    gateway.start()
    through_cardea()
    before = kdc.asked()
    a_thousand_more(lab, 3, REPORTS)
    page.step(4, f"{CALLERS} callers at once")
    conclude(lab, at_once(CALLERS, REPORTS), CALLERS)
    page.row(f"200 × {CALLERS}")
    expect(kdc.asked() - before, 0, "tickets for tickets that were asked for meanwhile")
    without_the_kdc(kdc)
    what_it_cost(server)


def straight_to_the_server(server):
    page.step(1, "Straight to the server, as the legacy caller would")
    status, head, _, _ = curl(f"http://{server.address}{REPORTS}42")
    expect(status, 401, "status without a token")
    challenge = next(line for line in head.splitlines() if line.lower().startswith("www-authenticate:"))
    page.line(f"   {page.status(status)}  {challenge}")


def through_cardea():
    page.step(2, "The same request through Cardea, which has a ticket for the server")
    status, head, body, milliseconds = curl(f"http://{GATEWAY}{REPORTS}42")
    caller = next(line for line in head.splitlines() if line.lower().startswith("caller:"))
    expect((status, json.loads(body)["id"], caller.split(": ")[1]), (200, 42, f"anna@{REALM}"), "status, report and user")
    page.line(f"   {page.status(status)}  {body:<40}{caller:<40}{milliseconds:.1f} ms")


def without_the_kdc(kdc):
    page.step(5, "The KDC is gone; the ticket for the server is still good")
    kdc.close()
    for number in range(100):
        status, _ = ask(GATEWAY, f"{REPORTS}{number}")
        expect(status, 200, "status without a KDC")
    page.row("200 × 100")


def what_it_cost(server):
    page.step(6, "What the server saw")
    asked = server.asked()
    tokens = {line[2] for line in asked if line[0] == "200"}
    expect([line[0] for line in asked].count("401"), 1, "requests without a token, of which the first was ours")
    page.row(f"{len(asked)} requests", f"{len(tokens)} tokens")
    expect(len(tokens), len(asked) - 1, "tokens, one for each request")
