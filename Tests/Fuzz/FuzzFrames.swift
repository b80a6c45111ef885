@testable import HTTP2

private let limits: HTTP2Limits = {
    var limits = HTTP2Limits()
    limits.headerSize = 4096
    limits.streams = 8
    limits.streamWindow = 16 * 1024
    limits.connectionWindow = 64 * 1024
    return limits
}()

private let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0]

/// Any bytes as frames, to a server's connection and to a client's with requests on their way: nothing is read that was not sent, memory goes
/// back, no head holds a line that its peer did not send as a field.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzFrames(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard count > 2 else { return 0 }
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    let blocks = Blocks()
    do {
        let peer = Peer(role: bytes[0] & 1 == 0 ? .server : .client, blocks: blocks, habits: bytes[0] >> 1)
        peer.take(bytes[2...], piece: Int(bytes[1]) + 1)
    }
    precondition(blocks.taken == 0, "a block was not given back")
    return 0
}

/// A connection and whoever sits behind it, who reads, answers and gives up as the input's first byte says.
private final class Peer: HTTP2StreamUser {
    private let connection: HTTP2Connection
    private let blocks: Blocks
    private let habits: UInt8
    private var streams: [HTTP2Stream] = []
    private var piece = [UInt8](repeating: 0, count: 700)
    private let output = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 * 1024, alignment: 1)

    init(role: HTTP2Connection.Role, blocks: Blocks, habits: UInt8) {
        guard let connection = HTTP2Connection(role: role, limits: limits, blocks: blocks) else {
            // Without a connection nothing is tried, and such a run must not end well.
            preconditionFailure("no memory for a connection")
        }
        self.connection = connection
        self.blocks = blocks
        self.habits = habits
    }

    deinit { output.deallocate() }

    func take(_ bytes: ArraySlice<UInt8>, piece size: Int) {
        if connection.role == .server {
            _ = give(preface[...], now: 1)
        } else {
            for ended in [true, false, true] { open(ended: ended) }
        }
        var rest = bytes
        var now: UInt64 = 1
        while !rest.isEmpty {
            // Long enough that no input is only the flood gauge's.
            now += 50_000_000
            guard give(rest.prefix(size), now: now) else { break }
            rest = rest.dropFirst(size)
        }
        if habits & 1 != 0 { connection.goAway() }
        send()
        connection.abandon(.cancel)
        connection.tellUsers()
        for stream in streams {
            read(stream)
            stream.cancel()
        }
        precondition(connection.openStreams == 0)
        streams.removeAll()
    }

    private func give(_ bytes: ArraySlice<UInt8>, now: UInt64) -> Bool {
        let goesOn = bytes.withUnsafeBytes { connection.receive($0, now: now) }
        while let stream = connection.nextOpened() {
            precondition(stream.hasHead)
            stream.user = self
            streams.append(stream)
            if stream.refusal == nil { streamReady(stream) }
        }
        connection.tellUsers()
        send()
        precondition(connection.openStreams <= limits.streams + 1)
        return goesOn && !connection.isOver
    }

    private func send() {
        while true {
            let count = connection.send(into: output)
            precondition(count >= 0 && count <= output.count)
            if count == 0 { return }
            connection.tellUsers()
        }
    }

    private func open(ended: Bool) {
        var head = Array("POST /a HTTP/1.1\r\nHost: h\r\nAuthorization: secret\r\n\r\n".utf8)
        let stream = head.withUnsafeMutableBytes {
            connection.open(
                request: $0, scheme: "https", secretName: [], secretTarget: false, acceptsTrailers: true, ended: ended)
        }
        guard let stream else { return }
        stream.user = self
        streams.append(stream)
        if !ended { _ = [1, 2, 3].withUnsafeBytes { stream.write($0) } }
    }

    func streamReady(_ stream: HTTP2Stream) {
        if habits & 2 == 0 { read(stream) }
        if habits & 4 != 0, stream.id % 3 == 0 { return stream.cancel() }
        guard connection.role == .server, stream.hasHead, habits & 8 == 0 else { return }
        var head = Array("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n".utf8)
        guard head.withUnsafeMutableBytes({ stream.send(response: $0, ended: false) }) else { return }
        _ = head.withUnsafeBytes { stream.write($0) }
        if habits & 16 == 0 { _ = stream.end() }
    }

    private func read(_ stream: HTTP2Stream) {
        var all: [UInt8] = []
        while case .bytes(let count) = piece.withUnsafeMutableBytes({ stream.read(into: $0) }) {
            precondition(count > 0 && count <= piece.count)
            all += piece[..<count]
        }
        guard !stream.trailers.isEmpty else { return }
        check(stream.trailers)
    }

    /// Field lines: a colon in each, and no line end but their own.
    private func check(_ lines: [UInt8]) {
        precondition(lines.suffix(2) == [13, 10])
        for line in lines.dropLast().split(separator: 10) {
            precondition(line.last == 13 && !line.dropLast().contains(13) && line.contains(0x3a) && !line.contains(0))
        }
    }
}

private final class Blocks: BlockSource {
    private(set) var taken = 0

    func take() -> UnsafeMutableRawBufferPointer? {
        guard taken < 40 else { return nil }
        taken += 1
        return .allocate(byteCount: 4096, alignment: 16)
    }

    func give(_ block: UnsafeMutableRawBufferPointer) {
        taken -= 1
        block.deallocate()
    }
}
