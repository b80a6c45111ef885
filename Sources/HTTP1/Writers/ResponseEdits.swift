/// The changes that a route makes in a response, compiled once.
public struct ResponseEdits: ~Copyable, Sendable {
    /// Fields to delete; names that differ only in `_` for `-` go with them.
    public var drop = NameSet()
    /// `Set-Cookie` lines whose cookie name starts with one of these are deleted.
    public var dropCookies = PrefixSet()
    /// Ready lines, each with its CRLF.
    public private(set) var addLines: [UInt8] = []
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
    /// Adds a line to every response.
    ///
    /// - Parameter replacing: the upstream's lines of this name go.
    /// - Returns: false, and nothing changed, when the value holds CR, LF or NUL, or when framing owns the field.
    public mutating func add(
        _ name: FieldName, spelled spelling: [UInt8]? = nil, value: [UInt8], replacing: Bool = false
    ) -> Bool {
        let known = KnownField.lookup(ByteRange(0..<name.bytes.count), in: name.bytes.span, lookAlike: true)
        guard ResponseEdits.ownedByHop & known.bit == 0, isFieldValue(value.span) else { return false }
        let shown = spelling ?? name.bytes
        guard FieldName(bytes: shown) == name else { return false }
        if replacing { drop.insert(name) }
        addLines += shown + [0x3A, 0x20] + value + [0x0D, 0x0A]
        return true
    }

    /// Deleted from every response (RFC 9110 §7.6.1, §11.7.1).
    @inline(__always)
    static var ownedByHop: UInt64 {
        KnownField.connection.bit | KnownField.contentLength.bit | KnownField.transferEncoding.bit
            | KnownField.upgrade.bit | KnownField.te.bit | KnownField.keepAlive.bit | KnownField.proxyConnection.bit
            | KnownField.proxyAuthenticate.bit
    }
}
