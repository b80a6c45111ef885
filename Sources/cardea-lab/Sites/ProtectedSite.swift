/// Everything that stands behind a credential: two WebGates, a Bearer API, a Basic area, a static key area, and what the simulated
/// systems guard.
struct ProtectedSite: Handler {
    let ledger: Ledger
    let gate: WebGate
    let api: ResourceAPI
    let systems: [any SimulatedSystem]

    private var faults: Faults { ledger.faults }

    private var areas: [Area] {
        let gated = ["/hr/rest/", "/payroll/rest/", "/hr/", "/payroll/"].map { Area(prefix: $0, judge: pass) }
        return gated + systems.flatMap(\.areas) + [
            Area(prefix: "/api/", judge: bearer), Area(prefix: "/bare/", judge: bearer),
            Area(prefix: "/basic/", judge: basic), Area(prefix: "/key/", judge: key),
        ]
    }

    func answer(_ request: Request, _ connection: Connection) throws(WireFault) -> Response? {
        let path = request.path
        if path.hasPrefix(ResourceAPI.open) {
            return try api.answer(String(path.dropFirst(ResourceAPI.open.count - 1)), request, connection)
        }
        guard let area = areas.first(where: { path.hasPrefix($0.prefix) }) else {
            _ = try connection.readBody()
            return .json(["error": "no such area"], 404)
        }
        return try enter(area, request, connection)
    }

    /// Nothing behind a gate runs, and no body is digested, before the gate has agreed.
    private func enter(_ area: Area, _ request: Request, _ connection: Connection) throws(WireFault) -> Response {
        switch area.judge(request) {
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
            var response = try api.answer(area.rest(of: request.path), request, connection)
            response.fields += fields
            return response
        }
    }
}

// MARK: - Areas of its own

extension ProtectedSite {
    private func pass(_ request: Request) -> Area.Verdict {
        let url = "\(ledger.settings.scheme)://\(request.host)\(request.target)"
        return gate.judge(name: gate.name(for: request.path) ?? "", url: url, path: request.path, request)
    }

    private func bearer(_ request: Request) -> Area.Verdict {
        func challenge(_ status: Int, _ parameters: String) -> Area.Verdict {
            ledger.count("challenge")
            let response = Response.json(["error": "no token that is good for this"], status)
            return .refused(response.with("WWW-Authenticate", "Bearer realm=\"api\"" + parameters))
        }
        if request.values("Authorization").count > 1 { ledger.refuse("bearer: several Authorization fields") }
        // Some resources of OAM 11g want the token and nothing before it.
        let isBare = request.path.hasPrefix("/bare/")
        guard let token = isBare ? request.single("Authorization") : request.credential("Bearer") else {
            return challenge(401, "")
        }
        guard let scopes = ledger.scopes(of: token, for: request) else {
            return challenge(401, ", error=\"invalid_token\"")
        }
        let parts = request.path.split(separator: "/").map(String.init)
        if parts.count > 2, parts[1] == "scoped", !scopes.contains(parts[2]) {
            return challenge(403, ", error=\"insufficient_scope\", scope=\"\(parts[2])\"")
        }
        return .admitted([])
    }

    private func basic(_ request: Request) -> Area.Verdict {
        if request.values("Authorization").isEmpty { ledger.count("challenge") }
        if let (user, password) = request.basic, ledger.login(user, password, at: "basic") == .accepted,
            faults.take("reject_tokens", path: request.path) == nil
        {
            return .admitted([])
        }
        return .refused(
            .text("a password is wanted\n", 401)
                .with("WWW-Authenticate", "Basic realm=\"basic, area\", charset=\"UTF-8\""))
    }

    private func key(_ request: Request) -> Area.Verdict {
        if request.single("X-Api-Key") == ledger.settings.apiKey,
            faults.take("reject_tokens", path: request.path) == nil
        {
            return .admitted([])
        }
        ledger.count("challenge")
        return .refused(.text("a key is wanted\n", 401).with("WWW-Authenticate", "ApiKey realm=\"key\""))
    }
}
