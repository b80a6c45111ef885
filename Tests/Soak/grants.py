"""Invariants about what reaches the issuers."""

import bisect
import collections

from verdict import gauge

# A refresh token's lock outlives the last sign of its gateway by so long (docs/design/fleet.md#lease).
SILENCE = 30.0
LEASE = 6.0
# A token of 5 s is due half of its life before its end, a tenth of that earlier by jitter (docs/design/tokens.md#times).
DUE = 2.2
# A second has so many turns of a gateway at a lock at most: each is a step, or the look of a request that comes too early.
TURNS = 20
SPENDING = ("password", "refresh_token", "login")
MENDS = ("purge", "reset", "renew", "secret")


def key(call):
    return call["c"], call["a"], call["u"], call["how"] if call["c"] in ("hr", "mfp") else ""


def by_key(history, *more):
    """Calls that say for whom they are, grouped, in the order of their beginnings."""
    groups = collections.defaultdict(list)
    for call in history.all("call"):
        if call.get("c"):
            groups[(*key(call), *(call[name] for name in more))].append(call)
    return groups


@gauge
def one_grant_for_a_key_in_a_gateway(history, weather, verdict):
    """A gateway has one grant for a key under way at a time. Excused: the process was replaced or paused, packets or the issuer were late,
    so that a call which was given up is still seen by the issuer; an operator changed what the call was for."""
    for calls in by_key(history, "g").values():
        for before, call in zip(calls, calls[1:]):
            verdict.checked += 1
            if call["t"] >= before["e"]:
                continue
            given_up = not before.get("whole")
            if (
                given_up
                or weather.disturbed(call["g"], before["t"], call["t"], "process", "link", "issuer")
                or weather.act_between(before["t"], call["t"], *MENDS)
            ):
                verdict.excused += 1
            else:
                verdict.breaks("two grants at once", before, call)


@gauge
def one_grant_for_a_key_in_the_fleet(history, weather, verdict):
    """The fleet has one grant for a key under way at a time, while Redis answers and keeps its data. Excused as above, and while Redis was
    disturbed for one of the two, or one of them was stopped."""
    words = ("process", "link", "issuer", "redis", "lost")
    for calls in by_key(history).values():
        for before, call in zip(calls, calls[1:]):
            if before["g"] == call["g"]:
                continue
            verdict.checked += 1
            if call["t"] >= before["e"]:
                continue
            excuse = not before.get("whole") or weather.act_between(before["t"], call["t"], *MENDS)
            if excuse or any(weather.disturbed(one["g"], before["t"], call["t"], *words) for one in (before, call)):
                verdict.excused += 1
            else:
                verdict.breaks("two gateways at once", before, call)


@gauge
def no_spending_step_without_a_lease(history, weather, verdict):
    """In a fleet no password, rotating refresh token or registration is sent without a lease that Redis gave before: in the time of a lease
    before the step this gateway was given a turn, or kept one (for a registration: was given any lease). A password was booked with its
    account in that time, too. Excused: the gateway was paused between, or packets or the issuer were late, so that the step arrived late.
    """
    given = {"turn": collections.defaultdict(list), "any": collections.defaultdict(list), "booked": collections.defaultdict(list)}
    turns = set()
    for step in history.stream("step"):
        what, gateway = step["what"], step["g"]
        if what == "booked":
            given["booked"][gateway].append(step["t"])
            continue
        given["any"][gateway].append(step["t"])
        if what == "turn":
            turns.add((gateway, step["lease"]))
        if what == "turn" or (what == "kept" and (gateway, step["lease"]) in turns):
            given["turn"][gateway].append(step["t"])
    for moments in (moments for kind in given.values() for moments in kind.values()):
        moments.sort()

    def lacks(kind, call):
        moments = given[kind][call["g"]]
        place = bisect.bisect_right(moments, call["t"] + 0.05)
        return not place or moments[place - 1] < call["t"] - LEASE - 1

    for call in history.all("call"):
        if call.get("how") not in (*SPENDING, "register"):
            continue
        verdict.checked += 1
        wanted = ["any"] if call["how"] == "register" else ["turn"] if call["how"] == "refresh_token" else ["turn", "booked"]
        missing = [kind for kind in wanted if lacks(kind, call)]
        if not missing:
            continue
        late = weather.disturbed(call["g"], call["t"] - LEASE, call["t"], "link", "issuer")
        if late or weather.spans(call["g"], ["process"], after=False).meet(call["t"] - 20, call["t"]):
            verdict.excused += 1
        else:
            verdict.breaks(f"a step without {' and '.join(missing)}", call)


