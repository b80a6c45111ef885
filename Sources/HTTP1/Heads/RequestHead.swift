internal import Synchronization

/// The index of one request head: offsets into the received bytes and what follows from them.
///
/// Reusable scratch: memory is taken once, at `init`. Feed the same bytes, longer each time, to `parse` until it
/// returns a length; call `reset` before the next message. A fault stays until `reset`.
///
/// Requests are judged strictly (RFC 9112 §2.2, §3, §5, §6): CRLF only, no NUL, no folds, no blank before a colon, one
/// `Host`, one meaning of the framing fields. One empty line before the request line is passed over (RFC 9112 §2.2), a second
/// is a fault. Other control octets in field values pass, as legacy encodings use them.
public struct RequestHead: ~Copyable, Sendable {
    /// The method as received; a token (RFC 9110 §9.1), in its case.
    public private(set) var method = ByteRange.empty
    /// `other` where the method has no case of its own.
    public private(set) var knownMethod = KnownMethod.other
    /// The request target as received (RFC 9112 §3.2).
    public private(set) var target = ByteRange.empty
    /// Decides what `authority` and `path` are.
    public private(set) var targetForm = TargetForm.origin
    /// Authority of an absolute-form or authority-form target.
    public private(set) var authority: ByteRange?
    /// Path and query. Of an absolute-form target it may be empty or start with `?`; otherwise it is the whole target.
    public private(set) var path = ByteRange.empty
    /// 0 or 1; a higher minor version counts as 1 (RFC 9110 §2.5).
    public private(set) var minorVersion: UInt8 = 1
    /// The host to serve: the target's authority where it has one, else the `Host` field (RFC 9112 §3.2.2). Nil only
    /// for an HTTP/1.0 request without either.
    public private(set) var host: ByteRange?
    /// How the body's end is told (RFC 9112 §6.3).
    public private(set) var framing = RequestFraming.none
    /// The caller wants the connection kept; HTTP/1.0 callers have to say so.
    public private(set) var keepAlive = true
    /// The caller waits for `100 Continue`; never true for HTTP/1.0, whose `Expect` is void (RFC 9110 §10.1.1).
    public private(set) var expectsContinue = false
    /// `Connection: upgrade` together with an `Upgrade` field, in HTTP/1.1.
    public private(set) var upgrade = false
    /// Bytes of the head with its empty line, an empty line before it included; 0 until `parse` returned it.
    public private(set) var length = 0

    private(set) var section: FieldSection
    private var hasRequestLine = false
    /// Makes the compiler hand it by address. It would copy what it may, some hundred octets, for each call that only reads.
    private let stays = Atomic<Bool>(false)
    private var fault: HeadFault?

    /// - Parameter maxFields: field lines that fit; at least one.
    public init(maxFields: Int) {
        section = FieldSection(capacity: max(maxFields, 1))
    }
}

/// Methods that something depends on. Names are case-sensitive; unknown ones pass as they are.
public enum KnownMethod: UInt8, Sendable {
    case other
    case get
    case head
    case post
    case put
    case delete
    case connect
    case options
    case trace
    case patch
}

/// RFC 9112 §3.2.
public enum TargetForm: UInt8, Sendable {
    case origin
    case absolute
    case authority
    case asterisk
}

/// How the body of a request is delimited.
public enum RequestFraming: Sendable, Equatable {
    case none
    case length(UInt64)
    case chunked
}

// MARK: - Parsing

extension RequestHead {
    /// Makes the head ready for the next message; its memory stays.
    public mutating func reset() {
        section.reset()
        method = .empty
        knownMethod = .other
        target = .empty
        targetForm = .origin
        authority = nil
        path = .empty
        minorVersion = 1
        host = nil
        framing = .none
        keepAlive = true
        expectsContinue = false
        upgrade = false
        length = 0
        hasRequestLine = false
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
            guard try readRequestLine(bytes, limits) else { return nil }
            guard try section.index(bytes, limits: limits, tolerance: .strict) else { return nil }
            try settle(bytes, limits)
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
        guard fault == nil, length == 0, index.methodCount <= limits.method, index.targetCount <= limits.target,
            section.take(index, .request, of: bytes, limits)
        else { return try parse(bytes, limits: limits) }
        let targetStart = index.methodCount + 1
        hasRequestLine = true
        method = ByteRange(0..<index.methodCount)
        target = ByteRange(targetStart..<targetStart + index.targetCount)
        do {
            try judgeRequestLine(bytes)
            try settle(bytes, limits)
        } catch {
            fault = error
            throw error
        }
        length = section.position
        return length
    }

    /// Decides what follows from the parts of a head, wherever they come from.
    private mutating func settle(_ bytes: Span<UInt8>, _ limits: HeadLimits) throws(HeadFault) {
        try section.applyConnection(bytes, limits: limits)
        try settleHost(bytes)
        try settleFraming(bytes)
    }

    private mutating func judgeRequestLine(_ bytes: Span<UInt8>) throws(HeadFault) {
        minorVersion = try readVersion(ByteRange(Int(target.end) + 1..<Int(target.end) + 9), bytes)
        knownMethod = KnownMethod(method, in: bytes)
        try readTarget(bytes)
    }

