/// A caller's connection over HTTP/1.1: questions are answered in the order in which they were asked.
final class HTTP1Talk: Talk {
    private let world: World
    private let caller: Caller
    var wire: Wire?
    private(set) var questions: [Caller.Question] = []
    let mostAtOnce = 3
    var whenIdle: () -> Void = {}
    private var reader = MessageReader(answers: true)
    private(set) var isOver = false
    /// Octets that have come while a long upload was being written; nil where the caller reads at once. Many programs read nothing before
    /// all of their request is written.
    private var unread: [UInt8]?
    private var endedUnread = false
    private var draw: Draw

    init(_ world: World, caller: Caller, _ draw: Draw) {
        self.draw = draw
        self.world = world
        self.caller = caller
    }

    func began() {}

    func ask(_ requests: [Caller.Request]) {
        questions += requests.map(\.question)
        reader.methods += questions.suffix(from: reader.methods.count).map { Substring($0.method) }
        let octets = requests.flatMap(octets)[...]
        guard requests.contains(where: \.question.isLongUpload), draw.once(in: 2) else { return send(octets) }
        unread = []
        write(octets)
    }

    /// Writes all before anything is read. A connection that breaks meanwhile takes the answer along.
    private func write(_ bytes: ArraySlice<UInt8>) {
        guard !isOver, let wire, let all = unread else { return }
        guard !bytes.isEmpty else {
            unread = nil
            if !all.isEmpty { received(all) }
            return endedUnread ? ended(isReset: false) : ()
        }
        guard !wire.isAbandoned else { return ended(isReset: true) }
        let piece = bytes.prefix(100_000 + draw.below(200_000))
        wire.send(Array(piece))
        world.timeline.after(draw.below(.milliseconds(20))) { [self] in write(bytes.dropFirst(piece.count)) }
    }

    /// Somebody sends what is long in pieces.
    private func send(_ bytes: ArraySlice<UInt8>) {
        guard !isOver else { return }
        let isCut = bytes.count > 3000 && draw.once(in: 2)
        let piece = isCut ? 1 + draw.below(bytes.count) : bytes.count
        wire?.send(Array(bytes.prefix(piece)))
        guard piece < bytes.count else { return }
        world.timeline.after(draw.below(.milliseconds(300))) { [self] in send(bytes.dropFirst(piece)) }
    }

    private func octets(_ request: Caller.Request) -> [UInt8] {
        var text = "\(request.question.method) \(request.target) HTTP/1.1\r\nHost: localhost\r\n"
        if let credential = request.credential { text += "Authorization: \(credential)\r\n" }
        if let user = request.user { text += "X-User: \(user)\r\n" }
        if let body = request.body { text += "Content-Length: \(body)\r\n" }
        return Array((text + "\r\n").utf8) + [UInt8](repeating: 0x61, count: request.body ?? 0)
    }

    func received(_ bytes: [UInt8]) {
        guard unread == nil else {
            unread? += bytes
            return
        }
        reader.append(bytes)
        read(ended: false)
    }

    private func read(ended: Bool) {
        let waited = !questions.isEmpty
        while !isOver, let answer = reader.next(ended: ended) {
            if answer.status < 200 { continue }
            guard !questions.isEmpty else {
                world.verdicts.expect(false, .oneAnswer, "an answer that nobody asked for: \(answer.start)")
                return breaks()
            }
            world.verdicts.expect(true, .oneAnswer, "")
            caller.answered(questions.removeFirst(), answer)
            if answer.field("connection")?.lowercased() == "close" { hangUp(behindLastAnswer: true) }
        }
        if let fault = reader.fault {
            world.verdicts.expect(false, .rightAnswer, "a caller was sent what is no answer: \(fault)")
            return breaks()
        }
        if waited, questions.isEmpty { whenIdle() }
    }

    func ended(isReset: Bool) {
        guard !isOver else { return }
        if !isReset, unread != nil {
            endedUnread = true
            return
        }
        if !isReset { read(ended: true) }
        guard !isOver else { return }
        isOver = true
        let left = questions
        questions = []
        caller.cut(left)
        if !isReset { wire?.close() }
        if !left.isEmpty { whenIdle() }
    }

    /// Orderly, behind what it has got; questions without an answer are cut.
    func hangUp() { hangUp(behindLastAnswer: false) }

    private func hangUp(behindLastAnswer: Bool) {
        guard !isOver else { return }
        isOver = true
        wire?.close()
        let left = questions
        questions = []
        if !left.isEmpty { caller.cut(left, behindLastAnswer: behindLastAnswer) }
    }

    func breaks() {
        guard !isOver else { return }
        isOver = true
        questions = []
        wire?.reset()
    }
}
