import HotCache

// Rules that the events share: who may start a flight, what a failure does, what is served until when.

extension AccessTokenMachine {
    // MARK: - Questions

    /// A flight, or a grant that waits for its commit.
    public var isBusy: Bool { flight != nil || landing != nil }

    func servable(at now: Instant) -> Held? {
        guard let held, !held.isRefused, now < servedUntil(held) else { return nil }
        return held
    }

    func servedUntil(_ held: Held) -> Instant {
        guard held.inGrace, case .serveExpired(let span) = policy.onIssuerFailure else {
            return held.grant.lifetime.stopServingAt
        }
        return held.grant.lifetime.expiresAt.saturatingAdd(span)
    }

    func fields(_ held: Held) -> RecordFields {
        RecordFields(
            refreshAt: policy.canRegrant && !policy.needsChallenge ? held.grant.lifetime.refreshAt : .max,
            servedUntil: servedUntil(held), expiresAt: held.grant.lifetime.expiresAt,
            generation: held.grant.generation)
    }

    /// Why no flight may start now; nil if one may.
    /// - Parameter isWish: a flight is to start at the end of the pause, if it is a pause that keeps one from starting now.
    mutating func refusal(isWish: Bool = true, at now: Instant) -> Outcome? {
        if let blocked { return .failed(blocked, retryAfter: nil) }
        if policy.connectivity == .offline || !policy.canRegrant {
            return .failed(.notPermitted(retryAfter: nil), retryAfter: nil)
        }
        if isSuspended { return .failed(.notPermitted(retryAfter: .seconds(1)), retryAfter: .seconds(1)) }
        guard let pause, now < pause.until else { return nil }
        if isWish { self.pause?.isWanted = true }
        return .failed(pause.failure, retryAfter: pause.until - now)
    }

    /// The same judgement as `refusal`, without counting as a caller's wish.
    func mayGrant(at now: Instant) -> Bool {
        !isBusy && !isSuspended && blocked == nil && policy.connectivity != .offline && policy.canRegrant
            && (pause.map { $0.until <= now } ?? true)
    }

    func mayRenew(at now: Instant) -> Bool { mayGrant(at: now) && !policy.needsChallenge && held?.isRefused == false }

    /// When the keeper acts by itself.
    var nextAttempt: Instant? {
        guard !isBusy, !isSuspended, blocked == nil, policy.connectivity != .offline, policy.canRegrant,
            !policy.needsChallenge
        else {
            return nil
        }
        if let pause { return pause.isWanted || policy.renewsByTimer ? pause.until : nil }
        guard policy.renewsByTimer, let held else { return nil }
        return held.grant.lifetime.refreshAt
    }

    // MARK: - Flights

    /// - Parameters:
    ///   - demand: of the challenge that it answers.
    ///   - along: scopes to ask for beside it.
    ///   - target: where the served token was refused, if that is the reason.
    mutating func start(
        _ reason: Flight.Reason, for demand: Demand = .token, along: ScopeSet = [],
        refusedAt target: RequestTarget? = nil,
        at now: Instant
    ) -> [Action] {
        lastFlight += 1
        pause?.isWanted = false
        let asked = scopes.union(demand.scopes).union(along).union(scopesOfOthers)
        // To a renewal any token of the key is welcome; those who wait after a challenge have their one replay with what it brings.
        let answersChallenge =
            switch reason {
            case .challenged, .steppedUp, .restarted: true
            case .missed, .refreshAhead, .retry, .startup: false
            }
        let flight = Flight(
            token: FlightToken(id: lastFlight, standing: standing), reason: reason, refusedAt: target,
            level: demand.level,
            scopes: asked, owed: answersChallenge ? asked : [], answersChallenge: answersChallenge, startedAt: now,
            waitersUntil: now.saturatingAdd(policy.acquireTimeout),
            abandonedAt: max(
                now.saturatingAdd(policy.acquireTimeout).saturatingAdd(policy.acquireTimeout)
                    .saturatingAdd(policy.acquireTimeout), now.saturatingAdd(policy.flightTime)))
        self.flight = flight
        return [.startFlight(flight)]
    }

