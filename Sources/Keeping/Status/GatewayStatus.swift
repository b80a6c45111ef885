public import DataPath
internal import Fleet
public import Telemetry

/// The state of everything, for operators. Holds names and times, never a value.
public struct GatewayStatus: Sendable {
    /// In the order of the configuration.
    public var identities: [IdentityStatus]
    /// The access keys; an end user's keys stand together as a single one.
    public var tokens: [TokenStatus]
    /// The kind of the store and its condition, in a sentence.
    public var store: String
    /// Tokens taken up from the store at boot.
    public var restoredTokens: Int
    /// In the order of the configuration.
    public var routes: [RouteStatus]
    /// The certificates of all listeners, one by one.
    public var certificates: [CertificateStatus] = []
    /// The upstreams whose addresses are checked, and those to which no connection can be made now.
    public var upstreams: [UpstreamHealthStatus] = []
    /// Which configuration runs.
    public var configuration = ConfigurationStatus()
    /// Tokens of end users.
    public var subjects = SubjectsStatus()
    /// Nil without `store.shared`.
    public var shared: SharedStatus?
    /// Changes that the store took, and that it could not.
    public var storeCommits: (good: UInt64, failed: UInt64) = (0, 0)
    /// Lookups of tokens that memory did not hold.
    public var storeLookups = StoreLookups()
    /// Nil without a store, and before it was first measured.
    public var storeSize: StoreSizeStatus?
    /// The tokens that loops can reach.
    public var hotCache = HotCacheStatus()
    /// The issuers that were called.
    public var issuers: [IssuerStatus] = []
}

/// End users with tokens of their own, over all identities. Names never.
public struct SubjectsStatus: Codable, Sendable, Equatable {
    /// Tokens in memory.
    public var inMemory = 0
    /// The most tokens in memory.
    public var limit = 0
    /// New ones that were turned away, and ones that gave way to others.
    public var refused: UInt64 = 0
    /// Tokens that gave way to those of other users.
    public var evicted: UInt64 = 0
}

/// The state of the server that a fleet shares.
public struct SharedStatus: Sendable {
    /// `serving` alone shares tokens.
    public enum State: String, Sendable, CaseIterable { case connecting, serving, degraded }

    /// How the connection stands.
    public var state: State
    /// Why the server is not in use; nil while it is.
    public var detail: String?
    /// Without user and password.
    public var place: String
    /// The format that `store.shared.format` names.
    public var format: String
    /// Versions, ends and news cannot be forged by those who write to the server: only so in the format `new`.
    public var isSealed: Bool
    /// Tokens that another gateway had obtained.
    public var taken: UInt64 = 0
    /// Grants made without a confirmed lease.
    public var alone: UInt64 = 0
    /// Values that came after their lease had passed.
    public var late: UInt64 = 0
    /// Steps not made for want of a confirmed lease.
    public var withheld: UInt64 = 0

    /// Memberwise; the counts are zero.
    public init(state: State, detail: String?, place: String, format: String, isSealed: Bool) {
        self.state = state
        self.detail = detail
        self.place = place
        self.format = format
        self.isSealed = isSealed
    }
}

extension SharedStatus {
    /// Nil without `store.shared`.
    package init?(_ fleet: KeptFleet) {
        guard fleet.tier != nil else { return nil }
        self.init(
            state: .serving, detail: nil, place: fleet.place, format: fleet.format.rawValue,
            isSealed: fleet.format == .new)
        switch fleet.server.state {
        case .connecting: state = .connecting
        case .serving: break
        case .degraded(let reason): (state, detail) = (.degraded, reason)
        }
        (taken, alone, late, withheld) = (fleet.taken, fleet.alone, fleet.late, fleet.withheld)
    }
}

/// A certificate that a listener shows.
public struct CertificateStatus: Sendable {
    /// The listener's address as configured.
    public var listener: String
    /// The path of the certificate.
    public var file: String
    /// Seconds since 1970.
    public var notAfter: Int64

    package init(listener: String, file: String, notAfter: Int64) {
        self.listener = listener
        self.file = file
        self.notAfter = notAfter
    }
}

/// Which configuration runs, and whether it is the one that was last asked for.
public struct ConfigurationStatus: Sendable {
    /// 1 at start, one more with every reload.
    public var edition = 1
    /// Reloads that took effect.
    public var reloads = 0
    /// Reloads that changed nothing.
    public var refusals = 0
    /// Why the last reload changed nothing; nil when it took effect.
    public var refusal: String?
    /// Keys whose new value counts from the next start on.
    public var needsRestart: [String] = []

    package init(
        edition: Int = 1, reloads: Int = 0, refusals: Int = 0, refusal: String? = nil, needsRestart: [String] = []
    ) {
        self.edition = edition
        self.reloads = reloads
        self.refusals = refusals
        self.refusal = refusal
        self.needsRestart = needsRestart
    }
}

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
}

/// An access key and its token.
public struct TokenStatus: Sendable {
    /// The identity's name in the configuration.
    public var identity: String
    /// The upstream that the token goes to.
    public var upstream: String
    /// The challenge's realm; empty where there is none.
    public var realm: String
    /// The scopes that were asked for, parted by spaces.
    public var scopes: String
    /// Also where there is no token.
    public var state: IdentityState
    /// The authentication level (OAM); nil where the scheme has none.
    public var level: Int?
    /// Nanoseconds; nil where there is no token, or one that never expires.
    public var age: UInt64?
    /// Nanoseconds until the renewal begins.
    public var refreshIn: UInt64?
    /// Nanoseconds until the end that the issuer gave.
    public var expiresIn: UInt64?
    /// Grants of the key since the start.
    public var grants: UInt64
    /// Why the last grant failed; one safe sentence.
    public var lastFailure: String?
    /// Requests that wait for the token now.
    public var waiting: Int
    /// The scopes that were granted, where they are not those that were asked for.
    public var granted: String?
    /// End users with a token of this key in memory; nil where the token is everybody's.
    public var subjects: Int?
    /// Nanoseconds until the keeper tries again by itself, or may be asked to, after a failure; nil where nothing is waited for.
    public var retryIn: UInt64?
    /// Since `lastFailure`, in nanoseconds.
    public var lastFailureAgo: UInt64?
}

/// A configured route.
public struct RouteStatus: Sendable {
    /// The name in the configuration.
    public var name: String
    /// The identity's name; nil where the route adds no credential.
    public var identity: String?
    /// Where requests go.
    public var upstream: String
}
