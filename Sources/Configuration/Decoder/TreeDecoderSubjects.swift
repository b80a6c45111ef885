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
        if let reason = identity.scheme.reasonAgainst(subject) {
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
        if identity.scheme.exchangesCallersToken, let key = identity.scheme.subjectKey {
            error(
                "identity '\(identity.name)' has no '\(key)', so \(place) needs 'subject: from_caller_token'",
                reader.mark("use"))
        } else if identity.scheme.namesSubject {
            error(
                "identity '\(identity.name)' puts {subject} into its requests, so \(place) needs 'subject'",
                reader.mark("use"))
        }
    }

    /// Reports identities that have nothing to exchange: without any route, or as the source of another one's exchange.
    mutating func checkSubjectsOfIdentities() {
        let used = Set(routes.flatMap(\.identityNames))
        for identity in identities.all {
            guard let key = identity.scheme.subjectKey else { continue }
            if identity.scheme.exchangesCallersToken, !used.contains(identity.name) {
                error(
                    "identity '\(identity.name)' needs '\(key)' for an exchange, or a route with 'subject: from_caller_token'",
                    identity.mark)
            }
            guard case .identity(let name)? = identity.scheme.subjectToken,
                let source = identities[name]?.scheme,
                source.exchangesCallersToken || source.namesSubject
            else { continue }
            error(
                "'\(key)' of identity '\(identity.name)' names identity '\(name)', which has a token per subject",
                identity.mark)
        }
    }
}
