internal import Synchronization

/// A head as HTTP/2 wants it: its fields one by one and not a line of text.
///
/// Received octets that go out unchanged stay where they are, as an offset; the rest is put together in memory that someone else owns.
/// So the two of them, the received head's bytes and that memory, have to be there until the fields were read.
/// Used again for every head of a loop.
public struct OutgoingHead: ~Copyable {
    /// The request method; requests only.
    public private(set) var method = OutgoingOctets.empty
    /// The request target as it goes out; requests only.
    public private(set) var target = OutgoingOctets.empty
    /// The value of `Host` or `:authority`; requests only.
    public private(set) var host = OutgoingOctets.empty
    /// The status code; 0 for a request.
    public private(set) var status = 0
    /// Octets that it would take as a text, more or less: what HTTP/1.1 says of the connection is not in it, nor a reason.
    public private(set) var size = 0
    private var storage: UnsafeMutablePointer<OutgoingField>
    /// Grows with the largest head; heads are bounded.
    private var capacity = 64
    private var count = 0
    private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    var output = OutputCursor(UnsafeMutableRawBufferPointer(start: nil, count: 0))
    /// Where in `output` the value stands that was begun, and the name it belongs to.
    private var mark = 0
    private var name = OutgoingOctets.empty
    private var known = KnownField.other
    /// Makes the compiler hand it by address. It would copy what it may, some hundred octets, for each call that only reads.
    private let stays = Atomic<Bool>(false)

    /// An empty head; its memory is taken once and kept.
    public init() {
        storage = .allocate(capacity: capacity)
    }

    deinit { storage.deallocate() }
}

/// Octets of a received head, or of the memory beside it.
public struct OutgoingOctets: Sendable {
    /// Offsets in the received head, or in `OutgoingHead.own`.
    public var range: ByteRange
    /// They stand in `OutgoingHead.own`.
    public var isOwn: Bool

    static var empty: OutgoingOctets { OutgoingOctets(range: .empty, isOwn: true) }
}

/// A field line of an outgoing head.
public struct OutgoingField: Sendable {
    /// Lower case; empty where `known` tells it.
    public var name: OutgoingOctets
    /// Without blanks at its edges.
    public var value: OutgoingOctets
    /// `other` where the name stands in `name`.
    public var known: KnownField
}

// MARK: -

extension OutgoingHead {
    /// Empties it for the next head.
    /// - Parameter memory: outlives its use.
    public mutating func begin(in memory: UnsafeMutableRawBufferPointer) {
        self.memory = memory
        output = OutputCursor(memory)
        count = 0
        size = 0
        status = 0
    }

    /// Something did not fit; the head must not be sent.
    public var overflowed: Bool { output.overflowed }

    /// The octets that were not received.
    public var own: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[..<output.count]) }

    /// The fields behind the pseudo-fields, in order.
    public func withFields<Result>(_ body: (UnsafeBufferPointer<OutgoingField>) -> Result) -> Result {
        body(UnsafeBufferPointer(start: storage, count: count))
    }

    /// Adds ready lines to a head.
    public mutating func addFields(_ lines: Span<UInt8>) { put(lines: lines) }
}

// MARK: - Fields

extension OutgoingHead {
    /// RFC 9113 §8.2.2. The writers leave out the received ones; here also those that a configuration could name.
    @inline(__always)
    private static var ofOneConnection: UInt64 {
        KnownField.te.bit | KnownField.upgrade.bit | KnownField.connection.bit | KnownField.keepAlive.bit
            | KnownField.proxyConnection.bit | KnownField.transferEncoding.bit
    }

    @inline(__always)
    private mutating func append(_ name: OutgoingOctets, _ value: OutgoingOctets, _ known: KnownField) {
        if Self.ofOneConnection & known.bit != 0 { return }
        if count == capacity { grow() }
        (storage + count).initialize(to: OutgoingField(name: name, value: value, known: known))
        count &+= 1
        let length = known == .other ? Int(name.range.count) : known.name.utf8CodeUnitCount
        size &+= length &+ Int(value.range.count) &+ 4
    }

    private mutating func grow() {
        let larger = UnsafeMutablePointer<OutgoingField>.allocate(capacity: 2 * capacity)
        larger.moveInitialize(from: storage, count: count)
        storage.deallocate()
        storage = larger
        capacity *= 2
    }

    /// A received name in lower case: where it stands, or a copy where a capital is in it.
    @inline(__always)
    private mutating func lowered(_ name: ByteRange, _ bytes: Span<UInt8>) -> OutgoingOctets {
        if hasCapital(name, bytes) { return loweredCopy(name, bytes) }
        return OutgoingOctets(range: name, isOwn: false)
    }

