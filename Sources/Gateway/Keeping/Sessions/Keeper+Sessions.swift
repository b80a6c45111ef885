internal import Handshakes
internal import Reactor
internal import Telemetry
internal import TokenStore
internal import Tokens

/// The session layer: interprets the machines of the lanes. A step is made by the task of a flight that waits for it, so that a
/// handshake reads as straight lines; whose turn it is, the machine says.
extension Keeper {
    /// How long a new refresh token may be on its way to the disk before the store counts as degraded and the token is used.
    static let sessionCommitWait: UInt64 = 5_000_000_000

    private func lane(of key: SessionKey) -> KeptLane {
        if let lane = lanes[key.lane] { return lane }
        sweepLanes()
        let lane = KeptLane()
        // What every other lane of the issuer was told when it happened.
        for identity in identities where identity.issuer == key.issuer {
            guard identity.logoutEpoch > 0 || identity.secretVersion > 1 else { continue }
            lane.machine.returned(
                identity.digest, logoutEpoch: identity.logoutEpoch, secretVersion: identity.secretVersion)
        }
        lanes[key.lane] = lane
        return lane
    }

    /// Each end user has a lane of his own while something is under way for him. Those with nothing to remember are swept now and then
    /// instead of one by one.
    private func sweepLanes() {
        guard lanes.count > 2 * lanesSwept + 1024 else { return }
        for (key, lane) in lanes where lane.claims.isEmpty && lane.runner == nil && lane.machine.isEmpty {
            lane.alarm.take()?.close()
            lanes[key] = nil
        }
        lanesSwept = lanes.count
    }

    func nextClaimant() -> SessionMachine.Claimant {
        lastClaimant += 1
        return lastClaimant
    }

    // MARK: - From flights

    func liveSession(_ key: SessionKey) -> LayerMaterial? {
        guard let session = sessions[key],
            lanes[key.lane]?.machine.session(key, at: now)?.generation == session.generation
        else { return nil }
        return session.material
    }

    func claimSession(_ claim: SessionClaim, ledger: KeeperLedger) async -> SessionTurn {
        let identity = ledger.identity
        // What a person has just brought is on its way to the disk: nobody uses it before, nor what it replaces.
        if let keeping = identity.keeping { await keeping.value }
        guard let key = ledger.sessionKey else { return .failed(.internal(reason: "a scheme without an issuer")) }
        guard ledger.standing.epoch == identity.epoch else { return .failed(.timedOut(step: "superseded")) }
        if let refusal = refusal(of: claim, key, identity) { return .failed(refusal) }
        let lane = lane(of: key)
        let pending = PendingClaim(key)
        lane.claims[ledger.claimant] = pending
        if claimedLanes[ledger.claimant]?.last !== lane { claimedLanes[ledger.claimant, default: []].append(lane) }
        let actions: [SessionMachine.Action]
        if let refused = claim.refused {
            let generation = sessions[key].flatMap { $0.material == refused ? $0.generation : nil } ?? 0
            if generation != 0 { endSession(key, identity) }
            actions = lane.machine.sessionRefused(
                key, generation: generation, by: ledger.claimant, standing: ledger.standing,
                canGrantFully: claim.canGrantFully, isOwn: claim.isOwn, at: now)
        } else {
            actions = lane.machine.claimed(
                key, by: ledger.claimant, standing: ledger.standing, canGrantFully: claim.canGrantFully,
                isOwn: claim.isOwn, at: now)
        }
        perform(actions, on: lane, isFresh: false)
        return await pending.turn.next(isolation: self)
    }