@gauge
def a_refresh_token_is_not_sent_after_its_successor_was_readable(history, weather, verdict):
    """Once a refresh token's successor is committed, no gateway that can read it sends the old one. A commit is proved by what must come
    after it: the access token beside the successor was used, or the successor was sent. Excused: Redis has forgotten or was not there for
    this gateway, and the gateway had not used the successor itself; the disk was full and the process then died; an operator's reset.
    Where nothing proves a commit (the gateway may have died with it) one more try is allowed after 30 s of silence, and counted. An answer
    that the issuer cut has told nobody of the successor: tries after it are counted alone."""
    uses, first_served, own = collections.defaultdict(list), {}, {}
    for call in history.all("call"):
        if call.get("how") == "refresh_token":
            uses[call["s"]].append(call)
            own.setdefault((call["s"], call["g"]), call["t"])
            first_served.setdefault(call["s"], call["t"])
    wanted = {call["tok"]: call["new"] for calls in uses.values() for call in calls if call.get("new") and call.get("tok")}
    for serve in history.stream("serve"):
        if successor := wanted.get(serve.get("tok")):
            first_served[successor] = min(serve["t"], first_served.get(successor, serve["t"]))
            known = own.get((successor, serve["g"]))
            own[(successor, serve["g"])] = min(serve["t"], known or serve["t"])
    for calls in uses.values():
        accepted, retries = None, 0
        for call in calls:
            verdict.checked += 1
            if accepted is None:
                accepted = call if call.get("new") else None
                continue
            since, gateway = first_served.get(accepted["new"]), call["g"]
            if weather.act_between(accepted["t"], call["t"], "reset", "renew", identity=call["c"]):
                verdict.excused += 1
                continue
            if since is not None and since < call["t"]:
                knows = own.get((accepted["new"], gateway), call["t"]) < call["t"]
                lost = weather.spans(gateway, ["lost", "redis"]).meet(since, call["t"])
                if (knows and not weather.disturbed(gateway, since - 70, call["t"], "disk")) or (not knows and not lost):
                    verdict.breaks("sent although its successor was readable", accepted, call)
                else:
                    verdict.excused += 1
                continue
            if not accepted.get("whole"):
                verdict.excused += 1
                verdict.note("tried again after an answer that was cut")
                continue
            retries += 1
            verdict.note("tried again where nothing proves that the answer arrived")
            lost = weather.disturbed(gateway, accepted["t"], call["t"], "lost", "redis")
            if retries > 1:
                verdict.breaks("tried again more than once", accepted, call)
            elif call["t"] - accepted["t"] < SILENCE - 1 and not lost and gateway != accepted["g"]:
                verdict.breaks("tried by another gateway before 30 s of silence", accepted, call)


