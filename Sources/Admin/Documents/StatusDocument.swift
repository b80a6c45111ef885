internal import DataPath
internal import Gateway
public import Keeping
internal import Telemetry

/// The facts of `GET /status`, for the command line and for scripts. In JSON the names are in snake_case; times are seconds.
public struct StatusDocument: AdminDocument, Sendable, Equatable {
    /// The version of the running binary.
    public var version: String
    /// Where the configuration was found.
    public var configuration: String
    /// How the last reload went.
    public var reload: ConfigurationDocument
    /// The addresses of the listeners.
    public var listening: [String]
    /// Since the start of this process.
    public var uptimeSeconds: Double
    /// Whether `/readyz` answers 200.
    public var ready: Bool
    /// Why it is not.
    public var reasons: [String]
    /// The store of tokens.
    public var store: Store
    /// The fleet's server; absent without `store.shared`.
    public var shared: Shared?
    /// The audit log; absent without `audit`.
    public var audit: AuditStatus?
    /// In the order of the configuration.
    public var identities: [Identity]
    /// The tokens that expire first and those that have failed, up to `maximumTokens`.
    public var tokens: [Token]
    /// How many more there are.
    public var tokensLeftOut: Int
    /// Tokens of end users.
    public var subjects: SubjectsStatus
    /// In the order of the configuration.
    public var routes: [Route]
    /// The upstreams whose addresses are checked, and those to which no connection can be made now.
    public var upstreams: [Upstream]
    /// Requests that found no route, by status.
    public var unrouted: [String: UInt64]
    /// Connections of callers that are open now.
    public var callerConnections: Int
    /// Where requests found their token.
    public var tokenLookups: [String: UInt64]
    /// Bytes that broke a protocol, by kind.
    public var glitches: [String: UInt64]
    /// Log lines that were dropped because nobody took them.
    public var logDropped: UInt64

    /// The state of the store and what it brought back.
    public struct Store: Codable, Sendable, Equatable {
        /// `memory`, `serving`, `degraded` or `refused`.
        public var state: String
        /// A sentence for the operator.
        public var detail: String
        /// Tokens that were read from the store at the start.
        public var restoredTokens: Int
    }

    /// The server by which gateways of a fleet share tokens.
    public struct Shared: Codable, Sendable, Equatable {
        /// `connecting`, `serving` or `degraded`.
        public var state: String
        /// Why the server is not in use; nil while it is.
        public var detail: String?
        /// Where the server is, without its password.
        public var server: String
        /// The value of `store.shared.format`: `old`, `both` or `new`.
        public var format: String
        /// Versions, ends and news cannot be forged by who writes to the server: only with `new`.
        public var sealed: Bool
        /// Tokens that another gateway had obtained.
        public var taken: UInt64
        /// Grants made without a confirmed lease.
        public var alone: UInt64
        /// Steps not made for want of one.
        public var withheld: UInt64
    }

    /// A configured identity.
    public struct Identity: Codable, Sendable, Equatable {
        /// The name in the configuration.
        public var name: String
        /// The scheme's name in the configuration.
        public var scheme: String
        /// A label of `cardea_identity_state`.
        public var state: String
        /// Its secret is not sent until it changes, an operator resets, or a person logs in.
        public var quarantined: Bool
        /// Requests that wait for a token now.
        public var waiting: Int
        /// Tokens that are held in memory.
        public var tokens: Int
        /// Grants that succeeded since the start.
        public var grants: UInt64
        /// Grants that failed since the start.
        public var failures: UInt64
        /// Why the last grant failed, in words for a person.
        public var lastFailure: String?
        /// Seconds since the last failed grant.
        public var lastFailureSecondsAgo: Double?
        /// Also one that is over.
        public var lastIssue: Issue?
        /// Until what a person's login brought ends; nil where nobody logs in, or its issuer has not said.
        public var loginExpiresInSeconds: Double?
        /// The authentication that an upstream asks of the next login (RFC 9470); nil where none does.
        public var loginAskedFor: String?
        /// The scheme's facts about what stands behind the identity; nil where there are none.
        public var facts: [Fact]?
        /// The command that helps, where a person has to.
        public var advice: String?
    }

    /// Failures with no success between them.
    public struct Issue: Codable, Sendable, Equatable {
        /// The reason of the last failure.
        public var reason: String
        /// Failures in the issue.
        public var failures: UInt64
        /// Since the first of them.
        public var secondsAgo: Double
        /// Until the next success; nil while it lasts.
        public var lastedSeconds: Double?
    }

    /// A further fact that the scheme tells.
    public struct Fact: Codable, Sendable, Equatable {
        /// A name for people.
        public var name: String
        /// For a person to read.
        public var value: String
    }

