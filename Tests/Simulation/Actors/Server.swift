/// A server's end of connections: reads requests, answers them in order, each after its own time.
final class Server: Conversation {
    typealias Handler = (_ arrival: Arrival, _ wire: Wire, _ reply: @escaping (Reply) -> Void) -> Void

    /// A request, and when the gateway began to write it, in nanoseconds.
    struct Arrival {
        let request: Message
        let spokeAt: UInt64
    }

    /// What becomes of a request.
    enum Reply {
        case bytes([UInt8])
        /// These octets, then the end or the break of the connection.
        case cut([UInt8], isReset: Bool)
        /// These octets, and the connection is closed behind them.
        case last([UInt8])
        /// Nothing, ever.
        case nothing
    }

    private let wire: Wire
    private let handler: Handler
    private let complain: (String) -> Void
    /// What is answered before the whole request is there; nil: nothing.
    private let early: (Message) -> Reply?
    /// The request under way was answered, and the rest of it counts for nothing.
    private var wasEarly = false
    private var reader = MessageReader(answers: false)
    private var isBusy = false
    private var isOver = false

    /// - Parameters:
    ///   - complain: told of what is no request.
    ///   - early: asked about each head whose body is still on its way.
    init(
        _ wire: Wire, complain: @escaping (String) -> Void, early: @escaping (Message) -> Reply? = { _ in nil },
        _ handler: @escaping Handler
    ) {
        self.early = early
        self.wire = wire
        self.handler = handler
        self.complain = complain
    }

    func began() {}

    func received(_ bytes: [UInt8]) {
        reader.append(bytes)
        next()
    }

    func ended(isReset: Bool) {
        guard !isOver else { return }
        isOver = true
        if !isReset { wire.close() }
    }

    private func next() {
        guard !isBusy, !isOver else { return }
        guard let request = reader.next() else {
            if !wasEarly, let head = reader.head, let answer = early(head) {
                wasEarly = true
                perform(answer)
            }
            if let fault = reader.fault {
                complain(fault)
                isOver = true
                wire.reset()
            }
            return
        }
        let spokeAt = wire.spokeAt
        wire.messageTaken()
        guard !wasEarly else {
            wasEarly = false
            return next()
        }
        isBusy = true
        handler(Arrival(request: request, spokeAt: spokeAt ?? 0), wire) { [self] reply in
            guard isBusy, !isOver else { return }
            perform(reply)
            if case .bytes = reply {
                isBusy = false
                next()
            }
        }
    }

    private func perform(_ reply: Reply) {
        switch reply {
        case .bytes(let bytes): wire.send(bytes)
        case .last(let bytes):
            wire.send(bytes)
            isOver = true
            wire.close()
        case .cut(let bytes, let isReset):
            wire.send(bytes)
            isOver = true
            if isReset { wire.reset() } else { wire.close() }
        case .nothing: break
        }
    }
}

/// Answers in octets.
enum Answer {
    static func text(_ status: Int, _ fields: [String] = [], _ body: [UInt8], chunked: Bool = false) -> [UInt8] {
        var head = "HTTP/1.1 \(status) \(status == 200 ? "OK" : "No")\r\n"
        for field in fields { head += field + "\r\n" }
        head += chunked ? "Transfer-Encoding: chunked\r\n\r\n" : "Content-Length: \(body.count)\r\n\r\n"
        guard chunked else { return Array(head.utf8) + body }
        var bytes = Array(head.utf8)
        var rest = body[...]
        while !rest.isEmpty {
            let piece = rest.prefix(1000)
            rest = rest.dropFirst(piece.count)
            bytes += Array("\(String(piece.count, radix: 16))\r\n".utf8) + piece + [13, 10]
        }
        return bytes + Array("0\r\n\r\n".utf8)
    }

    static func json(_ status: Int, _ text: String) -> [UInt8] {
        Self.text(status, ["Content-Type: application/json", "Cache-Control: no-store"], Array(text.utf8))
    }
}
