internal import Handshakes
package import Tokens

/// The sessions that are held, the locks under which they are made and renewed, and who waits at which lock.
package struct Sessions {
    private(set) var held: [SessionKey: KeptSession] = [:]
    /// The durable layer, from which sessions are made.
    var parts = DurableParts()
    private(set) var locks: [SessionLockKey: SessionLock] = [:]
    private var swept = 0
    private var lastClaimant: SessionMachine.Claimant = 0
    /// Where each has claimed a session.
    private var claimed: [SessionMachine.Claimant: [SessionLock]] = [:]

    subscript(key: SessionKey) -> KeptSession? {
        get { held[key] }
        set { held[key] = newValue }
    }

    /// The session, where it may be used now.
    func live(_ key: SessionKey, at now: UInt64) -> LayerMaterial? {
        guard let session = held[key],
            locks[key.lock]?.machine.session(key, at: now)?.generation == session.generation
        else { return nil }
        return session.material
    }

    func hasRefreshToken(_ key: SessionKey) -> Bool { held[key]?.material.refreshToken != nil }

    /// There is something that may spare a password.
    func sparesPassword(_ key: SessionKey, at now: UInt64) -> Bool { live(key, at: now) != nil || hasRefreshToken(key) }

    func isStepUnderWay(_ key: SessionKey) -> Bool { locks[key.lock]?.runner != nil }

    func of(_ digest: IdentityDigest) -> [KeptSession] { inOrder { $0.key.digest == digest } }

    /// The sessions that are meant, in the order of their keys.
    func inOrder(where isMeant: (KeptSession) -> Bool = { _ in true }) -> [KeptSession] {
        held.values.filter(isMeant).inOrder { KeyCodec.encode($0.key) }
    }

    /// Lets go of what belongs to identities that are not configured.
    /// - Returns: what is gone, by its keys.
    mutating func takeForeign(
        _ isConfigured: (IdentityDigest) -> Bool
    ) -> (parts: [(key: DurableKey, value: LayerMaterial)], sessions: [KeptSession]) {
        let gone = parts.inOrder.filter { !isConfigured($0.key.digest) }
        for (key, _) in gone { parts[key] = nil }
        let sessions = inOrder { !isConfigured($0.key.digest) }
        for session in sessions { held[session.key] = nil }
        return (gone, sessions)
    }

    /// By issuers and subjects.
    var locksInOrder: [SessionLock] {
        locks.inOrder { Array("\($0.key.issuer) ".utf8) + ($0.key.subject?.bytes ?? []) }.map(\.value)
    }

    // MARK: - Locks

    /// - Parameter identities: what every other lock of the issuer was told of them when it happened, a new one is told now.
    mutating func lock(of key: SessionKey, _ identities: [KeptIdentity]) -> SessionLock {
        if let lock = locks[key.lock] { return lock }
        sweep()
        let lock = SessionLock()
        for identity in identities where identity.issuer == key.issuer && identity.hasSessionMarks {
            lock.machine.returned(
                identity.digest, logoutEpoch: identity.logoutEpoch, secretVersion: identity.secretVersion)
        }
        locks[key.lock] = lock
        return lock
    }

    /// Each end user has a lock of his own while something is under way for him. Those with nothing to remember are swept now and then
    /// instead of one by one.
    private mutating func sweep() {
        guard locks.count > 2 * swept + 1024 else { return }
        for (key, lock) in locks where lock.claims.isEmpty && lock.runner == nil && lock.machine.isEmpty {
            lock.alarm.take()?.close()
            locks[key] = nil
        }
        swept = locks.count
    }

    /// Another gateway, or another identity, has made what is held under the key void.
    func void(_ key: SessionKey, generation: UInt64) {
        locks[key.lock]?.machine.adopted(
            key, SessionMachine.Session(generation: generation, stopServingAt: 0, hasRefreshToken: false))
    }

    /// After a reload: what the locks remember belongs to the identities that are there now.
    func match(_ catalogue: Catalogue) {
        // Locks remember nothing of the others but what they have been told already, and only that can be wrong.
        let marked = Dictionary(grouping: catalogue.identities.filter(\.hasSessionMarks), by: \.issuer)
        for (key, lock) in locks {
            let remembered = lock.machine.remembered.compactMap { catalogue.identity($0) }
            for identity in remembered + (marked[key.issuer] ?? []) {
                lock.machine.returned(
                    identity.digest, logoutEpoch: identity.logoutEpoch, secretVersion: identity.secretVersion)
            }
        }
    }

    // MARK: - Claims

    package mutating func nextClaimant() -> SessionMachine.Claimant {
        lastClaimant += 1
        return lastClaimant
    }

    mutating func claim(_ key: SessionKey, by claimant: SessionMachine.Claimant, at lock: SessionLock) -> PendingClaim {
        let pending = PendingClaim(key)
        lock.claims[claimant] = pending
        if claimed[claimant]?.last !== lock { claimed[claimant, default: []].append(lock) }
        return pending
    }

    /// The flight is over, or was given up: nobody waits under its name.
    /// - Returns: claims that are to be told so.
    mutating func release(_ claimant: SessionMachine.Claimant) -> [PendingClaim] {
        var givenUp: [PendingClaim] = []
        for lock in claimed.removeValue(forKey: claimant) ?? [] {
            let pending = lock.claims.removeValue(forKey: claimant)
            lock.machine.released(claimant)
            guard let pending else { continue }
            if lock.runner?.claim === pending { pending.isReleased = true } else { givenUp.append(pending) }
        }
        return givenUp
    }

    // MARK: - Ending

    /// The sessions that a purge or a logout ends. A purge gets new tokens; it does not send a person to the login page. Where nothing came
    /// to renew a login with, the session is all that there is of it, and stays as it is.
    /// - Returns: also whether the session keeps its refresh token.
    func ending(_ digest: IdentityDigest, by cause: EpochCause) -> [(session: KeptSession, isRenewable: Bool)] {
        guard cause == .purge || cause == .logout else { return [] }
        return of(digest).compactMap { session in
            guard cause == .purge, session.material.isHuman else { return (session, false) }
            return session.material.refreshToken == nil ? nil : (session, true)
        }
    }

    /// The session is dead to its issuer; what may still be good is its refresh token.
    /// - Returns: what is left of it; nil where it is gone.
    mutating func end(_ key: SessionKey) -> LayerMaterial? {
        guard hasRefreshToken(key) else {
            held[key] = nil
            return nil
        }
        held[key]?.material.lifetime = 0
        return held[key]?.material
    }

    /// The refresh token is dead; a session that is live may be used until it ends.
    /// - Returns: as above.
    mutating func dropRefreshToken(of key: SessionKey, at now: UInt64) -> LayerMaterial? {
        held[key]?.material.refreshToken = nil
        guard let material = held[key]?.material, material.isLive(at: now), !material.bytes.isEmpty else {
            held[key] = nil
            return nil
        }
        return material
    }
}

extension KeptIdentity {
    /// Something has happened to it that the locks of its issuer remember.
    fileprivate var hasSessionMarks: Bool { logoutEpoch > 0 || secretVersion > 1 }

    /// Nil for schemes that have no session.
    func sessionKey(subject: ByteString?) -> SessionKey? {
        issuer.map { SessionKey(digest: digest, issuer: $0, subject: subject ?? account?.user) }
    }
}
