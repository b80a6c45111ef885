// Mobile clients of OAM 11g: application profile, registration in two legs, what they get tokens with.
extension OracleServer {
    static let preAssertion =
        "oracle-idm:/oauth/assertion-type/client-identity/mobile-client-pre-authz-code-client"
    static let userAssertionType = "oracle-idm:/oauth/assertion-type/user-identity/jwt"

    func profile(_ request: Request) throws(Refusal) -> Response {
        guard request.method == "GET", request.single("Content-Type") == "application/json" else {
            throw Refusal(400, "invalid_request", "GET with a JSON content type is wanted")
        }
        let name = String(request.path.dropFirst((Self.mobileRoot + "appprofiles/").count))
        guard Form.decode(name) == Self.mobileClient else { throw Refusal(404, "IDAAS-61100", "no such application") }
        guard request.query["device_os"] != nil, request.query["os_ver"] != nil else {
            throw Refusal(400, "invalid_request", "device_os or os_ver is missing")
        }
        let tokens = Self.mobileRoot + "tokens-of-profile"
        return .json([
            "oauthTokenService":
                "\(faults.take("oam_profile_elsewhere") == nil ? tokens : "http://127.0.0.1:1/tokens")",
            "oauthAuthZService": "\(Self.mobileRoot)authorize",
            "allowedGrantTypes": ["RESOURCE_OWNER", "CLIENT_CREDENTIALS", "ASSERTION", "OAM_CREDENTIAL"],
            "server_side_sso": .bool(faults.isSet("oam_server_session")),
            "mobileAppConfig": ["claimAttributes": ["oracle:idm:claims:client:osversion"]],
        ])
    }

    /// A token request of a mobile client.
    func mobile(_ request: Request, _ form: inout Parameters) throws(Refusal) -> Response {
        guard request.values("Authorization").isEmpty else {
            throw Refusal(400, "invalid_request", "a mobile client has no secret")
        }
        guard request.path.hasSuffix("tokens-of-profile") else {
            throw Refusal(400, "invalid_request", "not where the profile says")
        }
        _ = form.take("client_id")
        let grant = try form.need("grant_type")
        if let assertion = form.take("client_assertion") {
            guard form.take("client_assertion_type") == Self.clientJWT else {
                throw Refusal(400, "invalid_request", "client_assertion_type is missing or unknown")
            }
            let owner = state.withLock { $0.issued[assertion] }
            guard owner == Self.mobileClient else {
                throw Refusal(401, "invalid_client", "client assertion is unknown or has run out")
            }
            return try granted(grant, &form)
        }
        return try registered(grant, &form)
    }

    private func registered(_ grant: String, _ form: inout Parameters) throws(Refusal) -> Response {
        try checkDevice(&form)
        switch grant {
        case "client_credentials":
            try checkAsked(for: Self.preAssertion, &form)
            try form.finish()
            let code = ledger.mint(24)
            state.withLock { $0.codes.insert(code, true) }
            ledger.count("oam11g_pre")
            return .json(["access_token": "\(code)", "oracle_tk_context": "pre_azc", "expires_in": 300])
        case "password":
            try checkAsked(for: Self.clientJWT, &form)
            let code = try form.need("oracle_pre_authz_code")
            guard state.withLock({ $0.codes.remove(code) }) != nil else {
                throw Refusal(400, "invalid_grant", "pre-authorization code is unknown or used")
            }
            let user = try form.need("username")
            try logIn(user, try form.need("password"), "oam11g_register")
            try form.finish()
            ledger.count("oam11g_register")
            return client()
        case "refresh_token":
            let old = try form.need("refresh_token")
            try form.finish()
            guard state.withLock({ $0.renewals.remove(old) }) != nil else {
                throw Refusal(400, "invalid_grant", "refresh token is unknown")
            }
            ledger.count("oam11g_renew")
            return client()
        default: throw Refusal(401, "invalid_client", "no client assertion")
        }
    }

