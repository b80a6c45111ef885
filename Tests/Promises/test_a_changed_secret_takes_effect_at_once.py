"""Promise: a new secret value is used without a restart, also when the file is swapped by a link."""

import os

from harness import eventually


def test_a_static_value_is_replaced_before_anybody_asks(gateway):
    secret = gateway.secret("api-key", "lab-key-of-yesterday")
    gateway.with_identity({"static": {"value": secret, "header": "X-Api-Key"}}).start()
    assert gateway.get("/key/employees/1").status == 502
    path = gateway.folder / "api-key"
    fresh = gateway.folder / "api-key.new"
    fresh.write_text("lab-key-7f3a9c")
    os.chmod(fresh, 0o600)
    os.replace(fresh, path)
    eventually(lambda: gateway.get("/key/employees/1").status == 200, what="the new value to be used")
