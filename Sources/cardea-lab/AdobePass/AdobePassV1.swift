/// REST API V1: who asks and for what stands in the query, a login is told by statuses, a media token needs a permit first. A login made
/// with it is none for V2.
extension AdobePassServer {
    static let operationsOfV1 = [
        "/reggie/v1/\(serviceProvider)/regcode": "adobe_v1_regcode", "/api/v1/authenticate": "adobe_v1_browser",
        "/api/v1/tokens/authn": "adobe_v1_authn", "/api/v1/tokens/usermetadata": "adobe_v1_usermetadata",
        "/api/v1/authorize": "adobe_v1_authorize", "/api/v1/tokens/media": "adobe_v1_media",
        "/api/v1/preauthorize": "adobe_v1_preauthorize", "/api/v1/logout": "adobe_v1_logout",
    ]

    /// With a canary in what it says.
    private func refusedV1(_ status: Int, _ action: String, _ code: String) -> Refusal {
        if faults.isSet("adobe_v1_enhanced") { return Refusal(status, code, action) }
        let message: JSON = "said by Adobe \(ledger.mint(9))"
        return Refusal(.json(["status": JSON(status), "message": message, "details": ""], status), code)
    }

    func serveV1(_ operation: String, _ request: Request) throws(Refusal) -> Response {
        let token = try accessToken(request)
        guard request.values("AP-Device-Identifier").isEmpty, request.single("Accept") == "application/json" else {
            throw Refusal(.json(["status": 400], 400), "fields that V1 does not know")
        }
        if faults.take("adobe_retry", on: operation) != nil {
            throw Refusal(403, "network_connection_timeout", "retry")
        }
        if operation == "adobe_v1_regcode" { return try registrationCode(token.client, request) }
        let takesResource = ["adobe_v1_authorize", "adobe_v1_media", "adobe_v1_preauthorize"].contains(operation)
        let query = request.query
        guard query.count == (takesResource ? 3 : 2), query["requestor"] == Self.serviceProvider,
            let id = query["deviceId"], !id.isEmpty, (query["resource"] != nil) == takesResource,
            request.method == (operation == "adobe_v1_logout" ? "DELETE" : "GET"), request.body.isEmpty
        else { throw refusedV1(400, "none", "invalid_requestor") }
        let device = Device(client: token.client, id: "v1 \(id)")
        let resource = query["resource"] ?? ""
        switch operation {
        case "adobe_v1_authn": return try authentication(of: device)
        case "adobe_v1_logout":
            state.withLock { state in
                state.profiles[device] = nil
                state.permits[device] = nil
            }
            return Response(204)
        default: break
        }
        guard profile(of: device) != nil else {
            let status = faults.isSet("adobe_v1_unsure") ? 403 : 412
            throw refusedV1(status, "authentication", "authentication_session_missing")
        }
        switch operation {
        case "adobe_v1_usermetadata":
            return .json([
                "updated": JSON(Moment.wall()), "encrypted": ["zip"],
                "data": [
                    "userID": "\(ledger.mint(9))", "maxRating": "TV-14", "zip": "\(ledger.mint(60))",
                ],
            ])
        case "adobe_v1_preauthorize": return preview(resource)
        case "adobe_v1_authorize": return try permit(resource, device)
        default: return try media(resource, device)
        }
    }

    // MARK: - Login

    private func registrationCode(_ client: String, _ request: Request) throws(Refusal) -> Response {
        guard request.method == "POST", request.query.isEmpty else { throw refusedV1(400, "none", "invalid_requestor") }
        let form = try form(request, ["deviceId", "mvpd", "ttl"])
        guard let id = form["deviceId"], !id.isEmpty, form["mvpd"] == Self.mvpd,
            let ttl = form["ttl"].flatMap({ Int64($0) }), (1...36_000).contains(ttl)
        else { throw refusedV1(400, "none", "invalid_device_id") }
        let device = Device(client: client, id: "v1 \(id)")
        let life = Int64(faults.take("adobe_code_life_ms")?.number ?? Int(ttl) * 1000)
        let now = Moment.wall()
        let code = newCode()
        state.withLock { state in
            for (old, session) in state.sessions where session.device == device { state.sessions[old] = nil }
            state.sessions[code] = LoginSession(
                device: device, redirect: "https://\(Self.domain)/", expires: now + life)
        }
        return .json([
            "id": "\(Random.text(bytes: 9))", "code": "\(code)", "requestor": "\(Self.serviceProvider)",
            "mvpd": "\(Self.mvpd)", "generated": JSON(now), "expires": JSON(now + life),
            "info": ["deviceId": "\(id)"],
        ]).with(status: 201)
    }

    /// The person's browser.
    func browseV1(_ request: Request) throws(Refusal) -> Response {
        let target = request.target
        let query = request.query
        guard query["requestor_id"] == Self.serviceProvider, query["mso_id"] == Self.mvpd,
            query["domain_name"] == Self.domain, query["noflash"] == "true", query["no_iframe"] == "true",
            target.hasPrefix("/api/v1/authenticate?reg_code="),
            target.split(separator: "&").last?.hasPrefix("redirect_url=") == true,
            let redirect = query["redirect_url"], let code = query["reg_code"],
            state.withLock({ state in
                guard let session = state.sessions[code], session.expires > Moment.wall() else { return false }
                state.sessions[code] = nil
                state.sessions["done \(code)"] = session
                return true
            })
        else {
            throw Refusal(.html("<html>no such code</html>", 400), "no such code")
        }
        logIn("done \(code)")
        return .redirect(to: redirect)
    }

    private func authentication(of device: Device) throws(Refusal) -> Response {
        guard let profile = state.withLock({ $0.profiles[device] }) else {
            throw refusedV1(404, "authentication", "authentication_session_missing")
        }
        guard profile.ends > Moment.wall() else {
            throw refusedV1(410, "authentication", "authentication_session_expired")
        }
        let mvpd = faults.take("adobe_other_mvpd")?.text ?? Self.mvpd
        return .json([
            "requestor": "\(Self.serviceProvider)", "mvpd": "\(mvpd)", "userId": "\(ledger.mint(9))",
            "expires": "\(profile.ends)",
        ])
    }

    // MARK: - Decisions

    private func preview(_ resources: String) -> Response {
        let decisions = resources.split(separator: ",").map { resource -> JSON in
            ["id": .string(String(resource)), "authorized": .bool(!resource.contains("DENIED"))]
        }
        return .json(["resources": .array(decisions)])
    }

    private func permit(_ resource: String, _ device: Device) throws(Refusal) -> Response {
        guard !resource.contains("DENIED") else { throw refusedV1(403, "none", "authorization_denied_by_mvpd") }
        state.withLock { _ = $0.permits[device, default: []].insert(resource) }
        return .json([
            "mvpd": "\(Self.mvpd)", "resource": "\(resource)", "requestor": "\(Self.serviceProvider)",
            "expires": "\(Moment.wall() + 86_400_000)",
        ])
    }

    private func media(_ resource: String, _ device: Device) throws(Refusal) -> Response {
        guard state.withLock({ $0.permits[device]?.contains(resource) == true }) else {
            throw refusedV1(403, "none", "authorization_not_found")
        }
        guard let token = mediaToken(for: resource, at: Moment.wall())["serializedToken"] else {
            throw refusedV1(500, "none", "internal_server_error")
        }
        return .json([
            "resource": "\(resource)", "requestor": "\(Self.serviceProvider)",
            "expires": "\(Moment.wall() + 420_000)", "serializedToken": token,
            "userId": "\(ledger.mint(9))", "mvpdId": "\(Self.mvpd)",
        ])
    }
}
