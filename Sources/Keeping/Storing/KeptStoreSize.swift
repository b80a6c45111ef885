internal import TokenStore

/// The size of the store between two measurements.
struct KeptStoreSize {
    var measured: StoreSize?
    var isMeasuring = false
    /// Not before it is measured again. Nanoseconds.
    var nextAt: UInt64 = 0
}
