import Synchronization

/// Logins at the provider: sessions with a code, the person's browser, and the profiles that come of it.
extension AdobePassServer {
    func session(_ device: Device, _ last: String, _ request: Request, _ body: [UInt8]) throws(Refusal) -> Response {
        guard request.method == "POST" else { throw .enhanced(405, "none", "method_not_allowed") }
        let form = try form(request, body, ["mvpd", "domainName", "redirectUrl"])
        guard form["mvpd"] == Self.mvpd else { throw .enhanced(400, "none", "invalid_parameter_mvpd") }
        if last != "sessions", state.withLock({ $0.sessions[last] == nil }) {
            throw .enhanced(400, "none", "invalid_parameter_code")
        }
        if profile(of: device) != nil {
            return .json(
                200,
                [
                    "actionName": "authorize", "actionType": "direct", "reasonType": "authenticated",
                    "sessionId": .string(Random.text(bytes: 9)), "mvpd": .string(Self.mvpd),
                    "serviceProvider": .string(Self.serviceProvider),
                ])
        }
        let code = last == "sessions" ? newCode() : last
        let life = Int64(faults.take("adobe_code_life_ms")?.number ?? 1_800_000)
        let ends = Self.wall() + life
        state.withLock { state in
            // A newer code ends the one before.
            for (old, session) in state.sessions where session.device == device {
                if old != code { state.sessions[old] = nil }
            }
            state.sessions[code] = LoginSession(
                device: device, redirect: form["redirectUrl"] ?? "https://\(Self.domain)/", expires: ends)
        }
        let resumes = faults.take("adobe_resume") != nil
        if resumes || form["domainName"] != Self.domain || form["redirectUrl"] == nil {
            return .json(
                200,
                [
                    "actionName": last == "sessions" ? "resume" : "retry", "actionType": "direct", "reasonType": "none",
                    "missingParameters": ["domainName"], "code": .string(code),
                    "sessionId": .string(Random.text(bytes: 9)), "serviceProvider": .string(Self.serviceProvider),
                ])
        }
        let path = "/api/v2/authenticate/\(Self.serviceProvider)/\(code)"
        let url =
            faults.take("adobe_url")?.text
            ?? (faults.isSet("adobe_absolute_url") ? "http://\(request.host)\(path)" : path)
        return .json(
            200,
            [
                "actionName": "authenticate", "actionType": "interactive", "reasonType": "none", "url": .string(url),
                "code": .string(code), "sessionId": .string(Random.text(bytes: 9)), "mvpd": .string(Self.mvpd),
                "serviceProvider": .string(Self.serviceProvider), "notBefore": .string("\(Self.wall())"),
                "notAfter": .string("\(ends)"),
            ])
    }

    func newCode() -> String {
        var generator = SystemRandomNumberGenerator()
        return String((0..<7).map { _ in "ABCDEFGHJKLMNPQRSTUVWXYZ23456789".randomElement(using: &generator) ?? "A" })
    }

    /// The person's browser: the provider's page is passed at once, and the login is done.
    func browse(_ request: Request) throws(Refusal) -> Response {
        let code = request.path.split(separator: "/").last.map(String.init) ?? ""
        let redirect = state.withLock { state -> String? in
            guard let session = state.sessions[code], session.expires > Self.wall() else { return nil }
            state.sessions[code]?.isDone = true
            return session.redirect
        }
        guard let redirect else {
            throw .answer(.text(400, "Bad Request", "<html>no such code</html>", type: "text/html"), "no such code")
        }
        logIn(code)
        return Response(302, "Found", [("Location", redirect)])
    }

    func logIn(_ code: String) {
        let life = Int64(faults.take("adobe_profile_life_ms")?.number ?? 2_592_000_000)
        let type = faults.take("adobe_profile_type")?.text ?? "regular"
        state.withLock { state in
            guard let session = state.sessions[code] else { return }
            let now = Self.wall()
            state.profiles[session.device] = Profile(begins: now, ends: now + life, type: type)
        }
        ledger.count("adobe_logins")
    }

    func poll(_ device: Device, _ code: String) throws(Refusal) -> Response {
        guard let session = state.withLock({ $0.sessions[code] }), session.device == device,
            session.expires > Self.wall()
        else { throw .enhanced(400, "none", "invalid_authentication_session") }
        guard session.isDone else { return .json(200, ["profiles": [:]]) }
        return profiles(of: device)
    }

    func profile(of device: Device) -> Profile? {
        state.withLock { state in state.profiles[device].flatMap { $0.ends > Self.wall() ? $0 : nil } }
    }

