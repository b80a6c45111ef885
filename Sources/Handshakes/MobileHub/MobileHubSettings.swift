/// Settings of a `mobile_hub` identity. The wire: docs/design/wire/oracle-mobile-hub.md.
struct MobileHubSettings: Sendable {
    /// The backend's base URL, from its settings page.
    var base: IssuerURL
    var backendID: String
    var method: Method
    /// Further headers of an exchange.
    var extraHeaders: [(name: String, value: String)] = []

    enum Method: Sendable {
        /// The secret `anonymous_key`, which is sent as it stands (docs/design/wire/oracle-mobile-hub.md#basic).
        case anonymousKey
        /// A user with the secret `password` (docs/design/wire/oracle-mobile-hub.md#basic).
        case user(String)
        /// An OAuth consumer (docs/design/wire/oracle-mobile-hub.md#consumer).
        case consumer(OAuth2Settings, scope: String?)
        /// Another issuer's token (docs/design/wire/oracle-mobile-hub.md#exchange).
        case exchange(Exchange)
    }

    /// The token that is given for a mobile token, and the place of the exchange.
    struct Exchange: Sendable {
        enum Endpoint: Sendable {
            /// By GET (docs/design/wire/oracle-mobile-hub.md#sso-exchange).
            case sso
            /// By a form (docs/design/wire/oracle-mobile-hub.md#auth-token).
            case token(ClientProof)
        }

        /// The three proofs of the consumer that a form may have (docs/design/wire/oracle-mobile-hub.md#auth-token).
        enum ClientProof: Sendable {
            case basic(id: String)
            /// Without a secret where the instance waives it for the issuer.
            case form(id: String, hasSecret: Bool)
            /// A token of the consumer's own.
            case assertion(OAuth2Settings, scope: String?)
        }

        enum Format: String, Sendable, CaseIterable {
            case jwt = "jwt"
            case samlXML = "saml_xml"
            /// Compressed and encoded already.
            case samlPacked = "saml_gzip_base64"
        }

        var endpoint: Endpoint
        var subject: OAuth2Settings.TokenExchange.Subject
        var format = Format.jwt
        /// The form's `grant_type` (docs/design/wire/oracle-mobile-hub.md#auth-token); nil: none is sent.
        var grantType: String? = Exchange.jwtBearer

        static let jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    }

    /// Names the backend beside Basic credentials and in an exchange.
    static let backendHeader = "Oracle-Mobile-Backend-ID"

    /// The life of an exchanged token unless an administrator has changed it (`Security_TokenExchangeTimeoutSecs`), in seconds.
    static let exchangedLife: UInt64 = 21_600
}

extension MobileHubSettings {
    /// The scope of a backend (docs/design/wire/oracle-mobile-hub.md#scope): its base URL as the settings page shows it, with nothing in
    /// between.
    static func scope(ofBase text: String) -> String { text + "urn:opc:resource:consumer::all" }
}
