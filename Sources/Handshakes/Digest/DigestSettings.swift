internal import Configuration

/// The settings of a block `digest`.
struct DigestSettings: Sendable, Equatable {
    var username: String
    /// The families that may be answered.
    var algorithms: [DigestAlgorithm.Family] = [.sha512Truncated256, .sha256]
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
                "algorithms", .list(.words(DigestAlgorithm.Family.self)),
                "The algorithms that may be answered, with their -sess forms: the strongest that is offered is taken. `sha-512-256` and `sha-256` where it is not given; `md5` is for servers that know no other.",
                digest: .nothing),
            KeySpec(
                "qop", .list(.words(DigestProtection.self)),
                "What an answer may cover: method and target (`auth`), or the body, too (`auth-int`), which is taken where it is offered. `auth` where it is not given.",
                digest: .nothing),
            KeySpec(
                "realm", .text(.line), "The only realm that is answered; any without it.", digest: .nothing),
        ])

    init(username: String) { self.username = username }

    init(_ keys: BlockReader) {
        self.init(username: keys.line("username"))
        if let words = keys.list("algorithms", Self.word) as [DigestAlgorithm.Family]? { algorithms = words }
        if let words = keys.list("qop", Self.word) as [DigestProtection]? { protections = words }
        realm = keys.text("realm")
        if username.contains(":") { keys.refuse("username", "must not have a colon (RFC 7616 section 3.4)") }
        if algorithms.isEmpty { keys.refuse("algorithms", "must name one") }
        if protections.isEmpty { keys.refuse("qop", "must name one") }
    }

    private static func word<Word: RawRepresentable<String>>(_ text: String) throws(TextFault) -> Word {
        guard let word = Word(rawValue: text) else { throw TextFault("is not known") }
        return word
    }
}

// MARK: - Challenges

extension DigestSettings {
    /// The part of a request that an answer to this challenge covers; nil: as before RFC 2617, nothing is told of it.
    func protection(for challenge: DigestChallenge) -> DigestProtection? {
        let common = challenge.protections.intersection(protections)
        return common.contains(.authInt) ? .authInt : common.first
    }

    /// - Returns: why the challenge is not answered; nil where it is.
    func reason(against challenge: DigestChallenge) -> String? {
        if let realm, challenge.realm != Array(realm.utf8) { return "another realm than 'realm' names" }
        let word = challenge.algorithm.family.rawValue
        guard algorithms.contains(challenge.algorithm.family) else {
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
