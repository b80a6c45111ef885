"""Gateways that share a server."""

from harness import eventually, together

KEY = "ZmxlZXQta2V5LWZvci10ZXN0cy1vZi0zMi1vY3RldHM="


def join(gateway, shared, **store):
    """Makes a configured gateway one of the fleet."""
    gateway.config["store"] = {"path": str(gateway.store), "key": gateway.secret("fleet-key", KEY), "shared": shared, **store}
    return gateway


def fleet(gateways, count, shared, configure):
    made = [gateways(f"edge{index}") for index in range(count)]
    for gateway in made:
        configure(gateway)
        join(gateway, shared)
    together(count, lambda index: made[index].start())
    for gateway in made:
        eventually(lambda: state(gateway) == "serving", what="the shared store in use")
    return made


def state(gateway):
    return gateway.ask("/status").json["shared"]["state"]
