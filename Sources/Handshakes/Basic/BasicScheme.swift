internal import Configuration
internal import Tokens

/// `basic`: HTTP Basic (RFC 7617).
struct BasicScheme: Scheme {
    static let key = KeySpec(
        "basic",
        .block(
            Block(
                name: "basic", description: "HTTP Basic.",
                keys: [
                    KeySpec("username", .text(.line), "The user, without a colon.", required: true),
                    // The same user may have another password elsewhere, and here the password is the token.
                    KeySpec("password", .secret, "The password.", required: true, digest: .place),
                ])), "HTTP Basic.")

    private let username: String
    var sendsPassword: Bool { true }
    var challengeSchemes: [String] { ["Basic"] }
    var showsPassword: Bool { true }

    init(_ keys: BlockReader, of identity: SchemeOwner) {
        username = keys.text("username") ?? ""
        if username.contains(":") { keys.refuse("username", "must not have a colon (RFC 7617)") }
    }

    func handshake(of identity: Identity, statuses: [Int]?, _ world: GrantWorld) throws(GrantFailure) -> any Handshake {
        try BasicHandshake(username: username)
    }

    func traits(of identity: Identity) -> SchemeTraits {
        // The upstream is the judge of the password; it stands in the route, so the account is the identity's alone.
        let judge = Tokens.Origin(scheme: "basic", host: ByteString(identity.name), port: 0)
        return SchemeTraits(.basic, account: Account(issuer: judge, user: ByteString(username)))
    }
}
