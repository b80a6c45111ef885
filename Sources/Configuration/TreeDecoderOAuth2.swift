/// `oauth2`: what its keys mean together.
extension TreeDecoder {
    mutating func oauth2(_ reader: BlockReader, network: Network, place: String) -> OAuth2Handshake {
        let oauth2 = OAuth2Handshake(
            issuer: reader.httpURL("issuer"), tokenURL: reader.httpURL("token_url"), grant: reader.word("grant"),
            clientID: reader.text("client_id") ?? "", clientSecret: reader.secret("client_secret"),
            clientAuth: reader.word("client_auth"), basicEncoding: reader.word("basic_encoding"),
            key: reader.secret("key"), assertion: reader.secret("assertion"), username: reader.text("username"),
            password: reader.secret("password"), refreshToken: reader.secret("refresh_token"),
            subjectToken: subjectToken(reader), subjectTokenType: tokenType("subject_token_type", reader, place),
            actorToken: reader.secret("actor_token"), actorTokenType: tokenType("actor_token_type", reader, place),
            requestedTokenType: tokenType("requested_token_type", reader, place),
            extra: reader.pairs("extra"),
            headers: reader.pairs("headers"), allowedScopes: reader.texts("allowed_scopes"),
            allowedIssuers: reader.list("allowed_issuers", BlockReader.httpURL),
            identityDomain: reader.text("identity_domain"),
            identityDomainHeader: reader.text("identity_domain_header") ?? "", dpop: reader.boolean("dpop"))
        guard reader.node != nil else { return oauth2 }
        switch (!reader.lacks("issuer"), !reader.lacks("token_url")) {
        case (false, false): error("\(place) needs 'token_url' or 'issuer'", reader.mark)
        case (true, true):
            error("\(place) has 'issuer' and 'token_url'; it needs one of them", reader.mark("token_url"))
        default: break
        }
        if let url = oauth2.tokenURL { requireSafe(url, network, reader.mark("token_url"), "'token_url' of \(place)") }
        if let url = oauth2.issuer { requireSafe(url, network, reader.mark("issuer"), "'issuer' of \(place)") }
        checkClient(oauth2, reader, place)
        checkGrant(oauth2, reader, place)
        for pair in oauth2.extra where OAuth2Handshake.ownMembers.contains(pair.name) {
            error("'\(pair.name)' in 'extra' of \(place) is set by its own key", reader.mark("extra"))
        }
        for pair in oauth2.headers {
            if ReservedHeader.contains(pair.name) || ["authorization", "content-type"].contains(pair.name.lowercased())
            {
                error("'\(pair.name)' in 'headers' of \(place) is set by the gateway itself", reader.mark("headers"))
            }
        }
        return oauth2
    }

    // MARK: - Client

    private mutating func checkClient(_ oauth2: OAuth2Handshake, _ reader: BlockReader, _ place: String) {
        switch oauth2.clientAuth {
        case .basic, .post, .clientSecretJWT:
            if reader.lacks("client_secret") {
                error("\(place) needs 'client_secret' for 'client_auth: \(oauth2.clientAuth.rawValue)'", reader.mark)
            }
        case .privateKeyJWT:
            if reader.lacks("key") { error("\(place) needs 'key' for 'client_auth: private_key_jwt'", reader.mark) }
        case .tls, .none: break
        }
        if reader.has("basic_encoding"), oauth2.clientAuth != .basic {
            error("'basic_encoding' of \(place) is used only with 'client_auth: basic'", reader.mark("basic_encoding"))
        }
        if reader.has("client_secret"), oauth2.clientAuth == .none {
            error("'client_secret' of \(place) is not sent with 'client_auth: none'", reader.mark("client_secret"))
        }
    }

    // MARK: - Grant

