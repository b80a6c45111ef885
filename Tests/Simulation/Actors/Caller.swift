import ScriptedKernel

/// A program that knows nothing of tokens: it sends requests, one after the other or several at once, and looks at what comes back.
final class Caller {
    private let world: World
    private let number: Int
    private var draw: Draw
    private var talk: Talk?
    private var sent = 0
    private(set) var outcomes: [Int: UInt64] = [:]
    private var isOver = false

    /// A request on its way.
    fileprivate struct Question {
        let id: String
        let method: String
        let size: Int
        let sentAt: UInt64
    }

    init(_ world: World, number: Int) {
        self.world = world
        self.number = number
        draw = Draw(world.seed, Purpose.load + 10_000 + UInt64(number))
    }

    func begin() { later() }

    /// No request after those that are under way.
    func stop() { isOver = true }

    func hangUp() {
        talk?.hangUp()
        talk = nil
    }

    private func later() {
        let pause = draw.below(.milliseconds(60))
        world.timeline.after(.milliseconds(1) + pause) { [self] in next() }
    }

    private func next() {
        guard !isOver else { return }
        if let talk, talk.isOver || draw.once(in: 12) {
            talk.hangUp()
            self.talk = nil
        }
        guard let talk = talk ?? connect() else { return later() }
        self.talk = talk
        let count = draw.once(in: 8) ? 1 + draw.below(3) : 1
        var bytes: [UInt8] = []
        for _ in 0..<count { bytes += request(talk) }
        talk.send(bytes)
        // Somebody who does not wait for the answer.
        if draw.once(in: 40) {
            let patience = draw.below(.milliseconds(8))
            world.timeline.after(patience) { [self] in
                if !talk.isOver { talk.breaks() }
                if self.talk === talk { self.talk = nil }
                later()
            }
            talk.whenIdle = {}
            return
        }
        talk.whenIdle = { [weak self] in self?.later() }
    }

    private func connect() -> Talk? {
        let gateway = world.gateways[draw.below(world.gateways.count)]
        guard let peer = gateway.call(&draw) else { return nil }
        let talk = Talk(world, caller: self)
        talk.wire = world.network.call(peer, gateway: gateway.number) { _ in talk }
        return talk
    }

    private func request(_ talk: Talk) -> [UInt8] {
        sent += 1
        let client = draw.element(of: World.routes)
        let method = draw.once(in: 4) ? "POST" : draw.once(in: 10) ? "HEAD" : "GET"
        let size = draw.once(in: 20) ? draw.below(60_000) : draw.below(500)
        let question = Question(
            id: "c\(number)n\(sent)", method: method, size: size, sentAt: world.timeline.now)
        talk.questions.append(question)
        let bodyCount = method == "POST" ? draw.below(2000) : 0
        var text = "\(method) /\(client)/\(question.id)/\(size) HTTP/1.1\r\nHost: localhost\r\n"
        // A credential of the caller's own, which has to give way.
        if draw.once(in: 6), client != "none" { text += "Authorization: Bearer mine\r\n" }
        if method == "POST" { text += "Content-Length: \(bodyCount)\r\n" }
        world.journal.note(
            .asked, UInt64(number), Array(question.id.utf8), "c\(number) asks \(method) \(client) \(question.id)")
        return Array((text + "\r\n").utf8) + [UInt8](repeating: 0x61, count: bodyCount)
    }

    fileprivate func answered(_ question: Question, _ answer: Message) {
        outcomes[answer.status, default: 0] += 1
        world.journal.note(
            .answered, UInt64(answer.status), Array(question.id.utf8),
            "c\(number) gets \(answer.status) for \(question.id)")
        if answer.status == 200, question.method != "HEAD" {
            let body = Upstream.body(of: Substring(question.id), size: question.size)
            let isWhole = answer.body == body
            world.verdicts.expect(
                isWhole && !answer.endsWithConnection, .rightAnswer,
                "\(question.id) got \(answer.body.count) octets of another answer, or without an end")
        }
        if world.isCalm {
            world.verdicts.expect(
                answer.status == 200, .calmSuccess, "\(question.id) got \(answer.status) where nothing was broken")
        }
        world.verdicts.expect(
            !answer.body.contains(canary: Tokens.canary)
                && answer.fields.allSatisfy { !Array($0.value.utf8).contains(canary: Tokens.canary) },
            .toldSecret, "a secret stands in the answer to \(question.id)")
    }

    fileprivate func cut(_ questions: [Question]) {
        outcomes[0, default: 0] += UInt64(questions.count)
        for question in questions {
            world.journal.note(
                .cut, UInt64(number), Array(question.id.utf8), "c\(number) gets no answer for \(question.id)")
            if world.isCalm {
                world.verdicts.expect(false, .calmSuccess, "\(question.id) was cut where nothing was broken")
            }
        }
    }

    /// Looks for requests that wait for too long.
    func look() {
        guard let question = talk?.questions.first else { return }
        world.verdicts.expect(
            world.timeline.now < question.sentAt + World.patience, .endlessWait,
            "\(question.id) has waited since \(Journal.text(question.sentAt))")
    }
}

/// One connection of a caller.
private final class Talk: Conversation {
    private let world: World
    private let caller: Caller
    var wire: Wire?
    var questions: [Caller.Question] = []
    var whenIdle: () -> Void = {}
    private var reader = MessageReader(answers: true)
    private(set) var isOver = false
    /// Sent before the connection had its wire.
    private var first: [UInt8] = []

    init(_ world: World, caller: Caller) {
        self.world = world
        self.caller = caller
    }

    func began() {}

    func send(_ bytes: [UInt8]) {
        reader.methods += questions.suffix(from: reader.methods.count).map { Substring($0.method) }
        wire?.send(bytes)
    }

    func received(_ bytes: [UInt8]) {
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
            if answer.field("connection")?.lowercased() == "close" { hangUp() }
        }
        if let fault = reader.fault {
            world.verdicts.expect(false, .rightAnswer, "a caller was sent what is no answer: \(fault)")
            return breaks()
        }
        if waited, questions.isEmpty { whenIdle() }
    }

    func ended(isReset: Bool) {
        guard !isOver else { return }
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
    func hangUp() {
        guard !isOver else { return }
        isOver = true
        wire?.close()
        let left = questions
        questions = []
        if !left.isEmpty { caller.cut(left) }
    }

    func breaks() {
        guard !isOver else { return }
        isOver = true
        questions = []
        wire?.reset()
    }
}
