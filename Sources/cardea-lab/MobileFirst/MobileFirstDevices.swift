// The acts of devices: register, be challenged, be given a code, log out.

// MARK: - Signed data

extension MobileFirstServer {
    static let assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

    /// Milliseconds since 1970 by this server's clock.
    private var clock: Double { Double(Int(Moment.wall()) + (faults.take("mfp_clock_ms")?.number ?? 0)) }

    /// Header and payload of a JWS whose signature is that of the key in its header.
    private func opened(
        _ header: String, _ payload: String, _ signature: String
    ) throws(Refusal) -> (header: JSON, payload: JSON, key: RSAPublicKey) {
        func fail(_ why: String) -> Refusal { Refusal(400, "INVALID_SIGNATURE", why) }
        guard let head = Base64.decodeURL(header).flatMap(JSON.parse),
            let load = Base64.decodeURL(payload).flatMap(JSON.parse),
            let seal = Base64.decodeURL(signature)
        else { throw fail("a part is no base64url, or no JSON") }
        guard head["alg"]?.text == "RS256", let jwk = head["jwk"], jwk["kty"]?.text == "RSA",
            jwk["e"]?.text == "AQAB", let modulus = jwk["n"]?.text.flatMap({ Base64.decodeURL($0) }),
            let key = RSAPublicKey(modulus: modulus)
        else { throw fail("header has no RS256 key of 2048 bits or more") }
        guard key.verifies(seal, of: "\(header).\(payload)") else { throw fail("the signature is wrong") }
        return (head, load, key)
    }

    /// A client assertion: with the code it goes with, or with null for calls that have none.
    func verify(_ assertion: String, of client: String, code: String?) throws(Refusal) {
        func fail(_ why: String) -> Refusal { Refusal(401, "INVALID_CLIENT_ASSERTION", why) }
        let device = try device(client)
        let parts = assertion.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3 else { throw fail("not a JWS") }
        let (header, claims, _) = try opened(parts[0], parts[1], parts[2])
        guard header["jwk"]?["n"]?.text == device.modulus else { throw fail("another key") }
        guard header["jwk"]?["kid"]?.text == client, claims["sub"]?.text == client else { throw fail("another client") }
        guard claims["iss"]?.text == device.issuer else { throw fail("iss") }
        if let code {
            guard claims["jti"]?.text == code, claims["aud"]?.text == "az/v1/token" else { throw fail("jti or aud") }
        } else {
            guard case .null? = claims["jti"], case .null? = claims["aud"] else { throw fail("jti or aud") }
        }
        let now = clock
        guard let issued = claims["iat"]?.number, let expires = claims["exp"]?.number,
            abs(issued - now) < 120_000, expires > now, expires - issued <= 300_000
        else { throw fail("iat or exp, which are milliseconds by the server's clock") }
    }

    private func object(_ request: Request, _ names: Set<String>) throws(Refusal) -> JSON {
        guard let members = request.members(names) else {
            throw Refusal(400, "INVALID_REQUEST", "not a POST of a JSON object with the known members")
        }
        return members
    }

    private func device(_ id: String) throws(Refusal) -> Device {
        guard let device = state.withLock({ $0.clients[id] }) else {
            throw Refusal(400, "INVALID_CLIENT_ID", "unknown client")
        }
        return device
    }

    /// The client is gone, if the test wants so.
    func forget(_ client: String, on step: String) throws(Refusal) {
        guard faults.take("mfp_invalid_client_id", on: step) != nil else { return }
        state.withLock { $0.clients[client] = nil }
        throw Refusal(400, "INVALID_CLIENT_ID", "the client was removed")
    }
}

// MARK: - Registration

