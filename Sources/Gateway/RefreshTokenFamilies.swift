internal import Handshakes
internal import Tokens

/// Refresh tokens that the configuration names, and what has replaced them.
///
/// The mark of a spent one is the keyed hash of its bytes, as with the attempts of passwords: it holds whatever identity names the token,
/// and whatever became of that identity's digest (rule 5 for refresh tokens). Beside it stands the one that is in force, so that a family
/// outlives the session that it was used for.
struct RefreshTokenFamilies {
    struct Family: Equatable {
        /// Issuer and client: the family goes to nobody else.
        var lane: SessionLane
        /// Nil where none is left that is good.
        var current: Secret?
        /// The one that was the last, where it has ended in this process.
        var last: Secret?
        /// The first itself, where this process has seen it: it is marked anew when the key of the marks is another one.
        var first: Secret?
    }

    /// By the keyed hash of the first token.
    private(set) var families: [ByteString: Family] = [:]

    func standing(of first: ByteString, in lane: SessionLane) -> FirstRefreshToken {
        guard let family = families[first] else { return .unspent }
        guard family.lane == lane, let current = family.current else { return .spent }
        return .replaced(by: current)
    }

    /// Whether a family has the token in force.
    func holds(_ token: Secret) -> Bool { first(of: token) != nil }

    /// Whether it was the last one of a family.
    func hasEnded(_ token: Secret) -> Bool { families.values.contains { $0.last == token } }

    mutating func begin(with first: Secret, hash: ByteString, in lane: SessionLane) {
        families[hash] = Family(lane: lane, current: first, first: first)
    }

    /// The issuer has replaced `spent`.
    /// - Returns: the hash of the family's first; nil where no family has the token in force.
    mutating func replaced(_ spent: Secret, by next: Secret) -> ByteString? {
        guard let first = first(of: spent) else { return nil }
        families[first]?.current = next
        return first
    }

    /// The token is no longer good; its family's first is spent all the same.
    /// - Returns: as above.
    mutating func ended(_ token: Secret) -> ByteString? {
        guard let first = first(of: token) else { return nil }
        families[first]?.current = nil
        families[first]?.last = token
        return first
    }

    /// Of the store. What is here already is younger, unless the store was another process's meanwhile.
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
