/// `static`: a fixed header value.
public struct StaticHandshake: Sendable, Equatable {
    public var value: SecretReference
    public var header: String
    /// Put before the value as it stands, such as `"Token "`.
    public var prefix: String
}

/// `basic`: HTTP Basic (RFC 7617).
public struct BasicHandshake: Sendable, Equatable {
    public var username: String
    public var password: SecretReference
}

/// A client's certificate with its key.
public struct ClientKeyFiles: Sendable, Hashable {
    /// A PEM file (the leaf first, then its issuers) or a PKCS#12 archive.
    public var certificate: String
    /// The key in PEM; nil: it stands in the certificate's own file.
    public var key: SecretReference?
    /// Of the key or the PKCS#12 archive.
    public var password: SecretReference?

    public init(certificate: String, key: SecretReference?, password: SecretReference?) {
        self.certificate = certificate
        self.key = key
        self.password = password
    }
}

/// `oauth2`: any OAuth 2.0 server.
public struct OAuth2Handshake: Sendable, Equatable {
    public enum Grant: String, Sendable, CaseIterable {
        case clientCredentials = "client_credentials"
        case password = "password"
        case refreshToken = "refresh_token"
        case authorizationCode = "authorization_code"
        case deviceCode = "device_code"
        case jwtBearer = "jwt_bearer"
        case saml2Bearer = "saml2_bearer"
        case tokenExchange = "token_exchange"
    }

    public enum ClientAuth: String, Sendable, CaseIterable {
        case basic = "basic"
        case post = "post"
        case privateKeyJWT = "private_key_jwt"
        case clientSecretJWT = "client_secret_jwt"
        case tls = "tls"
        case none = "none"
    }

    /// How assertions are signed.
    public struct Signing: Sendable, Equatable {
        public enum Algorithm: String, Sendable, CaseIterable {
            case auto = "auto"
            case rs256 = "RS256"
            case ps256 = "PS256"
            case es256 = "ES256"
            case edDSA = "EdDSA"
        }

        public enum Thumbprint: String, Sendable, CaseIterable {
            case none = "none"
            case sha1 = "sha1"
            case sha256 = "sha256"
        }

        public var algorithm: Algorithm
        public var keyID: String?
        public var thumbprint: Thumbprint
        /// A PEM file.
        public var certificate: String?
        /// `token_url`, `issuer`, or the audience itself.
        public var audience: String
        public var lifetime: Duration
    }

    /// How client id and secret enter the Basic credentials: form-encoded first (RFC 6749 §2.3.1) or as they are.
    public enum BasicEncoding: String, Sendable, CaseIterable {
        case form = "form"
        case raw = "raw"
    }

    /// Exactly one of `issuer` and `tokenURL` is set.
    public var issuer: ServiceURL?
    /// The issuer as it is written: metadata must repeat it character by character.
    public var issuerText: String?
    public var tokenURL: ServiceURL?
    public var grant: Grant
    public var clientID: String
    public var clientSecret: SecretReference?
    public var clientAuth: ClientAuth
    public var basicEncoding: BasicEncoding
    /// Several while keys are being replaced: the first that the issuer accepts counts.
    public var keys: [SecretReference]
    public var keyPassword: SecretReference?
    public var signing: Signing
    /// Of an assertion that is made with a key.
    public var claims: [NamedValue]
    /// Each of the following belongs to one grant and is nil with others.
    public var assertion: SecretReference?
    public var username: String?
    public var password: SecretReference?
    public var refreshToken: SecretReference?
    public var subjectToken: SubjectToken?
    /// Token types are URIs (RFC 8693 §3).
    public var subjectTokenType: String?
    public var actorToken: SecretReference?
    public var actorTokenType: String?
    public var requestedTokenType: String?
    /// Further members of the token request, in the order of the file.
    public var extra: [NamedValue]
    /// Further header fields of the token request, in the order of the file.
    public var headers: [NamedValue]
    /// nil: every scope may be asked for.
    public var allowedScopes: [String]?
    /// Issuers that an API's metadata may name, as they are written: metadata must repeat them character by character. Empty: only the
    /// issuer itself.
    public var allowedIssuers: [String]
    /// All three beside `tokenURL`; with `issuer` the metadata names them.
    public var authorizationURL: ServiceURL?
    public var deviceAuthorizationURL: ServiceURL?
    public var revocationURL: ServiceURL?
    /// Where the browser comes back to, and the same as it is written; nil: this machine's loopback.
    public var redirectURI: ServiceURL?
    public var redirectText: String?
    /// Further parameters of the authorization request, in the order of the file.
    public var loginParameters: [NamedValue]
    /// Sent in `identityDomainHeader` with every token request.
    public var identityDomain: String?
    public var identityDomainHeader: String
    /// Tokens are bound to a key of ours (RFC 9449).
    public var dpop: Bool
    /// nil: the client has an id.
    public var registration: Registration? = nil
    /// Whether `check --live` asks the issuer about the token; the URL stands beside `tokenURL`.
    public var introspects = false
    public var introspectionURL: ServiceURL? = nil

