internal import DataPath
internal import Handshakes
internal import Tokens

/// Identities and routes of the configuration that runs, and of those before it for the exchanges that began with them.
struct Catalogue {
    /// In the order of the configuration.
    private(set) var identities: [KeptIdentity]
    private(set) var routes: [KeptRoute]
    /// Identities with equal digests share tokens; this maps a digest to the first of them.
    private var byDigest: [IdentityDigest: KeptIdentity]
    /// Retired routes stand here, too.
    private(set) var routesByNumber: [Int: KeptRoute]
    private(set) var retiredIdentities: [KeptIdentity] = []
    private var retiredRoutes: [Int: KeptRoute] = [:]
    /// A plan is being compiled that may name again what is retired.
    var isHeld = false
    /// When what is retired goes.
    var alarm: Alarm?

    /// Nanoseconds that the retired stay: more than any exchange waits for a token or a connection, so that none asks for one that is gone.
    static let patience: UInt64 = 90_000_000_000

    init(identities: [KeptIdentity], routes: [KeptRoute]) {
        self.identities = identities
        self.routes = routes
        byDigest = Self.byDigest(identities)
        routesByNumber = Dictionary(uniqueKeysWithValues: routes.map { ($0.number, $0) })
    }

    private static func byDigest(_ identities: [KeptIdentity]) -> [IdentityDigest: KeptIdentity] {
        Dictionary(identities.map { ($0.digest, $0) }) { first, _ in first }
    }

    // MARK: - Looking up

    func identity(named name: String) -> KeptIdentity? { identities.first { $0.plan.name == name } }

    /// Nil where no identity with this digest is configured.
    func identity(_ digest: IdentityDigest) -> KeptIdentity? { byDigest[digest] }
    func isConfigured(_ digest: IdentityDigest) -> Bool { byDigest[digest] != nil }

    /// False where the identities with this digest, retired or not, are to keep nothing on disk (`token.persist: false`). That this process
    /// has no store now says nothing of it: it may take one over.
    func keepsRows(_ digest: IdentityDigest) -> Bool {
        if byDigest[digest]?.policy.isShared == true { return true }
        return (identities + (isConfigured(digest) ? [] : retiredIdentities)).contains {
            $0.digest == digest && $0.policy.isShared
        }
    }

    /// A retired identity, too: an outcome of its last flight may be on its way.
    func identityOrRetired(_ digest: IdentityDigest) -> KeptIdentity? {
        byDigest[digest] ?? retiredIdentities.first { $0.digest == digest }
    }

    func isCurrent(_ identity: KeptIdentity) -> Bool { identities.contains { $0 === identity } }

    /// Identities that their issuer cannot tell apart share their tokens.
    func same(as identity: KeptIdentity) -> [KeptIdentity] { identities.filter { $0.digest == identity.digest } }

    /// The scopes that the identity's routes will ask for: what is granted to a login bounds every later refresh (RFC 6749 §6).
    func wanted(by identity: KeptIdentity) -> Wanted {
        var wanted = Wanted(scopes: identity.scopes, upstreamOrigin: "")
        for route in routes where route.identity === identity {
            wanted.scopes += route.wanted.scopes.filter { !wanted.scopes.contains($0) }
            wanted.audience += route.wanted.audience.filter { !wanted.audience.contains($0) }
            wanted.resource += route.wanted.resource.filter { !wanted.resource.contains($0) }
        }
        return wanted
    }

    /// Routes that a compilation may go on with.
    var reusableRoutes: [KeptRoute] { routes + retiredRoutes.values.sorted { $0.number < $1.number } }

    var hasRetired: Bool { !retiredRoutes.isEmpty || !retiredIdentities.isEmpty }

    // MARK: - Another configuration

    /// The identities after another configuration was taken.
    struct Arrival {
        /// By compiled identity: itself, or the one that was there.
        var identities: [ObjectIdentifier: KeptIdentity] = [:]
        /// Identities whose settings are others now, so that an operator expects another try.
        var changed: Set<ObjectIdentifier> = []
        /// Identities that no configuration names from now on.
        var gone: Set<ObjectIdentifier> = []
        /// Identities that kept something on disk or in the fleet until now, and keep nothing there from now on.
        var withdrawn: [KeptIdentity] = []
        /// Identities that were retired, and whose tokens do not come back with them.
        var returned: [KeptIdentity] = []
    }

