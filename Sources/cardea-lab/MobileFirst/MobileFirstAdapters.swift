/// The resources of a MobileFirst server: adapters, each guarded by a scope. `/mfp/api/adapters/SCOPE/…` needs the scope of
/// that name, `any` none, and `private` refuses in the application's own words.
extension MobileFirstServer {
    func adapter(_ request: Request) -> Area.Verdict {
        func refused(_ status: Int, _ code: String) -> Response { .json(["errorCode": "\(code)"], status) }
        func challenged(_ status: Int, _ value: String) -> Area.Verdict {
            ledger.count("challenge")
            return .refused(refused(status, "not authorized").with("WWW-Authenticate", value))
        }
        let path = request.path
        if faults.take("mfp_plain_conflict", path: path) != nil { return .refused(refused(409, "Conflict")) }
        if faults.take("mfp_conflict", path: path, on: "adapter") != nil { return .refused(conflict) }
        let name = path.split(separator: "/").dropFirst(3).first.map(String.init) ?? ""
        if name == "private" { return .refused(refused(403, "not yours")) }
        if request.values("Authorization").count > 1 { ledger.refuse("adapter: several Authorization fields") }
        guard let token = request.credential("Bearer") else { return challenged(401, "Bearer") }
        guard let scopes = ledger.scopes(of: token, for: request) else {
            return challenged(401, "Bearer error=\"invalid_token\"")
        }
        guard name == "any" || scopes.contains(name) else {
            return challenged(403, "Bearer error=\"insufficient_scope\", scope=\"RegisteredClient \(name)\"")
        }
        return .admitted([])
    }
}
