import FoundationEssentials

/// An OAuth 2.0 server: client credentials, passwords, and refresh tokens that are good once. It is as strict as the strictest, and misbehaves
/// when it is told to.
final class OAuthIssuer {
    /// How it behaves for now.
    enum Mood: Equatable {
        case well
        /// Every request is answered with this status and nothing that a client could use.
        case status(Int)
        case garbage
        case silence
        /// Answers come this much later, in nanoseconds.
        case late(UInt64)
        /// The answer is made, and the connection breaks before it.
        case breaks
        /// The answer comes twice.
        case twice
        /// Somebody on the way answers in its place, with this status and a page for people.
        case foreign(Int)
    }

    var mood = Mood.well { didSet { if case .late = oldValue { lateUntil = world.timeline.now } } }
    /// Until when its answers have come late, in nanoseconds, so that a token may be taken away before anybody has it.
    private(set) var lateUntil: UInt64 = 0
    /// Nanoseconds that a token lives.
    var life: UInt64 = .seconds(30)
    /// Passwords by user; a fault may change one.
    var passwords: [String: String] = [:] { didSet { everyPassword.formUnion(passwords.values) } }
    /// Passwords that were good at some time.
    private(set) var everyPassword: Set<String> = []
    private let world: World
    private let clients: [String: String]
    private var draw: Draw
    private static let deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"
    private var deviceCodes: Set<String> = []
    private var logins = 0
    /// Refresh tokens in the order in which they replaced each other, by client, and by login where a person has logged in.
    private var families: [String: [RefreshToken]] = [:]
    /// The last grant of each gateway and client.
    private var grants: [Grant.Key: Grant] = [:]
    /// Passwords whose refusal a life of a gateway has read.
    private var refusals: [Refusal] = []
    private(set) var calls: UInt64 = 0
    private var callSecond: UInt64 = 0
    private var callsInSecond: [String: Int] = [:]

    struct RefreshToken {
        let text: String
        /// Since when the life of a gateway that asked for the one before has had this one; nil until it has read the answer.
        var readAt: UInt64?
        /// The process that was given it.
        let reader: ProcessName
        /// The access token that came with it.
        let token: String
    }

    struct Refusal {
        let password: String
        let reader: ProcessName
        var readAt: UInt64?
    }

    struct Grant {
        struct Key: Hashable {
            let gateway: Int
            let client: String
        }
        let wire: Wire
        let process: ProcessName
        let client: String
        let beganAt: UInt64
        var isAnswered = false
        var token: Tokens.Access?
        /// When the whole answer was read.
        var readAt: UInt64?
    }

    /// - Parameter clients: secrets by id.
    init(_ world: World, clients: [String: String]) {
        self.world = world
        self.clients = clients
        draw = Draw(world.seed, Purpose.issuers + 100)
    }

    func accept(_ wire: Wire) -> any Conversation {
        Server(wire) { [unowned world] fault in
            world.verdicts.expect(false, .rightAnswer, "the issuer was sent what is no request: \(fault)")
        } _: { [unowned self] arrival, wire, reply in
            take(arrival, wire, reply)
        }
    }

    /// Whether what it was asked for lately came late.
    func wasLate(since time: UInt64) -> Bool {
        if case .late = mood { return true }
        return lateUntil > 0 && lateUntil + .seconds(5) > time
    }

    /// Whether a process's request for a token of a client has been under way since before some time.
    func isAsked(by process: ProcessName, for client: String, before time: UInt64) -> Bool {
        grants.values.contains {
            $0.process == process && $0.client.replacing("+odd", with: "") == client && !$0.isAnswered
                && !$0.wire.isAbandoned && $0.beganAt <= time
        }
    }

    // MARK: - Requests

