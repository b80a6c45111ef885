"""Promise: a kill -9 at any system call that the store makes loses at most an answer that was not committed yet, and the store opens
afterwards, every time."""

import json
import os
import shutil
import signal

import pytest

from harness import call, eventually
from test_a_refresh_token_is_used_once import first_refresh_token, grants, identity

# What the store changes files with. A kill at a call comes before it is done, so each state between two of them is met. The spots of the
# calls that come often are tried in parts; with each part, how many there are in it at least.
RARE = ["fsync", "ftruncate", "rename", "link", "flock", "fchmod"]
PARTS = [
    *[("new", ["pwrite64"], (part, 4), 10) for part in range(4)],
    *[("new", ["fdatasync"], (part, 2), 6) for part in range(2)],
    ("new", ["unlink", *RARE], (0, 1), 10),
    *[("old", ["pwrite64"], (part, 2), 6) for part in range(2)],
    ("old", ["fdatasync", "unlink", *RARE], (0, 1), 6),
]
MOST = 120


def traced(name, count):
    """Kills the first thread that comes to its `count`th call of that name."""
    return [
        "strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={name}", "-e", "signal=none",
        "-e", f"inject={name}:signal=SIGKILL:when={count}",
    ]  # fmt: skip


def ask(gateway):
    try:
        return call(gateway.listens["api"])
    except OSError:
        return None


def rotate_until_killed(gateway, provider, known):
    """How many callers were answered with a token of this life, each of which has a refresh token of its own behind it; and whether it
    ended by itself."""
    answered = 0
    eventually(lambda: gateway.process.poll() is not None or is_ready(gateway), within=60, what="ready or killed")
    for _ in range(3):
        answer = ask(gateway)
        if answer is None or answer.status != 200:
            break
        answered += answer.json["jti"] not in known
        provider.post("revoke_access", {"jti": [answer.json["jti"]]})
    else:
        # The end writes too.
        with open(f"/proc/{gateway.process.pid}/task/{gateway.process.pid}/children") as file:
            for child in file.read().split():
                os.kill(int(child), signal.SIGTERM)
    return answered, gateway.process.wait(20) == 0


def is_ready(gateway):
    try:
        return call(gateway.admin, path="/readyz", timeout=5).status == 200
    except OSError:
        return False


def seed(gateway, provider):
    gateway.secret("refresh", first_refresh_token(provider))


def spots(gateway, provider, store, calls, part, known):
    """Starts the gateway to be killed at every call in turn; gives what the killed one was answered and granted."""
    first, every = part
    for name in calls:
        for count in range(1 + first, MOST, every):
            if store == "new":
                for path in gateway.folder.glob("tokens.db*"):
                    path.unlink()
                seed(gateway, provider)
            before = len(grants(provider))
            gateway.wrapper = traced(name, count)
            gateway.start(ready=False)
            gateway.may_exit = True
            answered, survived = rotate_until_killed(gateway, provider, known)
            gateway.wrapper = []
            if survived:
                break
            yield f"{name} {count}", answered, len(grants(provider)) - before
        else:
            pytest.fail(f"still killed at {name} {MOST}")


def one_life(gateway):
    """Leaves a store behind that has a token, whose identifier it gives."""
    gateway.start()
    answer = ask(gateway)
    assert answer.status == 200, gateway.text()
    gateway.kill()
    return answer.json["jti"]


@pytest.mark.parametrize("store, calls, part, least", PARTS, ids=lambda value: str(value[0]) if isinstance(value, (list, tuple)) else str(value))
def test_at_every_call(gateway, provider, store, calls, part, least):
    assert shutil.which("strace"), "strace is not there: make setup"
    token = gateway.secret("refresh", first_refresh_token(provider))
    gateway.provider(provider, api=identity(gateway, provider, "refresh_token", refresh_token=token))
    # The identifiers of tokens that an earlier life was granted, and left in the store.
    known, lost, kills = set(), [], 0
    if store == "old":
        known.add(one_life(gateway))
    for spot, answered, granted in spots(gateway, provider, store, calls, part, known):
        kills += 1
        if gateway.store.exists():
            code, out, err = gateway.command("store", "verify", "--json")
            assert code == 0, (spot, out, err)
            found = json.loads(out)
            assert found["damaged"] == 0 and found.get("finding") is None, (spot, found)
        gateway.start()
        answer = ask(gateway)
        if answer.status == 200:
            # What is in the store is worth something: it renews.
            provider.post("revoke_access", {"jti": [answer.json["jti"]]})
            answer = ask(gateway)
            assert answer.status == 200, (spot, answer, gateway.text())
            known.add(answer.json["jti"])
        else:
            # The issuer had given a successor that no caller was answered with and that was not on disk yet.
            assert granted == answered + 1, (spot, granted, answered, gateway.text())
            lost.append(spot)
            gateway.kill()
            seed(gateway, provider)
            gateway.start()
            answer = ask(gateway)
            assert answer.status == 200, (spot, gateway.text())
            known.add(answer.json["jti"])
        gateway.kill()
    assert kills >= least, kills
    assert not [event for event in gateway.events() if "set aside" in event["message"]]
    print(f"{store} {calls}: {kills} kills, answers lost at {lost}")
