/// Puts a field section of HTTP/2 into the form of an HTTP/1.1 head, which the rest of the gateway reads: pseudo-fields become the
/// first line and `Host`, cookie crumbs become one line (RFC 9113 §8.2.3, §8.3).
///
/// nghttp2 has validated names, values, the order and the number of pseudo-fields before (RFC 9113 §8.2.1, §8.3); what is written
/// here is parsed again by HTTP1's strict parser, so nothing of a field can pass for more than it is.
struct HeadAssembly {
    private(set) var kind: Kind
    private(set) var lines: [UInt8] = []
    /// `content-length`; nghttp2 compares it with the DATA that comes.
    private(set) var contentLength: UInt64?
    private(set) var acceptsTrailers = false
    /// Of an answer; 0 until known.
    private(set) var status = 0
    private(set) var flaw: Flaw?

    private var method: [UInt8] = []
    private var path: [UInt8] = []
    private var authority: [UInt8] = []
    private var cookies: [UInt8] = []
    private var host: [UInt8]?
    private var hasFirstLine = false
    /// Bytes of names and values so far, by the count of RFC 9113 §6.5.2.
    private var size = 0
    private let limit: Int

    enum Kind: Sendable { case request, answer, trailers }

    enum Flaw: Sendable, Equatable {
        /// Larger than the limit; the rest is decoded, for the tables' sake, and dropped.
        case tooLarge
        /// So much larger that the connection is not worth keeping.
        case flood
        /// RFC 9113 §8.1.1.
        case malformed
    }

    /// - Parameter limit: bytes that a head may have.
    init(_ kind: Kind, limit: Int) {
        self.kind = kind
        self.limit = limit
    }
}

// MARK: -

extension HeadAssembly {
    mutating func add(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        size += name.count + value.count + 32
        // Four times the limit: a peer that may send sixteen of those before it is cut costs more than a connection.
        if size > limit * 4 { flaw = .flood }
        if size > limit, flaw == nil { flaw = .tooLarge }
        guard flaw == nil else { return }
        if name.first == UInt8(ascii: ":") { return addPseudo(name, value) }
        if kind != .trailers { writeFirstLine() }
        if kind == .request {
            if name.spells("cookie") {
                // Put together at the end: crumbs need not be neighbours.
                if !cookies.isEmpty { cookies += [0x3b, 0x20] }
                cookies += value
                return
            }
            if name.spells("host") {
                if let host, !host.elementsEqual(value) { flaw = .malformed }
                host = Array(value)
                return
            }
            if name.spells("te") {
                acceptsTrailers = true
                return
            }
        }
        if kind != .trailers, name.spells("content-length") { contentLength = decimal(value) }
        append(name, value)
    }

    /// Ends the section.
    mutating func finish() {
        if kind == .trailers { return }
        writeFirstLine()
        guard flaw == nil else { return }
        if kind == .request {
            // RFC 9113 §8.3.1: a Host that differs from the authority is malformed.
            if let host, !authority.isEmpty, !equalIgnoringCase(host, authority) { return flaw = .malformed }
            let named = authority.isEmpty ? host ?? [] : authority
            lines += Array("host: ".utf8) + named + [0x0d, 0x0a]
            if !cookies.isEmpty { lines += Array("cookie: ".utf8) + cookies + [0x0d, 0x0a] }
        }
        lines += [0x0d, 0x0a]
    }

    private mutating func addPseudo(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        if name.spells(":method") {
            method = Array(value)
        } else if name.spells(":path") {
            path = Array(value)
        } else if name.spells(":authority") {
            authority = Array(value)
        } else if name.spells(":status") {
            status = Int(decimal(value) ?? 0)
        }
    }

    private mutating func writeFirstLine() {
        guard !hasFirstLine else { return }
        hasFirstLine = true
        lines.reserveCapacity(512)
        switch kind {
        case .request:
            lines += method + [0x20] + (method.elementsEqual("CONNECT".utf8) ? authority : path)
            lines += Array(" HTTP/1.1\r\n".utf8)
            // A space in a target would part the line; nghttp2 refuses it, and so does this.
            if path.contains(where: { $0 <= 0x20 || $0 == 0x7f }) || method.contains(0x20) { flaw = .malformed }
        case .answer:
            guard (100...999).contains(status) else { return flaw = .malformed }
            lines += Array("HTTP/1.1 \(status) \(reasonPhrase(status))\r\n".utf8)
        case .trailers: break
        }
    }

    private mutating func append(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        lines += name
        lines.append(0x3a)
        lines.append(0x20)
        lines += value
        lines.append(0x0d)
        lines.append(0x0a)
    }

    private func decimal(_ value: UnsafeRawBufferPointer) -> UInt64? {
        guard !value.isEmpty, value.count <= 19 else { return nil }
        var number: UInt64 = 0
        for byte in value {
            guard byte >= 0x30, byte <= 0x39 else { return nil }
            number = number * 10 + UInt64(byte - 0x30)
        }
        return number
    }
}

private func equalIgnoringCase(_ first: [UInt8], _ second: [UInt8]) -> Bool {
    first.count == second.count
        && zip(first, second).allSatisfy {
            $0 | 0x20 == $1 | 0x20 && ($0 == $1 || ($0 | 0x20) >= 0x61 && ($0 | 0x20) <= 0x7a)
        }
}

extension UnsafeRawBufferPointer {
    /// Whether these are exactly the bytes of `text`.
    func spells(_ text: StaticString) -> Bool {
        guard count == text.utf8CodeUnitCount else { return false }
        for index in 0..<count where self[index] != text.utf8Start[index] { return false }
        return true
    }
}
