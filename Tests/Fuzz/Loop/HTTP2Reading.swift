import CNghttp2

/// Reads one direction of an HTTP/2 connection by RFC 9113. Compressed fields are undone by nghttp2's decoder (RFC 7541), which the
/// gateway uses as well; frames, streams and field sections are read here.
final class HTTP2Reading {
    /// Who sends.
    enum Side { case client, server }

    private let side: Side
    /// The octets are a peer's and may be anything; the gateway's have to be right in each detail.
    private let isReceived: Bool
    private var inflater: OpaquePointer?
    private var streams: [Int32: Stream] = [:]
    private var order: [Int32] = []
    /// The streams that the other side has opened, in its order, with their methods.
    private let methods: [Int32: [UInt8]]
    private var flaw: String?
    private(set) var saidGoodbye = false

    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    /// RFC 9113 section 3.4: what begins otherwise is not HTTP/2.
    static func isPreface(_ octets: [UInt8]) -> Bool { octets.starts(with: preface) }

    private struct Stream {
        var message = Message()
        var interim: [Message] = []
        var hasEnded = false
        var isReset = false
    }

    private enum Kind {
        static let data: UInt8 = 0, headers: UInt8 = 1, priority: UInt8 = 2, reset: UInt8 = 3, settings: UInt8 = 4
        static let push: UInt8 = 5, ping: UInt8 = 6, goAway: UInt8 = 7, window: UInt8 = 8, continuation: UInt8 = 9
    }

    init(_ side: Side, isReceived: Bool, methods: [Int32: [UInt8]] = [:]) {
        self.side = side
        self.isReceived = isReceived
        self.methods = methods
        nghttp2_hd_inflate_new(&inflater)
    }

    deinit { nghttp2_hd_inflate_del(inflater) }

    /// The messages with the numbers of their streams, in the order in which they began.
    func read(_ octets: [UInt8]) -> (messages: [(stream: Int32, message: Message)], flaw: String?) {
        var rest = octets[...]
        if side == .client {
            guard Self.isPreface(octets) else {
                return ([], isReceived || Self.preface.starts(with: rest) ? nil : "no preface")
            }
            rest = rest.dropFirst(Self.preface.count)
        }
        readFrames(rest)
        return (order.compactMap { number in streams[number].map { (number, $0.message) } }, flaw)
    }

    /// Streams that their sender has reset; their messages are not whole.
    var resets: Set<Int32> { Set(streams.filter(\.value.isReset).keys) }

    private func readFrames(_ all: ArraySlice<UInt8>) {
        var rest = all
        var isFirst = true
        /// A field section whose end has not come.
        var section: (stream: Int32, octets: [UInt8], ends: Bool)?
        while rest.count >= 9, flaw == nil {
            let head = Array(rest.prefix(9))
            let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
            let (kind, flags) = (head[3], head[4])
            let stream = Int32(head[5] & 0x7F) << 24 | Int32(head[6]) << 16 | Int32(head[7]) << 8 | Int32(head[8])
            guard rest.count >= 9 + length else { return }
            let payload = Array(rest.dropFirst(9).prefix(length))
            rest = rest.dropFirst(9 + length)
            check(!isFirst || kind == Kind.settings && flags & 1 == 0, "the first frame is not SETTINGS")
            isFirst = false
            if section != nil, kind != Kind.continuation { fail("a field section is interrupted") }
            switch kind {
            case Kind.headers:
                guard let fragment = unpadded(payload, flags, hasPriority: flags & 0x20 != 0) else { break }
                section = (stream, fragment, flags & 1 != 0)
                if flags & 4 != 0, let whole = section {
                    section = nil
                    take(whole.octets, stream: whole.stream, ends: whole.ends)
                }
            case Kind.continuation:
                guard var open = section, open.stream == stream else {
                    fail("a continuation of nothing")
                    break
                }
                open.octets += payload
                section = flags & 4 == 0 ? open : nil
                if flags & 4 != 0 { take(open.octets, stream: stream, ends: open.ends) }
            case Kind.data:
                if let data = unpadded(payload, flags, hasPriority: false) {
                    take(data: data, stream: stream, ends: flags & 1 != 0)
                }
            case Kind.reset:
                check(length == 4 && stream != 0, "a reset")
                streams[stream]?.isReset = true
                streams[stream]?.hasEnded = true
            case Kind.settings: check(stream == 0 && length % 6 == 0 && (flags & 1 == 0 || length == 0), "SETTINGS")
            case Kind.ping: check(stream == 0 && length == 8, "PING")
            case Kind.goAway:
                check(stream == 0 && length >= 8, "GOAWAY")
                saidGoodbye = true
            case Kind.window: check(length == 4 && payload.contains { $0 != 0 }, "WINDOW_UPDATE")
            case Kind.push: fail("a push")
            default: check(false, "a frame of a kind that the gateway has no use for: \(kind)")
            }
        }
    }

    private func fail(_ words: String) { if flaw == nil { flaw = words } }

