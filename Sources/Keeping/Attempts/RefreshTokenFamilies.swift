internal import Handshakes
internal import TokenStore
internal import Tokens

/// Refresh tokens that the configuration names, and what has replaced them.
///
/// The mark of a spent one is the keyed hash of its bytes, as with the attempts of passwords: it holds whatever identity names the token,
/// and whatever became of that identity's digest (docs/design/tokens.md#rule-5-refresh). Beside it stands the one that is in force, so that
/// a family outlives the session that it was used for.
struct RefreshTokenFamilies {
    struct Family: Equatable {
        /// Issuer and client: the family goes to nobody else.
        var lock: SessionLockKey
        /// Nil where none is left that is good.
        var current: Secret?
        /// The one that was the last, where it has ended in this process.
        var last: Secret?
        /// The first itself, where this process has seen it: it is marked anew when the key of the marks is another one.
        var first: Secret?
        /// The first was not seen to be sent: it is named beside a session that holds another token. Where the issuer refuses that one, the
        /// first is as good as it ever was.
        var isPresumed = false
        /// The family stands on disk, or has to: somebody who has part in it keeps what he has there.
        var isKept = false
    }

    /// A session of unknown beginning, as one of a release without marks: whatever its identity names may have been its first.
    struct Stray {
        /// Nil where none is left that is good.
        var current: Secret?
    }

    /// By the keyed hash of the first token.
    private var families: [ByteString: Family] = [:]
    /// Until the first token of their identity has been read.
    private(set) var strays: [SessionKey: Stray] = [:]
    /// The operator has said that a first token of these may be sent although the store has a login that it may have begun.
    var overruled: Set<SessionLockKey> = []

    subscript(first: ByteString) -> Family? { families[first] }

    func standing(of first: ByteString, in lock: SessionLockKey) -> FirstRefreshToken {
        guard let family = families[first] else { return .unspent }
        guard family.lock == lock, let current = family.current else { return .spent }
        return .replaced(by: current)
    }

    /// Whether a family has the token in force.
    func holds(_ token: Secret) -> Bool { families.values.contains { $0.current == token } }

    /// Whether it was the last one of a family.
    func hasEnded(_ token: Secret) -> Bool { families.values.contains { $0.last == token } }

    mutating func begin(with first: Secret, hash: ByteString, in lock: SessionLockKey) {
        families[hash] = Family(lock: lock, current: first, first: first, isKept: families[hash]?.isKept ?? false)
    }

    /// The issuer has replaced `spent`.
    /// - Returns: the hash of the family's first; nil where no family has the token in force.
    mutating func replaced(_ spent: Secret, by next: Secret) -> ByteString? {
        for (key, stray) in strays where stray.current == spent { strays[key]?.current = next }
        guard let first = first(of: spent) else { return nil }
        families[first]?.current = next
        return first
    }

    /// The token is no longer good; its family's first is spent all the same.
    /// - Returns: as above.
    mutating func ended(_ token: Secret) -> ByteString? {
        for (key, stray) in strays where stray.current == token { strays[key]?.current = nil }
        guard let first = first(of: token) else { return nil }
        families[first]?.current = nil
        families[first]?.last = token
        return first
    }

    /// The issuer has refused the token: what was presumed of its first is not known any more.
    /// - Returns: the hash of the first that is unmarked now; nil where it was not presumed.
    mutating func refused(_ token: Secret) -> ByteString? {
        for (key, stray) in strays where stray.current == token { strays[key] = nil }
        guard let first = first(of: token), families[first]?.isPresumed == true else { return nil }
        families[first] = nil
        return first
    }

    mutating func keep(_ first: ByteString) { families[first]?.isKept = true }

    // MARK: - Unknown beginnings

    /// A session was taken up with this token.
    mutating func found(_ token: Secret, under key: SessionKey) {
        strays[key] = holds(token) ? nil : Stray(current: token)
    }

    /// The first token that the session's identity names has been read.
    /// - Returns: whether it is marked now.
    mutating func presume(_ first: Secret, hash: ByteString, of key: SessionKey) -> Bool {
        guard let stray = strays.removeValue(forKey: key), families[hash] == nil, stray.current != first,
            stray.current.map({ !holds($0) }) ?? true
        else { return false }
        families[hash] = Family(lock: key.lock, current: stray.current, first: first, isPresumed: true)
        return true
    }

    /// The refresh token of a stored session whose beginning is not known, and which may have begun with one that the configuration names:
    /// releases without marks did not tell such sessions from those that no person brought.
    func beginning(of row: StoredRow) -> (lock: SessionLockKey, token: Secret)? {
        guard row.kind == RowKind.session, let key = try? KeyCodec.sessionKey(row.key),
            let stored = LayerRow(encoded: row.value), !stored.isHuman, let token = stored.refreshToken, !holds(token)
        else { return nil }
        return (key.lock, token)
    }

    // MARK: - Store

    /// Takes up a family of the store. A family that is here already is younger, unless the store was another process's meanwhile.
    mutating func restore(_ family: Family, under first: ByteString, replacing: Bool = false) {
        if replacing || families[first] == nil { families[first] = family }
    }

    /// The key of the marks is another one.
    mutating func rehash(_ hash: (Secret) -> ByteString) {
        for (old, family) in families {
            guard let first = family.first else { continue }
            families[old] = nil
            restore(family, under: hash(first))
        }
    }

    private func first(of current: Secret) -> ByteString? { families.first { $0.value.current == current }?.key }
}
