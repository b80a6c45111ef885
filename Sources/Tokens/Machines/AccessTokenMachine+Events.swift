// Events of the loops, the store, the issuer and the operator. Every event ends in `settle`, which sets the timer.

extension AccessTokenMachine {
    // MARK: - From loops

    /// A loop found no token that may be served.
    public mutating func missed(from loop: Int, at now: Instant) -> [Action] {
        var actions: [Action] = []
        if let held = servable(at: now) {
            // The miss crossed the publication, or the record fell out of the cache.
            actions = [.publish(fields(held)), answer(loop, ready(held, justGranted: false))]
        } else if isBusy {
            actions = join(loop, at: now)
        } else if let refusal = refusal(at: now) {
            actions = [answer(loop, refusal)]
        } else if policy.needsChallenge {
            actions = [.scout(.loop(loop))]
        } else {
            waiters = .loop(loop)
            actions = start(.missed, at: now)
        }
        return settle(actions, at: now)
    }

    /// The first hit of a loop past the refresh point of a generation.
    public mutating func refreshDue(generation: UInt64, at now: Instant) -> [Action] {
        guard held?.grant.generation == generation else { return settle([], at: now) }
        // A loop asks once a generation: a wish that meets a pause is kept for its end.
        pause?.isWanted = true
        if isSuspended { missedRenewal = true }
        guard mayRenew(at: now) else { return settle([], at: now) }
        return settle(start(.refreshAhead, at: now), at: now)
    }

    /// An upstream answered with a challenge.
    public mutating func challenged(from loop: Int, _ report: ChallengeReport, at now: Instant) -> [Action] {
        guard policy.canRegrant else { return settle(refuse(loop), at: now) }
        let actions =
            if let held, held.grant.generation == report.generation {
                challengedCurrent(held, from: loop, report, at: now)
            } else {
                challengedElsewhere(from: loop, report, at: now)
            }
        return settle(actions, at: now)
    }

    /// The challenge was to a generation that is no longer the served one (docs/design/tokens.md#rule-2), or to a request without a
    /// credential.
    private mutating func challengedElsewhere(
        from loop: Int, _ report: ChallengeReport, at now: Instant
    ) -> [Action] {
        if report.isReplay { return refuse(loop) }
        if let held = servable(at: now) {
            // A token that replaced the one sent is younger than the exchange; one that was there all along is not.
            if held.grant.meets(report.demand) {
                return [answer(loop, ready(held, justGranted: report.generation != 0))]
            }
            return stepUp(held, from: loop, report, at: now)
        }
        if isBusy { return join(loop, for: report.demand, at: now) }
        if let refusal = refusal(at: now) { return [answer(loop, refusal)] }
        waiters = .loop(loop)
        return start(.challenged, for: report.demand, along: report.along, at: now)
    }

    private mutating func challengedCurrent(
        _ held: Held, from loop: Int, _ report: ChallengeReport, at now: Instant
    ) -> [Action] {
        let asksForMore = report.demand.lacksScope || !held.grant.meets(Demand(level: report.demand.level))
        if report.isReplay {
            if asksForMore {
                if report.justGranted { noteFutile(report, of: held, at: now) }
                return refuse(loop)
            }
            if report.justGranted { return refuse(loop) + noteRefusal(report, at: now) }
            // This caller has had its replay, but the token it was sent was old: renew it for the others.
            guard !isHeld(report, at: now), mayGrant(at: now) else { return refuse(loop) }
            return refuse(loop) + invalidate()
                + start(.challenged, for: report.demand, along: report.along, refusedAt: report.target, at: now)
        }
        if asksForMore { return stepUp(held, from: loop, report, at: now) }
        if isHeld(report, at: now) { return refuse(loop) }
        if isBusy { return (held.isRefused ? [] : invalidate()) + join(loop, for: report.demand, at: now) }
        if let refusal = refusal(at: now) { return [answer(loop, refusal)] }
        // The request was not sent before: it waited for the successor of a token that was refused for this very target. Its refusal shows the
        // same as that of a replay; a grant for it would cost a burst on a path that refuses every token one grant more. Later it would
        // show a revocation just as well.
        if report.justGranted, held.predecessorRefusedAt == report.target, now < held.since.saturatingAdd(Self.burst) {
            return refuse(loop) + noteRefusal(report, at: now)
        }
        waiters = .loop(loop)
        return invalidate()
            + start(.challenged, for: report.demand, along: report.along, refusedAt: report.target, at: now)
    }

