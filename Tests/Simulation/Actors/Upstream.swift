/// A protected API. Its paths are `/ROUTE/ID/…`, where ROUTE says whose token it wants (`World.routes`); `none` wants none.
final class Upstream {
    /// How it behaves for now.
    enum Mood: Equatable {
        case well
        case status(Int)
        case silence
        /// The answer ends in its middle.
        case cuts(isReset: Bool)
        /// Every answer is the connection's last.
        case closes
        /// A body is not waited for; the connection goes on or ends.
        case early(closes: Bool)
    }

    var mood = Mood.well
    private let world: World
    private let name: String
    private let speaksHTTP2: Bool
    private var draw: Draw
    private let gate: BasicGate
    /// How often each request that may be made once was done.
    private var done: [String: Int] = [:]
    /// Requests that a wider token was wanted for, by their ids, with the scope.
    private var challenged: [String: String] = [:]
    /// Connections that callers authenticate, by their numbers, with the caller's.
    private var handshakes: [UInt64: Int] = [:]
    private var owners: [UInt64: Int] = [:]
    private(set) var served: UInt64 = 0
    private(set) var refused: UInt64 = 0

    init(_ world: World, name: String, number: UInt64, speaksHTTP2: Bool = false) {
        self.world = world
        self.name = name
        self.speaksHTTP2 = speaksHTTP2
        gate = BasicGate(world, name: name)
        draw = Draw(world.seed, Purpose.upstreams + 1000 * number)
    }

    func accept(_ wire: Wire) -> any Conversation {
        let complain: (String) -> Void = { [unowned self] fault in
            world.verdicts.expect(false, .rightAnswer, "\(name) was sent what is no request: \(fault)")
        }
        let handler: Server.Handler = { [unowned self] arrival, wire, reply in take(arrival, wire, reply) }
        guard !(wire.protocolName.map { $0 == "h2" } ?? speaksHTTP2) else {
            return HTTP2Server(wire, world, draw.fork(), refuses: !world.mustSucceed, complain: complain, handler)
        }
        let early: (Message) -> Server.Reply? = { [unowned self] head in
            guard case .early(let closes) = mood else { return nil }
            let answer = Answer.text(413, closes ? ["Connection: close"] : [], Array("too much\n".utf8))
            return closes ? .last(answer) : .bytes(answer)
        }
        return Server(wire, complain: complain, early: early, handler)
    }

    /// The body that a request of this id is answered with.
    static func body(of id: Substring, size: Int) -> [UInt8] {
        let line = Array("answer to \(id).\n".utf8)
        var body: [UInt8] = []
        while body.count < size { body += line }
        return Array(body.prefix(max(size, line.count)))
    }

    private func take(_ arrival: Server.Arrival, _ wire: Wire, _ reply: @escaping (Server.Reply) -> Void) {
        let request = arrival.request
        let place = Place(request.target)
        world.journal.note(
            .upstream, wire.number, Array(request.start.utf8), "\(name) gets \(request.start) of g\(wire.gateway)")
        guard let place, let route = World.routes.first(where: { $0.name == place.route }) else {
            world.verdicts.expect(false, .rightAnswer, "\(name) was asked for \(request.start)")
            return reply(.bytes(Answer.text(400, [], [])))
        }
        let delay = 100_000 + draw.below(.milliseconds(5))
        let isChunked = draw.once(in: 3)
        var answer: [UInt8]
        if let refusal = refusal(of: arrival, client: route.client(for: place.user), place, wire) {
            refused += 1
            world.refusals.note(
                String(place.id), String(place.path ?? place.id),
                of: Refusals.Route(gateway: wire.gateway, name: route.name), at: world.timeline.now + delay)
            answer = refusal
        } else if case .status(let status) = mood {
            answer = Answer.text(status, [], Array("no\n".utf8))
        } else {
            checkOnce(request, place.id)
            served += 1
            answer = Answer.text(200, [], Self.body(of: place.id, size: place.size), chunked: isChunked)
        }
        if request.method == "HEAD", let end = answer.firstRange(of: Array("\r\n\r\n".utf8)) {
            answer = Array(answer[..<end.upperBound])
        }
        let mood = self.mood
        let bytes = answer
        let cut = draw.below(answer.count)
        world.timeline.after(delay) {
            switch mood {
            case .silence: reply(.nothing)
            case .cuts(let isReset): reply(.cut(Array(bytes.prefix(cut)), isReset: isReset))
            case .closes: reply(.last(bytes))
            case .well, .status, .early: reply(.bytes(bytes))
            }
        }
    }

    /// A token's end stands in the store by the wall clock: what is fetched from there after the clock was set lives longer or shorter.
    private func clockWasSet(since time: UInt64, _ wire: Wire) -> Bool {
        world.gateways[wire.gateway].jumpedAt > time && World.hasStore(world.seed)
    }

