internal import Synchronization

/// The index of one response head: offsets into the received bytes and what follows from them.
///
/// Used like `RequestHead`. What an upstream sends is repaired where RFC 9112 §5 and §6.3 let a recipient do so: folds
/// become a blank and blanks before a colon go when the head is written, equal lengths count as one, and
/// `Transfer-Encoding` wins over `Content-Length` with the connection closed after it. Bare CR, bare LF and NUL are
/// faults; any fault is 502 for the caller.
public struct ResponseHead: ~Copyable, Sendable {
    /// 100–999.
    public private(set) var status = 0
    /// May be empty.
    public private(set) var reason = ByteRange.empty
    /// 0 or 1; a higher minor version counts as 1.
    private(set) var minorVersion: UInt8 = 1
    /// The value of `Content-Length`, also where it delimits nothing (HEAD, 304). Nil where `Transfer-Encoding` is.
    public private(set) var declaredLength: UInt64?
    /// The upstream lets the connection be used again. A body delimited by its end rules that out all the same.
    public private(set) var keepAlive = true
    /// Bytes of the head with its empty line; 0 until `parse` returned it.
    public private(set) var length = 0

    private(set) var section: FieldSection
    private var chunked = false
    private var hasStatusLine = false
    /// Makes the compiler hand it by address. It would copy what it may, some hundred octets, for each call that only reads.
    private let stays = Atomic<Bool>(false)
    private var fault: HeadFault?

    /// - Parameter maxFields: field lines that fit; at least one.
    public init(maxFields: Int) {
        section = FieldSection(capacity: max(maxFields, 1))
    }
}

// MARK: - Parsing

extension ResponseHead {
    /// Makes the head ready for the next message; its memory stays.
    public mutating func reset() {
        section.reset()
        status = 0
        reason = .empty
        minorVersion = 1
        declaredLength = nil
        keepAlive = true
        length = 0
        chunked = false
        hasStatusLine = false
        fault = nil
    }

    /// Reads on where the last call stopped.
    ///
    /// - Parameter bytes: all bytes since the start of the message; those given before must be the same.
    /// - Returns: the length of the head, or nil when more bytes are needed.
    public mutating func parse(_ bytes: Span<UInt8>, limits: HeadLimits) throws(HeadFault) -> Int? {
        if let fault { throw fault }
        if length > 0 { return length }
        do {
            guard try readStatusLine(bytes, limits) else { return nil }
            guard try section.index(bytes, limits: limits, tolerance: .repairing) else { return nil }
            try section.applyConnection(bytes, limits: limits)
            try settleFraming(bytes)
        } catch {
            fault = error
            throw error
        }
        length = section.position
        return length
    }

    /// `parse` of a text that was put together together with an index: the same result, the same faults.
    ///
    /// - Parameter index: of the head that `bytes` begin with, or of none; then the text is parsed.
    public mutating func parse(
        _ bytes: Span<UInt8>, index: borrowing HeadIndex, limits: HeadLimits
    ) throws(HeadFault) -> Int? {
        guard fault == nil, length == 0, section.take(index, .response, of: bytes, limits) else {
            return try parse(bytes, limits: limits)
        }
        hasStatusLine = true
        do {
            minorVersion = try readVersion(ByteRange(0..<8), bytes)
            status = index.status
            reason = ByteRange(13..<13 + index.reasonCount)
            try section.applyConnection(bytes, limits: limits)
            try settleFraming(bytes)
        } catch {
            fault = error
            throw error
        }
        length = section.position
        return length
    }

    private mutating func readStatusLine(_ bytes: Span<UInt8>, _ limits: HeadLimits) throws(HeadFault) -> Bool {
        guard !hasStatusLine else { return true }
        guard let line = try section.nextLine(bytes, limit: limits.headSize) else {
            if bytes.count >= limits.headSize { throw .headTooLarge }
            return false
        }
        guard !line.isEmpty else { throw .emptyLineBeforeHead }
        let start = Int(line.start)
        guard line.count >= 12, bytes[start + 8] == 0x20 else { throw .statusLineMalformed }
        minorVersion = try readVersion(ByteRange(start..<start + 8), bytes)
        guard let code = bytes.decimal(at: ByteRange(start + 9..<start + 12)), code >= 100 else {
            throw .statusLineMalformed
        }
        status = Int(code)
        // The blank before an empty reason is required and often left out.
        if line.count > 12 {
            guard bytes[start + 12] == 0x20 else { throw .statusLineMalformed }
            reason = ByteRange(start + 13..<Int(line.end))
        } else {
            reason = ByteRange(start + 12..<start + 12)
        }
        hasStatusLine = true
        return true
    }

