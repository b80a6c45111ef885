internal import Synchronization
internal import TLS

/// The token that callers of a route have to bring (`callers.token`), read from its secret again when that changes.
///
/// Loops compare digests: that takes the same time for every wrong token, whatever its length, and needs neither a lock nor memory. The
/// four words of the digest change one by one, so a reader takes them only where the version before and after is the same even number.
package final class CallerToken: Sendable {
    private let read: @Sendable (_ use: (UnsafeRawBufferPointer) -> Void) throws -> Void
    private let version = Atomic<UInt64>(0)
    private let first = Atomic<UInt64>(0)
    private let second = Atomic<UInt64>(0)
    private let third = Atomic<UInt64>(0)
    private let fourth = Atomic<UInt64>(0)
    /// Readings take turns.
    private let fault = Mutex<String?>(nil)

    /// - Parameter read: lends the secret to its argument; blocks.
    package init(read: @escaping @Sendable (_ use: (UnsafeRawBufferPointer) -> Void) throws -> Void) {
        self.read = read
    }

    /// Blocks. What cannot be read leaves the token before in force.
    /// - Returns: a new fault.
    package func reload() -> String? {
        var digest: Words?
        let result = Result { try read { digest = $0.isEmpty ? nil : Self.digest($0) } }
        return fault.withLock { known in
            switch result {
            case .success:
                guard let digest else {
                    defer { known = "empty" }
                    return known == "empty" ? nil : "empty"
                }
                known = nil
                put(digest)
                return nil
            case .failure(let error):
                defer { known = "\(error)" }
                return known == "\(error)" ? nil : "\(error)"
            }
        }
    }

    private func put(_ digest: Words) {
        version.add(1, ordering: .sequentiallyConsistent)
        first.store(digest.0, ordering: .sequentiallyConsistent)
        second.store(digest.1, ordering: .sequentiallyConsistent)
        third.store(digest.2, ordering: .sequentiallyConsistent)
        fourth.store(digest.3, ordering: .sequentiallyConsistent)
        version.add(1, ordering: .sequentiallyConsistent)
    }

    /// Whether it is the token; nil while none could be read.
    func admits(_ token: UnsafeRawBufferPointer) -> Bool? {
        let given = Self.digest(token)
        // A change is over in an instant; who meets three of them is asked to try again.
        for _ in 0..<3 {
            let before = version.load(ordering: .sequentiallyConsistent)
            let difference =
                (first.load(ordering: .sequentiallyConsistent) ^ given.0)
                | (second.load(ordering: .sequentiallyConsistent) ^ given.1)
                | (third.load(ordering: .sequentiallyConsistent) ^ given.2)
                | (fourth.load(ordering: .sequentiallyConsistent) ^ given.3)
            guard version.load(ordering: .sequentiallyConsistent) == before, before & 1 == 0 else { continue }
            return before == 0 ? nil : difference == 0
        }
        return nil
    }

    private typealias Words = (UInt64, UInt64, UInt64, UInt64)

    private static func digest(_ bytes: UnsafeRawBufferPointer) -> Words {
        withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { buffer in
            sha256(bytes, into: buffer)
            func word(_ index: Int) -> UInt64 { buffer.load(fromByteOffset: index * 8, as: UInt64.self) }
            return (word(0), word(1), word(2), word(3))
        }
    }
}
