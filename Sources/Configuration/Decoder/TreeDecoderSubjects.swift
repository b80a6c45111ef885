/// `subject`: whether a route's identity can ask for a token in an end user's name, and whether the route can know who that is.
extension TreeDecoder {
    mutating func checkSubject(_ route: Route, _ reader: BlockReader, place: String) {
        guard let subject = route.subject else { return checkNoSubject(route, reader, place: place) }
        let mark = reader.mark("subject")
        if !reader.has("callers") {
            error("'subject' of \(place) needs 'callers': whoever may name a subject gets its token", mark)
        }
        checkSource(subject, route, reader, place: place)
        guard case .identity = route.use else {
            error("'subject' of \(place) needs an identity: with 'use: none' nobody gets a token", mark)
            return
        }
        // An identity that is not there was reported.
        guard let identity = identity(of: route) else { return }
        if let reason = identity.handshake.reasonAgainst(subject) {
            error("'subject' of \(place) is not used by identity '\(identity.name)': \(reason)", mark)
        }
        if identity.token.startup != .lazy {
            error(
                "identity '\(identity.name)' has a token per subject on \(place), so there is none to wait for: 'startup' must be lazy",
                mark)
        }
    }

    private mutating func checkSource(_ subject: Route.Subject, _ route: Route, _ reader: BlockReader, place: String) {
        let mark = reader.mark("subject")
        switch subject {
        case .header(let name):
            if ReservedHeader.contains(name) || ["authorization", "cookie"].contains(name.lowercased()) {
                error(
                    "'from_header' of \(place) cannot be '\(name)'; for the caller's own token say subject: from_caller_token",
                    reader.inside("subject", Keys.subject).mark("from_header"))
            }
        case .clientCertificate:
            for listener in route.listen.compactMap({ listeners[$0] })
            where !listener.tls.contains(where: { $0.clientCA != nil }) {
                error(
                    "'subject: from_client_certificate' of \(place) never holds on \(listener.address), which asks for no certificate; "
                        + "give its 'tls' a 'client_ca'", mark)
            }
        case .callerToken: break
        }
        guard case .header(_, _, .keepAs(let kept)) = route.inject else { return }
        if subject == .callerToken {
            error(
                "'caller_value' of \(place) forwards the caller's own token, which 'subject' exchanges and takes out",
                reader.mark("inject"))
        } else if case .header(let name) = subject, kept.lowercased() == name.lowercased() {
            error("'keep_as' of \(place) is the header that 'subject' takes out", reader.mark("inject"))
        }
    }

    /// An identity that asks in a user's name has nothing to ask for where the route knows none.
    private mutating func checkNoSubject(_ route: Route, _ reader: BlockReader, place: String) {
        guard let identity = identity(of: route) else { return }
        if identity.handshake.exchangesCallersToken, let key = identity.handshake.subjectKey {
            error(
                "identity '\(identity.name)' has no '\(key)', so \(place) needs 'subject: from_caller_token'",
                reader.mark("use"))
        } else if identity.handshake.namesSubject {
            error(
                "identity '\(identity.name)' puts {subject} into its requests, so \(place) needs 'subject'",
                reader.mark("use"))
        }
    }

    /// What an identity without any route, or as the source of another one's exchange, would be for.
    mutating func checkSubjectsOfIdentities() {
        let used = Set(routes.compactMap { if case .identity(let name) = $0.use { name } else { nil } })
        for identity in identities.all {
            guard let key = identity.handshake.subjectKey else { continue }
            if identity.handshake.exchangesCallersToken, !used.contains(identity.name) {
                error(
                    "identity '\(identity.name)' needs '\(key)' for an exchange, or a route with 'subject: from_caller_token'",
                    identity.mark)
            }
            guard case .identity(let name)? = identity.handshake.subjectToken,
                let source = identities[name]?.handshake,
                source.exchangesCallersToken || source.namesSubject
            else { continue }
            error(
                "'\(key)' of identity '\(identity.name)' names identity '\(name)', which has a token per subject",
                identity.mark)
        }
    }
}

extension Handshake {
    /// Why a token of this handshake cannot be one end user's; nil where it can.
    fileprivate func reasonAgainst(_ subject: Route.Subject) -> String? {
        if case .mobileHub = self, exchangesCallersToken {
            return subject == .callerToken ? nil : "it exchanges the caller's own token; say subject: from_caller_token"
        }
        guard case .oauth2(let oauth2) = self else {
            return "'\(key)' has one credential for everybody"
        }
        switch oauth2.grant {
        case .tokenExchange where oauth2.subjectToken == nil:
            return subject == .callerToken
                ? nil
                : "it exchanges the caller's own token; say subject: from_caller_token, or give it a 'subject_token'"
        case .jwtBearer where oauth2.assertion == nil && !oauth2.claims.contains(where: { $0.name == "sub" }):
            break
        case .clientCredentials, .tokenExchange, .jwtBearer:
            let grant = oauth2.grant.rawValue
            guard oauth2.namesSubject else {
                return oauth2.grant == .jwtBearer
                    ? "its assertion names somebody already; write {subject} into a claim, or leave out 'sub' and 'assertion'"
                    : "'grant: \(grant)' asks in nobody's name; write {subject} into a value of 'extra'"
            }
        case .password, .refreshToken, .saml2Bearer, .authorizationCode, .deviceCode:
            return "'grant: \(oauth2.grant.rawValue)' is one account's"
        }
        return subject == .callerToken
            ? "a token is no name; from_caller_token goes with 'grant: token_exchange' without 'subject_token'" : nil
    }
}

extension Handshake {
    /// The key that says which token is exchanged; nil where none is.
    var subjectKey: String? {
        switch self {
        case .oauth2(let oauth2): oauth2.grant == .tokenExchange ? "subject_token" : nil
        case .mobileHub(let hub): hub.method == .tokenExchange ? "third_party_token" : nil
        default: nil
        }
    }

    /// The token that is exchanged, where it is not the caller's own.
    var subjectToken: SubjectToken? {
        switch self {
        case .oauth2(let oauth2): oauth2.subjectToken
        case .mobileHub(let hub): hub.thirdPartyToken
        default: nil
        }
    }

    var exchangesCallersToken: Bool { subjectKey != nil && subjectToken == nil }

    var namesSubject: Bool { if case .oauth2(let oauth2) = self { oauth2.namesSubject } else { false } }
}

extension OAuth2Handshake {
    /// Where a value of its requests takes the user's name.
    var namesSubject: Bool {
        (extra + (grant == .jwtBearer && assertion == nil ? claims : [])).contains { $0.value.contains("{subject}") }
    }
}