    /// An access key and its token.
    public struct Token: Codable, Sendable, Equatable {
        /// The identity's name in the configuration.
        public var identity: String
        /// The upstream that the token goes to.
        public var upstream: String
        /// The challenge's realm; empty where there is none.
        public var realm: String
        /// The scopes that were asked for, parted by spaces.
        public var scopes: String
        /// A label of `cardea_identity_state`.
        public var state: String
        /// The authentication level (OAM); nil where the scheme has none.
        public var level: Int?
        /// nil where there is no token, or one that never expires.
        public var ageSeconds: Double?
        /// Until the renewal begins.
        public var refreshInSeconds: Double?
        /// Until the end that the issuer gave.
        public var expiresInSeconds: Double?
        /// Grants of the key since the start.
        public var grants: UInt64
        /// Requests that wait for the token now.
        public var waiting: Int
        /// Why the last grant failed, in words for a person.
        public var lastFailure: String?
        /// The scopes that were granted, where they are not those asked for.
        public var granted: String?
        /// End users with a token of this key in memory; nil where the token is everybody's.
        public var subjects: Int?
        /// Until the next try after a failure; nil where nothing is waited for.
        public var retryInSeconds: Double?
        /// Seconds since the last failed grant.
        public var lastFailureSecondsAgo: Double?
        /// true: a reload has left the key behind; it serves requests that began before, and goes within a minute and a half.
        public var earlierSettings: Bool?
    }

    /// A configured route.
    public struct Route: Codable, Sendable, Equatable {
        /// The name in the configuration.
        public var name: String
        /// The name of the identity that answers; nil where the route adds no credential, or no challenge has chosen of its list yet.
        public var identity: String?
        /// The names of its identities, in order, where it has a list.
        public var identities: [String]?
        /// Where requests go.
        public var upstream: String
        /// Answers to callers by their status; those without answers are left out.
        public var answers: [String: UInt64]
        /// Requests since the start.
        public var requests: UInt64
        /// Over the last minute; nil until it has been looked at twice.
        public var requestsPerSecond: Double?
        /// The median duration.
        public var p50Seconds: Double?
        /// The duration that 99 of 100 requests stay under.
        public var p99Seconds: Double?
        /// Replays that the upstream took.
        public var replaysAccepted: UInt64
        /// Replays that the upstream refused again.
        public var replaysRefused: UInt64
    }

    /// An upstream of a route.
    public struct Upstream: Codable, Sendable, Equatable {
        /// The upstream as it is configured.
        public var upstream: String
        /// The path that the checks ask for; nil where there are none.
        public var path: String?
        /// Where its name leads now.
        public var addresses: [Address]
        /// No connection can be made now.
        public var outage: Outage?
    }

    /// Why no connection can be made, and since when.
    public struct Outage: Codable, Sendable, Equatable {
        /// The last fault, as a word of the log.
        public var reason: String
        /// Since the first failure in a row.
        public var secondsAgo: Double
    }

    /// An address of an upstream.
    public struct Address: Codable, Sendable, Equatable {
        /// The address and port.
        public var address: String
        /// Requests are sent to it.
        public var healthy: Bool
        /// Checks since the start.
        public var checks: UInt64
        /// Checks that failed since the start.
        public var failures: UInt64
        /// Why the last check was bad.
        public var lastFailure: String?
        /// Seconds since the last failed check.
        public var lastFailureSecondsAgo: Double?
    }

    /// The most entries of `tokens`.
    public static let maximumTokens = 1000
}

// MARK: - Making

