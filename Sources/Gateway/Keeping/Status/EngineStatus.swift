internal import HotCache
internal import Reactor
internal import TokenStore
public import Tokens

/// Where tokens are, and how their issuers are: what operators are told beyond each identity. Counts and sizes, never a name from a
/// request.
public struct HotCacheStatus: Sendable {
    /// Tokens that loops can reach.
    public var tokens = 0
    /// Bytes of these tokens' records.
    public var bytes = 0
    /// The most bytes of records.
    public var limit = 0
    /// Tokens that fell out for others; their rows stay in the store.
    public var evictions: UInt64 = 0

    /// An empty cache.
    public init() {}
}

/// Lookups of tokens that memory did not hold.
public struct StoreLookups: Sendable {
    /// Rows that were found.
    public var found: UInt64 = 0
    /// There was no row.
    public var missing: UInt64 = 0
    /// Lookups that the store could not answer.
    public var failed: UInt64 = 0

    /// No lookup yet.
    public init() {}
}

/// As it was measured last; a scrape that comes soon after another finds the same figures.
public struct StoreSizeStatus: Sendable {
    /// Of the database and of its write-ahead log.
    public var databaseBytes: UInt64
    /// Bytes of the write-ahead log.
    public var logBytes: UInt64
    /// By what the rows hold, in the order of their kinds.
    public var rows: [(kind: String, count: UInt64)]

    /// Memberwise.
    public init(databaseBytes: UInt64, logBytes: UInt64, rows: [(kind: String, count: UInt64)]) {
        self.databaseBytes = databaseBytes
        self.logBytes = logBytes
        self.rows = rows
    }
}

/// The circuit breaker of an issuer, or of an upstream that is probed for challenges.
public struct IssuerStatus: Sendable {
    /// Its origin, as URLs write it.
    public var issuer: String
    /// `open`: the issuer is not called now.
    public var breaker: Breaker.State
    /// Times that the breaker has opened.
    public var pauses: UInt64

    /// Memberwise.
    public init(issuer: String, breaker: Breaker.State, pauses: UInt64) {
        self.issuer = issuer
        self.breaker = breaker
        self.pauses = pauses
    }
}

/// Failures of an identity with no success between them. Times in nanoseconds.
public struct TroubleStatus: Sendable {
    /// Of the last failure. Safe text.
    public var reason: String
    /// Failures in a row.
    public var failures: UInt64
    /// Since the first failure.
    public var ago: UInt64
    /// From the first failure to the next success; nil while it lasts.
    public var lasted: UInt64?

    /// - Parameters:
    ///   - ago: nanoseconds.
    ///   - lasted: nanoseconds; nil while it lasts.
    public init(reason: String, failures: UInt64, ago: UInt64, lasted: UInt64?) {
        self.reason = reason
        self.failures = failures
        self.ago = ago
        self.lasted = lasted
    }
}

/// The size of the store between two measurements.
struct KeptStoreSize {
    var measured: StoreSize?
    var isMeasuring = false
    /// Not before it is measured again. Nanoseconds.
    var nextAt: UInt64 = 0
}

extension TroubleStatus {
    init(_ trouble: KeptIdentity.Trouble, at now: UInt64) {
        self.init(
            reason: trouble.reason, failures: trouble.failures, ago: now - min(now, trouble.began),
            lasted: trouble.overAt.map { $0 - min($0, trouble.began) })
    }
}

extension HotCacheStatus {
    init(_ cache: HotCache) {
        tokens = cache.count
        bytes = cache.liveBytes
        limit = cache.byteLimit
        evictions = cache.evictions
    }
}

extension StoreLookups {
    mutating func note(_ result: Result<StoredRow?, StoreFault>) {
        switch result {
        case .success(nil): missing += 1
        case .success: found += 1
        case .failure: failed += 1
        }
    }
}

extension Keeper {
    /// What was found last; asks anew for the next look. Counting walks an index, a tenth of a second for a million rows, and lookups wait
    /// for it: so it is done when somebody looks, and takes at most a hundredth of the store's time.
    func measuredStore() -> StoreSizeStatus? {
        guard let store, !health.isLocked else { return nil }
        if !health.size.isMeasuring, now >= health.size.nextAt {
            health.size.isMeasuring = true
            let began = now
            store.measure { result in
                // A lost letter ends the measuring for good, and costs two figures of a scrape.
                self.post { keeper in
                    keeper.health.size.isMeasuring = false
                    keeper.health.size.nextAt = keeper.now + max(Keeper.measuringPause, 100 * (keeper.now - began))
                    if case .success(let size) = result { keeper.health.size.measured = size }
                }
            }
        }
        return health.size.measured.map { size in
            StoreSizeStatus(
                databaseBytes: size.databaseBytes, logBytes: size.logBytes,
                rows: RowKind.names.map { ($0.name, size.rows[$0.kind] ?? 0) })
        }
    }

    private static var measuringPause: UInt64 { 1_000_000_000 }
}
