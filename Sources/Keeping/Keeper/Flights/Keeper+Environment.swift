internal import Audit
package import DataPath
internal import Handshakes
internal import HotCache
internal import Reactor
internal import Telemetry
internal import Tokens

/// Layers, secrets and login attempts, as a running handshake asks for them.
extension Keeper {
    /// - Parameter ticket: the one request that it is all for, where there is one.
    package func environment(of identity: KeptIdentity, ticket: Ticket? = nil) -> KeeperEnvironment {
        KeeperEnvironment(
            keeper: self, identity: identity, standing: identity.standing, claimant: sessions.nextClaimant(),
            ticket: ticket)
    }

    // MARK: - Durable layer

    func durable(_ part: DurablePart, of identity: KeptIdentity) -> LayerMaterial? {
        identity.durableKey(part).flatMap { sessions.parts.live($0, at: now) }
    }

    /// The first flight to claim a part makes it, the others wait for what becomes of it.
    func claimDurable(_ part: DurablePart, unless refused: LayerMaterial?, of identity: KeptIdentity) async
        -> DurableTurn
    {
        guard let key = identity.durableKey(part) else {
            return .failed(.internal(reason: "a scheme without an issuer"))
        }
        if let refused { drop(part, ifStill: refused, of: identity) }
        let wait = Wait<DurableTurn>()
        if let turn = sessions.parts.claim(key, wait, at: now) { return turn }
        return await wait.next()
    }

    func durableMade(
        _ part: DurablePart, of identity: KeptIdentity, _ result: Result<LayerMaterial, Handshakes.GrantFailure>
    ) {
        guard let key = identity.durableKey(part) else { return }
        for wait in sessions.parts.made(key) {
            switch result {
            case .success(let material): wait.give(.standing(material))
            case .failure(let failure): wait.give(.failed(failure))
            }
        }
    }

    /// Keeps the part, in memory at once and in the store before this returns. After a logout, what came too late is not kept; any other
    /// new epoch is no reason to register again.
    func commit(
        _ part: DurablePart, _ material: LayerMaterial, of identity: KeptIdentity, standing: Standing
    ) async throws(Handshakes.GrantFailure) {
        guard let key = identity.durableKey(part) else { throw .internal(reason: "a scheme without an issuer") }
        guard standing.epoch >= identity.logoutEpoch else { throw .timedOut(step: "superseded by a logout") }
        sessions.parts[key] = material
        await storeDurable(key, material, of: identity)
    }

    func drop(_ part: DurablePart, ifStill material: LayerMaterial, of identity: KeptIdentity) {
        // Compared, because another flight may have replaced it while this one awaited its answer.
        guard let key = identity.durableKey(part), sessions.parts.drop(key, ifStill: material) else { return }
        deleteDurable(key)
        withdraw(key, material)
    }

    // MARK: - Secrets

    /// Reads the secret on the blocking thread: a program or a slow disk behind it must not hold up the keeper.
    func secret(_ name: String, of identity: KeptIdentity) async throws(Handshakes.GrantFailure) -> Secret {
        let secret = try await value(of: name, identity)
        note([name: secret], of: identity)
        return secret
    }

    private func value(of name: String, _ identity: KeptIdentity) async throws(Handshakes.GrantFailure) -> Secret {
        guard let source = identity.policy.secrets[name] else { throw .internal(reason: "no secret named \(name)") }
        switch await read(source) {
        case .success(let secret): return secret
        case .failure(let fault): throw .secretUnreadable(name: name, reason: "\(fault)")
        }
    }

    /// The password of a `basic` identity as its requests carry it now; read where that has not been done.
    func sentPassword(of identity: KeptIdentity) async throws(Handshakes.GrantFailure) -> Secret {
        if let password = identity.latestSecrets["password"] { return password }
        return try await secret("password", of: identity)
    }

    private func read(_ source: @escaping SecretSource) async -> Result<Secret, any Error> {
        while true {
            let read: Result<Secret, any Error>? = await withCheckedContinuation { continuation in
                let accepted = blocking.run { continuation.resume(returning: Result { try source() }) }
                if accepted { oneTime.readings.began() } else { continuation.resume(returning: nil) }
            }
            if let read {
                oneTime.readings.ended()?.give(())
                return read
            }
            guard oneTime.readings.hasRoom else {
                oneTime.readings.next()?.give(())
                return .failure(GatewayFault("too many secrets are being read"))
            }
            let wait = Wait<Void>()
            oneTime.readings.add(wait)
            await wait.next()
        }
    }

