internal import Configuration
internal import Handshakes
internal import Tokens

/// The settings of `mobile_hub`, from the configuration's words to the handshake's.
extension IdentityCompiler {
    func settings(_ configured: ConfiguredMobileHub) throws(Handshakes.GrantFailure) -> MobileHubSettings {
        guard let base = IssuerURL(configured.base) else { throw .configuration(reason: "base_url: not a URL") }
        var settings = MobileHubSettings(
            base: base, backendID: configured.backendID, method: try method(configured))
        settings.extraHeaders = configured.extraHeaders.map { ($0.name, $0.value) }
        return settings
    }

    private func method(
        _ configured: ConfiguredMobileHub
    ) throws(Handshakes.GrantFailure) -> MobileHubSettings.Method {
        switch configured.method {
        case .basicAnonymous: return .anonymousKey
        case .basicUser: return .user(configured.username ?? "")
        case .oauthClient: return .consumer(try consumer(configured, .clientCredentials), scope: scope(configured))
        case .oauthPassword:
            let grant = OAuth2Settings.Grant.password(username: configured.username ?? "")
            return .consumer(try consumer(configured, grant), scope: scope(configured))
        case .tokenExchange: return .exchange(try exchange(configured))
        }
    }

    private func exchange(
        _ configured: ConfiguredMobileHub
    ) throws(Handshakes.GrantFailure) -> MobileHubSettings.Exchange {
        let id = configured.clientID ?? ""
        let endpoint: MobileHubSettings.Exchange.Endpoint
        switch (configured.exchangeEndpoint, configured.clientAuth) {
        case (.ssoExchange, _): endpoint = .sso
        case (.authToken, .basic): endpoint = .token(.basic(id: id))
        case (.authToken, .form): endpoint = .token(.form(id: id, hasSecret: configured.clientSecret != nil))
        case (.authToken, .assertion):
            let own = try consumer(configured, .clientCredentials)
            endpoint = .token(.assertion(own, scope: scope(configured)))
        }
        let subject: OAuth2Settings.TokenExchange.Subject =
            switch configured.thirdPartyToken {
            case .secret?: .secret
            case .identity(let name)?: .identity(name)
            case nil: .caller
            }
        var exchange = MobileHubSettings.Exchange(endpoint: endpoint, subject: subject)
        exchange.format =
            switch configured.tokenFormat {
            case .jwt: .jwt
            case .samlXML: .samlXML
            case .samlPacked: .samlPacked
            }
        exchange.grantType = configured.grantType == "none" ? nil : configured.grantType
        return exchange
    }

    private func consumer(
        _ configured: ConfiguredMobileHub, _ grant: OAuth2Settings.Grant
    ) throws(Handshakes.GrantFailure) -> OAuth2Settings {
        guard let url = configured.tokenURL.flatMap({ IssuerURL($0) }) else {
            throw .configuration(reason: "token_url: not a URL")
        }
        var settings = OAuth2Settings(.tokenURL(url), clientID: configured.clientID ?? "")
        settings.grant = grant
        settings.basicEncoding = .raw
        settings.identityDomain = configured.identityDomain
        settings.identityDomainHeader = configured.identityDomainHeader
        // The service is not known to take one back.
        settings.ignoresRefreshTokens = true
        return settings
    }

    private func scope(_ configured: ConfiguredMobileHub) -> String? {
        if let scope = configured.scope { return scope }
        return configured.generation == .idcs ? MobileHubSettings.scope(ofBase: configured.baseText) : nil
    }
}

// What the keeper has to know beyond the handshake.
extension ConfiguredMobileHub {
    /// Whose refused credential is not sent again.
    var account: Account {
        let origin = Tokens.Origin(
            (method == .oauthClient || method == .oauthPassword ? tokenURL : nil)?.origin ?? base.origin)
        let user =
            switch method {
            case .basicAnonymous: "anonymous \(backendID)"
            case .basicUser, .oauthPassword: username ?? ""
            case .oauthClient: clientID ?? ""
            case .tokenExchange: "exchange \(backendID)"
            }
        return Account(issuer: origin, user: ByteString(user))
    }

    /// Nil where nobody is asked for a token.
    var issuer: Tokens.Origin? { method.isBasic ? nil : account.issuer }

    /// How many paths must refuse a password that has worked before until it is held back. A user's may lock an account, an
    /// anonymous key cannot, and one API may be closed to it.
    var refusalsUntilClosed: Int { method == .basicUser ? 1 : BasicProbation.pathLimit }
}
