internal import Audit
internal import Configuration
internal import DataPath
internal import Glibc
internal import HTTP1
internal import Handshakes
internal import HotCache
internal import Keeping
internal import Numbers
internal import Reactor
internal import TLS
internal import Telemetry
internal import Tokens

/// Turns a checked configuration into the plans of the loops and the keeper's first state. Runs before any thread does, or, for a reload,
/// on the main thread beside them: then what it may touch of theirs is what `Predecessor` says.
struct GatewayCompiler {
    let configuration: Configuration
    let identities: [KeptIdentity]
    let identityCompiler: IdentityCompiler
    let cache: HotCache
    let loops: Int
    let routeNames: NameTable
    let faultNames: NameTable
    let identityNames: NameTable
    let usePlaces: UsePlaces?
    let predecessor: Predecessor
    /// Texts that a confined program has in place of secrets, by variable of its environment.
    let placeholders: [String: String]
    let edition: Edition

    /// The identities, by the names that routes use.
    private let members: [String: Member]
    let listenersByName: [String: Listener]
    /// Some route answers token requests: then every route deletes placeholders, whichever a caller shows its own at.
    let givesPlaceholders: Bool

    private(set) var numbers: RouteNumbers
    private(set) var upstreams: [UpstreamPlan] = []
    private var upstreamsByReach: [UpstreamReach: UpstreamPlan] = [:]
    private let upstreamsBefore: [UpstreamReach: UpstreamPlan]
    private var upstreamNumbers: Set<Int>
    private var nextUpstreamNumber = 0
    var routes: [RoutePlan] = []
    private(set) var keptRoutes: [KeptRoute] = []
    private var standings: [Standing: Int] = [:]
    /// Keys that the configuration alone determines, with their slots.
    private(set) var fixedKeys: [AccessKey: (slot: Slot, identity: KeptIdentity, wanted: Wanted)] = [:]

    private struct Member {
        let configured: ConfiguredIdentity
        let kept: KeptIdentity
    }

    init(
        configuration: Configuration, identities: [KeptIdentity], identityCompiler: IdentityCompiler, cache: HotCache,
        loops: Int, routeNames: NameTable, faultNames: NameTable, identityNames: NameTable = NameTable(),
        usePlaces: UsePlaces? = nil,
        predecessor: Predecessor? = nil, placeholders: [String: String] = [:]
    ) {
        let predecessor = predecessor ?? .none(cache)
        self.predecessor = predecessor
        self.placeholders = placeholders
        edition = Edition(number: predecessor.edition + 1)
        numbers = RouteNumbers(after: predecessor.routes, next: predecessor.nextRoute)
        self.configuration = configuration
        self.identities = identities
        self.identityCompiler = identityCompiler
        self.cache = cache
        self.loops = loops
        self.routeNames = routeNames
        self.faultNames = faultNames
        self.identityNames = identityNames
        self.usePlaces = usePlaces
        // `identities` are those of the configuration, in its order.
        members = Dictionary(
            zip(configuration.identities, identities).map { ($0.name, Member(configured: $0, kept: $1)) }
        ) { first, _ in first }
        listenersByName = Dictionary(configuration.listeners.map { ($0.name, $0) }) { first, _ in first }
        givesPlaceholders = configuration.routes.contains { $0.tokenStub != nil }
        upstreamsBefore = Dictionary(predecessor.upstreams.map { (UpstreamReach(of: $0), $0) }) { first, _ in first }
        upstreamNumbers = predecessor.upstreamNumbers
    }

    /// The scheme of the identity that a route uses.
    func scheme(of route: ConfiguredRoute) -> (any Scheme)? {
        guard case .identity(let name) = route.use else { return nil }
        return members[name]?.configured.scheme as? any Scheme
    }

