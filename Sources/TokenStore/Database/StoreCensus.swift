/// Counts of the rows found in the file when it was opened.
public struct StoreCensus: Sendable, Equatable {
    /// Rows of the kinds that are read at opening.
    public var restored = 0
    /// Rows past their expiry: not restored, and deleted.
    public var expired = 0
    /// Rows that could not be opened, by kind: not restored, and deleted. A kind of which something is missing may need care.
    public var damaged: [UInt8: Int] = [:]
    /// The file could be read by others than its owner; it no longer can.
    public var modeTightened = false

    /// A census of an empty file.
    public init() {}

    /// Damaged rows of all kinds.
    public var damagedCount: Int { damaged.values.reduce(0, +) }
}
