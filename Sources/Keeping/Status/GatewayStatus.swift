public import DataPath
internal import Fleet

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
    /// How long certificates and authorities of files are good. Each use, file and subject stands there once.
    public var certificateValidities: [CertificateValidityStatus] = []
    /// The upstreams whose addresses are checked, and those to which no connection can be made now.
    public var upstreams: [UpstreamHealthStatus] = []
    /// Which configuration runs.
    public var configuration = ConfigurationStatus()
    /// Tokens of end users.
    public var subjects = SubjectsStatus()
    /// Nil without `store.shared`.
    public var shared: SharedStatus?
    /// Nil without `audit`.
    public var audit: AuditStatus?
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

extension SubjectsStatus {
    init(_ book: SubjectBook) {
        self.init(inMemory: book.count, limit: book.limits.subjects, refused: book.refused, evicted: book.evicted)
    }
}

/// The state of the audit log.
public struct AuditStatus: Codable, Sendable, Equatable {
    /// Records on disk, in all files of the chain.
    public var records: UInt64
    /// The code of the last of them, in hexadecimal digits: with `records` the head that `audit verify --head` takes.
    public var hash: String
    /// Records that found no place.
    public var dropped: UInt64
    /// Whether the disk took the last group.
    public var writing: Bool

    /// Memberwise.
    package init(records: UInt64, hash: String, dropped: UInt64, writing: Bool) {
        self.records = records
        self.hash = hash
        self.dropped = dropped
        self.writing = writing
    }
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
    public var server: String
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
}

extension SharedStatus {
    /// Nil without `store.shared`.
    /// - Parameter now: nanoseconds of the keeper's clock.
    package init?(_ fleet: KeptFleet, at now: UInt64) {
        guard fleet.tier != nil else { return nil }
        self.init(
            state: .serving, detail: nil, server: fleet.address, format: fleet.format.rawValue,
            isSealed: fleet.format == .new)
        switch fleet.server.state(at: now) {
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

/// A configured route.
public struct RouteStatus: Sendable {
    /// The name in the configuration.
    public var name: String
    /// The identity's name; nil where the route adds no credential.
    public var identity: String?
    /// Where requests go.
    public var upstream: String
}
