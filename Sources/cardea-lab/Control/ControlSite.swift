import Glibc

/// The test's side of the lab: what happened, what shall go wrong, what is withdrawn.
struct ControlSite: Sendable {
    let ledger: Ledger
    let faults: Faults
    let protected: Site
    let issuer: Site
    let mobileFirst: MobileFirstServer
    let adobePass: AdobePassServer
    let oracle: OracleServer
    let mobileHub: MobileHubServer

    func answer(_ request: Request, _ connection: Connection) throws(WireFault) -> Response? {
        let body = try connection.readBody(keeping: 1_048_576)
        switch (request.method, request.path) {
        case ("GET", "/counts"):
            let counts = ledger.withState { $0.counts }
            return .json(200, .object(counts.sorted { $0.key < $1.key }.map { ($0.key, JSON($0.value)) }))
        case ("GET", "/secrets"): return list(ledger.withState { $0.secrets.keys })
        case ("GET", "/refusals"): return list(ledger.withState { $0.refusals })
        case ("GET", "/requests"): return list(ledger.withState { $0.recent })
        case ("GET", "/state"): return state()
        case ("GET", "/faults"):
            return .json(200, .object(Faults.known.sorted { $0.key < $1.key }.map { ($0.key, .string($0.value)) }))
        case ("POST", "/faults"):
            guard let changes = JSON.parse(body.bytes) else { return .json(400, "Bad Request", ["error": "not JSON"]) }
            if let mistake = faults.set(changes) { return .json(400, "Bad Request", ["error": .string(mistake)]) }
            return .json(200, ["ok": true])
        case ("POST", let path): return act(path, JSON.parse(body.bytes))
        default: return .json(404, "Not Found", ["error": "no such control"])
        }
    }

    private func list(_ values: [String]) -> Response { .json(200, .array(values.map { .string($0) })) }

    private func state() -> Response {
        let open = (protected: protected.openConnections, issuer: issuer.openConnections)
        return ledger.withState { state in
            .json(
                200,
                [
                    "locked": .bool(state.locked), "failures": JSON(state.failures),
                    "handles": JSON(state.handles.count),
                    "user_tokens": JSON(state.userTokens.count), "access_tokens": JSON(state.accessTokens.count),
                    "bearer_tokens": JSON(state.bearerTokens.count), "protected_connections": JSON(open.protected),
                    "issuer_connections": JSON(open.issuer),
                ])
        }
    }

    private func act(_ path: String, _ body: JSON?) -> Response {
        switch path {
        case "/reset":
            faults.clear()
            ledger.withState {
                $0.counts.removeAll()
                $0.refusals.removeAll()
                $0.recent.removeAll()
                $0.failures = 0
                $0.locked = false
                $0.password = ledger.settings.password
            }
            oracle.reset(all: body?["tokens"]?.isSet == true)
            mobileFirst.reset(clients: body?["tokens"]?.isSet == true)
            if body?["tokens"]?.isSet == true { adobePass.reset() }
            if body?["tokens"]?.isSet == true { forgetTokens(handles: true, users: true) }
        case "/revoke": forgetTokens(handles: false, users: false)
        case "/revoke_user_tokens": ledger.withState { $0.userTokens.removeAll() }
        case "/revoke_handles": ledger.withState { $0.handles.removeAll() }
        case "/password":
            guard let password = body?["password"]?.text else {
                return .json(400, "Bad Request", ["error": "password is missing"])
            }
            ledger.withState {
                $0.password = password
                $0.secrets.insert(password, true)
            }
        case "/pin":
            guard let pin = body?["pin"]?.text else { return .json(400, "Bad Request", ["error": "pin is missing"]) }
            mobileFirst.change(pin: pin)
        case "/adobe/expire_access_tokens": adobePass.expireAccessTokens()
        case "/adobe/end_logins": adobePass.endLogins()
        case "/oracle/key":
            if let why = oracle.learn(key: body) { return .json(400, "Bad Request", ["error": .string(why)]) }
        case "/oracle/thumbprint": oracle.learn(thumbprint: body?["x5t"]?.text)
        case "/oracle/forget_users": oracle.forgetSession()
        case "/oracle/forget_clients": oracle.forgetClients(renewals: body?["renewals"]?.isSet == true)
        case "/hub/third_party": return .json(200, ["token": .string(mobileHub.mintThirdParty(body))])
        case "/mfp/forget": mobileFirst.forgetPassedChecks()
        case "/close_idle": return .json(200, ["closed": JSON(protected.closeIdle() + issuer.closeIdle())])
        case "/issuer/stop": issuer.stop()
        case "/issuer/start": return started(issuer)
        case "/protected/stop": protected.stop()
        case "/protected/start": return started(protected)
        default: return .json(404, "Not Found", ["error": "no such control"])
        }
        return .json(200, ["ok": true])
    }

    private func started(_ site: Site) -> Response {
        if let why = site.start() { return .json(500, "Internal Server Error", ["error": .string(why)]) }
        return .json(200, ["ok": true])
    }

    private func forgetTokens(handles: Bool, users: Bool) {
        ledger.withState {
            $0.accessTokens.removeAll()
            $0.bearerTokens.removeAll()
            $0.mobileTokens.removeAll()
            if users { $0.userTokens.removeAll() }
            if handles { $0.handles.removeAll() }
        }
    }
}
