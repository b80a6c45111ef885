/// `oauth2`: what its keys mean together.
extension TreeDecoder {
    mutating func oauth2(_ reader: BlockReader, network: Network, place: String) -> OAuth2Handshake {
        let oauth2 = OAuth2Handshake(
            issuer: reader.httpURL("issuer"), issuerText: reader.text("issuer"), tokenURL: reader.httpURL("token_url"),
            grant: reader.word("grant"),
            clientID: reader.text("client_id") ?? "", clientSecret: reader.secret("client_secret"),
            clientAuth: reader.word("client_auth"), basicEncoding: reader.word("basic_encoding"),
            keys: reader.list("key") { text throws(TextFault) in try SecretReference(text: text) } ?? [],
            keyPassword: reader.secret("key_password"), signing: signing(reader), claims: reader.pairs("claims"),
            assertion: reader.secret("assertion"), username: reader.text("username"),
            password: reader.secret("password"), refreshToken: reader.secret("refresh_token"),
            subjectToken: subjectToken("subject_token", reader),
            subjectTokenType: tokenType("subject_token_type", reader, place),
            actorToken: reader.secret("actor_token"), actorTokenType: tokenType("actor_token_type", reader, place),
            requestedTokenType: tokenType("requested_token_type", reader, place),
            extra: reader.pairs("extra"),
            headers: reader.pairs("headers"), allowedScopes: reader.texts("allowed_scopes"),
            allowedIssuers: reader.texts("allowed_issuers") ?? [],
            authorizationURL: reader.httpURL("authorization_url"),
            deviceAuthorizationURL: reader.httpURL("device_authorization_url"),
            revocationURL: reader.httpURL("revocation_url"), redirectURI: reader.httpURL("redirect_uri"),
            redirectText: reader.text("redirect_uri"), loginParameters: reader.pairs("login_parameters"),
            identityDomain: reader.text("identity_domain"),
            identityDomainHeader: reader.text("identity_domain_header") ?? "", dpop: reader.boolean("dpop"),
            registration: registration(reader), introspects: reader.boolean("introspection"),
            introspectionURL: reader.httpURL("introspection_url"))
        guard reader.node != nil else { return oauth2 }
        switch (!reader.lacks("issuer"), !reader.lacks("token_url")) {
        case (false, false): error("\(place) needs 'token_url' or 'issuer'", reader.mark)
        case (true, true):
            error("\(place) has 'issuer' and 'token_url'; it needs one of them", reader.mark("token_url"))
        default: break
        }
        if let url = oauth2.tokenURL { requireSafe(url, network, reader.mark("token_url"), "'token_url' of \(place)") }
        if let url = oauth2.issuer {
            requireSafe(url, network, reader.mark("issuer"), "'issuer' of \(place)")
            if url.query != nil { error("'issuer' of \(place) must not have a query", reader.mark("issuer")) }
        }
        let named = [
            ("revocation_url", oauth2.revocationURL), ("authorization_url", oauth2.authorizationURL),
            ("device_authorization_url", oauth2.deviceAuthorizationURL),
            ("introspection_url", oauth2.introspectionURL),
        ]
        for (key, url) in named {
            guard let url else { continue }
            requireSafe(url, network, reader.mark(key), "'\(key)' of \(place)")
        }
        checkAllowedIssuers(oauth2, reader, network, place)
        checkRegistration(oauth2, reader, network, place)
        checkLogin(oauth2, reader, place)
        checkClient(oauth2, reader, place)
        if oauth2.clientAuth == .tls { checkMutualTLS(oauth2, reader, network, place) }
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

    // MARK: - Login

    private mutating func checkLogin(_ oauth2: OAuth2Handshake, _ reader: BlockReader, _ place: String) {
        let own: [OAuth2Handshake.Grant: [String]] = [
            .authorizationCode: ["authorization_url", "redirect_uri", "login_parameters"],
            .deviceCode: ["device_authorization_url"],
        ]
        for (grant, keys) in own.sorted(by: { $0.key.rawValue < $1.key.rawValue }) where oauth2.grant != grant {
            for key in keys where reader.has(key) {
                error("'\(key)' of \(place) is used only with 'grant: \(grant.rawValue)'", reader.mark(key))
            }
        }
        if reader.has("token_url"), let key = own[oauth2.grant]?.first, reader.lacks(key) {
            error("\(place) needs '\(key)' beside 'token_url' for 'grant: \(oauth2.grant.rawValue)'", reader.mark)
        }
        for pair in oauth2.loginParameters where OAuth2Handshake.ownParameters.contains(pair.name) {
            error(
                "'\(pair.name)' in 'login_parameters' of \(place) is set by the login itself",
                reader.mark("login_parameters"))
        }
    }

    // MARK: - Client

    private mutating func checkClient(_ oauth2: OAuth2Handshake, _ reader: BlockReader, _ place: String) {
        switch oauth2.clientAuth {
        case .basic, .post, .clientSecretJWT:
            if reader.lacks("client_secret"), oauth2.registration == nil {
                error("\(place) needs 'client_secret' for 'client_auth: \(oauth2.clientAuth.rawValue)'", reader.mark)
            }
        case .privateKeyJWT:
            if reader.lacks("key") { error("\(place) needs 'key' for 'client_auth: private_key_jwt'", reader.mark) }
        case .tls, .none: break
        }
        if reader.has("client_secret"), oauth2.clientAuth == .tls {
            error("'client_secret' of \(place) is not sent with 'client_auth: tls'", reader.mark("client_secret"))
        }
        if reader.has("basic_encoding"), oauth2.clientAuth != .basic {
            error("'basic_encoding' of \(place) is used only with 'client_auth: basic'", reader.mark("basic_encoding"))
        }
        if reader.has("client_secret"), oauth2.clientAuth == .none {
            error("'client_secret' of \(place) is not sent with 'client_auth: none'", reader.mark("client_secret"))
        }
        checkKeys(oauth2, reader, place)
    }

    private mutating func checkMutualTLS(
        _ oauth2: OAuth2Handshake, _ reader: BlockReader, _ network: Network, _ place: String
    ) {
        if network.tls.identity == nil {
            error(
                "\(place) needs 'network: {tls: {certificate: …}}' for 'client_auth: tls'", reader.mark("client_auth"))
        }
        if let url = oauth2.tokenURL, url.origin.isCleartext {
            error("'client_auth: tls' of \(place) needs an https: token_url", reader.mark("token_url"))
        }
    }

    private mutating func checkKeys(_ oauth2: OAuth2Handshake, _ reader: BlockReader, _ place: String) {
        let minted = oauth2.grant == .jwtBearer && oauth2.assertion == nil
        let usesKey = oauth2.clientAuth == .privateKeyJWT || minted
        if reader.has("key"), !usesKey {
            error(
                "'key' of \(place) is used only with 'client_auth: private_key_jwt', or with 'grant: jwt_bearer' without 'assertion'",
                reader.mark("key"))
        }
        if reader.items("key")?.isEmpty == true {
            error("'key' of \(place) is an empty list; the first key signs", reader.mark("key"))
        }
        if reader.has("key_password"), reader.lacks("key") {
            error("'key_password' of \(place) opens no 'key'", reader.mark("key_password"))
        }
        if reader.has("claims"), !(minted && reader.has("key")) {
            error(
                "'claims' of \(place) are used only with 'grant: jwt_bearer' and 'key', without 'assertion'",
                reader.mark("claims"))
        }
        for claim in oauth2.claims where ["aud", "jti", "iat", "exp", "nbf"].contains(claim.name) {
            error(
                "'\(claim.name)' in 'claims' of \(place) is set by the gateway; see 'signing'", reader.mark("claims"))
        }
        guard reader.has("signing") else { return }
        let inside = reader.inside("signing", Keys.signing)
        if !usesKey, oauth2.clientAuth != .clientSecretJWT {
            error("'signing' of \(place) has nothing to sign", reader.mark("signing"))
        }
        if oauth2.signing.lifetime > .seconds(3600), inside.isReadable("lifetime") {
            error("'lifetime' of 'signing' of \(place) must be at most 1h", inside.mark("lifetime"))
        }
        if oauth2.signing.audience == "issuer", oauth2.issuer == nil {
            error("'audience: issuer' of \(place) needs 'issuer'", inside.mark("audience"))
        }
        if inside.has("certificate"), oauth2.signing.thumbprint == .none {
            error("'certificate' of 'signing' of \(place) needs 'thumbprint'", inside.mark("certificate"))
        }
    }

    private func signing(_ reader: BlockReader) -> OAuth2Handshake.Signing {
        let inside = reader.inside("signing", Keys.signing)
        return .init(
            algorithm: inside.word("algorithm"), keyID: inside.text("key_id"), thumbprint: inside.word("thumbprint"),
            certificate: inside.path("certificate"), audience: inside.text("audience") ?? "",
            lifetime: inside.duration("lifetime"))
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
            // Without `subject_token` it is the caller's own token; whether the routes take one is looked at with them.
            needs = []
            takes = ["subject_token", "subject_token_type", "actor_token", "actor_token_type", "requested_token_type"]
        }
        let grant = oauth2.grant.rawValue
        let all = [
            "username", "password", "refresh_token", "assertion", "subject_token", "subject_token_type", "actor_token",
            "actor_token_type", "requested_token_type",
        ]
        for key in all where reader.has(key) && !needs.contains(key) && !takes.contains(key) {
            error("'\(key)' of \(place) is not used by 'grant: \(grant)'", reader.mark(key))
        }
        for key in needs where reader.lacks(key) && !(oauth2.grant == .jwtBearer && reader.has("key")) {
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

    func subjectToken(_ key: String, _ reader: BlockReader) -> SubjectToken? {
        if let reference = reader.secret(key) { return .secret(reference) }
        let inside = reader.inside(key, Keys.subjectToken)
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
        var chains = ExchangeChains()
        for identity in identities.all {
            let handshake = identity.handshake
            guard let key = handshake.subjectKey, case .identity(let name)? = handshake.subjectToken else { continue }
            let isCircle = chains.closes(from: identity.name, to: name)
            let entry = writtenIdentities[identity.name]?.value[handshake.key]?.value[key]
            let mark = entry?.value["identity"]?.mark ?? entry?.mark ?? identity.mark
            let place = "'\(key)' of identity '\(identity.name)'"
            guard let subject = identities[name] else {
                let near = hint(name, in: identities.names)
                error("\(place) names identity '\(Quoted.short(name))', which is not there\(near)", mark)
                continue
            }
            switch subject.handshake {
            case .oauth2, .static: break
            default: error("\(place) must name an oauth2 or static identity, not \(subject.handshake.key)", mark)
            }
            if isCircle { error("\(place) leads back to the identity itself", mark) }
        }
    }
}

/// Who exchanges whose token. Each leads to one other at most; the ends of these chains are kept, and ways to them shortened when they are
/// walked.
private struct ExchangeChains {
    private var towardEnd: [String: String] = [:]

    /// Joins `name`, which leads nowhere yet, to the chain of another.
    /// - Returns: whether that chain ends in `name`, so that it would lead back.
    mutating func closes(from name: String, to other: String) -> Bool {
        let end = end(of: other)
        // A circle stays without its last link: then every chain has an end, and only who closes it is told.
        guard end != name else { return true }
        towardEnd[name] = end
        return false
    }

    private mutating func end(of name: String) -> String {
        var walked: [String] = []
        var end = name
        while let next = towardEnd[end] {
            walked.append(end)
            end = next
        }
        for name in walked { towardEnd[name] = end }
        return end
    }
}
