import FoundationEssentials
import Synchronization

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
        let path = Self.mobileRoot + "tokens-of-profile"
        return .json(
            200,
            [
                "oauthTokenService": .string(
                    faults.take("oam_profile_elsewhere") == nil ? path : "http://127.0.0.1:1/tokens"),
                "oauthAuthZService": .string(Self.mobileRoot + "authorize"),
                "allowedGrantTypes": ["RESOURCE_OWNER", "CLIENT_CREDENTIALS", "ASSERTION", "OAM_CREDENTIAL"],
                "server_side_sso": .bool(faults.isSet("oam_server_session")),
                "mobileAppConfig": ["claimAttributes": ["oracle:idm:claims:client:osversion"]],
            ])
    }

    /// A token request of a mobile client.
    func mobile(_ request: Request, _ all: [String: String]) throws(Refusal) -> Response {
        var form = all
        guard request.values("Authorization").isEmpty else {
            throw Refusal(400, "invalid_request", "a mobile client has no secret")
        }
        guard request.path.hasSuffix("tokens-of-profile") else {
            throw Refusal(400, "invalid_request", "not where the profile says")
        }
        form["client_id"] = nil
        let grant = try need("grant_type", &form)
        if let assertion = form.removeValue(forKey: "client_assertion") {
            guard form.removeValue(forKey: "client_assertion_type") == Self.clientJWT else {
                throw Refusal(400, "invalid_request", "client_assertion_type is missing or unknown")
            }
            let owner = state.withLock { $0.issued[assertion] }
            guard owner == Self.mobileClient, faults.take("oam_client_assertion_dead") == nil else {
                throw Refusal(401, "invalid_client", "client assertion is unknown or has run out")
            }
            return try granted(grant, &form)
        }
        return try registered(grant, &form)
    }

    private func registered(_ grant: String, _ form: inout [String: String]) throws(Refusal) -> Response {
        try checkDevice(&form)
        switch grant {
        case "client_credentials":
            guard try need("oracle_requested_assertions", &form) == Self.preAssertion else {
                throw Refusal(400, "invalid_request", "oracle_requested_assertions")
            }
            try finish(form)
            let code = ledger.mint(24)
            state.withLock { $0.codes.insert(code, true) }
            ledger.count("oam11g_pre")
            return .json(
                200, ["access_token": .string(code), "oracle_tk_context": "pre_azc", "expires_in": 300])
        case "password":
            guard try need("oracle_requested_assertions", &form) == Self.clientJWT else {
                throw Refusal(400, "invalid_request", "oracle_requested_assertions")
            }
            let code = try need("oracle_pre_authz_code", &form)
            guard state.withLock({ $0.codes.remove(code) }) != nil else {
                throw Refusal(400, "invalid_grant", "pre-authorization code is unknown or used")
            }
            let user = try need("username", &form)
            try logIn(user, try need("password", &form), "oam11g_register")
            try finish(form)
            ledger.count("oam11g_register")
            return client()
        case "refresh_token":
            let old = try need("refresh_token", &form)
            try finish(form)
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
        let user = "eyJ" + ledger.mint(40)
        state.withLock {
            $0.issued.insert(value, Self.mobileClient)
            $0.renewals.insert(refresh, true)
            if isKept { $0.hasSession = true } else { $0.users.insert(user, true) }
        }
        let life = faults.take("oam_client_life_s")?.number ?? 604_800
        var members: [(key: String, value: JSON)] = [
            ("access_token", .string(value)), ("oracle_client_assertion_type", .string(Self.clientJWT)),
            ("oracle_tk_context", "client_assertion"), ("expires_in", JSON(life)), ("refresh_token", .string(refresh)),
            ("oracle_token_in_server_device_store", .bool(isKept)),
        ]
        if !isKept {
            members.append(
                (
                    "oracle_aux_tokens",
                    [
                        "user_assertion": [
                            "access_token": .string(user), "oracle_tk_context": "user_assertion", "expires_in": 28800,
                        ]
                    ]
                ))
        }
        return .json(200, .object(members))
    }

    private func granted(_ grant: String, _ form: inout [String: String]) throws(Refusal) -> Response {
        let scopes = Set((form.removeValue(forKey: "scope") ?? "").split(separator: " ").map(String.init))
        switch grant {
        case "client_credentials":
            try finish(form)
            return issue(scopes, refreshable: false)
        case "password":
            let user = try need("username", &form)
            try logIn(user, try need("password", &form), "oam11g_token")
            guard form["oracle_requested_assertions"] != nil else {
                try finish(form)
                return issue(scopes, refreshable: false)
            }
            guard form.removeValue(forKey: "oracle_requested_assertions") == Self.userAssertionType else {
                throw Refusal(400, "invalid_request", "oracle_requested_assertions")
            }
            try checkDevice(&form)
            try finish(form)
            ledger.count("oam11g_user_assertion")
            let user2 = "eyJ" + ledger.mint(40)
            state.withLock { $0.users.insert(user2, true) }
            return .json(
                200, ["access_token": .string(user2), "oracle_tk_context": "user_assertion", "expires_in": 28800])
        case Self.jwtBearer:
            try checkUser(&form)
            try finish(form)
            return issue(scopes, refreshable: false, [("oracle_grant_type", .string(Self.jwtBearer))])
        case "oracle-idm:/oauth/grant-type/oam_credentials":
            try checkUser(&form)
            try checkDevice(&form)
            try finish(form)
            ledger.count("oam11g_oam_credentials")
            return issue(
                scopes, refreshable: false,
                [("oracle_aux_tokens", ["oam_mt": ["access_token": .string(ledger.mint(24))]])])
        case Self.tokenAction:
            return try act(&form, "oam11g")
        default: throw Refusal(400, "unsupported_grant_type", "unknown grant")
        }
    }

    private func checkUser(_ form: inout [String: String]) throws(Refusal) {
        if form.removeValue(forKey: "oracle_use_server_device_store") == "true" {
            guard form["assertion"] == nil else { throw Refusal(400, "invalid_request", "assertion beside the store") }
            guard state.withLock({ $0.hasSession }) else {
                throw Refusal(400, "invalid_grant", "no session of the user")
            }
            ledger.count("oam11g_device_store")
            return
        }
        let assertion = try need("assertion", &form)
        guard state.withLock({ $0.users[assertion] }) != nil else {
            throw Refusal(400, "invalid_grant", "Invalid Grant: user assertion is unknown or has run out")
        }
    }

    private func checkDevice(_ form: inout [String: String]) throws(Refusal) {
        let text = try need("oracle_device_profile", &form)
        guard let data = Data(base64Encoded: text), let device = JSON.parse(Array(data)), device.isObject,
            let hardware = device["hardwareIds"], hardware.isObject
        else { throw Refusal(400, "invalid_request", "oracle_device_profile is no base64 of a profile") }
        for claim in ["sdkversion", "ostype", "osversion"]
        where device["oracle:idm:claims:client:" + claim]?.text == nil {
            throw Refusal(400, "invalid_request", "oracle_device_profile lacks \(claim)")
        }
    }
}
