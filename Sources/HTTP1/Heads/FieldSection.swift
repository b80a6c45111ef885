/// The field lines of a head while it arrives: how far the bytes were read, and what was found.
struct FieldSection: ~Copyable, Sendable {
    var table: FieldTable
    /// Start of the first line that is not indexed yet.
    var position = 0
    /// No line break stands before this offset; a line that arrives in pieces is scanned once.
    var scanned = 0
    /// Known fields that are present.
    var seen: UInt64 = 0
    var connection = ConnectionOptions()

    init(capacity: Int) {
        table = FieldTable(capacity: capacity)
    }
}

/// The options of the `Connection` fields.
struct ConnectionOptions: Sendable {
    var close = false
    var keepAlive = false
    var upgrade = false
}

/// Requests are judged, responses are repaired where RFC 9112 lets a recipient repair.
enum HeadTolerance {
    case strict
    case repairing
}

// MARK: - Lines

extension FieldSection {
    mutating func reset() {
        table.removeAll()
        position = 0
        scanned = 0
        seen = 0
        connection = ConnectionOptions()
    }

    /// The next complete line without its CRLF, or nil when it ends past `limit` or past the bytes.
    mutating func nextLine(_ bytes: Span<UInt8>, limit: Int) throws(HeadFault) -> ByteRange? {
        let end = min(bytes.count, limit)
        guard scanned < end else { return nil }
        let found = firstLineBreak(in: bytes, from: scanned, limit: end)
        scanned = found
        guard found < end else { return nil }
        switch bytes[found] {
        case 0x0A: throw .bareLineFeed
        case 0: throw .nul
        default: break
        }
        guard found &+ 1 < end else { return nil }
        guard bytes[found &+ 1] == 0x0A else { throw .bareCarriageReturn }
        let line = ByteRange(position..<found)
        position = found &+ 2
        scanned = position
        return line
    }

    /// Indexes lines up to the empty one. True when the head is whole; its length is then `position`.
    mutating func index(
        _ bytes: Span<UInt8>, limits: HeadLimits, tolerance: HeadTolerance
    ) throws(HeadFault) -> Bool {
        while let line = try nextLine(bytes, limit: limits.headSize) {
            if line.isEmpty { return true }
            let first = bytes[Int(line.start)]
            if isBlank(first) {
                try fold(line, bytes, tolerance)
            } else {
                try append(line, bytes, limits, tolerance)
            }
        }
        if bytes.count >= limits.headSize { throw .headTooLarge }
        return false
    }

    private mutating func append(
        _ line: ByteRange, _ bytes: Span<UInt8>, _ limits: HeadLimits, _ tolerance: HeadTolerance
    ) throws(HeadFault) {
        let start = Int(line.start)
        let end = Int(line.end)
        let colon = firstColon(in: bytes, from: start, limit: end)
        // A name that is known is made of token characters; the others are looked at one by one.
        var name = ByteRange(unchecked: start, colon)
        var known = KnownField.lookup(name, in: bytes, lookAlike: false)
        var resembles = known
        var marks: FieldMarks = []
        if known == .other || colon == end {
            (name, marks) = try inspect(line, bytes, tolerance)
            known = KnownField.lookup(name, in: bytes, lookAlike: false)
            resembles = bytes.contains(0x5F, at: name) ? KnownField.lookup(name, in: bytes, lookAlike: true) : known
        }
        let field = Field(
            name: name, value: bytes.value(from: colon &+ 1, to: end), line: ByteRange(unchecked: start, end &+ 2),
            known: known,
            resembles: resembles, marks: marks)
        guard table.count < limits.fields, table.append(field) else { throw .tooManyFields }
        seen |= known.bit
    }

    /// The name of a field line, looked at octet by octet.
    private func inspect(
        _ line: ByteRange, _ bytes: Span<UInt8>, _ tolerance: HeadTolerance
    ) throws(HeadFault) -> (ByteRange, FieldMarks) {
        let start = Int(line.start)
        let end = Int(line.end)
        var cursor = start
        while cursor < end, OctetClass.token.contains(bytes[cursor]) { cursor &+= 1 }
        let name = ByteRange(start..<cursor)
        var marks: FieldMarks = []
        if cursor < end, isBlank(bytes[cursor]) {
            while cursor < end, isBlank(bytes[cursor]) { cursor &+= 1 }
            guard cursor < end, bytes[cursor] == 0x3A else {
                throw cursor < end ? .nameInvalid : .colonMissing
            }
            guard tolerance == .repairing else { throw .blankBeforeColon }
            marks.insert(.spacedColon)
        }
        guard cursor < end else { throw .colonMissing }
        guard bytes[cursor] == 0x3A, !name.isEmpty else { throw .nameInvalid }
        return (name, marks)
    }

