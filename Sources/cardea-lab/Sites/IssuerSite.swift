/// The issuer's address: every system that gives out tokens, and everything that can go wrong in front of them.
struct IssuerSite: Handler {
    let ledger: Ledger
    let systems: [any SimulatedSystem]
    let oauth: OAuthServer

    func answer(_ request: Request, _ connection: Connection) throws(WireFault) -> Response? {
        var request = request
        request.body = try connection.readBody(keeping: 1_048_576).bytes
        for system in systems {
            guard let operation = system.operation(request.path) else { continue }
            let step = system.step(operation, request)
            ledger.count("issuer_calls")
            guard try !fails(step, connection) else { return nil }
            return wrongAnswer(step) ?? system.answer(operation, request)
        }
        if let response = oauth.answerAside(request) { return response }
        ledger.count("issuer_unknown_path")
        return .json(["message": "no such service", "oicErrorCode": "IDAAS-00001"], 404)
    }

    /// True where the connection ends without an answer.
    private func fails(_ step: String, _ connection: Connection) throws(WireFault) -> Bool {
        let faults = ledger.faults
        if let fault = faults.take("issuer_slow_ms", on: step) {
            Moment.wait(milliseconds: fault.number ?? 1_000) { connection.peerIsGone }
        }
        if faults.take("issuer_hang", on: step) != nil {
            ledger.count("issuer_hung")
            Moment.wait(milliseconds: 120_000) { connection.peerIsGone || !faults.isSet("issuer_hang") }
            return true
        }
        if faults.take("issuer_close", on: step) != nil { return true }
        if faults.take("issuer_reset", on: step) != nil {
            connection.resetOnClose()
            throw .gone
        }
        guard faults.take("issuer_garbage", on: step) != nil else { return false }
        try connection.send("\u{16}\u{3}\u{1}not http at all\r\n\r\n")
        return true
    }

    /// An answer that is not what was asked for. It is still counted as a call, since a request did arrive.
    private func wrongAnswer(_ step: String) -> Response? {
        for (name, answer) in Self.wrongAnswers {
            guard let fault = ledger.faults.take(name, on: step) else { continue }
            ledger.count(step)
            guard name == "issuer_status", let after = ledger.faults.take("issuer_retry_after", on: step) else {
                return answer(fault)
            }
            return answer(fault).with("Retry-After", after.text ?? "\(after.number ?? 7)")
        }
        return nil
    }

    private static let wrongAnswers: [(name: String, answer: @Sendable (Faults.Fault) -> Response)] = [
        ("issuer_status", { .html("<html>internal-issuer-host</html>", $0.number ?? 503) }),
        ("issuer_redirect", { _ in .redirect(to: "http://127.0.0.1:1/elsewhere") }),
        ("issuer_html", { _ in .html("<html><body>Please sign in</body></html>") }),
        ("issuer_empty", { _ in Response(200).with("Content-Type", "application/json") }),
        ("issuer_empty_object", { _ in .json([:]) }),
        ("issuer_crlf_token", { _ in .json(injecting) }),
        ("issuer_huge_json", { .pattern($0.number ?? 32 << 20, chunked: true, type: "application/json") }),
    ]

    private static let injecting: JSON = [
        "X-Idaas-Rest-Token-Type": "ACCESSTOKEN", "X-Idaas-Rest-Token-Value": "abc\r\nX-Injected: yes",
        "access_token": "abc\r\nX-Injected: yes", "token_type": "Bearer", "expires_in": 3600,
    ]
}
