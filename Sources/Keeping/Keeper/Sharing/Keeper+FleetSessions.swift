internal import Fleet
internal import Handshakes
internal import Telemetry
internal import TokenStore
internal import Tokens
internal import World

/// Steps that may not be made twice: passwords, refresh tokens, registrations. They need a confirmed lease; without one they are not made,
/// and what is valid is served on.
extension Keeper {
    private static let patience: UInt64 = 250_000_000
    private static let otherIsAtIt = "another gateway is at it, or was when it ended"

    func withheld(_ fault: SharedFault) -> Handshakes.GrantFailure {
        noteFleet(fault)
        return withheld("\(fault)")
    }

    func withheld(_ reason: String) -> Handshakes.GrantFailure {
        fleet.withheld += 1
        return .issuerUnavailable(retryAfterSeconds: 1, reason: "not without the shared store: \(reason)")
    }

    // MARK: - Sessions

    /// Before the ladder is chosen: a session that another gateway has brought or renewed counts.
    func freshen(_ key: SessionKey?, of identity: KeptIdentity) async {
        guard let tier = fleet.tier, let key else { return }
        guard identity.policy.sharesTokens else { return leaveToFleet(key) }
        await firstConnection()
        let name = sessionName(key, tier)
        guard case .success(let found?) = await ask({ tier.session(name, completion: $0) }) else { return }
        if found.value.isEmpty { return sessionEnded(key, found.version) }
        take(found, key, identity)
    }

    /// Nil when it is not newer than what is known.
    @discardableResult
    private func take(_ found: SharedSession, _ key: SessionKey, _ identity: KeptIdentity) -> LayerMaterial? {
        guard fleet.sessions.versions.takes(found.version, of: key, isHere: sessions[key] != nil),
            let material = found.material(at: now)
        else { return nil }
        fleet.sessions.versions.holds(found.version, of: key)
        fleet.sessions.uncommitted[key] = nil
        let besides = noteSpentElsewhere(sessions[key]?.material.refreshToken, for: material, key, identity)
        // The tokens hear of the login in a turn of its own: the step that found it goes on first.
        if lacksLogin(identity) { start { $0.loginFound(of: identity) } }
        adoptSession(material, key)
        if let row = sessionRow(key, material, of: identity) {
            keep([.put(row)] + versionRows(of: key) + besides)
        }
        // Another gateway has sent what both configurations name.
        if identity.namesFirstRefreshToken, let token = material.refreshToken {
            attempts.families.found(token, under: key)
            presumeFirsts()
        }
        return material
    }

    /// The fleet's turn for a step that this gateway's own lock has given. Nil where there is no fleet.
    func fleetTurn(
        for step: SessionMachine.Step, _ claim: SessionClaim, _ standing: LayerMaterial?, environment: KeeperEnvironment
    ) async throws(Handshakes.GrantFailure) -> FleetTurn? {
        let identity = environment.identity
        guard let tier = fleet.tier else { return nil }
        guard identity.policy.sharesTokens else {
            // A reload has come between the order for this step and the step: what was to be sent is the fleet's.
            guard fleet.sessions.versions.held(of: step.key) == nil,
                standing?.refreshToken == sessions[step.key]?.material.refreshToken
            else {
                throw .issuerUnavailable(retryAfterSeconds: 1, reason: "the session was ended by a reload")
            }
            return nil
        }
        let lock = tier.lock(of: step.key)
        let name = sessionName(step.key, tier)
        let deadline = now + 2 * identity.policy.access.acquireTimeout
        while true {
            let askedAt = now
            let turn: Result<SharedTurn, SharedFault> = await ask {
                tier.turn(lock, session: name, spends: claim.isOwn, completion: $0)
            }
            switch turn {
            case .failure(let fault): throw withheld(fault)
            case .success(.lease(let lease, let found)):
                let hold = hold(lease, askedAt: askedAt)
                await mailRead()
                guard !fleet.spending.isTaken(beside: lease, at: now) else {
                    letGo(hold)
                    // A wait for news of the lock would end at once, by the news that it is free again.
                    guard now < deadline, !Task.isCancelled else { throw withheld(Self.otherIsAtIt) }
                    await pause(Self.patience)
                    continue
                }
                // A newer session of another gateway is taken up first.
                let known = FleetSessions.Step(
                    key: step.key, rung: step.rung == .refreshToken ? .refreshToken : .fullGrant, standing: standing,
                    found: found, newer: found.flatMap { take($0, step.key, identity) }, claim: claim,
                    isIrreplaceable: identity.policy.isIrreplaceable,
                    hasRefreshToken: sessions.hasRefreshToken(step.key))
                switch fleet.sessions.start(known, at: now) {
                case .from(let rung, let start):
                    return FleetTurn(
                        hold: hold, key: step.key, name: name, rung: rung, standing: start, ready: known.ready(at: now),
                        version: max(found?.version ?? .none, fleet.sessions.versions.newest(of: step.key)))
                case .askOthers:
                    letGo(hold)
                    // All gateways are asked for the session, this one too.
                    tier.tell(.sessionMissed(name))
                    await pause(FleetSessions.recallTime)
                case .lost:
                    letGo(hold)
                    throw lost(step.key, identity)
                }
            case .success(.busy), .success(.settling): try await othersTurn(lock, until: deadline)
            }
        }
    }

