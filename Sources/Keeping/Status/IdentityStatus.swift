internal import DataPath
internal import Handshakes
public import Telemetry

/// A configured identity.
public struct IdentityStatus: Sendable {
    /// The name in the configuration.
    public var name: String
    /// The scheme's name in the configuration.
    public var scheme: String
    /// Grants that succeeded since the start.
    public var grants: UInt64
    /// Grants that failed since the start.
    public var failures: UInt64
    /// The same by their reasons, each a fixed word; those that did not happen stand here too.
    public var failureReasons: [(reason: String, count: UInt64)] = []
    /// A secret is not sent until it changes, an operator resets, or a person logs in.
    public var isQuarantined: Bool
    /// The identity's marks, or its login, stand in a store that cannot be read.
    public var lacksStore = false
    /// Grants with fewer scopes than were asked for.
    public var narrowerGrants: UInt64 = 0
    /// Keys that a wider token of another key has served.
    public var borrowings: UInt64 = 0
    /// Refresh tokens that the issuer would not take: expired, revoked, or used by somebody else.
    public var refreshTokensRefused: UInt64 = 0
    /// From a grant's start to its end, good or bad.
    public var grantTimes = DurationDistribution()
    /// Misses that a failure or refusal that stands has answered without a grant.
    public var negativeHits: UInt64 = 0
    /// The issuer's clock minus ours, in seconds, as its answers over TLS have it; nil for schemes without an issuer.
    public var clockSkew: Int64?
    /// The need of a login, for identities that need a person; nil for all others.
    public var login: LoginNeed?
    /// Logins of the same identities that ended, each way by its fixed word; those that did not happen stand here too.
    public var logins: [(result: String, count: UInt64)] = []
    /// Facts that the identity's scheme tells of what stands behind it; texts for people.
    public var facts: [(name: String, value: String)] = []
    /// The last failure in one safe sentence; nil when the identity has worked since.
    public var lastFailure: String?
    /// The last time that something went wrong, also when it is over.
    public var lastTrouble: TroubleStatus?
    /// Requests that wait for one of its tokens now, over all loops.
    public var waiting = 0
    /// Since `lastFailure`, in nanoseconds.
    public var lastFailureAgo: UInt64?
    /// What happened in the last day.
    public var day = DayStatus()
}

/// An identity's last day, as one moment sees it.
public struct DayStatus: Sendable {
    /// Counts by quarters of an hour.
    public var day = IdentityDay()
    /// The moment, nanoseconds of `CLOCK_BOOTTIME`.
    public var at: UInt64 = 0
    /// Nanoseconds that the identity has been in the configuration at most: the process may be younger.
    public var known: UInt64 = 0

    /// Of an identity that nothing is known of.
    public init() {}

    init(_ identity: KeptIdentity, at now: UInt64) {
        day = identity.day
        at = now
        known = now - min(now, identity.arrivedAt)
    }
}

extension IdentityStatus {
    /// The status from what the identity itself knows.
    /// - Parameter now: nanoseconds of `CLOCK_BOOTTIME`.
    init(_ identity: KeptIdentity, at now: UInt64) {
        self.init(
            name: identity.plan.name, scheme: identity.plan.handshake.scheme, grants: identity.grants,
            failures: identity.failures.values.reduce(0, +),
            failureReasons: GrantFailure.Reason.allCases.map { ($0.rawValue, identity.failures[$0] ?? 0) },
            isQuarantined: false, narrowerGrants: identity.narrowerGrants, borrowings: identity.borrowings,
            refreshTokensRefused: identity.refreshTokensRefused, grantTimes: identity.grantTimes,
            negativeHits: identity.negativeHits, logins: identity.loginResults, lastFailure: identity.lastFailure,
            lastTrouble: identity.lastTrouble.map { TroubleStatus($0, at: now) },
            lastFailureAgo: identity.lastFailure.map { _ in now - min(now, identity.lastFailureAt) },
            day: DayStatus(identity, at: now))
    }
}

extension KeptIdentity {
    /// How logins ended; empty for identities that need no person.
    fileprivate var loginResults: [(result: String, count: UInt64)] {
        guard interactive != nil else { return [] }
        return IdentityStatus.loginResults.map { ($0, logins[$0] ?? 0) }
    }
}

extension IdentityStatus {
    /// The words for why a grant failed.
    package static var failureWords: [String] { GrantFailure.Reason.allCases.map(\.rawValue) }

    /// The words for how a login ended.
    package static var loginResults: [String] {
        let ends: [LoginReport.State] = [.done, .expired, .cancelled]
        return ends.map(\.rawValue) + failureWords
    }
}
