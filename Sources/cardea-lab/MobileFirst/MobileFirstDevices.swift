import FoundationEssentials
import Synchronization

// What devices do: register, be challenged, be given a code, log out.

// MARK: - Signed data

extension MobileFirstServer {
    static let assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

    /// Milliseconds since 1970 by this server's clock.
    private var clock: Double {
        Date().timeIntervalSince1970 * 1000 + Double(faults.take("mfp_clock_ms")?.number ?? 0)
    }

    private func decoded(_ part: some StringProtocol) -> [UInt8]? {
        guard part.utf8.allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "=") })
        else { return nil }
        var text = String(part.map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 })
        while text.utf8.count % 4 != 0 { text += "=" }
        return Data(base64Encoded: text).map { Array($0) }
    }

    /// Header and payload of a JWS whose signature is that of the key in its header.
    private func opened(
        _ header: String, _ payload: String, _ signature: String
    ) throws(Refusal) -> (header: JSON, payload: JSON, key: RSAPublicKey) {
        func fail(_ why: String) -> Refusal { .code(400, "INVALID_SIGNATURE", why) }
        guard let head = decoded(header).flatMap(JSON.parse), let load = decoded(payload).flatMap(JSON.parse),
            let seal = decoded(signature)
        else { throw fail("a part is no base64url, or no JSON") }
        guard head["alg"]?.text == "RS256", let jwk = head["jwk"], jwk["kty"]?.text == "RSA",
            jwk["e"]?.text == "AQAB", let modulus = jwk["n"]?.text.flatMap({ decoded($0) }),
            let key = RSAPublicKey(modulus: modulus)
        else { throw fail("header has no RS256 key of 2048 bits or more") }
        guard key.verifies(seal, of: "\(header).\(payload)") else { throw fail("the signature is wrong") }
        return (head, load, key)
    }

    /// A client assertion: with the code it goes with, or with null for calls that have none.
    func verify(_ assertion: String, of client: String, code: String?) throws(Refusal) {
        func fail(_ why: String) -> Refusal { .code(401, "INVALID_CLIENT_ASSERTION", why) }
        guard let device = state.withLock({ $0.clients[client] }) else {
            throw .code(400, "INVALID_CLIENT_ID", "unknown client")
        }
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
        guard case .number(let issued)? = claims["iat"], case .number(let expires)? = claims["exp"],
            abs(issued - now) < 120_000, expires > now, expires - issued <= 300_000
        else { throw fail("iat or exp, which are milliseconds by the server's clock") }
    }

    private func object(_ request: Request, _ body: [UInt8], _ names: Set<String>) throws(Refusal) -> JSON {
        guard request.method == "POST", !request.target.contains("?"),
            request.single("Content-Type")?.split(separator: ";").first?.lowercased() == "application/json",
            let members = JSON.parse(body), case .object(let all) = members, all.allSatisfy({ names.contains($0.key) })
        else { throw .code(400, "INVALID_REQUEST", "not a POST of a JSON object with the known members") }
        return members
    }

    /// The client is gone, if the test wants so.
    func forget(_ client: String, on step: String) throws(Refusal) {
        guard faults.take("mfp_invalid_client_id", on: step) != nil else { return }
        state.withLock { $0.clients[client] = nil }
        throw .code(400, "INVALID_CLIENT_ID", "the client was removed")
    }
}

// MARK: - Registration

