internal import HotCache
internal import TokenStore

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

/// The store's size as it was measured last; a scrape that comes soon after another finds the same figures.
public struct StoreSizeStatus: Sendable {
    /// Bytes of the database, without its write-ahead log.
    public var databaseBytes: UInt64
    /// Bytes of the write-ahead log.
    public var logBytes: UInt64
    /// By what the rows hold, in the order of their kinds.
    public var rows: [(kind: String, count: UInt64)]
}

/// Failures of an identity with no success between them. Times in nanoseconds.
public struct TroubleStatus: Sendable {
    /// The reason of the last failure. Safe text.
    public var reason: String
    /// Failures in a row.
    public var failures: UInt64
    /// Since the first failure.
    public var ago: UInt64
    /// From the first failure to the next success; nil while it lasts.
    public var lasted: UInt64?
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

extension StoreSizeStatus {
    init(_ size: StoreSize) {
        self.init(
            databaseBytes: size.databaseBytes, logBytes: size.logBytes,
            rows: RowKind.names.map { ($0.name, size.rows[$0.kind] ?? 0) })
    }
}
