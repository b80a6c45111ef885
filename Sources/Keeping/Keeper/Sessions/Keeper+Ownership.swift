package import Handshakes
internal import Reactor
internal import TLS
internal import Telemetry
internal import TokenStore
package import Tokens

/// A store belongs to a single process at a time. A process that came second serves from memory without a step that could lock an
/// account or spend a refresh token, and becomes the owner when the first has ended, however it ended: the kernel gives up a dead
/// process's lock.
extension Keeper {
    /// How often the lock is asked for. Nanoseconds.
    private static let ownershipInterval: UInt64 = 1_000_000_000

    /// The steps that only the store's owner makes.
    package enum OwnersStep: String, CaseIterable {
        case password = "password step"
        case refreshToken = "refresh token step"
    }

    /// Nil where this process may do it.
    package func refusal(of step: OwnersStep) -> Handshakes.GrantFailure? {
        guard case .locked(let reason) = health.state else { return nil }
        return .configuration(reason: "no \(step.rawValue) without the store: \(reason)")
    }

    /// Nil where the step of a session may be made.
    package func refusal(
        of claim: SessionClaim, _ key: SessionKey, _ identity: KeptIdentity
    ) -> Handshakes.GrantFailure? {
        // The other process may rotate the same refresh token: the issuer would take ours for a stolen one.
        if claim.isOwn, let refusal = refusal(of: .refreshToken) { return refusal }
        let mayReplace = identity.policy.isIrreplaceable || sessions.hasRefreshToken(key)
        if handOver.sparesRefreshTokens, mayReplace, claim.isOwn || sessions.live(key, at: now) == nil {
            return Self.spared
        }
        return storeRefusal(of: identity)
    }

    /// The refusal of a step that `check --live` does not make: the gateway that runs may have another store, and its login would end.
    package static let spared = Handshakes.GrantFailure.configuration(
        reason: "it would spend the refresh token; ask the running gateway")

    /// An identity whose login nobody but a person can replace does nothing while the store that may have it cannot be read.
    func storeRefusal(of identity: KeptIdentity) -> Handshakes.GrantFailure? {
        health.isUnread && identity.policy.isIrreplaceable && identity.policy.access.persist ? .storeUnusable : nil
    }

    /// The store that may have a login is another process's, and has been from the start: whether somebody has to log in is not known here.
    /// A process that has told its operators of the login has had the store, and knows what stood in it.
    func isLoginElsewhere(of identity: KeptIdentity) -> Bool {
        health.isLocked && identity.policy.access.persist && identity.toldLogin == nil
    }

    func awaitOwnership() {
        later(Self.ownershipInterval) { $0.start { await $0.askForStore() } }
    }

    /// A disk that did not answer at the start has answered, and the store is not ours.
    func isNotOwner(_ reason: String) {
        // A store that is being handed over is nobody's for a moment, and the next process's then.
        guard health.isUnread, health.isDegraded, handOver.mayGrant, health.reopen != nil else { return }
        health.state = .locked(reason)
        events.error("store not used", [LogField("reason", .name(reason))])
        awaitOwnership()
    }

    private func askForStore() async {
        guard let reopen = health.reopen else { return }
        let opening: StoreOpening = await withCheckedContinuation { continuation in
            let accepted = blocking.run { continuation.resume(returning: reopen()) }
            if !accepted { continuation.resume(returning: .lockedByAnother) }
        }
        switch opening {
        case .owner: own(store?.restore() ?? [])
        case .setAside(let aside):
            events.warn("store was damaged and set aside", [LogField("aside", .name(aside))])
            own([])
        case .lockedByAnother, .degraded: awaitOwnership()
        case .unknownKey(let ids):
            let names = ids.map { SealingKey.name(of: $0) }.joined(separator: ", ")
            disown("it is sealed with a key that store.key does not name: \(names)")
        case .notOurs(let reason): disown("the file is not a token store: \(reason)")
        case .newer(let version): disown("a newer version wrote it (format \(version))")
        }
    }

    private func own(_ rows: [StoredRow]) {
        health.state = .serving
        if health.noteRead() { attempts.ledger.restoreBegins() }
        events.info("store taken over", [LogField("rows", .count(Int64(rows.count)))])
        restore(rows)
        sweep(rows)
        dropForeignRows(after: rows)
        // Rows that the owner before has left are looked up when they are missed: a lookup of all would hold up the loop.
        tokens.expectRows()
        askAgain()
    }

    /// The lock is free, and the file is of no use to us: its marks cannot be seen, so no password is sent until somebody looks.
    private func disown(_ reason: String) {
        health.state = .locked(reason)
        attempts.ledger.restoreUnreadable()
        events.error("store not used", [LogField("reason", .name(reason))])
    }
}