    /// Opens a window: what the issuer just gave is refused, so more grants would not help.
    private mutating func noteRefusal(_ report: ChallengeReport, at now: Instant) -> [Action] {
        let isNews = windows.refused(report.generation, at: report.target, limit: policy.negativeFor, now: now)
        return isNews ? [watch(report.target.route, at: now)] : []
    }

    /// A challenge that asks for more is no refusal: the served token stays, and the window lets it pass three times.
    private mutating func stepUp(
        _ held: Held, from loop: Int, _ report: ChallengeReport, at now: Instant
    ) -> [Action] {
        let route = report.target.route
        if let window = futile[route], window.isOpen(at: now) {
            if report.demand.lacksScope && held.grant.meets(report.demand) || window.stepUpsLeft <= 0 {
                return refuse(loop)
            }
        }
        if isBusy { return join(loop, for: report.demand, at: now) }
        // A step-up that is refused is no wish for a renewal: the grant at the end of the pause would ask for no more than the token has.
        if let refusal = refusal(isWish: false, at: now) { return [answer(loop, refusal)] }
        guard windows.pass(at: report.target, hadTaken: report.hadTaken, now: now) else { return refuse(loop) }
        if report.demand.level != nil { futile[route]?.stepUpsLeft -= 1 }
        waiters = .loop(loop)
        return start(.steppedUp, for: report.demand, along: report.along, at: now)
    }

    /// The grant for a demand does not meet it. An upstream that asks for more each time must not have a grant for each request.
    /// Windows of refusals (docs/design/tokens.md#rule-3) would keep a revoked token from being replaced. These windows grow as they do,
    /// and hold for the route. Scopes that are new each time have their end in what the operator allows.
    private mutating func noteFutile(_ report: ChallengeReport, of held: Held, at now: Instant) {
        guard !report.demand.lacksScope || held.grant.meets(report.demand) else { return }
        futile = futile.filter { !$0.value.isForgotten(at: now, limit: policy.negativeFor) }
        futile[report.target.route] = GrowingWindow(
            after: futile[report.target.route], held.grant.generation, limit: policy.negativeFor, now: now)
    }

    private func isHeld(_ report: ChallengeReport, at now: Instant) -> Bool {
        windows.holds(report.target, hadTaken: report.hadTaken, at: now)
    }

    /// For as long as there may be a window of the route, and what led to it is known.
    private func watch(_ route: Int, at now: Instant) -> Action {
        let memory = RegrantWindows.memory(limit: policy.negativeFor).saturatingAdd(policy.negativeFor)
        return .watch(route: route, until: now.saturatingAdd(memory))
    }

    private mutating func invalidate() -> [Action] {
        held?.isRefused = true
        return [.unpublish]
    }

    private func refuse(_ loop: Int) -> [Action] { [answer(loop, .final), .report(.challengeRefused)] }

    // MARK: - From the grant

    /// The flight brought a token.
    public mutating func landed(_ token: FlightToken, _ grant: Grant, at now: Instant) -> [Action] {
        guard let flight, flight.token == token, token.standing.epoch == standing.epoch else {
            return settle([discard(token)], at: now)
        }
        guard now < grant.lifetime.stopServingAt else {
            // Dead on arrival. What was rotated with it is kept all the same.
            return settle([discard(token)] + fail(.issuerAnswerInvalid, at: now), at: now)
        }
        self.flight = nil
        scopes = scopes.union(flight.scopes)
        pause = nil
        blocked = nil
        followedSecret = false
        backoff.succeeded()
        let wait = grant.rotated ? Self.rotationWait : Self.commitWait
        landing = Landing(
            grant: grant, reason: flight.reason, asked: flight.asked, refusedAt: flight.refusedAt,
            deadline: now.saturatingAdd(wait))
        if policy.persist || grant.rotated { return settle([.commit(generation: grant.generation)], at: now) }
        return settle(publishLanding(at: now), at: now)
    }

