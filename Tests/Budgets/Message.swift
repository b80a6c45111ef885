/// What one side of a treadmill sends over and over: text of HTTP/1.1, or frames of HTTP/2 of which only the stream's number changes.
struct Message {
    /// Before the first one.
    private(set) var opening: [UInt8] = []
    let isFramed: Bool
    private var bytes: [UInt8]
    /// Where frames begin.
    private var frames: [Int] = []
    private var stream: UInt32 = 1

    init(_ text: String) {
        bytes = Array(text.utf8)
        isFramed = false
    }

    /// - Parameter frames: type, flags and payload of each.
    private init(opening: [UInt8], _ frames: [(type: UInt8, flags: UInt8, payload: [UInt8])]) {
        isFramed = true
        bytes = []
        // SETTINGS without any.
        self.opening = opening + [0, 0, 0, 4, 0, 0, 0, 0, 0]
        for frame in frames {
            self.frames.append(bytes.count)
            bytes += [0, 0, UInt8(frame.payload.count), frame.type, frame.flags, 0, 0, 0, 0] + frame.payload
        }
    }

    /// `GET /` of `localhost`: three entries of HPACK's own table, and a literal that enters none (RFC 7541 §6.2.2).
    static let framedGet = Message(
        opening: Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8),
        [(1, 5, [0x82, 0x86, 0x84, 0x01, 9] + Array("localhost".utf8))])

    /// 200 with a `content-length` and the body `hello`.
    static let framedHello = Message(
        opening: [], [(1, 4, [0x88, 0x0f, 0x0d, 1, 0x35]), (0, 1, Array("hello".utf8))])
}

// MARK: -

extension Message {
    /// Allocates nothing: it is sent while others' allocations are counted.
    mutating func next() -> [UInt8] {
        for frame in frames {
            for octet in 0..<4 { bytes[frame + 5 + octet] = UInt8(truncatingIfNeeded: stream >> (24 - 8 * octet)) }
        }
        stream += 2
        return bytes
    }
}
