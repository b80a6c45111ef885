internal import Glibc

/// The secret that a change over the admin address must bring (RFC 6750 §2.1).
struct AdminToken: Sendable {
    /// nil when the secret cannot be read now.
    let read: @Sendable () -> [UInt8]?

    enum Verdict: Sendable { case admitted, refused, unreadable }

    /// - Parameter authorization: the field's value as received.
    func verdict(on authorization: String?) -> Verdict {
        guard let authorization else { return .refused }
        let parts = authorization.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return .refused }
        guard var expected = read(), !expected.isEmpty else { return .unreadable }
        defer {
            expected.withUnsafeMutableBytes { if let start = $0.baseAddress { explicit_bzero(start, $0.count) } }
        }
        let received = Array(parts[1].drop { $0 == " " }.utf8)
        return Self.isEqual(received, expected) ? .admitted : .refused
    }

    /// Its duration depends on the received length alone: neither the place of the first difference nor the secret's length shows.
    static func isEqual(_ received: [UInt8], _ expected: [UInt8]) -> Bool {
        guard !expected.isEmpty else { return false }
        var difference = UInt64(UInt(bitPattern: received.count ^ expected.count))
        var place = 0
        for byte in received {
            difference |= UInt64(byte ^ expected[place])
            place += 1
            if place == expected.count { place = 0 }
        }
        return difference == 0
    }
}
