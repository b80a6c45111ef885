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
}

// MARK: -

extension KnownField {
    /// The one bit of this field in a set of known fields; `other` is in no set.
    @inline(__always)
    var bit: UInt64 { self == .other ? 0 : 1 << UInt64(rawValue) }

    /// Names are told apart by length first: at most five comparisons follow, nearly all ended by their first octet.
    ///
    /// - Parameter lookAlike: read a received `_` as `-`, as upstreams that turn names into variables do.
    static func lookup(_ name: ByteRange, in bytes: Span<UInt8>, lookAlike: Bool) -> KnownField {
        switch name.count {
        case 2:
            if bytes.spells("te", at: name, lookAlike: lookAlike) { return .te }
        case 3:
            if bytes.spells("via", at: name, lookAlike: lookAlike) { return .via }
        case 4:
            if bytes.spells("host", at: name, lookAlike: lookAlike) { return .host }
            if bytes.spells("date", at: name, lookAlike: lookAlike) { return .date }
            if bytes.spells("dpop", at: name, lookAlike: lookAlike) { return .dpop }
        case 6:
            if bytes.spells("expect", at: name, lookAlike: lookAlike) { return .expect }
            if bytes.spells("cookie", at: name, lookAlike: lookAlike) { return .cookie }
            if bytes.spells("origin", at: name, lookAlike: lookAlike) { return .origin }
            if bytes.spells("accept", at: name, lookAlike: lookAlike) { return .accept }
        case 7:
            if bytes.spells("upgrade", at: name, lookAlike: lookAlike) { return .upgrade }
            if bytes.spells("trailer", at: name, lookAlike: lookAlike) { return .trailer }
            if bytes.spells("referer", at: name, lookAlike: lookAlike) { return .referer }
        case 8:
            if bytes.spells("location", at: name, lookAlike: lookAlike) { return .location }
        case 9:
            if bytes.spells("forwarded", at: name, lookAlike: lookAlike) { return .forwarded }
        case 10:
            if bytes.spells("connection", at: name, lookAlike: lookAlike) { return .connection }
            if bytes.spells("keep-alive", at: name, lookAlike: lookAlike) { return .keepAlive }
            if bytes.spells("user-agent", at: name, lookAlike: lookAlike) { return .userAgent }
            if bytes.spells("set-cookie", at: name, lookAlike: lookAlike) { return .setCookie }
            if bytes.spells("dpop-nonce", at: name, lookAlike: lookAlike) { return .dpopNonce }
        case 11:
            if bytes.spells("retry-after", at: name, lookAlike: lookAlike) { return .retryAfter }
        case 12:
            if bytes.spells("proxy-status", at: name, lookAlike: lookAlike) { return .proxyStatus }
            if bytes.spells("content-type", at: name, lookAlike: lookAlike) { return .contentType }
            if bytes.spells("max-forwards", at: name, lookAlike: lookAlike) { return .maxForwards }
        case 13:
            if bytes.spells("authorization", at: name, lookAlike: lookAlike) { return .authorization }
            if bytes.spells("cache-control", at: name, lookAlike: lookAlike) { return .cacheControl }
        case 14:
            if bytes.spells("content-length", at: name, lookAlike: lookAlike) { return .contentLength }
            if bytes.spells("sec-fetch-site", at: name, lookAlike: lookAlike) { return .secFetchSite }
        case 15:
            if bytes.spells("x-forwarded-for", at: name, lookAlike: lookAlike) { return .xForwardedFor }
        case 16:
            if bytes.spells("proxy-connection", at: name, lookAlike: lookAlike) { return .proxyConnection }
            if bytes.spells("www-authenticate", at: name, lookAlike: lookAlike) { return .wwwAuthenticate }
            if bytes.spells("content-location", at: name, lookAlike: lookAlike) { return .contentLocation }
            if bytes.spells("content-encoding", at: name, lookAlike: lookAlike) { return .contentEncoding }
            if bytes.spells("x-forwarded-host", at: name, lookAlike: lookAlike) { return .xForwardedHost }
        case 17:
            if bytes.spells("transfer-encoding", at: name, lookAlike: lookAlike) { return .transferEncoding }
            if bytes.spells("x-forwarded-proto", at: name, lookAlike: lookAlike) { return .xForwardedProto }
        case 18:
            if bytes.spells("proxy-authenticate", at: name, lookAlike: lookAlike) { return .proxyAuthenticate }
        case 19:
            if bytes.spells("proxy-authorization", at: name, lookAlike: lookAlike) { return .proxyAuthorization }
            if bytes.spells("authentication-info", at: name, lookAlike: lookAlike) { return .authenticationInfo }
        default:
            break
        }
        return .other
    }
}