    /// Identities that are the same to their issuers go on as the same objects.
    mutating func take(identities compiled: [KeptIdentity]) -> Arrival {
        var arrival = Arrival()
        let before = identities + retiredIdentities
        // Identities that nobody has taken yet, in their order: few are the same but for their names.
        var left = Dictionary(grouping: before, by: \.digest)
        let wereRetired = Set(retiredIdentities.map { ObjectIdentifier($0) })
        var staying: Set<ObjectIdentifier> = []
        identities = compiled.map { next in
            let alike = left[next.digest] ?? []
            // Two may be equal but for their names: then the name decides.
            let position =
                alike.firstIndex { $0.isSame(as: next) && $0.plan.name == next.plan.name }
                ?? alike.firstIndex { $0.isSame(as: next) }
            guard let position else {
                arrival.identities[ObjectIdentifier(next)] = next
                return next
            }
            let same = alike[position]
            left[next.digest]?.remove(at: position)
            staying.insert(ObjectIdentifier(same))
            arrival.identities[ObjectIdentifier(next)] = same
            if same.policy.differs(from: next.policy) { arrival.changed.insert(ObjectIdentifier(same)) }
            if same.policy.isWithdrawn(by: next.policy) { arrival.withdrawn.append(same) }
            same.take(next)
            if same.policy.forgetsWhenReplaced, wereRetired.contains(ObjectIdentifier(same)) {
                arrival.returned.append(same)
            }
            return same
        }
        byDigest = Self.byDigest(identities)
        retiredIdentities = before.filter { !staying.contains(ObjectIdentifier($0)) }
        arrival.gone = Set(retiredIdentities.map { ObjectIdentifier($0) }).subtracting(wereRetired)
        return arrival
    }

    /// - Returns: routes that are new; and those of them that have the table of one that led to the same under another name or number.
    mutating func take(
        routes compiled: [KeptRoute], _ arrived: [ObjectIdentifier: KeptIdentity]
    ) -> (fresh: [KeptRoute], inheriting: [KeptRoute]) {
        let before = routes
        var fresh: [KeptRoute] = []
        routes = compiled.map { next in
            let identity = next.identity.flatMap { arrived[ObjectIdentifier($0)] }
            if let same = routesByNumber[next.number] {
                same.take(next, identity: identity)
                retiredRoutes[same.number] = nil
                return same
            }
            next.take(next, identity: identity)
            routesByNumber[next.number] = next
            fresh.append(next)
            return next
        }
        let numbers = Set(routes.map(\.number))
        for gone in before where !numbers.contains(gone.number) { retiredRoutes[gone.number] = gone }
        return (fresh, Self.inherit(fresh, from: before))
    }

    private struct Lesson: Hashable {
        let pathPrefix: String
        let key: [UInt8]

        init?(_ route: KeptRoute) {
            guard route.published != nil, let tableKey = route.tableKey else { return nil }
            (pathPrefix, key) = (route.pathPrefix, tableKey)
        }
    }

    private static func inherit(_ fresh: [KeptRoute], from before: [KeptRoute]) -> [KeptRoute] {
        guard fresh.contains(where: { $0.published != nil }) else { return [] }
        let sources = Dictionary(before.compactMap { route in Lesson(route).map { ($0, route) } }) { first, _ in first }
        return fresh.filter { route in
            guard let source = Lesson(route).flatMap({ sources[$0] }) else { return false }
            route.table = source.table
            return true
        }
    }

    /// Nothing leads any more to what is retired.
    /// - Returns: the routes among it.
    mutating func takeRetired() -> [KeptRoute] {
        defer { (retiredIdentities, retiredRoutes) = ([], [:]) }
        for number in retiredRoutes.keys { routesByNumber[number] = nil }
        return retiredRoutes.values.sorted { $0.number < $1.number }
    }
}