    /// News that came before an answer are letters, and an answer is none: it may be met first.
    private func mailRead() async {
        await withCheckedContinuation { continuation in
            if !post({ _ in continuation.resume() }) { continuation.resume() }
        }
    }

    /// - Parameter words: why the step is withheld when the deadline has come.
    private func othersTurn(
        _ name: SharedName, until deadline: UInt64,
        orElse words: String = Keeper.otherIsAtIt
    ) async throws(Handshakes.GrantFailure) {
        guard now < deadline, !Task.isCancelled else { throw withheld(words) }
        await news(of: name, within: Self.patience)
    }

    /// Commits what a step brought before it is used; where the server is away, it is kept here and brought back.
    func commit(_ material: LayerMaterial, in turn: FleetTurn) async {
        guard let tier = fleet.tier else { return }
        // A login may have come in between.
        let version = max(turn.version, fleet.sessions.versions.newest(of: turn.key)).next
        fleet.sessions.versions.holds(version, of: turn.key)
        let session = SharedSession(material, version: version, at: now)
        let result: Result<Bool, SharedFault> = await ask {
            tier.commit(session, turn.name, under: turn.hold.lease, completion: $0)
        }
        switch result {
        case .success(true): break
        case .success(false):
            fleet.late += 1
            fleet.sessions.uncommitted[turn.key] = turn.hold.lease
            events.error("a session came after its lease had passed", [LogField("server", .name(fleet.address))])
            // Any material that the step has sent is spent: its outcome takes the place, unless another gateway has come further.
            await offer(material, turn.key, as: version)
        case .failure(let fault):
            fleet.sessions.uncommitted[turn.key] = turn.hold.lease
            noteFleet(fault)
        }
    }

    /// Puts a session there, unless the fleet has a newer one.
    /// - Returns: nil where it could not be told, false where the fleet has a newer one.
    @discardableResult
    func offer(_ material: LayerMaterial, _ key: SessionKey, as version: SessionVersion) async -> Bool? {
        guard let tier = fleet.tier else { return nil }
        let lease = fleet.sessions.uncommitted[key]
        let name = sessionName(key, tier)
        let session = SharedSession(material, version: version, at: now)
        let result: Result<Bool, SharedFault> = await ask { tier.offer(session, name, under: lease, completion: $0) }
        guard case .success(let isNewest) = result else { return nil }
        fleet.sessions.uncommitted[key] = nil
        return isNewest
    }

    // MARK: - Registrations

    enum FleetPart {
        case made(LayerMaterial)
        /// Nil where there is no fleet.
        case make(FleetHold?)
    }

    func claimInFleet(
        _ part: DurablePart, unless refused: LayerMaterial?, of identity: KeptIdentity
    ) async throws(Handshakes.GrantFailure) -> FleetPart {
        guard let tier = fleet.tier, let key = identity.sharedKey(part) else { return .make(nil) }
        await firstConnection()
        let name = tier.name(of: key)
        let dead = refused.map { tier.identity(of: $0.bytes) }
        let deadline = now + 2 * identity.policy.access.acquireTimeout
        while true {
            let askedAt = now
            let claim: Result<SharedClaim, SharedFault> = await ask {
                tier.claim(name, unless: dead, isDead: dead != nil, completion: $0)
            }
            switch claim {
            case .failure(let fault): throw withheld(fault)
            case .success(.lease(let lease)): return .make(hold(lease, askedAt: askedAt))
            case .success(.value(let bytes, _, let left)):
                guard let found = SharedSession(version: .none, value: bytes, lasts: left).material(at: now) else {
                    throw withheld("a registration in it cannot be read")
                }
                return .made(found)
            case .success(.busy): try await othersTurn(name, until: deadline, orElse: "another gateway registers")
            }
        }
    }

    /// A part that another gateway has made, such as a registration. A session that came from the fleet is of no use without it.
    func durableOfFleet(_ part: DurablePart, of identity: KeptIdentity) async -> LayerMaterial? {
        guard let tier = fleet.tier, let key = identity.sharedKey(part) else { return nil }
        let epoch = identity.logoutEpoch
        await firstConnection()
        let name = tier.name(of: key)
        guard case .success(let found?) = await ask({ tier.value(name, completion: $0) }),
            let material = found.material(at: now), identity.logoutEpoch == epoch
        else { return durable(part, of: identity) }
        // Another flight may have made or found one meanwhile.
        if let standing = durable(part, of: identity) { return standing }
        sessions.parts[key] = material
        await storeDurable(key, material, of: identity)
        return material
    }