    /// How the client gets an id (RFC 7591).
    public struct Registration: Sendable, Equatable {
        /// Beside `tokenURL`; beside `issuer` it counts where the metadata has none.
        public var url: ServiceURL?
        public var initialAccessToken: SecretReference?
        public var softwareStatement: SecretReference?
        /// Further members, in the order of the file.
        public var metadata: [Member]

        public struct Member: Sendable, Equatable {
            public var name: String
            /// One, where it is no list.
            public var values: [String]
            public var isList: Bool
        }
    }
}

extension OAuth2Handshake {
    /// Parameters of an authorization request that the login sets itself.
    static let ownParameters: Set = [
        "response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method",
        "nonce",
        "resource", "audience",
    ]

    /// Members of a token request that have a key of their own, so that `extra` may not set them.
    static let ownMembers: Set = [
        "grant_type", "client_id", "client_secret", "client_assertion", "client_assertion_type", "scope", "username",
        "password", "refresh_token", "assertion", "subject_token", "subject_token_type", "actor_token",
        "actor_token_type", "requested_token_type", "code", "code_verifier", "redirect_uri", "device_code",
    ]
}

/// Where the token comes from that is exchanged.
public enum SubjectToken: Sendable, Equatable {
    case secret(SecretReference)
    /// A new token of the identity with this name.
    case identity(String)
}

/// `oam_webgate`: an OAM WebGate with Mobile & Social (docs/design/wire/oam-webgate.md).
public struct OAMWebgateHandshake: Sendable, Equatable {
    public enum UserAgentMode: String, Sendable, CaseIterable {
        case prepend = "prepend"
        case replace = "replace"
    }

    public enum ContextSource: String, Sendable, CaseIterable {
        case challenge = "challenge"
        case redirect = "redirect"
        case auto = "auto"
    }

    public enum TokenScope: String, Sendable, CaseIterable {
        case webgate = "webgate"
        case url = "url"
    }

    public enum ResourceURL: String, Sendable, CaseIterable {
        case upstream = "upstream"
        case caller = "caller"
    }

    public enum ClientAuth: String, Sendable, CaseIterable {
        case uidpassword = "uidpassword"
        case basic = "basic"
        case none = "none"
    }

    /// Appended to `service` after one slash.
    public struct Paths: Sendable, Equatable {
        public var register: String
        public var authenticate: String
        public var access: String
        public var info: String
        /// nil: `off`.
        public var terminate: String?
    }

    public var userAgentPrefix: String
    public var userAgentMode: UserAgentMode
    public var contextSource: ContextSource
    public var challengeScheme: String
    public var contextParam: String
    public var replayHeader: String
    /// Put before the token as it stands, with its space.
    public var replayPrefix: String
    public var tokenScope: TokenScope
    public var resourceURL: ResourceURL
    /// Appended to the resource URL as it stands.
    public var resourceSuffix: String
    /// Whether OAM's own cookies are taken out of answers.
    public var stripCookies: Bool
    /// Codes, or parts of messages, by which the server says that it does not know the registration handle.
    public var handleUnknown: [String] = []
    public var service: ServiceURL
    public var paths: Paths
    public var serviceDomain: String
    public var serviceDomainHeader: String
    public var clientAuth: ClientAuth
    public var clientAuthHeader: String
    /// nil only with `client_auth: none`.
    public var clientID: String?
    /// In the order of the file, without the common `oracle:idm:claims:client:` prefix unless the file has it.
    public var deviceClaims: [NamedValue]
    public var userTokenType: String
    public var userTokenTTL: Duration
    /// nil: not sent.
    public var restVersion: String?
    public var username: String
    public var password: SecretReference
    /// A path on the upstream that answers with a challenge and changes nothing.
    public var probe: String?
}

/// A name with its value, where order counts.
public struct NamedValue: Sendable, Hashable {
    public var name: String
    public var value: String

    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}