    func stepEnded(
        _ step: SessionMachine.Step, _ result: Result<LayerMaterial, Handshakes.GrantFailure>, ledger: KeeperLedger
    ) async -> SessionTurn {
        let lane = lane(of: step.key)
        guard let runner = lane.runner, runner.token == step.token else {
            return .failed(.internal(reason: "a step that nobody ordered"))
        }
        let actions: [SessionMachine.Action]
        let hadSession = sessions[step.key] != nil
        switch result {
        case .success(let material):
            var session = KeptSession(key: step.key, generation: tokens.nextGeneration(), material: material)
            let before = sessions[step.key]?.material.refreshToken
            // Whatever becomes of what was brought: what was sent is spent.
            lane.besides = noteSpent(
                by: material, first: ledger.firstRefreshToken, for: step.key, of: ledger.identity)
            session.material.spent = nil
            lane.arriving = session
            lane.runner = nil
            actions = lane.machine.stepSucceeded(
                step.token,
                known(session, isRotated: material.refreshToken != nil && material.refreshToken != before))
        case .failure(let failure):
            lane.failures[step.key] = failure
            actions = lane.machine.stepFailed(step.token, Tokens.GrantFailure(failure))
            // Another rung is this flight's too; anything else is somebody else's turn.
            if case .run(let next)? = actions.last, next.token == step.token {} else { lane.runner = nil }
        }
        perform(actions, on: lane, isFresh: true)
        if !hadSession, let session = lane.arriving, session.material.isHollow { forget(session, on: lane) }
        lane.arriving = nil
        keep(lane.takeBesides())
        if runner.claim.isReleased, !runner.claim.turn.hasWord { return .failed(.timedOut(step: "given up")) }
        return await runner.claim.turn.next(isolation: self)
    }

    /// The flight is over, or was given up: nobody waits under its name.
    func release(_ claimant: SessionMachine.Claimant) {
        for lane in claimedLanes.removeValue(forKey: claimant) ?? [] {
            guard let pending = lane.claims.removeValue(forKey: claimant) else {
                lane.machine.released(claimant)
                continue
            }
            lane.machine.released(claimant)
            if lane.runner?.claim === pending {
                pending.isReleased = true
            } else {
                pending.turn.give(.failed(.timedOut(step: "given up")))
            }
        }
    }

    // MARK: - Interpreting the machine

    private func perform(_ actions: [SessionMachine.Action], on lane: KeptLane, isFresh: Bool) {
        for action in actions {
            switch action {
            case .run(let step):
                if lane.runner?.token != step.token {
                    guard let leader = lane.machine.leader, let claim = lane.claims[leader] else { continue }
                    lane.runner = (step.token, claim)
                }
                lane.runner?.claim.turn.give(.run(step, sessions[step.key]?.material))
            case .commit(let key, let generation): commitSession(key, generation, on: lane)
            case .deliver(let claimants, let outcome):
                for claimant in claimants {
                    guard let claim = lane.claims.removeValue(forKey: claimant) else { continue }
                    claim.turn.give(word(of: outcome, claim.key, on: lane, isFresh: isFresh))
                }
            case .dropRefreshToken(let key): dropRefreshToken(of: key)
            case .discard(let token, let isRevoked): discardSession(of: token, isRevoked: isRevoked, on: lane)
            case .report(.storeDegraded): noteSlowStore()
            // Each access token that meets it says so, with its upstream.
            case .report: break
            }
        }
    }

    /// A step that brought its access token and nothing to have another one with: of thousands of users nothing is to stay.
    private func forget(_ session: KeptSession, on lane: KeptLane) {
        guard sessions[session.key]?.generation == session.generation else { return }
        sessions[session.key] = nil
        lane.machine.forgotten(session.key, generation: session.generation)
    }

    private func word(
        of outcome: SessionMachine.Outcome, _ key: SessionKey, on lane: KeptLane, isFresh: Bool
    ) -> SessionTurn {
        switch outcome {
        case .ready:
            guard let session = sessions[key] else {
                return .failed(.issuerUnavailable(retryAfterSeconds: 1, reason: "the session was purged"))
            }
            return .ready(session.material, isFresh: isFresh)
        case .failed(let failure):
            if let said = lane.failures[key], Tokens.GrantFailure(said) == failure { return .failed(said) }
            return .failed(Handshakes.GrantFailure(failure))
        }
    }

    private func known(_ session: KeptSession, isRotated: Bool = false) -> SessionMachine.Session {
        let material = session.material
        let end = material.lifetime.map { life in
            let (sum, overflow) = material.obtainedAt.addingReportingOverflow(life)
            return overflow ? .max : sum
        }
        return SessionMachine.Session(
            generation: session.generation, stopServingAt: end ?? .max, hasRefreshToken: material.refreshToken != nil,
            rotated: isRotated, isHuman: material.isHuman)
    }

