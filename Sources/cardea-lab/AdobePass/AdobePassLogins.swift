/// Logins at the provider: sessions with a code, the person's browser, and the profiles that come of it.
extension AdobePassServer {
    func session(_ device: Device, _ last: String, _ request: Request) throws(Refusal) -> Response {
        guard request.method == "POST" else { throw Refusal(405, "method_not_allowed", "none") }
        let form = try form(request, ["mvpd", "domainName", "redirectUrl"])
        guard form["mvpd"] == Self.mvpd else { throw Refusal(400, "invalid_parameter_mvpd", "none") }
        if last != "sessions", state.withLock({ $0.sessions[last] == nil }) {
            throw Refusal(400, "invalid_parameter_code", "none")
        }
        if profile(of: device) != nil {
            return .json([
                "actionName": "authorize", "actionType": "direct", "reasonType": "authenticated",
                "sessionId": "\(Random.text(bytes: 9))", "mvpd": "\(Self.mvpd)",
                "serviceProvider": "\(Self.serviceProvider)",
            ])
        }
        let code = last == "sessions" ? newCode() : last
        let life = Int64(faults.take("adobe_code_life_ms")?.number ?? 1_800_000)
        let ends = Moment.wall() + life
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
            return .json([
                "actionName": last == "sessions" ? "resume" : "retry", "actionType": "direct", "reasonType": "none",
                "missingParameters": ["domainName"], "code": "\(code)",
                "sessionId": "\(Random.text(bytes: 9))", "serviceProvider": "\(Self.serviceProvider)",
            ])
        }
        let path = "/api/v2/authenticate/\(Self.serviceProvider)/\(code)"
        let url =
            faults.take("adobe_url")?.text
            ?? (faults.isSet("adobe_absolute_url") ? "http://\(request.host)\(path)" : path)
        return .json([
            "actionName": "authenticate", "actionType": "interactive", "reasonType": "none", "url": "\(url)",
            "code": "\(code)", "sessionId": "\(Random.text(bytes: 9))", "mvpd": "\(Self.mvpd)",
            "serviceProvider": "\(Self.serviceProvider)", "notBefore": "\(Moment.wall())",
            "notAfter": "\(ends)",
        ])
    }

    func newCode() -> String {
        String((0..<7).map { _ in "ABCDEFGHJKLMNPQRSTUVWXYZ23456789".randomElement() ?? "A" })
    }

    /// The person's browser: the provider's page is passed at once, and the login is done.
    func browse(_ request: Request) throws(Refusal) -> Response {
        let code = request.path.split(separator: "/").last.map(String.init) ?? ""
        let redirect = state.withLock { state -> String? in
            guard let session = state.sessions[code], session.expires > Moment.wall() else { return nil }
            state.sessions[code]?.isDone = true
            return session.redirect
        }
        guard let redirect else {
            throw Refusal(.html("<html>no such code</html>", 400), "no such code")
        }
        logIn(code)
        return .redirect(to: redirect)
    }

    func logIn(_ code: String) {
        let life = Int64(faults.take("adobe_profile_life_ms")?.number ?? 2_592_000_000)
        state.withLock { state in
            guard let session = state.sessions[code] else { return }
            let now = Moment.wall()
            state.profiles[session.device] = Profile(begins: now, ends: now + life)
        }
        ledger.count("adobe_logins")
    }

    func poll(_ device: Device, _ code: String) throws(Refusal) -> Response {
        guard let session = state.withLock({ $0.sessions[code] }), session.device == device,
            session.expires > Moment.wall()
        else { throw Refusal(400, "invalid_authentication_session", "none") }
        guard session.isDone else { return .json(["profiles": [:]]) }
        return profiles(of: device)
    }

    func profile(of device: Device) -> Profile? {
        state.withLock { state in state.profiles[device].flatMap { $0.ends > Moment.wall() ? $0 : nil } }
    }

    func profiles(of device: Device) -> Response {
        guard let profile = profile(of: device) else { return .json(["profiles": [:]]) }
        let name = faults.take("adobe_other_mvpd")?.text ?? Self.mvpd
        let entry: JSON = [
            "notBefore": JSON(profile.begins), "notAfter": JSON(profile.ends), "issuer": "\(name)",
            "type": "regular",
            "attributes": [
                "userID": ["value": "\(ledger.mint(9))", "state": "plain"],
                "maxRating": ["value": "TV-14", "state": "plain"],
                "zip": ["value": "\(ledger.mint(60))", "state": "enc"],
            ],
        ]
        return .json(["profiles": .object([name: entry])])
    }

    func logOut(_ device: Device, _ request: Request) -> Response {
        let had = state.withLock { $0.profiles.removeValue(forKey: device) } != nil
        if faults.take("adobe_logout_redirect") != nil {
            return .redirect(to: "/logout-page")
        }
        let page = faults.isSet("adobe_absolute_url") ? "http://\(request.host)/bye" : "/bye"
        let entry: JSON =
            had
            ? ["actionName": "logout", "actionType": "interactive", "mvpd": "\(Self.mvpd)", "url": "\(page)"]
            : ["actionName": "invalid", "actionType": "none", "mvpd": "\(Self.mvpd)"]
        return .json(["logouts": .object([Self.mvpd: entry])])
    }

    // MARK: - Decisions

    func decide(
        _ operation: String, _ device: Device, _ request: Request
    ) throws(Refusal) -> Response {
        guard let members = request.members(["resources"]), case .array(let items)? = members["resources"],
            !items.isEmpty
        else { throw Refusal(400, "invalid_parameter_resources", "none") }
        let resources = items.compactMap(\.text)
        let isFinal = operation == "adobe_authorize"
        guard resources.count == items.count, resources.count <= (isFinal ? 1 : 5) else {
            throw Refusal(403, "too_many_resources", "configuration")
        }
        guard profile(of: device) != nil else {
            throw Refusal(403, "authenticated_profile_missing", "authentication")
        }
        if let fault = faults.take("adobe_error") { throw error(named: fault.text ?? "") }
        return .json(["decisions": .array(resources.map { decision($0, isFinal: isFinal) })])
    }

    private func error(named code: String) -> Refusal {
        switch code {
        case "authenticated_profile_invalidated", "authorization_denied_by_session_invalidated":
            Refusal(403, code, "authentication")
        case "too_many_resources": Refusal(403, code, "configuration")
        case "internal_server_error": Refusal(500, code, "none")
        default: Refusal(403, code, "none")
        }
    }

    private func decision(_ resource: String, isFinal: Bool) -> JSON {
        var members: [String: JSON] = [
            "resource": "\(resource)", "serviceProvider": "\(Self.serviceProvider)", "mvpd": "\(Self.mvpd)",
            "source": "mvpd", "authorized": false,
        ]
        if faults.take("adobe_inner_retry") != nil {
            members["error"] = enhanced(403, "retry", "maximum_execution_time_exceeded")
        } else if resource.contains("DENIED") {
            members["error"] = enhanced(403, "none", "\(isFinal ? "" : "pre")authorization_denied_by_mvpd")
        } else if resource.contains("INVALIDATED") {
            members["error"] = enhanced(403, "authentication", "authorization_denied_by_session_invalidated")
        } else {
            members["authorized"] = true
            let now = Moment.wall()
            if !faults.isSet("adobe_no_outer_times") {
                members["notBefore"] = JSON(now)
                members["notAfter"] = JSON(now + 86_400_000)
            }
            if isFinal { members["token"] = mediaToken(for: resource, at: now) }
        }
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
        ledger.keepSecret(text)
        return ["notBefore": JSON(now), "notAfter": JSON(ends), "serializedToken": "\(text)"]
    }
}