    /// States what a peer may do wrong, and the gateway not.
    private func check(_ holds: Bool, _ words: @autoclosure () -> String) {
        if !holds, !isReceived { fail(words()) }
    }

    private func unpadded(_ payload: [UInt8], _ flags: UInt8, hasPriority: Bool) -> [UInt8]? {
        var rest = payload[...]
        var padding = 0
        if flags & 8 != 0 {
            guard let count = rest.popFirst() else {
                fail("padding")
                return nil
            }
            padding = Int(count)
        }
        if hasPriority { rest = rest.dropFirst(5) }
        guard padding <= rest.count else {
            fail("padding")
            return nil
        }
        return Array(rest.dropLast(padding))
    }

    private func take(data: [UInt8], stream: Int32, ends: Bool) {
        guard streams[stream]?.message.hasHead == true, streams[stream]?.hasEnded == false else {
            return check(streams[stream]?.isReset == true && isReceived, "DATA where none can be")
        }
        streams[stream]?.message.body += data
        if ends { end(stream) }
    }

    private func end(_ stream: Int32) {
        streams[stream]?.hasEnded = true
        streams[stream]?.message.isWhole = true
        guard let message = streams[stream]?.message, !message.upgrades else { return }
        let hasNone = side == .server && (message.method == Array("HEAD".utf8) || message.status == 304)
        if let length = message.values("content-length").first, !hasNone {
            check(number(length) == message.body.count, "a length that is not the body's")
        }
    }

    // MARK: - Field sections

    private func take(_ block: [UInt8], stream: Int32, ends: Bool) {
        guard let fields = inflate(block) else { return fail("fields that cannot be decoded") }
        if let known = streams[stream], known.message.hasHead, side == .client || known.message.status >= 200 {
            check(!known.hasEnded && ends && !fields.contains { $0.name.first == 0x3A }, "trailers")
            guard !known.hasEnded else { return }
            streams[stream]?.message.trailers = fields
            return end(stream)
        }
        if streams[stream] == nil {
            if side == .client {
                check(stream % 2 == 1 && stream > (order.last ?? 0), "a stream's number")
            } else {
                check(methods[stream] != nil, "an answer to nothing")
            }
            streams[stream] = Stream()
            order.append(stream)
        }
        streams[stream]?.message = message(of: fields, stream: stream)
        if ends { end(stream) }
    }

    private func message(of fields: [Message.Field], stream: Int32) -> Message {
        var message = Message()
        message.hasHead = true
        var pseudo: Set<[UInt8]> = []
        for field in fields {
            guard field.name.first == 0x3A else {
                check(field.name.allSatisfy { isToken($0) && lowercase($0) == $0 } && !field.name.isEmpty, "a name")
                check(
                    field.value.allSatisfy { $0 != 0 && $0 != 0x0D && $0 != 0x0A }
                        && trimmed(field.value[...]) == field.value,
                    "a value")
                check(
                    !Self.ofConnections.contains(field.name) || field.name == Array("te".utf8), "a field of connections"
                )
                message.fields.append(.init(name: field.name.map(lowercase), value: trimmed(field.value[...])))
                continue
            }
            check(message.fields.isEmpty && pseudo.insert(field.name).inserted, "a pseudo-field's place")
            switch String(decoding: field.name, as: UTF8.self) {
            case ":method": message.method = field.value
            case ":path": message.target = field.value
            case ":authority": message.authority = field.value
            case ":protocol": message.protocolName = field.value
            case ":status": message.status = number(field.value) ?? 0
            case ":scheme": break
            default: check(false, "a pseudo-field")
            }
        }
        if side == .client {
            message.upgrades = message.protocolName != nil
            check(!message.method.isEmpty && message.method.allSatisfy(isToken), "a method")
            check(!message.target.isEmpty && message.target.allSatisfy { $0 > 0x20 && $0 != 0x7F }, "a path")
            check(pseudo.contains(Array(":scheme".utf8)), "no scheme")
        } else {
            check(message.status >= 100 && message.status != 101, "a status")
            message.method = methods[stream] ?? []
        }
        return message
    }

    /// RFC 9113 section 8.2.2.
    private static let ofConnections: Set<[UInt8]> = Set(
        ["connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade", "te"].map { Array($0.utf8) })

    private func inflate(_ block: [UInt8]) -> [Message.Field]? {
        var fields: [Message.Field] = []
        var offset = 0
        while true {
            var field = nghttp2_nv()
            var flags: Int32 = 0
            let count = block.withUnsafeBufferPointer { block in
                nghttp2_hd_inflate_hd2(
                    inflater, &field, &flags, block.baseAddress.map { $0 + offset }, block.count - offset, 1)
            }
            guard count >= 0 else { return nil }
            offset += count
            if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
                fields.append(
                    .init(
                        name: Array(UnsafeBufferPointer(start: field.name, count: field.namelen)),
                        value: Array(UnsafeBufferPointer(start: field.value, count: field.valuelen))))
            }
            if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 {
                nghttp2_hd_inflate_end_headers(inflater)
                return fields
            }
            if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) == 0, offset >= block.count { return fields }
        }
    }
}
