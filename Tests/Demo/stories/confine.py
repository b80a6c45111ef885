"""A program that nobody trusts with the key, Cardea around it."""

import json
import os
import pathlib
import secrets
import subprocess
import textwrap

from stage import API, GATEWAY, ROOT, Deviation, ask, expect, page

TITLE = "a program that nobody trusts with the key of an API, Cardea around it"
KEY = secrets.token_urlsafe(24)
SECRETS = {"lab-key": KEY}
LAB = ["--api-key-file", "{folder}/lab-key"]
TRY = "/key/employees/7"
# Looks for the key where a program would, and tries to send what it has elsewhere. Prints what came of each attempt.
PROGRAM = textwrap.dedent("""
    import glob, json, os, socket, urllib.error, urllib.request
    told = {"environment": os.environ["API_KEY"]}
    straight = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    def ask(name, url, open=urllib.request.urlopen, **fields):
        try:
            with open(urllib.request.Request(url, headers=fields), timeout=10) as answer:
                told[name] = [answer.status, answer.read().decode()]
        except urllib.error.HTTPError as answer:
            told[name] = [answer.code, answer.read().decode()]
        except OSError as error:
            told[name] = [0, str(error)]
    key = os.environ["API_KEY"]
    ask("the key's place", "http://employees.test/key/employees/42", **{"X-Api-Key": key})
    ask("another field", "http://employees.test/key/employees/42", **{"X-Other": key})
    ask("the query", "http://employees.test/key/employees/42?key=" + key)
    ask("around", "http://%(api)s/key/employees/42", straight.open, **{"X-Api-Key": key})
    found = ""
    for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline") + ["%(folder)s/store-key", "%(folder)s/lab-key"]:
        try:
            found += open(path, errors="replace").read()
        except OSError:
            pass
    told["environments and files"] = found
    print(json.dumps(told))
""")


def configuration(folder):
    os.environ["API_KEY"] = KEY
    return pathlib.Path(__file__).with_suffix(".yaml")


def tell(lab, gateway):
    page.step(1, "The program with the key in its environment, as it is run today")
    told = run(gateway, [])
    expect((told["environment"], told["around"][0]), (KEY, 200), "key and status")
    page.row("API_KEY is the key", f"{page.status(200)}, from anywhere")
    page.step(2, "The same program inside of cardea run --confine")
    told = run(gateway, [gateway.binary, "run", "--confine", "--config", gateway.config, "--"])
    expect(KEY in json.dumps(told), False, "the key in what the program saw")
    page.row("API_KEY", told["environment"])
    inside(told)
    gateway.start()
    expect(ask(GATEWAY, TRY)[0], 200, "status without a program")


def inside(told):
    status, body = told["the key's place"]
    expect((status, json.loads(body)["id"]), (200, 42), "status and employee where the key belongs")
    page.row("where it belongs", page.status(200), body.strip())
    for place in ("another field", "the query"):
        status, body = told[place]
        expect((status, json.loads(body)["type"].rpartition("/")[2]), (403, "placeholder-misplaced"), f"the answer to {place}")
        page.row(place, page.status(status), json.loads(body)["title"])
    expect(told["around"][0], 0, "status of the API without Cardea")
    page.row("around Cardea", told["around"][1])
    page.row("all it can read", "no key")


def run(gateway, before):
    source = PROGRAM % {"api": API, "folder": gateway.folder}
    page.line("   " + " ".join([*([] if not before else ["cardea", *before[1:]]), "python3", "program.py"]))
    done = subprocess.run(
        [*before, "python3", "-c", source], cwd=ROOT, env={**os.environ, "CARDEA_DEMO_DIR": str(gateway.folder)},
        capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise Deviation(f"the program ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])