    /// Runs the identity's program on a thread of its own: however long it takes, it holds up nobody else's secrets.
    func programAnswer(of identity: KeptIdentity) async throws(Handshakes.GrantFailure) -> Secret {
        guard let run = identity.policy.program else { throw .internal(reason: "no program") }
        let answer: Result<Secret, any Error> = await withCheckedContinuation { continuation in
            let accepted = resources.programs.run { continuation.resume(returning: Result { try run() }) }
            if !accepted { continuation.resume(returning: .failure(GatewayFault("too many programs wait to be run"))) }
        }
        do { return try answer.get() } catch {
            throw .issuerUnavailable(retryAfterSeconds: nil, reason: "program: \(error)")
        }
    }

    /// On the same thread as secrets: what takes a while to compute must not hold up the keeper either.
    func aside(_ work: @escaping @Sendable () throws -> Secret) async throws(Handshakes.GrantFailure) -> Secret {
        let made: Result<Secret, any Error> = await withCheckedContinuation { continuation in
            let accepted = blocking.run { continuation.resume(returning: Result { try work() }) }
            if !accepted { continuation.resume(returning: .failure(GatewayFault("too much waits to be computed"))) }
        }
        do { return try made.get() } catch { throw .internal(reason: "\(error)") }
    }

    func pause(_ span: UInt64) async {
        await withCheckedContinuation { continuation in later(span) { _ in continuation.resume() } }
    }

    func warn(_ what: String, of identity: KeptIdentity) {
        events.warn("handshake", [identity.logged, LogField("reason", .name(what))])
    }

    /// Values that belong together come in one call: a credential of several is made anew once, out of all of them.
    private func note(_ values: [String: Secret], of identity: KeptIdentity) {
        let changed = values.keys.sorted().filter { name in
            guard let secret = values[name] else { return false }
            let hash = attempts.hash(secret)
            let before = identity.secretHashes.updateValue(hash, forKey: name)
            if identity.policy.hasFixedToken { identity.latestSecrets[name] = secret }
            return before != nil && before != hash
        }
        guard !changed.isEmpty else { return }
        identity.secretVersion += 1
        endConnections(of: identity)
        for name in changed { events.info("secret changed", [identity.logged, LogField("secret", .name(name))]) }
        liftSessionRefusals(of: identity)
        for token in tokens.of(identity) {
            apply(token.machine.secretChanged(to: identity.secretVersion, at: now), to: token)
            if identity.policy.hasFixedToken { reload(token, isKnown: true) }
        }
    }

    /// A fixed credential's value is another one: nothing of the old one is served, and those on trial begin anew.
    /// - Parameter isKnown: the new value has been read.
    func reload(_ token: KeptToken, isKnown: Bool = false) {
        dropTrial(of: token)
        let actions = token.probation?.secretChanged() ?? []
        token.line = nil
        cache.clear(slot: token.slot)
        loadFixed(token, isKnown: isKnown, then: actions)
    }

    /// Looks whether a secret's value has changed, at most once a second: a request that would meet a quarantine is the moment to find out
    /// that the operator has put things right.
    func noticeSecrets(of identity: KeptIdentity, then work: @escaping @Sendable (isolated Keeper) -> Void) {
        guard isRefused(identity), now > identity.secretsCheckedAt + 1_000_000_000 else { return work(self) }
        identity.secretsCheckedAt = now
        start { keeper in
            await keeper.readSecrets(of: identity)
            work(keeper)
        }
    }

    private func isRefused(_ identity: KeptIdentity) -> Bool {
        // Where each user has a token, what was refused to one is no matter of the identity's secret.
        attemptsRefused(identity)
            || tokens.shared.values.contains { token in
                guard token.identity === identity else { return false }
                switch token.machine.state(at: now) {
                case .quarantined, .loginNeeded: return true
                default: return token.probation?.state == .quarantined
                }
            }
    }

    /// A folder of secrets changed.
    package func secretsMayHaveChanged() {
        start { keeper in
            for identity in keeper.identities { await keeper.readSecrets(of: identity) }
        }
    }

    /// After a start the mark of a refused secret is there before the secret is; which value was refused, only the value says. Read ahead
    /// only where there is a mark: a program that brings a secret may bring another one each time.
    func readMarked(of identity: KeptIdentity) async {
        guard attempts.knows(identity) else { return }
        await readSecrets(of: identity, unread: true)
    }

