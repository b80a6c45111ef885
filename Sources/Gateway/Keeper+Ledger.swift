internal import Handshakes
internal import HotCache
internal import Reactor
internal import TLS
internal import Telemetry
internal import TokenStore
internal import Tokens

/// Layers, secrets and login attempts, as a running handshake asks for them.
extension Keeper {
    // MARK: - Layers

    func material(_ layer: Layer, of identity: KeptIdentity) -> LayerMaterial? {
        let material = layer == .durable ? identity.durable : identity.session
        guard let material, material.isLive(at: now) else { return nil }
        return material
    }

    /// Keeps the layer's material, in memory at once and in the store before this returns. An outcome of an older epoch is not kept.
    func commit(
        _ layer: Layer, _ material: LayerMaterial, of identity: KeptIdentity, standing: Standing
    ) async throws(Handshakes.GrantFailure) {
        guard standing.epoch == identity.epoch else { throw .timedOut(step: "superseded by a reset") }
        if layer == .durable { identity.durable = material } else { identity.session = material }
        await storeLayer(layer, material, of: identity)
    }

    func drop(_ layer: Layer, ifStill material: LayerMaterial, of identity: KeptIdentity) {
        // Compared, because another flight may have replaced it while this one awaited its answer.
        if layer == .durable, identity.durable == material {
            identity.durable = nil
        } else if layer == .session, identity.session == material {
            identity.session = nil
        } else {
            return
        }
        deleteLayer(layer, of: identity)
    }

    // MARK: - Secrets

    /// Reads the secret on the blocking thread: a program or a slow disk behind it must not hold up the keeper.
    func secret(_ name: String, of identity: KeptIdentity) async throws(Handshakes.GrantFailure) -> Secret {
        guard let source = identity.policy.secrets[name] else { throw .internal(reason: "no secret named \(name)") }
        let read: Result<Secret, any Error> = await withCheckedContinuation { continuation in
            let accepted = blocking.run { continuation.resume(returning: Result { try source() }) }
            if !accepted { continuation.resume(returning: .failure(GatewayFault("too many secrets are being read"))) }
        }
        switch read {
        case .success(let secret):
            noteValue(of: secret, name: name, identity: identity)
            return secret
        case .failure(let fault):
            throw .secretUnreadable(name: name, reason: "\(fault)")
        }
    }

    private func hash(_ secret: Secret) -> [UInt8] {
        secret.withBytes { bytes in markKey.tag(Array(bytes)) }
    }

    private func noteValue(of secret: Secret, name: String, identity: KeptIdentity) {
        let hash = hash(secret)
        let before = identity.secretHashes.updateValue(hash, forKey: name)
        guard let before, before != hash else { return }
        identity.secretVersion += 1
        events.info(
            "secret changed", [LogField("identity", .name(identity.plan.name)), LogField("secret", .name(name))])
        for token in tokens.values where token.identity === identity {
            apply(token.machine.secretChanged(to: identity.secretVersion, at: now), to: token)
            if token.probation != nil || identity.policy.kind == .fixed { reload(token) }
        }
    }

    /// A fixed credential's value is another one: nothing of the old one is served, and those on trial begin anew.
    private func reload(_ token: KeptToken) {
        let actions = token.probation?.secretChanged() ?? []
        token.line = nil
        cache.clear(slot: token.slot)
        loadFixed(token, then: actions)
    }

    /// Looks whether a secret's value has changed, at most once a second: a request that would meet a quarantine is the moment to find out
    /// that the operator has put things right.
    func noticeSecrets(of identity: KeptIdentity, then work: @escaping (isolated Keeper) -> Void) {
        guard isRefused(identity), now > identity.secretsCheckedAt + 1_000_000_000 else { return work(self) }
        identity.secretsCheckedAt = now
        Task {
            for name in identity.policy.secrets.keys.sorted() { _ = try? await secret(name, of: identity) }
            work(self)
            flushOrders()
        }
    }

    private func isRefused(_ identity: KeptIdentity) -> Bool {
        attemptsRefused(identity)
            || tokens.values.contains { token in
                guard token.identity === identity else { return false }
                switch token.machine.state(at: now) {
                case .quarantined, .loginNeeded: return true
                default: return token.probation?.state == .quarantined
                }
            }
    }

    /// A folder of secrets changed.
    func secretsMayHaveChanged() {
        Task {
            for identity in identities {
                for name in identity.policy.secrets.keys.sorted() { _ = try? await secret(name, of: identity) }
            }
            flushOrders()
        }
    }

    // MARK: - Login attempts

