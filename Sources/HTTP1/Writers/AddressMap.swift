/// How addresses of an upstream become what its callers use (`rewrite.response`), compiled once.
///
/// `Location`, `Content-Location` and the attributes of `Set-Cookie` that name the upstream are changed; whatever names
/// something else, or nothing, passes byte for byte.
public struct AddressMap: Sendable {
    /// Nothing is changed while it is off.
    public var isOn = false
    /// The upstream's scheme is https.
    public var isSecure = false
    /// The upstream's host in lower case, an IPv6 address in brackets.
    public var host: [UInt8] = []
    /// The upstream's port.
    public var port: UInt16 = 0
    /// The name that it is called by in `Host`, where that is one of the operator's own; empty: none.
    public var alias: [UInt8] = []
    /// The alias's port; of no meaning without an alias.
    public var aliasPort: UInt16 = 0
    /// The upstream is called by the name that the caller used, and names itself so.
    public var knowsCallersHost = false
    /// Stands before every path toward the upstream; empty or without a slash at its end.
    public var inner: [UInt8] = []
    /// Was taken off the caller's path; empty or without a slash at its end.
    public var outer: [UInt8] = []

    /// Maps nothing: host and prefixes are empty.
    public init() {}
}

// MARK: - Locations

extension AddressMap {
    /// Writes the value of a `Location` or `Content-Location` as the caller would have to write it.
    ///
    /// - Parameter origin: `scheme://authority` that the caller used; empty: not known, so a value that needs it stays.
    /// - Returns: false, and nothing written, when the value does not name the upstream.
    func write(location value: Span<UInt8>, origin: Span<UInt8>, into output: inout OutputCursor) -> Bool {
        guard isOn, let target = target(of: value, origin: origin) else { return false }
        // Neither a mapped path nor another origin: the bytes stay as they are.
        if target.isRelative, inner.isEmpty, outer.isEmpty { return false }
        guard let rest = unprefixed(value, from: target.pathStart) else { return false }
        // Without its prefix a path may begin with two slashes, and would name a host.
        let needsOrigin = !target.isRelative || (outer.isEmpty && beginsWithTwoSlashes(value, at: rest))
        if needsOrigin {
            guard !origin.isEmpty else { return false }
            output.append(origin)
        }
        output.append(outer.span)
        if rest == value.count || value[rest] != 0x2F { output.append(byte: 0x2F) }
        output.append(value, ByteRange(rest..<value.count))
        return true
    }

    /// Browsers read a backslash there as a slash.
    private func beginsWithTwoSlashes(_ value: Span<UInt8>, at start: Int) -> Bool {
        guard start &+ 1 < value.count, value[start] == 0x2F else { return false }
        return value[start &+ 1] == 0x2F || value[start &+ 1] == 0x5C
    }

    private struct Target {
        var pathStart: Int
        /// A path without an authority.
        var isRelative: Bool
    }

    /// Where the path begins in a reference to the upstream, or nil for any other reference.
    private func target(of value: Span<UInt8>, origin: Span<UInt8>) -> Target? {
        guard !value.isEmpty else { return nil }
        var start = 0
        if value[0] != 0x2F {
            // A relative path is resolved by the caller against what the caller asked for.
            guard let length = ownSchemeLength(value) else { return nil }
            start = length
        } else if value.count == 1 || value[1] != 0x2F {
            return Target(pathStart: 0, isRelative: true)
        }
        start &+= 2
        guard start <= value.count else { return nil }
        var end = start
        while end < value.count, value[end] != 0x2F, value[end] != 0x3F, value[end] != 0x23 { end &+= 1 }
        guard names(authority: ByteRange(start..<end), value, origin) else { return nil }
        return Target(pathStart: end, isRelative: false)
    }

    /// Bytes of `https:` or `http:` when that is the upstream's scheme and `//` follows.
    private func ownSchemeLength(_ value: Span<UInt8>) -> Int? {
        let length = isSecure ? 6 : 5
        guard value.count >= length + 2, value[length] == 0x2F, value[length + 1] == 0x2F else { return nil }
        let scheme = ByteRange(0..<length)
        return (isSecure ? value.spells("https:", at: scheme) : value.spells("http:", at: scheme)) ? length : nil
    }

