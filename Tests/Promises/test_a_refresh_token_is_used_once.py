"""Promise: a refresh token that its use replaces is used once, whatever happens; its successor is on disk before the access token
that came with it is used."""

import json
import signal

import pytest

from harness import call, eventually, together
from small_disk import SmallDisk
from test_a_damaged_store_does_not_stop_the_gateway import readiness

ANNA = "pa ss+wörd&1"


def identity(gateway, provider, grant="password", **more):
    provider.client("c", secret="client-x-1", grants=["password", "refresh_token"])
    block = {
        "token_url": provider.issuer + "/token",
        "grant": grant,
        "client_id": "c",
        "client_secret": gateway.secret("client-secret", "client-x-1"),
    }
    if grant == "password":
        block |= {"username": "anna", "password": gateway.secret("anna", ANNA)}
    return {"oauth2": {**block, **more}}


def first_refresh_token(provider):
    client = {"secret": "client-x-1", "grants": ["password", "refresh_token"]}
    provider.client("c", auth="client_secret_post", **client)
    body = b"grant_type=password&username=anna&password=pa+ss%2Bw%C3%B6rd%261&client_id=c&client_secret=client-x-1&scope=read+write"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = call(provider.issuer.removeprefix("http://"), "POST", "/token", body, form)
    assert answer.status == 200, answer
    provider.client("c", **client)
    return answer.json["refresh_token"]


def revoke(gateway, provider, name="api"):
    """The token that the route uses is refused from now on."""
    answer = call(gateway.listens[name])
    assert answer.status == 200, f"{answer}\n{gateway.text()}"
    provider.post("revoke_access", {"jti": [answer.json["jti"]]})
    return answer.json


def grants(provider):
    return [entry["grant"] for entry in provider.steps("token")]


def test_the_password_is_sent_once(gateway, provider):
    gateway.provider(provider, api=identity(gateway, provider)).start()
    for _ in range(4):
        revoke(gateway, provider)
    assert call(gateway.listens["api"]).json["sub"] == "anna"
    assert grants(provider) == ["password"] + ["refresh_token"] * 4
    assert provider.steps("refresh_reused") == []


def test_a_configured_refresh_token_is_only_the_first(gateway, provider):
    token = gateway.secret("refresh", first_refresh_token(provider))
    gateway.provider(provider, api=identity(gateway, provider, "refresh_token", refresh_token=token)).start()
    for _ in range(3):
        revoke(gateway, provider)
    gateway.kill()
    # The file still has the first, which would revoke everything if it were sent again.
    gateway.start()
    for _ in range(3):
        revoke(gateway, provider)
    assert provider.steps("refresh_reused") == []


def test_two_routes_take_turns(gateway, provider):
    """Two access keys of one identity live on one refresh token."""
    gateway.provider(provider, api=identity(gateway, provider))
    second = dict(gateway.config["routes"][0], name="second", scopes=["write"])
    gateway.listens["second"] = second["listen"] = gateway.listens["api"].replace("127.0.0.1", "127.0.0.2")
    gateway.config["routes"][0]["scopes"] = ["read", "write"]
    gateway.config["routes"].append(second)
    gateway.start()
    revoke(gateway, provider)
    for _ in range(4):
        revoke(gateway, provider)
        revoke(gateway, provider, "second")
        answers = together(8, lambda index: call(gateway.listens[["api", "second"][index % 2]]).status)
        assert answers == [200] * 8
    assert provider.steps("refresh_reused") == []
    assert len(provider.steps("password")) <= 2


def test_a_crash_between_two_uses(gateway, provider):
    token = gateway.secret("refresh", first_refresh_token(provider))
    gateway.provider(provider, api=identity(gateway, provider, "refresh_token", refresh_token=token))
    for _ in range(4):
        gateway.start()
        revoke(gateway, provider)
        assert call(gateway.listens["api"]).status == 200
        gateway.kill()
    assert provider.steps("refresh_reused") == []


def test_a_refused_one_gives_way_to_the_password(gateway, provider):
    gateway.provider(provider, api=identity(gateway, provider)).start()
    revoke(gateway, provider)
    provider.post("forget_refresh")
    revoke(gateway, provider)
    assert call(gateway.listens["api"]).status == 200
    assert len(provider.steps("password")) == 2


def test_a_refused_one_with_nothing_behind_it(gateway, provider):
    token = gateway.secret("refresh", first_refresh_token(provider))
    gateway.provider(provider, api=identity(gateway, provider, "refresh_token", refresh_token=token)).start()
    revoke(gateway, provider)
    provider.post("forget_refresh")
    for _ in range(5):
        answer = call(gateway.listens["api"])
        assert (answer.status, answer.problem["type"]) == (503, "urn:cardea:problems/credential-quarantined")
    refused = len(provider.steps("refused"))
    assert refused <= 2
    # A new one, as an operator would put it there, is taken up.
    gateway.secret("refresh", first_refresh_token(provider))
    eventually(lambda: call(gateway.listens["api"]).status == 200, every=0.1, what="the new one to be taken up")


def test_a_wrong_password_is_sent_once(gateway, provider):
    wrong = gateway.secret("wrong", "wrong-password")
    gateway.provider(provider, api=identity(gateway, provider, password=wrong)).start()
    for _ in range(5):
        answer = call(gateway.listens["api"])
        assert (answer.status, answer.problem["type"]) == (503, "urn:cardea:problems/credential-quarantined")
    gateway.stop()
    gateway.start()
    assert call(gateway.listens["api"]).status == 503
    assert len(provider.steps("password")) == 1


