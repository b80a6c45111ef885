internal import Octets

/// `oam_oauth`: Oracle's dialects of OAuth 2.0 (docs/design/wire/oam-oauth.md).
public struct OAMOAuthHandshake: Sendable, Equatable {
    public enum Dialect: String, Sendable, CaseIterable {
        /// Mobile & Social's OAuth service of OAM 11.1.2.
        case oam11g = "11g"
        case oam12c = "12c"
        /// The shared identity manager of Oracle's first cloud, v3.1.
        case sim = "sim"
        /// Identity Cloud Service, now OCI identity domains.
        case idcs = "idcs"
    }

    public enum Grant: String, Sendable, CaseIterable {
        case clientCredentials = "client_credentials"
        case password = "password"
        case refreshToken = "refresh_token"
        case authorizationCode = "authorization_code"
        case jwtBearer = "jwt_bearer"
        case oamCredentials = "oam_credentials"
    }

    public enum ClientAuth: String, Sendable, CaseIterable {
        case basic = "basic"
        case post = "post"
        case privateKeyJWT = "private_key_jwt"
        case issuedJWT = "issued_jwt"
        case none = "none"
    }

    public enum ClientType: String, Sendable, CaseIterable {
        case web = "web"
        case mobile = "mobile"
    }

    public enum DomainIn: String, Sendable, CaseIterable {
        case header = "header"
        case query = "query"
        case both = "both"
    }

    public enum DomainMode: String, Sendable, CaseIterable {
        case header = "header"
        case userPrefix = "user_prefix"
        case none = "none"
    }

    public enum GrantCase: String, Sendable, CaseIterable {
        case lower = "lower"
        case upper = "upper"
    }

    public enum DeviceStore: String, Sendable, CaseIterable {
        case auto = "auto"
        case on = "on"
        case off = "off"
    }

    public var dialect: Dialect
    /// What the dialect has in common with any OAuth 2.0 server, in the words of `oauth2`: URLs, client, grant, signing.
    public var general: OAuth2Handshake
    public var grant: Grant
    public var clientAuth: ClientAuth
    public var grantCase: GrantCase
    /// Claims of the assertion that proves the client, beside those that every one has.
    public var clientClaims: [NamedValue]
    /// Put before the token as it stands.
    public var resourceTokenPrefix: String
    /// Whether logout deletes tokens by `oracle_token_action`.
    public var deletesTokens: Bool
    /// nil: a client with a secret, or a public one.
    public var mobile: Mobile?

    /// A client that registers itself with a user's password.
    public struct Mobile: Sendable, Equatable {
        /// The service endpoint, up to and with the service's name.
        public var service: ServiceURL
        public var fetchesProfile: Bool
        public var username: String
        /// In the order of the file.
        public var deviceProfile: [NamedValue]
        public var deviceStore: DeviceStore
        public var deviceStoreParam: String
        public var preAssertion: String
        public var clientAssertion: String
        public var userAssertion: String
    }
}

extension OAMOAuthHandshake {
    /// Whether a person can log in at its servers: SIM has no page for that.
    static let dialectsWithLogin: [Dialect] = [.oam11g, .oam12c, .idcs]

    /// Under which the marks of spent passwords and the sessions stand.
    public var user: String { general.username ?? general.clientID }
    var sendsPassword: Bool { mobile != nil || grant == .password }
}

extension ServiceURL {
    /// With further segments behind its path and one more parameter in its query.
    func appending(_ more: String, parameter: (name: String, value: String)? = nil) -> ServiceURL {
        var url = self
        while url.path.hasSuffix("/") { url.path.removeLast() }
        let rest = more.drop { $0 == "/" }
        if !rest.isEmpty || url.path.isEmpty { url.path += "/" + rest }
        if let parameter {
            let pair = "\(parameter.name)=\(PercentEncoding.encode(parameter.value))"
            url.query = url.query.map { "\($0)&\(pair)" } ?? pair
        }
        return url
    }
}