    func profiles(of device: Device) -> Response {
        guard let profile = profile(of: device) else { return .json(200, ["profiles": [:]]) }
        let name = faults.take("adobe_other_mvpd")?.text ?? Self.mvpd
        let entry: JSON = [
            "notBefore": JSON(Int(profile.begins)), "notAfter": JSON(Int(profile.ends)), "issuer": .string(name),
            "type": .string(profile.type),
            "attributes": [
                "userID": ["value": .string(ledger.mint(9)), "state": "plain"],
                "maxRating": ["value": "TV-14", "state": "plain"],
                "zip": ["value": .string(ledger.mint(60)), "state": "enc"],
            ],
        ]
        return .json(200, ["profiles": .object([(name, entry)])])
    }

    func logOut(_ device: Device, _ request: Request) -> Response {
        let had = state.withLock { $0.profiles.removeValue(forKey: device) } != nil
        if faults.take("adobe_logout_redirect") != nil {
            return Response(302, "Found", [("Location", "/logout-page")])
        }
        let page = faults.isSet("adobe_absolute_url") ? "http://\(request.host)/bye" : "/bye"
        let entry: JSON =
            had
            ? ["actionName": "logout", "actionType": "interactive", "mvpd": .string(Self.mvpd), "url": .string(page)]
            : ["actionName": "invalid", "actionType": "none", "mvpd": .string(Self.mvpd)]
        return .json(200, ["logouts": .object([(Self.mvpd, entry)])])
    }

    // MARK: - Decisions

    func decide(
        _ operation: String, _ device: Device, _ request: Request, _ body: [UInt8]
    ) throws(Refusal) -> Response {
        guard request.method == "POST", request.single("Content-Type") == "application/json",
            let object = JSON.parse(body), case .object(let members) = object, members.count == 1,
            case .array(let items)? = object["resources"], !items.isEmpty
        else { throw .enhanced(400, "none", "invalid_parameter_resources") }
        let resources = items.compactMap(\.text)
        let isFinal = operation == "adobe_authorize"
        guard resources.count == items.count, resources.count <= (isFinal ? 1 : 5) else {
            throw .enhanced(403, "configuration", "too_many_resources")
        }
        guard profile(of: device) != nil else {
            throw .enhanced(403, "authentication", "authenticated_profile_missing")
        }
        if let fault = faults.take("adobe_error") { throw error(named: fault.text ?? "") }
        return .json(200, ["decisions": .array(resources.map { decision($0, isFinal: isFinal) })])
    }

    private func error(named code: String) -> Refusal {
        switch code {
        case "authenticated_profile_invalidated", "authorization_denied_by_session_invalidated":
            .enhanced(403, "authentication", code)
        case "too_many_resources": .enhanced(403, "configuration", code)
        case "internal_server_error": .enhanced(500, "none", code)
        default: .enhanced(403, "none", code)
        }
    }

    private func decision(_ resource: String, isFinal: Bool) -> JSON {
        let head: [(key: String, value: JSON)] = [
            ("resource", .string(resource)), ("serviceProvider", .string(Self.serviceProvider)),
            ("mvpd", .string(Self.mvpd)), ("source", "mvpd"),
        ]
        if faults.take("adobe_inner_retry") != nil {
            return .object(
                head + [("authorized", false), ("error", enhanced(403, "retry", "maximum_execution_time_exceeded"))])
        }
        if resource.contains("DENIED") {
            let code = isFinal ? "authorization_denied_by_mvpd" : "preauthorization_denied_by_mvpd"
            return .object(head + [("authorized", false), ("error", enhanced(403, "none", code))])
        }
        if resource.contains("INVALIDATED") {
            let code = "authorization_denied_by_session_invalidated"
            return .object(head + [("authorized", false), ("error", enhanced(403, "authentication", code))])
        }
        var members = head + [("authorized", true)]
        let now = Self.wall()
        if !faults.isSet("adobe_no_outer_times") {
            members += [("notBefore", JSON(Int(now))), ("notAfter", JSON(Int(now + 86_400_000)))]
        }
        if isFinal { members.append(("token", mediaToken(for: resource, at: now))) }
        return .object(members)
    }

    /// Base64 with everything in it that has to be encoded in a query.
    func mediaToken(for resource: String, at now: Int64) -> JSON {
        let text = Base64.encode(Array("signed:\(resource):\(Random.text(bytes: 150))??>>~~".utf8))
        let ends = now + 420_000
        state.withLock { state in
            if state.mediaTokens.count > 20_000 { state.mediaTokens.removeAll() }
            state.mediaTokens[text] = MediaToken(resource: resource, expires: ends)
        }
        ledger.withState { $0.secrets.insert(text, true) }
        return ["notBefore": JSON(Int(now)), "notAfter": JSON(Int(ends)), "serializedToken": .string(text)]
    }
}
