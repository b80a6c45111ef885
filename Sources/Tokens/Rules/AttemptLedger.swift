/// An issuer and a user there, whose login attempts are counted.
public struct Account: Hashable, Sendable {
    /// The server that judges the attempts.
    public var issuer: Origin
    /// The user's name at the issuer.
    public var user: ByteString

    /// Memberwise.
    public init(issuer: Origin, user: ByteString) {
        self.issuer = issuer
        self.user = user
    }
}

/// A secret of an account: issuer, user, keyed hash of the secret. The hash tells a changed secret from a spent one
/// without keeping either.
public struct AttemptMark: Hashable, Sendable {
    /// The account that the secret belongs to.
    public var account: Account
    /// Computed by the keeper with a key of the gateway's own, so that a guess cannot be tried against the mark.
    public var secretHash: ByteString

    /// Memberwise.
    public init(account: Account, secretHash: ByteString) {
        self.account = account
        self.secretHash = secretHash
    }
}

/// Counts how often a password, PIN or assertion was sent in vain, across all identities and restarts (docs/design/tokens.md#rule-5).
///
/// An attempt is spent, and committed, before it is sent: a crash or a time-out leaves it spent. Only a success, or the
/// certainty that the issuer did not judge it, gives it back. A secret that was accepted before has one more try when an answer was
/// lost: one in all, until an answer is seen, and none where the issuer has said that one is left.
public struct AttemptLedger: Sendable {
    /// The bounds that an identity's configuration sets.
    public struct Policy: Equatable, Sendable {
        /// `login_attempts`
        public var loginAttempts: UInt32
        /// `allow_last_attempt`
        var allowsLastAttempt: Bool

        /// Memberwise; the defaults are those of the configuration.
        public init(loginAttempts: UInt32 = 1, allowsLastAttempt: Bool = false) {
            self.loginAttempts = loginAttempts
            self.allowsLastAttempt = allowsLastAttempt
        }
    }

    /// Whether a secret may be sent now.
    public enum Verdict: Equatable, Sendable {
        case allowed
        /// This secret was sent often enough.
        case spent
        /// The issuer said that one attempt is left, or none.
        case lastAttempt
        /// The marks of before cannot be read, and nobody has reset this account since.
        case unreadable
    }

    /// A row for the store: `bytes` nil means delete.
    public struct Row: Equatable, Sendable {
        /// Names the row.
        public let mark: AttemptMark
        /// Nil deletes the row.
        public let bytes: [UInt8]?
    }

    struct Entry: Equatable, Sendable {
        var spent: UInt32 = 0
        /// The attempts that the issuer said are left, raw.
        var remaining: Int64?
    }

    /// Knowledge of a secret beyond the count of its attempts.
    struct History: Equatable, Sendable {
        /// The secret was good once, and nothing was refused since.
        var wasAccepted = false
        /// The one more try was taken, and no answer was seen since.
        var hasRetried = false
        /// The last answer that was seen.
        var wasRejected = false
    }

    private(set) var entries: [AttemptMark: Entry] = [:]
    private(set) var histories: [AttemptMark: History] = [:]
    private var changed: Set<AttemptMark> = []
    /// Marks exist that cannot be opened (key lost or unknown).
    private var isUnreadable = false
    private var resetSince: Set<Account> = []

    /// A ledger without marks: every secret may be sent.
    public init() {}

    // MARK: - Before a password step

    /// Asked before every attempt. Spends nothing.
    public func verdict(for mark: AttemptMark, _ policy: Policy) -> Verdict {
        if isUnreadable, !resetSince.contains(mark.account) { return .unreadable }
        if isSpent(mark, policy), !mayRetry(mark) { return .spent }
        if let remaining = remaining(mark.account), remaining < (policy.allowsLastAttempt ? 1 : 2) {
            return .lastAttempt
        }
        return .allowed
    }

    /// The counter belongs to the account: a new password does not refill it.
    private func remaining(_ account: Account) -> Int64? {
        entries.filter { $0.key.account == account }.compactMap(\.value.remaining).min()
    }

