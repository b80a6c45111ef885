/// The HR API with no gate of its own, for a web server that asks `/authorize_check` before it lets a request through.
struct PlainSite: Handler {
    let ledger: Ledger
    let gate: WebGate
    let api: ResourceAPI

    func answer(_ request: Request, _ connection: Connection) throws(WireFault) -> Response? {
        if request.path == "/authorize_check" {
            _ = try connection.readBody()
            return check(request)
        }
        for prefix in ["/hr/rest", "/payroll/rest"] where request.path.hasPrefix(prefix + "/") {
            return try api.answer(String(request.path.dropFirst(prefix.count)), request, connection)
        }
        return try api.answer(request.path, request, connection)
    }

    /// A subrequest of the kind nginx makes: the original address stands in `X-Original-Proto`, `-Host` and `-URI`.
    private func check(_ request: Request) -> Response {
        ledger.count("check")
        guard let target = request.single("X-Original-URI"), target.hasPrefix("/") else {
            ledger.refuse("authorize_check: no X-Original-URI")
            return .text("no X-Original-URI\n", 403)
        }
        let path = String(target.prefix { $0 != "?" })
        if path.hasPrefix(ResourceAPI.open) { return Response(200) }
        guard let name = gate.name(for: path) else { return .text("outside the gates\n", 403) }
        let scheme = request.single("X-Original-Proto") ?? "https"
        let url = "\(scheme)://\(request.single("X-Original-Host") ?? request.host)\(target)"
        switch gate.judge(name: name, url: url, path: path, request) {
        case .admitted(let fields):
            ledger.count("api_ok")
            var response = Response(200)
            response.fields = fields
            return response
        case .refused(let response):
            // auth_request knows only 2xx, 401 and 403; the redirect of a wrong user agent becomes the latter.
            ledger.count("api_\(response.status)")
            return response.status == 302 ? .text("user agent without the prefix\n", 403) : response
        }
    }
}