    private mutating func loweredCopy(_ name: ByteRange, _ bytes: Span<UInt8>) -> OutgoingOctets {
        let start = output.count
        for index in name.indices { output.append(byte: lowercased(bytes[index])) }
        return OutgoingOctets(range: ByteRange(start..<output.count), isOwn: true)
    }

    /// The octets appended since `start`, without blanks at its edges, which are malformed in HTTP/2 (RFC 9113 §8.2.1).
    private func trimmed(since start: Int) -> OutgoingOctets {
        var first = start
        var end = output.count
        while first < end, isBlank(memory[first]) { first &+= 1 }
        while end > first, isBlank(memory[end &- 1]) { end &-= 1 }
        return OutgoingOctets(range: ByteRange(first..<end), isOwn: true)
    }
}

// MARK: -

extension OutgoingHead: HeadSink {
    @inline(__always)
    static var hasConnectionFields: Bool { false }

    @inline(__always)
    mutating func put(method: ByteRange, of bytes: Span<UInt8>, asHEAD: Bool) {
        if asHEAD {
            let start = output.count
            output.append("HEAD")
            self.method = OutgoingOctets(range: ByteRange(start..<output.count), isOwn: true)
        } else {
            self.method = OutgoingOctets(range: method, isOwn: false)
        }
    }

    @inline(__always)
    mutating func put(target: ByteRange, of bytes: Span<UInt8>) {
        self.target = OutgoingOctets(range: target, isOwn: false)
        size &+= Int(target.count)
    }

    @inline(__always)
    mutating func beginTarget() { mark = output.count }

    @inline(__always)
    mutating func endTarget() {
        target = OutgoingOctets(range: ByteRange(mark..<output.count), isOwn: true)
        size &+= output.count &- mark
    }

    @inline(__always)
    mutating func put(host: ByteRange, of bytes: Span<UInt8>) {
        self.host = OutgoingOctets(range: host, isOwn: false)
        size &+= Int(host.count) &+ 24
    }

    mutating func put(host: Span<UInt8>) {
        let start = output.count
        output.append(host)
        self.host = trimmed(since: start)
        size &+= host.count &+ 24
    }

    @inline(__always)
    mutating func put(status: Int, reason: ByteRange, of bytes: Span<UInt8>) {
        self.status = status
        size = 16
    }

    @inline(__always)
    mutating func keep(_ field: Field, of bytes: Span<UInt8>) {
        let name = field.known == .other ? lowered(field.name, bytes) : .empty
        append(name, OutgoingOctets(range: field.value, isOwn: false), field.known)
    }

    @inline(__always)
    mutating func flush(_ bytes: Span<UInt8>) {}

    @inline(__always)
    mutating func begin(_ text: StaticString, _ known: KnownField) {
        mark = output.count
        self.known = known
        name = .empty
        let skipped = known.name.utf8CodeUnitCount + 2
        if text.utf8CodeUnitCount > skipped { output.append(text, from: skipped) }
    }

    mutating func begin(name: Span<UInt8>) {
        let whole = ByteRange(0..<name.count)
        known = KnownField.lookup(whole, in: name, lookAlike: false)
        self.name = known == .other ? loweredCopy(whole, name) : .empty
        mark = output.count
    }

    mutating func begin(_ field: Field, of bytes: Span<UInt8>) {
        known = field.known
        name = known == .other ? lowered(field.name, bytes) : .empty
        mark = output.count
    }

    @inline(__always)
    mutating func end() { append(name, trimmed(since: mark), known) }

    mutating func put(line: StaticString, _ known: KnownField) {
        begin(line, known)
        output.rewind(to: max(mark, output.count - 2))
        end()
    }

    mutating func put(lines: Span<UInt8>) {
        var position = 0
        while position < lines.count {
            let end = firstCarriageReturn(in: lines, from: position)
            let colon = firstColon(in: lines, from: position, limit: end)
            if colon < end { put(ByteRange(position..<colon), lines.value(from: colon &+ 1, to: end), of: lines) }
            position = end &+ 2
        }
    }

    private mutating func put(_ name: ByteRange, _ value: ByteRange, of lines: Span<UInt8>) {
        known = KnownField.lookup(name, in: lines, lookAlike: false)
        self.name = known == .other ? loweredCopy(name, lines) : .empty
        let start = output.count
        output.append(lines, value)
        let copied = OutgoingOctets(range: ByteRange(start..<output.count), isOwn: true)
        // Which field is the authority: as in HTTP/1.1's form the last one that says it.
        if known == .host, status == 0 { host = copied } else { append(self.name, copied, known) }
    }

    @inline(__always)
    mutating func finish() {}
}
