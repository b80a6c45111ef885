/// What issuers have given out, and what became of it: the truth that credentials on their way are compared with.
final class Tokens {
    struct Access {
        let text: String
        /// The client that it was given to; also the route that it is for.
        let client: String
        let scopes: Set<Substring>
        let gateway: Int
        let given: UInt64
        /// Nanoseconds; the issuer said so.
        let end: UInt64
        /// Nobody takes it any more.
        var isRevoked = false
        /// A refusal of it has left an upstream.
        var isRefused = false
        /// It has come to an upstream.
        var isUsed = false
    }

    private(set) var access: [String: Access] = [:]
    /// When all tokens of a client were taken away, nanoseconds.
    private var revocations: [(client: String, time: UInt64)] = []
    /// Nanoseconds that a token may take from an issuer that is not late to its gateway, and to the rest of a fleet.
    private static let journey: UInt64 = .milliseconds(100)
    /// In every secret of the simulation, so that it is found wherever one is told.
    static let canary: StaticString = "CANARY"
    /// Clients whose next token is dead when they have it.
    private var doomed: Set<String> = []
    private var count: UInt64 = 0
    private var draw: Draw

    init(seed: UInt64) { draw = Draw(seed, Purpose.issuers) }

    /// A text that this run has not used before, and that anybody may know.
    func name(_ kind: String) -> String {
        count += 1
        return "\(kind)\(count)-\(String(draw.next(), radix: 36))"
    }

    /// A text that nobody can guess, and that this run has not used before.
    func secret(_ kind: String) -> String {
        count += 1
        return "\(kind)\(count)-\(Self.canary)-\(String(draw.next(), radix: 36))"
    }

    /// Takes the tokens of a client away, and the one that it is given next.
    func revokeNext(_ client: String, now: UInt64) {
        revoke(client, now: now)
        doomed.insert(client)
    }

    func isNextDead(of client: String) -> Bool { doomed.contains(client) }

    func give(to client: String, scopes: Set<Substring> = [], gateway: Int, now: UInt64, life: UInt64) -> Access {
        var token = Access(
            text: secret("at"), client: client, scopes: scopes, gateway: gateway, given: now, end: now + life)
        if doomed.remove(client) != nil {
            token.isRevoked = true
            revocations.append((client, now))
        }
        access[token.text] = token
        return token
    }

    /// - Parameter client: a client, or the first part of several clients' names.
    func revoke(_ client: String, now: UInt64) {
        revocations.append((client, now))
        for token in access.values where token.client.hasPrefix(client) { access[token.text]?.isRevoked = true }
    }

    /// How often a client's tokens were taken away.
    func revocations(of client: String, since time: UInt64) -> Int {
        revocations.count { client.hasPrefix($0.client) && $0.time >= time }
    }

    /// Whether a token that was taken away less than 5 s before some time, or since, had been given since that time or just before its end.
    func wereJustGiven(to client: String, since time: UInt64) -> Bool {
        revocations.contains { revocation in
            let end = revocation.time
            return client.hasPrefix(revocation.client) && end + .seconds(5) >= time
                && access.values.contains {
                    $0.client == client && $0.given < end && ($0.given + Self.journey > end || $0.given > time)
                }
        }
    }

    func noteUse(of text: String) { access[text]?.isUsed = true }
    func noteRefusal(of text: String) { access[text]?.isRefused = true }
}
