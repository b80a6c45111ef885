internal import Configuration

/// Checks of the keys of `oauth2` against one another.
struct OAuth2Checks {
    let keys: BlockReader
    let settings: OAuth2Settings
    let grant: OAuth2Scheme.Grant
    let network: Network

    private var auth: OAuth2Settings.ClientAuth { settings.clientAuth }
    private var word: String { "'client_auth: \(auth.rawValue)'" }

    func run() {
        switch (!keys.lacks("issuer"), !keys.lacks("token_url")) {
        case (false, false): keys.error("\(keys.place) needs 'token_url' or 'issuer'")
        case (true, true):
            keys.error("\(keys.place) has 'issuer' and 'token_url'; it needs one of them", at: "token_url")
        default: break
        }
        keys.checkURL("issuer", of: network, allowsQuery: false)
        let urls = [
            "token_url", "revocation_url", "authorization_url", "device_authorization_url", "introspection_url",
        ]
        for key in urls { keys.checkURL(key, of: network) }
        checkAllowedIssuers()
        checkIntrospection()
        if keys.has("registration") { checkRegistration() } else { keys.need(["client_id"]) }
        checkLogin()
        checkClient()
        checkKeys()
        checkGrant()
        keys.refuseNames(in: "extra", "is set by its own key") { OAuth2Handshake.ownMembers.contains($0) }
        keys.checkHeaders("headers")
    }

    /// Whom an API may send us to with our secrets.
    private func checkAllowedIssuers() {
        guard let issuers = keys.items("allowed_issuers"), !issuers.isEmpty else { return }
        var seen: Set<String> = []
        func refuse(_ reason: String, _ node: Node) { keys.findings.error(reason, node.mark) }
        for node in issuers {
            guard let text = node.scalar?.text, let url = try? BlockReader.httpURL(text) else { continue }
            keys.checkSafe(url, network, "'allowed_issuers' of \(keys.place)", node.mark)
            if url.query != nil {
                refuse(
                    "'\(Quoted.short(text))' in 'allowed_issuers' of \(keys.place) must not have a query", node)
            }
            if text == keys.text("issuer") {
                refuse("'allowed_issuers' of \(keys.place) has its own 'issuer', which is allowed anyway", node)
            }
            if !seen.insert(text).inserted {
                refuse("'allowed_issuers' of \(keys.place) has '\(Quoted.short(text))' twice", node)
            }
        }
        if keys.has("registration") {
            keys.refuse(
                "allowed_issuers", "do not go with 'registration', which makes a client at one issuer")
        }
        switch settings.grant {
        case .clientCredentials, .tokenExchange, .mintedJWT: break
        default:
            keys.refuse(
                "allowed_issuers",
                "go only with client_credentials, token_exchange, and jwt_bearer with 'key': what other grants keep or send is for one issuer"
            )
        }
    }

    private func checkIntrospection() {
        if !settings.introspects {
            keys.refuse(["introspection_url"], "is used only with 'introspection: true'")
        } else if keys.has("token_url") {
            keys.need(["introspection_url"], " beside 'token_url' for 'introspection: true'")
        }
    }

    private func checkRegistration() {
        keys.refuse(["client_id", "client_secret"], "is what 'registration' brings")
        let inside = keys.inside("registration")
        if let url = inside.httpURL("url") {
            keys.checkSafe(url, network, "'url' in 'registration' of \(keys.place)", inside.mark("url"))
        } else if keys.has("token_url"), inside.lacks("url") {
            keys.refuse("registration", "needs 'url' beside 'token_url'")
        }
        // Their keys would have to be registered too.
        if [.privateKeyJWT, .tls].contains(auth) { keys.refuse("registration", "does not go with \(word)") }
        for member in settings.registration?.metadata ?? [] where Self.ownMetadata.contains(member.name) {
            inside.error(
                "'\(member.name)' in 'metadata' of \(keys.place) is set by the gateway itself", at: "metadata")
        }
    }

    private static let ownMetadata: Set = [
        "token_endpoint_auth_method", "grant_types", "response_types", "software_statement", "dpop_bound_access_tokens",
    ]

    private func checkLogin() {
        let own: [(OAuth2Scheme.Grant, [String])] = [
            (.authorizationCode, ["authorization_url", "redirect_uri", "login_parameters"]),
            (.deviceCode, ["device_authorization_url"]),
        ]
        for (person, names) in own {
            if grant != person {
                keys.refuse(names, "is used only with 'grant: \(person.rawValue)'")
            } else if keys.has("token_url") {
                keys.need([names[0]], " beside 'token_url' for 'grant: \(grant.rawValue)'")
            }
        }
        checkStepUp()
        keys.refuseNames(in: "login_parameters", "is set by the login itself") {
            OAuth2Handshake.ownParameters.contains($0)
        }
    }

