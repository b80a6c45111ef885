internal import Configuration
internal import HTTP1
internal import Octets

/// The settings of a block `digest`.
struct DigestSettings: Sendable, Equatable {
    var username: String
    /// The functions that may be answered with.
    var algorithms: [DigestFunction]
    var protections: [DigestProtection] = [.auth]
    /// The only one that is answered; nil: any.
    var realm: String?

    static let block = Block(
        name: "digest", description: "HTTP Digest (RFC 7616): the password itself is never sent.",
        keys: [
            KeySpec("username", .text(.line), "The user, without a colon.", required: true),
            // The same user may have another password elsewhere, and no issuer stands beside it.
            KeySpec("password", .secret, "The password.", required: true, digest: .place),
            KeySpec(
                "algorithms", .list(.words(DigestFunction.self)),
                "The algorithms that may be answered, with their -sess forms: the strongest that is offered is taken. `sha-512-256` and `sha-256` where it is not given; `md5` is for servers that know no other.",
                digest: .nothing),
            KeySpec(
                "qop", .list(.words(DigestProtection.self)),
                "What an answer may cover: method and target (`auth`), or the body, too (`auth-int`), which is taken where it is offered. `auth` where it is not given.",
                digest: .nothing),
            KeySpec(
                "realm", .text(.line), "The only realm that is answered; any without it.", digest: .nothing),
        ])

    init(username: String, algorithms: [DigestFunction] = [.sha512Truncated256, .sha256]) {
        self.username = username
        self.algorithms = algorithms
    }

    init(_ keys: BlockReader) {
        self.init(username: keys.line("username"))
        if let words = keys.words("algorithms") as [DigestFunction]? { algorithms = words }
        if let words = keys.words("qop") as [DigestProtection]? { protections = words }
        realm = keys.text("realm")
        if username.contains(":") { keys.refuse("username", "must not have a colon (RFC 7616 section 3.4)") }
        if algorithms.isEmpty { keys.refuse("algorithms", "must name one") }
        if protections.isEmpty { keys.refuse("qop", "must name one") }
    }
}

// MARK: - Challenges

extension DigestSettings {
    /// The outcome of a look for a challenge.
    enum Choice {
        case none
        /// The reason is safe text.
        case unusable(reason: String)
        case challenge(DigestChallenge)
    }

    /// The strongest challenge that is offered and allowed; of equals the first.
    /// - Parameter lines: the values of all fields of an answer that hold challenges.
    func choice(of lines: [[UInt8]]) -> Choice {
        var best: DigestChallenge?
        var complaint: String?
        for item in AuthChallenge.list(lines) where item.scheme.matches("digest") {
            do throws(DigestChallenge.Complaint) {
                let challenge = try DigestChallenge(item)
                if let reason = reason(against: challenge) { throw DigestChallenge.Complaint(reason) }
                if best.map({ challenge.algorithm.function.rank < $0.algorithm.function.rank }) ?? true {
                    best = challenge
                }
            } catch { complaint = complaint ?? error.reason }
        }
        if let best { return .challenge(best) }
        return complaint.map { .unusable(reason: "Digest: \($0)") } ?? .none
    }

    /// The part of a request that an answer to this challenge covers; nil: as before RFC 2617, nothing is told of it.
    func protection(for challenge: DigestChallenge) -> DigestProtection? {
        let common = challenge.protections.intersection(protections)
        return common.contains(.authInt) ? .authInt : common.first
    }

    /// - Returns: why the challenge is not answered; nil where it is.
    func reason(against challenge: DigestChallenge) -> String? {
        if let realm, challenge.realm != Array(realm.utf8) { return "another realm than 'realm' names" }
        let word = challenge.algorithm.function.rawValue
        guard algorithms.contains(challenge.algorithm.function) else {
            return "offers \(word) alone, which 'algorithms' does not name"
        }
        if challenge.protections.isEmpty {
            return protections.contains(.auth) ? nil : "offers no auth-int, which 'qop' asks for"
        }
        if protection(for: challenge) == nil {
            return
                "offers \(challenge.protections.map(\.rawValue).sorted().joined(separator: ", ")) alone, which 'qop' does not name"
        }
        return nil
    }
}

extension DigestFunction {
    /// 0 is the strongest.
    fileprivate var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}
