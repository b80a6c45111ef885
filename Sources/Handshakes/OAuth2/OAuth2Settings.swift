internal import Configuration

/// Settings of an `oauth2` identity.
struct OAuth2Settings: Sendable {
    /// Where the token endpoint is found.
    var location: Location
    var grant: Grant = .clientCredentials
    var clientID: String
    var clientAuth: ClientAuth = .basic
    var basicEncoding: BasicEncoding = .form
    var signing = JWTSigning()
    /// Names of the secrets with signing keys: the first that the issuer accepts counts.
    var keys: [String] = []
    /// Whether there is a secret `key_password`.
    var hasKeyPassword = false
    /// Further members of the request, in order.
    var extra: [(name: String, value: String)] = []
    /// Further headers of the request.
    var headers: [(name: String, value: String)] = []
    /// Scopes that a challenge may add to those of the route; nil or empty: none.
    var allowedScopes: [String]?
    /// Statuses that mean "token refused" on this identity's routes (`on_rejected.statuses`).
    var rejectedStatuses: [Int] = [401]
    /// Issuers that an API's metadata may name instead of `location` (RFC 9728), each as it spells itself and as a URL.
    var allowedIssuers: [(issuer: String, url: IssuerURL)] = []
    var identityDomain: String?
    var identityDomainHeader = "X-USER-IDENTITY-DOMAIN-NAME"

    /// The grant is made again instead of using a refresh token that comes with an access token.
    var ignoresRefreshTokens = false

    /// Whether connections to the issuer show a certificate: aliases for mutual TLS are then used (RFC 8705 §5).
    var usesMutualTLS = false
    /// Where a person logs in, and where device codes are asked for (RFC 8628), beside what metadata says.
    var authorizationURL: IssuerURL?
    var deviceAuthorizationURL: IssuerURL?
    /// Where the browser is sent back to; nil: to this machine's loopback.
    var redirectURI: IssuerURL?
    /// The same as it is written, and whether it names a port.
    var redirectText: String?
    var redirectHasPort = false
    /// Further parameters of the authorization request, in order.
    var loginParameters: [(name: String, value: String)] = []
    /// The authentication that upstreams may ask of a login (RFC 9470); nil: none.
    var stepUp: OAuth2StepUp?
    /// Where refresh tokens are revoked (RFC 7009), beside what metadata says.
    var revocationURL: IssuerURL?
    /// Tokens are bound to a key pair, whose possession every request proves (RFC 9449).
    var dpop = false
    /// The server gives the client its id; then `clientID` is empty.
    var registration: ClientRegistration?
    /// A check asks the issuer about the token that it got (RFC 7662).
    var introspects = false
    var introspectionURL: IssuerURL?
    /// Whether metadata may name endpoints in clear text beyond this machine.
    var allowsCleartext = false

    /// nil: the server follows the standard.
    var oracle: OAMOAuthDialect?

    init(_ location: Location, clientID: String) {
        self.location = location
        self.clientID = clientID
    }

    enum Location: Sendable {
        /// Its query, if any, is kept.
        case tokenURL(IssuerURL)
        /// The issuer identifier, character by character, and as a URL.
        case issuer(String, IssuerURL)
    }

    mutating func forgetWrittenEndpoints() {
        (authorizationURL, deviceAuthorizationURL, revocationURL, introspectionURL) = (nil, nil, nil, nil)
        registration?.url = nil
    }

    /// The proof that is given for a token. Secrets are named by their keys and read from the environment.
    enum Grant: Sendable, Equatable {
        /// RFC 6749 §4.4.
        case clientCredentials
        /// RFC 6749 §4.3, with the secret `password`.
        case password(username: String)
        /// RFC 6749 §6: begins with the secret `refresh_token`, goes on with what the issuer gives in its place.
        case refreshToken
        /// RFC 6749 §4.1 with PKCE (RFC 7636): a person in a browser, once.
        case authorizationCode
        /// RFC 8628: a person on any device, once.
        case deviceCode
        /// RFC 7523 §2.1 with the secret `assertion`.
        case jwtBearer
        /// RFC 7523 §2.1 with a JWT made for each request. Claims beside `aud`, `jti`, `iat` and `exp`; `iss` and `sub` are the client
        /// unless they stand here.
        case mintedJWT(claims: [NamedValue])
        /// RFC 7522 §2.1 with the secret `assertion`: the XML, or base 64 of it.
        case saml2Bearer
        /// RFC 8693.
        case tokenExchange(TokenExchange)
        /// The assertion that a mobile client of OAM 11g was given for its user, for an access token
        /// (docs/design/wire/oam-oauth.md#mobile).
        case oamUser
        /// The same for the tokens behind OAM's cookies (docs/design/wire/oam-oauth.md#oam-credentials).
        case oamCredentials
    }

    /// RFC 8693 §2.1, types as URIs.
    struct TokenExchange: Sendable, Equatable {
        /// Where the token comes from that is exchanged.
        enum Subject: Sendable, Equatable {
            /// The secret `subject_token`.
            case secret
            /// A new access token of another identity, for each exchange.
            case identity(String)
            /// The token of the caller that it is wanted for.
            case caller
        }

        var subject: Subject = .secret
        var subjectType = TokenExchange.accessToken
        /// The type of the secret `actor_token`; nil: there is none.
        var actorType: String?
        /// nil: the issuer decides.
        var requestedType: String?

        static let accessToken = "urn:ietf:params:oauth:token-type:access_token"
    }

    /// How the client proves itself (RFC 6749 §2.3.1, RFC 7523 §2.2, RFC 8705 §2).
    enum ClientAuth: String, Sendable, CaseIterable {
        case basic = "basic"
        case post = "post"
        case privateKeyJWT = "private_key_jwt"
        case clientSecretJWT = "client_secret_jwt"
        /// The certificate of the connection says it; the request only names the client.
        case tls = "tls"
        case none = "none"
    }

    /// Whether id and secret are form-encoded before they are joined, as RFC 6749 says and some servers do not expect.
    enum BasicEncoding: String, Sendable, CaseIterable {
        case form = "form"
        case raw = "raw"
    }
}

extension OAuth2Settings.Grant {
    /// Whether a refresh token that comes with an access token is kept and used before the grant is made again. Not where the
    /// grant costs nobody anything: what is not kept cannot be lost or stolen.
    var keepsRefreshToken: Bool {
        switch self {
        case .password, .refreshToken, .authorizationCode, .deviceCode, .jwtBearer, .saml2Bearer, .oamUser,
            .oamCredentials:
            true
        case .clientCredentials, .mintedJWT, .tokenExchange: false
        }
    }

    /// Whether only a person can make it.
    var needsPerson: Bool { self == .authorizationCode || self == .deviceCode }
}

extension OAuth2Settings.TokenExchange.Subject {
    init(_ token: SubjectToken?) {
        switch token {
        case .identity(let name)?: self = .identity(name)
        case .secret?: self = .secret
        case nil: self = .caller
        }
    }
}
