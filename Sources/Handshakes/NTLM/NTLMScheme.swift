internal import Configuration
internal import Tokens

/// `ntlm`: NTLM version 2 toward upstreams ([MS-NTHT]).
struct NTLMScheme: Scheme {
    static let key = KeySpec(NTLMSettings.block)

    let settings: NTLMSettings
    var sendsPassword: Bool { true }
    var challengeSchemes: [String] { [settings.word.written] }

    init(_ keys: BlockReader, of identity: SchemeOwner) { settings = NTLMSettings(keys) }

    func check(_ route: Route, _ keys: BlockReader, of identity: Identity) {
        if route.onRejected.replay == .never {
            keys.error(
                "'on_rejected.replay' of \(keys.place): NTLM takes three messages, of which the request carries two",
                at: "on_rejected")
        }
        if keys.has("inject") {
            keys.error(
                "'inject' of \(keys.place): 'ntlm' writes Authorization, whose place its protocol names", at: "inject")
        }
        if route.http == .http2 {
            keys.error(
                "'http: 2' of \(keys.place): NTLM authenticates connections, and those of HTTP/2 are shared", at: "http"
            )
        }
    }

    func handshake(of identity: Identity, statuses: [Int]?, _ world: GrantWorld) throws(GrantFailure) -> any Handshake {
        try NTLMHandshake(settings, statuses: statuses)
    }

    func traits(of identity: Identity) -> SchemeTraits {
        // The upstream is the judge of the password; it stands in the route, so the account is the identity's alone.
        let judge = Tokens.Origin(scheme: "ntlm", host: ByteString(identity.name), port: 0)
        let user = "\(settings.domain)\\\(settings.username)"
        return SchemeTraits(.basic, account: Account(issuer: judge, user: ByteString(user)))
    }
}