    /// To a server that has forgotten it; what somebody else has brought back stays.
    func offerDurable(_ key: DurableKey, _ tier: any SharedTier) async {
        let (name, askedAt) = (tier.name(of: key), now)
        guard
            case .success(.lease(let lease)) = await ask({
                tier.claim(name, unless: nil, isDead: false, completion: $0)
            })
        else { return }
        let hold = hold(lease, askedAt: askedAt)
        guard let material = sessions.parts[key] else { return letGo(hold) }
        await publish(material, under: hold)
    }

    func publish(_ material: LayerMaterial, under hold: FleetHold?) async {
        guard let tier = fleet.tier, let hold else { return }
        let session = SharedSession(material, version: .none, at: now)
        let identity = tier.identity(of: material.bytes)
        let result: Result<Bool, SharedFault> = await ask {
            tier.publish(
                session.value, as: identity, under: hold.lease, askedFor: hold.age(at: now), for: session.lasts,
                completion: $0)
        }
        if case .failure(let fault) = result { noteFleet(fault) }
        letGo(hold)
    }

    func withdraw(_ key: DurableKey, _ material: LayerMaterial) {
        guard let tier = fleet.tier else { return }
        tier.withdraw(tier.name(of: key), tier.identity(of: material.bytes))
    }

    // MARK: - Attempts

    /// Books the attempt with the fleet: a password that was refused on one gateway is not tried by another.
    func spendInFleet(
        _ mark: AttemptMark, _ secret: Secret, of identity: KeptIdentity
    ) async throws(Handshakes.GrantFailure) {
        guard let tier = fleet.tier else { return }
        let attempt = tier.attempt(mark.account, secret, String(random.number(), radix: 36))
        let policy = identity.policy.attempts
        let limit = attempts.ledger.isRetry(mark, policy) ? max(policy.loginAttempts, 1) &+ 1 : policy.loginAttempts
        let result: Result<SharedVerdict, SharedFault> = await ask {
            tier.spend(attempt, limit: limit, completion: $0)
        }
        switch result {
        case .success(.allowed): fleet.attempts[mark] = attempt
        case .success(.spent):
            // Kept here too, so that it holds while the server is away.
            await storeAttempts(attempts.bookRejected(mark))
            throw .quarantined
        case .success(.settling): throw withheld("it has just come up")
        case .failure(let fault):
            // The attempt may have been booked, and its password is not sent.
            tier.refund(attempt)
            throw withheld(fault)
        }
    }

    func settleInFleet(_ outcome: AttemptOutcome, of mark: AttemptMark) {
        guard let tier = fleet.tier, let attempt = fleet.attempts.removeValue(forKey: mark) else { return }
        switch outcome {
        case .accepted: tier.accepted(attempt.account)
        case .rejected, .rejectedLeaving: tier.rejected(attempt)
        case .notSent: tier.refund(attempt)
        case .unknown: break
        }
    }

    func resetInFleet(_ account: Account) {
        guard let tier = fleet.tier else { return }
        tier.reset(tier.name(of: account))
    }

    func resetElsewhere(_ name: SharedName, _ tier: any SharedTier) {
        for identity in identities {
            guard let account = identity.account, tier.name(of: account) == name else { continue }
            let rows = attempts.ledger.reset(account)
            guard !rows.isEmpty || attemptsRefused(identity) else { continue }
            start { await $0.storeAttempts(rows) }
            identity.recovered(at: now)
            raiseEpoch(of: identity, cause: .reset)
        }
    }

    /// The secret that is configured now is one that this gateway knows to be refused: the others are told.
    func tellRejected(_ identity: KeptIdentity) async {
        guard let account = identity.account, let secret = try? await sentPassword(of: identity),
            attemptsRefused(identity)
        else { return }
        fleet.tier.map { $0.rejected($0.attempt(account, secret, "known")) }
    }

    /// Another gateway has met a refusal of this account. One that sends its password in each request has to know before its next one.
    func rejected(_ name: SharedName, _ tier: any SharedTier) {
        for identity in identities where identity.policy.kind == .basic {
            guard let account = identity.account, tier.name(of: account) == name else { continue }
            start { await $0.learnRefusal(of: identity) }
        }
    }

    /// Asks the fleet whether the password of a `basic` identity was refused elsewhere, and keeps the answer.
    func learnRefusal(of identity: KeptIdentity) async {
        guard let tier = fleet.tier, identity.policy.kind == .basic, let account = identity.account,
            !attemptsRefused(identity),
            let secret = try? await sentPassword(of: identity)
        else { return }
        let version = identity.secretVersion
        await firstConnection()
        let attempt = tier.attempt(account, secret, "")
        let result: Result<UInt32?, SharedFault> = await ask { tier.spent(attempt, completion: $0) }
        // The mark would be one of the new secret, were there another by now.
        guard case .success(let count?) = result, count >= max(identity.policy.attempts.loginAttempts, 1),
            identity.secretVersion == version
        else { return }
        // At once: while the mark is written, the secret may become another one. Should it be lost, the fleet still has it.
        markRejected(identity)
        for token in tokens.of(identity) {
            perform(token.probation?.quarantined() ?? [], on: token)
        }
    }
}
