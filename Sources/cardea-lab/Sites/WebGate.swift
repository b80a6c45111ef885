/// A WebGate with REST protection: the user agent's prefix decides between a redirect and an `OAM-Auth` challenge.
struct WebGate: Sendable {
    /// How long a request context can be exchanged.
    static let contextLife: UInt64 = 30_000

    let ledger: Ledger
    private var faults: Faults { ledger.faults }

    /// The gate that guards a path, if any.
    func name(for path: String) -> String? {
        if path.hasPrefix("/hr/") { return "HR_WG" }
        if path.hasPrefix("/payroll/") { return "Payroll_WG" }
        return nil
    }

    /// - Parameter url: the absolute URL as the gate sees it; a new context is bound to it.
    func judge(name: String, url: String, path: String, _ request: Request) -> Area.Verdict {
        let level = neededLevel(path)
        let agents = request.values("User-Agent")
        guard agents.count == 1, agents[0].hasPrefix(ledger.settings.userAgentPrefix) else {
            ledger.refuse("\(name): User-Agent does not begin with the prefix")
            return .refused(redirect(name, url))
        }
        func challenged(_ why: String? = nil) -> Area.Verdict {
            if let why { ledger.refuse("\(name): \(why)") }
            return .refused(challenge(name, level, url, path))
        }
        let credentials = request.values("Authorization")
        guard credentials.count <= 1 else { return challenged("\(credentials.count) Authorization fields") }
        guard !credentials.isEmpty else { return challenged() }
        guard let value = request.credential("OAM-Auth") else { return challenged("a credential of another scheme") }
        let token = ledger.withState { $0.accessTokens[value] }
        guard let token, token.gate == name, token.expires > Moment.now() else {
            return challenged("a token that is unknown, expired, revoked or of another gate")
        }
        guard token.level >= level else {
            ledger.count("step_up")
            return challenged()
        }
        if faults.take("reject_tokens", path: path) != nil { return challenged() }
        if path.contains("/forbidden") { return .refused(.text("the policy denies this\n", 403)) }
        let cookie =
            "OAMAuthnCookie_\(request.host)_\(Random.text(bytes: 6))=\(Random.text(bytes: 24)); path=/; HttpOnly"
        return .admitted([Field(name: "Set-Cookie", value: cookie)])
    }

    private func neededLevel(_ path: String) -> Int {
        if let fault = faults.take("step_up", path: path) { return fault.number ?? 3 }
        let parts = path.split(separator: "/")
        if let index = parts.firstIndex(of: "level"), index + 1 < parts.count, let level = Int(parts[index + 1]) {
            return level
        }
        return 2
    }
}

// MARK: - Refusals

extension WebGate {
    private func challenge(_ name: String, _ level: Int, _ url: String, _ path: String) -> Response {
        ledger.count("challenge")
        if faults.take("redirect", path: path) != nil { return redirect(name, url) }
        if faults.take("bare_401", path: path) != nil { return Self.refused(.text("no\n", 401)) }
        let page =
            "<html><title>401 Authorization Required</title><body>agent \(name) on internal-host-7</body></html>\n"
        var response = Self.refused(.html(page, 401))
        let basic = "Basic realm=\"x, y\""
        if faults.take("only_basic", path: path) != nil { return response.with("WWW-Authenticate", basic) }
        let realm = "realm=\"\(name):\(level) \(path)\""
        if faults.take("no_context", path: path) != nil {
            return response.with("WWW-Authenticate", "OAM-Auth " + realm)
        }
        let context = query(name)
        let record = Ledger.RequestContext(
            gate: name, level: level, url: url, expires: Moment.now() + WebGate.contextLife)
        ledger.withState {
            $0.contexts.insert(context, record)
            $0.secrets.insert(context, true)
        }
        let value = "OAM-Auth \(realm), request-ctx=\"\(context)\""
        if faults.take("two_challenges_one_line", path: path) != nil {
            return response.with("WWW-Authenticate", basic + ", " + value)
        }
        if faults.take("two_header_lines", path: path) != nil { response = response.with("WWW-Authenticate", basic) }
        return response.with("WWW-Authenticate", value)
    }

    private func redirect(_ name: String, _ url: String) -> Response {
        ledger.count("redirect_302")
        let server = "\(ledger.settings.scheme)://\(ledger.settings.loginHost)/oam/server"
        return .redirect(to: "\(server)/obrareq.cgi?\(query(name))")
    }

    private func query(_ name: String) -> String {
        "encquery%3D\(Random.text(bytes: 36, percentEncoded: true))%20agentid%3D\(name)%20ver%3D1%20crmethod%3D2"
    }

    private static func refused(_ response: Response) -> Response {
        var response = response
        response.reason = "Authorization Required"
        return response
    }
}
