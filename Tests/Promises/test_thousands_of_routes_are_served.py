"""Promise: a file of thousands of routes and identities is served as a small one is, each route with its own credential, also after
reloads that turn it over. Nothing is measured in seconds: what takes a step for each pair of routes does not come to its end here."""

import random

from scripted import Scripted, answer
from test_a_reload_drops_nothing import reload

COUNT = 1500


def numbers(gateway, order, address):
    """Route n, below /api/rn/, carries the credential of identity n."""
    secret = gateway.secret("shared", "one-for-all-9")
    identities = {f"i{n}": {"static": {"value": secret, "header": "X-Key", "prefix": f"{n} "}} for n in order}
    routes = [
        gateway.route(f"i{n}", address) | {"name": f"r{n}", "match": {"path": f"/api/r{n}/"}} for n in order
    ]
    return gateway.frame({"identities": identities, "routes": routes, "log": {"access": "off"}})


def echo(peer):
    for request in peer.requests():
        name, _, rest = (request.field("X-Key") or "").partition(" ")
        peer.send(answer(f"{name} {'known' if rest == 'one-for-all-9' else 'unknown'}".encode()))


def test_each_route_has_its_own_credential_also_after_reloads(gateway):
    order = list(range(COUNT))
    picked = [0, 1, COUNT // 2, COUNT - 1, *random.sample(order, 20)]
    with Scripted(echo) as api:
        gateway.config = numbers(gateway, order, api.address)
        gateway.start()
        for turn in range(3):
            for n in picked:
                served = gateway.get(f"/api/r{n}/x")
                assert (served.status, served.body) == (200, f"{n} known".encode()), (turn, n, served)
            assert gateway.get(f"/api/r{COUNT}/x").status == 404
            random.shuffle(order)
            reload(gateway, numbers(gateway, order, api.address))
        counts = gateway.metrics()
        # What a route has counted stays its own, wherever it stands in the file.
        for n in set(picked):
            name = (("code", "200"), ("route", f"r{n}"))
            assert counts["cardea_requests_total", name] == 3 * picked.count(n), n
