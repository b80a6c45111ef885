import CNghttp2

/// One connection of a caller that speaks HTTP/2 by prior knowledge: its questions are streams, which are answered in any order.
final class HTTP2Talk: Talk {
    private struct Stream {
        let id: Int32
        let question: Caller.Question
        /// Its head has come.
        var answer: Message?
    }

    private let world: World
    private unowned let caller: Caller
    private var draw: Draw
    private let session: HTTP2Session
    var wire: Wire?
    let mostAtOnce = 8
    var whenIdle: () -> Void = {}
    private(set) var isOver = false
    /// The gateway takes no more.
    private var isLeaving = false
    private var isTurning = false
    /// In the order in which they were asked.
    private var streams: [Stream] = []
    /// Octets of answers are used this many nanoseconds after they came.
    private let slowness: UInt64

    init(_ world: World, caller: Caller, _ draw: Draw) {
        self.world = world
        self.caller = caller
        self.draw = draw
        session = HTTP2Session(
            .client, HTTP2Session.Offer(window: self.draw.element(of: [100, 1000, 65_535, 1 << 20])))
        slowness = self.draw.once(in: 3) ? self.draw.below(.milliseconds(10)) : 0
    }

    var questions: [Caller.Question] { streams.map(\.question) }

    // MARK: - Asking

    func ask(_ requests: [Caller.Request]) {
        for request in requests {
            guard let id = open(request) else {
                caller.cut([request.question])
                continue
            }
            streams.append(Stream(id: id, question: request.question))
            // Somebody who does not want the answer any more.
            guard draw.once(in: 25) else { continue }
            world.timeline.after(draw.below(.milliseconds(8))) { [self] in cancel(id) }
        }
        guard !streams.isEmpty else { return becomesIdle() }
        turn()
    }

    private func open(_ request: Caller.Request) -> Int32? {
        var fields: [HTTP2Session.Field] = [
            (":method", request.question.method), (":scheme", "http"), (":authority", "localhost"),
            (":path", request.target),
        ]
        if let credential = request.credential { fields.append(("authorization", credential)) }
        if let user = request.user { fields.append(("x-user", user)) }
        guard let length = request.body else { return session.request(fields, nil) }
        if !draw.once(in: 3) { fields.append(("content-length", "\(length)")) }
        let octets = [UInt8](repeating: 0x61, count: length)
        var body = HTTP2Session.Body()
        body.endsApart = draw.once(in: 3)
        if draw.once(in: 6) { body.trailers = [("x-checksum", "none")] }
        guard draw.once(in: 2) else {
            body.octets = octets
            return session.request(fields, body)
        }
        body.isWhole = false
        guard let id = session.request(fields, body) else { return nil }
        uploadLater(octets[...], on: id)
        return id
    }

    /// A part of the body goes a moment later, and then the rest of it.
    private func uploadLater(_ octets: ArraySlice<UInt8>, on id: Int32) {
        world.timeline.after(draw.below(.milliseconds(4))) { [self] in
            guard !isOver else { return }
            let piece = octets.prefix(1 + draw.below(700))
            let rest = octets.dropFirst(piece.count)
            session.add(id, Array(piece), isWhole: rest.isEmpty)
            turn()
            if !rest.isEmpty { uploadLater(rest, on: id) }
        }
    }

    private func cancel(_ id: Int32) {
        guard !isOver, let stream = remove(id) else { return }
        world.journal.tell("\(stream.question.id) is taken back")
        session.reset(id, NGHTTP2_CANCEL)
        let isLast = streams.isEmpty
        turn()
        if isLast { becomesIdle() }
    }

    private func remove(_ id: Int32) -> Stream? {
        streams.firstIndex { $0.id == id }.map { streams.remove(at: $0) }
    }

    // MARK: - The wire

    func began() {}

    func received(_ bytes: [UInt8]) {
        guard !isOver else { return }
        session.receive(bytes)
        turn()
    }

    /// Looks at what has happened, and sends what there is to say, until there is neither.
    private func turn() {
        guard !isTurning else { return }
        let waited = !streams.isEmpty
        isTurning = true
        while !isOver {
            for event in session.takeEvents() where !isOver { take(event) }
            guard !isOver else { break }
            let octets = session.output()
            if octets.isEmpty { break }
            wire?.send(octets)
        }
        isTurning = false
        guard streams.isEmpty else { return }
        if waited { becomesIdle() } else if isLeaving { hangUp() }
    }

    private func take(_ event: HTTP2Session.Event) {
        switch event {
        case .fields(let id, let fields): take(fields, of: id)
        case .data(let id, let octets):
            if let index = streams.firstIndex(where: { $0.id == id }) { streams[index].answer?.body += octets }
            guard slowness > 0 else { return session.consume(id, octets.count) }
            world.timeline.after(slowness) { [self] in
                guard !isOver else { return }
                session.consume(id, octets.count)
                turn()
            }
        case .ended(let id):
            guard let stream = remove(id) else { return }
            guard let answer = stream.answer else { return caller.cut([stream.question]) }
            world.verdicts.expect(true, .oneAnswer, "")
            caller.answered(stream.question, answer)
        case .closed(let id, let code, let byPeer):
            guard let stream = remove(id) else { return }
            // What is refused by a GOAWAY is closed without a reset of its own.
            let isRefused = code == NGHTTP2_REFUSED_STREAM.rawValue
            world.verdicts.expect(
                byPeer || isRefused, .rightAnswer,
                "what came for \(stream.question.id) is no answer: error \(code)")
            caller.cut([stream.question])
        case .goingAway(_, let code):
            isLeaving = true
            world.verdicts.expect(
                code == NGHTTP2_NO_ERROR.rawValue, .rightAnswer,
                "a gateway ends a caller's connection with error \(code)")
        case .flaw(let words):
            world.verdicts.expect(false, .rightAnswer, "a caller was sent what is no answer: \(words)")
            let left = questions
            breaks()
            caller.cut(left)
        }
    }

    private func take(_ fields: [HTTP2Session.Field], of id: Int32) {
        // Behind the answer's head only trailers come, which nobody makes use of.
        guard let index = streams.firstIndex(where: { $0.id == id }), streams[index].answer == nil else { return }
        let status = fields.first { $0.name == ":status" }?.value ?? ""
        guard !status.hasPrefix("1") else { return }
        streams[index].answer = Message(
            start: "HTTP/2.0 \(status)", fields: fields.filter { !$0.name.hasPrefix(":") }, body: [])
    }

    // MARK: - The end

    private func becomesIdle() {
        if isLeaving { hangUp() }
        whenIdle()
    }

    func ended(isReset: Bool) {
        guard !isOver else { return }
        isOver = true
        let left = questions
        streams = []
        caller.cut(left)
        if !isReset { wire?.close() }
        if !left.isEmpty { whenIdle() }
    }

    func hangUp() {
        guard !isOver else { return }
        isOver = true
        session.goAway()
        wire?.send(session.output())
        wire?.close()
        let left = questions
        streams = []
        if !left.isEmpty { caller.cut(left) }
    }

    func breaks() {
        guard !isOver else { return }
        isOver = true
        streams = []
        wire?.reset()
    }
}
