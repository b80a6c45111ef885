/// Whose login attempts are counted.
public struct Account: Hashable, Sendable {
    public var issuer: Origin
    public var user: ByteString

    public init(issuer: Origin, user: ByteString) {
        self.issuer = issuer
        self.user = user
    }
}

/// One secret of one account: issuer, user, keyed hash of the secret. The hash tells a changed secret from a spent one
/// without keeping either.
public struct AttemptMark: Hashable, Sendable {
    public var account: Account
    public var secretHash: ByteString

    public init(account: Account, secretHash: ByteString) {
        self.account = account
        self.secretHash = secretHash
    }
}

/// Rule 5: how often a password, PIN or assertion was sent in vain, across all identities and across restarts.
///
/// An attempt is spent, and committed, before it is sent: a crash or a time-out leaves it spent. Only a success, or the
/// certainty that the issuer did not judge it, gives it back.
public struct AttemptLedger: Sendable {
    public struct Policy: Equatable, Sendable {
        /// `login_attempts`
        public var loginAttempts: UInt32
        /// `allow_last_attempt`
        public var allowsLastAttempt: Bool

        public init(loginAttempts: UInt32 = 1, allowsLastAttempt: Bool = false) {
            self.loginAttempts = loginAttempts
            self.allowsLastAttempt = allowsLastAttempt
        }
    }

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
        public let mark: AttemptMark
        public let bytes: [UInt8]?
    }

    struct Entry: Equatable, Sendable {
        var spent: UInt32 = 0
        /// What the issuer said is left, raw.
        var remaining: Int64?
    }

    private(set) var entries: [AttemptMark: Entry] = [:]
    /// Marks exist that cannot be opened (key lost or unknown).
    private var isUnreadable = false
    private var resetSince: Set<Account> = []

    public init() {}

    // MARK: - Before a password step

    public func verdict(for mark: AttemptMark, _ policy: Policy) -> Verdict {
        if isUnreadable, !resetSince.contains(mark.account) { return .unreadable }
        if let spent = entries[mark]?.spent, spent >= max(policy.loginAttempts, 1) { return .spent }
        // The counter belongs to the account: a new password does not refill it.
        let remaining = entries.filter { $0.key.account == mark.account }.compactMap(\.value.remaining).min()
        if let remaining, remaining < (policy.allowsLastAttempt ? 1 : 2) { return .lastAttempt }
        return .allowed
    }

    /// Whether something of this account is booked, or may have been, whatever the secret.
    public func knows(_ account: Account) -> Bool {
        isUnreadable || entries.keys.contains { $0.account == account }
    }

    /// Commit the row, then send.
    public mutating func spend(_ mark: AttemptMark) -> Row {
        var entry = entries[mark] ?? Entry()
        entry.spent = entry.spent == .max ? .max : entry.spent + 1
        return set(mark, entry)
    }

    // MARK: - After it

    /// Accepted: every mark of the account goes, also those of its earlier secrets.
    public mutating func succeeded(_ mark: AttemptMark) -> [Row] { forget(mark.account) }

    /// Refused. `remaining` is what the issuer says is left, nil if it does not say.
    public mutating func rejected(_ mark: AttemptMark, remaining: Int64? = nil) -> Row {
        var entry = entries[mark] ?? Entry(spent: 1)
        if let remaining { entry.remaining = remaining }
        return set(mark, entry)
    }

    /// Provably not judged: not sent, connection refused, 5xx, 429. Never after a time-out.
    public mutating func refunded(_ mark: AttemptMark) -> Row {
        guard var entry = entries[mark] else { return Row(mark: mark, bytes: nil) }
        entry.spent = entry.spent == 0 ? 0 : entry.spent - 1
        return set(mark, entry)
    }

    /// `cardea reset`, or a login by a person.
    public mutating func reset(_ account: Account) -> [Row] {
        resetSince.insert(account)
        return forget(account)
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

    /// The marks are sealed under a key that is lost or unknown. A damaged file is not this: it counts as no marks.
    public mutating func restoreUnreadable() { isUnreadable = true }

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
