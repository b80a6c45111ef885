internal import HTTP1
internal import Octets
internal import Reactor
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

// MARK: - In requests

extension CallerConnection {
    /// Looks for the token where this listener's callers put it: a proxy's in `Proxy-Authorization` (RFC 9110 §11.7.2). What came through a
    /// CONNECT that we have opened was admitted with it.
    func admitToken(_ token: CallerToken) -> Fault? {
        let isProxy = listener.forward.mode == .forward
        if isProxy, peer.authority != nil { return nil }
        let refusal = Fault(isProxy ? .proxyTokenRefused : .callerTokenRefused)
        let wanted: KnownField = isProxy ? .proxyAuthorization : .authorization
        var found: ByteRange?
        for index in 0..<data.requestHead.fieldCount {
            let field = data.requestHead[index]
            guard field.known == wanted else { continue }
            // Which of two counts must not be a matter of interpretation.
            guard found == nil else { return refusal }
            found = field.value
        }
        guard let found else { return refusal }
        let value = input[found]
        guard let blank = value.firstIndex(of: 0x20) else { return refusal }
        let scheme = UnsafeRawBufferPointer(rebasing: value[..<blank])
        guard let start = value[blank...].firstIndex(where: { $0 != 0x20 }) else { return refusal }
        let rest = UnsafeRawBufferPointer(rebasing: value[start...])
        let verdict: Bool?
        if equalsIgnoringCase(scheme, Self.bearer) {
            verdict = token.admits(rest)
        } else if equalsIgnoringCase(scheme, Self.basic), rest.count <= Self.longestBasic {
            // The stack is used for this many bytes at most; more would come from the heap.
            verdict = withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 1) { buffer in
                defer { buffer.wipe() }
                guard let count = Base64.decode(rest, into: buffer),
                    let colon = buffer[..<count].firstIndex(of: 0x3a)
                else { return false }
                // Whatever the user is called: the password is what counts.
                return token.admits(UnsafeRawBufferPointer(rebasing: buffer[(colon + 1)..<count]))
            }
        } else {
            verdict = false
        }
        switch verdict {
        case true?: return nil
        case false?: return refusal
        case nil: return Fault(.secretUnreadable, retryAfter: 1, detail: "callers.token cannot be read")
        }
    }

    private static let bearer = Array("bearer".utf8)
    private static let basic = Array("basic".utf8)
    /// Characters; decoded it is shorter than 1024 bytes.
    private static let longestBasic = 1360
}