    /// The scopes that another gateway got are asked for again, by a renewal, too: else gateways that are challenged for different scopes would
    /// take them from each other, with a grant each time. A borrowed token's scopes stay with its lender.
    private var scopesOfOthers: ScopeSet {
        guard let held, held.grant.isShared else { return [] }
        return ScopeSet(held.grant.granted.scopes.filter(policy.allowedScopes.scopes.contains))
    }

    /// Whether another process's token may end the flight that is under way.
    /// - Parameter configured: scopes that every token of the key was asked for with, whatever the issuer made of it.
    public func accepts(granted: ScopeSet, configured: ScopeSet) -> Bool {
        flight.map { granted.union(configured).isSuperset(of: $0.owed) } ?? false
    }

    /// Another loop waits for the flight that is under way (docs/design/tokens.md#rule-1).
    mutating func join(_ loop: Int, at now: Instant) -> [Action] {
        if let flight, flight.waitersUntil <= now {
            // The grant is overdue; whoever comes now would wait without a bound.
            return [answer(loop, .failed(.timedOut, retryAfter: .seconds(1)))]
        }
        waiters.insert(.loop(loop))
        return []
    }

    /// Who was challenged waits only for what can be the answer to that challenge: with less, its one replay would be in vain.
    mutating func join(_ loop: Int, for demand: Demand, at now: Instant) -> [Action] {
        let isMet = flight.map { $0.meets(demand) } ?? landing.map { $0.grant.meets(demand) } ?? true
        let isOverdue = flight.map { $0.waitersUntil <= now } ?? false
        guard isMet || isOverdue else { return [.postpone] }
        if !isOverdue, let flight {
            self.flight?.owed = flight.owed.union(demand.scopes)
            self.flight?.answersChallenge = true
        }
        return join(loop, at: now)
    }

    /// Takes up for the waiters, or for nobody, what a new epoch or secret cut off.
    /// - Parameters:
    ///   - demand: what that flight asked for; its waiters are owed it, and whoever comes now waits for nothing less.
    ///   - isAnswered: the issuer has answered that flight, so that a challenge with a level is spent.
    mutating func restart(_ demand: Demand, isAnswered: Bool = false, at now: Instant) -> [Action] {
        guard !policy.needsChallenge, !isAnswered || demand.level == nil else {
            // The challenge went with the flight; the callers' next requests bring a new one.
            return restoreRefused(at: now)
                + answerWaiters(.failed(.issuerUnavailable(retryAfter: .seconds(1)), retryAfter: .seconds(1)))
        }
        if let refusal = refusal(at: now) { return restoreRefused(at: now) + answerWaiters(refusal) }
        return start(.restarted, for: demand, at: now)
    }

    /// The served token again, when its replacement is not to be had: one refusal by one URL does not prove it dead.
    private mutating func restoreRefused(at now: Instant) -> [Action] {
        guard var held, held.isRefused else { return [] }
        guard now < servedUntil(held) else {
            self.held = nil
            return []
        }
        held.isRefused = false
        self.held = held
        return [.publish(fields(held))]
    }

    mutating func clearRefusals(at now: Instant) -> [Action] {
        let wasRefused = blocked != nil || pause != nil
        blocked = nil
        pause = nil
        backoff.succeeded()
        guard wasRefused, policy.renewsByTimer, mayGrant(at: now), !policy.needsChallenge else { return [] }
        guard held.map({ $0.grant.lifetime.refreshAt <= now }) ?? true else { return [] }
        return start(.retry, at: now)
    }

    // MARK: - Landings

    mutating func publishLanding(at now: Instant) -> [Action] {
        guard let landing else { return [] }
        self.landing = nil
        // The token died while it waited for its commit: a life that short is no answer.
        guard now < landing.grant.lifetime.stopServingAt else {
            return fail(.issuerAnswerInvalid, of: landing.reason, at: now)
        }
        let next = Held(grant: landing.grant, predecessorRefusedAt: landing.refusedAt, since: now)
        let event: Event =
            switch landing.reason {
            case .challenged, .steppedUp: .challengeAnswered
            case .refreshAhead: .tokenRefreshed
            case .retry: held == nil ? .tokenAcquired : .tokenRefreshed
            case .missed, .startup, .restarted: .tokenAcquired
            }
        held = next
        // A token that is refused opens a window only if it is fresh from the issuer (docs/design/tokens.md#rule-3).
        let answers = answerWaiters(ready(next, justGranted: !landing.grant.isShared))
        return [.publish(fields(next))] + answers + [.report(event)]
    }

