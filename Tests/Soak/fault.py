"""A fault: what it does, to what, for how long, and what the machine must be able to do for it.

`touches` says what is disturbed, in words that the invariants understand: `process` (the gateway dies or pauses), `link` (its packets),
`clock`, `disk`, `redis` (it does not answer), `lost` (Redis has forgotten), `issuer`, `upstream`. A gateway's own fault touches that
gateway alone; one of a server touches all."""


class Fault:
    """`draw` decides everything that is left to chance, before anything is done."""

    weight, seconds, touches, of_gateway = 1, (2, 8), (), True
    # A spared gateway lives from the beginning to the end of the run, so that its memory can be looked at.
    kills = False

    def __init__(self, world, member, draw):
        self.world, self.member = world, member
        self.length = draw.uniform(*self.seconds)
        self.facts = {}
        self.prepare(draw)

    @classmethod
    def missing(cls, world):
        """Why this machine cannot do it; none where it can."""
        return None

    @classmethod
    def fits(cls, member):
        """Whether it can be done to this gateway."""
        return not (cls.kills and member.spared)

    def prepare(self, draw):
        pass

    def begin(self):
        pass

    def end(self):
        pass
