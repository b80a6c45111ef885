internal import Octets
internal import TLS

/// A user as a record names him: the same for all records of one `audit.subject_key`, and nobody's without it.
package struct SubjectTag: Sendable, Equatable {
    /// 32 hexadecimal digits.
    package let digits: [UInt8]

    fileprivate init(_ code: [UInt8]) { digits = Hexadecimal.octets(of: code.prefix(16)) }
}

/// The fixed key under which names of users become tags (`audit.subject_key`). Wiped when it goes.
package final class SubjectKey: Sendable {
    // Written once in `init`, read-only until `deinit`: nothing to race with.
    private nonisolated(unsafe) let octets: UnsafeMutableRawBufferPointer

    /// Octets that a key has at least: fewer can be guessed, and with them every name.
    package static let least = 16

    /// Copies the octets; nil where there are fewer than 16.
    package init?(_ source: UnsafeRawBufferPointer) {
        guard source.count >= Self.least else { return nil }
        octets = .allocate(byteCount: source.count, alignment: 8)
        octets.copyMemory(from: source)
    }

    deinit {
        octets.wipe()
        octets.deallocate()
    }

    /// The first 16 octets of HMAC-SHA-256(key, "cardea audit subject 1" ‖ name).
    package func tag(of subject: some Sequence<UInt8>) -> SubjectTag {
        SubjectTag(keyedHash(key: UnsafeRawBufferPointer(octets), Array("cardea audit subject 1".utf8) + subject))
    }
}
