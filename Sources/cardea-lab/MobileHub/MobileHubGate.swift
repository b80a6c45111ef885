/// The APIs of a mobile backend, below `/mobile/custom/`, and its platform's page of the user. Each answer says in `X-Lab-Backend` which
/// backend was reached, and in `X-Lab-User` as whom.
extension ProtectedSite {
    static let hub = "/mobile/custom"

    func mobile(_ request: Request) -> WebGate.Verdict {
        func refused(_ status: Int, _ reason: String, _ code: String) -> WebGate.Verdict {
            .refused(
                .json(
                    status, reason,
                    [
                        "type": "about:blank", "title": .string(reason), "status": JSON(status),
                        "detail": "refused", "o:errorCode": .string(code), "o:errorPath": .string(request.path),
                        "o:ecid": "lab-ecid",
                    ]))
        }
        func admitted(_ backend: String, _ user: String) -> WebGate.Verdict {
            guard !request.path.hasPrefix("\(ProtectedSite.hub)/closed/") else {
                return refused(403, "Forbidden", "MOBILE-28416")
            }
            return .admitted([Field(name: "X-Lab-Backend", value: backend), Field(name: "X-Lab-User", value: user)])
        }
        guard let value = request.single("Authorization") else {
            ledger.count("challenge")
            return refused(401, "Unauthorized", "MOBILE-15202")
        }
        if value.hasPrefix("Bearer ") {
            let known = ledger.withState { $0.mobileTokens[String(value.dropFirst(7))] }
            guard let known, known.expires > Moment.now(), faults.take("reject_tokens", path: request.path) == nil
            else {
                ledger.count("challenge")
                return refused(401, "Unauthorized", "MOBILE-15203")
            }
            // Whatever backend the request names: the token leads to its own.
            return admitted(known.backend, known.user)
        }
        guard value.hasPrefix("Basic ") else { return refused(401, "Unauthorized", "MOBILE-15202") }
        let user: String
        if value.dropFirst(6) == MobileHubServer.anonymousKey(ledger.settings) {
            guard faults.take("reject_tokens", path: request.path) == nil else {
                ledger.count("challenge")
                return refused(401, "Unauthorized", "MOBILE-15203")
            }
            user = "anonymous"
        } else {
            guard let text = Base64.decodeText(String(value.dropFirst(6))), let colon = text.firstIndex(of: ":") else {
                return refused(401, "Unauthorized", "MOBILE-15202")
            }
            user = String(text[..<colon])
            let verdict = ledger.login(
                user: user, password: String(text[text.index(after: colon)...]),
                refused: faults.take("wrong_password", on: "basic") != nil)
            guard verdict == .accepted else { return refused(401, "Unauthorized", "MOBILE-15203") }
        }
        guard let backend = request.single(MobileHubServer.backendHeader) else {
            return refused(400, "Bad Request", "MOBILE-16001")
        }
        guard MobileHubServer.backends.contains(backend) else { return refused(403, "Forbidden", "MOBILE-16002") }
        return admitted(backend, user)
    }
}
