/// The APIs of a mobile backend, below `/mobile/custom/`. Each answer says in `X-Lab-Backend` which backend was reached, and in
/// `X-Lab-User` as whom.
extension MobileHubServer {
    func admit(_ request: Request) -> Area.Verdict {
        let path = request.path
        func refused(_ status: Int, _ code: String, challenges: Bool = false) -> Area.Verdict {
            if challenges { ledger.count("challenge") }
            return .refused(
                .json(
                    [
                        "type": "about:blank", "title": "not authorized", "status": JSON(status), "detail": "refused",
                        "o:errorCode": "\(code)", "o:errorPath": "\(path)", "o:ecid": "lab-ecid",
                    ], status))
        }
        func admitted(_ backend: String, _ user: String) -> Area.Verdict {
            guard !path.hasPrefix("\(Self.custom)closed/") else { return refused(403, "MOBILE-28416") }
            return .admitted([Field(name: "X-Lab-Backend", value: backend), Field(name: "X-Lab-User", value: user)])
        }
        func isRejected() -> Bool { faults.take("reject_tokens", path: path) != nil }
        guard request.single("Authorization") != nil else { return refused(401, "MOBILE-15202", challenges: true) }
        if let token = request.credential("Bearer") {
            let known = state.withLock { $0.tokens[token] }
            guard let known, known.expires > Moment.now(), !isRejected() else {
                return refused(401, "MOBILE-15203", challenges: true)
            }
            // Whatever backend the request names: the token leads to its own.
            return admitted(known.backend, known.user)
        }
        guard let (name, password) = request.basic else { return refused(401, "MOBILE-15202") }
        let isAnonymous = request.credential("Basic") == Self.anonymousKey(ledger.settings)
        if isAnonymous {
            guard !isRejected() else { return refused(401, "MOBILE-15203", challenges: true) }
        } else {
            guard ledger.login(name, password, at: "basic") == .accepted else { return refused(401, "MOBILE-15203") }
        }
        guard let backend = request.single(Self.backendHeader) else { return refused(400, "MOBILE-16001") }
        guard Self.backends.contains(backend) else { return refused(403, "MOBILE-16002") }
        return admitted(backend, isAnonymous ? "anonymous" : name)
    }
}
