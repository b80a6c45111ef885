/// The resources of a MobileFirst server: adapters, each guarded by a scope. `/mfp/api/adapters/SCOPE/…` needs the scope of
/// that name, `any` none, and `private` refuses in the application's own words.
extension ProtectedSite {
    func adapter(_ request: Request) -> WebGate.Verdict {
        func refused(_ status: Int, _ reason: String, _ header: (String, String)?) -> WebGate.Verdict {
            .refused(.json(status, reason, ["errorCode": .string(reason)], header.map { [$0] } ?? []))
        }
        func challenged(_ status: Int, _ reason: String, _ value: String) -> WebGate.Verdict {
            ledger.count("challenge")
            return refused(status, reason, ("WWW-Authenticate", value))
        }
        let path = request.path
        if faults.take("mfp_plain_conflict", path: path) != nil { return refused(409, "Conflict", nil) }
        if faults.take("mfp_conflict", path: path, on: "adapter") != nil {
            ledger.count("mfp_conflicts")
            return refused(409, "Conflict", ("MFP-Conflict", "true"))
        }
        let name = path.dropFirst(MobileFirstServer.adapters.count).split(separator: "/").first.map(String.init) ?? ""
        if name == "private" { return refused(403, "not yours", nil) }
        guard let value = request.single("Authorization"), value.hasPrefix("Bearer ") else {
            if request.values("Authorization").count > 1 { ledger.refuse("adapter: several Authorization fields") }
            return challenged(401, "Unauthorized", "Bearer")
        }
        let known = ledger.withState { $0.bearerTokens[String(value.dropFirst("Bearer ".count))] }
        guard let known, known.expires > Moment.now(), faults.take("reject_tokens", path: path) == nil else {
            return challenged(401, "Unauthorized", "Bearer error=\"invalid_token\"")
        }
        guard name == "any" || known.scopes.contains(name) else {
            return challenged(
                403, "Forbidden", "Bearer error=\"insufficient_scope\", scope=\"RegisteredClient \(name)\"")
        }
        return .admitted([])
    }
}
