"""The real gateway with a listener for each kind of route, in front of one upstream."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Promises"))

import forwarding
from harness import Cardea, Lab, executable, free_port  # noqa: F401  (the others take them from here)
from wire import address


def routes(origin):
    """In the order of their numbers: one that changes nothing, one with a credential, one that edits."""
    to = origin.encode()
    return [
        forwarding.Route("raw"),
        forwarding.Route("key", host=to, drops=frozenset({b"x-api-key"}), credential=((b"X-Api-Key", forwarding.KEY),)),
        forwarding.Route(
            "edited",
            prefix=b"/base",
            strips=b"/svc",
            host=to,
            drops=frozenset({b"x-debug", b"x-set"}),
            sets=((b"X-Set", b"one"),),
            claims=True,
        ),
    ]


def configure(gateway, origin):
    """Gives the addresses of the routes' listeners."""
    ports = [free_port() for _ in range(3)]
    free = {"callers": "local", "hosts": ["any"], "rewrite": {"response": "off"}}
    key = gateway.secret("api-key", forwarding.KEY.decode())
    places = [f"127.0.0.1:{port}" for port in ports]
    edited = free | {"rewrite": {"response": "off", "strip_prefix": "/svc"}}
    gateway.config = gateway.frame(
        {
            "threads": 1,
            "log": {"level": "warning", "access": "off"},
            "identities": {"key": {"static": {"value": key, "header": "X-Api-Key"}}},
            "listeners": {f"l{index}": {"address": place, "http": [1.1]} for index, place in enumerate(places)},
            "routes": [
                {
                    "name": "raw",
                    "listen": "l0",
                    "to": f"http://{origin}",
                    "use": "none",
                    "paths": "raw",
                    "host": "caller",
                }
                | free,
                {"name": "key", "listen": "l1", "to": f"http://{origin}", "use": "key", "cache_control": "pass"} | free,
                {
                    "name": "edited",
                    "listen": "l2",
                    "to": f"http://{origin}/base",
                    "use": "none",
                    "paths": "raw",
                    "headers": {"set": {"X-Set": "one"}, "remove": ["X-Debug"]},
                    "forwarded": {"fields": "both", "caller": "address"},
                }
                | edited,
            ],
        }
    )
    return [address(place) for place in places]