    private mutating func readRequestLine(_ bytes: Span<UInt8>, _ limits: HeadLimits) throws(HeadFault) -> Bool {
        while !hasRequestLine {
            let start = section.position
            // Two blanks, the version and CRLF: past this the line is too long whatever follows.
            let limit = min(start + limits.method + limits.target + 12, limits.headSize)
            guard let line = try section.nextLine(bytes, limit: limit) else {
                if bytes.count >= limit { throw lineFault(bytes, start, limits) }
                return false
            }
            if line.isEmpty {
                guard start == 0 else { throw .emptyLineBeforeHead }
                continue
            }
            try split(line, bytes, limits)
            hasRequestLine = true
        }
        return true
    }

    /// A line without end is told by the part that overflows.
    private func lineFault(_ bytes: Span<UInt8>, _ start: Int, _ limits: HeadLimits) -> HeadFault {
        var cursor = start
        while cursor < bytes.count, cursor - start <= limits.method {
            if bytes[cursor] == 0x20 { return .targetTooLong }
            cursor += 1
        }
        return .methodTooLong
    }

    private mutating func split(
        _ line: ByteRange, _ bytes: Span<UInt8>, _ limits: HeadLimits
    ) throws(HeadFault) {
        let end = Int(line.end)
        var cursor = Int(line.start)
        while cursor < end, OctetClass.token.contains(bytes[cursor]) { cursor &+= 1 }
        method = ByteRange(Int(line.start)..<cursor)
        guard method.count > 0, cursor < end, bytes[cursor] == 0x20 else { throw .methodInvalid }
        guard method.count <= limits.method else { throw .methodTooLong }
        knownMethod = KnownMethod(method, in: bytes)

        cursor &+= 1
        let targetStart = cursor
        // Octets above ASCII are no URI, but callers send them and upstreams take them: they pass unread. A fragment
        // never belongs into a request, and what we append to a query would vanish in it.
        while cursor < end, bytes[cursor] > 0x20, bytes[cursor] != 0x7F, bytes[cursor] != 0x23 { cursor &+= 1 }
        guard cursor < end else { throw .requestLineMalformed }
        guard bytes[cursor] == 0x20 else { throw .targetInvalid }
        target = ByteRange(targetStart..<cursor)
        guard target.count > 0 else { throw .requestLineMalformed }
        guard Int(target.count) <= limits.target else { throw .targetTooLong }

        minorVersion = try readVersion(ByteRange(cursor &+ 1..<end), bytes)
        try readTarget(bytes)
    }

    private mutating func readTarget(_ bytes: Span<UInt8>) throws(HeadFault) {
        if knownMethod == .connect {
            guard let port = authorityPort(target, in: bytes), !port.isEmpty else { throw .targetFormMismatch }
            targetForm = .authority
            authority = target
            path = .empty
            return
        }
        let first = bytes[Int(target.start)]
        if first == 0x2F {
            targetForm = .origin
            path = target
        } else if first == 0x2A, target.count == 1 {
            guard knownMethod == .options else { throw .targetFormMismatch }
            targetForm = .asterisk
            path = target
        } else {
            try readAbsoluteTarget(bytes)
        }
    }

    private mutating func readAbsoluteTarget(_ bytes: Span<UInt8>) throws(HeadFault) {
        let start = Int(target.start)
        let end = Int(target.end)
        let schemeLength: Int
        if target.count > 7, bytes.spells("http://", at: ByteRange(start..<start + 7)) {
            schemeLength = 7
        } else if target.count > 8, bytes.spells("https://", at: ByteRange(start..<start + 8)) {
            schemeLength = 8
        } else {
            throw .targetInvalid
        }
        var cursor = start + schemeLength
        let authorityStart = cursor
        while cursor < end, bytes[cursor] != 0x2F, bytes[cursor] != 0x3F { cursor &+= 1 }
        let found = ByteRange(authorityStart..<cursor)
        guard authorityPort(found, in: bytes) != nil else { throw .targetInvalid }
        targetForm = .absolute
        authority = found
        path = ByteRange(cursor..<end)
    }

    private mutating func settleHost(_ bytes: Span<UInt8>) throws(HeadFault) {
        var field: ByteRange?
        for index in 0..<section.table.count where section.table[index].known == .host {
            guard field == nil else { throw .hostRepeated }
            field = section.table[index].value
        }
        if let field {
            guard authorityPort(field, in: bytes) != nil else { throw .hostInvalid }
        } else if minorVersion > 0 {
            throw .hostMissing
        }
        host = authority ?? field
    }