    /// In memory at once. The row is queued ahead of every row that is made from it; only a new refresh token is also waited for, because
    /// its predecessor is dead from now on.
    private func commitSession(_ key: SessionKey, _ generation: UInt64, on lane: KeptLane) {
        guard let session = lane.arriving, session.generation == generation,
            let identity = catalogue.identityOrRetired(key.digest)
        else { return }
        let isWorthARow = sessions[key] != nil || !session.material.isHollow
        sessions[key] = session
        lane.failures[key] = nil
        if session.material.isHuman { watchLogins() }
        var changes = lane.takeBesides()
        if isWorthARow, let row = sessionRow(key, session.material, of: identity) {
            changes = [.put(row)] + versionRows(of: key) + changes
        }
        guard !changes.isEmpty, let store else {
            return sessionCommitted(key, generation, on: lane, succeeded: true)
        }
        store.commit(changes) { result in
            // A lost letter is met by the alarm.
            self.post { keeper in
                keeper.note(result)
                var succeeded = false
                if case .success = result { succeeded = true }
                keeper.sessionCommitted(key, generation, on: lane, succeeded: succeeded)
            }
        }
        set(&lane.alarm, at: now + Self.sessionCommitWait) { [unowned lane] keeper in
            keeper.sessionCommitted(key, generation, on: lane, succeeded: false)
        }
    }

    private func sessionCommitted(_ key: SessionKey, _ generation: UInt64, on lane: KeptLane, succeeded: Bool) {
        if sessions[key]?.generation == generation { lane.alarm?.clear() }
        perform(lane.machine.committed(key, generation: generation, succeeded: succeeded), on: lane, isFresh: true)
    }

    // MARK: - Ending sessions

    /// The session is dead to its issuer; what may still be good is its refresh token.
    private func endSession(_ key: SessionKey, _ identity: KeptIdentity) {
        guard var session = sessions[key] else { return }
        guard session.material.refreshToken != nil else {
            sessions[key] = nil
            return deleteSessionRow(key)
        }
        session.material.lifetime = 0
        sessions[key] = session
        guard let row = sessionRow(key, session.material, of: identity), let store else { return }
        let erasures = erasures
        erasures.began()
        // What is ended is a part of what a purge forgets.
        store.put(row) { erasures.ended($0) }
    }

    private func dropRefreshToken(of key: SessionKey) {
        guard var session = sessions[key] else { return }
        endInFleet(key)
        session.material.refreshToken = nil
        guard session.material.isLive(at: now), !session.material.bytes.isEmpty,
            let identity = catalogue.identityOrRetired(key.digest)
        else {
            sessions[key] = nil
            return deleteSessionRow(key)
        }
        sessions[key] = session
        if let row = sessionRow(key, session.material, of: identity) { keep([.put(row)]) }
    }

    /// The outcome of an older epoch is not used, but the issuer has replaced the refresh token all the same
    /// (docs/design/tokens.md#rule-9).
    private func discardSession(of token: FlightToken, isRevoked: Bool, on lane: KeptLane) {
        guard let session = lane.arriving, let identity = catalogue.identityOrRetired(token.standing.digest),
            ends(session, of: identity)
        else { return }
        guard !isRevoked else {
            keep(lane.takeBesides())
            session.material.refreshToken.map { endFamily(of: $0) }
            return revoke(session.material, of: identity)
        }
        // A person has logged in since: this is what came of the login before. It is not revoked, because some issuers would revoke
        // everything of this person and client with it.
        guard token.standing.epoch >= identity.loginEpoch else { return }
        guard session.material.refreshToken != nil else { return }
        var material = session.material
        material.lifetime = 0
        guard catalogue.isConfigured(session.key.digest) else { return keepLate(session.key, material) }
        let kept = KeptSession(key: session.key, generation: session.generation, material: material)
        let key = session.key
        sessions[key] = kept
        lane.machine.adopted(key, known(kept))
        if let row = sessionRow(key, material, of: identity) { keep([.put(row)] + lane.takeBesides()) }
    }

    private func ends(_ session: KeptSession, of identity: KeptIdentity) -> Bool {
        session.material.refreshToken != nil || identity.plan.handshake.endsSessions
    }