    private mutating func fold(
        _ line: ByteRange, _ bytes: Span<UInt8>, _ tolerance: HeadTolerance
    ) throws(HeadFault) {
        guard table.count > 0 else { throw .blankBeforeFirstField }
        guard tolerance == .repairing else { throw .foldedLine }
        var field = table[table.count - 1]
        // The colon stands right before or among the blanks that follow the name, so the value may start anywhere
        // after it; an empty first line has its (empty) value there.
        field.value = bytes.trimmed(Int(field.value.start)..<Int(line.end))
        field.line = ByteRange(Int(field.line.start)..<Int(line.end) &+ 2)
        field.marks.insert(.folded)
        table[table.count - 1] = field
    }
}

// MARK: - Look-up

extension FieldSection {
    func contains(_ known: KnownField) -> Bool {
        seen & known.bit != 0
    }

    /// - Parameter bits: of several fields, which are looked for at once.
    @inline(__always)
    func containsAny(_ bits: UInt64) -> Bool { seen & bits != 0 }

    func first(_ known: KnownField) -> ByteRange? {
        guard contains(known) else { return nil }
        for index in 0..<table.count where table[index].known == known {
            return table[index].value
        }
        return nil
    }
}

// MARK: - Connection and framing fields

extension FieldSection {
    /// Reads the `Connection` fields and marks the fields that they name.
    mutating func applyConnection(_ bytes: Span<UInt8>, limits: HeadLimits) throws(HeadFault) {
        guard contains(.connection) else { return }
        var options = 0
        for index in 0..<table.count where table[index].known == .connection {
            var members = ListMembers(table[index].value)
            while let member = members.next(in: bytes) {
                if member.isEmpty { continue }
                options += 1
                guard options <= limits.connectionOptions else { throw .tooManyConnectionOptions }
                if bytes.spells("close", at: member) {
                    connection.close = true
                } else if bytes.spells("keep-alive", at: member) {
                    connection.keepAlive = true
                } else if bytes.spells("upgrade", at: member) {
                    connection.upgrade = true
                } else {
                    nominate(member, bytes)
                }
            }
        }
    }

    private mutating func nominate(_ name: ByteRange, _ bytes: Span<UInt8>) {
        let wanted = bytes.extracting(name.indices)
        for index in 0..<table.count where bytes.extracting(table[index].name.indices).isName(wanted) {
            table[index].marks.insert(.nominated)
        }
    }

    /// The one declared length; nil without `Content-Length`.
    ///
    /// - Parameter tolerance: a request has one `Content-Length` with one number; in a response equal ones are one.
    func declaredLength(_ bytes: Span<UInt8>, tolerance: HeadTolerance) throws(HeadFault) -> UInt64? {
        guard contains(.contentLength) else { return nil }
        var length: UInt64?
        for index in 0..<table.count where table[index].known == .contentLength {
            if length == nil, let value = bytes.decimal(at: table[index].value) {
                // The value is one number and nothing beside it, as nearly always.
                length = value
                continue
            }
            try refuseInnerFold(table[index], bytes)
            var members = ListMembers(table[index].value)
            var isFirst = true
            while let member = members.next(in: bytes) {
                guard let value = bytes.decimal(at: member) else { throw .contentLengthInvalid }
                if let length {
                    guard tolerance == .repairing else {
                        throw isFirst ? .contentLengthRepeated : .contentLengthInvalid
                    }
                    guard length == value else { throw .contentLengthConflict }
                }
                length = value
                isFirst = false
            }
        }
        return length
    }

    /// Whether the message is chunked. `chunked` is the only coding we undo and write anew, so it is the only one that
    /// passes; a fault says whether the list was malformed or merely names another coding before the last.
    func isChunked(_ bytes: Span<UInt8>) throws(HeadFault) -> Bool {
        guard contains(.transferEncoding) else { return false }
        var codings = 0
        var chunked = 0
        var lastIsChunked = false
        for index in 0..<table.count where table[index].known == .transferEncoding {
            try refuseInnerFold(table[index], bytes)
            var members = ListMembers(table[index].value)
            while let member = members.next(in: bytes) {
                // An empty member hides a coding from one parser and not from another.
                guard !member.isEmpty else { throw .transferCodingMalformed }
                codings += 1
                lastIsChunked = bytes.spells("chunked", at: member)
                if lastIsChunked { chunked += 1 }
            }
        }
        guard lastIsChunked, chunked == 1 else { throw .transferCodingMalformed }
        guard codings == 1 else { throw .transferCodingUnknown }
        return true
    }

    /// A break inside a framing value is read as one value by some and as two fields by others.
    private func refuseInnerFold(_ field: Field, _ bytes: Span<UInt8>) throws(HeadFault) {
        guard field.marks.contains(.folded) else { return }
        for index in field.value.indices where isLineBreak(bytes[index]) {
            throw .foldedFramingField
        }
    }
}
