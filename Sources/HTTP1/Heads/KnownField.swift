/// The fields this module, or what stands on it, asks for by name.
///
/// The raw value is a bit number: a set of known fields is one `UInt64`.
public enum KnownField: UInt8, Sendable, CaseIterable {
    case other
    case host
    case connection
    case contentLength
    case transferEncoding
    case expect
    case upgrade
    case te
    case trailer
    case keepAlive
    case proxyConnection
    case proxyAuthorization
    case proxyAuthenticate
    case proxyAuthenticationInfo
    case authorization
    case wwwAuthenticate
    case authenticationInfo
    case via
    case userAgent
    case cookie
    case setCookie
    case date
    case location
    case contentLocation
    case origin
    case referer
    case secFetchSite
    case retryAfter
    case proxyStatus
    case contentType
    case contentEncoding
    case cacheControl
    case accept
    case forwarded
    case xForwardedFor
    case xForwardedHost
    case xForwardedProto
    case maxForwards
    case dpop
    case dpopNonce
    case xRequestId
    case traceparent
    case tracestate
}

// MARK: -

extension KnownField {
    /// The one bit of this field in a set of known fields; `other` is in no set.
    @inline(__always)
    var bit: UInt64 { self == .other ? 0 : 1 << UInt64(rawValue) }

    /// - Parameter lookAlike: read a received `_` as `-`, as upstreams that turn names into variables do.
    @inline(__always)
    static func lookup(_ name: ByteRange, in bytes: Span<UInt8>, lookAlike: Bool) -> KnownField {
        lookAlike ? similar(name, in: bytes) : exact(name, in: bytes)
    }

    /// Names are told apart by length first: at most five comparisons follow, nearly all ended by their first word.
    private static func exact(_ name: ByteRange, in bytes: Span<UInt8>) -> KnownField {
        switch name.count {
        case 2:
            if bytes.spells("te", at: name) { return .te }
        case 3:
            if bytes.spells("via", at: name) { return .via }
        case 4:
            if bytes.spells("host", at: name) { return .host }
            if bytes.spells("date", at: name) { return .date }
            if bytes.spells("dpop", at: name) { return .dpop }
        case 6:
            if bytes.spells("expect", at: name) { return .expect }
            if bytes.spells("cookie", at: name) { return .cookie }
            if bytes.spells("origin", at: name) { return .origin }
            if bytes.spells("accept", at: name) { return .accept }
        case 7:
            if bytes.spells("upgrade", at: name) { return .upgrade }
            if bytes.spells("trailer", at: name) { return .trailer }
            if bytes.spells("referer", at: name) { return .referer }
        case 8:
            if bytes.spells("location", at: name) { return .location }
        case 9:
            if bytes.spells("forwarded", at: name) { return .forwarded }
        case 10:
            if bytes.spells("connection", at: name) { return .connection }
            if bytes.spells("keep-alive", at: name) { return .keepAlive }
            if bytes.spells("user-agent", at: name) { return .userAgent }
            if bytes.spells("set-cookie", at: name) { return .setCookie }
            if bytes.spells("dpop-nonce", at: name) { return .dpopNonce }
            if bytes.spells("tracestate", at: name) { return .tracestate }
        case 11:
            if bytes.spells("retry-after", at: name) { return .retryAfter }
            if bytes.spells("traceparent", at: name) { return .traceparent }
        case 12:
            if bytes.spells("proxy-status", at: name) { return .proxyStatus }
            if bytes.spells("content-type", at: name) { return .contentType }
            if bytes.spells("max-forwards", at: name) { return .maxForwards }
            if bytes.spells("x-request-id", at: name) { return .xRequestId }
        case 13:
            if bytes.spells("authorization", at: name) { return .authorization }
            if bytes.spells("cache-control", at: name) { return .cacheControl }
        case 14:
            if bytes.spells("content-length", at: name) { return .contentLength }
            if bytes.spells("sec-fetch-site", at: name) { return .secFetchSite }
        case 15:
            if bytes.spells("x-forwarded-for", at: name) { return .xForwardedFor }
        case 16:
            if bytes.spells("proxy-connection", at: name) { return .proxyConnection }
            if bytes.spells("www-authenticate", at: name) { return .wwwAuthenticate }
            if bytes.spells("content-location", at: name) { return .contentLocation }
            if bytes.spells("content-encoding", at: name) { return .contentEncoding }
            if bytes.spells("x-forwarded-host", at: name) { return .xForwardedHost }
        case 17:
            if bytes.spells("transfer-encoding", at: name) { return .transferEncoding }
            if bytes.spells("x-forwarded-proto", at: name) { return .xForwardedProto }
        case 18:
            if bytes.spells("proxy-authenticate", at: name) { return .proxyAuthenticate }
        case 19:
            if bytes.spells("proxy-authorization", at: name) { return .proxyAuthorization }
            if bytes.spells("authentication-info", at: name) { return .authenticationInfo }
        case 25:
            if bytes.spells("proxy-authentication-info", at: name) { return .proxyAuthenticationInfo }
        default:
            break
        }
        return .other
    }

    private static func similar(_ name: ByteRange, in bytes: Span<UInt8>) -> KnownField {
        // Longer than every name.
        var plain = InlineArray<32, UInt8>(repeating: 0)
        guard Int(name.count) < plain.count else { return .other }
        for offset in 0..<Int(name.count) {
            let octet = bytes[Int(name.start) &+ offset]
            plain[offset] = octet == 0x5F ? 0x2D : octet
        }
        return exact(ByteRange(start: 0, count: name.count), in: plain.span)
    }

    /// The known field of a name, compared without case.
    public static func named(_ name: Span<UInt8>) -> KnownField {
        exact(ByteRange(unchecked: 0, name.count), in: name)
    }
}
