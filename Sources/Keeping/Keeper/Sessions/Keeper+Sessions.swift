internal import DataPath
internal import Handshakes
internal import TokenStore
package import Tokens

/// The session layer: interprets the machines of the locks. A step is made by the task of a flight that waits for it, so that a
/// handshake reads as straight lines; whose turn it is, the machine says.
extension Keeper {
    /// How long a new refresh token may be on its way to the disk before the store counts as degraded and the token is used.
    static let sessionCommitWait: UInt64 = 5_000_000_000

    private func lock(of key: SessionKey) -> SessionLock { sessions.lock(of: key, identities) }

    func liveSession(_ key: SessionKey) -> LayerMaterial? { sessions.live(key, at: now) }

    func sparesPerson(_ key: SessionKey) -> Bool { sessions.sparesPassword(key, at: now) }

    func claimSession(_ claim: SessionClaim, environment: KeeperEnvironment) async -> SessionTurn {
        let identity = environment.identity
        // A login that a person has just brought is on its way to the disk: until it is there, no flight uses it, or the session that
        // it replaces.
        if let keeping = identity.keeping { await keeping.value }
        guard let key = environment.sessionKey else { return .failed(.internal(reason: "a scheme without an issuer")) }
        guard environment.standing.epoch == identity.epoch else { return .failed(.timedOut(step: "superseded")) }
        if let refusal = refusal(of: claim, key, identity) { return .failed(refusal) }
        let lock = lock(of: key)
        let pending = sessions.claim(key, by: environment.claimant, at: lock)
        let actions: [SessionMachine.Action]
        if let refused = claim.refused {
            let generation = sessions[key].flatMap { $0.material == refused ? $0.generation : nil } ?? 0
            if generation != 0 { endSession(key, identity) }
            actions = lock.machine.sessionRefused(
                key, generation: generation, by: environment.claimant, standing: environment.standing,
                canGrantFully: claim.canGrantFully, isOwn: claim.isOwn, at: now)
        } else {
            actions = lock.machine.claimed(
                key, by: environment.claimant, standing: environment.standing, canGrantFully: claim.canGrantFully,
                isOwn: claim.isOwn, at: now)
        }
        perform(actions, on: lock, isFresh: false)
        return await pending.turn.next()
    }

    func stepEnded(
        _ step: SessionMachine.Step, _ result: Result<LayerMaterial, Handshakes.GrantFailure>,
        environment: KeeperEnvironment
    ) async -> SessionTurn {
        let lock = lock(of: step.key)
        guard let runner = lock.runner, runner.token == step.token else {
            return .failed(.internal(reason: "a step that nobody ordered"))
        }
        let actions: [SessionMachine.Action]
        let hadSession = sessions[step.key] != nil
        switch result {
        case .success(let material):
            var session = KeptSession(key: step.key, generation: tokens.nextGeneration(), material: material)
            let before = sessions[step.key]?.material.refreshToken
            // Whatever becomes of what was brought: what was sent is spent.
            lock.besides = noteSpent(
                by: material, first: environment.firstRefreshToken, for: step.key, of: environment.identity)
            session.material.spent = nil
            lock.arriving = session
            lock.runner = nil
            actions = lock.machine.stepSucceeded(
                step.token,
                session.known(isRotated: material.refreshToken != nil && material.refreshToken != before))
        case .failure(let failure):
            lock.failures[step.key] = failure
            actions = lock.machine.stepFailed(step.token, Tokens.GrantFailure(failure))
            // Another rung is this flight's too; anything else is somebody else's turn.
            if case .run(let next)? = actions.last, next.token == step.token {} else { lock.runner = nil }
        }
        perform(actions, on: lock, isFresh: true)
        if !hadSession, let session = lock.arriving, session.material.isHollow { forget(session, on: lock) }
        lock.arriving = nil
        keep(lock.takeBesides())
        if runner.claim.isReleased, !runner.claim.turn.hasWord { return .failed(.timedOut(step: "given up")) }
        return await runner.claim.turn.next()
    }