    /// - Parameter unread: only those that no flight has read yet: a mark is made of all of them.
    private func readSecrets(of identity: KeptIdentity, unread: Bool = false) async {
        guard unread || !identity.policy.hasFixedToken || identity.policy.secrets.count < 2 else {
            return await readTogether(of: identity)
        }
        for name in identity.policy.secrets.keys.sorted() where !unread || identity.secretHashes[name] == nil {
            _ = try? await secret(name, of: identity)
        }
    }

    /// The secrets of one credential, a key and its id, are replaced one after the other. While some have changed and others have not, the
    /// credential of before is served: a mixture would be refused, and the issuer of keys takes the old ones for a while.
    private func readTogether(of identity: KeptIdentity) async {
        var values = await readAll(of: identity)
        let changed = values.count { name, secret in
            identity.secretHashes[name].map { $0 != attempts.hash(secret) } ?? false
        }
        if changed > 0, changed < identity.policy.secrets.count {
            await pause(Self.replacement)
            values = await readAll(of: identity)
        }
        note(values, of: identity)
    }

    private func readAll(of identity: KeptIdentity) async -> [String: Secret] {
        var values: [String: Secret] = [:]
        for name in identity.policy.secrets.keys.sorted() { values[name] = try? await value(of: name, identity) }
        return values
    }

    /// Nanoseconds that the replacement of several files may take.
    private static let replacement: UInt64 = 1_000_000_000

    // MARK: - Login attempts

    /// Whether a password step would be refused now.
    func attemptsRefused(_ identity: KeptIdentity) -> Bool { heldBack(identity) != nil }

    /// Why a password step would not be made now; nil where it would.
    func heldBack(_ identity: KeptIdentity) -> HeldBack? {
        attempts.heldBack(identity, sparesPassword: hasSession(identity))
    }

    /// The identity's marks, or its login, stand in a store that cannot be read.
    package func lacksStore(_ identity: KeptIdentity) -> Bool {
        if storeRefusal(of: identity) != nil { return true }
        guard identity.policy.sendsPassword, !hasSession(identity) else { return false }
        return attempts.cannotRead(identity)
    }

    /// Something that may spare the password.
    private func hasSession(_ identity: KeptIdentity) -> Bool {
        identity.sessionKey(subject: nil).map { sessions.sparesPassword($0, at: now) } ?? false
    }

    /// Books an attempt on disk before the password leaves: a crash in between must not give it back.
    /// - Parameter secret: the one that is about to be sent; another reading may have found a new value since.
    /// - Returns: what `settleAttempt` needs; nil for schemes without an issuer.
    func spendAttempt(
        of identity: KeptIdentity, user: String, secret: Secret
    ) async throws(Handshakes.GrantFailure) -> AttemptMark? {
        if let refusal = refusal(of: .password) { throw refusal }
        guard let issuer = identity.issuer else { return nil }
        let mark = AttemptMark(
            account: Account(issuer: issuer, user: ByteString(user)), secretHash: ByteString(attempts.hash(secret)))
        try attempts.begin(mark, identity.policy.attempts)
        do throws(Handshakes.GrantFailure) { try await spendInFleet(mark, secret, of: identity) } catch {
            attempts.cancel(mark)
            throw error
        }
        // A reload may have brought other bounds meanwhile.
        let policy = identity.policy.attempts
        let needsMark = attempts.needsMark(mark, policy)
        let isMarked = await storeAttempts([attempts.ledger.spend(mark, policy)])
        guard isMarked || !needsMark else {
            await settleAttempt(.notSent, of: mark)
            throw .storeUnusable
        }
        return mark
    }

    func settleAttempt(_ outcome: AttemptOutcome, of mark: AttemptMark) async {
        let rows = attempts.settle(outcome, of: mark)
        settleInFleet(outcome, of: mark)
        if outcome != .unknown { await storeAttempts(rows) }
    }

    /// `basic`: the upstream itself refused, there was no password step.
    func markRejected(_ identity: KeptIdentity) {
        endConnections(of: identity)
        guard identity.account != nil else { return }
        let isRead = identity.policy.secrets.keys.allSatisfy { identity.secretHashes[$0] != nil }
        // The refusal counts for the values that were refused, not for those that another reading brings meanwhile.
        let version = identity.secretVersion
        let known = isRead ? bookRejected(identity) : nil
        // Until it is booked: other tokens of the identity must not send it meanwhile.
        identity.refusedVersion = version
        identity.marking = start { keeper in
            defer { if identity.refusedVersion == version { identity.refusedVersion = nil } }
            if !isRead { await keeper.readSecrets(of: identity, unread: true) }
            guard identity.secretVersion == version else { return }
            guard let rows = known ?? (isRead ? nil : keeper.bookRejected(identity)) else { return }
            await keeper.storeAttempts(rows)
            if keeper.fleet.tier != nil, identity.policy.kind == .basic { await keeper.tellRejected(identity) }
        }
    }

