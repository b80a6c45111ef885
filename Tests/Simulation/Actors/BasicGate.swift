import FoundationEssentials

/// The gate of an API that wants a password with each request, by Basic or, in a share of seeds, by Digest; it remembers which passwords it has
/// refused.
final class BasicGate {
    private let world: World
    private let name: String
    private let digest: DigestGate
    private var refusals: [PasswordRefusal] = []

    static let user = "otto"
    /// A password that was good before is held back when three paths have refused it; an answer from before, which was on its way, begins
    /// the count anew.
    private static let enough = 10

    init(_ world: World, name: String) {
        self.world = world
        self.name = name
        digest = DigestGate(world, name: name)
    }

    /// - Returns: nil where the password is good.
    func refusal(of arrival: Server.Arrival, _ values: [String], _ wire: Wire) -> [UInt8]? {
        world.verdicts.expect(values.count <= 1, .credentialPlace, "\(name) got \(values.count) credentials")
        guard World.usesDigest(world.seed) else {
            let challenge = Answer.text(401, ["WWW-Authenticate: Basic realm=\"api\""], Array("no!\n".utf8))
            guard let password = password(in: values) else { return challenge }
            return isGood(password, arrival, wire) ? nil : challenge
        }
        switch digest.read(arrival.request, values, wire) {
        case .password(let password):
            return isGood(password, arrival, wire) ? nil : digest.challenge(isStale: false, wire)
        case .missing(let isStale): return digest.challenge(isStale: isStale, wire)
        }
    }

    private func password(in values: [String]) -> String? {
        guard let value = values.first, value.hasPrefix("Basic "),
            let data = Data(base64Encoded: String(value.dropFirst(6)))
        else { return nil }
        let pair = String(decoding: data, as: UTF8.self).split(separator: ":", maxSplits: 1).map(String.init)
        world.verdicts.expect(
            pair.count == 2 && pair[0] == Self.user, .credentialPlace, "\(name) got a password of somebody else")
        return pair.count == 2 ? pair[1] : nil
    }

    private func isGood(_ password: String, _ arrival: Server.Arrival, _ wire: Wire) -> Bool {
        let known = refusals.count {
            $0.password == password && $0.wasKnown(to: wire.process, at: arrival.spokeAt, in: world)
        }
        world.verdicts.expect(
            known < Self.enough, .refusedPassword,
            "\(wire.process) sends the password of \(Self.user) that it knows to be refused \(known) times")
        let gateway = world.gateways[wire.process.gateway]
        world.verdicts.expect(
            !(World.hasStore(world.seed) && gateway.heldBack.isKnown(password, of: Self.user, to: wire.process)),
            .refusedPassword,
            "\(wire.process) sends the password of \(Self.user) that a process before it had put into quarantine")
        guard password != world.issuer.passwords[Self.user] else { return true }
        world.refusedUsers.insert(Self.user)
        let index = refusals.count
        refusals.append(PasswordRefusal(password: password, reader: wire.process))
        wire.whenNextRead { [self] in refusals[index].readAt = world.timeline.now }
        return false
    }
}