    /// The flight is over, or was given up: nobody waits under its name.
    package func release(_ claimant: SessionMachine.Claimant) {
        for claim in sessions.release(claimant) { claim.turn.give(.failed(.timedOut(step: "given up"))) }
    }

    // MARK: - Interpreting the machine

    private func perform(_ actions: [SessionMachine.Action], on lock: SessionLock, isFresh: Bool) {
        for action in actions {
            switch action {
            case .run(let step):
                if lock.runner?.token != step.token {
                    guard let leader = lock.machine.leader, let claim = lock.claims[leader] else { continue }
                    lock.runner = (step.token, claim)
                }
                lock.runner?.claim.turn.give(.run(step, sessions[step.key]?.material))
            case .commit(let key, let generation): commitSession(key, generation, on: lock)
            case .deliver(let claimants, let outcome):
                for claimant in claimants {
                    guard let claim = lock.claims.removeValue(forKey: claimant) else { continue }
                    claim.turn.give(word(of: outcome, claim.key, on: lock, isFresh: isFresh))
                }
            case .dropRefreshToken(let key): dropRefreshToken(of: key)
            case .discard(let token, let isRevoked): discardSession(of: token, isRevoked: isRevoked, on: lock)
            case .report(.storeDegraded): noteSlowStore()
            // Each access token that meets it says so, with its upstream.
            case .report: break
            }
        }
    }

    /// A step that brought its access token and nothing to have another one with: of thousands of users nothing is to stay.
    private func forget(_ session: KeptSession, on lock: SessionLock) {
        guard sessions[session.key]?.generation == session.generation else { return }
        sessions[session.key] = nil
        lock.machine.forgotten(session.key, generation: session.generation)
    }

    private func word(
        of outcome: SessionMachine.Outcome, _ key: SessionKey, on lock: SessionLock, isFresh: Bool
    ) -> SessionTurn {
        switch outcome {
        case .ready:
            guard let session = sessions[key] else {
                return .failed(.issuerUnavailable(retryAfterSeconds: 1, reason: "the session was purged"))
            }
            return .ready(session.material, isFresh: isFresh)
        case .failed(let failure):
            if let said = lock.failures[key], Tokens.GrantFailure(said) == failure { return .failed(said) }
            return .failed(Handshakes.GrantFailure(failure))
        }
    }

    /// In memory at once. The row is queued ahead of every row that is made from it; only a new refresh token is also waited for, because
    /// its predecessor is dead from now on.
    private func commitSession(_ key: SessionKey, _ generation: UInt64, on lock: SessionLock) {
        guard let session = lock.arriving, session.generation == generation,
            let identity = catalogue.identityOrRetired(key.digest)
        else { return }
        let isWorthARow = sessions[key] != nil || !session.material.isHollow
        sessions[key] = session
        lock.failures[key] = nil
        if session.material.isHuman { watchLogins() }
        var changes = lock.takeBesides()
        if isWorthARow, let row = sessionRow(key, session.material, of: identity) {
            changes = [.put(row)] + versionRows(of: key) + changes
        }
        guard !changes.isEmpty, store != nil else {
            return sessionCommitted(key, generation, on: lock, succeeded: true)
        }
        // A lost letter is met by the alarm.
        commit(changes) { $0.sessionCommitted(key, generation, on: lock, succeeded: $1) }
        set(&lock.alarm, at: now + Self.sessionCommitWait) { [weak lock] keeper in
            // A lock that was given up is held by nobody.
            guard let lock else { return }
            keeper.sessionCommitted(key, generation, on: lock, succeeded: false)
        }
    }

