"""Promise: a secret that takes its time holds up the requests that need it and nothing else."""

import threading
import time

from harness import eventually
from scripted import Issuer, Scripted, echo, identified

SECONDS = 2


def test_probes_and_other_routes_answer_while_a_program_runs(gateway):
    program, begun = gateway.folder / "slow-secret", gateway.folder / "begun"
    program.write_text(f"#!/bin/sh\ntouch {begun}\nsleep {SECONDS}\nprintf client-secret-of-a-program\n")
    program.chmod(0o700)
    gateway.secrets.append("client-secret-of-a-program")
    with Scripted(echo) as upstream, Scripted(Issuer()) as issuer:
        block = {
            "token_url": f"http://{issuer.address}/token",
            "client_id": "a",
            "client_secret": f"exec:{program}",
        }
        identified(gateway, upstream, {"oauth2": block})
        open_ = gateway.route("none", upstream.address) | {"name": "open", "match": {"path": "/open/"}}
        gateway.config["routes"].insert(0, open_)
        gateway.start()
        begun.unlink(missing_ok=True)
        found = []
        caller = threading.Thread(target=lambda: found.append(gateway.get("/slow")))
        caller.start()
        eventually(begun.exists, what="the program running")
        start = time.monotonic()
        for ask in (lambda: gateway.ask("/livez"), lambda: gateway.ask("/metrics"), lambda: gateway.get("/open/a")):
            assert ask().status == 200
        assert time.monotonic() - start < SECONDS / 2 and not found
        caller.join(20)
        assert found[0].status == 200
        assert upstream.requests[-1].field("Authorization") == "Bearer token-1"
