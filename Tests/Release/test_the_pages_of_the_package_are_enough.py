"""Release: on a new Debian that runs systemd, a reader with nothing but the package and the pages in it serves a WebGate and an OAuth API,
sees the alarm of a refused secret in Prometheus, and finds and mends the cause with the commands of the page that the alarm names."""

import contextlib
import json
import shutil

import pytest
import yaml

import documentation
from documentation import Page
from harness import eventually, executable
from machines import Machine
from namespaces import Space
from roots import Root

PAGES = "usr/share/doc/cardea/docs"
# Of root in the new file system, where a reader who is root builds and keeps things.
HOME = "/root"
SECRET = "s:cret/ %é1"
# The machine's network ends at itself, so what the reader's apt will want is fetched before.
FROM_DEBIAN = ("systemd", "systemd-sysv", "curl", "openssl", "procps", "iproute2")
PAGE = documentation.pages()["docs/how-to/systemd.md"]
EMPLOYEE = '{"department":"Payroll","id":42,"name":"Employee 42"}'


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def machine(request, packages, tmp_path_factory):
    """The reader's machine: the package where `make package` puts it, and the lab in the place of the reader's own systems."""
    root = Root(tmp_path_factory.mktemp("machine"), request.param)
    # A person answers yes.
    (root.folder / "etc/apt/apt.conf.d/90answers").write_text('APT::Get::Assume-Yes "true";\nAPT::Install-Recommends "false";\n')
    root.run("apt-get", "update")
    root.run("apt-get", "install", *FROM_DEBIAN)
    built = root.folder / HOME[1:] / ".build/package"
    built.mkdir(parents=True)
    shutil.copy(packages.now, built)
    root.run("apt-get", "install", "--download-only", "prometheus", f"{HOME}/.build/package/{packages.now.name}")
    shutil.copy(executable("CARDEA_LAB_BIN", ".build/release/cardea-lab", "make build-release"), root.folder / HOME[1:])
    with contextlib.closing(Space({})) as space, contextlib.closing(Machine(root, space)) as machine:
        machine.folder = root.folder
        yield machine


def block(machine, page, word):
    """The block with that word in it, of a page as the package has brought it."""
    text = (machine.folder / PAGES / page).read_text()
    [found] = [block.text for block in Page(page, text).blocks if word in block.text]
    return found


def test_a_reader_is_served_and_an_alarm_leads_to_the_cause(machine):
    installs(machine)
    is_served(machine)
    watches(machine)
    # The issuer refuses the secret.
    writes_secret(machine, "client-secret", "wrong")
    assert machine.run("cardea tokens purge billing") == "1 token purged of billing\n"
    assert "urn:cardea:problems/credential-quarantined" in machine.run("curl -s http://127.0.0.1:8081/api/employees/42")
    alert = eventually(lambda: firing(machine), within=60, every=0.5, what="the alarm")
    assert alert["labels"]["identity"] == "billing", alert
    finds_the_cause(machine, alert)
    # As the page says, which lifts it.
    writes_secret(machine, "client-secret", SECRET)
    eventually(lambda: EMPLOYEE in machine.said("curl -s http://127.0.0.1:8081/api/employees/42")[1], every=0.2, what="the API served again")
    eventually(lambda: not firing(machine), within=60, every=0.5, what="the alarm's end")


def installs(machine):
    machine.run(f"systemd-run --quiet --unit lab {HOME}/cardea-lab")
    # Read in the repository, as the package is not there yet; `make package` was run before.
    [command] = [block.text for block in PAGE.blocks if "make package" in block.text]
    machine.run(command.replace("make package\n", ""))
    live = block(machine, "how-to/systemd.md", "9901/livez")
    eventually(lambda: machine.said(live) == (0, "ok\n"), what="the first file's /livez")


