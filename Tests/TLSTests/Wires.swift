import COpenSSL
import Glibc
import Synchronization

@testable import TLS

/// Two connected sockets, and the steps that drive TLS over them without a clock.
struct Wires: ~Copyable {
    private(set) var one: Int32
    private(set) var two: Int32

    init() {
        var pair: [Int32] = [-1, -1]
        socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0, &pair)
        (one, two) = (pair[0], pair[1])
    }

    deinit {
        close(one)
        if two >= 0 { close(two) }
    }

    mutating func closeTwo() {
        close(two)
        two = -1
    }
}

/// Both handshakes to their ends, by turns. What failed first is what the test is about.
func shake(_ client: TLSConnection, _ server: TLSConnection) -> (client: TLSProgress, server: TLSProgress) {
    var results = (client: TLSProgress.wantsRead, server: TLSProgress.wantsRead)
    for _ in 0..<20 {
        results.client = client.handshake()
        results.server = server.handshake()
        let ended = { (progress: TLSProgress) in progress != .wantsRead && progress != .wantsWrite }
        if ended(results.client), ended(results.server) { break }
    }
    return results
}

/// A wire over a real socket.
private final class Socket: TLSWire, Sendable {
    /// Connections do not hold their wires, so each lives as long as the process.
    private static let all = Mutex<[Socket]>([])

    private let descriptor: Int32

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        Self.all.withLock { $0.append(self) }
    }

    func receive(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
        return count >= 0 ? count : Int(-errno)
    }

    func transmit(_ bytes: UnsafeRawBufferPointer) -> Int {
        let count = Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        return count >= 0 ? count : Int(-errno)
    }
}

extension TLSConnection {
    convenience init(client: TLSClientConfiguration, serverName: String, descriptor: Int32) throws(TLSFault) {
        try self.init(client: client, serverName: serverName, wire: Socket(descriptor))
    }

    convenience init(server: TLSServerConfiguration, descriptor: Int32) throws(TLSFault) {
        try self.init(server: server, wire: Socket(descriptor))
    }

    /// The version in use, after the handshake.
    var version: TLSVersion? { [.v1_2, .v1_3].first { $0.number == SSL_version(handle) } }

    /// The handshake resumed an earlier session.
    var resumed: Bool { SSL_session_reused(handle) == 1 }

    func send(_ text: String) -> TLSIO { Array(text.utf8).withUnsafeBytes { write($0) } }

    func receive(_ count: Int = 4096) -> (TLSIO, String) {
        var buffer = [UInt8](repeating: 0, count: count)
        let result = buffer.withUnsafeMutableBytes { read(into: $0) }
        guard case .bytes(let got) = result else { return (result, "") }
        return (result, String(decoding: buffer.prefix(got), as: UTF8.self))
    }

    /// Over a socket to another process: waits in `poll` for what TLS wants.
    func shakeAlone(_ descriptor: Int32) -> TLSProgress {
        while true {
            switch handshake() {
            case .wantsRead: waitFor(descriptor, Int16(POLLIN))
            case .wantsWrite: waitFor(descriptor, Int16(POLLOUT))
            case let ended: return ended
            }
        }
    }

    func receiveAlone(_ descriptor: Int32) -> (TLSIO, String) {
        while true {
            let (result, text) = receive()
            guard result == .wantsRead else { return (result, text) }
            waitFor(descriptor, Int16(POLLIN))
        }
    }

    private func waitFor(_ descriptor: Int32, _ events: Int16) {
        var wanted = pollfd(fd: descriptor, events: events, revents: 0)
        poll(&wanted, 1, 10_000)
    }
}

extension TLSServerConfiguration {
    /// A listener's, that seals its sessions itself.
    convenience init(
        certificate: [UInt8], key: [UInt8], alpn: [String] = [], maximumVersion: TLSVersion = .v1_3,
        callerAuthorities: [UInt8]? = nil
    ) throws {
        try self.init(
            pair: ClientCertificate(certificatePEM: certificate, keyPEM: key), alpn: alpn,
            callerAuthorities: callerAuthorities, sessionContext: Array("test".utf8), tickets: TicketKeys(),
            staple: nil)
        cardea_ctx_set_maximum_version(handle, maximumVersion.number)
    }
}

extension TLSClientConfiguration {
    /// Sessions that can be resumed with a server of this name.
    func sessionCount(for serverName: String) throws -> Int { sessions.count(for: try ServerName(serverName).text) }
}

/// A non-blocking socket to a program on loopback.
func dial(_ port: UInt16) -> Int32 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    _ = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    }
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    return descriptor
}
