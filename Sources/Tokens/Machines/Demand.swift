/// The level and scopes that a challenge asks for.
public struct Demand: Equatable, Sendable {
    /// An OAM authentication level; nil where the scheme has none.
    var level: Int?
    /// The scopes that it names, as far as they may be asked for.
    var scopes: ScopeSet
    /// `insufficient_scope` (RFC 6750 §3.1): the token that was sent is good, and not enough for these scopes.
    var lacksScope: Bool

    /// Memberwise; without arguments any token will do.
    public init(level: Int? = nil, scopes: ScopeSet = [], lacksScope: Bool = false) {
        self.level = level
        self.scopes = scopes
        self.lacksScope = lacksScope
    }

    /// Any token that is good.
    public static let token = Demand()
    /// A token of at least this level (OAM).
    static func level(_ level: Int) -> Demand { Demand(level: level) }
    /// A token with these scopes beside those that it has.
    static func lacking(_ scopes: ScopeSet) -> Demand { Demand(scopes: scopes, lacksScope: true) }
}

extension Grant {
    /// Whether the token may be the answer to the demand. Scopes that it was asked for with count as granted: where the issuer gave fewer,
    /// another flight would bring no more.
    func meets(_ demand: Demand) -> Bool {
        if let level, let wanted = demand.level, wanted > level { return false }
        return demand.scopes.isEmpty || asked.union(granted).isSuperset(of: demand.scopes)
    }
}

extension Flight {
    /// The demand that the flight is to meet.
    var asked: Demand { Demand(level: level, scopes: scopes) }

    /// Whether what it brings may be the answer to the demand. Of a flight whose level is not known that is known when it has landed.
    func meets(_ demand: Demand) -> Bool {
        if let wanted = demand.level, wanted > level ?? -1 { return false }
        return demand.scopes.isEmpty || scopes.isSuperset(of: demand.scopes)
    }
}
