"""Promise: more tokens than the hot cache holds cost no issuer call: what falls out comes back from the store."""

from harness import call, free_port
from scripted import Issuer, Scripted, echo

# One MiB is the smallest cache; forty tokens of this length are more.
LENGTH = 31_000
ROUTES = 40


def token(number):
    return "".join(f"{number:03d}{place:05d}" for place in range(LENGTH // 8))


def test_a_token_that_fell_out(gateway):
    script = Issuer(token=lambda number: token(number - 1))
    with Scripted(echo) as upstream, Scripted(script) as issuer:
        gateway.secrets += [token(0)[:1000]]
        block = {
            "token_url": f"http://{issuer.address}/token",
            "client_id": "a",
            "client_secret": gateway.secret("client", "c" * 20),
        }
        listens = [f"127.0.0.1:{free_port()}" for _ in range(ROUTES)]
        routes = [
            {"listen": listen, "to": f"http://{upstream.address}", "use": "api", "scopes": [f"s{number}"]}
            for number, listen in enumerate(listens)
        ]
        limits = {"hot_cache": "1MiB"}
        gateway.config = gateway.frame({"identities": {"api": {"oauth2": block}}, "routes": routes, "limits": limits})
        gateway.start()
        for turn in range(3):
            for listen in listens:
                assert call(listen, path=f"/{turn}").status == 200
        assert len(script.grants) == ROUTES
        for number, request in enumerate(upstream.requests):
            assert request.field("Authorization") == "Bearer " + token(number % ROUTES)
        samples = gateway.metrics()
        assert samples["cardea_hot_cache_evictions_total", ()] > 0
        assert samples["cardea_hot_cache_bytes", ()] <= samples["cardea_hot_cache_limit_bytes", ()] == 1 << 20
        lookups = {dict(labels)["result"]: n for (name, labels), n in samples.items() if name == "cardea_store_lookups_total"}
        # The first look of each key finds nothing; what fell out is found.
        assert lookups["found"] > 0 and lookups["missing"] <= ROUTES and lookups["failed"] == 0
        # Nor after a restart, which reads none of them.
        gateway.kill()
        gateway.start()
        for listen in listens:
            assert call(listen).status == 200
        assert len(script.grants) == ROUTES