    private mutating func settleFraming(_ bytes: Span<UInt8>) throws(HeadFault) {
        chunked = try section.isChunked(bytes)
        let declared = try section.declaredLength(bytes, tolerance: .repairing)
        declaredLength = chunked ? nil : declared
        keepAlive = !section.connection.close && (minorVersion > 0 || section.connection.keepAlive)
        // Two lengths, or a coding that the version does not have, make where the next response starts doubtful.
        if chunked, declared != nil || minorVersion == 0 { keepAlive = false }
        // A body announced where none can be: whether it was sent is not known.
        if status < 200 || status == 204, chunked || (declared ?? 0) > 0 { keepAlive = false }
    }
}

// MARK: - Framing

extension ResponseHead {
    /// How the body is delimited (RFC 9112 §6.3).
    ///
    /// - Parameters:
    ///   - forMethodHEAD: the request was a HEAD.
    ///   - connect: the request was a CONNECT; after its 2xx the connection is a tunnel and `.none` is returned.
    public func framing(forMethodHEAD: Bool, connect: Bool) -> BodyFraming {
        if forMethodHEAD || status < 200 || status == 204 || status == 304 { return .none }
        if connect, status < 300 { return .none }
        if chunked { return .chunked }
        if let declaredLength { return .length(declaredLength) }
        return .untilClose
    }

    /// How to write this response for the caller.
    ///
    /// A body without announced end is chunked for HTTP/1.1 callers, who can then tell a whole body from a cut one.
    public func outgoingFraming(forMethodHEAD: Bool, connect: Bool, callerMinorVersion: UInt8) -> BodyFraming {
        switch framing(forMethodHEAD: forMethodHEAD, connect: connect) {
        case .none:
            // HEAD and 304 announce a length that no body follows.
            if forMethodHEAD || status == 304, status >= 200, status != 204, let declaredLength {
                return .length(declaredLength)
            }
            return .none
        case .length(let length): return .length(length)
        case .chunked, .untilClose: return callerMinorVersion > 0 ? .chunked : .untilClose
        }
    }
}

// MARK: - Fields

extension ResponseHead {
    /// Field lines, those of the same name counted singly.
    public var fieldCount: Int { section.table.count }

    /// - Precondition: `index` is in `0..<fieldCount`.
    public subscript(index: Int) -> Field { section.table[index] }

    /// Whether a line of this name was received.
    public func contains(_ known: KnownField) -> Bool { section.contains(known) }

    /// Whether a field is there whose addresses may be the upstream's own: `Location`, `Content-Location` or `Set-Cookie`.
    public var namesAddresses: Bool {
        section.containsAny(KnownField.location.bit | KnownField.contentLocation.bit | KnownField.setCookie.bit)
    }

    /// Leaves a field out of what is written of this head.
    /// - Precondition: `index` is in `0..<fieldCount`.
    public mutating func withhold(_ index: Int) { section.table[index].marks.insert(.nominated) }

    /// Makes one line of a folded value where it lies, as `writeResponse` would write it. What is left over becomes blanks.
    ///
    /// - Parameter bytes: those that the head was parsed from.
    /// - Precondition: `index` is in `0..<fieldCount`.
    public mutating func unfold(_ index: Int, in bytes: UnsafeMutableRawBufferPointer) {
        guard section.table[index].marks.contains(.folded) else { return }
        let value = section.table[index].value
        let text = UnsafeMutableRawBufferPointer(rebasing: bytes[value.indices])
        var written = 0
        var place = 0
        while place < text.count {
            guard isLineBreak(text[place]) else {
                text[written] = text[place]
                written &+= 1
                place &+= 1
                continue
            }
            while written > 0, isBlank(text[written &- 1]) { written &-= 1 }
            while place < text.count, isBlank(text[place]) || isLineBreak(text[place]) { place &+= 1 }
            text[written] = 0x20
            written &+= 1
        }
        for rest in written..<text.count { text[rest] = 0x20 }
        section.table[index].value = ByteRange(Int(value.start)..<Int(value.start) &+ written)
    }

    /// The value of the first field of this name.
    public func first(_ known: KnownField) -> ByteRange? { section.first(known) }
}
