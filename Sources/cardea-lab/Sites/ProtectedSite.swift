/// Everything that stands behind a credential: two WebGates, a Bearer API, a Basic area and a static key area.
struct ProtectedSite: Sendable {
    let ledger: Ledger
    let faults: Faults
    let gate: WebGate
    let api: ResourceAPI
    let adobePass: AdobePassServer

    func answer(_ request: Request, _ connection: Connection) throws(WireFault) -> Response? {
        let path = request.path
        if path.hasPrefix("/hr/rest/open/") {
            return try api.answer(String(path.dropFirst("/hr/rest/open".count)), request, connection)
        }
        let url = "\(ledger.settings.scheme)://\(request.host)\(request.target)"
        if let name = gate.name(for: path) {
            return try enter(gate.judge(name: name, url: url, path: path, request), request, connection)
        }
        if path.hasPrefix(MobileFirstServer.adapters) { return try enter(adapter(request), request, connection) }
        if path.hasPrefix(ProtectedSite.hub + "/") { return try enter(mobile(request), request, connection) }
        if AdobePassServer.areas.contains(where: { path.hasPrefix($0) }) {
            return try enter(adobePass.admit(request), request, connection)
        }
        if path.hasPrefix("/api/") || path.hasPrefix("/bare/") {
            return try enter(bearer(request), request, connection)
        }
        if path.hasPrefix("/basic/") { return try enter(basic(request), request, connection) }
        if path.hasPrefix("/key/") { return try enter(key(request), request, connection) }
        _ = try connection.readBody()
        return .json(404, "Not Found", ["error": "no such area"])
    }

    /// Nothing behind a gate runs, and no body is digested, before the gate has agreed.
    private func enter(_ verdict: WebGate.Verdict, _ request: Request, _ connection: Connection) throws(WireFault)
        -> Response
    {
        switch verdict {
        case .refused(var response):
            ledger.count("api_\(response.status)")
            // A caller that asked first is answered without an invitation; its body then never comes, or must not be
            // waited for.
            if request.expectsContinue, connection.hasUnreadBody {
                connection.abandonBody()
                response.closes = true
            } else if faults.take("early_challenge", path: request.path) == nil {
                _ = try connection.readBody()
            }
            return response
        case .admitted(let fields):
            ledger.count("api_ok")
            var response = try api.answer(rest(of: request.path), request, connection)
            response.fields += fields
            return response
        }
    }

    private func rest(of path: String) -> String {
        if path.hasPrefix(MobileFirstServer.adapters) {
            return String(path.dropFirst(MobileFirstServer.adapters.count).drop { $0 != "/" })
        }
        if path.hasPrefix(ProtectedSite.hub + "/") {
            return String(path.dropFirst(ProtectedSite.hub.count + 1).drop { $0 != "/" })
        }
        for area in AdobePassServer.areas where path.hasPrefix(area) {
            return String(path.dropFirst(area.count).drop { $0 != "/" })
        }
        for prefix in ["/hr/rest", "/payroll/rest", "/api", "/bare", "/basic", "/key"]
        where path.hasPrefix(prefix + "/") {
            return String(path.dropFirst(prefix.count))
        }
        return path
    }
}

// MARK: - Areas other than the WebGate's

extension ProtectedSite {
    private func bearer(_ request: Request) -> WebGate.Verdict {
        func challenge(_ status: Int, _ reason: String, _ parameters: String) -> WebGate.Verdict {
            ledger.count("challenge")
            return .refused(
                .json(
                    status, reason, ["error": .string(reason)],
                    [("WWW-Authenticate", "Bearer realm=\"api\"" + parameters)]))
        }
        guard let value = request.single("Authorization") else {
            if !request.values("Authorization").isEmpty { ledger.refuse("bearer: several Authorization fields") }
            return challenge(401, "Unauthorized", "")
        }
        // Some resources of OAM 11g want the token and nothing before it.
        let prefix = request.path.hasPrefix("/bare/") ? "" : "bearer "
        guard value.lowercased().hasPrefix(prefix) else { return challenge(401, "Unauthorized", "") }
        let token = String(value.dropFirst(prefix.count))
        let known = ledger.withState { $0.bearerTokens[token] }
        guard let known, known.expires > Moment.now(), faults.take("reject_tokens", path: request.path) == nil else {
            return challenge(401, "Unauthorized", ", error=\"invalid_token\"")
        }
        let parts = request.path.split(separator: "/").map(String.init)
        let needed = parts.count > 2 && parts[1] == "scoped" ? parts[2] : nil
        let missing = needed.map { !known.scopes.contains($0) } ?? false
        if missing || faults.take("bearer_insufficient", path: request.path) != nil {
            return challenge(403, "Forbidden", ", error=\"insufficient_scope\", scope=\"\(needed ?? "admin")\"")
        }
        return .admitted([])
    }

    private func basic(_ request: Request) -> WebGate.Verdict {
        let refused = WebGate.Verdict.refused(
            .text(401, "Unauthorized", "a password is wanted\n").with(
                "WWW-Authenticate", "Basic realm=\"basic, area\", charset=\"UTF-8\""))
        guard let value = request.single("Authorization") else {
            ledger.count("challenge")
            return refused
        }
        guard value.lowercased().hasPrefix("basic "), let text = Base64.decodeText(String(value.dropFirst(6))),
            let colon = text.firstIndex(of: ":")
        else { return refused }
        let verdict = ledger.login(
            user: String(text[..<colon]), password: String(text[text.index(after: colon)...]),
            refused: faults.take("wrong_password", on: "basic") != nil)
        if verdict == .accepted, faults.take("reject_tokens", path: request.path) == nil { return .admitted([]) }
        return refused
    }

    private func key(_ request: Request) -> WebGate.Verdict {
        if request.single("X-Api-Key") == ledger.settings.apiKey,
            faults.take("reject_tokens", path: request.path) == nil
        {
            return .admitted([])
        }
        ledger.count("challenge")
        return .refused(
            .text(401, "Unauthorized", "a key is wanted\n").with("WWW-Authenticate", "ApiKey realm=\"key\""))
    }
}

extension Response {
    func with(_ name: String, _ value: String) -> Response {
        var copy = self
        copy.fields.append(Field(name: name, value: value))
        return copy
    }
}
