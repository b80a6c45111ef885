import HTTP2
import Testing

/// A connection whose peer is octets: what it is told and what it says, frame by frame.
final class RawPeer {
    let connection: HTTP2Connection
    let blocks: CountedBlocks
    var now: UInt64 = 1
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 66 * 1024, alignment: 16)

    /// - Parameter isGreeted: the peer has sent its preface and its settings.
    init(
        _ role: HTTP2Connection.Role, limits: HTTP2Limits = HTTP2Limits(), blocks limit: Int = 1000,
        isGreeted: Bool = true
    ) throws {
        blocks = CountedBlocks(limit: limit)
        connection = try #require(HTTP2Connection(role: role, limits: limits, blocks: blocks))
        guard isGreeted else { return }
        #expect(receive((role == .server ? RawFrame.preface : []) + RawFrame.settings()))
    }

    deinit { buffer.deallocate() }

    func receive(_ octets: [UInt8]) -> Bool { octets.withUnsafeBytes { connection.receive($0, now: now) } }

    /// Takes all that waits to be sent.
    func sent() -> [UInt8] {
        var octets: [UInt8] = []
        while case let count = connection.send(into: buffer, now: now), count > 0 { octets += buffer[..<count] }
        return octets
    }

    /// - Returns: the frames that waited, behind a client's preface.
    func frames() -> [RawFrame] {
        let octets = sent()
        return RawFrame.parsed(octets.starts(with: RawFrame.preface) ? Array(octets.dropFirst(24)) : octets)
    }

    /// - Returns: the server's stream of a request whose body has not ended.
    func asked(_ stream: UInt8 = 1, ended: Bool = false) throws -> HTTP2Stream {
        #expect(receive(RawFrame.head(stream, ended: ended)))
        return try #require(connection.takeOpened().first)
    }

    /// - Returns: the client's stream of a request.
    func open(ended: Bool = true) throws -> HTTP2Stream {
        var bytes = Array("POST / HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
        let stream = bytes.withUnsafeMutableBytes {
            connection.open(
                request: $0, scheme: "https", secretName: [], secretTarget: false, acceptsTrailers: false, ended: ended)
        }
        return try #require(stream)
    }
}

/// A frame as RFC 9113 §4.1 has it.
struct RawFrame: Equatable {
    var type: UInt8
    var flags: UInt8 = 0
    var stream: UInt32 = 0
    var payload: [UInt8] = []

    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    var octets: [UInt8] {
        let size = payload.count
        let head = [UInt8(size >> 16), UInt8(size >> 8 & 0xff), UInt8(size & 0xff), type, flags]
        return head + Self.word(stream) + payload
    }

    static func word(_ number: UInt32) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }

    static func parsed(_ octets: [UInt8]) -> [RawFrame] {
        var frames: [RawFrame] = []
        var rest = octets[...]
        while rest.count >= 9 {
            let head = Array(rest.prefix(9))
            let size = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
            let stream = head[5...].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            let payload = Array(rest.dropFirst(9).prefix(size))
            frames.append(RawFrame(type: head[3], flags: head[4], stream: stream, payload: payload))
            rest = rest.dropFirst(9 + size)
        }
        return frames
    }

    // MARK: - Frames of a peer

    static func settings(_ entries: [(UInt16, UInt32)] = []) -> [UInt8] {
        let payload = entries.flatMap { [UInt8($0.0 >> 8), UInt8($0.0 & 0xff)] + word($0.1) }
        return RawFrame(type: 4, payload: payload).octets
    }

    static let settingsAck = RawFrame(type: 4, flags: 1).octets
    static let ping = RawFrame(type: 6, payload: [UInt8](repeating: 0, count: 8)).octets

    /// `POST https://localhost/` with fields behind it.
    static func head(_ stream: UInt8, ended: Bool, scheme: UInt8 = 0x87, _ fields: [UInt8] = []) -> [UInt8] {
        let block = [0x83, scheme, 0x84, 0x01, 9] + Array("localhost".utf8) + fields
        return RawFrame(type: 1, flags: ended ? 5 : 4, stream: UInt32(stream), payload: block).octets
    }

    /// A field that is not indexed.
    static func field(_ name: String, _ value: String) -> [UInt8] {
        [0, UInt8(name.utf8.count)] + Array(name.utf8) + [UInt8(value.utf8.count)] + Array(value.utf8)
    }

    /// `:status: 200` with fields behind it.
    static func answer(_ stream: UInt8, ended: Bool, _ fields: [UInt8] = []) -> [UInt8] {
        RawFrame(type: 1, flags: ended ? 5 : 4, stream: UInt32(stream), payload: [0x88] + fields).octets
    }

    static func data(_ stream: UInt8, ended: Bool, _ payload: [UInt8] = []) -> [UInt8] {
        RawFrame(type: 0, flags: ended ? 1 : 0, stream: UInt32(stream), payload: payload).octets
    }

    static func reset(_ stream: UInt8, _ code: UInt32) -> [UInt8] {
        RawFrame(type: 3, stream: UInt32(stream), payload: word(code)).octets
    }

    static func goAway(_ last: UInt32, _ code: UInt32 = 0) -> [UInt8] {
        RawFrame(type: 7, payload: word(last) + word(code)).octets
    }

    static func windowUpdate(_ stream: UInt32, _ count: UInt32) -> [UInt8] {
        RawFrame(type: 8, stream: stream, payload: word(count)).octets
    }
}
