/// Settings of an `oam_webgate` identity, with their defaults. Names and paths are data: deployments differ in all of them.
struct OAMWebGateSettings: Sendable {
    // Mobile & Social, the token service.

    /// Full URL of the service, e.g. `https://oam.example.com:14100/oic_rest/rest/mobileoamauthentication`.
    var service: IssuerURL
    var username: String
    var paths = Paths()
    var serviceDomain = "MobileServiceDomain"
    var serviceDomainHeader = "X-IDAAS-SERVICEDOMAIN"
    var clientAuth: ClientAuth = .uidPassword
    var clientAuthHeader = "X-Idaas-Rest-Authorization"
    /// Required unless `clientAuth` is `.none`.
    var clientID: String?
    /// Claims of the device profile; names with or without `oracle:idm:claims:client:`.
    var deviceClaims: [String: String] = [:]
    var userTokenType = "USERTOKEN"
    /// Nanoseconds; the service names no lifetime.
    var userTokenTTL: UInt64 = 1800 * 1_000_000_000
    /// Value of `X-IDAAS-REST-VERSION`; nil: not sent, the newest.
    var restVersion: String?
    /// Codes in refusals that mean "this registration handle is not known", besides those told by their text.
    var handleRejectedCodes: Set<String> = []
    /// Parts of messages that say the same, in lower case.
    var handleRejectedPhrases: [String] = []

    // The WebGate.

    /// The text that `User-Agent` must begin with, byte for byte; the WebGate's `OAMAuthUserAgentPrefix`.
    var userAgentPrefix: String
    var userAgentMode: UserAgentMode = .prepend
    var contextSource: ContextSource = .challenge
    var challengeScheme = "OAM-Auth"
    var contextParam = "request-ctx"
    var replayHeader = "Authorization"
    var replayPrefix = "OAM-Auth "
    var tokenScope: TokenScope = .webgate
    /// Which URL is told to the service; whoever calls `judge` passes that one.
    var resourceURL: ResourceURL = .upstream
    var resourceSuffix = ""
    /// Whether `ownCookies` are kept from callers.
    var stripCookies = true

    /// Path segments behind `service`.
    struct Paths: Sendable {
        var register = "register"
        var authenticate = "authenticate"
        var access = "access"
    }

    /// How the client proves itself: not at all (desktop services, which know no handle), or with `clientId:handle`.
    enum ClientAuth: String, Sendable, CaseIterable {
        case uidPassword = "uidpassword"
        case basic = "basic"
        case none = "none"
    }

    enum UserAgentMode: String, Sendable, CaseIterable {
        case prepend = "prepend"
        case replace = "replace"
    }

    /// Where the request context comes from: the 401, the redirect to the login page, or whichever comes.
    enum ContextSource: String, Sendable, CaseIterable {
        case challenge = "challenge"
        case redirect = "redirect"
        case auto = "auto"
    }

    enum TokenScope: String, Sendable, CaseIterable {
        case webgate = "webgate"
        case url = "url"
    }

    enum ResourceURL: String, Sendable, CaseIterable {
        case upstream = "upstream"
        case caller = "caller"
    }
}

// MARK: - The WebGate's side of the exchange

extension OAMWebGateSettings {
    /// The `User-Agent` to send: the WebGate answers with a challenge only to one that begins with its prefix.
    func userAgent(caller: [UInt8]?) -> [UInt8] {
        var value = Array(userAgentPrefix.utf8)
        // A prefix with a version of its own gets no second one.
        if !value.contains(UInt8(ascii: "/")) { value += Array("/1.0".utf8) }
        if userAgentMode == .prepend, let caller, !caller.isEmpty { value += [0x20] + caller }
        return value
    }

    /// Beginnings of the names of OAM's own cookies, which are of no use to a caller.
    static let ownCookies = ["OAMAuthnCookie", "ObSSOCookie", "OAMRequestContext"]
}

// MARK: - Checks

extension OAMWebGateSettings {
    struct Endpoints: Sendable {
        var register, authenticate, access: IssuerURL
    }

    /// Throws `.configuration` if a setting cannot be put on the wire.
    func endpoints() throws(GrantFailure) -> Endpoints {
        guard !username.isEmpty, !username.hasControls else {
            throw .configuration(reason: "username: empty, or with a control character")
        }
        if clientAuth != .none {
            guard let clientID, !clientID.isEmpty, !clientID.hasControls, !clientID.utf8.contains(UInt8(ascii: ":"))
            else { throw .configuration(reason: "client_id: missing, or with a colon or a control character") }
        }
        guard !userAgentPrefix.isEmpty, userAgentPrefix.isFieldContent, userAgentPrefix.utf8.first != 0x20 else {
            throw .configuration(reason: "user_agent_prefix: empty, or not visible ASCII")
        }
        for (key, name) in [
            ("service_domain_header", serviceDomainHeader), ("client_auth_header", clientAuthHeader),
            ("replay_header", replayHeader), ("challenge_scheme", challengeScheme), ("context_param", contextParam),
        ] where !name.isFieldName {
            throw .configuration(reason: "\(key): not a token")
        }
        for (key, value) in [
            ("service_domain", serviceDomain), ("replay_prefix", replayPrefix), ("rest_version", restVersion ?? ""),
            ("resource_suffix", resourceSuffix), ("user_token_type", userTokenType),
        ] where !value.isFieldContent {
            throw .configuration(reason: "\(key): not visible ASCII")
        }
        guard let register = service.appending(path: paths.register),
            let authenticate = service.appending(path: paths.authenticate),
            let access = service.appending(path: paths.access)
        else { throw .configuration(reason: "paths: not a path") }
        return Endpoints(register: register, authenticate: authenticate, access: access)
    }
}