    /// The flight brought none.
    /// - Parameter version: of the secrets that it had read last; nil where it read none since it began.
    public mutating func failed(
        _ token: FlightToken, _ failure: GrantFailure, with version: UInt64? = nil, at now: Instant
    ) -> [Action] {
        guard let flight, flight.token == token, token.standing.epoch == standing.epoch else {
            return settle([discard(token)], at: now)
        }
        guard failure.consequence == .block, version ?? token.standing.secretVersion != standing.secretVersion else {
            followedSecret = false
            return settle(fail(failure, at: now), at: now)
        }
        // The old secret was refused; that says nothing of the new one. Only the first time in a row without a pause: where each reading
        // brings another value, refused flights would follow each other as fast as the issuer answers.
        guard !followedSecret else {
            return settle(fail(.issuerUnavailable(retryAfter: nil), at: now), at: now)
        }
        self.flight = nil
        followedSecret = true
        return settle(restart(flight.asked, at: now), at: now)
    }

    // MARK: - From the store

    /// The row of a landed grant was committed, or could not be.
    public mutating func committed(generation: UInt64, succeeded: Bool, at now: Instant) -> [Action] {
        guard landing?.grant.generation == generation else { return settle([], at: now) }
        return settle((succeeded ? [] : [.report(.storeDegraded)]) + publishLanding(at: now), at: now)
    }

    /// A token that no flight brought. Ignored while a younger one is held or under way. A row may hold the very token that the flight is to
    /// replace: the machine no longer knows it as refused once its bytes were lost.
    public mutating func adopted(_ grant: Grant, from source: TokenSource, at now: Instant) -> [Action] {
        if source == .store {
            guard policy.connectivity != .online, held == nil, landing == nil, flight?.answersChallenge != true else {
                return settle([], at: now)
            }
        }
        let candidate = Held(grant: grant)
        guard now < servedUntil(candidate) else { return settle([], at: now) }
        held = candidate
        var actions: [Action] = [.publish(fields(candidate))]
        if !waiters.isEmpty {
            actions.append(.answer(waiters, ready(candidate, justGranted: false)))
            waiters = []
        }
        return settle(actions, at: now)
    }

    /// The bytes of the held token are gone, from memory and from the store.
    public mutating func lost(at now: Instant) -> [Action] {
        held = nil
        return settle([], at: now)
    }

    // MARK: - From the operator and the clock

    /// `startup: wait | required`: get a token before anyone asks.
    public mutating func startupRequested(at now: Instant) -> [Action] {
        guard servable(at: now) == nil, mayGrant(at: now), !policy.needsChallenge else { return settle([], at: now) }
        return settle(start(.startup, at: now), at: now)
    }

    /// A new secret value lifts quarantine and negative; it purges nothing. A token that holds the old one is served until the next one is there.
    public mutating func secretChanged(to version: UInt64, at now: Instant) -> [Action] {
        standing.secretVersion = version
        let actions = clearRefusals(at: now)
        guard policy.holdsSecrets, mayRenew(at: now) else { return settle(actions, at: now) }
        return settle(actions + start(.refreshAhead, at: now), at: now)
    }

    /// No flight starts from now on, whatever asks; one that is under way ends as it would. What is held is served.
    public mutating func suspended(at now: Instant) -> [Action] {
        isSuspended = true
        return settle([], at: now)
    }