extension MobileFirstServer {
    func register(_ request: Request) throws(Refusal) -> Response {
        let members = try object(request, ["signedRegistrationData"])
        guard let parts = members["signedRegistrationData"]?.members, parts.count == 3,
            let header = parts["header"]?.text, let payload = parts["payload"]?.text,
            let signature = parts["signature"]?.text
        else { throw Refusal(400, "INVALID_REQUEST", "signedRegistrationData has not its three parts") }
        let (head, load, key) = try opened(header, payload, signature)
        guard head["jwk"]?["kid"] == nil else { throw Refusal(400, "INVALID_REQUEST", "kid before there is one") }
        guard load["device"]?["id"]?.text?.isEmpty == false, load["device"]?["platform"]?.text != nil,
            load["device"]?["hardware"]?.text != nil, let platform = load["application"]?["clientPlatform"]?.text
        else { throw Refusal(400, "INVALID_REQUEST", "device or application is not complete") }
        guard load["application"]?["id"]?.text == MobileFirstServer.application else {
            throw Refusal(403, "UNKNOWN_APPLICATION", "the application is not registered")
        }
        let version = load["application"]?["version"]?.text
        guard (platform == "web") == (version == nil) else {
            throw Refusal(400, "INVALID_REQUEST", "the web has no version, everything else has one")
        }
        if faults.take("mfp_authenticity") != nil {
            throw Refusal(challenge(["challenges": ["appAuthenticity": ["data": "1,2,3"]]]), "appAuthenticity")
        }
        let id = "client-" + Random.text(bytes: 9)
        let issuer = ([MobileFirstServer.application, platform] + (version.map { [$0] } ?? [])).joined(separator: "$")
        let modulus = head["jwk"]?["n"]?.text ?? ""
        state.withLock { $0.clients[id] = Device(key: key, modulus: modulus, issuer: issuer) }
        let location = faults.take("mfp_foreign_location") == nil ? "/mfp/api/registration" : "http://127.0.0.1:1"
        return Response(201).with("Location", "\(location)/clients/\(id)")
    }

    private func challenge(_ value: JSON) -> Response { .json(value, 401).with("WWW-Authenticate", "MFP-Challenge") }
}

// MARK: - Preauthorization

extension MobileFirstServer {
    private struct Judgement: Sendable {
        var failures: [String: JSON] = [:]
        var challenges: [String: JSON] = [:]
        var successes: [String: JSON] = [:]
    }

    func preauthorize(_ request: Request) throws(Refusal) -> Response {
        let members = try object(request, ["client_id", "scope", "challengeResponse"])
        guard let id = members["client_id"]?.text, let scope = members["scope"]?.text else {
            throw Refusal(400, "INVALID_REQUEST", "client_id or scope is missing")
        }
        try forget(id, on: "preauthorize")
        var device = try device(id)
        var answers: [String: JSON] = [:]
        if let response = members["challengeResponse"] {
            guard let all = response.members, !all.isEmpty else {
                throw Refusal(400, "INVALID_REQUEST", "challengeResponse is empty")
            }
            answers = all
            ledger.count("mfp_answers")
        }
        let fault = faults.take("mfp_conflict", on: answers.isEmpty ? "mfp_preauthorize" : "mfp_answer")
        if let fault, fault.number != 1 { throw Refusal(conflict, "conflict") }
        let judgement = try judge(scope, answers, of: &device)
        let changed = device
        state.withLock { $0.clients[id] = changed }
        if fault != nil { throw Refusal(conflict, "conflict after judging") }
        var parts: [String: JSON] = [:]
        if !judgement.successes.isEmpty { parts["successes"] = .object(judgement.successes) }
        if !judgement.failures.isEmpty {
            parts["failures"] = .object(judgement.failures)
            let status = faults.take("mfp_failures")?.number
            throw Refusal(.json(.object(parts), status == 222 ? 222 : 403), "failures")
        }
        guard !judgement.challenges.isEmpty else { return .json(.object(parts)) }
        parts["challenges"] = .object(judgement.challenges)
        ledger.count("mfp_challenges")
        return challenge(.object(parts))
    }

    private func judge(
        _ scope: String, _ answers: [String: JSON], of device: inout Device
    ) throws(Refusal) -> Judgement {
        var result = Judgement(successes: ["clockSynchronization": ["serverTimeStamp": .number(clock)]])
        let now = Moment.now()
        var wanted: [String] = []
        for name in scope.split(separator: " ").sorted() {
            guard let checks = MobileFirstServer.checks[String(name)] else {
                throw Refusal(400, "INVALID_SCOPE", "unknown scope")
            }
            for check in checks where !wanted.contains(check) { wanted.append(check) }
        }
        func pending(_ device: Device) -> [String] {
            let open = wanted.filter { (device.passed[$0] ?? 0) <= now }
            // Steps up: silent until what comes before has passed.
            return open.contains("PinCodeAttempts") ? open.filter { $0 != "UserLogin" } : open
        }
        let before = pending(device)
        if faults.isSet("mfp_failures"), !before.isEmpty {
            for check in before { result.failures[check] = blocked }
            return result
        }
        for (check, value) in answers.sorted(by: { $0.key < $1.key }) {
            guard before.contains(check) else {
                throw Refusal(400, "INVALID_REQUEST", "an answer to a check that did not ask")
            }
            ledger.count("mfp_judged_\(check)")
            if passes(check, value) {
                device.passed[check] = faults.isSet("mfp_endless") ? 0 : now + 3_600_000
                if check == "PinCodeAttempts" { device.attemptsLeft = 3 }
                result.successes[check] = ["user": ["id": "svc-teller"]]
                continue
            }
            ledger.count("mfp_wrong_\(check)")
            device.hasFailed = true
            if check == "PinCodeAttempts" { device.attemptsLeft -= 1 }
        }
        for check in pending(device) {
            if check == "PinCodeAttempts", device.attemptsLeft <= 0 {
                result.failures[check] = blocked
            } else {
                result.challenges[check] = challenge(check, device)
            }
        }
        return result
    }

