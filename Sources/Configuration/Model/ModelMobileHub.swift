/// `mobile_hub`: Oracle Mobile Hub, formerly Mobile Cloud Service (docs/design/wire/oracle-mobile-hub.md).
public struct MobileHubHandshake: Sendable, Equatable {
    public enum Generation: String, Sendable, CaseIterable {
        case idcs = "idcs"
        case classic = "classic"
    }

    public enum Method: String, Sendable, CaseIterable {
        case basicAnonymous = "basic_anonymous"
        case basicUser = "basic_user"
        case oauthClient = "oauth_client"
        case oauthPassword = "oauth_password"
        case tokenExchange = "token_exchange"

        /// Every request is a login.
        public var isBasic: Bool { self == .basicAnonymous || self == .basicUser }
    }

    public enum ExchangeEndpoint: String, Sendable, CaseIterable {
        case ssoExchange = "sso_exchange"
        case authToken = "auth_token"
    }

    public enum TokenFormat: String, Sendable, CaseIterable {
        case jwt = "jwt"
        case samlXML = "saml_xml"
        case samlPacked = "saml_gzip_base64"
    }

    public enum ClientAuth: String, Sendable, CaseIterable {
        case basic = "basic"
        case form = "form"
        case assertion = "assertion"
    }

    public var generation: Generation
    public var base: ServiceURL
    /// As it is written: the scope begins with it, port and all.
    public var baseText: String
    public var backendID: String
    /// A label of the operator's: tokens are not kept beyond a change of it.
    public var backendVersion: String?
    public var method: Method
    public var anonymousKey: SecretReference?
    public var username: String?
    public var password: SecretReference?
    /// Of the identity service, complete.
    public var tokenURL: ServiceURL?
    public var clientID: String?
    public var clientSecret: SecretReference?
    /// nil: of the generation.
    public var scope: String?
    public var identityDomain: String?
    public var identityDomainHeader: String
    public var exchangeEndpoint: ExchangeEndpoint
    /// nil: the caller's own.
    public var thirdPartyToken: SubjectToken?
    public var tokenFormat: TokenFormat
    /// Of an exchange at `auth_token`.
    public var clientAuth: ClientAuth
    /// `none`: not sent.
    public var grantType: String
    public var extraHeaders: [NamedValue]
    public var sendsBackendIDWithBearer: Bool
    public var persistsTokens: Bool

    /// Whether requests to the API name the backend.
    public var namesBackend: Bool { method.isBasic || sendsBackendIDWithBearer }

    /// Whether it asks the identity service for a token of its own.
    public var isConsumer: Bool {
        switch method {
        case .oauthClient, .oauthPassword: true
        case .tokenExchange: exchangeEndpoint == .authToken && clientAuth == .assertion
        case .basicAnonymous, .basicUser: false
        }
    }

    public static let backendHeader = "Oracle-Mobile-Backend-ID"
}
