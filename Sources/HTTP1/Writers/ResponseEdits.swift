/// The changes that a route makes in a response, compiled once.
public struct ResponseEdits: ~Copyable, Sendable {
    /// Fields to delete; names that differ only in `_` for `-` go with them.
    public var drop = NameSet()
    /// `Set-Cookie` lines whose cookie name starts with one of these are deleted.
    public var dropCookies = PrefixSet()
    /// Addresses of the upstream that become the caller's.
    public var addresses = AddressMap()
    /// Our pseudonym for `Via`; empty writes none.
    public var via: [UInt8] = []
    /// Keep `Trailer`: for a relay that forwards trailers.
    public var keepsTrailer = false

    /// Changes nothing but what a forwarded response must not keep.
    public init() {}
}

// MARK: -

extension ResponseEdits {
    /// Deleted from every response (RFC 9110 §7.6.1, §11.7.1, §11.7.3).
    @inline(__always)
    static var ownedByHop: UInt64 {
        KnownField.connection.bit | KnownField.contentLength.bit | KnownField.transferEncoding.bit
            | KnownField.upgrade.bit | KnownField.te.bit | KnownField.keepAlive.bit | KnownField.proxyConnection.bit
            | KnownField.proxyAuthenticate.bit | KnownField.proxyAuthenticationInfo.bit
    }
}
