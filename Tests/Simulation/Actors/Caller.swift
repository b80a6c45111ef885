import ScriptedKernel

/// A program that knows nothing of tokens: it sends requests, one after the other or several at once, and looks at what comes back.
final class Caller {
    private let world: World
    private let number: Int
    private var draw: Draw
    private var talk: (any Talk)?
    private var sent = 0
    private(set) var outcomes: [Int: UInt64] = [:]
    private var isOver = false
    /// The gateway that this caller alone comes to, to see whether it works.
    private let only: GatewayProcess?
    private var lastStatus = 0
    private var unjudged: Set<String> = []

    /// A request on its way.
    struct Question {
        let id: String
        let route: String
        /// The client whose token the request wants, with the user where each user has a token.
        let client: String
        /// The path, where many requests have the same one; nil: the request has one of its own.
        let path: String?
        let method: String
        let size: Int
        /// The body is longer than what is kept for a second try.
        let isLongUpload: Bool
        /// The step of a handshake that authenticates the connection; nil where the question is of none.
        var step: HandshakeStep?
        let sentAt: UInt64
    }

    enum HandshakeStep: String { case first, last }

    /// A question as it is to be put on the wire.
    struct Request {
        var question: Question
        let target: String
        /// The caller's own credential, which has to give way where there is one of ours.
        var credential: String?
        /// For whom a token is wanted, where each user has one.
        let user: String?
        /// Octets; nil where the method has none.
        let body: Int?
    }

    init(_ world: World, number: Int, only: GatewayProcess? = nil) {
        self.only = only
        self.world = world
        self.number = number
        draw = Draw(world.seed, Purpose.load + 10_000 + UInt64(number))
    }

    func begin() { later() }

    /// The caller asks once on each route.
    func askEverywhere() {
        guard let talk = connect() else {
            world.verdicts.expect(
                false, .recovery, "g\(only?.number ?? 0) takes nobody although nothing is broken any more")
            return
        }
        self.talk = talk
        talk.whenIdle = {}
        for route in world.asked {
            // Where tokens have no end that is told, another gateway's may be dead as well; the request after that, for the same realm, has
            // a new one.
            let isGate = route.client == MobileSocial.client
            let asked = (0..<(isGate ? 2 : 1)).map { _ in
                request(route, path: isGate ? Place.open[0] : nil, method: "GET", size: 100)
            }
            // A refresh token whose successor was lost on its way may be refused now, and then a person has to come.
            if isGate || route.client == Person.client { unjudged.insert(asked[0].question.id) }
            for one in asked { talk.ask([one]) }
        }
    }

