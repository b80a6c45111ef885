internal import COpenSSL
internal import Glibc
internal import Synchronization

/// The keys that seal session tickets (RFC 8446 section 4.6.1, RFC 5077): one set for all loops, so that a caller resumes wherever it
/// lands. The newest seals; two older ones still open, and what they open is sealed anew.
///
/// Whoever learns a key can read the TLS 1.2 sessions resumed under it, so none lives longer than three periods, and its bytes are
/// wiped. Each lies on a page of its own, out of core dumps and, where `mlock` is allowed, out of swap.
public final class TicketKeys: Sendable {
    /// Nanoseconds for which one key seals.
    static let period: UInt64 = 3_600_000_000_000
    /// Keys that open, the sealing one among them.
    static let kept = 3
    /// Seconds for which a ticket is good: as long as its key opens.
    static let lifetime = Int(2 * period / 1_000_000_000)

    /// A lock, held for the copy of a reference: taken by handshakes, never by requests.
    private let state: Mutex<State>

    private struct State {
        /// The newest first, never empty.
        var keys: [TicketKey]
        /// When the newest began, by the first clock that was shown to us.
        var began: UInt64?
    }

    /// - Throws: `.system` when memory is short.
    public init() throws(TLSFault) {
        state = Mutex(State(keys: [try TicketKey()], began: nil))
    }

    /// Makes a new key when the newest has had its time, and forgets those that have had theirs.
    /// - Parameter now: nanoseconds of one monotonic clock.
    /// - Returns: whether a new key seals from now on.
    @discardableResult
    public func advance(now: UInt64) -> Bool {
        state.withLock { state in
            guard let began = state.began else {
                state.began = now
                return false
            }
            let periods = now < began ? 0 : (now - began) / Self.period
            guard periods > 0 else { return false }
            // Without memory for a new one the old one goes on; the next look tries again.
            guard let fresh = try? TicketKey() else { return false }
            // A sleep of many periods ends every key.
            let left = max(0, Self.kept - Int(clamping: periods))
            state.keys = [fresh] + state.keys.prefix(left)
            state.began = began + periods * Self.period
            return true
        }
    }

    /// Names of the keys that open, the sealing one first: public, they stand in every ticket.
    public var names: [[UInt8]] { state.withLock { $0.keys.map(\.name) } }

    // MARK: - For OpenSSL

    func install(in context: OpaquePointer) {
        SSL_CTX_set_timeout(context, Self.lifetime)
        SSL_CTX_set_tlsext_ticket_key_evp_cb(context) { connection, name, vector, cipher, code, seals in
            guard let connection, let name, let vector, let cipher, let code, let owner = cardea_owner(connection),
                // The callback runs inside a call made by the owner, which is therefore alive.
                let tickets = Unmanaged<TLSConnection>.fromOpaque(owner).takeUnretainedValue().server?.tickets
            else { return 0 }
            if seals == 1 { return tickets.newest.seal(name, vector, cipher, code) }
            guard let (key, isNewest) = tickets.find(name) else { return 0 }
            guard key.open(vector, cipher, code) else { return -1 }
            return isNewest ? 1 : 2
        }
    }

    private var newest: TicketKey { state.withLock { $0.keys[0] } }

    private func find(_ name: UnsafePointer<UInt8>) -> (key: TicketKey, isNewest: Bool)? {
        state.withLock { state in
            let index = state.keys.firstIndex {
                $0.name.elementsEqual(UnsafeBufferPointer(start: name, count: TicketKey.nameSize))
            }
            return index.map { (state.keys[$0], $0 == 0) }
        }
    }
}

/// A single key. Immutable, so it may be used by a loop that has it while another forgets it; the last one wipes it.
private final class TicketKey: @unchecked Sendable {
    static let nameSize = 16
    private static let keySize = 32

    /// Says in a ticket which key it is; random, and tells nothing of the rest.
    let name: [UInt8]
    /// The cipher's key, then the code's.
    private let page: KeyPage

    init() throws(TLSFault) {
        guard let page = KeyPage() else { throw .system(errno) }
        SystemRandom.fill(UnsafeMutableRawBufferPointer(start: page.start, count: 2 * Self.keySize))
        self.page = page
        name = SystemRandom().bytes(Self.nameSize)
    }

    private var cipherKey: UnsafePointer<UInt8> { UnsafePointer(page.start.assumingMemoryBound(to: UInt8.self)) }
    private var codeKey: UnsafePointer<UInt8> { cipherKey + Self.keySize }

    /// In the convention of OpenSSL's callback: 1 is good, anything else is none.
    func seal(
        _ name: UnsafeMutablePointer<UInt8>, _ vector: UnsafeMutablePointer<UInt8>, _ cipher: OpaquePointer,
        _ code: OpaquePointer
    ) -> Int32 {
        SystemRandom.fill(UnsafeMutableRawBufferPointer(start: vector, count: 16))
        name.update(from: self.name, count: Self.nameSize)
        guard EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), nil, cipherKey, vector) == 1,
            cardea_ticket_code(code, codeKey) == 1
        else { return -1 }
        return 1
    }

    func open(_ vector: UnsafePointer<UInt8>, _ cipher: OpaquePointer, _ code: OpaquePointer) -> Bool {
        EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), nil, cipherKey, vector) == 1
            && cardea_ticket_code(code, codeKey) == 1
    }
}
