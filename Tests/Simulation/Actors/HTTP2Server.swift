import CNghttp2

/// A server's end of connections that speak HTTP/2 by prior knowledge: reads requests and answers each on its own stream after its own
/// time, in whatever order that brings.
final class HTTP2Server: Conversation {
    private struct Stream {
        var request: Message
        /// When the gateway began to write it, in nanoseconds, or before.
        let spokeAt: UInt64
        var isHandled = false
        /// Its answer ended too early, which the gateway may well call a breach of the protocol.
        var isMalformed = false
        /// The server says that it goes, once this stream has its answer.
        var isLast = false
    }

    private let wire: Wire
    private let world: World
    private let handler: Server.Handler
    private let complain: (String) -> Void
    private var draw: Draw
    private let session: HTTP2Session
    /// Octets of uploads are taken this many nanoseconds after they came.
    private let slowness: UInt64
    /// Refuses now and then what it could have served.
    private let refuses: Bool
    /// Looked up by number, never iterated.
    private var streams: [Int32: Stream] = [:]
    /// The highest number of a stream that was served.
    private var lastServed: Int32 = 0
    /// The highest number that the server has not refused; streams above it were not served.
    private var lastTaken = Int32.max
    private var isOver = false
    private var isTurning = false

    /// - Parameters:
    ///   - refuses: streams and whole connections are refused sometimes before anything is done, as a server may at any time.
    ///   - complain: told of what is no request.
    init(
        _ wire: Wire, _ world: World, _ draw: Draw, refuses: Bool, complain: @escaping (String) -> Void,
        _ handler: @escaping Server.Handler
    ) {
        self.wire = wire
        self.world = world
        self.draw = draw
        self.refuses = refuses
        self.complain = complain
        self.handler = handler
        // The gateway may have opened more streams than a small number before it hears of it, and those are refused.
        let isAmple = world.hasOneConnection
        let streams: UInt32 = self.draw.element(of: isAmple ? [100] : [1, 2, 5, 100])
        // An upload of 200 KB through a window of 100 octets takes seconds: behind a few of them, one at a time, others wait for too long.
        let windows: [UInt32] = isAmple ? [65_535] : streams < 100 ? [1000, 65_535] : [100, 1000, 65_535]
        let offer = HTTP2Session.Offer(streams: streams, window: self.draw.element(of: windows))
        let isPrompt = self.draw.once(in: 2)
        slowness = isAmple || isPrompt ? 0 : self.draw.below(.milliseconds(3))
        session = HTTP2Session(.server, offer)
    }

    // MARK: - The wire

    func began() { turn() }

    func received(_ bytes: [UInt8]) {
        guard !isOver else { return }
        session.receive(bytes)
        turn()
        // The next request has begun by now where octets are left: when, is forgotten only where none are.
        if wire.isHeard { wire.messageTaken() }
    }

    func ended(isReset: Bool) {
        guard !isOver else { return }
        isOver = true
        if !isReset { wire.close() }
    }

    /// Looks at what has happened, and sends what there is to say, until there is neither.
    private func turn() {
        guard !isTurning else { return }
        isTurning = true
        defer { isTurning = false }
        while !isOver {
            for event in session.takeEvents() where !isOver { take(event) }
            guard !isOver else { return }
            let octets = session.output()
            if octets.isEmpty { break }
            wire.send(octets)
        }
        guard !isOver, session.isOver else { return }
        isOver = true
        wire.close()
    }

    private func take(_ event: HTTP2Session.Event) {
        switch event {
        case .fields(let id, let fields): take(fields, of: id)
        case .data(let id, let octets):
            streams[id]?.request.body += octets
            guard slowness > 0 else { return session.consume(id, octets.count) }
            world.timeline.after(slowness) { [self] in
                session.consume(id, octets.count)
                turn()
            }
        case .ended(let id): handle(id)
        case .closed(let id, let code, let byPeer):
            let stream = streams.removeValue(forKey: id)
            if stream?.isLast == true { session.goAway() }
            if byPeer, stream?.isMalformed == false, Self.breaches.contains(code) {
                complain("the gateway resets stream \(id) with error \(code)")
            }
        case .goingAway(_, let code):
            if code != NGHTTP2_NO_ERROR.rawValue { complain("the gateway ends the connection with error \(code)") }
        case .flaw(let words):
            complain(words)
            isOver = true
            wire.reset()
        }
    }

    /// Errors that accuse the server of a breach of the protocol.
    private static let breaches = [
        NGHTTP2_PROTOCOL_ERROR, NGHTTP2_FLOW_CONTROL_ERROR, NGHTTP2_STREAM_CLOSED, NGHTTP2_FRAME_SIZE_ERROR,
        NGHTTP2_COMPRESSION_ERROR,
    ].map(\.rawValue)

    // MARK: - Requests