def begun(gateway, provider, **more):
    """A gateway that has used the first refresh token, which is one of the configuration."""
    token = gateway.secret("refresh", first_refresh_token(provider))
    gateway.provider(provider, api=identity(gateway, provider, "refresh_token", refresh_token=token, **more)).start()
    assert call(gateway.listens["api"]).status == 200, gateway.text()


def reload(gateway):
    def edition():
        return gateway.ask("/readyz").json["configuration"]["edition"]

    before = edition()
    gateway.file.write_text(json.dumps(gateway.config))
    gateway.process.send_signal(signal.SIGHUP)
    eventually(lambda: edition() > before, what="the next edition")


def test_a_purge_ends_no_login(gateway, provider):
    begun(gateway, provider)
    for words in (["--all"], ["api"], ["--all"]):
        assert gateway.command("tokens", "purge", *words)[0] == 0
        assert call(gateway.listens["api"]).status == 200, gateway.text()
    assert provider.steps("refresh_reused") == []


def test_a_reload_ends_no_login(gateway, provider):
    begun(gateway, provider)
    block = gateway.config["identities"]["api"]["oauth2"]
    for change in ({"extra": {"tenant": "a"}}, {"headers": {"X-Tenant": "a"}}):
        block.update(change)
        reload(gateway)
        assert call(gateway.listens["api"]).status == 200, gateway.text()
        for name in change:
            del block[name]
        reload(gateway)
        assert call(gateway.listens["api"]).status == 200, gateway.text()
    # Out and back.
    whole = json.loads(json.dumps(gateway.config))
    gateway.config["identities"] = {"other": {"static": {"value": gateway.secret("other", "another-secret-1")}}}
    gateway.config["routes"][0]["use"] = "other"
    reload(gateway)
    gateway.config = whole
    reload(gateway)
    assert call(gateway.listens["api"]).status == 200, gateway.text()
    revoke(gateway, provider)
    assert call(gateway.listens["api"]).status == 200, gateway.text()
    assert provider.steps("refresh_reused") == []


def test_a_store_that_cannot_be_read_costs_no_login(gateway, provider):
    begun(gateway, provider)
    key = gateway.folder / "store-key"
    whole = key.read_bytes()
    gateway.stop()
    key.write_text("YW5vdGhlci1rZXktb2YtMzItb2N0ZXRzLWhlcmUhISE=")
    gateway.start(ready=False)
    eventually(lambda: "the store cannot be read" in readiness(gateway), what="a word of the store")
    uses = len(provider.steps("token"))
    answer = call(gateway.listens["api"])
    assert (answer.status, answer.problem["type"]) == (503, "urn:cardea:problems/store-unusable"), answer
    assert len(provider.steps("token")) == uses
    gateway.stop()
    key.write_bytes(whole)
    gateway.start()
    revoke(gateway, provider)
    assert call(gateway.listens["api"]).status == 200, gateway.text()
    assert provider.steps("refresh_reused") == []


def test_a_live_check_spends_none(gateway, provider, tmp_path):
    begun(gateway, provider)
    uses = len(provider.steps("token"))
    copy = json.loads(gateway.file.read_text())
    copy["store"] = {"path": str(tmp_path / "copy.db")}
    file = tmp_path / "copy.json"
    file.write_text(json.dumps(copy))
    status, out, errors = gateway.command("check", "--live", str(file), config=False)
    assert status == 0, (out, errors)
    skipped = next(line for line in out.splitlines() if line.startswith("skip  identity api"))
    assert "not tried: it would spend the refresh token; ask the running gateway" in skipped, out
    gateway.stop()
    assert "not tried: it would spend the refresh token" in gateway.command("check", "--live")[1]
    assert len(provider.steps("token")) == uses
    gateway.start()
    revoke(gateway, provider)
    assert call(gateway.listens["api"]).status == 200, gateway.text()
    assert provider.steps("refresh_reused") == []


def test_two_identities_with_one_first_token_are_named(gateway, provider):
    begun(gateway, provider)
    identities = gateway.config["identities"]
    identities["reports"] = json.loads(json.dumps(identities["api"]))
    identities["reports"]["oauth2"]["extra"] = {"tenant": "a"}
    place = gateway.secret("copy-of-refresh", (gateway.folder / "refresh").read_text())
    identities["reports"]["oauth2"]["refresh_token"] = place
    gateway.file.write_text(json.dumps(gateway.config))
    status, out, _ = gateway.command("check")
    assert status == 0 and "'refresh_token' of the identities 'api', 'reports' is one and the same token" in out, out


@pytest.mark.parametrize("ends", ["kill", "stop"])
@pytest.mark.alone
def test_a_full_disk_costs_no_login(gateway, provider, ends):
    with SmallDisk(gateway.folder / "disk") as disk:
        gateway.store = disk.folder / "tokens.db"
        begun(gateway, provider)
        disk.fill()
        for _ in range(20):
            revoke(gateway, provider)
        # A state is told once, and not with each row that still finds a place.
        assert len(gateway.told(lambda event: event["message"] == "store degraded")) == 1
        getattr(gateway, ends)()
        disk.fill()
        gateway.start()
        for _ in range(3):
            revoke(gateway, provider)
        assert call(gateway.listens["api"]).status == 200, gateway.text()
        assert provider.steps("refresh_reused") == []
        # Nobody asks for anything until there is room again, and it is found out all the same.
        assert gateway.ask("/status").json["store"]["state"] == "degraded"
        disk.free()
        eventually(lambda: gateway.ask("/status").json["store"]["state"] == "serving", within=70, what="a store that works")
        gateway.stop()
