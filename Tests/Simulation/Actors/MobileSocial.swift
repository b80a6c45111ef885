import FoundationEssentials

/// Oracle Access Manager behind one address: the Mobile & Social service that gives tokens, and what its WebGate, in front of an API, asks
/// for. A context of a challenge is good once and for one URL; a token is good for the WebGate that asked for it.
final class MobileSocial {
    private let world: World
    private var draw: Draw
    /// Contexts of challenges that nobody has used, by their text: the resource that each is for, and its WebGate's realm.
    private var contexts: [String: (resource: String, realm: String)] = [:]
    private var handles: Set<String> = []
    private var userTokens: Set<String> = []
    private var refusals: [PasswordRefusal] = []

    static let user = "svc"
    static let client = "gate"
    private static let agent = "OIC-Agent"

    init(_ world: World) {
        self.world = world
        draw = Draw(world.seed, Purpose.issuers + 700)
    }

    /// Sessions end, as with a restart of the service: no token is good any more, everybody has to log in again, and perhaps to register.
    func forgets(registrations: Bool) {
        world.tokens.revoke(Self.client, now: world.timeline.now)
        userTokens = []
        if registrations { handles = [] }
    }

    // MARK: - The WebGate

    /// - Returns: nil where the request may pass.
    func gate(_ arrival: Server.Arrival, _ upstream: String) -> (text: String?, refusal: [UInt8]?) {
        let request = arrival.request
        world.verdicts.expect(
            request.field("user-agent")?.hasPrefix(Self.agent) == true, .rightAnswer,
            "\(upstream) was asked by a user agent that no WebGate challenges")
        let values = request.all("authorization")
        world.verdicts.expect(values.count <= 1, .credentialPlace, "\(upstream) got \(values.count) credentials")
        if let value = values.first, value.hasPrefix("OAM-Auth ") {
            return (String(value.dropFirst(9)), challenge(request))
        }
        // A caller's own credential gives way where there is one of ours, and is no business of the gateway's elsewhere.
        return (nil, challenge(request))
    }

    private func challenge(_ request: Message) -> [UInt8] {
        let context = world.tokens.name("ctx")
        let realm = realm(of: request.target)
        contexts[context] = ("\(world.scheme)://\(request.field("host") ?? "")\(request.target)", realm)
        let value = #"OAM-Auth realm="\#(realm):2 \#(request.target)", request-ctx="\#(context)""#
        return Answer.text(
            401, ["WWW-Authenticate: \(value)", "Content-Type: text/html"], Array("<html>no</html>\n".utf8))
    }

    /// In every fifth seed an API stands behind more WebGates than a route remembers realms of.
    func realm(of target: Substring) -> String {
        guard world.seed % 5 == 2 else { return "GATE" }
        let path = target.prefix { $0 != "?" }
        return "GATE\(path.utf8.reduce(0) { $0 + Int($1) } % 18)"
    }

    // MARK: - The service

    func accept(_ wire: Wire) -> any Conversation {
        Server(wire) { [unowned world] fault in
            world.verdicts.expect(false, .rightAnswer, "the service was sent what is no request: \(fault)")
        } _: { [unowned self] arrival, wire, reply in
            let delay = .milliseconds(1) + draw.below(.milliseconds(20))
            let (mood, answer) = (world.issuer.mood, self.answer(arrival, wire))
            switch mood {
            case .silence: return
            case .late(let extra): world.timeline.after(delay + extra) { reply(.bytes(answer)) }
            case .breaks: world.timeline.after(delay) { reply(.cut([], isReset: true)) }
            case .twice: world.timeline.after(delay) { reply(.bytes(answer + answer)) }
            default: world.timeline.after(delay) { reply(.bytes(answer)) }
            }
        }
    }

    private struct Members: Decodable {
        let created: String?
        let password: String?
        let subject: String?
        let context: String?
        let resource: String?

        enum CodingKeys: String, CodingKey {
            case created = "X-Idaas-Rest-New-Token-Type-To-Create"
            case password = "X-Idaas-Rest-Subject-Password"
            case subject = "X-Idaas-Rest-Subject-Value"
            case context = "X-Idaas-Rest-Application-Context"
            case resource = "X-Idaas-Rest-Application-Resource"
        }
    }