extension StatusDocument {
    init(_ facts: SiteFacts) {
        let status = facts.status
        version = facts.version
        configuration = shortened(facts.configurationPath)
        reload = ConfigurationDocument(status.configuration)
        listening = facts.listening.map { shortened($0) }
        uptimeSeconds = Self.seconds(facts.age)
        ready = facts.isReady
        reasons = facts.reasons.map { shortened($0) }
        store = Store(
            state: status.storeState.rawValue, detail: shortened(status.store), restoredTokens: status.restoredTokens)
        shared = status.shared.map { shared in
            Shared(
                state: shared.state.rawValue, detail: shared.detail.map { shortened($0) }, server: shared.server,
                format: shared.format, sealed: shared.isSealed,
                taken: shared.taken, alone: shared.alone, withheld: shared.withheld)
        }
        audit = status.audit
        identities = status.identityFacts.map { Identity($0) }
        tokens = mostTelling(status.tokens, limit: Self.maximumTokens).map { Token($0) }
        tokensLeftOut = status.tokens.count - tokens.count
        subjects = status.subjects
        let placed = Dictionary(status.routes.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        routes = zip(facts.traffic.routes, facts.trends).map { Route($0, trend: $1, placed: placed[$0.name]) }
        upstreams = status.upstreams.map { Upstream($0) }
        unrouted = Self.table(facts.traffic.unrouted)
        callerConnections = facts.traffic.callers
        tokenLookups = Self.table(facts.traffic.lookups)
        glitches = Self.table(facts.traffic.glitches)
        logDropped = facts.logDropped
    }

    fileprivate static func seconds(_ nanoseconds: UInt64) -> Double {
        (Double(nanoseconds) / 1e6).rounded() / 1e3
    }

    fileprivate static func table(_ counts: [GatewayTraffic.NamedCount]) -> [String: UInt64] {
        Dictionary(counts.map { ($0.name, $0.count) }, uniquingKeysWith: &+)
    }
}

extension StatusDocument.Identity {
    init(_ facts: IdentityFacts) {
        name = facts.status.name
        scheme = facts.status.scheme
        state = facts.state.rawValue
        quarantined = facts.state == .quarantined
        waiting = facts.waiting
        tokens = facts.tokens.count
        grants = facts.status.grants
        failures = facts.status.failures
        lastFailure = facts.status.lastFailure.map { shortened($0) }
        lastFailureSecondsAgo = facts.status.lastFailureAgo.map(StatusDocument.seconds)
        lastIssue = facts.status.lastTrouble.map { trouble in
            .init(
                reason: shortened(trouble.reason), failures: trouble.failures,
                secondsAgo: StatusDocument.seconds(trouble.ago),
                lastedSeconds: trouble.lasted.map(StatusDocument.seconds))
        }
        loginExpiresInSeconds = facts.status.login?.expiresIn.map(StatusDocument.seconds)
        loginAskedFor = facts.status.login?.asked
        self.facts =
            facts.status.facts.isEmpty
            ? nil : facts.status.facts.map { .init(name: shortened($0.name), value: shortened($0.value)) }
        advice = facts.command
    }
}

extension StatusDocument.Token {
    init(_ status: TokenStatus) {
        identity = status.identity
        upstream = shortened(status.upstream)
        realm = shortened(status.realm)
        scopes = shortened(status.scopes)
        state = status.state.rawValue
        level = status.level
        ageSeconds = status.age.map(StatusDocument.seconds)
        refreshInSeconds = status.refreshIn.map(StatusDocument.seconds)
        expiresInSeconds = status.expiresIn.map(StatusDocument.seconds)
        grants = status.grants
        waiting = status.waiting
        lastFailure = status.lastFailure.map { shortened($0) }
        granted = status.granted.map { shortened($0) }
        subjects = status.subjects
        retryInSeconds = status.retryIn.map(StatusDocument.seconds)
        lastFailureSecondsAgo = status.lastFailureAgo.map(StatusDocument.seconds)
        earlierSettings = status.isOfEarlierSettings ? true : nil
    }
}

extension StatusDocument.Upstream {
    init(_ status: UpstreamHealthStatus) {
        upstream = shortened(status.upstream)
        path = status.path.map { shortened($0) }
        outage = status.outage.map {
            StatusDocument.Outage(reason: shortened($0.reason), secondsAgo: StatusDocument.seconds($0.ago))
        }
        addresses = status.addresses.map {
            .init(
                address: shortened($0.address), healthy: $0.isHealthy, checks: $0.checks, failures: $0.failures,
                lastFailure: $0.lastFailure.map { shortened($0) },
                lastFailureSecondsAgo: $0.lastFailureAgo.map(StatusDocument.seconds))
        }
    }
}

extension StatusDocument.Route {
    init(_ traffic: RouteTraffic, trend: RouteTrend, placed: RouteStatus?) {
        name = traffic.name
        identity = traffic.list.isEmpty ? placed?.identity : traffic.chosen
        identities = traffic.list.isEmpty ? nil : traffic.list
        upstream = shortened(placed?.upstream ?? "")
        answers = StatusDocument.table(traffic.answers)
        requests = traffic.answers.reduce(0) { $0 &+ $1.count }
        requestsPerSecond = trend.perSecond.map { ($0 * 1000).rounded() / 1000 }
        // A histogram's estimate: finer than a microsecond it would only pretend.
        p50Seconds = traffic.durations.estimate(quantile: 0.5).map { (Double($0) / 1e3).rounded() / 1e6 }
        p99Seconds = traffic.durations.estimate(quantile: 0.99).map { (Double($0) / 1e3).rounded() / 1e6 }
        replaysAccepted = traffic.replaysAccepted
        replaysRefused = traffic.replaysRefused
    }
}

/// The tokens to show when not all can be: first those with a failure or with requests that wait, then those that expire first. In
/// their former order.
func mostTelling(_ tokens: [TokenStatus], limit: Int) -> [TokenStatus] {
    guard tokens.count > limit else { return tokens }
    func isUrgent(_ token: TokenStatus) -> Bool { token.lastFailure != nil || token.waiting > 0 }
    let ranked = tokens.indices.sorted { one, two in
        let (first, second) = (tokens[one], tokens[two])
        if isUrgent(first) != isUrgent(second) { return isUrgent(first) }
        return (first.expiresIn ?? .max, one) < (second.expiresIn ?? .max, two)
    }
    return ranked.prefix(limit).sorted().map { tokens[$0] }
}
