internal import FoundationEssentials
internal import Octets

/// The secret that a change over the admin address must bring: as Bearer (RFC 6750 §2.1), or as the password of Basic (RFC 7617), which is
/// what browsers ask for.
struct AdminToken: Sendable {
    /// nil when the secret cannot be read now.
    let read: @Sendable () -> [UInt8]?

    enum Verdict: Sendable { case admitted, refused, unreadable }

    /// - Parameter authorization: the field's value as received.
    func verdict(on authorization: String?) -> Verdict {
        guard let authorization else { return .refused }
        guard let received = Self.credential(in: authorization) else { return .refused }
        guard var expected = read(), !expected.isEmpty else { return .unreadable }
        defer { expected.wipe() }
        return Self.isEqual(received, expected) ? .admitted : .refused
    }

    static func isBasic(_ authorization: String?) -> Bool {
        authorization?.split(separator: " ").first?.lowercased() == "basic"
    }

    private static func credential(in authorization: String) -> [UInt8]? {
        let parts = authorization.split(separator: " ", maxSplits: 1)
        guard parts.count == 2 else { return nil }
        let value = parts[1].drop { $0 == " " }
        switch parts[0].lowercased() {
        case "bearer": return Array(value.utf8)
        case "basic":
            guard let pair = Data(base64Encoded: String(value)), let colon = pair.firstIndex(of: UInt8(ascii: ":"))
            else { return nil }
            return Array(pair[pair.index(after: colon)...])
        default: return nil
        }
    }

    /// The comparison's duration depends on the received length alone: neither the index of the first difference nor the secret's length
    /// shows.
    static func isEqual(_ received: [UInt8], _ expected: [UInt8]) -> Bool {
        guard !expected.isEmpty else { return false }
        var difference = UInt64(UInt(bitPattern: received.count ^ expected.count))
        var index = 0
        for byte in received {
            difference |= UInt64(byte ^ expected[index])
            index += 1
            if index == expected.count { index = 0 }
        }
        return difference == 0
    }
}