    private func answer(_ arrival: Server.Arrival, _ wire: Wire) -> [UInt8] {
        let request = arrival.request
        let step = request.target.split(separator: "/").last ?? ""
        world.journal.note(.issuer, wire.number, Array(step.utf8), "\(wire.process) asks the service for \(step)")
        switch world.issuer.mood {
        case .status(let status): return Answer.json(status, #"{"message":"not now"}"#)
        case .foreign(let status): return OAuthIssuer.foreign(status)
        case .garbage: return Answer.text(200, ["Content-Type: application/json"], [0xff, 0x7b, 0x22])
        default: break
        }
        guard let members = try? JSONDecoder().decode(Members.self, from: Data(request.body)) else {
            world.verdicts.expect(false, .rightAnswer, "the service was sent what is no JSON")
            return Answer.json(400, #"{"message":"no JSON","oicErrorCode":"IDAAS-00004"}"#)
        }
        if step == "register" || step == "authenticate" {
            if let refusal = refusal(of: members.password ?? "", arrival, wire) { return refusal }
        }
        if step != "register", !hasHandle(request) {
            return Answer.json(401, #"{"message":"the registration handle is unknown","oicErrorCode":"IDAAS-61007"}"#)
        }
        switch step {
        case "register":
            let handle = world.tokens.secret("h")
            handles.insert(handle)
            return given(handle, "CLIENTREGHANDLE")
        case "authenticate":
            let token = world.tokens.secret("ut")
            userTokens.insert(token)
            return given(token, "USERTOKEN")
        default: return access(members, wire)
        }
    }

    private func hasHandle(_ request: Message) -> Bool {
        guard let value = request.field("x-idaas-rest-authorization"), value.hasPrefix("UIDPASSWORD cred=\""),
            let data = Data(base64Encoded: String(value.dropFirst(18).dropLast()))
        else { return false }
        return handles.contains(String(String(decoding: data, as: UTF8.self).dropFirst("EdgeProxy:".count)))
    }

    private func access(_ members: Members, _ wire: Wire) -> [UInt8] {
        guard userTokens.contains(members.subject ?? "") else {
            return Answer.json(401, #"{"message":"user token is not valid","oicErrorCode":"IDAAS-62010"}"#)
        }
        guard let context = members.context, let asked = contexts.removeValue(forKey: context) else {
            return Answer.json(400, #"{"message":"request context is unknown","oicErrorCode":"IDAAS-62012"}"#)
        }
        world.verdicts.expect(
            members.resource == asked.resource, .rightAnswer,
            "a context of \(asked.resource) is used for \(members.resource ?? "nothing")")
        let token = world.tokens.give(
            to: Self.client, scopes: [Substring(asked.realm)], gateway: wire.gateway, now: world.timeline.now,
            life: world.issuer.life)
        return given(token.text, "ACCESSTOKEN")
    }

    private func given(_ text: String, _ type: String) -> [UInt8] {
        Answer.json(200, #"{"X-Idaas-Rest-Token-Type":"\#(type)","X-Idaas-Rest-Token-Value":"\#(text)"}"#)
    }

    /// - Returns: nil where the password is good.
    private func refusal(of password: String, _ arrival: Server.Arrival, _ wire: Wire) -> [UInt8]? {
        for refusal in refusals where refusal.password == password {
            world.verdicts.expect(
                !refusal.wasKnown(to: wire.process, at: arrival.spokeAt, in: world), .refusedPassword,
                "\(wire.process) sends the password of \(Self.user) that was refused to \(refusal.reader)")
        }
        guard password != world.issuer.passwords[Self.user] else { return nil }
        world.refusedUsers.insert(Self.user)
        let index = refusals.count
        refusals.append(PasswordRefusal(password: password, reader: wire.process))
        wire.whenNextRead { [self] in refusals[index].readAt = world.timeline.now }
        return Answer.json(401, #"{"message":"authentication failed","oicErrorCode":"IDAAS-62001"}"#)
    }
}
