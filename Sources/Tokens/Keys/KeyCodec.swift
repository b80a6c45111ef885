/// The canonical bytes of a key, for the store: one encoding a key, so that equal bytes are equal keys.
///
/// A version byte, a layer byte, then the members in fixed order, each behind its length (4 bytes, big-endian); an absent
/// member is the length 2^32 − 1. Decoding refuses everything that encoding would not have written.
public enum KeyCodec {
    /// Why a decoder refuses the bytes. `notCanonical`: encoding would have written them otherwise.
    public enum Fault: Error, Equatable, Sendable {
        case truncated, trailingBytes, unknownVersion, otherLayer, notCanonical, tooLong
    }

    /// Bytes of the longest member; keys of the configuration and of challenges stay far below.
    static let memberLimit = 64 * 1024

    static let version: UInt8 = 1
    static let durable: UInt8 = 1
    static let session: UInt8 = 2
    static let access: UInt8 = 3

    /// The bytes that `durableKey` reads.
    public static func encode(_ key: DurableKey) -> [UInt8] {
        var writer = ByteWriter(version, durable)
        writer.put(key.digest.bytes)
        writer.put(key.issuer)
        writer.put(key.part.bytes)
        return writer.bytes
    }

    /// The bytes that `sessionKey` reads.
    public static func encode(_ key: SessionKey) -> [UInt8] {
        var writer = ByteWriter(version, session)
        writer.put(key.digest.bytes)
        writer.put(key.issuer)
        writer.put(optional: key.subject)
        return writer.bytes
    }

    /// The bytes that `accessKey` reads.
    public static func encode(_ key: AccessKey) -> [UInt8] {
        var writer = ByteWriter(version, access)
        writer.put(key.digest.bytes)
        writer.put(key.origin)
        writer.put(key.realm.name.bytes)
        writer.put(key.scopes)
        writer.put(optional: key.audience)
        writer.put(optional: key.resource)
        writer.put(optional: key.subject)
        return writer.bytes
    }

    /// - Throws: `Fault` for anything that `encode` does not write.
    public static func durableKey(_ bytes: [UInt8]) throws(Fault) -> DurableKey {
        var reader = try ByteReader(bytes, version, durable)
        let key = DurableKey(
            digest: try reader.digest(), issuer: try reader.origin(), part: ByteString(try reader.member()))
        try reader.end()
        return key
    }

    /// - Throws: `Fault` for anything that `encode` does not write.
    public static func sessionKey(_ bytes: [UInt8]) throws(Fault) -> SessionKey {
        var reader = try ByteReader(bytes, version, session)
        let key = SessionKey(
            digest: try reader.digest(), issuer: try reader.origin(), subject: try reader.optional())
        try reader.end()
        return key
    }

    /// - Throws: `Fault` for anything that `encode` does not write.
    public static func accessKey(_ bytes: [UInt8]) throws(Fault) -> AccessKey {
        var reader = try ByteReader(bytes, version, access)
        let key = AccessKey(
            digest: try reader.digest(), origin: try reader.origin(), realm: Realm(ByteString(try reader.member())),
            scopes: try reader.scopes(), audience: try reader.optional(), resource: try reader.optional(),
            subject: try reader.optional())
        try reader.end()
        return key
    }
}

/// Writes length-prefixed members.
struct ByteWriter {
    static let absent = UInt32.max

    private(set) var bytes: [UInt8]

    init(_ head: UInt8...) { bytes = head }

    mutating func put(_ value: UInt32) {
        for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
    }

    mutating func put(_ value: UInt64) {
        put(UInt32(truncatingIfNeeded: value >> 32))
        put(UInt32(truncatingIfNeeded: value))
    }

    mutating func put(_ member: [UInt8]) {
        put(UInt32(clamping: member.count))
        bytes += member
    }

    mutating func put(optional member: ByteString?) {
        if let member { put(member.bytes) } else { put(Self.absent) }
    }

    mutating func put(_ origin: Origin) {
        put(origin.scheme.bytes)
        put(origin.host.bytes)
        put(UInt32(origin.port))
    }

    mutating func put(_ scopes: ScopeSet) {
        put(UInt32(clamping: scopes.scopes.count))
        for scope in scopes.scopes { put(scope.bytes) }
    }
}

/// Reads what `ByteWriter` wrote and refuses the rest.
struct ByteReader {
    private let bytes: [UInt8]
    private var position = 2

    init(_ bytes: [UInt8], _ version: UInt8, _ layer: UInt8) throws(KeyCodec.Fault) {
        guard bytes.count >= 2 else { throw .truncated }
        guard bytes[0] == version else { throw .unknownVersion }
        guard bytes[1] == layer else { throw .otherLayer }
        self.bytes = bytes
    }

    mutating func number() throws(KeyCodec.Fault) -> UInt32 {
        guard bytes.count - position >= 4 else { throw .truncated }
        defer { position += 4 }
        return bytes[position..<position + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }

    mutating func longNumber() throws(KeyCodec.Fault) -> UInt64 {
        let high = UInt64(try number())
        return high << 32 | UInt64(try number())
    }

    private mutating func take(_ count: UInt32) throws(KeyCodec.Fault) -> [UInt8] {
        guard count <= UInt32(KeyCodec.memberLimit) else { throw .tooLong }
        guard bytes.count - position >= Int(count) else { throw .truncated }
        defer { position += Int(count) }
        return Array(bytes[position..<position + Int(count)])
    }

    mutating func member() throws(KeyCodec.Fault) -> [UInt8] { try take(try number()) }

    mutating func optional() throws(KeyCodec.Fault) -> ByteString? {
        let count = try number()
        return count == ByteWriter.absent ? nil : ByteString(try take(count))
    }

    mutating func digest() throws(KeyCodec.Fault) -> IdentityDigest {
        guard let digest = IdentityDigest(try member()) else { throw .notCanonical }
        return digest
    }

    mutating func origin() throws(KeyCodec.Fault) -> Origin {
        let scheme = ByteString(try member())
        let host = ByteString(try member())
        guard let port = UInt16(exactly: try number()) else { throw .notCanonical }
        let origin = Origin(scheme: scheme, host: host, port: port)
        guard origin.scheme == scheme, origin.host == host else { throw .notCanonical }
        return origin
    }

    mutating func scopes() throws(KeyCodec.Fault) -> ScopeSet {
        let count = try number()
        // Each scope takes four bytes at least; an absurd count is refused before anything is reserved for it.
        guard Int(count) <= (bytes.count - position) / 4 else { throw .truncated }
        var scopes: [ByteString] = []
        for _ in 0..<count { scopes.append(ByteString(try member())) }
        let set = ScopeSet(scopes)
        guard set.scopes == scopes else { throw .notCanonical }
        return set
    }

    func end() throws(KeyCodec.Fault) {
        guard position == bytes.count else { throw .trailingBytes }
    }
}