    private func checkStepUp() {
        guard let stepUp = settings.stepUp else { return }
        if !settings.grant.needsPerson {
            keys.refuse(["step_up"], "is used only with 'grant: authorization_code' or 'grant: device_code'")
        }
        let inside = keys.inside("step_up")
        if stepUp.acrValues.isEmpty, stepUp.leastAge == nil, inside.lacks("acr_values"), inside.lacks("max_age") {
            keys.refuse("step_up", "needs 'acr_values' or 'max_age'; leave it out to refuse such challenges")
        }
        for node in inside.items("acr_values") ?? [] {
            guard let text = node.scalar?.text, !StepUp.isValue(text) else { continue }
            keys.findings.error(
                "'\(Quoted.short(text))' in 'acr_values' of \(inside.place) must be visible ASCII without blanks, quotes and backslashes",
                node.mark)
        }
    }

    private func checkClient() {
        switch auth {
        case .basic, .post, .clientSecretJWT:
            if !keys.has("registration") { keys.need(["client_secret"], " for \(word)") }
        case .privateKeyJWT: keys.need(["key"], " for \(word)")
        case .tls, .none: keys.refuse(["client_secret"], "is not sent with \(word)")
        }
        if auth != .basic { keys.refuse(["basic_encoding"], "is used only with 'client_auth: basic'") }
        guard auth == .tls else { return }
        if network.tls.identity == nil {
            keys.error(
                "\(keys.place) needs 'network: {tls: {certificate: …}}' for \(word)", at: "client_auth")
        }
        if keys.httpURL("token_url")?.origin.isCleartext == true {
            keys.error("\(word) of \(keys.place) needs an https: token_url", at: "token_url")
        }
    }

    private func checkKeys() {
        let isMinted = if case .mintedJWT = settings.grant { true } else { false }
        let usesKey = auth == .privateKeyJWT || isMinted
        if !usesKey {
            keys.refuse(
                ["key"],
                "is used only with 'client_auth: private_key_jwt', or with 'grant: jwt_bearer' without 'assertion'")
        }
        keys.checkSigningKeys()
        if !isMinted || !keys.has("key") {
            keys.refuse(["claims"], "are used only with 'grant: jwt_bearer' and 'key', without 'assertion'")
        }
        keys.refuseNames(in: "claims", "is set by the gateway; see 'signing'") {
            ["aud", "jti", "iat", "exp", "nbf"].contains($0)
        }
        guard keys.has("signing") else { return }
        let inside = keys.inside("signing")
        if !usesKey, auth != .clientSecretJWT { keys.refuse("signing", "has nothing to sign") }
        inside.atMost("lifetime", .seconds(3600), "1h")
        if inside.text("audience") == "issuer", keys.httpURL("issuer") == nil {
            inside.error("'audience: issuer' of \(keys.place) needs 'issuer'", at: "audience")
        }
        if settings.signing.thumbprint == .none { inside.refuse(["certificate"], "needs 'thumbprint'") }
    }

    private func checkGrant() {
        let word = "'grant: \(grant.rawValue)'"
        let tokens = ["subject_token", "subject_token_type", "actor_token", "actor_token_type", "requested_token_type"]
        let own: [String]
        switch grant {
        // Without `subject_token` it is the caller's own token; whether the routes take one is looked at with them.
        case .clientCredentials, .authorizationCode, .deviceCode, .tokenExchange: own = []
        case .password: own = ["username", "password"]
        case .refreshToken: own = ["refresh_token"]
        case .jwtBearer, .saml2Bearer: own = ["assertion"]
        }
        let all = ["username", "password", "refresh_token", "assertion"] + (grant == .tokenExchange ? [] : tokens)
        keys.refuse(all.filter { !own.contains($0) }, "is not used by \(word)")
        if grant != .jwtBearer || !keys.has("key") { keys.need(own, " for \(word)") }
        if grant == .password {
            keys.warn(
                "\(word) of \(keys.place) shows the user's password to this client; servers give it up (RFC 9700)",
                at: "grant")
        }
        if keys.has("actor_token") != keys.has("actor_token_type") {
            let key = keys.has("actor_token") ? "actor_token" : "actor_token_type"
            keys.error("'actor_token' and 'actor_token_type' of \(keys.place) go together", at: key)
        }
        for key in tokens where key.hasSuffix("_type") {
            if let text = keys.text(key), !text.contains(":"), !OAuth2Scheme.tokenTypes.contains(text) {
                keys.refuse(key, "must be access_token, refresh_token, id_token, saml1, saml2, jwt, or a URI")
            }
        }
    }
}

extension BlockReader {
    /// Keys by which assertions are signed.
    func checkSigningKeys() {
        if items("key")?.isEmpty == true { refuse("key", "is an empty list; the first key signs") }
        if lacks("key") { refuse(["key_password"], "opens no 'key'") }
    }
}