    /// By the value that was read last; nil for schemes without an account, and before the first reading.
    private func mark(of identity: KeptIdentity) -> AttemptMark? {
        guard let account = identity.account else { return nil }
        let name = identity.policy.secrets["password"] == nil ? "client_secret" : "password"
        guard let hash = identity.secretHashes[name] else { return nil }
        return AttemptMark(account: account, secretHash: ByteString(hash))
    }

    /// Whether a password step would be refused now.
    func attemptsRefused(_ identity: KeptIdentity) -> Bool {
        guard let mark = mark(of: identity) else { return false }
        switch attempts.verdict(for: mark, identity.policy.attempts) {
        case .allowed: return false
        // Lost marks are a reason to hold back a password, which locks an account; a client secret locks nothing.
        case .unreadable where identity.policy.kind == .proactive: return false
        case .spent, .lastAttempt, .unreadable: return identity.session == nil
        }
    }

    /// Books an attempt on disk before the password leaves: a crash in between must not give it back.
    func spendAttempt(of identity: KeptIdentity) async throws(Handshakes.GrantFailure) {
        if case .locked(let reason) = storeState {
            throw .configuration(reason: "no password step without the store: \(reason)")
        }
        if mark(of: identity) == nil, identity.account != nil { _ = try await secret("password", of: identity) }
        guard let mark = mark(of: identity) else { return }
        guard attempts.verdict(for: mark, identity.policy.attempts) == .allowed else { throw .quarantined }
        identity.openMark = mark
        await storeAttempts([attempts.spend(mark)])
    }

    func settleAttempt(_ outcome: AttemptOutcome, of identity: KeptIdentity) async {
        guard let mark = identity.openMark else { return }
        identity.openMark = nil
        switch outcome {
        case .accepted: await storeAttempts(attempts.succeeded(mark))
        case .rejected: await storeAttempts([attempts.rejected(mark)])
        case .notSent: await storeAttempts([attempts.refunded(mark)])
        // Sent, and no word of what became of it: it counts.
        case .unknown: break
        }
    }

    /// `basic`: the upstream itself refused, there was no password step.
    func markRejected(_ identity: KeptIdentity) {
        guard let mark = mark(of: identity) else { return }
        let rows = [attempts.spend(mark), attempts.rejected(mark)]
        identity.marking = Task { await storeAttempts(rows) }
    }

    // MARK: - Operators

    /// Lifts a quarantine. False when there is no such identity.
    func reset(identity name: String) -> Bool {
        guard let identity = identities.first(where: { $0.plan.name == name }) else { return false }
        identity.epoch += 1
        identity.lastFailure = nil
        if let account = identity.account {
            let rows = attempts.reset(account)
            Task { await storeAttempts(rows) }
        }
        for token in tokens.values where token.identity === identity {
            token.lastFailure = nil
            apply(token.machine.epochRose(to: identity.epoch, cause: .reset, at: now), to: token)
            if token.probation != nil { reload(token) }
        }
        events.info("identity reset", [LogField("identity", .name(name))])
        flushOrders()
        return true
    }
}

/// The keeper as a running handshake sees it.
final class KeeperLedger: GrantLedger {
    private let keeper: Keeper
    private let identity: KeptIdentity
    private let standing: Standing

    init(keeper: Keeper, identity: KeptIdentity, standing: Standing) {
        self.keeper = keeper
        self.identity = identity
        self.standing = standing
    }

    nonisolated(nonsending) func material(_ layer: Layer) async -> LayerMaterial? {
        await keeper.material(layer, of: identity)
    }

    nonisolated(nonsending) func commit(_ layer: Layer, _ material: LayerMaterial) async throws(Handshakes.GrantFailure)
    {
        try await keeper.commit(layer, material, of: identity, standing: standing)
    }

    nonisolated(nonsending) func drop(_ layer: Layer, ifStill material: LayerMaterial) async {
        await keeper.drop(layer, ifStill: material, of: identity)
    }

    nonisolated(nonsending) func secret(_ name: String) async throws(Handshakes.GrantFailure) -> Secret {
        try await keeper.secret(name, of: identity)
    }

    nonisolated(nonsending) func spendAttempt(user: String) async throws(Handshakes.GrantFailure) {
        try await keeper.spendAttempt(of: identity)
    }

    nonisolated(nonsending) func settleAttempt(_ outcome: AttemptOutcome) async {
        await keeper.settleAttempt(outcome, of: identity)
    }

    nonisolated(nonsending) func now() async -> UInt64 { await keeper.now }
}
