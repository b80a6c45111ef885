internal import Handshakes
internal import TokenStore
package import Tokens

/// The attempts ledger of the keeper: how often each secret was sent in vain, which secrets are on their way, and what has replaced refresh
/// tokens of the configuration. No password stands here, only its hash under a key that is kept with the marks.
package struct Attempts {
    private(set) var key: MarkKey
    package var ledger = AttemptLedger()
    var families = RefreshTokenFamilies()
    /// Sent, and not known yet what became of them.
    private var open: Set<AttemptMark> = []

    init(_ key: MarkKey) { self.key = key }

    func hash(_ secret: Secret) -> [UInt8] { key.hash(secret) }

    /// Another key stands in the store: what was hashed with this one until then is hashed anew.
    /// - Returns: false where it is the same one, or none.
    mutating func adopt(keyBytes bytes: [UInt8]) -> Bool {
        guard bytes != key.bytes, let adopted = MarkKey(bytes: bytes) else { return false }
        key = adopted
        families.rehash { [key] in ByteString(key.hash($0)) }
        return true
    }

    /// - Parameters:
    ///   - held: what the session holds and the issuer has just refused.
    ///   - orphans: rows of identities that are not configured any more.
    func standing(
        ofFirst token: Secret, in lock: SessionLockKey, beside held: Secret?, _ orphans: [StoredRow]
    ) -> FirstRefreshToken {
        let standing = families.standing(of: ByteString(hash(token)), in: lock)
        // A session whose beginning is not known here, such as one that a fleet's other gateway began, may well have begun with this token.
        if let held, standing == .unspent, !families.holds(held), !families.hasEnded(held) {
            return .replaced(by: held)
        }
        guard standing == .unspent, !families.overruled.contains(lock) else { return standing }
        let isDoubtful = orphans.contains { orphan in
            families.beginning(of: orphan).map { $0.lock == lock && $0.token != token } ?? false
        }
        return isDoubtful ? .uncertain : .unspent
    }

    // MARK: - Before a secret is sent

    /// By the values that were read last; none for schemes without an account, and before the first reading.
    func marks(of identity: KeptIdentity) -> [AttemptMark] {
        guard let account = identity.account else { return [] }
        let hashes = identity.secretHashes
        if let names = identity.policy.attemptSecrets {
            return names.compactMap { name in
                guard let hash = hashes[name], !hash.isEmpty else { return nil }
                return AttemptMark(
                    account: identity.policy.attemptAccounts[name] ?? account, secretHash: ByteString(hash))
            }
        }
        // A password counts alone: a changed client secret is no reason to send a refused one again. Elsewhere any change is.
        let names = identity.policy.sendsPassword ? ["password"] : identity.policy.secrets.keys.sorted()
        let hash = names.flatMap { hashes[$0] ?? [] }
        return hash.isEmpty ? [] : [AttemptMark(account: account, secretHash: ByteString(hash))]
    }

    /// Why a password step would not be made now; nil where it would.
    /// - Parameter sparesPassword: a session is there that may do without.
    func heldBack(_ identity: KeptIdentity, sparesPassword: Bool) -> HeldBack? {
        guard !sparesPassword else { return nil }
        if identity.refusedVersion == identity.secretVersion { return .rejected }
        // A secret that is on its way is no refusal: whoever asks meanwhile waits for its outcome.
        for mark in marks(of: identity) where !open.contains(mark) {
            let verdict = ledger.verdict(for: mark, identity.policy.attempts)
            switch verdict {
            case .allowed: continue
            // Lost marks are a reason to hold back a password, which locks an account; a client secret locks nothing.
            case .unreadable where identity.policy.kind == .proactive && !identity.policy.sendsPassword: continue
            case .spent, .lastAttempt, .unreadable:
                return HeldBack(verdict, isUnanswered: ledger.isUnanswered(mark))
            }
        }
        return nil
    }

    /// Whether something of the identity is booked, or may have been.
    func knows(_ identity: KeptIdentity) -> Bool { identity.accounts.contains(where: ledger.knows) }

    /// The identity's marks stand in a store that cannot be read.
    func cannotRead(_ identity: KeptIdentity) -> Bool { identity.accounts.contains(where: ledger.cannotRead) }

    // MARK: - One attempt

    /// The attempt is on its way from here on, until `cancel` or `settle`.
    mutating func begin(_ mark: AttemptMark, _ policy: AttemptLedger.Policy) throws(Handshakes.GrantFailure) {
        let verdict = ledger.verdict(for: mark, policy)
        // Another flight has sent it and has no answer yet. That is no lost answer, for which there would be one more try, and no refusal.
        if open.contains(mark), verdict == .spent || ledger.isRetry(mark, policy) {
            throw .issuerUnavailable(retryAfterSeconds: 1, reason: "another step with this password is under way")
        }
        guard verdict == .allowed else { throw HeldBack(verdict, isUnanswered: ledger.isUnanswered(mark)).failure }
        open.insert(mark)
    }

    /// The secret was not sent, and nothing is booked.
    mutating func cancel(_ mark: AttemptMark) { open.remove(mark) }

    /// A password that was never accepted, and the one more try of one that was: nobody sends them without a mark that a crash leaves. One that
    /// was accepted locks no account, and a full disk is no reason to serve nobody.
    func needsMark(_ mark: AttemptMark, _ policy: AttemptLedger.Policy) -> Bool {
        !ledger.wasAccepted(mark) || ledger.isRetry(mark, policy)
    }

    mutating func settle(_ outcome: AttemptOutcome, of mark: AttemptMark) -> [AttemptLedger.Row] {
        open.remove(mark)
        return switch outcome {
        case .accepted: ledger.succeeded(mark)
        case .rejected: [ledger.rejected(mark)]
        case .rejectedLeaving(let left): [ledger.rejected(mark, remaining: left)]
        case .notSent: [ledger.refunded(mark)]
        // Sent, and no word of what became of it: it counts.
        case .unknown: []
        }
    }

    /// The upstream itself has refused the secret, or another gateway has seen a refusal: there was no step of ours.
    mutating func bookRejected(_ mark: AttemptMark) -> [AttemptLedger.Row] {
        [ledger.spend(mark), ledger.rejected(mark)]
    }

    // MARK: - Rows

    var keyRow: StoredRow { StoredRow(kind: RowKind.markKey, key: [], value: key.bytes, expiresWall: nil) }

    /// The changes that go to disk with these rows: marks without the key of their hashes would say nothing after a restart, so they go together.
    mutating func changes(_ rows: [AttemptLedger.Row]) -> [StoreChange] {
        var changes: [StoreChange] = []
        let histories = ledger.takeHistory()
        for (kind, row) in rows.map({ (RowKind.attempt, $0) }) + histories.map({ (RowKind.history, $0) }) {
            let key = AttemptRow.key(of: row.mark)
            changes.append(
                row.bytes.map { .put(StoredRow(kind: kind, key: key, value: $0, expiresWall: nil)) }
                    ?? .delete(kind: kind, key: key))
        }
        return changes.isEmpty ? [] : changes + [.put(keyRow)]
    }

    /// With the key of the hash, without which it says nothing after a restart.
    func familyRows(of first: ByteString) -> [StoreChange] {
        guard let family = families[first] else { return [] }
        let row = FamilyRow(lock: family.lock, current: family.current, isPresumed: family.isPresumed)
        return [
            .put(StoredRow(kind: RowKind.family, key: first.bytes, value: row.encoded(), expiresWall: nil)),
            .put(keyRow),
        ]
    }

    /// - Parameter replacing: the store was another process's meanwhile: what it holds is younger than what is here.
    mutating func restore(_ row: StoredRow, replacing: Bool = false) {
        switch row.kind {
        case RowKind.attempt: ledger.restore(row.value)
        case RowKind.history: ledger.restoreHistory(row.value)
        case RowKind.family:
            guard let stored = FamilyRow(encoded: row.value) else { return }
            families.restore(
                RefreshTokenFamilies.Family(
                    lock: stored.lock, current: stored.current, isPresumed: stored.isPresumed, isKept: true),
                under: ByteString(row.key), replacing: replacing)
        default: break
        }
    }
}

extension KeptIdentity {
    /// Accounts that its secrets may lock, each once.
    var accounts: [Account] {
        guard let account else { return [] }
        let others = policy.attemptAccounts.sorted { $0.key < $1.key }.map(\.value)
        return others.reduce(into: [account]) { if !$0.contains($1) { $0.append($1) } }
    }
}
