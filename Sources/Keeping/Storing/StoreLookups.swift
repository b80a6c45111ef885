internal import TokenStore

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

extension StoreLookups {
    mutating func note(_ result: Result<StoredRow?, StoreFault>) {
        switch result {
        case .success(nil): missing += 1
        case .success: found += 1
        case .failure: failed += 1
        }
    }
}