extension MobileFirstServer {
    func register(_ request: Request, _ body: [UInt8]) throws(Refusal) -> Response {
        let members = try object(request, body, ["signedRegistrationData"])
        guard case .object(let parts)? = members["signedRegistrationData"], parts.count == 3,
            let header = members["signedRegistrationData"]?["header"]?.text,
            let payload = members["signedRegistrationData"]?["payload"]?.text,
            let signature = members["signedRegistrationData"]?["signature"]?.text
        else { throw .code(400, "INVALID_REQUEST", "signedRegistrationData has not its three parts") }
        let (head, load, key) = try opened(header, payload, signature)
        guard head["jwk"]?["kid"] == nil else { throw .code(400, "INVALID_REQUEST", "kid before there is one") }
        guard load["device"]?["id"]?.text?.isEmpty == false, load["device"]?["platform"]?.text != nil,
            load["device"]?["hardware"]?.text != nil, let platform = load["application"]?["clientPlatform"]?.text
        else { throw .code(400, "INVALID_REQUEST", "device or application is not complete") }
        guard load["application"]?["id"]?.text == MobileFirstServer.application else {
            throw .code(403, "UNKNOWN_APPLICATION", "the application is not registered")
        }
        let version = load["application"]?["version"]?.text
        guard (platform == "web") == (version == nil) else {
            throw .code(400, "INVALID_REQUEST", "the web has no version, everything else has one")
        }
        if faults.take("mfp_authenticity") != nil {
            throw .answer(
                .json(401, "Unauthorized", ["challenges": ["appAuthenticity": ["data": "1,2,3"]]], Self.challenge),
                "appAuthenticity")
        }
        let id = "client-" + Random.text(bytes: 9)
        let issuer = ([MobileFirstServer.application, platform] + (version.map { [$0] } ?? [])).joined(separator: "$")
        let modulus = head["jwk"]?["n"]?.text ?? ""
        state.withLock {
            $0.clients[id] = Device(key: key, modulus: modulus, issuer: issuer)
            $0.registered += 1
        }
        let place =
            faults.take("mfp_foreign_location") == nil
            ? "/mfp/api/registration/clients/\(id)" : "http://127.0.0.1:1/clients/\(id)"
        return Response(201, "Created", [("Location", place)])
    }

    static let challenge = [("WWW-Authenticate", "MFP-Challenge")]
}

// MARK: - Preauthorization

extension MobileFirstServer {
    private struct Judgement: Sendable {
        var failures: [(key: String, value: JSON)] = []
        var challenges: [(key: String, value: JSON)] = []
        var successes: [(key: String, value: JSON)] = []
    }

    func preauthorize(_ request: Request, _ body: [UInt8]) throws(Refusal) -> Response {
        let members = try object(request, body, ["client_id", "scope", "challengeResponse"])
        guard let id = members["client_id"]?.text, let scope = members["scope"]?.text else {
            throw .code(400, "INVALID_REQUEST", "client_id or scope is missing")
        }
        try forget(id, on: "preauthorize")
        guard var device = state.withLock({ $0.clients[id] }) else {
            throw .code(400, "INVALID_CLIENT_ID", "unknown client")
        }
        var answers: [(key: String, value: JSON)] = []
        if let response = members["challengeResponse"] {
            guard case .object(let all) = response, !all.isEmpty else {
                throw .code(400, "INVALID_REQUEST", "challengeResponse is empty")
            }
            answers = all
            ledger.count("mfp_answers")
        }
        let conflict = faults.take("mfp_conflict", on: answers.isEmpty ? "mfp_preauthorize" : "mfp_answer")
        if let conflict, conflict.number != 1 { throw .answer(self.conflict, "conflict") }
        let judgement = try judge(scope, answers, of: &device)
        let changed = device
        state.withLock { $0.clients[id] = changed }
        if conflict != nil { throw .answer(self.conflict, "conflict after judging") }
        var parts: [(key: String, value: JSON)] = []
        if !judgement.successes.isEmpty { parts.append(("successes", .object(judgement.successes))) }
        if !judgement.failures.isEmpty {
            parts.append(("failures", .object(judgement.failures)))
            let status = faults.take("mfp_failures")?.number ?? 403
            throw .answer(.json(status == 222 ? 222 : 403, "Forbidden", .object(parts)), "failures")
        }
        guard judgement.challenges.isEmpty else {
            parts.append(("challenges", .object(judgement.challenges)))
            ledger.count("mfp_challenges")
            return .json(401, "Unauthorized", .object(parts), Self.challenge)
        }
        return .json(200, .object(parts))
    }

