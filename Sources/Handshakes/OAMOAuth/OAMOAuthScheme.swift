internal import Configuration

/// `oam_oauth`: Oracle's dialects of OAuth 2.0 (docs/design/wire/oam-oauth.md).
struct OAMOAuthScheme: Scheme {
    static let key = KeySpec("oam_oauth", .block(OAMOAuthKeys.block), "OAM 11g OAuth, 12c, SIM, IDCS.")

    enum Dialect: String, Sendable, CaseIterable {
        /// Mobile & Social's OAuth service of OAM 11.1.2.
        case oam11g = "11g"
        case oam12c = "12c"
        /// The shared identity manager of Oracle's first cloud, v3.1.
        case sim = "sim"
        /// Identity Cloud Service, now OCI identity domains.
        case idcs = "idcs"
    }

    enum Grant: String, Sendable, CaseIterable {
        case clientCredentials = "client_credentials"
        case password = "password"
        case refreshToken = "refresh_token"
        case authorizationCode = "authorization_code"
        case jwtBearer = "jwt_bearer"
        case oamCredentials = "oam_credentials"
    }

    enum ClientAuth: String, Sendable, CaseIterable {
        case basic = "basic"
        case post = "post"
        case privateKeyJWT = "private_key_jwt"
        case issuedJWT = "issued_jwt"
        case none = "none"
    }

    enum ClientType: String, Sendable, CaseIterable {
        case web = "web"
        case mobile = "mobile"
    }

    enum DomainIn: String, Sendable, CaseIterable {
        case header = "header"
        case query = "query"
        case both = "both"
    }

    enum DomainMode: String, Sendable, CaseIterable {
        case header = "header"
        case userPrefix = "user_prefix"
        case none = "none"
    }

    enum GrantCase: String, Sendable, CaseIterable {
        case lower = "lower"
        case upper = "upper"
    }

    enum DeviceStore: String, Sendable, CaseIterable {
        case auto = "auto"
        case on = "on"
        case off = "off"
    }

    let settings: OAuth2Settings
    private let grant: Grant
    /// Under which the marks of spent passwords and the sessions stand.
    private let user: String

    init(_ keys: BlockReader, of identity: SchemeOwner) {
        let reader = OAMOAuthReader(keys)
        settings = reader.settings
        grant = reader.grant
        user = reader.username ?? settings.clientID
        OAMOAuthChecks(keys: keys, reader: reader, network: identity.network).run()
    }

    /// A handshake calls what stands for a user an assertion, whoever has made it.
    static func secrets(_ keys: BlockReader) -> [NamedSecretReference] {
        keys.writtenSecrets.map {
            $0.key == "user_assertion" ? NamedSecretReference("assertion", $0.reference) : $0
        } + keys.inside("assertion").certificate
    }

    private var isMobile: Bool { settings.oracle?.issuesForPassword == true }

    var sendsPassword: Bool { isMobile || grant == .password }
    var needsPerson: Bool { settings.grant.needsPerson }
    var allowedScopes: [String]? { settings.allowedScopes }

    func check(_ configuration: Configuration, of identity: Identity, _ findings: Findings) {
        settings.grant.checkStore(configuration, of: identity, findings)
        guard isMobile, !configuration.keeps(identity) else { return }
        findings.warning(
            "identity '\(identity.name)' keeps no client assertion without a 'store': it registers again with the password at each start",
            identity.mark)
    }

    func handshake(of identity: Identity, statuses: [Int]?, _ world: GrantWorld) throws(GrantFailure) -> any Handshake {
        // The address of the tokens is made of `base_url` in the dialect of 12c.
        if case .tokenURL(let url) = settings.location { try url.requireReadable("token_url or base_url") }
        if case .mobile(let mobile)? = settings.oracle?.issued {
            try mobile.service.requireReadable("service_endpoint")
        }
        return try settings.handshake(of: identity, statuses: statuses, world)
    }

    func traits(of identity: Identity) -> SchemeTraits { settings.traits(user: user) }
}