    private func take(_ arrival: Server.Arrival, _ wire: Wire, _ reply: @escaping (Server.Reply) -> Void) {
        let request = arrival.request
        calls += 1
        let form = Form(request.body)
        let client = self.client(of: request, form)
        let kind = request.target == "/device" ? "device" : form["grant_type"] ?? "?"
        let process = wire.process
        world.journal.note(
            .issuer, wire.number, request.body,
            "g\(wire.gateway) asks for \(kind) of \(client ?? "?") \(form["scope"] ?? "")")
        noteCall(process, client.map { [$0, form["user"]].compactMap(\.self).joined(separator: "/") } ?? "?")
        guard var client else {
            world.verdicts.expect(
                world.secretsWereWrong, .credentialPlace, "a client is not known, or its secret is wrong")
            return reply(.bytes(Answer.json(401, #"{"error":"invalid_client"}"#)))
        }
        // A token for one audience is of no use to another.
        if let audience = form["audience"] { client += "@\(audience)" }
        // Another edition of an identity has tokens of its own.
        if form["edition"] != nil { client += "+odd" }
        if let user = form["user"] { client += "/\(user)" }
        // A login goes its way beside the token that stands until then.
        if client != Person.client {
            looksAtGrants(client, form.scopes, wire, process, beganAt: arrival.spokeAt)
        }
        // An issuer that gives what its APIs do not take yet is a busy one: meanwhile requests of several paths come to wait for it.
        let pause: UInt64 = world.tokens.isNextDead(of: client) ? draw.below(.milliseconds(400)) : 0
        let answer = self.answer(kind, client, form, wire, process)
        let delay = .milliseconds(1) + draw.below(.milliseconds(20)) + pause
        switch mood {
        case .silence: return
        case .late(let extra):
            world.timeline.after(delay + extra) { [self, client] in finish(client, wire, answer, reply) }
        default: world.timeline.after(delay) { [self, client] in finish(client, wire, answer, reply) }
        }
    }

    private struct Made {
        var bytes: [UInt8]
        /// Called when the gateway has read all of it.
        var wasRead: () -> Void = {}
        var isLogin = false
    }

    private func finish(_ client: String, _ wire: Wire, _ answer: Made, _ reply: (Server.Reply) -> Void) {
        let key = Grant.Key(gateway: wire.gateway, client: client)
        if grants[key]?.wire === wire { grants[key]?.isAnswered = true }
        switch mood {
        case .breaks: return reply(.cut([], isReset: true))
        case .twice: reply(.bytes(answer.bytes + answer.bytes))
        default: reply(.bytes(answer.bytes))
        }
        wire.whenRead { [world] in
            answer.wasRead()
            world.gateways[wire.gateway].hasReadAnswer(ofLogin: answer.isLogin)
        }
    }

    private func client(of request: Message, _ form: Form) -> String? {
        guard let value = request.field("authorization"), value.hasPrefix("Basic "),
            let data = Data(base64Encoded: String(value.dropFirst(6)))
        else { return nil }
        let pair = String(decoding: data, as: UTF8.self).split(separator: ":", maxSplits: 1).map(String.init)
        return pair.count == 2 && clients[pair[0]] == pair[1] ? pair[0] : nil
    }

    private func looksAtGrants(
        _ client: String, _ scopes: Set<Substring>, _ wire: Wire, _ process: ProcessName, beganAt: UInt64
    ) {
        let key = Grant.Key(gateway: wire.gateway, client: client)
        let holder = world.gateways[wire.gateway]
        // Behind a purge or a reload another key may be meant: what was under way before is not used.
        if let last = grants[key], last.process == process {
            world.verdicts.expect(
                last.isAnswered || last.wire.isAbandoned || last.beganAt <= holder.changedUntil,
                .oneGrant,
                "g\(wire.gateway) asks for \(client) while its last request is under way")
        }
        looksForGoodToken(client, scopes, wire, process)
        grants[key] = Grant(
            wire: wire, process: process, client: client, beganAt: beganAt)
        guard let redis = world.redis, redis.isCalm else { return }
        for (other, grant) in grants where other.client == client && other.gateway != wire.gateway {
            world.verdicts.expect(
                grant.isAnswered || grant.wire.isAbandoned, .oneGrant,
                "g\(wire.gateway) asks for \(client) while g\(other.gateway)'s request is under way, in a calm fleet")
        }
    }

    /// Nobody asks for a token while the one in service is good: its own last one, or in a fleet that is calm the last one of all.
    private func looksForGoodToken(
        _ client: String, _ scopes: Set<Substring>, _ wire: Wire, _ process: ProcessName
    ) {
        if let redis = world.redis, !redis.isCalm { return }
        // What was used least has given way.
        guard !client.contains("/") || world.limits.subjects > world.limits.users else { return }
        let known = grants.values.filter {
            $0.client == client && knows(process, what: $0.process, readAt: $0.readAt)
        }
        guard let token = known.compactMap(\.token).max(by: { $0.given < $1.given }),
            scopes.isSubset(of: token.scopes), let now = world.tokens.access[token.text],
            token.given > world.gateways[wire.gateway].letGoAt
        else { return }
        // Another gateway's token, which nobody can know that this one had, has taken its place and was refused.
        let isReplaced = world.tokens.access.values.contains {
            $0.client == token.client && $0.given > token.given && $0.isRefused
        }
        guard !isReplaced else { return }
        let life = token.end - token.given
        let left = token.end > world.timeline.now ? token.end - world.timeline.now : 0
        world.verdicts.expect(
            now.isRefused || left * 100 < life * 40 || life < .seconds(5), .servedToken,
            "\(process) asks for \(client) although its token is good for \(left / 1_000_000) ms more")
    }

    /// Nothing is asked for again and again without a pause.
    private func noteCall(_ process: ProcessName, _ client: String) {
        let second = world.timeline.now / .seconds(1)
        if second != callSecond {
            callSecond = second
            callsInSecond = [:]
        }
        let count = callsInSecond["\(process) \(client)", default: 0] + 1
        callsInSecond["\(process) \(client)"] = count
        // Who cannot be told apart by a client's secret may be each user for a token of their own.
        let most = client == "?" ? 30 + world.limits.users : 30
        world.verdicts.expect(
            count < most, .restless, "\(process) has asked \(count) times in this second for a token of \(client)")
    }

    /// What spends something is done under a lock of the fleet.
    private func looksAtLease(_ kind: String, _ client: String, _ process: ProcessName) {
        guard let redis = world.redis else { return }
        world.verdicts.expect(
            redis.hasTurn(process), .fleetLease, "\(process) sends a \(kind) step of \(client) without the turn")
    }

    /// Whether a process can know what another one has read: it is the same one, an earlier life of its gateway has kept it, or the fleet has
    /// had the time to tell it.
    /// - Parameter isKept: whoever goes on from it has put it into its store before.
    private func knows(
        _ process: ProcessName, what reader: ProcessName, readAt time: UInt64?, isKept: Bool = false
    ) -> Bool {
        guard let time else { return false }
        if reader == process { return true }
        if isKept, reader.gateway == process.gateway, World.hasStore(world.seed),
            world.gateways[process.gateway].disk.hasKeptItsWord
        {
            return true
        }
        guard let redis = world.redis, redis.isCalm,
            isKept || world.gateways[reader.gateway].livedOn(reader, after: time)
        else { return false }
        return world.timeline.now > time + .seconds(3)
    }

    // MARK: - Answers

    private func answer(
        _ kind: String, _ client: String, _ form: Form, _ wire: Wire, _ process: ProcessName
    ) -> Made {
        switch mood {
        case .status(let status): return Made(bytes: Answer.json(status, #"{"error":"temporarily_unavailable"}"#))
        case .foreign(let status): return Made(bytes: Self.foreign(status))
        case .garbage: return Made(bytes: Answer.text(200, ["Content-Type: application/json"], [0xff, 0x7b, 0x22]))
        default: break
        }
        switch kind {
        case "client_credentials": return granted(client, form.scopes, wire, process, family: nil)
        case "password":
            looksAtLease(kind, client, process)
            let (user, password) = (form["username"] ?? "", form["password"] ?? "")
            for refusal in refusals where refusal.password == password {
                world.verdicts.expect(
                    world.redis?.hasLostData == true
                        || !knows(process, what: refusal.reader, readAt: refusal.readAt, isKept: true),
                    .refusedPassword,
                    "\(process) sends the password of \(user) that was refused to \(refusal.reader)")
            }
            guard passwords[user] == password else {
                world.refusedUsers.insert(user)
                let index = refusals.count
                refusals.append(Refusal(password: password, reader: process))
                return Made(bytes: Answer.json(400, #"{"error":"invalid_grant"}"#)) { [self] in
                    refusals[index].readAt = world.timeline.now
                }
            }
            return granted(client, [], wire, process, family: (client, []))
        case "device": return Made(bytes: deviceOffer())
        case Self.deviceGrant: return loggedIn(form["device_code"] ?? "", wire, process)
        case "refresh_token":
            looksAtLease(kind, client, process)
            return refreshed(client, form["refresh_token"] ?? "", wire, process)
        default: return Made(bytes: Answer.json(400, #"{"error":"unsupported_grant_type"}"#))
        }
    }

    static func foreign(_ status: Int) -> [UInt8] {
        Answer.text(status, ["Content-Type: text/html"], Array("<html>log in first</html>\n".utf8))
    }

    private func refreshed(_ client: String, _ text: String, _ wire: Wire, _ process: ProcessName) -> Made {
        let logins = families.keys.filter { $0.hasPrefix("\(client)#") }.sorted()
        let name = logins.first { families[$0]?.contains { $0.text == text } == true } ?? client
        let family = families[name] ?? []
        guard let index = family.firstIndex(where: { $0.text == text }) else {
            return Made(bytes: Answer.json(400, #"{"error":"invalid_grant"}"#))
        }
        if index + 1 < family.count {
            let successor = family[index + 1]
            // A token is served once what came with it is in the store.
            let isKept = world.tokens.access[successor.token]?.isUsed ?? false
            world.verdicts.expect(
                world.redis?.hasLostData == true
                    || !knows(process, what: successor.reader, readAt: successor.readAt, isKept: isKept),
                .spentRefreshToken,
                "\(process) sends a refresh token of \(client) whose successor \(successor.reader) has")
            // The one retry after an answer that was lost; a strict server ends the family.
            families[name] = []
            return Made(bytes: Answer.json(400, #"{"error":"invalid_grant"}"#))
        }
        world.verdicts.expect(true, .spentRefreshToken, "")
        return granted(client, [], wire, process, family: (name, family))
    }

    private func deviceOffer() -> [UInt8] {
        let (code, user) = (world.tokens.secret("dc"), world.tokens.name("U"))
        deviceCodes.insert(code)
        return Answer.json(
            200,
            #"{"device_code":"\#(code)","user_code":"\#(user)","verification_uri":"http://issuer.example:9001/in","#
                + #""expires_in":600,"interval":1}"#)
    }

    /// The person enters the code a moment before or after it is asked about first.
    private func loggedIn(_ code: String, _ wire: Wire, _ process: ProcessName) -> Made {
        guard deviceCodes.contains(code) else { return Made(bytes: Answer.json(400, #"{"error":"invalid_grant"}"#)) }
        if draw.once(in: 4) { return Made(bytes: Answer.json(400, #"{"error":"authorization_pending"}"#)) }
        deviceCodes.remove(code)
        logins += 1
        let name = "\(Person.client)#\(logins)"
        for person in world.persons where person.cares(for: process.gateway) { person.isGiven(name) }
        var made = granted(Person.client, [], wire, process, family: (name, []))
        made.isLogin = true
        return made
    }

    /// Whether somebody has had the last refresh token of a login for a second.
    func isRenewable(_ name: String) -> Bool {
        guard let readAt = families[name]?.last?.readAt else { return false }
        return world.timeline.now > readAt + .seconds(1)
    }

    /// - Parameter family: nil: no refresh token is given.
    private func granted(
        _ client: String, _ scopes: Set<Substring>, _ wire: Wire, _ process: ProcessName,
        family: (name: String, tokens: [RefreshToken])?
    ) -> Made {
        let token = world.tokens.give(
            to: client.replacing("+odd", with: ""), scopes: scopes, gateway: wire.gateway, now: world.timeline.now,
            life: life)
        let key = Grant.Key(gateway: wire.gateway, client: client)
        grants[key]?.token = token
        var text = #"{"access_token":"\#(token.text)","token_type":"Bearer","expires_in":\#(life / 1_000_000_000)"#
        var refresh: String?
        if var family {
            let next = world.tokens.secret("rt")
            refresh = next
            family.tokens.append(RefreshToken(text: next, reader: process, token: token.text))
            families[family.name] = family.tokens
            text += #","refresh_token":"\#(next)""#
        }
        return Made(bytes: Answer.json(200, text + "}")) { [self] in
            if grants[key]?.wire === wire { grants[key]?.readAt = world.timeline.now }
            guard let refresh, let name = family?.name,
                let index = families[name]?.firstIndex(where: { $0.text == refresh })
            else { return }
            families[name]?[index].readAt = world.timeline.now
        }
    }
}

/// The members of a posted form.
struct Form {
    private var members: [String: String] = [:]

    init(_ body: [UInt8]) {
        for pair in String(decoding: body, as: UTF8.self).split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            members[Self.decoded(parts[0])] = parts.count == 2 ? Self.decoded(parts[1]) : ""
        }
    }

    subscript(name: String) -> String? { members[name] }

    var scopes: Set<Substring> { Set((members["scope"] ?? "").split(separator: " ")) }

    private static func decoded(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == 0x25, rest.count >= 2,
                let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte == 0x2b ? 0x20 : byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
