/// A thing to keep. Its key and value are sealed in the file; what stands there in the clear is the kind, the expiry, and a
/// keyed hash of kind and key.
public struct StoredRow: Sendable, Equatable, CustomStringConvertible {
    /// The kind of the row, in the caller's numbering. Rows are restored in ascending kind, so parents get lower numbers.
    public var kind: UInt8
    /// The canonical key; with the kind it names the row. At most 16 KiB.
    public var key: [UInt8]
    /// At most 256 KiB.
    public var value: [UInt8]
    /// When the row stops being of use, in milliseconds of Unix time; nil: never.
    public var expiresWall: Int64?

    /// Bytes of the longest key that is stored.
    public static let maximumKeySize = 16 << 10
    /// Bytes of the longest value that is stored.
    public static let maximumValueSize = 256 << 10

    /// Memberwise; a key or value that is too long is refused by the store.
    public init(kind: UInt8, key: [UInt8], value: [UInt8], expiresWall: Int64? = nil) {
        self.kind = kind
        self.key = key
        self.value = value
        self.expiresWall = expiresWall
    }

    /// Neither key nor value: only the kind and the value's size.
    public var description: String { "StoredRow(kind \(kind), \(value.count) bytes)" }

    var fits: Bool { key.count <= Self.maximumKeySize && value.count <= Self.maximumValueSize }
}

/// A step of a transaction.
public enum StoreChange: Sendable {
    /// Adds the row, or replaces the one of the same kind and key.
    case put(StoredRow)
    case delete(kind: UInt8, key: [UInt8])
    case deleteAll(kind: UInt8)
    /// Deletes rows whose expiry lies before this time, in milliseconds of Unix time.
    case deleteExpired(before: Int64)
}

extension StoreChange {
    /// Bytes of the row that the change brings.
    var bytes: Int {
        if case .put(let row) = self { row.key.count + row.value.count } else { 0 }
    }

    /// Nothing is added by it.
    var isDeletion: Bool {
        if case .put = self { false } else { true }
    }

    /// Whether it is for the row of this kind and key, whatever that holds.
    func names(kind: UInt8, key: [UInt8]) -> Bool {
        switch self {
        case .put(let row): row.kind == kind && row.key == key
        case .delete(let other, let name): other == kind && name == key
        case .deleteAll(let other): other == kind
        case .deleteExpired: false
        }
    }

    /// Whether this row goes with it.
    func deletes(_ row: StoredRow) -> Bool {
        switch self {
        case .put: false
        case .delete, .deleteAll: names(kind: row.kind, key: row.key)
        case .deleteExpired(let time): row.expiresWall.map { $0 < time } ?? false
        }
    }
}