    mutating func compile() throws(GatewayFault) -> GatewayPlan {
        let pseudonym = configuration.name ?? Self.machineName() ?? "cardea"
        for (index, route) in configuration.routes.enumerated() {
            try compile(route, index: index, pseudonym: pseudonym)
        }
        let metrics: MetricPlan
        do {
            metrics = try MetricPlan(
                routes: routes.map(\.name), identities: identities.map(\.plan.name), upstreams: upstreams.map(\.origin),
                concealing: Set(routes.indices.filter { routes[$0].conceals }))
        } catch .tooManySeries {
            throw GatewayFault(
                "more routes, identities and upstreams than can be counted (\(MetricSchema.maximumCells) counters)")
        } catch {
            throw GatewayFault("metrics: \(error)")
        }
        var faults: [Fault.Kind: UInt16] = [:]
        for kind in Fault.Kind.allCases { faults[kind] = faultNames.intern(kind.word) }
        edition.upstreamNumbers = Set(upstreams.map(\.index))
        return GatewayPlan(
            edition: edition, routes: routes,
            listeners: try ListenerCompiler(
                configuration: configuration, listeners: listenersByName, environment: identityCompiler.environment,
                edition: edition, earlier: predecessor.listeners, time: identityCompiler.platform.time
            ).compile(routes), upstreams: upstreams, limits: limits(),
            translators: configuration.nat64.compactMap { AddressRange($0) }, pseudonym: pseudonym,
            accessPolicy: accessPolicy(), faultNames: faults, metrics: metrics)
    }

    /// This machine's; nil where it is no name that a header could have.
    static func machineName() -> String? {
        var buffer = [CChar](repeating: 0, count: 256)
        guard gethostname(&buffer, 255) == 0 else { return nil }
        let name = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        // A token of RFC 9110, as `Via` and `Proxy-Status` need it.
        return FieldName(name) == nil ? nil : name
    }

    private func limits() -> DataLimits {
        let limits = configuration.limits
        let connections = limits.connections ?? max(64, (Hardening.descriptorLimit - 256) / 2)
        var result = DataLimits(
            connections: max(1, connections / loops), headerSize: limits.headerSize,
            heads: HeadLimits(headSize: limits.headerSize, fields: limits.headers, target: limits.targetSize),
            bodySize: limits.bodySize.map { UInt64($0) } ?? .max,
            headTimeout: UInt64(clamping: limits.headTimeout.wholeNanoseconds), leastRate: limits.minRate,
            waiters: max(1, limits.waiters / loops),
            largeBytes: max(1 << 20, limits.replayMemory / loops), perAddress: limits.connectionsPerAddress)
        // The loops' memory was laid out for these.
        if let running = predecessor.limits {
            result.connections = running.connections
            result.headerSize = running.headerSize
            result.heads = running.heads
            result.largeBytes = running.largeBytes
        }
        return result
    }

    private func accessPolicy() -> AccessPolicy {
        switch configuration.log.access {
        case .off: .off
        case .errors: .errors
        case .all: .all
        }
    }

    // MARK: - Routes

    private mutating func compile(_ route: ConfiguredRoute, index: Int, pseudonym: String) throws(GatewayFault) {
        if let stub = route.tokenStub { return try compile(stub, of: route, index: index, pseudonym: pseudonym) }
        guard let to = route.to else { throw GatewayFault("route \(route.name): no upstream") }
        guard !route.alternatives.isEmpty else {
            return routes.append(try plan(of: route, to: to, index: index, pseudonym: pseudonym))
        }
        let choice = choice(of: route, to: to)
        var alternatives: [RoutePlan] = []
        for name in route.identityNames {
            alternatives.append(
                try plan(of: route.using(name), to: to, index: index, pseudonym: pseudonym, choice: choice))
        }
        // Until one is chosen, requests go out as that identity wants them that names the user agent: a WebGate challenges no other.
        let first =
            route.identityNames.first { scheme(of: route.using($0))?.edits.userAgent != nil } ?? route.identityNames[0]
        routes.append(
            try plan(
                of: route.using(first), to: to, index: index, pseudonym: pseudonym, choice: choice,
                alternatives: alternatives))
    }

    private func choice(of route: ConfiguredRoute, to: Upstream) -> SchemeChoice {
        let found = route.identityNames.compactMap { members[$0] }
        return SchemeChoice(
            route: route.name, origin: "\(to.origin)",
            members: found.map {
                SchemeChoice.Member(identity: $0.configured.name, schemes: $0.configured.scheme.challengeSchemes)
            }, allowsDowngrade: route.downgrade == .allow, after: predecessor.choices)
    }

