"""Promise: where an in-house system says how many attempts are left, the last one stays with the account's owner."""

import json
import time

import pytest

from harness import eventually
from scripted import Scripted, answer, problem_type

RIGHT = "the-password-of-today"


class Login:
    """A login that refuses every password but RIGHT, and says `left` in turn."""

    def __init__(self, *left):
        self.left = list(left)
        self.seen = []

    def __call__(self, peer):
        for request in peer.requests():
            password = json.loads(request.body)["password"]
            self.seen.append(password)
            if password == RIGHT:
                peer.send(answer(b'{"token":"t-1"}'))
            else:
                left = self.left.pop(0) if self.left else 0
                peer.send(answer(json.dumps({"left": left} if left != "" else {}).encode(), status=b"401 No"))


def api(peer):
    for _ in peer.requests():
        peer.send(answer(b"yes"))


def inhouse(gateway, login, upstream, attempts=None, token=None, name="only"):
    origin = f"http://{login.address}"
    recipe = {
        "secrets": {"password": {"value": gateway.secret("password", "wrong-1"), "to": origin}},
        "steps": [{"name": "login", "post": f"{origin}/login", "json": {"password": "{secret.password}"}, "take": {"token": {"json": "/token"}}}],
        "token": "{login.token}",
        "attempts": attempts or {"json": "/left"},
    }
    way = gateway.route(name, upstream.address)
    gateway.config = gateway.frame({"identities": {name: {"recipe": recipe, "token": {"negative_for": "0s"} | (token or {})}}, "routes": [way]})
    return gateway


def tried(gateway, login, password, expected):
    """Writes another password and asks until it was sent; where it is not to be, for as long as four looks at it take."""
    before = len(login.seen)
    gateway.secrets.append(password)
    (gateway.folder / "password").write_text(password)
    # A quarantined identity looks at its secrets at most once a second.
    end = time.monotonic() + (20 if expected else 4)
    while time.monotonic() < end and len(login.seen) == before:
        gateway.get("/ok")
        time.sleep(0.2)
    return len(login.seen) - before


@pytest.mark.parametrize("left, sent", [(5, 1), (2, 1), (1, 0), (0, 0), ("", 1), ("many", 0)])
def test_another_secret_is_tried_only_while_one_would_be_left(gateway, left, sent):
    """The counter belongs to the account: a new password does not refill it."""
    login = Login(left, 4, 4)
    with Scripted(login) as server, Scripted(api) as upstream:
        inhouse(gateway, server, upstream).start()
        for _ in range(3):
            assert problem_type(gateway.get("/ok")) == "credential-quarantined"
        assert login.seen == ["wrong-1"]
        gateway.kill()
        gateway.start()
        assert problem_type(gateway.get("/ok")) == "credential-quarantined"
        assert tried(gateway, login, "wrong-2", sent) == sent


def test_the_last_one_may_be_spent_if_the_operator_says_so(gateway):
    login = Login(1)
    with Scripted(login) as server, Scripted(api) as upstream:
        inhouse(gateway, server, upstream, token={"allow_last_attempt": True}).start()
        gateway.get("/ok")
        gateway.secrets.append(RIGHT)
        (gateway.folder / "password").write_text(RIGHT)
        eventually(lambda: gateway.get("/ok").status == 200, within=20, every=0.2, what="the right password in use")
        assert login.seen == ["wrong-1", RIGHT]


def test_a_reset_is_the_operators_word(gateway):
    login = Login(1)
    with Scripted(login) as server, Scripted(api) as upstream:
        inhouse(gateway, server, upstream).start()
        gateway.get("/ok")
        (gateway.folder / "password").write_text(RIGHT)
        gateway.secrets.append(RIGHT)
        assert gateway.command("reset", "only")[0] == 0
        eventually(lambda: gateway.get("/ok").status == 200, within=20, every=0.2, what="the right password in use")
        assert login.seen == ["wrong-1", RIGHT]


def test_a_success_of_one_account_frees_no_other(gateway):
    """Two credentials at one issuer: each has its own counter."""
    login = Login(5, 5, 5)
    with Scripted(login) as server, Scripted(api) as upstream:
        inhouse(gateway, server, upstream)
        other = json.loads(json.dumps(gateway.config["identities"]["only"]))
        other["recipe"]["secrets"]["password"]["value"] = gateway.secret("other-password", RIGHT)
        other["recipe"]["steps"][0]["json"]["user"] = "other"
        gateway.config["identities"]["other"] = other
        way = gateway.route("other", upstream.address) | {"match": {"path": "/other/"}}
        gateway.config["routes"].insert(0, way)
        gateway.start()
        assert problem_type(gateway.get("/ok")) == "credential-quarantined"
        assert gateway.get("/other/ok").status == 200
        for _ in range(3):
            assert problem_type(gateway.get("/ok")) == "credential-quarantined"
        assert login.seen.count("wrong-1") == 1
