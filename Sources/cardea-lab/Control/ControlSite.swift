/// The test's side of the lab: what happened, what shall go wrong, what is withdrawn.
struct ControlSite: Handler {
    let ledger: Ledger
    let protected: Site
    let issuer: Site
    let systems: [any SimulatedSystem]

    func answer(_ request: Request, _ connection: Connection) throws(WireFault) -> Response? {
        let body = JSON.parse(try connection.readBody(keeping: 1_048_576).bytes) ?? .null
        do throws(Refusal) {
            let said = request.method == "GET" ? tell(request.path) : try act(request.path, body)
            return said.map { .json($0) } ?? .json(["error": "no such control"], 404)
        } catch {
            return .json(["error": "\(error.why)"], error.status)
        }
    }

    private func tell(_ path: String) -> JSON? {
        switch path {
        case "/counts": .object(ledger.withState { $0.counts }.mapValues { JSON($0) })
        case "/secrets": .array(ledger.withState { $0.secrets.keys }.map { "\($0)" })
        case "/refusals": .array(ledger.withState { $0.refusals }.map { "\($0)" })
        case "/requests": .array(ledger.withState { $0.recent }.map { "\($0)" })
        case "/faults": .object(Faults.known.mapValues { "\($0)" })
        case "/state":
            ledger.withState { state in
                [
                    "locked": .bool(state.locked), "failures": JSON(state.failures),
                    "handles": JSON(state.handles.count), "user_tokens": JSON(state.userTokens.count),
                    "access_tokens": JSON(state.accessTokens.count), "bearer_tokens": JSON(state.bearerTokens.count),
                    "protected_connections": JSON(protected.openConnections),
                    "issuer_connections": JSON(issuer.openConnections),
                ]
            }
        default: nil
        }
    }

    private func act(_ path: String, _ body: JSON) throws(Refusal) -> JSON? {
        switch path {
        case "/faults": try ledger.faults.set(body)
        case "/reset":
            let tokens = body["tokens"]?.isSet == true
            ledger.reset(tokens: tokens)
            for system in systems { system.reset(tokens: tokens) }
            if tokens { revoke() }
        case "/revoke": revoke()
        case "/revoke_user_tokens": ledger.withState { $0.userTokens.removeAll() }
        case "/revoke_handles": ledger.withState { $0.handles.removeAll() }
        case "/password": ledger.change(password: try body.need("password"))
        case "/close_idle": return ["closed": JSON(protected.closeIdle() + issuer.closeIdle())]
        case "/issuer/stop": issuer.stop()
        case "/issuer/start": try start(issuer)
        case "/protected/stop": protected.stop()
        case "/protected/start": try start(protected)
        default:
            for system in systems {
                if let said = try system.control(path, body) { return said }
            }
            return nil
        }
        return ["ok": true]
    }

    private func start(_ site: Site) throws(Refusal) {
        if let why = site.start() { throw Refusal(500, "", why) }
    }

    private func revoke() {
        ledger.revoke()
        for system in systems { system.revoke() }
    }
}

extension JSON {
    func need(_ name: String) throws(Refusal) -> String {
        guard let text = self[name]?.text else { throw Refusal(400, "", "\(name) is missing") }
        return text
    }
}
