import Glibc

/// A slot of the hot cache. The version makes an old handle of a slot that was given to another key a miss, never
/// another key's token.
@frozen
public struct Slot: Hashable, Sendable {
    /// The slot's number, from 0, below the capacity.
    public let index: UInt32
    /// How often the slot was given to another key. A reader compares it with the record's.
    public let version: UInt32

    @usableFromInline
    init(index: UInt32, version: UInt32) {
        self.index = index
        self.version = version
    }

    /// A handle of no slot: always a miss.
    public static let nowhere = Slot(index: .max, version: .max)
}

/// The times and the generation of a published token. Times are nanoseconds of `CLOCK_BOOTTIME`.
@frozen
public struct RecordFields: Equatable, Sendable {
    /// From here on a hit asks the keeper, once per loop and generation, for a new token.
    public var refreshAt: UInt64
    /// From here on the record is a miss.
    public var servedUntil: UInt64
    /// The end that the issuer gave. A hit at or after it is served only under `serve_expired_for`, and marked.
    public var expiresAt: UInt64
    /// Process-wide, never reused.
    public var generation: UInt64

    /// Memberwise; the order of the times is not checked.
    public init(refreshAt: UInt64, servedUntil: UInt64, expiresAt: UInt64, generation: UInt64) {
        self.refreshAt = refreshAt
        self.servedUntil = servedUntil
        self.expiresAt = expiresAt
        self.generation = generation
    }
}

/// The head of an immutable heap record; the bytes to splice follow it.
@usableFromInline
struct TokenRecord {
    @usableFromInline let fields: RecordFields
    @usableFromInline let version: UInt32
    @usableFromInline let length: UInt32

    /// Bytes of the whole record.
    var byteCount: Int { Self.byteCount(of: Int(length)) }

    static func byteCount(of length: Int) -> Int { MemoryLayout<TokenRecord>.stride + length }

    /// A record in memory of `malloc`, or nil when there is none to be had.
    static func make(_ fields: RecordFields, version: UInt32, bytes: UnsafeRawBufferPointer) -> UnsafeMutableRawPointer?
    {
        guard let memory = malloc(byteCount(of: bytes.count)) else { return nil }
        memory.bindMemory(to: TokenRecord.self, capacity: 1)
            .initialize(to: TokenRecord(fields: fields, version: version, length: UInt32(bytes.count)))
        if let source = bytes.baseAddress {
            (memory + MemoryLayout<TokenRecord>.stride).copyMemory(from: source, byteCount: bytes.count)
        }
        return memory
    }
}

/// A reader's view of a record. It owns nothing: it is valid until the reader's next `enterTick()` or `goOffline()` and
/// must not leave the loop's thread.
@frozen
public struct RecordView {
    @usableFromInline let record: UnsafePointer<TokenRecord>

    @inlinable
    init(_ memory: UnsafeRawPointer) { record = memory.assumingMemoryBound(to: TokenRecord.self) }

    /// See `RecordFields.refreshAt`.
    @inlinable public var refreshAt: UInt64 { record.pointee.fields.refreshAt }
    /// See `RecordFields.servedUntil`.
    @inlinable public var servedUntil: UInt64 { record.pointee.fields.servedUntil }
    /// See `RecordFields.generation`.
    @inlinable public var generation: UInt64 { record.pointee.fields.generation }

    /// Ready to splice into a head.
    @inlinable
    public var bytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: UnsafeRawPointer(record + 1), count: Int(record.pointee.length))
    }
}

@available(*, unavailable)
extension RecordView: Sendable {}
