"""NTLM by another hand: Apache with mod_auth_gssapi and gss-ntlmssp takes it within Negotiate."""

import contextlib

import pytest

from harness import Cardea, held
from kerberos import Apache

PASSWORD = "pass-of-anna-6"


@pytest.fixture
def gateway(page_lab, tmp_path):
    with contextlib.contextmanager(held)(Cardea, page_lab, tmp_path) as make:
        yield make()


def test_apache_takes_it(gateway, tmp_path):
    for place in (tmp_path, *tmp_path.parents[:2]):
        place.chmod(0o755)
    users = tmp_path / "users"
    users.write_text(f"CORP:anna:{PASSWORD}\n")
    users.chmod(0o644)
    with contextlib.closing(Apache(tmp_path / "apache", once=True, users=users)) as server:
        block = {"username": "CORP\\anna", "password": gateway.secret("password", PASSWORD), "scheme": "negotiate"}
        gateway.config = gateway.frame({
            "threads": 1, "identities": {"ntlm": {"ntlm": block}},
            "routes": [gateway.route("ntlm", f"http://{server.address}") | {"allow_cleartext": True}]})
        gateway.start()
        for _ in range(3):
            answer = gateway.get("/page")
            assert (answer.status, answer.body) == (200, b"the page"), (answer, gateway.text(), (tmp_path / "apache/error.log").read_text())
            assert "anna" in answer.field("Caller")
        # One connection, two messages on it.
        assert [line[0] for line in server.asked()] == ["401", "200", "200", "200"]