    /// The questions of `askEverywhere` have their answers.
    func expectAnswers() {
        for question in talk?.questions ?? [] {
            world.verdicts.expect(
                false, .recovery,
                "\(question.id) to g\(only?.number ?? 0) is not answered although nothing is broken any more")
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
        let count = draw.once(in: 8) ? 1 + draw.below(talk.mostAtOnce) : 1
        // Somebody who does not wait for the answer.
        let isImpatient = draw.once(in: 40)
        talk.whenIdle = isImpatient ? {} : { [weak self] in self?.later() }
        if talk is HTTP1Talk, !isImpatient, draw.once(in: 40) { return talk.ask([handshake(.first)]) }
        talk.ask((0..<count).map { _ in request(over: talk) })
        guard isImpatient else { return }
        let patience = draw.below(.milliseconds(8))
        world.timeline.after(patience) { [self] in
            if !talk.isOver { talk.breaks() }
            if self.talk === talk { self.talk = nil }
            later()
        }
    }

    private func connect() -> (any Talk)? {
        let gateway = only ?? world.gateways[draw.below(world.gateways.count)]
        let listener = only == nil && draw.once(in: 4) ? World.proxied : 0
        guard let peer = gateway.call(&draw, listener: listener) else { return nil }
        let talk: any Talk =
            only == nil && draw.once(in: 4)
            ? HTTP2Talk(world, caller: self, draw.fork()) : HTTP1Talk(world, caller: self, draw.fork())
        let wire = world.network.call(peer, gateway: gateway.number, process: gateway.name) { _ in talk }
        if listener == World.proxied { introduce(wire) }
        talk.wire = wire
        if let tls = world.certificate?.client(speaksHTTP2: talk is HTTP2Talk) { wire.veil(as: tls, to: "localhost") }
        return talk
    }

    /// The proxy in front of the caller says whom it brings, as text or in octets, whole or not.
    private func introduce(_ wire: Wire) {
        var header = Array("PROXY TCP4 192.0.2.\(1 + number % 200) 198.51.100.1 5000 80\r\n".utf8)
        if draw.once(in: 2) {
            header = [13, 10, 13, 10, 0, 13, 10, 0x51, 0x55, 0x49, 0x54, 10, 0x21, 0x11, 0, 12]
            header += [192, 0, 2, UInt8(1 + number % 200), 198, 51, 100, 1, 0x13, 0x88, 0, 80]
        }
        let first = draw.once(in: 3) ? draw.below(header.count) : header.count
        if first > 0 { wire.sendBare(Array(header.prefix(first))) }
        if first < header.count { wire.sendBare(Array(header.dropFirst(first))) }
    }

    /// - Parameter isLong: more than a loop moves of one body before others have their turn.
    private func request(over talk: any Talk) -> Request {
        let isLong = talk is HTTP1Talk && draw.once(in: 4000)
        let method = draw.once(in: 4) ? "POST" : draw.once(in: 10) ? "HEAD" : "GET"
        let size = isLong ? 1_200_000 + draw.below(800_000) : draw.once(in: 20) ? draw.below(60_000) : draw.below(500)
        let isOfCrowd = !isLong && world.limits.users > 100 && draw.once(in: 2)
        let favourite = draw.once(in: 5) ? nil : World.routes.first { $0.name == world.limits.favourite }
        let route =
            isOfCrowd
            ? World.crowd : favourite ?? (isLong ? World.routes[0] : world.asked(&draw))
        // Large uploads over HTTP/2 are slow, since frames are small, and many at once would take all connections of a route.
        return request(route, path: path(on: route), method: method, size: size, oftenLarge: talk is HTTP1Talk)
    }

    private func handshake(_ step: HandshakeStep) -> Request {
        var request = request(World.routes.first { $0.client == "none" } ?? World.routes[0], method: "GET", size: 50)
        request.question.step = step
        request.credential = "NTLM \(step)"
        return request
    }

    private func path(on route: World.Route) -> String? {
        if draw.once(in: world.limits.wideShare), World.wideRoutes.contains(route.name) {
            return draw.element(of: Place.wide.keys.sorted())
        }
        // Paths that refuse every token have a crowd of callers at one time every four seconds.
        let isBurst = world.timeline.now % .seconds(4) < .milliseconds(60)
        if draw.once(in: isBurst ? 2 : 60), world.hasClosedPaths, World.closedRoutes.contains(route.name) {
            return draw.element(of: Place.closed)
        }
        if route.name == world.limits.favourite { return draw.once(in: 3) ? nil : draw.element(of: Place.favourites) }
        return draw.once(in: 3) ? draw.element(of: Place.open) : nil
    }

    private func request(
        _ route: World.Route, path: String? = nil, method: String, size: Int, oftenLarge: Bool = false
    ) -> Request {
        sent += 1
        let most =
            draw.once(in: 12) ? 200_000 : draw.once(in: oftenLarge && world.mustSucceed ? 60 : 200) ? 3_000_000 : 2000
        let body = method == "POST" ? draw.below(most) : nil
        let user = route.client == "crowd" ? "u\(draw.below(world.limits.users))" : nil
        let question = Question(
            id: "c\(number)n\(sent)", route: route.name, client: route.client(for: user.map { $0[...] } ?? ""),
            path: path, method: method, size: size, isLongUpload: body ?? 0 > 1 << 20, sentAt: world.timeline.now)
        let hasCredential = draw.once(in: 6) && route.client != "none"
        world.journal.note(
            .asked, UInt64(number), Array(question.id.utf8), "c\(number) asks \(method) \(route.name) \(question.id)")
        return Request(
            question: question,
            target: Place.target(route.name, path, id: question.id, size: size, user: user),
            credential: hasCredential ? "Bearer mine" : nil, user: user, body: body)
    }

    func answered(_ question: Question, _ answer: Message) {
        outcomes[answer.status, default: 0] += 1
        lastStatus = answer.status
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
        if question.step == .first, answer.status == 401, let talk, !talk.isOver {
            return talk.ask([handshake(.last)])
        }
        if let only {
            // A login that was cut off may have counted as an attempt: what cannot be known waits for an operator, who is told.
            let waiting = ["person": "person", "gate": "svc", "basic": "otto"][question.route]
            let isHeldBack = waiting.map { only.isQuarantined($0) } ?? false
            world.verdicts.expect(
                answer.status == 200 || isHeldBack || unjudged.contains(question.id), .recovery,
                "\(question.id) to g\(only.number) got \(answer.status) although nothing is broken any more")
        } else if world.mustSucceed {
            world.verdicts.expect(
                answer.status == 200 || mayFail(question, answer.status), .calmSuccess,
                "\(question.id) got \(answer.status) where nothing was broken")
        }
        lookAtRefusal(question, answer.status)
        if answer.status == 503, answer.body.contains(canary: "problems/login-required"), let talk {
            for person in world.persons { person.isSaidToBeMissing(by: talk.wire?.process, askedAt: question.sentAt) }
        }
        world.verdicts.expect(
            !answer.body.contains(canary: Tokens.canary)
                && answer.fields.allSatisfy { !Array($0.value.utf8).contains(canary: Tokens.canary) },
            .toldSecret, "a secret stands in the answer to \(question.id)")
    }

    /// A request that an API has refused once has to wait for the grant that is under way, where there is one.
    private func lookAtRefusal(_ question: Question, _ status: Int) {
        guard world.mustSucceed, [401, 502].contains(status),
            let route = World.routes.first(where: { $0.name == question.route }),
            ["service", "service@second", "person"].contains(route.client), let process = talk?.wire?.process
        else { return }
        let (place, path) = (Refusals.Route(gateway: process.gateway, name: route.name), question.path ?? question.id)
        let mayHold = world.refusals.mayHold(path, of: place, at: world.timeline.now)
        defer { world.refusals.told(path, of: place, at: world.timeline.now) }
        // A POST that was refused may not be sent again; what it learned of its path counts for others all the same.
        guard !mayHold, question.method != "POST", let time = world.refusals.first(of: question.id),
            world.issuer.isAsked(by: process, for: route.client, before: time)
        else { return }
        world.verdicts.expect(
            false, .servedToken,
            "\(question.id) got the refusal of its first token while \(process) was asking for another one")
    }

    /// Whether an answer is one that somebody has to expect where faults cost nothing else.
    private func mayFail(_ question: Question, _ status: Int) -> Bool {
        guard let route = World.routes.first(where: { $0.name == question.route }) else { return false }
        switch status {
        case 413: return question.method == "POST"
        // The server that was gone may have done it, or seen a password that nobody has accepted yet.
        case 502 where route.name == "basic": return true
        // A server whose first SETTINGS allow few streams refuses those that came before; where nothing of ours goes out no body is kept.
        case 502 where route.client == "none": if question.method == "POST" { return true }
        case 502 where route.name == "person": if question.method == "POST" { return true }
        // The login was forgotten while it was made, a moment ago perhaps, or twice: one login more is all that a flight makes.
        case 503 where route.client == MobileSocial.client:
            func forgotten(for time: UInt64) -> Int {
                world.tokens.revocations(of: route.client, since: question.sentAt - min(question.sentAt, time))
            }
            return forgotten(for: .seconds(world.issuer.wasLate(since: question.sentAt) ? 15 : 5)) > 0
                || forgotten(for: .seconds(15)) > 1
        // A handshake needs a connection of its own, and the only one of a loop may carry another caller's long upload as a stream.
        case 503 where question.step != nil && world.hasOneConnection:
            if world.callers.contains(where: { $0.isUploading(on: question.route) }) { return true }
        // A long upload is not kept for a second try, and one that takes longer than a token lives may meet the end of both of its tokens.
        // Tokens that are dead when they come are withdrawn from requests that wait for their connections, which is told by 503 after two.
        case 401, 403, 502, 503:
            if question.isLongUpload || world.timeline.now > question.sentAt + world.issuer.life { return true }
        // A fleet's first login waits 3 s for leases that a new Redis may have forgotten; three late steps exceed a request's wait.
        case 504 where route.client == MobileSocial.client:
            return world.redis != nil && world.issuer.wasLate(since: question.sentAt)
        default: return false
        }
        if let path = question.path, Place.closed.contains(path) { return true }
        let now = question.sentAt
        // Paths that refuse every token hold the route; a path that has taken one passes a second after the last grant in vain.
        // That grant's token was dead when the issuer made it, and an issuer that was late told it seconds afterwards.
        if world.hasClosedPaths, World.closedRoutes.contains(route.name) {
            let told: UInt64 = world.issuer.wasLate(since: now) ? .seconds(5) : .milliseconds(1500)
            let hold: UInt64 = question.path == nil ? .seconds(40) : told
            return world.tokens.revocations(of: route.client, since: now - min(now, hold)) > 0
        }
        let revocations = world.tokens.revocations(of: route.client, since: now - min(now, .seconds(5)))
        // A request has two tokens: one was good for less here, and one was taken away.
        if let path = question.path, Place.wide[path] != nil { return revocations > 0 }
        // Seeds 1007 and 12: of a WebGate's tokens, one for each realm and gateway, that for the realm of the challenge may be dead as well.
        if route.client == MobileSocial.client { return world.tokens.revocations(of: route.client, since: 0) > 0 }
        // Users come to one gateway and to another: the token that the fleet has beside the refused one may be as old. So may one be that
        // was given on the way to the API, or was on its own way from the issuer, when they were taken away.
        let isOldElsewhere = world.redis != nil && route.client == World.crowd.client
        let wasOnItsWay = world.tokens.wereJustGiven(to: question.client, since: now)
        return revocations > (world.issuer.wasLate(since: now) || isOldElsewhere || wasOnItsWay ? 0 : 1)
    }

    private func isUploading(on route: String) -> Bool {
        talk?.questions.contains { $0.isLongUpload && $0.route == route } ?? false
    }

    /// - Parameter behindLastAnswer: the answer before them said that it was the connection's last one.
    func cut(_ questions: [Question], behindLastAnswer: Bool = false) {
        outcomes[0, default: 0] += UInt64(questions.count)
        for question in questions {
            world.journal.note(
                .cut, UInt64(number), Array(question.id.utf8), "c\(number) gets no answer for \(question.id)")
            if only != nil {
                world.verdicts.expect(false, .recovery, "\(question.id) was cut although nothing is broken any more")
            } else if world.mustSucceed {
                if question.id == questions.first?.id, question.isLongUpload, !behindLastAnswer {
                    world.verdicts.expect(
                        false, .oneAnswer, "\(question.id), a long upload, was not answered where nothing was broken")
                }
                // A caller whose upload is answered before its end loses the requests behind it with the connection. Such an answer is never 200.
                world.verdicts.expect(
                    lastStatus != 200, .calmSuccess, "\(question.id) was cut where nothing was broken")
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