    private func judge(
        _ scope: String, _ answers: [(key: String, value: JSON)], of device: inout Device
    ) throws(Refusal) -> Judgement {
        var result = Judgement()
        result.successes.append(("clockSynchronization", ["serverTimeStamp": .number(clock.rounded())]))
        let now = Moment.now()
        var wanted: [String] = []
        for name in scope.split(separator: " ").sorted() {
            guard let checks = MobileFirstServer.checks[String(name)] else {
                throw .code(400, "INVALID_SCOPE", "unknown scope")
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
            for check in before {
                result.failures.append((check, ["failure": .string("account blocked \(ledger.mint(12))")]))
            }
            return result
        }
        for (check, value) in answers {
            guard before.contains(check) else {
                throw .code(400, "INVALID_REQUEST", "an answer to a check that did not ask")
            }
            ledger.count("mfp_judged_\(check)")
            if passes(check, value) {
                let life = UInt64(max(0, faults.take("mfp_success_ms")?.number ?? 3_600_000))
                device.passed[check] = faults.isSet("mfp_endless") ? 0 : now + life
                if check == "PinCodeAttempts" { device.attemptsLeft = 3 }
                result.successes.append((check, ["user": ["id": "svc-teller"]]))
                continue
            }
            ledger.count("mfp_wrong_\(check)")
            device.hasFailed = true
            if check == "PinCodeAttempts" { device.attemptsLeft -= 1 }
        }
        for check in pending(device) {
            if check == "PinCodeAttempts", device.attemptsLeft <= 0 {
                result.failures.append((check, ["failure": .string("account blocked \(ledger.mint(12))")]))
            } else {
                result.challenges.append((check, challenge(check, device)))
            }
        }
        return result
    }

    private func passes(_ check: String, _ value: JSON) -> Bool {
        guard case .object(let fields) = value else { return false }
        func has(_ wanted: [String: String]) -> Bool {
            fields.count == wanted.count && wanted.allSatisfy { value[$0.key]?.text == $0.value }
        }
        return switch check {
        case "PinCodeAttempts": has(["pin": state.withLock { $0.pin }])
        case "UserLogin":
            has(["username": ledger.settings.user, "password": ledger.withState { $0.password }])
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
                left = fault.text.map { .string($0) } ?? JSON(fault.number ?? 0)
            }
            return ["errorMsg": showsHint ? .string(hint) : .null, "remainingAttempts": left]
        case "UserLogin": return ["errorMsg": .null, "remainingAttempts": .string("3")]
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
        else { throw .code(400, "INVALID_REQUEST", "response_type, client_id, redirect_uri and scope are wanted") }
        try forget(id, on: "authorization")
        guard let device = state.withLock({ $0.clients[id] }) else {
            throw .code(400, "INVALID_CLIENT_ID", "unknown client")
        }
        let isWeb = device.issuer.hasSuffix("$web")
        let wanted =
            isWeb
            ? "http://\(request.host)/mfp/api/az/v1/authorization/redirect/\(id)" : "https://mfpredirecturi"
        guard redirect == wanted else { throw .code(400, "INVALID_REQUEST", "redirect_uri is not the platform's") }
        let scopes = Set(scope.split(separator: " ").map(String.init))
        let checks = scopes.flatMap { MobileFirstServer.checks[$0] ?? [] }
        let isOpen = checks.allSatisfy { (device.passed[$0] ?? 0) > Moment.now() }
        if !isOpen || faults.take("mfp_redirect_error") != nil {
            return Response(302, "Found", [("Location", redirect + "?error=access_denied")])
        }
        let code = ledger.mint(18)
        state.withLock { $0.codes[code] = Code(client: id, scope: scopes, redirect: redirect) }
        if faults.take("mfp_code_json") != nil { return .json(200, ["code": .string(code)]) }
        let place = faults.take("mfp_redirect_elsewhere") == nil ? redirect : "http://127.0.0.1:1/redirect"
        return Response(302, "Found", [("Location", "\(place)?code=\(code)")])
    }

    func logout(_ request: Request, _ body: [UInt8]) throws(Refusal) -> Response {
        let form = try form(request, body, ["security_check", "client_assertion_type", "client_assertion"])
        guard form["client_assertion_type"] == MobileFirstServer.assertionType, let check = form["security_check"],
            let assertion = form["client_assertion"],
            let payload = assertion.split(separator: ".").dropFirst().first.flatMap({ decoded($0) }),
            let client = JSON.parse(payload)?["sub"]?.text
        else { throw .code(400, "INVALID_REQUEST", "a member is missing") }
        try verify(assertion, of: client, code: nil)
        state.withLock { $0.clients[client]?.passed[check] = nil }
        return Response(200, "OK")
    }
}