    /// A client assertion, and the user assertion unless the server keeps it.
    private func client() -> Response {
        let value = "eyJ" + ledger.mint(40)
        let refresh = ledger.mint(32)
        let isKept = faults.isSet("oam_server_session")
        state.withLock {
            $0.issued.insert(value, Self.mobileClient)
            $0.renewals.insert(refresh, true)
            if isKept { $0.hasSession = true }
        }
        var members: [String: JSON] = [
            "access_token": "\(value)", "oracle_client_assertion_type": "\(Self.clientJWT)",
            "oracle_tk_context": "client_assertion", "refresh_token": "\(refresh)",
            "expires_in": JSON(faults.take("oam_client_life_s")?.number ?? 604_800),
            "oracle_token_in_server_device_store": .bool(isKept),
        ]
        if !isKept { members["oracle_aux_tokens"] = ["user_assertion": userAssertion()] }
        return .json(.object(members))
    }

    private func userAssertion() -> JSON {
        let value = "eyJ" + ledger.mint(40)
        state.withLock { $0.users.insert(value, true) }
        return ["access_token": "\(value)", "oracle_tk_context": "user_assertion", "expires_in": 28800]
    }

    private func granted(_ grant: String, _ form: inout Parameters) throws(Refusal) -> Response {
        let scopes = try OAuthServer.scopes(form.take("scope"))
        switch grant {
        case "client_credentials":
            try form.finish()
            return issue(scopes, refreshable: false)
        case "password":
            let user = try form.need("username")
            try logIn(user, try form.need("password"), "oam11g_token")
            guard form["oracle_requested_assertions"] != nil else {
                try form.finish()
                return issue(scopes, refreshable: false)
            }
            try checkAsked(for: Self.userAssertionType, &form)
            try checkDevice(&form)
            try form.finish()
            ledger.count("oam11g_user_assertion")
            return .json(userAssertion())
        case Self.jwtBearer:
            try checkUser(&form)
            try form.finish()
            return issue(scopes, refreshable: false, ["oracle_grant_type": "\(Self.jwtBearer)"])
        case "oracle-idm:/oauth/grant-type/oam_credentials":
            try checkUser(&form)
            try checkDevice(&form)
            try form.finish()
            ledger.count("oam11g_oam_credentials")
            return issue(
                scopes, refreshable: false,
                ["oracle_aux_tokens": ["oam_mt": ["access_token": "\(ledger.mint(24))"]]])
        case Self.tokenAction:
            return try act(&form)
        default: throw Refusal(400, "unsupported_grant_type", "unknown grant")
        }
    }

    private func checkUser(_ form: inout Parameters) throws(Refusal) {
        if form.take("oracle_use_server_device_store") == "true" {
            guard form["assertion"] == nil else { throw Refusal(400, "invalid_request", "assertion beside the store") }
            guard state.withLock({ $0.hasSession }) else {
                throw Refusal(400, "invalid_grant", "no session of the user")
            }
            ledger.count("oam11g_device_store")
            return
        }
        let assertion = try form.need("assertion")
        guard state.withLock({ $0.users[assertion] }) != nil else {
            throw Refusal(400, "invalid_grant", "Invalid Grant: user assertion is unknown or has run out")
        }
    }

    private func checkDevice(_ form: inout Parameters) throws(Refusal) {
        let text = try form.need("oracle_device_profile")
        guard let device = Base64.decodeText(text).flatMap({ JSON.parse(Array($0.utf8)) }) else {
            throw Refusal(400, "invalid_request", "oracle_device_profile is no base64 of a profile")
        }
        if let missing = device.missingClaim {
            throw Refusal(400, "invalid_request", "oracle_device_profile lacks \(missing)")
        }
    }

    private func checkAsked(for assertion: String, _ form: inout Parameters) throws(Refusal) {
        guard try form.need("oracle_requested_assertions") == assertion else {
            throw Refusal(400, "invalid_request", "oracle_requested_assertions")
        }
    }
}