    /// What was purged is not used again, by the process that was asked for it or by one that comes after it.
    private func looksAtPurge(_ token: Tokens.Access, _ arrival: Server.Arrival, _ wire: Wire) {
        let holder = world.gateways[wire.gateway]
        guard world.redis == nil, let purge = holder.lastPurge, token.given < purge.orderedAt else { return }
        let isMeant =
            wire.process == purge.process
            || wire.process.life > purge.process.life && !holder.disk.hasLied && !holder.disk.hasFailed
        guard isMeant else { return }
        world.verdicts.expect(
            arrival.spokeAt < purge.answeredAt + .milliseconds(100), .servedToken,
            "\(name) got a token of \(token.client) that was purged")
    }

    /// What is done twice would be paid twice: only a refused request may be sent again, or one that is safe to repeat.
    private func checkOnce(_ request: Message, _ id: Substring) {
        guard request.method == "POST" else { return }
        done[String(id), default: 0] += 1
        world.verdicts.expect(done[String(id)] == 1, .oneAnswer, "\(name) was given POST \(id) twice")
    }

    /// - Returns: nil where the credential is good.
    private func refusal(of arrival: Server.Arrival, client: String, _ place: Place, _ wire: Wire) -> [UInt8]? {
        let request = arrival.request
        let values = request.all("authorization")
        if client == MobileSocial.client {
            let asked = world.mobileSocial.gate(arrival, name)
            guard let text = asked.text, let token = world.tokens.access[text] else { return asked.refusal }
            if let refusal = tokenRefusal(token, asked.refusal ?? [], arrival, client: client, wire) { return refusal }
            // The token of another WebGate before this API.
            let isMeant = token.scopes.contains(Substring(world.mobileSocial.realm(of: request.target)))
            return isMeant ? nil : asked.refusal
        }
        if client == "basic" { return gate.refusal(of: arrival, values, wire) }
        if client == "none" {
            // The caller's own field passes where nothing of ours is put in.
            world.verdicts.expect(
                values.allSatisfy { !Array($0.utf8).contains(canary: Tokens.canary) }, .credentialPlace,
                "\(name) got a credential on a route without one")
            return handshake(values, place, wire)
        }
        let challenge = Answer.text(401, [#"WWW-Authenticate: Bearer error="invalid_token""#], Array("no!\n".utf8))
        world.verdicts.expect(values.count == 1, .credentialPlace, "\(name) got \(values.count) credentials")
        guard let value = values.first, value.hasPrefix("Bearer ") else {
            world.verdicts.expect(false, .credentialPlace, "\(name) got no token for \(client)")
            return challenge
        }
        let text = String(value.dropFirst(7))
        guard let token = world.tokens.access[text] else {
            world.verdicts.expect(false, .credentialPlace, "\(name) got a token that nobody gave")
            return challenge
        }
        if let refusal = tokenRefusal(token, challenge, arrival, client: client, wire) { return refusal }
        if let scope = place.scope, !token.scopes.contains(Substring(scope)) {
            world.verdicts.expect(
                challenged.updateValue(scope, forKey: String(place.id)) == nil, .servedToken,
                "\(name) got \(place.id) once more with a token that is not good for \(scope), as it was told")
            let more = #"Bearer error="insufficient_scope", scope="\#(scope)""#
            return Answer.text(403, ["WWW-Authenticate: \(more)"], Array("more!\n".utf8))
        }
        guard place.isClosed else { return nil }
        world.tokens.noteRefusal(of: text)
        return challenge
    }

    /// NTLM authenticates the connection, in two steps: whoever asks on it afterwards is served as the caller who did.
    private func handshake(_ values: [String], _ place: Place, _ wire: Wire) -> [UInt8]? {
        if let owner = owners[wire.number] {
            world.verdicts.expect(
                owner == place.caller, .credentialPlace, "\(name) serves \(place.id) as the caller \(owner)")
        }
        guard let value = values.first, value.hasPrefix("NTLM "), let caller = place.caller else { return nil }
        if value == "NTLM last", handshakes.removeValue(forKey: wire.number) == caller {
            owners[wire.number] = caller
            return nil
        }
        handshakes[wire.number] = caller
        return Answer.text(401, ["WWW-Authenticate: NTLM challenge"], Array("no!\n".utf8))
    }

    /// - Returns: nil where the token is good.
    private func tokenRefusal(
        _ token: Tokens.Access, _ challenge: [UInt8], _ arrival: Server.Arrival, client: String, _ wire: Wire
    ) -> [UInt8]? {
        let text = token.text
        world.verdicts.expect(
            token.client == client, .credentialPlace, "\(name) got \(token.client)'s token for \(client)")
        world.tokens.noteUse(of: text)
        let now = world.timeline.now
        // A WebGate's service tells no end. Of others the gateway reckons from before it asked, and gives nothing away behind the end.
        let late = arrival.spokeAt > token.end ? (arrival.spokeAt - token.end) / 1_000_000 : 0
        world.verdicts.expect(
            late <= 100 || client == MobileSocial.client || clockWasSet(since: token.given, wire), .servedToken,
            "\(name) got a token of \(client) that had ended for \(late) ms")
        looksAtPurge(token, arrival, wire)
        guard !token.isRevoked, now < token.end else {
            world.tokens.noteRefusal(of: text)
            return challenge
        }
        return nil
    }
}
