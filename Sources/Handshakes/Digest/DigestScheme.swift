internal import Configuration
internal import Tokens

/// `digest`: HTTP Digest (RFC 7616).
struct DigestScheme: Scheme {
    static let key = KeySpec(DigestSettings.block)

    let settings: DigestSettings
    var sendsPassword: Bool { true }
    var challengeSchemes: [String] { ["Digest"] }

    init(_ keys: BlockReader, of identity: SchemeOwner) { settings = DigestSettings(keys) }

    func check(_ route: Route, _ keys: BlockReader, of identity: Identity) {
        if route.onRejected.replay == .never {
            keys.error(
                "'on_rejected.replay' of \(keys.place): without a second request no challenge of 'digest' can be answered",
                at: "on_rejected")
        }
        if keys.has("inject") {
            keys.error(
                "'inject' of \(keys.place): 'digest' writes Authorization, whose place its protocol names", at: "inject"
            )
        }
    }

    func handshake(of identity: Identity, statuses: [Int]?, _ world: GrantWorld) throws(GrantFailure) -> any Handshake {
        try DigestHandshake(settings, statuses: statuses)
    }

    func traits(of identity: Identity) -> SchemeTraits {
        // The upstream is the judge of the password; it stands in the route, so the account is the identity's alone.
        let judge = Tokens.Origin(scheme: "digest", host: ByteString(identity.name), port: 0)
        return SchemeTraits(.basic, account: Account(issuer: judge, user: ByteString(settings.username)))
    }

    /// The fields of answers that tell the gateway of nonces, and the caller nothing.
    var edits: SchemeEdits {
        var edits = SchemeEdits()
        edits.dropsFields = ["Authentication-Info"]
        return edits
    }
}