def is_served(machine):
    """docs/how-to/systemd.md from its second step on, with the reader's addresses, and with the API of docs/start/oauth-api.md beside."""
    page = "how-to/systemd.md"
    machine.run("printf 'lab-password-1\\n' >hr-password")
    machine.run(block(machine, page, "hr-password /etc/cardea/secrets/"))
    writes_secret(machine, "client-secret", SECRET)
    text = block(machine, page, "oam_webgate:").replace("https://oam.example.com:14100", "http://127.0.0.1:14100")
    ours, other = yaml.safe_load(text.replace("https://hr.example.com", "http://127.0.0.1:9101")), yaml.safe_load(block(machine, "start/oauth-api.md", "oauth2:"))
    billing = other["identities"]["billing"]
    billing["oauth2"]["client_secret"] = "file:/etc/cardea/secrets/client-secret"
    ours["identities"]["billing"] = billing
    ours["routes"].append({**other["routes"][0], "listen": "127.0.0.1:8081"})
    (machine.folder / "etc/cardea/cardea.yaml").write_text(yaml.safe_dump(ours))
    machine.run(block(machine, page, "rand -base64 32"))
    said = machine.run(block(machine, page, "check --live"))
    assert said.startswith("good\n") and said.endswith("good\n") and "skip" not in said, said
    assert "identity hr" in said and "logged in" in said and "identity billing" in said and "token obtained" in said, said
    seen = machine.run(block(machine, page, "journalctl -u cardea --output cat | tail"))
    assert "active (running)" in seen and '"ready":true' in seen and EMPLOYEE in seen and "fresh" in seen, seen
    assert machine.run("curl -s http://127.0.0.1:8081/api/employees/42") == EMPLOYEE
    # Nothing has gone wrong but what the page tells: the file of before gave the store's folder up.
    log = machine.run("journalctl -u cardea --output cat").splitlines()
    wrong = [json.loads(line)["reason"] for line in log if '"level":"error"' in line]
    assert set(wrong) <= {"restart needed: outside the sandbox: /var/lib/cardea"}, wrong


def writes_secret(machine, name, value):
    """As docs/how-to/systemd.md says of hr-password."""
    machine.run(f"printf '%s\\n' '{value}' >{name}")
    machine.run(block(machine, "how-to/systemd.md", "hr-password /etc/cardea/secrets/").replace("hr-password", name))


def watches(machine):
    """docs/how-to/monitoring.md, with a second in the place of its 15."""
    page = "how-to/monitoring.md"
    (machine.folder / "root/prometheus.yml").write_text(block(machine, page, "scrape_configs:").replace("15s", "1s"))
    machine.run(block(machine, page, "apt install prometheus"))
    look = block(machine, page, "query=cardea_ready")

    def is_watched():
        status, out = machine.said(look)
        return status == 0 and '"1"]' in out and '"alerts":[]' in out

    eventually(is_watched, within=60, every=0.5, what="Prometheus having the gateway's series, and no alarm")


def firing(machine):
    """The alarm of the quarantine, as Prometheus tells it; None where it is silent."""
    told = json.loads(machine.run("curl -s http://127.0.0.1:9090/api/v1/alerts"))["data"]["alerts"]
    assert all(alert["labels"]["alertname"] == "CardeaIdentityQuarantined" for alert in told if alert["state"] == "firing"), told
    return next((alert for alert in told if alert["state"] == "firing"), None)


def finds_the_cause(machine, alert):
    """The alarm names a page and a section of it; the page's three looks and the section's line of the log say what is wrong."""
    path, _, section = alert["annotations"]["runbook_url"].partition("#")
    text = (machine.folder / path.lstrip("/")).read_text()
    assert path == f"/{PAGES}/how-to/incident.md" and f'<a id="{section}"></a>' in text
    told = text.split(f'<a id="{section}"></a>')[1].split("<a id=")[0]
    assert "`credential quarantined`" in told and "Write the right one to the file of its reference" in told, told
    seen = machine.run(block(machine, "how-to/incident.md", "cardea tokens  "))
    assert "quarantined" in seen and '"billing":"quarantined"' in seen, seen
    [line] = [json.loads(line) for line in seen.splitlines() if '"credential quarantined"' in line]
    assert line["identity"] == "billing" and "invalid_client" in line["reason"] and "127.0.0.1:14100" in line["reason"], line
    asked = block(machine, "how-to/incident.md", "cardea explain GET").replace("8080/hr/rest", "8081/api")
    assert "state      quarantined" in machine.run(asked)