    private func isSpent(_ mark: AttemptMark, _ policy: Policy) -> Bool {
        (entries[mark]?.spent ?? 0) >= max(policy.loginAttempts, 1)
    }

    private func mayRetry(_ mark: AttemptMark) -> Bool {
        guard let history = histories[mark], history.wasAccepted, !history.hasRetried, !history.wasRejected else {
            return false
        }
        return remaining(mark.account).map { $0 > 1 } ?? true
    }

    /// Whether this attempt is one more than the policy has, for a secret that was accepted before.
    public func isRetry(_ mark: AttemptMark, _ policy: Policy) -> Bool { isSpent(mark, policy) && mayRetry(mark) }

    /// The secret was good once, and nothing was refused since.
    public func wasAccepted(_ mark: AttemptMark) -> Bool { histories[mark]?.wasAccepted == true }

    /// The secret was sent, and the issuer's answer was not seen.
    public func isUnanswered(_ mark: AttemptMark) -> Bool {
        (entries[mark]?.spent ?? 0) > 0 && histories[mark]?.wasRejected != true
    }

    /// Marks of this account may exist, and cannot be read.
    public func cannotRead(_ account: Account) -> Bool { isUnreadable && !resetSince.contains(account) }

    /// Whether something of this account is booked, or may have been, whatever the secret.
    public func knows(_ account: Account) -> Bool {
        isUnreadable || entries.keys.contains { $0.account == account }
    }

    /// Commit the row, then send.
    public mutating func spend(_ mark: AttemptMark, _ policy: Policy) -> Row {
        if isRetry(mark, policy) { note(mark) { $0.hasRetried = true } }
        return spend(mark)
    }

    /// Spends an attempt without allowing a further try.
    public mutating func spend(_ mark: AttemptMark) -> Row {
        var entry = entries[mark] ?? Entry()
        entry.spent = entry.spent == .max ? .max : entry.spent + 1
        return set(mark, entry)
    }

    // MARK: - After it

    /// Accepted: every mark of the account goes, also those of its earlier secrets.
    public mutating func succeeded(_ mark: AttemptMark) -> [Row] {
        for other in histories.keys where other.account == mark.account && other != mark {
            note(other) { $0 = History() }
        }
        note(mark) { $0 = History(wasAccepted: true) }
        return forget(mark.account)
    }

    /// Refused. `remaining` is what the issuer says is left, nil if it does not say.
    public mutating func rejected(_ mark: AttemptMark, remaining: Int64? = nil) -> Row {
        var entry = entries[mark] ?? Entry(spent: 1)
        if let remaining { entry.remaining = remaining }
        note(mark) { $0 = History(wasRejected: true) }
        return set(mark, entry)
    }

    /// Provably not judged: not sent, connection refused, 5xx, 429. Never after a time-out.
    public mutating func refunded(_ mark: AttemptMark) -> Row {
        guard var entry = entries[mark] else { return Row(mark: mark, bytes: nil) }
        entry.spent = entry.spent == 0 ? 0 : entry.spent - 1
        if histories[mark] != nil { note(mark) { $0.hasRetried = false } }
        return set(mark, entry)
    }

    /// `cardea reset`, or a login by a person.
    public mutating func reset(_ account: Account) -> [Row] {
        resetSince.insert(account)
        for mark in histories.keys where mark.account == account { note(mark) { $0 = History() } }
        return forget(account)
    }

    private mutating func note(_ mark: AttemptMark, _ change: (inout History) -> Void) {
        let before = histories[mark] ?? History()
        var history = before
        change(&history)
        guard history != before else { return }
        histories[mark] = history == History() ? nil : history
        changed.insert(mark)
    }

    /// The rows to commit with those of the attempts, since the last call. `bytes` nil means delete.
    public mutating func takeHistory() -> [Row] {
        defer { changed = [] }
        return changed.sorted { $0.secretHash < $1.secretHash }.map { mark in
            Row(mark: mark, bytes: histories[mark].map { Self.encode(mark, $0) })
        }
    }