    private func names(authority: ByteRange, _ value: Span<UInt8>, _ origin: Span<UInt8>) -> Bool {
        if knowsCallersHost, isCallers(authority, value, origin) { return true }
        guard let port = authorityPort(authority, in: value) else { return false }
        let number = port.isEmpty ? (isSecure ? 443 : 80) : value.decimal(at: port)
        let colon = port.isEmpty && (authority.isEmpty || value[Int(authority.end) - 1] != 0x3A) ? 0 : 1
        let name = ByteRange(start: authority.start, count: authority.count - port.count - Int32(colon))
        let host = value.extracting(name.indices)
        if number == UInt64(self.port), host.isName(self.host.span) { return true }
        guard !alias.isEmpty, number == UInt64(aliasPort) || number == UInt64(self.port) else { return false }
        return host.isName(alias.span)
    }

    private func isCallers(_ authority: ByteRange, _ value: Span<UInt8>, _ origin: Span<UInt8>) -> Bool {
        let start = origin.count - Int(authority.count)
        guard !authority.isEmpty, start > 0, origin[start - 1] == 0x2F else { return false }
        return value.extracting(authority.indices).isName(origin.extracting(start..<origin.count))
    }

    /// Where the path goes on behind the prefix of `to`, or nil where it does not stand under it and callers cannot reach it.
    private func unprefixed(_ value: Span<UInt8>, from start: Int) -> Int? {
        if inner.isEmpty { return start }
        var end = start
        while end < value.count, value[end] != 0x23 { end &+= 1 }
        return strippableLength(value.extracting(start..<end), prefix: inner.span).map { start + $0 }
    }
}

// MARK: - Cookies

extension AddressMap {
    /// Writes the value of a `Set-Cookie` for the caller.
    ///
    /// - `Domain` that covers the upstream and not the caller's host goes: the cookie then belongs to the host that the
    ///   caller used, which an attribute could not say of an address or of `localhost` to every client.
    /// - `Path` is mapped as a location's is; one above the prefix of `to` becomes everything that the caller reaches.
    /// - `Secure` goes where the caller's own connection is clear text: the cookie would never come back.
    ///
    /// A cookie for another domain is not touched at all.
    ///
    /// - Returns: false, and nothing written, when nothing has to change.
    func write(cookie value: Span<UInt8>, origin: Span<UInt8>, into output: inout OutputCursor) -> Bool {
        guard isOn, !origin.isEmpty else { return false }
        guard let plan = plan(for: value, origin: origin) else { return false }
        var parts = CookieParts(value.count)
        _ = parts.next(in: value)
        output.append(value, ByteRange(0..<parts.end))
        while let part = parts.next(in: value) {
            switch part.attribute {
            case .domain where plan.dropsDomain, .secure where plan.dropsSecure: continue
            case .path where plan.mapsPath:
                guard let rest = mappedCookiePath(part.value, value) else { fallthrough }
                output.append("; Path=")
                output.append(outer.span)
                let path = ByteRange(rest..<Int(part.value.end))
                output.append(value, path)
                if outer.isEmpty, path.isEmpty { output.append("/") }
            default:
                output.append(value, part.whole)
            }
        }
        return true
    }

    private struct CookiePlan {
        var dropsDomain = false
        var dropsSecure = false
        var mapsPath = false
    }