@gauge
def a_refused_password_is_not_sent_again(history, weather, verdict):
    """A password that was refused, or whose answer was not seen, is never sent again while its mark is readable: not by the gateway that
    sent it, whatever became of Redis; not by another while Redis keeps its data. Excused: an issuer's 503, which judges nothing; a reset; a
    mark that was lost with Redis, at a gateway that had not sent it."""
    sent = collections.defaultdict(list)
    for call in history.all("call"):
        if call.get("c") == "wrong" and call["how"] == "password" and call["st"] != 503:
            sent[call["s"]].append(call)
    for calls in sent.values():
        for place, call in enumerate(calls):
            verdict.checked += 1
            if place == 0:
                continue
            before = calls[place - 1]
            if weather.act_between(calls[0]["t"], call["t"], "reset", identity="wrong"):
                verdict.excused += 1
            elif call["g"] in [earlier["g"] for earlier in calls[:place]]:
                verdict.breaks("sent again by the gateway that saw it refused", before, call)
            elif weather.disturbed(call["g"], before["t"], call["t"], "lost"):
                verdict.excused += 1
                verdict.note("sent again by another gateway after Redis had forgotten")
            else:
                verdict.breaks("sent again by another gateway", before, call)


@gauge
def a_token_is_used_until_it_is_due(history, weather, verdict):
    """A gateway that was given a token asks for no other one before that is due, unless an upstream refused it, an operator purged it, or
    the process or its clock was replaced between."""
    for calls in by_key(history, "g").values():
        had = None
        for call in calls:
            if had is not None and call["c"] not in ("hr", "mfp"):
                verdict.checked += 1
                if call["t"] < had["e"] + DUE:
                    words = ("process", "clock", "link", "issuer", "redis", "upstream")
                    excuse = weather.disturbed(call["g"], had["t"], call["t"], *words) or weather.act_between(
                        had["t"] - 1, call["t"], "revoke", *MENDS
                    )
                    if excuse:
                        verdict.excused += 1
                    else:
                        verdict.breaks(f"replaced after {call['t'] - had['e']:.2f} s", had, call)
            if call.get("tok") and call.get("whole"):
                had = call


@gauge
def a_token_is_shared_by_the_fleet(history, weather, verdict):
    """A token that one gateway was given is taken by the others, who ask for no other one before it is due. Excused as above, and while
    Redis was disturbed for one of the two."""
    words = ("process", "clock", "link", "issuer", "redis", "lost", "upstream")
    for calls in by_key(history).values():
        had = None
        for call in calls:
            if had is not None and call["c"] not in ("hr", "mfp") and had["g"] != call["g"]:
                verdict.checked += 1
                if call["t"] < had["e"] + DUE:
                    excuse = weather.act_between(had["t"] - 1, call["t"], "revoke", *MENDS)
                    if excuse or any(weather.disturbed(one["g"], had["t"], call["t"], *words) for one in (had, call)):
                        verdict.excused += 1
                    else:
                        verdict.breaks(f"asked for again after {call['t'] - had['e']:.2f} s", had, call)
            if call.get("tok") and call.get("whole"):
                had = call


@gauge
def turns_lead_to_steps(history, weather, verdict):
    """A gateway takes a turn to make a step, and not again and again without one: nobody else can make it meanwhile. Counted are turns of
    one gateway at one lock in a second; nothing excuses more than a few of them."""
    seconds = collections.Counter()
    for step in history.stream("step"):
        if step["what"] == "turn":
            seconds[(step["g"], step["lease"], int(step["t"]))] += 1
    runs = {}
    for (gateway, lease, second), count in sorted(seconds.items()):
        verdict.checked += count
        if count > TURNS:
            # Seconds that follow each other are one case.
            begin, total = runs.pop((gateway, lease, second - 1), (second, 0))
            runs[(gateway, lease, second)] = (begin, total + count)
    for (gateway, lease, second), (begin, total) in runs.items():
        case = {"k": "turns", "t": begin, "e": second + 1, "g": gateway, "lease": lease, "turns": total}
        verdict.breaks(f"{total} turns in {second + 1 - begin} s", case)


ALL = [
    one_grant_for_a_key_in_a_gateway,
    one_grant_for_a_key_in_the_fleet,
    no_spending_step_without_a_lease,
    a_refresh_token_is_not_sent_after_its_successor_was_readable,
    a_refused_password_is_not_sent_again,
    a_token_is_used_until_it_is_due,
    a_token_is_shared_by_the_fleet,
    turns_lead_to_steps,
]
