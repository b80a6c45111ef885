/// The changes that a route makes in a request, compiled once.
///
/// Flat arrays and no payload enums: reading them on the data path neither allocates nor copies.
public struct RequestEdits: Sendable {
    /// Fields to delete; names that differ only in `_` for `-` go with them.
    public var drop = NameSet()
    /// A field of the caller that is deleted for ours, and the name under which its value is forwarded all the same. Both empty: none.
    public var renamed: [UInt8] = []
    /// In lower case.
    public var renamedTo: [UInt8] = []
    /// Ready lines, each with its CRLF. Use `set` to add one together with its deletion.
    public private(set) var setLines: [UInt8] = []
    /// The edit of `User-Agent`.
    public var userAgentMode = UserAgentMode.keep
    /// The prefix or the replacement; put between us and the caller's value exactly as it is.
    public var userAgent: [UInt8] = []
    /// Value of `Host`; empty forwards the host that the caller asked for, and an empty value for the HTTP/1.0 caller
    /// that asked for none (RFC 9112 §3.2).
    public var host: [UInt8] = []
    /// Removed from the start of the path, whole segments only, compared as `pathMatches` does; empty removes nothing.
    public var stripPrefix: [UInt8] = []
    /// Put before the path. Without a trailing `/`, as the path brings one.
    public var targetPrefix: [UInt8] = []
    /// `https://` or `http://`: an address in `Destination` or `If` (RFC 4918 sections 10.3 and 10.4) that names the server that was called
    /// becomes the upstream's own; empty: it passes as it is.
    public var destinationScheme: [UInt8] = []
    /// Put before the path of such an address, without a trailing `/`.
    public var destinationPrefix: [UInt8] = []
    /// Our pseudonym for `Via`; empty writes none.
    public var via: [UInt8] = []
    /// Where the credential goes.
    public var place = CredentialPlace.header
    /// Name of the query parameter or cookie that carries the credential.
    public var placeName: [UInt8] = []
    /// Fields, query parameters and cookies whose value holds a `Placeholder` are deleted. Off, it costs nothing; on, every value is
    /// looked through.
    public var dropsPlaceholders = false

    /// Changes nothing but what a forwarded request must not keep.
    public init() {}
}

/// The edit of the caller's `User-Agent`.
public enum UserAgentMode: UInt8, Sendable {
    case keep
    /// `userAgent` stands before the caller's value, or alone where there is none.
    case prepend
    case replace
}

/// The kind of the credential given to `writeRequest`, and which of the caller's bytes are deleted for it.
public enum CredentialPlace: UInt8, Sendable {
    /// `Name: value` with its CRLF. The name belongs into `drop`.
    case header
    /// `name=value`, encoded; the caller's parameters called `placeName` are deleted.
    case query
    /// `name=value`; the caller's cookies called `placeName` are deleted.
    case cookie
}

// MARK: -

extension RequestEdits {
    /// Sets a field for every request: the caller's copies are deleted, the line is added.
    ///
    /// - Returns: false, and nothing changed, when the value holds CR, LF or NUL, or when the field is one that framing
    ///   and routing own (`Host`, `Connection`, `Content-Length`, `Transfer-Encoding` and their like).
    public mutating func set(_ name: FieldName, spelled spelling: [UInt8]? = nil, value: [UInt8]) -> Bool {
        let known = KnownField.lookup(ByteRange(0..<name.bytes.count), in: name.bytes.span, lookAlike: true)
        guard RequestEdits.ownedByHop & known.bit == 0, isFieldValue(value.span) else { return false }
        let shown = spelling ?? name.bytes
        guard FieldName(bytes: shown) == name else { return false }
        drop.insert(name)
        setLines += shown + [0x3A, 0x20] + value + [0x0D, 0x0A]
        return true
    }

    /// How many bytes at the start of a received path do not reach the upstream.
    public func strippedLength(of path: Span<UInt8>) -> Int { strippableLength(path, prefix: stripPrefix.span) ?? 0 }

    /// Deleted from every request: they speak of one hop, or are written anew (RFC 9110 §7.6.1, §11.7.2).
    @inline(__always)
    static var ownedByHop: UInt64 {
        KnownField.host.bit | KnownField.connection.bit | KnownField.contentLength.bit
            | KnownField.transferEncoding.bit | KnownField.upgrade.bit | KnownField.te.bit | KnownField.trailer.bit
            | KnownField.keepAlive.bit | KnownField.proxyConnection.bit | KnownField.proxyAuthorization.bit
    }
}

/// Whether bytes may stand in a field value: no CR, LF or NUL (RFC 9110 §5.5).
public func isFieldValue(_ value: Span<UInt8>) -> Bool {
    firstLineBreak(in: value, from: 0, limit: value.count) == value.count
}
