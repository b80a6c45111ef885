/// Settings of an `oam_webgate` identity, with their defaults. Names and paths are data: deployments differ in all of them.
public struct OAMWebGateSettings: Sendable {
    // Mobile & Social, the token service.

    /// Full URL of the service, e.g. `https://oam.example.com:14100/oic_rest/rest/mobileoamauthentication`.
    public var service: IssuerURL
    public var username: String
    public var paths = Paths()
    public var serviceDomain = "MobileServiceDomain"
    public var serviceDomainHeader = "X-IDAAS-SERVICEDOMAIN"
    public var clientAuth: ClientAuth = .uidPassword
    public var clientAuthHeader = "X-Idaas-Rest-Authorization"
    /// Required unless `clientAuth` is `.none`.
    public var clientID: String?
    /// Claims of the device profile; names with or without `oracle:idm:claims:client:`.
    public var deviceClaims: [String: String] = [:]
    public var userTokenType = "USERTOKEN"
    /// Nanoseconds; the service names no lifetime.
    public var userTokenTTL: UInt64 = 1800 * 1_000_000_000
    /// Value of `X-IDAAS-REST-VERSION`; nil: not sent, the newest.
    public var restVersion: String?
    /// Whether calls to the service carry the user agent prefix too, as one client in the field does.
    public var userAgentOnService = false
    /// Codes in refusals that mean "this registration handle is not known", besides those told by their text.
    public var handleRejectedCodes: Set<String> = []
    /// Parts of messages that say the same, in lower case.
    public var handleRejectedPhrases: [String] = []

    // The WebGate.

    /// What `User-Agent` must begin with, byte for byte; the WebGate's `OAMAuthUserAgentPrefix`.
    public var userAgentPrefix: String
    public var userAgentMode: UserAgentMode = .prepend
    public var contextSource: ContextSource = .challenge
    public var challengeScheme = "OAM-Auth"
    public var contextParam = "request-ctx"
    public var replayHeader = "Authorization"
    public var replayPrefix = "OAM-Auth "
    public var tokenScope: TokenScope = .webgate
    /// Which URL is told to the service; whoever calls `judge` passes that one.
    public var resourceURL: ResourceURL = .upstream
    public var resourceSuffix = ""
    /// Whether cookies of `isOwnCookie` are kept from callers.
    public var stripCookies = true

    public init(service: IssuerURL, username: String, clientID: String?, userAgentPrefix: String) {
        self.service = service
        self.username = username
        self.clientID = clientID
        self.userAgentPrefix = userAgentPrefix
    }

    /// Path segments behind `service`. `terminate` is off: no witness of that call is known.
    public struct Paths: Sendable {
        public var register = "register"
        public var authenticate = "authenticate"
        public var access = "access"
        public var info = "tokens/info"
        public var terminate: String?
        public init() {}
    }

    /// How the client proves itself: not at all (desktop services, which know no handle), or with `clientId:handle`.
    public enum ClientAuth: Sendable { case none, uidPassword, basic }
    public enum UserAgentMode: Sendable { case prepend, replace }
    /// Where the request context comes from: the 401, the redirect to the login page, or whichever comes.
    public enum ContextSource: Sendable { case challenge, redirect, auto }
    public enum TokenScope: Sendable { case webgate, url }
    public enum ResourceURL: Sendable { case upstream, caller }
}

// MARK: - The WebGate's side of the exchange

extension OAMWebGateSettings {
    /// The `User-Agent` to send: the WebGate answers with a challenge only to one that begins with its prefix.
    public func userAgent(caller: [UInt8]?) -> [UInt8] {
        var value = Array(userAgentPrefix.utf8)
        // A prefix with a version of its own gets no second one.
        if !value.contains(UInt8(ascii: "/")) { value += Array("/1.0".utf8) }
        if userAgentMode == .prepend, let caller, !caller.isEmpty { value += [0x20] + caller }
        return value
    }

    /// Cookies of OAM itself, of no use to a caller.
    public func isOwnCookie(_ name: [UInt8]) -> Bool {
        name.starts(with: "OAMAuthnCookie".utf8) || name.starts(with: "OAMRequestContext".utf8)
            || name.elementsEqual("ObSSOCookie".utf8)
    }
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