    /// Nil: the cookie stays as it is.
    private func plan(for value: Span<UInt8>, origin: Span<UInt8>) -> CookiePlan? {
        var plan = CookiePlan()
        var parts = CookieParts(value.count)
        _ = parts.next(in: value)
        let callerIsSecure = origin.count > 8 && origin.spells("https://", at: ByteRange(0..<8))
        let callerHost = hostRange(of: origin)
        while let part = parts.next(in: value) {
            switch part.attribute {
            case .domain:
                var domain = part.value
                if !domain.isEmpty, value[Int(domain.start)] == 0x2E {
                    domain = ByteRange(start: domain.start + 1, count: domain.count - 1)
                }
                if domain.isEmpty { continue }
                guard covers(domain, value, host.span, 0..<host.count) else { return nil }
                if !covers(domain, value, origin, callerHost) { plan.dropsDomain = true }
            case .path:
                if !(inner.isEmpty && outer.isEmpty), mappedCookiePath(part.value, value) != nil {
                    plan.mapsPath = true
                }
            case .secure:
                if !callerIsSecure { plan.dropsSecure = true }
            case .other: break
            }
        }
        return plan.dropsDomain || plan.dropsSecure || plan.mapsPath ? plan : nil
    }

    private func hostRange(of origin: Span<UInt8>) -> Range<Int> {
        var start = 0
        while start < origin.count, origin[start] != 0x2F { start &+= 1 }
        start = min(start &+ 2, origin.count)
        var end = start
        if end < origin.count, origin[end] == 0x5B {
            while end < origin.count, origin[end] != 0x5D { end &+= 1 }
            end = min(end &+ 1, origin.count)
        } else {
            while end < origin.count, origin[end] != 0x3A { end &+= 1 }
        }
        return start..<end
    }

    /// Whether `domain` is the name or one above it (RFC 6265 §5.1.3; no server sends the end of an address).
    private func covers(
        _ domain: ByteRange, _ value: Span<UInt8>, _ name: Span<UInt8>, _ range: Range<Int>
    ) -> Bool {
        let offset = range.count - Int(domain.count)
        guard offset >= 0 else { return false }
        let start = range.lowerBound &+ offset
        guard value.extracting(domain.indices).isName(name.extracting(start..<range.upperBound)) else { return false }
        return offset == 0 || name[start &- 1] == 0x2E
    }

    /// Where what follows the prefix of `to` begins; the end of a path that stands above the prefix; nil beside it.
    private func mappedCookiePath(_ path: ByteRange, _ value: Span<UInt8>) -> Int? {
        guard !path.isEmpty, value[Int(path.start)] == 0x2F else { return nil }
        let bytes = value.extracting(path.indices)
        if path.count == 1 { return Int(path.end) }
        if inner.isEmpty { return Int(path.start) }
        // A cookie's path has no query: a question mark is an octet of its last segment.
        if let length = strippableLength(bytes, prefix: inner.span), length == bytes.count || bytes[length] != 0x3F {
            // A lone slash behind the prefix is the prefix's own.
            return length + 1 == bytes.count && bytes[length] == 0x2F ? Int(path.end) : Int(path.start) + length
        }
        return strippableLength(inner.span, prefix: bytes) == nil ? nil : Int(path.end)
    }
}

/// The parts of a `Set-Cookie` value: the pair first, then its attributes.
struct CookieParts {
    enum Attribute { case domain, path, secure, other }

    struct Part {
        var attribute: Attribute
        /// With the `;` before it.
        var whole: ByteRange
        var value: ByteRange
    }

    /// Where the next part's `;` stands.
    private(set) var end = 0
    private var hasBegun = false
    private let count: Int

    init(_ count: Int) { self.count = count }

    mutating func next(in bytes: Span<UInt8>) -> Part? {
        guard end < count || !hasBegun else { return nil }
        let start = end
        let inside = hasBegun ? start &+ 1 : start
        hasBegun = true
        end = inside
        while end < count, bytes[end] != 0x3B { end &+= 1 }
        var nameEnd = inside
        while nameEnd < end, bytes[nameEnd] != 0x3D { nameEnd &+= 1 }
        let name = bytes.trimmed(inside..<nameEnd)
        let value = nameEnd < end ? bytes.trimmed(nameEnd &+ 1..<end) : ByteRange(end..<end)
        var attribute = Attribute.other
        if bytes.spells("domain", at: name) { attribute = .domain }
        if bytes.spells("path", at: name) { attribute = .path }
        if bytes.spells("secure", at: name) { attribute = .secure }
        return Part(attribute: attribute, whole: ByteRange(start..<end), value: value)
    }
}
