/// The issuer's address: the token service and the authorization server, and everything that can go wrong in front of
/// them.
struct IssuerSite: Sendable {
    let ledger: Ledger
    let faults: Faults
    let service: TokenService
    let server: OAuthServer
    let mobileFirst: MobileFirstServer
    let adobePass: AdobePassServer
    let oracle: OracleServer
    let mobileHub: MobileHubServer

    func answer(_ request: Request, _ connection: Connection) throws(WireFault) -> Response? {
        let body = try connection.readBody(keeping: 1_048_576)
        let path = request.path
        let operation = operation(path)
        if let path = operation {
            let operation = MobileFirstServer.step(path, body.bytes)
            ledger.count("issuer_calls")
            if let fault = faults.take("issuer_slow_ms", on: operation) {
                Moment.wait(milliseconds: fault.number ?? 1_000) { connection.peerIsGone }
            }
            if faults.take("issuer_hang", on: operation) != nil {
                ledger.count("issuer_hung")
                Moment.wait(milliseconds: 120_000) { connection.peerIsGone || !faults.isSet("issuer_hang") }
                return nil
            }
            if faults.take("issuer_close", on: operation) != nil { return nil }
            if faults.take("issuer_reset", on: operation) != nil {
                connection.resetOnClose()
                throw .gone
            }
            if faults.take("issuer_garbage", on: operation) != nil {
                try connection.send("\u{16}\u{3}\u{1}not http at all\r\n\r\n")
                return nil
            }
            if let wrong = wrongAnswer(operation) { return wrong }
        }
        switch operation {
        case "token": return server.token(request, body.bytes)
        case .some(let name) where OracleServer.operation(request.path) == name:
            return oracle.answer(name, request, body.bytes)
        case .some(let name) where name.hasPrefix("mfp_"): return mobileFirst.answer(name, request, body.bytes)
        case .some(let name) where name.hasPrefix("adobe_"): return adobePass.answer(name, request, body.bytes)
        case .some(let name) where name.hasPrefix("hub_"): return mobileHub.answer(name, request, body.bytes)
        case .some(let name): return service.answer(name, request, body.bytes)
        case nil: break
        }
        switch path {
        case "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server":
            return server.metadata(issuer: "http://" + request.host)
        case "/revoke": return server.revoke(request, body.bytes)
        default:
            ledger.count("issuer_unknown_path")
            return .json(404, "Not Found", ["message": "no such service", "oicErrorCode": "IDAAS-00001"])
        }
    }

    private func operation(_ path: String) -> String? {
        if path == "/token" { return "token" }
        if let name = MobileFirstServer.operation(path) ?? OracleServer.operation(path) { return name }
        if let name = AdobePassServer.operation(path) { return name }
        if let name = MobileHubServer.operation(path) { return name }
        guard path.hasPrefix(TokenService.root) else { return nil }
        let name = String(path.dropFirst(TokenService.root.count))
        return ["register", "authenticate", "access"].contains(name) ? name : nil
    }

    /// An answer that is not what was asked for. The operation is still counted as a call, since a request did arrive.
    private func wrongAnswer(_ operation: String) -> Response? {
        func counted(_ response: Response) -> Response {
            ledger.count(operation)
            return response
        }
        if let fault = faults.take("issuer_status", on: operation) {
            let status = fault.number ?? 503
            var response = Response.text(status, "Issuer Fault", "<html>internal-issuer-host</html>", type: "text/html")
            if let after = faults.take("issuer_retry_after", on: operation) {
                response = response.with("Retry-After", after.text ?? "\(after.number ?? 7)")
            }
            return counted(response)
        }
        if faults.take("issuer_redirect", on: operation) != nil {
            return counted(Response(302, "Found", [("Location", "http://127.0.0.1:1/elsewhere")]))
        }
        if faults.take("issuer_html", on: operation) != nil {
            return counted(.text(200, "OK", "<html><body>Please sign in</body></html>", type: "text/html"))
        }
        if faults.take("issuer_empty", on: operation) != nil {
            return counted(Response(200, "OK", [("Content-Type", "application/json")]))
        }
        if faults.take("issuer_empty_object", on: operation) != nil { return counted(.json(200, .object([]))) }
        if faults.take("issuer_crlf_token", on: operation) != nil {
            let token = "abc\r\nX-Injected: yes"
            return counted(
                .json(
                    200,
                    [
                        "X-Idaas-Rest-Token-Type": "ACCESSTOKEN", "X-Idaas-Rest-Token-Value": .string(token),
                        "access_token": .string(token), "token_type": "Bearer", "expires_in": 3600,
                    ]))
        }
        if let fault = faults.take("issuer_huge_json", on: operation) {
            var response = Response(200, "OK", [("Content-Type", "application/json")])
            response.payload = .pattern(fault.number ?? 32 << 20, chunked: true)
            return counted(response)
        }
        return nil
    }
}
