internal import Fleet
internal import Handshakes
internal import Numbers
internal import Reactor
internal import TLS
internal import Telemetry
internal import TokenStore
internal import Tokens
internal import World

/// Steps that may not be made twice: passwords, refresh tokens, registrations. They need a confirmed lease; without one they are not made,
/// and what is valid is served on.
extension Keeper {
    private static let patience: UInt64 = 250_000_000

    func withheld(_ fleet: KeptFleet, _ reason: String) -> Handshakes.GrantFailure {
        fleet.withheld += 1
        return .issuerUnavailable(retryAfterSeconds: 1, reason: "not without the shared store: \(reason)")
    }

    // MARK: - Sessions

    /// Before the ladder is chosen: a session that another gateway has brought or renewed counts.
    func freshen(_ key: SessionKey?, of identity: KeptIdentity) async {
        guard let fleet, let key, identity.policy.sharesTokens else { return }
        await firstConnection(fleet)
        let name = sessionName(key, fleet)
        guard case .success(let found?) = await ask({ fleet.tier.session(name, completion: $0) }) else { return }
        if found.value.isEmpty { return sessionEnded(key, found.version, fleet) }
        take(found, key, identity, fleet)
    }

    /// Nil when it is not newer than what is known.
    @discardableResult
    private func take(
        _ found: SharedSession, _ key: SessionKey, _ identity: KeptIdentity, _ fleet: KeptFleet
    ) -> LayerMaterial? {
        guard fleet.versions.takes(found.version, of: key, isHere: sessions[key] != nil),
            let material = material(of: found)
        else { return nil }
        fleet.versions.holds(found.version, of: key)
        fleet.uncommitted[key] = nil
        let besides = noteSpentElsewhere(sessions[key]?.material.refreshToken, for: material, key, identity)
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

    private func material(of found: SharedSession) -> LayerMaterial? {
        guard let row = LayerRow(encoded: found.value) else { return nil }
        var lifetime: UInt64?
        if let original = row.original {
            // The server counts what is left of a session; beside a refresh token, which has no end, nobody does.
            let left = found.lasts?.nanoseconds ?? original
            lifetime = row.refreshToken == nil ? min(left, original) : 0
        }
        return LayerMaterial(
            bytes: row.material, obtainedAt: now, lifetime: lifetime, refreshToken: row.refreshToken,
            isHuman: row.isHuman)
    }

    private func shared(_ material: LayerMaterial, version: SessionVersion) -> SharedSession {
        let row = LayerRow(
            material: material.bytes, refreshToken: material.refreshToken, isHuman: material.isHuman,
            wallExpiry: nil, original: material.lifetime)
        var left: TimeSpan?
        if material.refreshToken == nil, let life = material.lifetime {
            left = TimeSpan(nanoseconds: life) - TimeSpan(nanoseconds: now - min(now, material.obtainedAt))
        }
        return SharedSession(version: version, value: row.encoded(), lasts: left)
    }

    /// The fleet's turn for a step that this gateway's own lock has given. Nil where there is no fleet.
    func fleetTurn(
        for step: SessionMachine.Step, _ claim: SessionClaim, _ standing: LayerMaterial?, environment: KeeperEnvironment
    ) async throws(Handshakes.GrantFailure) -> FleetTurn? {
        let identity = environment.identity
        guard let fleet, identity.policy.sharesTokens else { return nil }
        let key = step.key
        let lock = fleet.tier.name(
            .lock, Array(key.issuer.description.utf8) + [0] + (key.subject.map { [1] + $0.bytes } ?? []))
        let name = sessionName(key, fleet)
        let deadline = now + 2 * identity.policy.access.acquireTimeout
        while true {
            let turn: Result<SharedTurn, SharedFault> = await ask {
                fleet.tier.turn(lock, session: name, spends: claim.isOwn, completion: $0)
            }
            switch turn {
            case .failure(let fault):
                noteFleet(fault)
                throw withheld(fleet, "\(fault)")
            case .success(.lease(let lease, let found)):
                let hold = hold(lease, fleet)
                await mailRead()
                guard !fleet.spending.isTaken(beside: lease, at: now) else {
                    letGo(hold)
                    try await othersTurn(lock, until: deadline, fleet)
                    continue
                }
                let place = FleetPlace(hold: hold, name: name)
                if let turn = try begin(step, claim, standing, found, place, identity, fleet) { return turn }
                letGo(hold)
                await recall(key, name, fleet)
            case .success(.busy), .success(.settling):
                try await othersTurn(lock, until: deadline, fleet)
            }
        }
    }

    /// News that came before an answer are letters, and an answer is none: it may be met first.
    private func mailRead() async {
        await withCheckedContinuation { continuation in
            if !post({ _ in continuation.resume() }) { continuation.resume() }
        }
    }

    private func othersTurn(
        _ lock: SharedName, until deadline: UInt64, _ fleet: KeptFleet
    ) async throws(Handshakes.GrantFailure) {
        guard now < deadline, !Task.isCancelled else {
            throw withheld(fleet, "another gateway is at it, or was when it ended")
        }
        await news(of: lock, within: Self.patience, fleet)
    }

    private struct FleetPlace {
        let hold: FleetHold
        let name: SharedName
    }

    /// - Returns: nil where the others are to be asked first for what the server does not have.
    private func begin(
        _ step: SessionMachine.Step, _ claim: SessionClaim, _ standing: LayerMaterial?, _ found: SharedSession?,
        _ place: FleetPlace, _ identity: KeptIdentity, _ fleet: KeptFleet
    ) throws(Handshakes.GrantFailure) -> FleetTurn? {
        let newer = found.flatMap { take($0, step.key, identity, fleet) }
        let local: SessionRung = step.rung == .refreshToken ? .refreshToken : .fullGrant
        var rung = newer.map { $0.refreshToken == nil ? .fullGrant : .refreshToken } ?? local
        var start = newer ?? standing
        if newer == nil {
            switch ground(of: step.key, beside: found, rung, identity, fleet) {
            case .sound: break
            case .missing:
                if mayRecall(step.key, fleet) { return nil }
            case .lost:
                if mayRecall(step.key, fleet) { return nil }
                guard claim.canGrantFully, !identity.policy.isIrreplaceable else {
                    letGo(place.hold)
                    throw lost(step.key, identity, fleet)
                }
                (rung, start) = (.fullGrant, nil)
            }
        }
        var ready: LayerMaterial?
        if let newer, !claim.isOwn, newer.isLive(at: now), newer.bytes != claim.refused?.bytes { ready = newer }
        return FleetTurn(
            hold: place.hold, key: step.key, name: place.name, rung: rung, standing: start, ready: ready,
            version: max(found?.version ?? .none, fleet.versions.newest(of: step.key)))
    }

    /// Commits what a step brought before it is used; where the server is away, it is kept here and brought back.
    func commit(_ material: LayerMaterial, in turn: FleetTurn) async {
        guard let fleet else { return }
        // A login may have come in between.
        let version = max(turn.version, fleet.versions.newest(of: turn.key)).next
        fleet.versions.holds(version, of: turn.key)
        let session = shared(material, version: version)
        let result: Result<Bool, SharedFault> = await ask {
            fleet.tier.commit(session, turn.name, under: turn.hold.lease, completion: $0)
        }
        switch result {
        case .success(true): break
        case .success(false):
            fleet.late += 1
            fleet.uncommitted[turn.key] = turn.hold.lease
            events.error(
                "a session came after its lease had passed", [LogField("server", .name(fleet.place))])
            // Any material that the step has sent is spent: its outcome takes the place, unless another gateway has come further.
            await offer(material, turn.key, as: version, fleet)
        case .failure(let fault):
            fleet.uncommitted[turn.key] = turn.hold.lease
            noteFleet(fault)
        }
    }

    /// Puts a session there, unless the fleet has a newer one.
    /// - Returns: nil where it could not be told, false where the fleet has a newer one.
    @discardableResult
    func offer(
        _ material: LayerMaterial, _ key: SessionKey, as version: SessionVersion, _ fleet: KeptFleet
    ) async -> Bool? {
        let lease = fleet.uncommitted[key]
        let name = sessionName(key, fleet)
        let session = shared(material, version: version)
        let result: Result<Bool, SharedFault> = await ask {
            fleet.tier.offer(session, name, under: lease, completion: $0)
        }
        guard case .success(let isNewest) = result else { return nil }
        fleet.uncommitted[key] = nil
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
        guard let fleet, identity.policy.isShared, part != .proofKey, let key = identity.durableKey(part) else {
            return .make(nil)
        }
        await firstConnection(fleet)
        let name = fleet.tier.name(.durable, KeyCodec.encode(key))
        let dead = refused?.bytes.withBytes { fleet.tier.identity(of: Array($0)) }
        let deadline = now + 2 * identity.policy.access.acquireTimeout
        while true {
            let claim: Result<SharedClaim, SharedFault> = await ask {
                fleet.tier.claim(name, unless: dead, isDead: dead != nil, completion: $0)
            }
            switch claim {
            case .failure(let fault):
                noteFleet(fault)
                throw withheld(fleet, "\(fault)")
            case .success(.lease(let lease)): return .make(hold(lease, fleet))
            case .success(.value(let bytes, _, let left)):
                guard let found = material(of: SharedSession(version: .none, value: bytes, lasts: left)) else {
                    throw withheld(fleet, "a registration in it cannot be read")
                }
                return .made(found)
            case .success(.busy):
                guard now < deadline, !Task.isCancelled else { throw withheld(fleet, "another gateway registers") }
                await news(of: name, within: Self.patience, fleet)
            }
        }
    }

    /// A part that another gateway has made, such as a registration. A session that came from the fleet is of no use without it.
    func durableOfFleet(_ part: DurablePart, of identity: KeptIdentity) async -> LayerMaterial? {
        guard let fleet, identity.policy.isShared, part != .proofKey, let key = identity.durableKey(part) else {
            return nil
        }
        let epoch = identity.logoutEpoch
        await firstConnection(fleet)
        let name = fleet.tier.name(.durable, KeyCodec.encode(key))
        guard case .success(let found?) = await ask({ fleet.tier.value(name, completion: $0) }),
            let material = material(of: found), identity.logoutEpoch == epoch
        else { return durable(part, of: identity) }
        // Another flight may have made or found one meanwhile.
        if let standing = durable(part, of: identity) { return standing }
        sessions.parts[key] = material
        await storeDurable(key, material, of: identity)
        return material
    }

    /// To a server that has forgotten it; what somebody else has brought back stays.
    func offerDurable(_ key: DurableKey, _ fleet: KeptFleet) async {
        let name = fleet.tier.name(.durable, KeyCodec.encode(key))
        guard
            case .success(.lease(let lease)) = await ask({
                fleet.tier.claim(name, unless: nil, isDead: false, completion: $0)
            })
        else { return }
        let hold = hold(lease, fleet)
        guard let material = sessions.parts[key] else { return letGo(hold) }
        await publish(material, under: hold)
    }

    func publish(_ material: LayerMaterial, under hold: FleetHold?) async {
        guard let fleet, let hold else { return }
        let session = shared(material, version: .none)
        let identity = material.bytes.withBytes { fleet.tier.identity(of: Array($0)) }
        let result: Result<Bool, SharedFault> = await ask {
            fleet.tier.publish(session.value, as: identity, under: hold.lease, for: session.lasts, completion: $0)
        }
        if case .failure(let fault) = result { noteFleet(fault) }
        letGo(hold)
    }

    func withdraw(_ key: DurableKey, _ material: LayerMaterial) {
        guard let fleet else { return }
        fleet.tier.withdraw(
            fleet.tier.name(.durable, KeyCodec.encode(key)),
            material.bytes.withBytes { fleet.tier.identity(of: Array($0)) })
    }

    // MARK: - Attempts

    private func accountName(_ account: Account, _ fleet: KeptFleet) -> SharedName {
        fleet.tier.name(.account, Array(account.issuer.description.utf8) + [0] + account.user.bytes)
    }

    func secretName(_ account: Account, _ secret: Secret, _ fleet: KeptFleet) -> SharedName {
        secret.withBytes { bytes in
            fleet.tier.name(
                .secret, Array(account.issuer.description.utf8) + [0] + account.user.bytes + [0] + Array(bytes))
        }
    }

    func attempt(_ account: Account, _ secret: Secret, _ number: String, _ fleet: KeptFleet) -> SharedAttempt {
        SharedAttempt(
            account: accountName(account, fleet), secret: secretName(account, secret, fleet), number: number)
    }

    /// Books the attempt with the fleet: a password that was refused on one gateway is not tried by another.
    func spendInFleet(
        _ mark: AttemptMark, _ secret: Secret, of identity: KeptIdentity
    ) async throws(Handshakes.GrantFailure) {
        guard let fleet else { return }
        let attempt = attempt(mark.account, secret, String(random.number(), radix: 36), fleet)
        let policy = identity.policy.attempts
        let limit = attempts.ledger.isRetry(mark, policy) ? max(policy.loginAttempts, 1) &+ 1 : policy.loginAttempts
        let result: Result<SharedVerdict, SharedFault> = await ask {
            fleet.tier.spend(attempt, limit: limit, completion: $0)
        }
        switch result {
        case .success(.allowed): fleet.attempts[mark] = attempt
        case .success(.spent):
            // Kept here too, so that it holds while the server is away.
            await storeAttempts(attempts.bookRejected(mark))
            throw .quarantined
        case .success(.settling): throw withheld(fleet, "it has just come up")
        case .failure(let fault):
            // The attempt may have been booked, and its password is not sent.
            fleet.tier.refund(attempt)
            noteFleet(fault)
            throw withheld(fleet, "\(fault)")
        }
    }

    func settleInFleet(_ outcome: AttemptOutcome, of mark: AttemptMark) {
        guard let fleet, let attempt = fleet.attempts.removeValue(forKey: mark) else { return }
        switch outcome {
        case .accepted: fleet.tier.accepted(attempt.account)
        case .rejected, .rejectedLeaving: fleet.tier.rejected(attempt)
        case .notSent: fleet.tier.refund(attempt)
        case .unknown: break
        }
    }

    func resetInFleet(_ account: Account) {
        guard let fleet else { return }
        fleet.tier.reset(accountName(account, fleet))
    }

    func resetElsewhere(_ name: SharedName, _ fleet: KeptFleet) {
        for identity in identities {
            guard let account = identity.account, accountName(account, fleet) == name else { continue }
            let rows = attempts.ledger.reset(account)
            guard !rows.isEmpty || attemptsRefused(identity) else { continue }
            start { await $0.storeAttempts(rows) }
            identity.recovered(at: now)
            raiseEpoch(of: identity, cause: .reset)
        }
    }

    /// The secret that is configured now is one that this gateway knows to be refused: the others are told.
    func tellRejected(_ identity: KeptIdentity, _ fleet: KeptFleet) async {
        guard let account = identity.account, let secret = try? await secret("password", of: identity),
            attemptsRefused(identity)
        else { return }
        fleet.tier.rejected(attempt(account, secret, "known", fleet))
    }

    /// Another gateway has met a refusal of this account. One that sends its password in each request has to know before its next one.
    func rejected(_ name: SharedName, _ fleet: KeptFleet) {
        for identity in identities where identity.policy.kind == .basic {
            guard let account = identity.account, accountName(account, fleet) == name else { continue }
            start { await $0.learnRefusal(of: identity) }
        }
    }

    /// Asks the fleet whether the password of a `basic` identity was refused elsewhere, and keeps the answer.
    func learnRefusal(of identity: KeptIdentity) async {
        guard let fleet, identity.policy.kind == .basic, let account = identity.account, !attemptsRefused(identity),
            let secret = try? await secret("password", of: identity)
        else { return }
        let version = identity.secretVersion
        await firstConnection(fleet)
        let attempt = attempt(account, secret, "", fleet)
        let result: Result<UInt32?, SharedFault> = await ask { fleet.tier.spent(attempt, completion: $0) }
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