    /// Tells the issuer, as far as the scheme can. Nobody waits for it.
    private func revoke(_ material: LayerMaterial, of identity: KeptIdentity) {
        let client = KeeperIssuerClient(keeper: self, network: identity.policy.network)
        let ledger = KeeperLedger(
            keeper: self, identity: identity, standing: identity.standing, claimant: nextClaimant())
        start { keeper in
            await identity.plan.handshake.revoke(material, ledger: ledger, issuer: client)
            keeper.release(ledger.claimant)
        }
    }

    // MARK: - Store, operator

    /// A session out of the store, or brought by a person's login.
    func adoptSession(_ material: LayerMaterial, _ key: SessionKey) {
        let session = KeptSession(key: key, generation: tokens.nextGeneration(), material: material)
        sessions[key] = session
        lane(of: key).machine.adopted(key, known(session))
    }

    /// After a reload, before sessions are taken up: what the lanes remember belongs to the identities that are there now.
    func matchLanes() {
        // Of the others there is nothing to remember, and what a lane remembers of them already is all that can be wrong.
        let marked = Dictionary(
            grouping: identities.filter { $0.logoutEpoch > 0 || $0.secretVersion > 1 }, by: \.issuer)
        for (key, lane) in lanes {
            let remembered = lane.machine.remembered.compactMap { catalogue.identity($0) }
            for identity in remembered + (marked[key.issuer] ?? []) {
                lane.machine.returned(
                    identity.digest, logoutEpoch: identity.logoutEpoch, secretVersion: identity.secretVersion)
            }
        }
    }

    func leaveLanes(_ left: Set<IdentityDigest>) {
        guard !left.isEmpty else { return }
        for lane in lanes.values {
            for digest in lane.machine.digests.intersection(left) {
                perform(lane.machine.retired(digest), on: lane, isFresh: false)
            }
        }
    }

    func liftSessionRefusals(of identity: KeptIdentity) {
        for lane in lanes.values {
            lane.machine.refusalsLifted(of: identity.digest, secretVersion: identity.secretVersion)
        }
    }

    func raiseSessionEpoch(of identity: KeptIdentity, cause: EpochCause) {
        if cause == .purge || cause == .logout {
            for (key, session) in sessions where key.digest == identity.digest {
                // A purge gets new tokens; it does not send a person to the login page. Where nothing came to renew it with, the session is all
                // that there is of the login, and stays as it is.
                if cause == .purge, session.material.isHuman {
                    if session.material.refreshToken != nil { endSession(key, identity) }
                    continue
                }
                sessions[key] = nil
                deleteSessionRow(key)
                if cause == .logout { session.material.refreshToken.map { endFamily(of: $0) } }
            }
        }
        for lane in lanes.values {
            perform(
                lane.machine.epochRose(of: identity.digest, to: identity.epoch, cause: cause), on: lane, isFresh: false)
        }
    }
}

extension LayerMaterial {
    /// There is nothing in it that a later step could use.
    fileprivate var isHollow: Bool { bytes.isEmpty && refreshToken == nil && !isHuman }
}

extension KeptIdentity {
    /// Nil for schemes that have no session.
    func sessionKey(subject: ByteString?) -> SessionKey? {
        issuer.map { SessionKey(digest: digest, issuer: $0, subject: subject ?? account?.user) }
    }
}

extension Handshakes.GrantFailure {
    /// For outcomes that the machine itself decided.
    init(_ failure: Tokens.GrantFailure) {
        switch failure {
        case .issuerUnavailable(let wait), .notPermitted(let wait):
            self = .issuerUnavailable(
                retryAfterSeconds: wait.map { Int(clamping: $0 / 1_000_000_000) }, reason: "the login was interrupted")
        case .issuerAnswerInvalid: self = .issuerAnswerInvalid(reason: "no session")
        case .timedOut: self = .timedOut(step: "login")
        case .configuration: self = .configuration(reason: "the login failed")
        case .policyDenied: self = .policyDenied(reason: "a second session was refused too")
        case .credentialRejected: self = .quarantined
        case .interactionRequired: self = .interactionRequired(reason: "a person must log in")
        }
    }
}