    /// - Parameters:
    ///   - choice: of the list that the route's identity is of.
    ///   - alternatives: the plans of that list, for the one that stands in their place.
    private mutating func plan(
        of route: ConfiguredRoute, to: Upstream, index: Int, pseudonym: String, choice: SchemeChoice? = nil,
        alternatives: [RoutePlan] = []
    ) throws(GatewayFault) -> RoutePlan {
        let upstream = try upstream(of: route, to)
        var identity: KeptIdentity?
        var plan: IdentityPlan?
        if case .identity(let name) = route.use {
            guard let member = members[name] else {
                throw GatewayFault("route \(route.name): no identity \(name)")
            }
            let found = member.kept
            identity = found
            plan = found.plan
            if route.subject != nil { found.isPerUser = true }
            if let statuses = route.onRejected.statuses {
                plan = IdentityPlan(
                    index: found.plan.index, name: name,
                    handshake: try identityCompiler.handshake(of: member.configured, statuses: statuses),
                    acquireTimeout: found.plan.acquireTimeout, reportsSuccess: found.plan.reportsSuccess,
                    resourceFromCaller: found.plan.resourceFromCaller, isTokenless: found.plan.isTokenless,
                    statuses: statuses, signer: found.plan.signer,
                    connections: found.plan.connections)
            }
        }
        // A certificate is shown by the TLS layer: the keeper has no part in it, and no field carries it.
        let isTokenless = plan?.isTokenless == true
        if isTokenless { identity = nil }
        let carried = isTokenless ? nil : plan
        let kept = keptRoute(route, to: to, identity: identity, upstream: upstream)
        // The keeper knows the plans of a list's identities; what stands for them asks for no token.
        let isList = !alternatives.isEmpty
        if !isList { keptRoutes.append(kept) }
        var slot: Slot?
        if let identity, identity.policy.kind != .challengeDriven, !isList {
            slot = try fixedSlot(of: kept, identity: identity, realm: kept.realm ?? Realm(""))
        }
        var urls: Slot?
        if let identity, kept.bindsToURL, !isList {
            identity.bindsToURL = true
            urls = try fixedSlot(of: kept, identity: identity, realm: kept.realmOfURLs)
        }
        return RoutePlan(
            index: index, number: isList ? -1 : kept.number, edition: edition, name: route.name,
            logName: routeNames.intern(route.name),
            identityLogName: plan.map { identityNames.intern($0.name) } ?? 0, matches: match(of: route),
            admission: try admission(of: route, to: to), upstream: upstream, pathPrefix: to.pathPrefix,
            edits: try edits(of: route, to: to, plan: carried, pseudonym: pseudonym),
            answerEdits: answerEdits(of: route, to: to), identity: plan, injection: injection(of: route, carried),
            forwarding: forwarding(of: route), answerNotes: answerNotes(of: route),
            correlation: correlation(of: route), slot: slot,
            subject: identity == nil ? nil : subject(of: route),
            learned: isList ? nil : kept.published, urls: urls, strictPaths: route.paths == .strict,
            standing: standing(of: route),
            replay: route.onRejected.replay == .once ? .once : .never,
            replayMethods: (route.onRejected.methods ?? []).map { Array($0.utf8) },
            replayBody: route.onRejected.maxBody, largeBody: caution(of: route),
            passesFinalRefusal: route.onRejected.final == .pass,
            answerTimeout: UInt64(clamping: route.timeouts.response.wholeNanoseconds),
            idleTimeout: UInt64(clamping: route.timeouts.idle.wholeNanoseconds),
            halfClosedTimeout: UInt64(clamping: route.timeouts.halfClosed.wholeNanoseconds),
            placeholders: placeholderPlan(of: route, carried),
            usePlace: plan.flatMap { usePlaces?.number(identity: $0.name, origin: upstream.origin) } ?? 0,
            conceals: carried != nil && route.answers == .conceal, choice: choice, alternatives: alternatives,
            signsBody: choice.map { $0.members.contains { members[$0.identity]?.kept.plan.signer?.readsBody == true } })
    }

    /// The settings of a route that decide for whom and for what a request is; routes with equal ones share a number.
    private struct Standing: Hashable {
        let identities: [String]
        let callers: Callers
        let subject: ConfiguredRoute.Subject?
        let to: Upstream?
    }

    mutating func standing(of route: ConfiguredRoute) -> Int {
        let standing = Standing(
            identities: route.identityNames, callers: route.callers, subject: route.subject, to: route.to)
        if let known = standings[standing] { return known }
        standings[standing] = standings.count
        return standings.count - 1
    }