    private var blocked: JSON { ["failure": "account blocked \(ledger.mint(12))"] }

    private func passes(_ check: String, _ value: JSON) -> Bool {
        func has(_ wanted: [String: String]) -> Bool { value.members?.compactMapValues(\.text) == wanted }
        return switch check {
        case "PinCodeAttempts": has(["pin": state.withLock { $0.pin }])
        case "UserLogin": has(["username": ledger.settings.user, "password": ledger.withState { $0.password }])
        case "DeviceCheck": has(["code": ledger.settings.apiKey])
        case "wl_remoteDisableRealm": has(["messageId": "notice-1"])
        default: false
        }
    }

    private func challenge(_ check: String, _ device: Device) -> JSON {
        switch check {
        case "PinCodeAttempts":
            let hint = "wrong, expected \(state.withLock { $0.pin }) \(ledger.mint(12))"
            let showsHint = device.hasFailed || faults.take("mfp_error_msg") != nil
            var left = JSON(device.attemptsLeft)
            if let fault = faults.take("mfp_remaining") {
                left = fault.text.map { "\($0)" } ?? JSON(fault.number ?? 0)
            }
            return ["errorMsg": showsHint ? .string(hint) : .null, "remainingAttempts": left]
        case "UserLogin": return ["errorMsg": .null, "remainingAttempts": "3"]
        case "wl_remoteDisableRealm":
            return ["message": "maintenance tonight", "messageId": "notice-1", "messageType": "NOTIFY"]
        default: return .null
        }
    }
}

// MARK: - Authorization and logout

extension MobileFirstServer {
    func authorize(_ request: Request) throws(Refusal) -> Response {
        let query = request.query
        guard request.method == "GET", query["response_type"] == "code", let id = query["client_id"],
            let redirect = query["redirect_uri"], let scope = query["scope"], query.count == 4
        else { throw Refusal(400, "INVALID_REQUEST", "response_type, client_id, redirect_uri and scope are wanted") }
        try forget(id, on: "authorization")
        let device = try device(id)
        let isWeb = device.issuer.hasSuffix("$web")
        let web = "http://\(request.host)/mfp/api/az/v1/authorization/redirect/\(id)"
        let wanted = isWeb ? web : "https://mfpredirecturi"
        guard redirect == wanted else { throw Refusal(400, "INVALID_REQUEST", "redirect_uri is not the platform's") }
        let scopes = Set(scope.split(separator: " ").map(String.init))
        let checks = scopes.flatMap { MobileFirstServer.checks[$0] ?? [] }
        let isOpen = checks.allSatisfy { (device.passed[$0] ?? 0) > Moment.now() }
        if !isOpen || faults.take("mfp_redirect_error") != nil {
            return .redirect(to: redirect + "?error=access_denied")
        }
        let code = ledger.mint(18)
        state.withLock { $0.codes[code] = Code(client: id, scope: scopes, redirect: redirect) }
        if faults.take("mfp_code_json") != nil { return .json(["code": "\(code)"]) }
        let location = faults.take("mfp_redirect_elsewhere") == nil ? redirect : "http://127.0.0.1:1/redirect"
        return .redirect(to: "\(location)?code=\(code)")
    }

    func logout(_ request: Request) throws(Refusal) -> Response {
        let form = try request.form(
            ["security_check", "client_assertion_type", "client_assertion"], else: "INVALID_REQUEST")
        guard form["client_assertion_type"] == MobileFirstServer.assertionType, let check = form["security_check"],
            let assertion = form["client_assertion"],
            let payload = assertion.split(separator: ".").dropFirst().first.flatMap({ Base64.decodeURL($0) }),
            let client = JSON.parse(payload)?["sub"]?.text
        else { throw Refusal(400, "INVALID_REQUEST", "a member is missing") }
        try verify(assertion, of: client, code: nil)
        state.withLock { $0.clients[client]?.passed[check] = nil }
        return Response(200)
    }
}
