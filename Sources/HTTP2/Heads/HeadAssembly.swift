internal import Glibc
internal import HTTP1

/// Puts a field section of HTTP/2 into the form of an HTTP/1.1 head, which the rest of the gateway reads: pseudo-fields become the
/// first line and `Host`, cookie crumbs become one line (RFC 9113 §8.2.3, §8.3).
///
/// A connection has one assembly: the frames of a field section have no others between them (RFC 9113 §4.3).
///
/// nghttp2 has validated names, values, the order and the number of pseudo-fields before (RFC 9113 §8.2.1, §8.3); what is written
/// here is parsed again by HTTP1's strict parser, so nothing of a field can pass for more than it is. What that would find in a plain head
/// is noted while it is written (`HeadIndex`).
struct HeadAssembly: ~Copyable {
    /// The identifier of the stream whose section comes in; 0 for none.
    private(set) var stream: Int32 = 0
    private(set) var kind = Kind.request
    var text = HeadText()
    /// `content-length`; nghttp2 compares it with the DATA that comes.
    private(set) var contentLength: UInt64?
    private(set) var acceptsTrailers = false
    /// The port that `:scheme` stands for (RFC 9110 §4.2); 0 of another scheme, and without one.
    private(set) var schemePort: UInt16 = 0
    /// The status of an answer; 0 until known.
    private(set) var status = 0
    private(set) var flaw: Flaw?

    /// Values that stand elsewhere in the head than where they come.
    private var parts = OctetBuffer()
    private var method = 0..<0
    private var path = 0..<0
    private var authority = 0..<0
    private var host: Range<Int>?
    private var cookies = OctetBuffer()
    private var hasFirstLine = false
    /// Bytes of names and values so far, by the count of RFC 9113 §6.5.2.
    private var size = 0
    /// Bytes that a head may have.
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

    init(limit: Int) {
        self.limit = limit
    }
}

// MARK: -

extension HeadAssembly {
    mutating func begin(_ kind: Kind, of stream: Int32) {
        self.stream = stream
        self.kind = kind
        text.clear()
        contentLength = nil
        acceptsTrailers = false
        schemePort = 0
        status = 0
        flaw = nil
        parts.clear()
        method = 0..<0
        path = 0..<0
        authority = 0..<0
        host = nil
        cookies.clear()
        hasFirstLine = false
        size = 0
    }

    /// The fields that come are of no stream that is served.
    mutating func leave() { stream = 0 }

    mutating func add(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        size += name.count + value.count + 32
        // Four times the limit: a peer that may send sixteen of those before it is cut costs more than a connection.
        if size > limit * 4 { flaw = .flood }
        if size > limit, flaw == nil { flaw = .tooLarge }
        guard flaw == nil else { return }
        if name.first == UInt8(ascii: ":") { return addPseudo(name, value) }
        if kind == .trailers { return text.add(line: name, value) }
        if !hasFirstLine { writeFirstLine() }
        let known = KnownField.named(name.octets)
        switch known {
        case .cookie where kind == .request:
            // Put together at the end: crumbs need not be neighbours.
            if cookies.count > 0 { cookies.append("; ") }
            cookies.append(value)
        case .host where kind == .request:
            if let host, !sameOctets(parts[host], value) { flaw = .malformed }
            host = keep(value)
        case .te where kind == .request:
            acceptsTrailers = true
        default:
            if known == .contentLength { contentLength = decimal(value) }
            text.add(name, known, value)
        }
    }

    /// Ends the section.
    mutating func finish() {
        stream = 0
        if kind == .trailers { return }
        if !hasFirstLine { writeFirstLine() }
        guard flaw == nil else { return }
        if kind == .request {
            // RFC 9113 §8.3.1: a Host that differs from the authority is malformed.
            if let host, !authority.isEmpty, !equalIgnoringCase(parts[host], parts[authority]) {
                flaw = .malformed
                return
            }
            text.add("host", .host, parts[authority.isEmpty ? host ?? authority : authority])
            if cookies.count > 0 { text.add("cookie", .cookie, cookies.bytes) }
        }
        text.end()
    }

    private mutating func addPseudo(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        switch name.count {
        case 5 where name.spells(":path"): path = keep(value)
        case 7 where name.spells(":method"): method = keep(value)
        case 7 where name.spells(":scheme"): schemePort = value.spells("http") ? 80 : value.spells("https") ? 443 : 0
        case 7 where name.spells(":status"): status = Int(decimal(value) ?? 0)
        case 10 where name.spells(":authority"): authority = keep(value)
        default: break
        }
    }

    private mutating func keep(_ value: UnsafeRawBufferPointer) -> Range<Int> {
        let start = parts.count
        parts.append(value)
        return start..<parts.count
    }

    private mutating func writeFirstLine() {
        hasFirstLine = true
        switch kind {
        case .request:
            let isConnect = parts[method].spells("CONNECT")
            let isPlain = text.begin(method: parts[method], target: parts[isConnect ? authority : path])
            // A space in a target would part the line; nghttp2 refuses it, and so does this.
            if !isPlain || isConnect,
                parts[path].contains(where: { $0 <= 0x20 || $0 == 0x7f }) || parts[method].contains(0x20)
            {
                flaw = .malformed
            }
        case .answer:
            guard (100...999).contains(status) else { return flaw = .malformed }
            text.begin(status: status)
        case .trailers: break
        }
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

private func equalIgnoringCase(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) -> Bool {
    first.count == second.count
        && zip(first, second).allSatisfy {
            $0 | 0x20 == $1 | 0x20 && ($0 == $1 || ($0 | 0x20) >= 0x61 && ($0 | 0x20) <= 0x7a)
        }
}

func sameOctets(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) -> Bool {
    guard first.count == second.count else { return false }
    guard let one = first.baseAddress, let other = second.baseAddress else { return true }
    return memcmp(one, other, first.count) == 0
}

extension UnsafeRawBufferPointer {
    /// Whether these are exactly the bytes of `text`.
    @inline(__always)
    func spells(_ text: StaticString) -> Bool {
        guard count == text.utf8CodeUnitCount, let baseAddress else { return false }
        return memcmp(baseAddress, text.utf8Start, count) == 0
    }
}