    private mutating func keptRoute(
        _ route: ConfiguredRoute, to: Upstream, identity: KeptIdentity?, upstream: UpstreamPlan
    ) -> KeptRoute {
        var scopes = route.scopes
        if scopes.isEmpty, let identity { scopes = members[identity.plan.name]?.configured.scopes ?? [] }
        let driven = identity?.policy.kind == .challengeDriven
        var bindsToURL = false
        // A probe asks as a caller of the route would.
        var agent = route.headers.set.first { $0.name.lowercased() == "user-agent" }?.value ?? "cardea"
        if identity != nil, let edits = scheme(of: route)?.edits {
            bindsToURL = edits.bindsToURL
            if let own = edits.userAgent { agent = own }
        }
        let made = KeptRoute(
            number: 0, name: route.name, origin: Tokens.Origin(file: to.origin), originText: upstream.origin,
            identity: identity,
            wanted: Wanted(
                scopes: scopes, audience: route.audience.map { [$0] } ?? [],
                resource: route.resource.map { [$0] } ?? [],
                challenge: nil, upstreamOrigin: upstream.origin),
            scopes: ScopeSet(scopes.map { ByteString($0) }), audience: route.audience.map { ByteString($0) },
            resource: route.resource.map { ByteString($0) }, realm: route.realm.map { Realm(ByteString($0)) },
            published: nil, bindsToURL: bindsToURL,
            waiters: configuration.limits.waiters, upstream: upstream, pathPrefix: to.pathPrefix, probeAgent: agent,
            scoutPatience: UInt64(
                clamping: (route.timeouts.connect + route.timeouts.response + .seconds(5)).wholeNanoseconds))
        let (number, earlier) = numbers.number(of: made)
        made.number = number
        // A route that keeps its number keeps its table of what was learned: loops at the old and at the new plan read the same one.
        if driven { made.published = earlier?.published ?? Published(nil, in: cache.epochs) }
        return made
    }

    private mutating func fixedSlot(of route: KeptRoute, identity: KeptIdentity, realm: Realm) throws(GatewayFault)
        -> Slot
    {
        guard let key = route.key(of: realm) else { throw GatewayFault("route \(route.name): no key") }
        if let known = fixedKeys[key] { return known.slot }
        guard let slot = predecessor.slot(key) else { throw GatewayFault("more tokens than the hot cache has slots") }
        fixedKeys[key] = (slot, identity, route.wanted)
        return slot
    }

    // MARK: - Upstreams

    /// The identity whose credential authenticates connections.
    private func boundTo(of route: ConfiguredRoute) -> ConnectionEpoch? {
        guard case .identity(let name) = route.use, let plan = members[name]?.kept.plan, plan.bindsConnections else {
            return nil
        }
        return plan.connections
    }

    /// Routes share connections where everything about reaching the upstream is equal.
    private mutating func upstream(of route: ConfiguredRoute, _ to: Upstream) throws(GatewayFault) -> UpstreamPlan {
        let endpoints = try to.addresses.map { endpoint throws(GatewayFault) in
            try upstreamEndpoint(endpoint, of: route)
        }
        let plan = UpstreamPlan(
            index: freeUpstreamNumber(), origin: "\(to.origin)", host: to.origin.host, port: to.origin.port,
            usesTLS: to.origin.scheme == .https, protocols: protocols(of: route),
            serverName: route.tls.serverName ?? to.origin.host,
            proxy: route.proxy.map { identityCompiler.proxy($0) },
            endpoints: endpoints,
            trust: to.origin.scheme == .https ? identityCompiler.trust(route.tls.authorities) : nil,
            minimumVersion: route.tls.minVersion == .tls13 ? .v1_3 : .v1_2, legacyTLS: route.tls.legacy,
            clientKeys: clientKeys(of: route), boundTo: boundTo(of: route),
            connectTimeout: UInt64(clamping: route.timeouts.connect.wholeNanoseconds),
            idleTimeout: UInt64(clamping: route.timeouts.idle.wholeNanoseconds),
            keepTimeout: UInt64(clamping: route.timeouts.keepAlive.wholeNanoseconds),
            reuseTimeout: UInt64(clamping: route.timeouts.reuse.wholeNanoseconds), health: health(of: route, to),
            connectionLimit: route.limits.connections.map { max(1, $0 / loops) } ?? .max,
            waiterLimit: route.limits.waiters / loops)
        let reach = UpstreamReach(of: plan)
        if let same = upstreamsByReach[reach] { return same }
        // An equal upstream of the running plan is taken over, so that its connections go on.
        let chosen = upstreamsBefore[reach] ?? plan
        upstreams.append(chosen)
        upstreamsByReach[reach] = chosen
        upstreamNumbers.insert(chosen.index)
        return chosen
    }