    private func bookRejected(_ identity: KeptIdentity) -> [AttemptLedger.Row]? {
        attempts.marks(of: identity).first.map { attempts.bookRejected($0) }
    }

    // MARK: - Operators

    /// Lifts a quarantine. False when there is no such identity.
    package func reset(identity name: String) -> Bool {
        guard let identity = catalogue.identity(named: name) else { return false }
        identity.recovered(at: now)
        logins.stepUps.forget(identity.digest)
        if sessions.parts.doubtsRegistration(of: identity) { letRegistrationGo(of: identity) }
        overruleDoubt(of: identity)
        settleForHeld(of: identity)
        let all = identity.accounts
        if !all.isEmpty {
            let rows = all.flatMap { attempts.ledger.reset($0) }
            start { await $0.storeAttempts(rows) }
            for one in all { resetInFleet(one) }
        }
        for token in tokens.all where token.key.digest == identity.digest { token.lastFailure = nil }
        // Whoever shares its tokens shares its refusals.
        for one in catalogue.same(as: identity) { raiseEpoch(of: one, cause: .reset) }
        audit(.reset, identity)
        events.info("identity reset", [LogField("identity", .name(name))])
        return true
    }

    /// Not every issuer has a known way to say that it has forgotten a registration: an operator decides, and the log says how.
    func doubtRegistration(
        of identity: KeptIdentity, after failure: Handshakes.GrantFailure, _ ledger: KeeperEnvironment
    ) {
        switch failure {
        case .credentialRejected, .policyDenied, .configuration, .issuerAnswerInvalid, .interactionRequired: break
        default: return
        }
        note(doubt: ledger.usesRegistration, of: identity)
        guard ledger.usesRegistration else { return }
        let name = identity.plan.name
        events.warn(
            "a step with a kept registration failed",
            [
                LogField("identity", .name(name)), LogField("reason", .name("\(failure)")),
                LogField(
                    "advice",
                    .name("if the issuer has forgotten the registration, a new one is made after: cardea reset \(name)")
                ),
            ])
    }

    /// - Parameter doubt: whether the last failure was of a step that used the registration that stands.
    func note(doubt: Bool, of identity: KeptIdentity) {
        switch sessions.parts.note(doubt: doubt, of: identity, at: now) {
        case .unchanged: break
        case .over(let key): deleteDurable(key)
        case .noted(let key, let copy): start { await $0.storeDurable(key, copy, of: identity) }
        }
    }

    private func letRegistrationGo(of identity: KeptIdentity) {
        note(doubt: false, of: identity)
        guard let key = identity.durableKey(.registration), let material = sessions.parts[key] else { return }
        drop(.registration, ifStill: material, of: identity)
        events.info("registration let go", [identity.logged])
    }

    /// Outcomes of flights that are under way for the identity are not published any more (docs/design/tokens.md#rule-9). A purge or logout
    /// also drops what is held.
    func raiseEpoch(of identity: KeptIdentity, cause: EpochCause) {
        identity.epoch += 1
        forgetCredentials(of: identity)
        if cause == .logout {
            identity.logoutEpoch = identity.epoch
            if !identity.plan.handshake.keepsRegistration {
                for key in sessions.parts.forget(identity.digest) { deleteDurable(key) }
            }
        }
        if cause == .purge || cause == .logout { dropAbsent(of: identity) }
        if cause == .purge || cause == .logout { withdrawFromFleet(tokens.of(identity)) }
        raiseSessionEpoch(of: identity, cause: cause)
        for token in tokens.of(identity) {
            apply(token.machine.epochRose(to: identity.epoch, cause: cause, at: now), to: token)
            switch cause {
            case .purge, .logout: reloadFixed(token)
            case .reset, .reload: if token.probation != nil { reload(token) }
            }
        }
    }

    /// After a purge: nobody grants a fixed credential, it is read anew.
    func reloadFixed(_ token: KeptToken) {
        if token.identity.policy.hasFixedToken { reload(token) }
    }
}
