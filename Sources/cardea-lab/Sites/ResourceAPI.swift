/// The small HR API behind the gates. Paths are relative to the area they stand under, so every area serves the same
/// things.
struct ResourceAPI: Sendable {
    /// Everybody may enter here.
    static let open = "/hr/rest/open/"

    let ledger: Ledger

    /// `rest` is the path below the area's prefix, beginning with `/`.
    func answer(_ rest: String, _ request: Request, _ connection: Connection) throws(WireFault) -> Response {
        if let fault = ledger.faults.take("early_answer", path: request.path) {
            var response = Response.json(["early": true])
            if fault.number == 1 {
                connection.abandonBody()
                response.closes = true
            }
            return response
        }
        let body = try connection.readBody(keeping: 64 * 1024)
        let parts = rest.split(separator: "/").map(String.init)
        let query = request.query
        func number(_ name: String, _ fallback: Int, atMost limit: Int) -> Int {
            min(max(query[name].flatMap { Int($0) } ?? fallback, 0), limit)
        }
        switch parts.first {
        case "employees" where parts.count == 2 && request.method != "POST" && request.method != "PUT":
            guard let id = Int(parts[1]) else { return .json(["error": "no such employee"], 404) }
            return .json(["id": JSON(id), "name": "Employee \(id)", "department": "Payroll"])
        case "headers":
            return .json(["method": "\(request.method)", "target": "\(request.target)", "headers": headers(request)])
        case "slow":
            Moment.wait(milliseconds: number("ms", 1_000, atMost: 60_000)) { connection.peerIsGone }
            return .json(["slow": true])
        case "stream":
            return .pattern(
                number("bytes", 1_024, atMost: 1 << 30), chunked: ["1", "yes"].contains(query["chunked"]),
                type: "application/octet-stream")
        case "status": return status(number("code", 200, atMost: 599))
        case "redirect": return .redirect(to: query["to"] ?? "http://\(request.host)/hr/rest/employees/1")
        case "cookies":
            var response = Response.json(["cookies": 4])
            for cookie in [
                "app=1; Path=/", "ObSSOCookie=secret-looking; Path=/", "OAMRequestContext_lab=x; Path=/", "theme=dark",
            ] {
                response = response.with("Set-Cookie", cookie)
            }
            return response
        default:
            let framing: JSON =
                switch request.framing {
                case .none: "none"
                case .length: "length"
                case .chunked: "chunked"
                }
            return .json([
                "method": "\(request.method)", "length": JSON(body.length), "sha256": "\(body.sha256.hex)",
                "framing": framing, "trailers": .array(body.trailers.map { "\($0.name)" }),
            ])
        }
    }

    private func status(_ code: Int) -> Response {
        guard code >= 200 else { return .json(["error": "interim status"], 400) }
        var response = Response(code).with("X-Lab", "status").with("ETag", "\"lab\"")
        if !response.hasNoBody { response.payload = .bytes(Array("status \(code)\n".utf8)) }
        return response
    }

    /// The received headers, in order; credentials only as their SHA-256.
    private func headers(_ request: Request) -> JSON {
        .array(
            request.fields.map { field in
                let hidden = ["authorization", "proxy-authorization", "x-api-key"].contains(field.name.lowercased())
                return ["\(field.name)", .string(hidden ? "sha256:" + SHA256.digest(field.value).hex : field.value)]
            })
    }
}
