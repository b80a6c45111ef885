internal import TokenStore

/// The size of the store between two measurements. Counting takes at most a hundredth of the store's time.
struct KeptStoreSize {
    private(set) var measured: StoreSize?
    private var isMeasuring = false
    /// Not before it is measured again. Nanoseconds.
    private var nextAt: UInt64 = 0

    private static let pause: UInt64 = 1_000_000_000

    /// - Returns: whether it is to be measured now; `measured` follows.
    mutating func isDue(at now: UInt64) -> Bool {
        guard !isMeasuring, now >= nextAt else { return false }
        isMeasuring = true
        return true
    }

    /// - Parameter size: nil where it could not be found; the one before counts on.
    mutating func ended(_ size: StoreSize?, since began: UInt64, at now: UInt64) {
        isMeasuring = false
        nextAt = now + max(Self.pause, 100 * (now - began))
        measured = size ?? measured
    }
}