    private mutating func settleFraming(_ bytes: Span<UInt8>) throws(HeadFault) {
        let declared = try section.declaredLength(bytes, tolerance: .strict)
        if section.contains(.transferEncoding) {
            guard minorVersion > 0 else { throw .transferEncodingInOldVersion }
            guard declared == nil else { throw .contentLengthWithTransferEncoding }
            _ = try section.isChunked(bytes)
            framing = .chunked
        } else if let declared {
            framing = .length(declared)
        }
        keepAlive = !section.connection.close && (minorVersion > 0 || section.connection.keepAlive)
        upgrade = minorVersion > 0 && section.connection.upgrade && section.contains(.upgrade)
        if minorVersion > 0, section.contains(.expect) {
            // Any of its lines: which one comes first must not decide whether the caller waits.
            for index in 0..<fieldCount where self[index].known == .expect {
                if bytes.spells("100-continue", at: self[index].value) { expectsContinue = true }
            }
        }
    }
}

/// `HTTP/1.x`: the minor version, everything above 1 as 1.
func readVersion(_ range: ByteRange, _ bytes: Span<UInt8>) throws(HeadFault) -> UInt8 {
    let start = Int(range.start)
    if range.count == 8, bytes.isWord("HTTP/1.1", at: start) { return 1 }
    guard range.count == 8, bytes.isExactly("HTTP/", at: ByteRange(start..<start + 5)),
        isDigit(bytes[start + 5]), bytes[start + 6] == 0x2E, isDigit(bytes[start + 7])
    else { throw .versionMalformed }
    guard bytes[start + 5] == 0x31 else { throw .versionUnsupported }
    return min(bytes[start + 7] - 0x30, 1)
}

/// The port of `host [":" port]` (empty where none is written), or nil when that is no authority we serve.
///
/// Narrower than RFC 3986: a name is made of unreserved characters, an IP literal of hex digits, colons and dots. User
/// information, percent-encoding and sub-delimiters have no use in a host and several in an attack.
func authorityPort(_ range: ByteRange, in bytes: Span<UInt8>) -> ByteRange? {
    var cursor = Int(range.start)
    let end = Int(range.end)
    guard cursor < end else { return nil }
    if bytes[cursor] == 0x5B {
        let inside = cursor &+ 1
        cursor = inside
        while cursor < end, OctetClass.addressLiteral.contains(bytes[cursor]) { cursor &+= 1 }
        guard cursor > inside, cursor < end, bytes[cursor] == 0x5D else { return nil }
        cursor &+= 1
    } else {
        let start = cursor
        while cursor < end, OctetClass.unreserved.contains(bytes[cursor]) { cursor &+= 1 }
        guard cursor > start else { return nil }
    }
    guard cursor < end else { return ByteRange(end..<end) }
    guard bytes[cursor] == 0x3A else { return nil }
    let port = ByteRange(cursor &+ 1..<end)
    guard !port.isEmpty else { return port }
    guard let number = bytes.decimal(at: port), number <= 65535 else { return nil }
    return port
}

extension RequestHead {
    /// The port of the server that the request is for: as written, else that of its scheme; nil where the request names no server.
    /// - Parameter schemePort: that of the scheme that is told beside the head (RFC 9113 §8.3.1); nil: the target's, `http` where it has none.
    public func namedPort(_ bytes: Span<UInt8>, schemePort: UInt16? = nil) -> UInt16? {
        guard let named = authority ?? host, let port = authorityPort(named, in: bytes) else { return nil }
        guard port.isEmpty else { return bytes.decimal(at: port).flatMap { UInt16(exactly: $0) } }
        if let schemePort { return schemePort }
        let isSecure =
            targetForm == .absolute && target.count > 6
            && bytes.spells("https:", at: ByteRange(start: target.start, count: 6))
        return isSecure ? 443 : 80
    }
}

extension KnownMethod {
    init(_ range: ByteRange, in bytes: Span<UInt8>) {
        self = .other
        switch range.count {
        case 3:
            if bytes.isExactly("GET", at: range) { self = .get }
            if bytes.isExactly("PUT", at: range) { self = .put }
        case 4:
            if bytes.isExactly("POST", at: range) { self = .post }
            if bytes.isExactly("HEAD", at: range) { self = .head }
        case 5:
            if bytes.isExactly("PATCH", at: range) { self = .patch }
            if bytes.isExactly("TRACE", at: range) { self = .trace }
        case 6:
            if bytes.isExactly("DELETE", at: range) { self = .delete }
        case 7:
            if bytes.isExactly("OPTIONS", at: range) { self = .options }
            if bytes.isExactly("CONNECT", at: range) { self = .connect }
        default:
            break
        }
    }
}

// MARK: - Fields

extension RequestHead {
    /// Field lines, those of the same name counted singly.
    public var fieldCount: Int { section.table.count }

    /// - Precondition: `index` is in `0..<fieldCount`.
    public subscript(index: Int) -> Field { section.table[index] }

    /// Whether a line of this name was received.
    public func contains(_ known: KnownField) -> Bool { section.contains(known) }

    /// Whether the caller names the request or its trace: `X-Request-Id` or `traceparent`.
    public var carriesIdentifiers: Bool {
        section.containsAny(KnownField.xRequestId.bit | KnownField.traceparent.bit)
    }

    /// The value of the first field of this name.
    public func first(_ known: KnownField) -> ByteRange? { section.first(known) }

}