    private func take(_ fields: [HTTP2Session.Field], of id: Int32) {
        // Trailers are made no use of.
        guard streams[id] == nil, id <= lastTaken, fields.contains(where: { $0.name == ":method" }) else { return }
        func pseudo(_ name: String) -> String { fields.first { $0.name == name }?.value ?? "" }
        var request = Message(start: "\(pseudo(":method")) \(pseudo(":path")) HTTP/2", fields: [], body: [])
        request.fields = [("host", pseudo(":authority"))] + fields.filter { !$0.name.hasPrefix(":") }
        streams[id] = Stream(request: request, spokeAt: wire.spokeAt ?? 0)
        if refuses, draw.once(in: 60) { refuse(id) }
    }

    /// Nothing of the request was done, and the gateway is told so.
    private func refuse(_ id: Int32) {
        let start = streams.removeValue(forKey: id)?.request.start ?? ""
        // A GOAWAY says nothing of streams below one that was served.
        let goes = id > lastServed && draw.once(in: 2)
        world.journal.tell("\(wire.address) \(goes ? "goes, and has not done" : "refuses") \(start) of stream \(id)")
        if goes {
            lastTaken = min(lastTaken, lastServed)
            session.goAway(last: lastServed)
        } else {
            session.reset(id, NGHTTP2_REFUSED_STREAM)
        }
    }

    /// The request is whole.
    private func handle(_ id: Int32) {
        guard let stream = streams[id], !stream.isHandled, id <= lastTaken else { return }
        if refuses, draw.once(in: 80) { return refuse(id) }
        streams[id]?.isHandled = true
        lastServed = max(lastServed, id)
        handler(Server.Arrival(request: stream.request, spokeAt: stream.spokeAt), wire) { [self] reply in
            guard !isOver, streams[id] != nil else { return }
            switch reply {
            case .bytes(let octets): answer(id, octets)
            case .last(let octets):
                streams[id]?.isLast = true
                answer(id, octets)
            case .cut(let octets, let isReset): cut(id, octets, isReset: isReset)
            case .nothing: break
            }
            turn()
        }
    }

    // MARK: - Answers

    private func answer(_ id: Int32, _ octets: [UInt8]) {
        var reader = MessageReader(answers: true)
        reader.methods = [streams[id]?.request.method ?? ""]
        reader.append(octets)
        guard let message = reader.next(ended: true) else { return complain("an answer is not whole") }
        if draw.once(in: 20) { session.inform(id, [(":status", "103"), ("link", "</style.css>; rel=preload")]) }
        var body = HTTP2Session.Body(message.body)
        body.endsApart = draw.once(in: 3)
        if draw.once(in: 5) { body.trailers = [("x-checksum", "none")] }
        let hasNoBody = message.body.isEmpty && body.trailers.isEmpty && draw.once(in: 2)
        session.answer(id, fields(of: message, tellsLength: !draw.once(in: 3)), hasNoBody ? nil : body)
    }

    /// Fields in HTTP/2's form, without what is about a connection of HTTP/1.1.
    private func fields(of message: Message, tellsLength: Bool) -> [HTTP2Session.Field] {
        let left = message.fields.filter { field in
            field.name != "transfer-encoding" && field.name != "connection"
                && (tellsLength || field.name != "content-length")
        }
        return [(":status", "\(message.status)")] + left
    }

    /// Ends an answer in its middle, or before it has begun.
    private func cut(_ id: Int32, _ octets: [UInt8], isReset: Bool) {
        var hasLength = false
        if let end = octets.firstRange(of: Array("\r\n\r\n".utf8))?.upperBound {
            var reader = MessageReader(answers: true)
            reader.methods = ["HEAD"]
            reader.append(Array(octets[..<end]))
            guard let head = reader.next() else { return complain("an answer has no head") }
            hasLength = head.field("content-length") != nil
            let part = hasLength ? Array(octets[end...]) : Self.unchunked(octets[end...])
            session.answer(
                id, fields(of: head, tellsLength: true), HTTP2Session.Body(part, isWhole: false))
            turn()
        }
        guard !isOver, streams[id] != nil else { return }
        if isReset {
            // With no error, too: an answer without its end is none, whatever the reset says.
            return session.reset(
                id, draw.element(of: [NGHTTP2_INTERNAL_ERROR, NGHTTP2_CANCEL, NGHTTP2_NO_ERROR]))
        }
        if hasLength, draw.once(in: 2) {
            streams[id]?.isMalformed = true
            return session.add(id, [], isWhole: true)
        }
        isOver = true
        if draw.once(in: 2) { wire.reset() } else { wire.close() }
    }

    /// The body of which these chunks are the beginning.
    private static func unchunked(_ octets: ArraySlice<UInt8>) -> [UInt8] {
        var body: [UInt8] = []
        var rest = octets
        while let line = rest.firstIndex(of: 10) {
            let size = Int(String(decoding: rest[..<line].dropLast(), as: UTF8.self), radix: 16) ?? 0
            let chunk = rest[(line + 1)...].prefix(size)
            body += chunk
            rest = rest[(line + 1)...].dropFirst(chunk.count + 2)
        }
        return body
    }
}
