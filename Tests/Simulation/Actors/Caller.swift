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
    /// Comes to this one alone, to see whether it works.
    private let only: GatewayProcess?
    private var unjudged: Set<String> = []

    /// A request on its way.
    fileprivate struct Question {
        let id: String
        let route: String
        let method: String
        let size: Int
        let sentAt: UInt64
    }

    init(_ world: World, number: Int, only: GatewayProcess? = nil) {
        self.only = only
        self.world = world
        self.number = number
        draw = Draw(world.seed, Purpose.load + 10_000 + UInt64(number))
    }

    func begin() { later() }

    /// One request for each route.
    func askEverywhere() {
        guard let talk = connect() else {
            world.verdicts.expect(false, .recovery, "g\(only?.number ?? 0) takes nobody although nothing is broken any more")
            return
        }
        self.talk = talk
        talk.whenIdle = {}
        for route in World.routes {
            // Where tokens have no end that is told, another gateway's may be dead as well; the request after that has a new one.
            if route.client == MobileSocial.client {
                talk.send(request(talk, route, method: "GET", size: 100))
                unjudged.insert("c\(number)n\(sent)")
            }
            talk.send(request(talk, route, method: "GET", size: 100))
        }
    }

    /// All of them were answered.
    func expectAnswers() {
        for question in talk?.questions ?? [] {
            world.verdicts.expect(
                false, .recovery, "\(question.id) to g\(only?.number ?? 0) is not answered although nothing is broken any more")
        }
    }

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
        send(bytes, talk)
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

    /// Somebody sends what is long in pieces.
    private func send(_ bytes: [UInt8], _ talk: Talk) {
        guard bytes.count > 3000, draw.once(in: 2) else { return talk.send(bytes) }
        let piece = 1 + draw.below(bytes.count)
        talk.send(Array(bytes.prefix(piece)))
        let rest = Array(bytes.dropFirst(piece))
        world.timeline.after(draw.below(.milliseconds(300))) { [self] in if !talk.isOver { send(rest, talk) } }
    }

    private func connect() -> Talk? {
        let gateway = only ?? world.gateways[draw.below(world.gateways.count)]
        let listener = only == nil && draw.once(in: 4) ? World.proxied : 0
        guard let peer = gateway.call(&draw, listener: listener) else { return nil }
        let talk = Talk(world, caller: self)
        defer { if listener == World.proxied { introduce(talk) } }
        talk.wire = world.network.call(peer, gateway: gateway.number, process: gateway.name) { _ in talk }
        return talk
    }

    /// What a proxy says of whom it brings, as text or in octets, whole or not.
    private func introduce(_ talk: Talk) {
        var header = Array("PROXY TCP4 192.0.2.\(1 + number % 200) 198.51.100.1 5000 80\r\n".utf8)
        if draw.once(in: 2) {
            header = [13, 10, 13, 10, 0, 13, 10, 0x51, 0x55, 0x49, 0x54, 10, 0x21, 0x11, 0, 12]
            header += [192, 0, 2, UInt8(1 + number % 200), 198, 51, 100, 1, 0x13, 0x88, 0, 80]
        }
        let first = draw.once(in: 3) ? draw.below(header.count) : header.count
        if first > 0 { talk.wire?.send(Array(header.prefix(first))) }
        if first < header.count { talk.wire?.send(Array(header.dropFirst(first))) }
    }

    private func request(_ talk: Talk) -> [UInt8] {
        let method = draw.once(in: 4) ? "POST" : draw.once(in: 10) ? "HEAD" : "GET"
        let size = draw.once(in: 20) ? draw.below(60_000) : draw.below(500)
        return request(talk, draw.element(of: World.routes), method: method, size: size)
    }

    private func request(_ talk: Talk, _ route: World.Route, method: String, size: Int) -> [UInt8] {
        sent += 1
        let client = route.name
        let question = Question(
            id: "c\(number)n\(sent)", route: route.name, method: method, size: size, sentAt: world.timeline.now)
        talk.questions.append(question)
        let bodyCount = method == "POST" ? draw.once(in: 12) ? draw.below(200_000) : draw.below(2000) : 0
        let user = "u\(draw.below(World.users))"
        let isForUser = route.client == "crowd"
        let path = "/\(client)/\(question.id)/\(size)" + (isForUser ? "/\(user)" : "")
        var text = "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n"
        if isForUser { text += "X-User: \(user)\r\n" }
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
        if let only {
            // A login that was cut off may have counted as an attempt: what cannot be known waits for an operator, who is told.
            let isHeldBack = ["person": "person", "gate": "svc"][question.route].map { only.isQuarantined($0) } ?? false
            world.verdicts.expect(
                answer.status == 200 || isHeldBack || unjudged.contains(question.id), .recovery,
                "\(question.id) to g\(only.number) got \(answer.status) although nothing is broken any more")
        } else if world.isCalm {
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
            if only != nil {
                world.verdicts.expect(false, .recovery, "\(question.id) was cut although nothing is broken any more")
            } else if world.isCalm {
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
