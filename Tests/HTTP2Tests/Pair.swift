import HTTP2

/// Two connections mouth to mouth: what one sends the other reads, without a socket.
final class Pair {
    let client: HTTP2Connection
    let server: HTTP2Connection
    let blocks: CountedBlocks
    var now: UInt64 = 1
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 66 * 1024, alignment: 16)

    init(blocks limit: Int = 1000, limits: HTTP2Limits = HTTP2Limits()) {
        blocks = CountedBlocks(limit: limit)
        client = HTTP2Connection(role: .client, limits: limits, blocks: blocks)!
        server = HTTP2Connection(role: .server, limits: limits, blocks: blocks)!
    }

    deinit { buffer.deallocate() }

    /// Carries bytes both ways until neither side has more.
    /// - Returns: bytes that passed from server to client.
    @discardableResult
    func exchange() -> Int {
        var answered = 0
        while true {
            let sent = carry(client, to: server)
            let got = carry(server, to: client)
            answered += got
            if sent + got == 0 { return answered }
        }
    }

    /// What the server has sent and the client has not heard yet.
    private var onItsWay: [UInt8] = []

    /// Carries bytes to the server alone; what it says meanwhile stays on its way until `arrive`.
    func carryToServer() {
        while carry(client, to: server) > 0 {}
        while case let count = server.send(into: buffer), count > 0 { onItsWay += buffer[..<count] }
    }

    func arrive() {
        onItsWay.withUnsafeBytes { _ = client.receive($0, now: now) }
        onItsWay.removeAll()
    }

    private func carry(_ from: HTTP2Connection, to: HTTP2Connection) -> Int {
        let count = from.send(into: buffer)
        if count > 0 { _ = to.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]), now: now) }
        return count
    }

    func open(_ head: String, ended: Bool, secret: String = "", acceptsTrailers: Bool = false) -> HTTP2Stream? {
        var bytes = Array(head.utf8)
        return bytes.withUnsafeMutableBytes {
            client.open(
                request: $0, scheme: "https", secretName: Array(secret.utf8), secretTarget: false,
                acceptsTrailers: acceptsTrailers, ended: ended)
        }
    }
}

extension HTTP2Connection {
    func takeOpened() -> [HTTP2Stream] {
        var streams: [HTTP2Stream] = []
        while let stream = nextOpened() { streams.append(stream) }
        return streams
    }
}

final class CountedBlocks: BlockSource {
    private let limit: Int
    private(set) var taken = 0

    init(limit: Int) { self.limit = limit }

    func take() -> UnsafeMutableRawBufferPointer? {
        guard taken < limit else { return nil }
        taken += 1
        return .allocate(byteCount: 16 * 1024, alignment: 16)
    }

    func give(_ block: UnsafeMutableRawBufferPointer) {
        taken -= 1
        block.deallocate()
    }
}

extension HTTP2Stream {
    func readAll() -> String {
        var text: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 5000)
        while case .bytes(let count) = piece.withUnsafeMutableBytes({ read(into: $0) }) { text += piece[..<count] }
        return String(decoding: text, as: UTF8.self)
    }

    func respond(_ head: String, ended: Bool) -> Bool {
        var bytes = Array(head.utf8)
        return bytes.withUnsafeMutableBytes { send(response: $0, ended: ended) }
    }

    func write(_ text: String) -> Bool { Array(text.utf8).withUnsafeBytes { write($0) } }
}