    /// Numbers stay small, because the loops' tables are indexed by them, and are not given out while anybody may still mean another one.
    private mutating func freeUpstreamNumber() -> Int {
        // None becomes free while this plan is made.
        while upstreamNumbers.contains(nextUpstreamNumber) { nextUpstreamNumber += 1 }
        return nextUpstreamNumber
    }

    private func protocols(of route: ConfiguredRoute) -> UpstreamPlan.Protocols {
        switch route.http {
        case .auto: .either
        case .http1: .http1
        case .http2: .http2
        }
    }

    private func health(of route: ConfiguredRoute, _ to: Upstream) -> HealthPlan? {
        guard let health = route.health else { return nil }
        var host = to.origin.authority
        if case .name(let name) = route.host { host = name }
        return HealthPlan(
            path: health.path, host: host, interval: UInt64(clamping: health.interval.wholeNanoseconds),
            timeout: UInt64(clamping: health.timeout.wholeNanoseconds), healthy: health.healthy,
            unhealthy: health.unhealthy, statuses: health.statuses)
    }

    private func clientKeys(of route: ConfiguredRoute) -> ClientKeys? {
        var files = route.tls.identity.map { [$0] } ?? []
        if let own = scheme(of: route)?.certificates, !own.isEmpty { files = own }
        return identityCompiler.clientKeys(files)
    }

    private func upstreamEndpoint(_ endpoint: Endpoint, of route: ConfiguredRoute) throws(GatewayFault)
        -> UpstreamEndpoint
    {
        switch endpoint {
        case .address(let ip, let port): return UpstreamEndpoint(host: "\(ip)", port: port)
        case .host(let name, let port): return .name(host: name, port: port)
        case .unix(let path):
            guard let address = SocketAddress(unixPath: path) else {
                throw GatewayFault("route \(route.name): cannot connect to \(endpoint)")
            }
            return .address(address)
        }
    }

    // MARK: - Matching and admission

    func match(of route: ConfiguredRoute) -> RouteMatch {
        var match = RouteMatch()
        if let host = route.match.host { match.host = RouteMatch.Host(host) }
        switch route.match.path {
        case nil: break
        case .exact(let path)?: match.path = .exact(Array(path.utf8))
        case .prefix(let path)?: match.path = .prefix(Array(path.utf8))
        }
        match.ports = route.proxyPorts
        match.methods = route.match.methods.map { Array($0.utf8) }
        match.headers = route.match.headers.map { (Array($0.name.lowercased().utf8), Array($0.value.utf8)) }
        return match
    }

    func admission(of route: ConfiguredRoute, to: Upstream?) throws(GatewayFault) -> Admission {
        var admission = Admission()
        switch route.callers.allow {
        case .local: admission.from = .local
        case .any: admission.from = .any
        case .networks(let networks):
            admission.from = .networks(
                networks.compactMap { AddressRange($0) })
        }
        for user in route.callers.unixUsers {
            guard let id = ReceivedNumber(user)?.within(0...UInt32.max) ?? Self.userID(of: user) else {
                throw GatewayFault("route \(route.name): callers.unix_users: no user \(user) on this machine")
            }
            admission.unixUsers.append(id)
        }
        admission.tlsNames = route.callers.tlsNames.map { name in
            Array((name.contains("@") || name.contains(":") ? name : name.lowercased()).utf8)
        }
        admission.token = route.callers.token.map { identityCompiler.callerToken($0) }
        admission.browsers = route.callers.browsers
        admission.restsOnAddress = route.restsOnAddress
        var hosts = ["localhost", "127.0.0.1", "::1"]
        if let to { hosts.append(to.origin.host.lowercased()) }
        for listen in route.listen {
            if let address = SocketAddress(parsing: listen), address.family != .unix {
                hosts.append(address.host)
            }
        }
        admission.hosts.exact = hosts.map { Array($0.utf8) }
        if let host = route.match.host { admission.hosts.add(host) }
        admission.hosts.add(route.hosts)
        return admission
    }

    private static func userID(of name: String) -> UInt32? {
        var entry = passwd()
        var result: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 4096)
        guard getpwnam_r(name, &entry, &buffer, buffer.count, &result) == 0, result != nil else { return nil }
        return entry.pw_uid
    }
}

extension RouteMatch.Host {
    init(_ host: Match.Host) {
        switch host {
        case .exact(let host): self = .exact(Array(host.lowercased().utf8))
        case .oneLabel(let suffix):
            self = .oneLabel(suffix: Array((suffix.hasPrefix(".") ? suffix : "." + suffix).lowercased().utf8))
        }
    }
}
