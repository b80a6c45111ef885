"""Promise: limits.connections_per_address bounds what one address can hold, and gives places back."""

from harness import eventually


def test_places_are_bounded_and_given_back(gateway):
    gateway.oauth(changes={"limits": {"connections_per_address": 3}}).start()
    held = [gateway.raw() for _ in range(3)]
    key = ("cardea_caller_connections", ())
    eventually(lambda: gateway.metrics()[key] == 3, what="the three to be counted, whichever loops took them")
    assert gateway.get("/api/employees/1").status == 503
    for connection in held:
        connection.socket.close()
    eventually(lambda: gateway.get("/api/employees/1").status == 200, what="places to be free again")
