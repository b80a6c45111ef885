"""Invariants about what callers and upstreams saw. Requests are many: each is looked at once, and forgotten."""

from verdict import gauge

# Seconds between the choice of a token and its arrival, with nothing disturbed, on a machine that is busy.
UNDER_WAY = 0.3
# The longest pause of a breaker (docs/design/tokens.md#times).
PAUSE = 30.0
LATE = 3.0
EVERYTHING = ("process", "link", "redis", "lost", "issuer", "upstream", "clock", "disk")


@gauge
def a_credential_goes_only_where_it_belongs(history, weather, verdict):
    """No credential arrives at an origin, a route or for a user that it was not issued for; none on a route without an identity; no
    caller's own one in place of ours. The upstream judges each by what the issuer sealed into it."""
    for serve in history.stream("serve"):
        verdict.checked += 1
        if (serve.get("why") or "").startswith("!"):
            verdict.breaks(serve["why"], serve)


@gauge
def an_expired_token_is_not_sent(history, weather, verdict):
    """A token arrives at an upstream before its end. Excused: the process was paused or packets were late after it was chosen, or a
    clock was moved in the life of the token, by which a stored token's rest is told."""
    for serve in history.stream("serve"):
        if serve.get("left") is None:
            continue
        verdict.checked += 1
        if serve["left"] < -UNDER_WAY:
            if weather.disturbed(serve["g"], serve["t"] - 5, serve["t"], "process", "link", "clock"):
                verdict.excused += 1
            else:
                verdict.breaks(f"{-serve['left']:.2f} s after its end", serve)


@gauge
def a_refused_token_is_not_sent_again(history, weather, verdict):
    """After an upstream refused a token as revoked, the same gateway sends it there no more. Excused: a request that was under way; the
    process was replaced, or packets were late, so that the refusal was not heard; a token that was refused again right after its grant,
    which stays in service (docs/design/tokens.md#rule-3); a token whose replacement failed, which comes back into service until the next
    try (the issuer, or for a session Redis, was away in the longest pause before)."""
    refused, ends = {}, {}
    for serve in history.stream("serve"):
        token = serve.get("tok")
        if token is None or serve.get("left") is None:
            continue
        place = (serve["g"], serve["r"], token)
        verdict.checked += 1
        since = refused.get(place)
        if since is not None and serve["t"] > since + UNDER_WAY:
            if weather.disturbed(serve["g"], since - 5, serve["t"], "process", "link", "upstream"):
                verdict.excused += 1
            elif serve["left"] > 4.0:
                verdict.excused += 1
            elif weather.disturbed(serve["g"], since - PAUSE, serve["t"], "issuer", "redis", "lost"):
                verdict.excused += 1
                verdict.note("in service again because its replacement failed")
            else:
                verdict.breaks(f"{serve['t'] - since:.2f} s after it was refused", serve)
        if serve.get("why") == "revoked":
            refused.setdefault(place, serve["t"])
            ends[place] = serve["t"] + 30
            if len(refused) > 5000:
                for old in [one for one, end in ends.items() if end < serve["t"]]:
                    refused.pop(old, None), ends.pop(old, None)


@gauge
def every_answer_is_whole_or_visibly_cut(history, weather, verdict):
    """What a caller takes for a whole answer is the answer to its own request, every octet of it, with nothing behind it. And where nothing
    is disturbed (upgrades and reloads disturb nothing) every request gets a whole one."""
    for ask in history.stream("ask"):
        if ask["kind"] == "gone":
            continue
        verdict.checked += 1
        if ask["out"] in ("wrong", "stray", "told", "fault"):
            verdict.breaks(f"{ask['kind']}: {ask['out']}", ask)
        elif ask["out"] in ("cut", "closed", "refused"):
            if weather.disturbed(ask["g"], ask["t"] - 1, ask["e"], *EVERYTHING, smooth=False):
                verdict.excused += 1
            else:
                verdict.breaks(f"{ask['kind']}: {ask['out']} in calm", ask)


@gauge
def nobody_waits_for_ever(history, weather, verdict):
    """Every request has its end within the times of the configuration, plus what disturbances of its gateway took from it, plus what a slow
    reader takes on purpose."""
    bound = history.run["bound"]
    for ask in history.stream("ask"):
        verdict.checked += 1
        took = ask["e"] - ask["t"] - ask.get("late", 0)
        if took <= bound + LATE and ask["out"] != "silent":
            continue
        gateway = ask["g"]
        taken = weather.spans(gateway, ("process", "link", "issuer", "upstream", "redis")).within(ask["t"], ask["e"])
        if took <= bound + LATE + taken:
            verdict.excused += 1
        else:
            verdict.breaks(f"{ask['kind']}: {took:.1f} s, {ask['out']}", ask)


ALL = [
    a_credential_goes_only_where_it_belongs,
    an_expired_token_is_not_sent,
    a_refused_token_is_not_sent_again,
    every_answer_is_whole_or_visibly_cut,
    nobody_waits_for_ever,
]
