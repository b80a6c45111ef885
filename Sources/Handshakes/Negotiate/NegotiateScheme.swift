internal import Configuration
internal import GSSAPI
internal import Tokens

/// `negotiate`: Kerberos by HTTP Negotiate (RFC 4559).
struct NegotiateScheme: Scheme {
    static let key = KeySpec(NegotiateSettings.block)

    let settings: NegotiateSettings
    var challengeSchemes: [String] { ["Negotiate"] }

    init(_ keys: BlockReader, of identity: SchemeOwner) { settings = NegotiateSettings(keys) }

    /// The library reads its configuration, and which mechanisms there are, beside the file that is named.
    func files(environment: (String) -> String?) -> [String] {
        TicketSource.files(environment: environment) + [settings.cache].compactMap(\.self)
    }

    func check(_ route: Route, _ keys: BlockReader, of identity: Identity) {
        checkSubject(route, keys, of: identity)
        if keys.has("inject") {
            keys.error(
                "'inject' of \(keys.place): 'negotiate' writes Authorization, whose place its protocol names",
                at: "inject")
        }
        if route.http == .http2 {
            keys.error(
                "'http: 2' of \(keys.place): Negotiate authenticates connections, and those of HTTP/2 are shared (RFC 4559 section 4)",
                at: "http")
        }
        if route.onRejected.largeBody == .probeHead {
            keys.error(
                "'large_body: probe_head' of \(keys.place) would spend a token that is good for one request",
                at: "on_rejected")
        }
    }

    // MARK: - End users

    func reasonAgainst(_ subject: Route.Subject) -> String? {
        guard settings.users != nil else {
            return "its tickets are in its own name; 'for_users' of its 'negotiate' asks for them in the subject's"
        }
        return subject == .callerToken
            ? "a caller's token is not read here, so that it names nobody; say from_client_certificate, or from_header"
            : nil
    }

    /// A subject becomes somebody's ticket, so that it has to come from somebody who has proven who he is.
    private func checkSubject(_ route: Route, _ keys: BlockReader, of identity: Identity) {
        guard settings.users != nil else { return }
        switch route.subject {
        case nil:
            keys.error(
                "identity '\(identity.name)' has 'for_users', so \(keys.place) needs 'subject'", at: "use")
        case .header? where route.callers.tlsNames.isEmpty && route.callers.unixUsers.isEmpty:
            keys.error(
                "'subject' of \(keys.place) is a header's word, by which identity '\(identity.name)' would act for anybody: 'callers' needs 'tls_names' or 'unix_users', which prove who wrote it",
                at: "subject")
        default: break
        }
    }

    func check(_ configuration: Configuration, of identity: Identity, _ findings: Findings) {
        do throws(GSSFault) { _ = try GSSLibrary.open() } catch {
            findings.warning("identity '\(identity.name)': \(error.message)", identity.mark)
        }
    }

    func handshake(of identity: Identity, statuses: [Int]?, _ world: GrantWorld) throws(GrantFailure) -> any Handshake {
        try NegotiateHandshake(
            settings, of: identity.name, patience: identity.token.acquireTimeout.wholeNanoseconds / 1_000_000, world)
    }

    func traits(of identity: Identity) -> SchemeTraits {
        // A principal is one account, whichever identity is it.
        let parts = settings.user.split(separator: "@")
        let realm = parts.count == 2 ? String(parts[1]) : "default"
        let judge = Tokens.Origin(scheme: "kerberos", host: ByteString(realm), port: 0)
        return SchemeTraits(.proactive, account: Account(issuer: judge, user: ByteString(settings.user)))
    }
}
