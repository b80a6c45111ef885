import Reactor
import ScriptedKernel
import Synchronization

/// Servers that a test plays by host: each is told what it says to whoever sends it a whole head.
final class CheckedServers {
    enum Word: Sendable {
        case says(String)
        /// Says it, and that nothing more comes.
        case endsWith(String)
        case silent
    }

    private(set) var peers: [Peer] = []
    private(set) var requests: [(host: String, text: String)] = []
    /// The answers of hosts; `otherwise` for one without an answer of its own.
    var words: [String: Word] = [:]
    var otherwise = Word.says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    init(on kernel: FakeKernel) {
        kernel.connected = { [unowned self] peer in
            peers.append(peer)
            peer.touched = { [unowned self, unowned peer] in hear(peer) }
        }
    }

    private func hear(_ peer: Peer) {
        let text = peer.receivedText
        guard text.contains("\r\n\r\n") else { return }
        peer.discard()
        let host = peer.address?.host ?? ""
        requests.append((host, text))
        switch words[host] ?? otherwise {
        case .says(let answer): peer.send(answer)
        case .endsWith(let answer):
            peer.send(answer)
            peer.finish()
        case .silent: break
        }
    }

    func asked(_ host: String) -> Int { requests.count { $0.host == host } }
}

/// Names whose addresses a test changes. An unknown name is not found.
final class ChangingNames: NameResolver {
    private let known = Mutex<[String: [SocketAddress]]>([:])

    func set(_ host: String, _ addresses: [String]) {
        known.withLock { $0[host] = addresses.compactMap { SocketAddress(parsing: $0) } }
    }

    func resolve(host: String, port: UInt16, deliver: @escaping Delivery) {
        let found = known.withLock { $0[host] } ?? []
        deliver(found.isEmpty ? .failure(.notFound) : .success(found))
    }
}
