/// Where the parts of a head stand that was put together from its parts: what a parse of the text would find, without looking for it again.
///
/// Only for the plainest of heads. Whatever a parser would have to judge octet by octet (a line break inside a value, a blank at its end, a
/// name that is none) leaves no index, and the text is parsed as any other. What an index does not tell (framing, the host, the form of
/// the target, every limit) is decided where it is for a text that was parsed, by the same code.
///
/// Memory is taken once, for the first head.
public struct HeadIndex: ~Copyable, @unchecked Sendable {
    // Sendable because it alone owns this memory and cannot be copied.
    private var lines: UnsafeMutablePointer<Line>?
    private(set) var count = 0
    /// Known fields that are present.
    private(set) var seen: UInt64 = 0
    private(set) var form = Form.none
    /// Octets of the method; requests only.
    private(set) var methodCount = 0
    private(set) var targetCount = 0
    /// The status code; responses only.
    private(set) var status = 0
    private(set) var reasonCount = 0
    /// Bytes of the head with its empty line; 0 until `end`.
    private(set) var length = 0
    /// Bytes so far.
    private var written = 0

    /// Field lines; a head with more has no index.
    static let capacity = 32

    enum Form: UInt8 { case none, request, response }

    /// `name: value` with its CRLF, behind the line before it.
    struct Line {
        var nameCount: UInt16
        var known: KnownField
        var resembles: KnownField
        var valueCount: UInt32
    }

    /// An index of no head; its memory is taken with the first one.
    public init() {}

    deinit { lines?.deallocate() }
}

// MARK: - Writing

extension HeadIndex {
    /// There is none.
    public mutating func clear() {
        form = .none
        count = 0
        seen = 0
        length = 0
    }

    /// The text begins with `METHOD TARGET HTTP/1.1`.
    /// - Returns: false for a line that has to be parsed.
    @discardableResult
    public mutating func begin(method: Span<UInt8>, target: Span<UInt8>) -> Bool {
        clear()
        guard isToken(method), isPlainTarget(target), method.count + target.count < Self.longest else { return false }
        methodCount = method.count
        targetCount = target.count
        written = method.count + target.count + 12
        start(.request)
        return true
    }

    /// The text begins with `HTTP/1.1 STATUS REASON`.
    public mutating func begin(status: Int, reason: Span<UInt8>) {
        clear()
        guard (100...999).contains(status), reason.count < Self.longest,
            firstLineBreak(in: reason, from: 0, limit: reason.count) == reason.count
        else { return }
        self.status = status
        reasonCount = reason.count
        written = 15 + reason.count
        start(.response)
    }

    /// The text goes on with `name: value`.
    /// - Parameter known: what `KnownField.named` says of the name.
    public mutating func add(name: Span<UInt8>, known: KnownField, value: Span<UInt8>) {
        guard form != .none, let lines, count < Self.capacity, name.count <= Int(UInt16.max),
            value.count < Self.longest,
            isPlainValue(value), let resembles = known == .other ? Self.likeness(name) : known
        else { return clear() }
        lines[count] = Line(
            nameCount: UInt16(truncatingIfNeeded: name.count), known: known, resembles: resembles,
            valueCount: UInt32(truncatingIfNeeded: value.count))
        count &+= 1
        seen |= known.bit
        written &+= name.count &+ value.count &+ 4
    }

    /// The known name that an unknown one resembles; nil where it resembles none. A known name is made of token characters.
    private static func likeness(_ name: Span<UInt8>) -> KnownField? {
        guard isToken(name) else { return nil }
        let whole = ByteRange(unchecked: 0, name.count)
        return name.contains(0x5F, at: whole) ? KnownField.lookup(whole, in: name, lookAlike: true) : .other
    }

    /// The empty line follows.
    public mutating func end() {
        guard form != .none, written < Self.longest else { return clear() }
        length = written + 2
    }

    /// Far more than any head; sums of a head's parts cannot overflow, as its lines are few.
    private static var longest: Int { 1 << 24 }

    private mutating func start(_ form: Form) {
        if lines == nil { lines = .allocate(capacity: Self.capacity) }
        self.form = form
    }
}

// MARK: - Reading

extension HeadIndex {
    /// - Precondition: `index` is in `0..<count`.
    subscript(index: Int) -> Line {
        guard let lines, index >= 0, index < count else { preconditionFailure("no such line") }
        return lines[index]
    }

    /// There is one.
    public var isKnown: Bool { length > 0 }

    /// Bytes of the first line with its CRLF.
    var firstLineCount: Int { form == .request ? methodCount &+ targetCount &+ 12 : 15 &+ reasonCount }
}

extension FieldSection {
    /// Takes the lines of a head whose index is known, and stands behind it then as if it had read them.
    ///
    /// Where lines must begin and end the text is looked at all the same: the index of another text is not believed.
    ///
    /// - Returns: false when there is no index of this text, or it is beyond a limit; then nothing has changed.
    mutating func take(
        _ index: borrowing HeadIndex, _ form: HeadIndex.Form, of bytes: Span<UInt8>, _ limits: HeadLimits
    ) -> Bool {
        let length = index.length
        guard index.form == form, position == 0, length > 0, length <= bytes.count, length <= limits.headSize,
            index.count <= limits.fields, index.count <= table.capacity, table.count == 0
        else { return false }
        var start = index.firstLineCount
        guard bytes.endsLine(at: start &- 2), bytes.endsLine(at: length &- 2) else { return false }
        for number in 0..<index.count {
            let line = index[number]
            let colon = start &+ Int(line.nameCount)
            let value = colon &+ 2
            let end = value &+ Int(line.valueCount)
            guard bytes.hasLine(colon: colon, end: end) else {
                table.removeAll()
                return false
            }
            table.add(
                Field(
                    name: ByteRange(unchecked: start, colon), value: ByteRange(unchecked: value, end),
                    line: ByteRange(unchecked: start, end &+ 2), known: line.known, resembles: line.resembles, marks: []
                ))
            start = end &+ 2
        }
        seen = index.seen
        position = length
        scanned = length
        return true
    }
}