    private mutating func checkGrant(_ oauth2: OAuth2Handshake, _ reader: BlockReader, _ place: String) {
        let needs: [String]
        var takes: [String] = []
        switch oauth2.grant {
        case .clientCredentials, .authorizationCode, .deviceCode: needs = []
        case .password: needs = ["username", "password"]
        case .refreshToken: needs = ["refresh_token"]
        case .jwtBearer, .saml2Bearer: needs = ["assertion"]
        case .tokenExchange:
            needs = ["subject_token"]
            takes = ["subject_token_type", "actor_token", "actor_token_type", "requested_token_type"]
        }
        let grant = oauth2.grant.rawValue
        let all = [
            "username", "password", "refresh_token", "assertion", "subject_token", "subject_token_type", "actor_token",
            "actor_token_type", "requested_token_type",
        ]
        for key in all where reader.has(key) && !needs.contains(key) && !takes.contains(key) {
            error("'\(key)' of \(place) is not used by 'grant: \(grant)'", reader.mark(key))
        }
        // A grant that is not supported was reported; what it lacks is noise beside that.
        guard !NotSupportedYet.refuses(block: "oauth2", key: "grant", word: grant) else { return }
        for key in needs where reader.lacks(key) {
            error("\(place) needs '\(key)' for 'grant: \(grant)'", reader.mark)
        }
        if oauth2.grant == .password {
            warning(
                "'grant: password' of \(place) shows the user's password to this client; servers give it up (RFC 9700)",
                reader.mark("grant"))
        }
        if reader.has("actor_token") != reader.has("actor_token_type") {
            let key = reader.has("actor_token") ? "actor_token" : "actor_token_type"
            error("'actor_token' and 'actor_token_type' of \(place) go together", reader.mark(key))
        }
    }

    // MARK: - Token exchange

    private func subjectToken(_ reader: BlockReader) -> SubjectToken? {
        if let reference = reader.secret("subject_token") { return .secret(reference) }
        let inside = reader.inside("subject_token", Keys.subjectToken)
        return inside.text("identity").map { .identity($0) }
    }

    /// A word of RFC 8693 §3 stands for its URI; anything else is one.
    private mutating func tokenType(_ key: String, _ reader: BlockReader, _ place: String) -> String? {
        guard let text = reader.text(key) else { return nil }
        if ["access_token", "refresh_token", "id_token", "saml1", "saml2", "jwt"].contains(text) {
            return "urn:ietf:params:oauth:token-type:\(text)"
        }
        if !text.contains(":") {
            error(
                "'\(key)' of \(place) must be access_token, refresh_token, id_token, saml1, saml2, jwt, or a URI",
                reader.mark(key))
        }
        return text
    }

    /// Whose tokens are exchanged: known, able to give one without a request, and not in a circle.
    mutating func checkExchanges() {
        var subjects: [String: String] = [:]
        for identity in identities {
            guard case .oauth2(let oauth2) = identity.handshake, case .identity(let name)? = oauth2.subjectToken else {
                continue
            }
            subjects[identity.name] = name
            let entry = root.entry("identities")?.value[identity.name]?.value["oauth2"]?.value["subject_token"]
            let mark = entry?.value["identity"]?.mark ?? entry?.mark ?? identity.mark
            let place = "'subject_token' of identity '\(identity.name)'"
            guard let subject = identities.first(where: { $0.name == name }) else {
                let near = NearestWord.of(name, in: identities.map(\.name)).map { "; did you mean '\($0)'?" } ?? ""
                error("\(place) names identity '\(Quoted.short(name))', which is not there\(near)", mark)
                continue
            }
            switch subject.handshake {
            case .oauth2, .static, .notBuilt: break
            default: error("\(place) must name an oauth2 or static identity, not \(subject.handshake.key)", mark)
            }
            var step: String? = name
            var seen: Set = [identity.name]
            while let current = step, seen.insert(current).inserted { step = subjects[current] }
            if step == identity.name { error("\(place) leads back to the identity itself", mark) }
        }
    }
}
