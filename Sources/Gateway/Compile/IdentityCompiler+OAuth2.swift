internal import Configuration
internal import Handshakes
internal import Tokens

/// The settings of `oauth2`, from the configuration's words to the handshake's.
extension IdentityCompiler {
    func settings(
        _ configured: ConfiguredOAuth2, statuses: [Int]?
    ) throws(Handshakes.GrantFailure) -> OAuth2Settings {
        var settings = OAuth2Settings(try location(configured), clientID: configured.clientID)
        settings.clientAuth =
            switch configured.clientAuth {
            case .basic: .basic
            case .post: .post
            case .privateKeyJWT: .privateKeyJWT
            case .clientSecretJWT: .clientSecretJWT
            case .tls: .tls
            case .none: .none
            }
        settings.keys = configured.keyNames
        settings.authorizationURL = configured.authorizationURL.flatMap { IssuerURL($0) }
        settings.deviceAuthorizationURL = configured.deviceAuthorizationURL.flatMap { IssuerURL($0) }
        settings.redirectURI = configured.redirectURI.flatMap { IssuerURL($0) }
        settings.redirectText = configured.redirectText
        settings.redirectHasPort = configured.redirectText.map(Self.namesPort) ?? false
        settings.loginParameters = configured.loginParameters.map { ($0.name, $0.value) }
        settings.revocationURL = configured.revocationURL.flatMap { IssuerURL($0) }
        settings.hasKeyPassword = configured.keyPassword != nil
        settings.signing = signing(configured.signing)
        settings.basicEncoding = configured.basicEncoding == .raw ? .raw : .form
        settings.grant = grant(configured)
        settings.extra = configured.extra.map { ($0.name, $0.value) }
        settings.headers = configured.headers.map { ($0.name, $0.value) }
        settings.allowedScopes = configured.allowedScopes
        settings.allowedIssuers = configured.allowedIssuers.compactMap { text in IssuerURL(text).map { (text, $0) } }
        settings.dpop = configured.dpop
        settings.introspects = configured.introspects
        settings.introspectionURL = configured.introspectionURL.flatMap { IssuerURL($0) }
        if let configured = configured.registration {
            var registration = ClientRegistration()
            registration.url = configured.url.flatMap { IssuerURL($0) }
            registration.hasInitialToken = configured.initialAccessToken != nil
            registration.hasStatement = configured.softwareStatement != nil
            registration.metadata = configured.metadata.map {
                .init(name: $0.name, values: $0.values, isList: $0.isList)
            }
            settings.registration = registration
        }
        if let statuses { settings.rejectedStatuses = statuses }
        settings.identityDomain = configured.identityDomain
        settings.identityDomainHeader = configured.identityDomainHeader
        return settings
    }

    private func location(
        _ configured: ConfiguredOAuth2
    ) throws(Handshakes.GrantFailure) -> OAuth2Settings.Location {
        if let url = configured.tokenURL.flatMap({ IssuerURL($0) }) { return .tokenURL(url) }
        guard let issuer = configured.issuer, let url = IssuerURL(issuer), let text = configured.issuerText else {
            throw .configuration(reason: "neither token_url nor issuer")
        }
        return .issuer(text, url)
    }

    private func grant(_ configured: ConfiguredOAuth2) -> OAuth2Settings.Grant {
        switch configured.grant {
        case .clientCredentials: return .clientCredentials
        case .authorizationCode: return .authorizationCode
        case .deviceCode: return .deviceCode
        case .password: return .password(username: configured.username ?? "")
        case .refreshToken: return .refreshToken
        case .jwtBearer where configured.assertion == nil:
            return .mintedJWT(claims: configured.claims.map { NamedText(name: $0.name, value: $0.value) })
        case .jwtBearer: return .jwtBearer
        case .saml2Bearer: return .saml2Bearer
        case .tokenExchange:
            var exchange = OAuth2Settings.TokenExchange()
            switch configured.subjectToken {
            case .identity(let name)?: exchange.subject = .identity(name)
            case .secret?: exchange.subject = .secret
            case nil: exchange.subject = .caller
            }
            if let type = configured.subjectTokenType { exchange.subjectType = type }
            exchange.actorType = configured.actorTokenType
            exchange.requestedType = configured.requestedTokenType
            return .tokenExchange(exchange)
        }
    }

    /// Whether a URL says its port.
    private static func namesPort(_ url: String) -> Bool {
        guard let start = url.utf8.firstIndex(of: UInt8(ascii: "/")) else { return false }
        let authority = url[start...].drop { $0 == "/" }.prefix { $0 != "/" && $0 != "?" }
        return authority.drop { $0 != "]" }.contains(":") || !authority.contains("]") && authority.contains(":")
    }

    private func signing(_ configured: ConfiguredOAuth2.Signing) -> JWTSigning {
        var signing = JWTSigning()
        signing.algorithm = configured.algorithm == .auto ? nil : configured.algorithm.rawValue
        signing.keyID = configured.keyID
        signing.thumbprint =
            switch configured.thumbprint {
            case .none: .none
            case .sha1: .sha1
            case .sha256: .sha256
            }
        signing.hasCertificate = configured.certificate != nil
        signing.audience =
            switch configured.audience {
            case "token_url": .endpoint
            case "issuer": .issuer
            default: .text(configured.audience)
            }
        signing.lifetime = Int(clamping: configured.lifetime.wholeNanoseconds / 1_000_000_000)
        return signing
    }
}

extension ConfiguredOAuth2 {
    /// A person has logged in, or has put a refresh token into the configuration: what has come of it cannot be had anew without one.
    var beginsWithPerson: Bool { [.refreshToken, .authorizationCode, .deviceCode].contains(grant) }
}