    private mutating func forget(_ account: Account) -> [Row] {
        let marks = entries.keys.filter { $0.account == account }.sorted { $0.secretHash < $1.secretHash }
        for mark in marks { entries[mark] = nil }
        return marks.map { Row(mark: $0, bytes: nil) }
    }

    private mutating func set(_ mark: AttemptMark, _ entry: Entry) -> Row {
        if entry.spent == 0, entry.remaining == nil {
            entries[mark] = nil
            return Row(mark: mark, bytes: nil)
        }
        entries[mark] = entry
        return Row(mark: mark, bytes: Self.encode(mark, entry))
    }

    // MARK: - At start

    /// A row of the store. One that does not decode counts as unreadable: its account is unknown, so every account is.
    public mutating func restore(_ bytes: [UInt8]) {
        do throws(KeyCodec.Fault) {
            let (mark, entry) = try Self.decode(bytes)
            entries[mark] = entry
        } catch {
            isUnreadable = true
        }
    }

    /// A row of `takeHistory`. One that does not decode says nothing.
    public mutating func restoreHistory(_ bytes: [UInt8]) {
        guard let (mark, history) = try? Self.decodeHistory(bytes) else { return }
        histories[mark] = history
    }

    /// The marks are sealed under a key that is lost or unknown, or stand on a disk that has not answered. A damaged file is not this: it
    /// counts as no marks.
    public mutating func restoreUnreadable() { isUnreadable = true }

    /// The disk has answered after all: what stands there comes next.
    public mutating func restoreBegins() { isUnreadable = false }

    static func encode(_ mark: AttemptMark, _ entry: Entry) -> [UInt8] {
        var writer = ByteWriter(1, 5)
        writer.put(mark.account.issuer)
        writer.put(mark.account.user.bytes)
        writer.put(mark.secretHash.bytes)
        writer.put(entry.spent)
        writer.put(entry.remaining == nil ? UInt32(0) : 1)
        writer.put(UInt64(bitPattern: entry.remaining ?? 0))
        return writer.bytes
    }

    static func encode(_ mark: AttemptMark, _ history: History) -> [UInt8] {
        var writer = ByteWriter(1, 6)
        writer.put(mark.account.issuer)
        writer.put(mark.account.user.bytes)
        writer.put(mark.secretHash.bytes)
        let flags = [history.wasAccepted, history.hasRetried, history.wasRejected]
        writer.put(flags.enumerated().reduce(UInt32(0)) { $0 | ($1.element ? 1 << UInt32($1.offset) : 0) })
        return writer.bytes
    }

    static func decodeHistory(_ bytes: [UInt8]) throws(KeyCodec.Fault) -> (AttemptMark, History) {
        var reader = try ByteReader(bytes, 1, 6)
        let account = Account(issuer: try reader.origin(), user: ByteString(try reader.member()))
        let mark = AttemptMark(account: account, secretHash: ByteString(try reader.member()))
        let flags = try reader.number()
        try reader.end()
        return (
            mark, History(wasAccepted: flags & 1 != 0, hasRetried: flags & 2 != 0, wasRejected: flags & 4 != 0)
        )
    }

    static func decode(_ bytes: [UInt8]) throws(KeyCodec.Fault) -> (AttemptMark, Entry) {
        var reader = try ByteReader(bytes, 1, 5)
        let account = Account(issuer: try reader.origin(), user: ByteString(try reader.member()))
        let mark = AttemptMark(account: account, secretHash: ByteString(try reader.member()))
        let spent = try reader.number()
        let hasRemaining = try reader.number()
        let remaining = Int64(bitPattern: try reader.longNumber())
        guard hasRemaining <= 1, hasRemaining == 1 || remaining == 0 else { throw .notCanonical }
        try reader.end()
        return (mark, Entry(spent: spent, remaining: hasRemaining == 1 ? remaining : nil))
    }
}