    private func sessionCommitted(_ key: SessionKey, _ generation: UInt64, on lock: SessionLock, succeeded: Bool) {
        if sessions[key]?.generation == generation { lock.alarm?.clear() }
        perform(lock.machine.committed(key, generation: generation, succeeded: succeeded), on: lock, isFresh: true)
    }

    // MARK: - Ending sessions

    /// The session is dead to its issuer; what may still be good is its refresh token.
    private func endSession(_ key: SessionKey, _ identity: KeptIdentity) {
        guard sessions[key] != nil else { return }
        guard let left = sessions.end(key) else { return deleteSessionRow(key) }
        guard let row = sessionRow(key, left, of: identity), let store else { return }
        let erasure = erasures.current
        erasure.began()
        // A purge may have ended the session, and waits for this write as for its deletions.
        store.put(row) { erasure.ended($0) }
    }

    private func dropRefreshToken(of key: SessionKey) {
        guard sessions[key] != nil else { return }
        endInFleet(key)
        guard let identity = catalogue.identityOrRetired(key.digest),
            let left = sessions.dropRefreshToken(of: key, at: now)
        else {
            sessions[key] = nil
            return deleteSessionRow(key)
        }
        if let row = sessionRow(key, left, of: identity) { keep([.put(row)]) }
    }

    private func discardSession(of token: FlightToken, isRevoked: Bool, on lock: SessionLock) {
        guard let session = lock.arriving, let identity = catalogue.identityOrRetired(token.standing.digest) else {
            return
        }
        let key = session.key
        switch session.late(token.standing.epoch, isRevoked: isRevoked, for: identity) {
        case .dropped: break
        case .revoked:
            keep(lock.takeBesides())
            session.material.refreshToken.map { endFamily(of: $0) }
            revoke(session.material, of: identity)
        case .kept(let material) where !catalogue.isConfigured(key.digest): keepLate(key, material)
        case .kept(let material):
            let kept = KeptSession(key: key, generation: session.generation, material: material)
            sessions[key] = kept
            lock.machine.adopted(key, kept.known())
            if let row = sessionRow(key, material, of: identity) { keep([.put(row)] + lock.takeBesides()) }
        }
    }

    /// Tells the issuer, as far as the scheme can. Nobody waits for it.
    private func revoke(_ material: LayerMaterial, of identity: KeptIdentity) {
        let environment = environment(of: identity)
        start { keeper in
            await identity.plan.handshake.revoke(material, environment: environment)
            keeper.release(environment.claimant)
        }
    }

    // MARK: - Store, operator

    /// A session out of the store, or brought by a person's login.
    func adoptSession(_ material: LayerMaterial, _ key: SessionKey) {
        let session = KeptSession(key: key, generation: tokens.nextGeneration(), material: material)
        sessions[key] = session
        lock(of: key).machine.adopted(key, session.known())
    }

    func leaveLocks(_ left: Set<IdentityDigest>) {
        guard !left.isEmpty else { return }
        for lock in sessions.locksInOrder {
            for digest in lock.machine.digests.intersection(left).inOrder(of: \.bytes) {
                perform(lock.machine.retired(digest), on: lock, isFresh: false)
            }
        }
    }

    func liftSessionRefusals(of identity: KeptIdentity) {
        for lock in sessions.locks.values {
            lock.machine.refusalsLifted(of: identity.digest, secretVersion: identity.secretVersion)
        }
    }

    func raiseSessionEpoch(of identity: KeptIdentity, cause: EpochCause) {
        for (session, isRenewable) in sessions.ending(identity.digest, by: cause) {
            if isRenewable {
                endSession(session.key, identity)
                continue
            }
            sessions[session.key] = nil
            deleteSessionRow(session.key)
            if cause == .logout { session.material.refreshToken.map { endFamily(of: $0) } }
        }
        for lock in sessions.locksInOrder {
            perform(
                lock.machine.epochRose(of: identity.digest, to: identity.epoch, cause: cause), on: lock, isFresh: false)
        }
    }
}
