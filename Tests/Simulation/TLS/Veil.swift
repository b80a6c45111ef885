import TLS

/// TLS between a wire and whoever speaks over it.
///
/// Nothing in it takes time: what it has to say goes on its way at once, and what is said before the handshake's end goes when it has ended.
final class Veil: TLSWire {
    private unowned let wire: Wire
    private var tls: TLSConnection!
    /// Octets of records that were not read yet.
    private var arrived: [UInt8] = []
    private var unsaid: [UInt8] = []
    private(set) var isEstablished = false
    /// The protocol that ALPN has agreed on.
    var protocolName: String? { tls.negotiatedProtocol }

    /// A caller's.
    init(_ wire: Wire, client: TLSClientConfiguration, of name: String) throws {
        self.wire = wire
        tls = try TLSConnection(client: client, serverName: name, wire: self)
    }

    /// A server's.
    init(_ wire: Wire, server: TLSServerConfiguration) throws {
        self.wire = wire
        tls = try TLSConnection(server: server, wire: self)
    }

    // MARK: - Steps

    /// Goes on with the handshake.
    /// - Returns: false where it has failed.
    func shake() -> Bool {
        guard !isEstablished else { return true }
        switch tls.handshake() {
        case .wantsRead, .wantsWrite: return true
        case .failed: return false
        case .done:
            isEstablished = true
            let words = unsaid
            unsaid = []
            say(words)
            return true
        }
    }

    func say(_ words: [UInt8]) {
        guard isEstablished else {
            unsaid += words
            return
        }
        var rest = words[...]
        while !rest.isEmpty {
            guard case .bytes(let count) = rest.withUnsafeBytes({ tls.write($0) }) else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// - Returns: what was said in these octets; nil where they are no TLS.
    func hear(_ octets: [UInt8]) -> [UInt8]? {
        arrived += octets
        guard shake() else { return nil }
        guard isEstablished else { return [] }
        var words: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            switch buffer.withUnsafeMutableBytes({ tls.read(into: $0) }) {
            case .bytes(let count): words += buffer.prefix(count)
            case .wantsRead, .wantsWrite, .closed: return words
            case .truncated, .failed: return nil
            }
        }
    }

    /// No more is said.
    func finish() { tls.shutdown() }

    // MARK: - Records

    func receive(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard !arrived.isEmpty else { return -11 }
        let count = min(buffer.count, arrived.count)
        buffer.copyBytes(from: arrived.prefix(count))
        arrived.removeFirst(count)
        return count
    }

    func transmit(_ octets: UnsafeRawBufferPointer) -> Int {
        wire.sendBare(Array(octets))
        return octets.count
    }
}
