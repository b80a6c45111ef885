internal import Octets
public import TLS

/// A thing of the fleet as the shared server sees it: 32 bytes of a keyed hash, in hexadecimal.
public struct SharedName: Hashable, Sendable {
    let text: String

    init(_ tag: [UInt8]) { text = Hexadecimal.encode(tag) }

    /// Out of news; nil for what is no name.
    init?(_ text: Substring) {
        guard text.utf8.count == 64, text.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
        else { return nil }
        self.text = String(text)
    }
}

/// The kinds of things that a fleet shares. Each kind's word is hashed with its keys, so that equal keys of two kinds have nothing in common;
/// a case may be renamed, its word may not.
public enum SharedKind: String, Sendable {
    case token = "token"
    case session = "session"
    /// The lock of one login session. The spelling is hashed into names that gateways of other versions make, too.
    case lock = "lane"
    case durable = "durable"
    case account = "account"
    case secret = "secret"
}

/// Names and seals for the shared server, out of the keys of `store.key` alone: the server sees neither names of identities, scopes or
/// users nor values, and a value that is copied to another name does not open.
///
/// Names are made with the last key of the list. A key is replaced by putting the new one in front on one gateway after the other: all of
/// them go on to agree on names, and open each other's values, until the old key is taken away.
public struct FleetKeys: Sendable {
    let ring: SealingKeyRing
    private let naming: SealingKey

    /// - Throws: `.badKey`, `.unavailable`.
    public init(_ ring: SealingKeyRing) throws(SealingFault) {
        self.ring = ring
        guard let last = ring.keys.last else { throw .badKey }
        naming = try SealingKey(bytes: last.tag(Array("cardea fleet names 1".utf8)))
    }

    /// The name by which gateways with the same key find the value; it tells nothing of `key`.
    public func name(_ kind: SharedKind, _ key: [UInt8]) -> SharedName {
        SharedName(naming.tag(Array(kind.rawValue.utf8) + [0] + key))
    }

    /// Tells one value from another without telling anything of either: 16 hexadecimal digits.
    public func identity(of value: [UInt8]) -> String {
        String(SharedName(naming.tag(Array("value".utf8) + [0] + value)).text.prefix(16))
    }

    /// Before every key and the channel, so that two fleets may have one server.
    var prefix: String { "cardea:\(SharedName(naming.tag(Array("fleet".utf8))).text.prefix(16)):" }

    func seal(_ value: [UInt8], for name: SharedName) throws(SealingFault) -> [UInt8] {
        try ring.seal(value, boundTo: Array(name.text.utf8))
    }

    func open(_ sealed: [UInt8], for name: SharedName) throws(SealingFault) -> [UInt8] {
        try ring.open(sealed, boundTo: Array(name.text.utf8))
    }
}
