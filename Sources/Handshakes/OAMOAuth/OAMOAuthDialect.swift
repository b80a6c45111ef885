internal import Configuration

/// Where Oracle's servers differ from the standard that `oauth2` follows (docs/design/wire/oam-oauth.md#dialects).
struct OAMOAuthDialect: Sendable {
    /// Grant types in OAM 12c's capitals.
    var hasUpperCaseGrants = false
    /// Claims of the assertion that proves the client, beside those that every one has.
    var clientClaims: [NamedValue] = []
    /// `aud` is a list of one.
    var listsAudience = false
    /// Put before the token as it stands.
    var tokenPrefix = "Bearer "
    /// Whether tokens are deleted by `oracle_token_action` at the token endpoint (docs/design/wire/oam-oauth.md#token-action).
    var deletesByAction = false
    /// How the server is asked about a token.
    var inquiry = Inquiry.standard
    /// Who gives the assertion that proves the client; nil: it proves itself as with any server.
    var issued: Issuance?

    enum Inquiry: Sendable {
        /// RFC 7662.
        case standard
        /// `oracle_token_action=validate` at the token endpoint (docs/design/wire/oam-oauth.md#token-action).
        case tokenAction
        /// The token itself, as Bearer, at an endpoint that says what it knows of it (docs/design/wire/oam-oauth.md#token-info).
        case tokenInfo
    }

    enum Issuance: Sendable, Equatable {
        /// For id and secret, without a scope (SIM's flow f).
        case forSecret
        /// For a user's password, once (docs/design/wire/oam-oauth.md#mobile).
        case mobile(OAMMobileClient)
    }
}

/// A client of OAM 11g that registers itself with a user's password (docs/design/wire/oam-oauth.md#mobile).
struct OAMMobileClient: Sendable, Equatable {
    /// Up to and with the service's name.
    var service: IssuerURL
    var fetchesProfile = true
    var username: String
    /// Claims of the device, with or without their prefix.
    var deviceClaims: [String: String] = [:]
    /// Whether the server keeps the user assertion; nil: as the application profile says.
    var usesDeviceStore: Bool?
    var deviceStoreParam = "oracle_use_server_device_store"
    var preAssertion = "oracle-idm:/oauth/assertion-type/client-identity/mobile-client-pre-authz-code-client"
    var clientAssertion = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    var userAssertion = "oracle-idm:/oauth/assertion-type/user-identity/jwt"
}

extension OAMOAuthDialect {
    /// Then a grant may send a password, whatever it is itself.
    var issuesForPassword: Bool { if case .mobile? = issued { true } else { false } }

    /// A grant type as it is written to this server.
    func spelling(of grant: String) -> String {
        guard hasUpperCaseGrants else { return grant }
        switch grant {
        case "client_credentials", "password", "refresh_token", "authorization_code": return grant.uppercased()
        case "urn:ietf:params:oauth:grant-type:jwt-bearer": return "JWT_BEARER"
        default: return grant
        }
    }
}

/// The device's claims in the form that both of Mobile & Social's services take (docs/design/wire/oam-webgate.md#device-profile).
enum OAMDeviceProfile {
    static let prefix = "oracle:idm:claims:client:"
    private static let hardware: Set = ["phonenumber", "imei", "macaddress", "udid", "iosidforvendor", "iosidforad"]
    // They may be empty; services were seen to accept that, not their absence.
    private static let always = ["sdkversion", "ostype", "osversion"]

    static func size(_ claims: [String: String]) -> Int {
        claims.reduce(256) { $0 + 64 + 6 * ($1.key.utf8.count + $1.value.utf8.count) }
    }

    /// The members of the profile, into an object that is open.
    static func write(_ written: [String: String], into body: inout JSONBody) {
        var claims: [String: String] = [:]
        // In order: with and without its prefix a claim may be named twice.
        for (name, value) in written.sorted(by: { $0.key < $1.key }) {
            claims[name.hasPrefix(prefix) ? String(name.dropFirst(prefix.count)) : name] = value
        }
        for name in always { body.member(prefix + name, claims[name] ?? "") }
        let others = claims.sorted { $0.key < $1.key }.filter { !always.contains($0.key) }
        for (name, value) in others where !hardware.contains(name) { body.member(prefix + name, value) }
        body.open("hardwareIds")
        for (name, value) in others where hardware.contains(name) { body.member(prefix + name, value) }
        body.close()
    }
}