    /// Flights may start again. What was due meanwhile is taken up.
    public mutating func resumed(at now: Instant) -> [Action] {
        guard isSuspended else { return settle([], at: now) }
        isSuspended = false
        defer { missedRenewal = false }
        guard missedRenewal, mayRenew(at: now), held.map({ $0.grant.lifetime.refreshAt <= now }) ?? false else {
            return settle([], at: now)
        }
        return settle(start(.refreshAhead, at: now), at: now)
    }

    /// A changed `token:` or `network:` setting lifts quarantine and negative; it purges nothing. The loops have times of the served token that
    /// followed from the settings of before, such as the end of a grace.
    public mutating func settingsChanged(to policy: AccessTokenPolicy, at now: Instant) -> [Action] {
        let published = servable(at: now).map(fields)
        self.policy = policy
        let due = servable(at: now).map(fields)
        let news: [Action] = published == due ? [] : [due.map { .publish($0) } ?? .unpublish]
        return settle(news + clearRefusals(at: now), at: now)
    }

    /// Purge, logout, reset and reload. A reload by itself lifts no refusal; what it changed is told beside it.
    public mutating func epochRose(to epoch: UInt64, cause: EpochCause, at now: Instant) -> [Action] {
        guard epoch > standing.epoch else { return settle([], at: now) }
        standing.epoch = epoch
        var actions: [Action] = []
        let interrupted = flight != nil || landing != nil
        let asked = flight?.asked ?? landing?.asked ?? .token
        let isAnswered = landing != nil
        if let flight { actions.append(.abandonFlight(flight.token)) }
        flight = nil
        landing = nil
        switch cause {
        case .purge, .logout:
            held = nil
            windows = RegrantWindows()
            futile = [:]
            pause = nil
            backoff.succeeded()
            actions += [.unpublish, .deleteRow]
            if cause == .logout {
                logoutEpoch = epoch
                actions += answerWaiters(.failed(.interactionRequired, retryAfter: nil))
            } else if !waiters.isEmpty {
                actions += restart(asked, isAnswered: isAnswered, at: now)
            }
        case .reset, .reload:
            if cause == .reset {
                windows = RegrantWindows()
                futile = [:]
                actions += clearRefusals(at: now)
            }
            // The loops ask once a generation, so a background renewal that was cut off is taken up again too.
            if interrupted, flight == nil { actions += restart(asked, isAnswered: isAnswered, at: now) }
        }
        return settle(actions, at: now)
    }

    /// The key is gone (changed digest, route removed).
    public mutating func retired(at now: Instant) -> [Action] {
        var actions: [Action] = [.unpublish]
        if let flight { actions.append(.abandonFlight(flight.token)) }
        flight = nil
        landing = nil
        held = nil
        pause = nil
        actions += answerWaiters(.moved)
        return settle(actions, at: now)
    }

    /// The wall clock stepped by more than 30 s: every token is refresh-due.
    public mutating func wallClockJumped(at now: Instant) -> [Action] {
        guard var held = servable(at: now), held.grant.lifetime.refreshAt > now else { return settle([], at: now) }
        held.grant.lifetime.refreshAt = now
        self.held = held
        return settle([.publish(fields(held))], at: now)
    }

    /// The time of the last `schedule` has come. Early and late calls do no harm.
    public mutating func timerFired(at now: Instant) -> [Action] {
        timer = nil
        var actions: [Action] = []
        if let landing, landing.deadline <= now {
            if landing.grant.rotated { actions.append(.report(.storeDegraded)) }
            actions += publishLanding(at: now)
        }
        if let flight {
            if flight.abandonedAt <= now {
                actions.append(.abandonFlight(flight.token))
                actions += fail(.timedOut, at: now)
            } else if flight.waitersUntil <= now {
                actions += answerWaiters(.failed(.timedOut, retryAfter: .seconds(1)))
            }
        } else if landing == nil, let due = nextAttempt, due <= now {
            if let held, now >= servedUntil(held) { self.held = nil }
            actions += start(held == nil || pause != nil ? .retry : .refreshAhead, at: now)
        }
        return settle(actions, at: now)
    }
}
