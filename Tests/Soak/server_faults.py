"""Faults of the servers, which all gateways have at once, and what operators do."""

import contextlib
import subprocess
import time

from fault import Fault
from fleet import write_secret


class RedisRestart(Fault):
    """Redis is killed, and starts again with what it had."""

    weight, seconds, touches, of_gateway = 2, (0.2, 10), ("redis",), False

    def begin(self):
        self.world.servers.redis.die()

    def end(self):
        self.world.servers.redis.start()


class RedisWiped(Fault):
    """Redis is killed, and starts again without anything."""

    weight, seconds, touches, of_gateway = 1, (0.1, 4), ("redis", "lost"), False

    def begin(self):
        self.world.servers.redis.die()

    def end(self):
        for path in (self.world.servers.folder / "redis").glob("appendonlydir/*"):
            path.unlink()
        self.world.servers.redis.start()


class RedisFrozen(Fault):
    """Redis takes connections and says nothing."""

    weight, seconds, touches, of_gateway = 2, (1, 15), ("redis",), False

    def begin(self):
        self.world.servers.redis.freeze()

    def end(self):
        self.world.servers.redis.thaw()


class IssuerKilled(Fault):
    """The issuer is killed, also between a judgement and its answer, and starts again."""

    weight, seconds, touches, of_gateway = 2, (0.1, 6), ("issuer",), False

    def begin(self):
        self.world.servers.issuer.die()

    def end(self):
        self.world.servers.issuer.start()


class IssuerFrozen(Fault):
    """The issuer takes connections and says nothing."""

    weight, seconds, touches, of_gateway = 1, (1, 8), ("issuer",), False

    def begin(self):
        self.world.servers.issuer.freeze()

    def end(self):
        self.world.servers.issuer.thaw()


class IssuerIll(Fault):
    """The issuer answers slowly, with 503, with a page, or in half."""

    weight, seconds, touches, of_gateway = 2, (1, 6), ("issuer",), False

    def prepare(self, draw):
        self.facts["mode"] = draw.choice(({"slow": 1.5}, {"fails": "unavailable"}, {"fails": "page"}, {"fails": "cut"}))

    def begin(self):
        self.world.servers.issuer_mode(**self.facts["mode"])

    def end(self):
        self.world.servers.issuer_mode()


class LabGone(Fault):
    """The lab's issuers and its protected systems close their doors."""

    weight, seconds, touches, of_gateway = 1, (1, 5), ("issuer", "upstream"), False

    def begin(self):
        for name in ("issuer", "protected"):
            self.world.servers.lab.post(f"/{name}/stop")

    def end(self):
        for name in ("issuer", "protected"):
            self.world.servers.lab.post(f"/{name}/start")


class UpstreamKilled(Fault):
    """The upstreams are killed, with whatever they were answering."""

    weight, seconds, touches, of_gateway = 1, (0.1, 3), ("upstream",), False

    def begin(self):
        self.world.servers.upstream.die()

    def end(self):
        self.world.servers.upstream.start()


class FilesKilled(Fault):
    """nginx is killed, and starts again."""

    weight, seconds, touches, of_gateway = 1, (0.1, 3), ("upstream",), False

    def begin(self):
        self.world.servers.files.die()

    def end(self):
        self.world.servers.files.start()


class Revoke(Fault):
    """Every token that was issued so far is refused from now on."""

    weight, seconds, touches, of_gateway = 3, (0, 0), (), False

    def begin(self):
        with contextlib.suppress(OSError):
            self.facts["before"] = self.world.servers.revoke()
            self.world.act("revoke", None, before=self.facts["before"])


class Purge(Fault):
    """`cardea tokens purge --all` at one gateway."""

    weight, seconds, touches = 1, (0, 0), ()

    def begin(self):
        began = time.monotonic()
        try:
            done = self.member.command("tokens", "purge", "--all", timeout=20)
            self.facts["status"] = done.returncode
            self.world.act("purge", self.member, began=began, status=done.returncode)
        except subprocess.TimeoutExpired:
            self.facts["status"] = "no answer"


class NewSecret(Fault):
    """The password that is always wrong is changed into another wrong one, for all gateways at once: one file serves them all."""

    weight, seconds, touches, of_gateway = 1, (0, 0), (), False

    def begin(self):
        self.world.secrets += 1
        write_secret(self.world.folder / "password-bruno", f"soakcanary-wrong-{self.world.secrets}")
        self.world.act("secret", None, number=self.world.secrets)