    /// Ends a failed flight, by the kind of the failure and by what is still good.
    /// - Parameter landed: the reason of a flight that has landed; nil: the flight is under way.
    mutating func fail(_ failure: GrantFailure, of landed: Flight.Reason? = nil, at now: Instant) -> [Action] {
        let reason = landed ?? flight?.reason
        flight = nil
        switch failure.consequence {
        case .block: return block(failure)
        case .backoff: return backOff(failure, reason: reason, at: now)
        }
    }

    private mutating func block(_ failure: GrantFailure) -> [Action] {
        blocked = failure
        pause = nil
        var actions: [Action] = []
        // A token that its upstream still takes is served to its end; one that was refused has no successor.
        if let held, held.isRefused || policy.onIssuerFailure == .fail {
            self.held = nil
            if !held.isRefused { actions.append(.unpublish) }
        }
        actions += answerWaiters(.failed(failure, retryAfter: nil))
        actions.append(.report(failure == .interactionRequired ? .loginNeeded : .credentialQuarantined))
        return actions
    }

    private mutating func backOff(_ failure: GrantFailure, reason: Flight.Reason?, at now: Instant) -> [Action] {
        let wait = backoff.failed(retryAfter: failure.retryAfter, limit: policy.negativeFor)
        pause = Pause(until: now.saturatingAdd(wait), failure: failure, isWanted: !waiters.isEmpty)
        let failed = Outcome.failed(failure, retryAfter: wait)
        guard var held, policy.onIssuerFailure != .fail else {
            let unpublished: [Action] = self.held.map { $0.isRefused ? [] : [.unpublish] } ?? []
            self.held = nil
            return unpublished + answerWaiters(failed) + [.report(.acquisitionFailed(failure))]
        }
        // A grace is for an issuer that fails, not for a token that an upstream refused.
        let wasRefused = held.isRefused
        let enters = if case .serveExpired = policy.onIssuerFailure { !wasRefused && !held.inGrace } else { false }
        held.isRefused = false
        if enters { held.inGrace = true }
        guard now < servedUntil(held) else {
            self.held = nil
            return answerWaiters(failed) + [.report(.acquisitionFailed(failure))]
        }
        self.held = held
        // A step-up that failed leaves a token that may need no successor yet. A loop that asked for a renewal while the step-up ran asks no
        // second time.
        pause?.isWanted = reason != .steppedUp || held.grant.lifetime.refreshAt <= now
        var actions: [Action] = wasRefused || enters ? [.publish(fields(held))] : []
        // Whoever waits after a refusal would get the refused token again.
        let isServed = reason != .challenged && reason != .steppedUp && !wasRefused
        actions += answerWaiters(isServed ? ready(held, justGranted: false) : failed)
        return actions + [.report(.renewalFailed(failure))]
    }

    // MARK: - Actions

    func answer(_ loop: Int, _ outcome: Outcome) -> Action { .answer(.loop(loop), outcome) }

    func ready(_ held: Held, justGranted: Bool) -> Outcome {
        .ready(generation: held.grant.generation, justGranted: justGranted)
    }

    mutating func answerWaiters(_ outcome: Outcome) -> [Action] {
        guard !waiters.isEmpty else { return [] }
        defer { waiters = [] }
        return [.answer(waiters, outcome)]
    }

    func discard(_ token: FlightToken) -> Action {
        .discard(token, revokeRefreshToken: token.standing.epoch < logoutEpoch)
    }

    /// Sets the machine's only timer to the earliest moment that it waits for.
    mutating func settle(_ actions: [Action], at now: Instant) -> [Action] {
        var next: Instant?
        if let landing {
            next = landing.deadline
        } else if let flight {
            next = waiters.isEmpty ? flight.abandonedAt : flight.waitersUntil
        } else {
            next = nextAttempt
        }
        guard next != timer else { return actions }
        timer = next
        return actions + [next.map { .schedule($0) } ?? .cancelTimer]
    }
}
