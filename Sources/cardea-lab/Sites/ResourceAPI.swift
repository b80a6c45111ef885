/// The small HR API behind the gates. Paths are relative to the area they stand under, so every area serves the same
/// things.
struct ResourceAPI: Sendable {
    let ledger: Ledger
    let faults: Faults

    /// `rest` is the path below the area's prefix, beginning with `/`.
    func answer(_ rest: String, _ request: Request, _ connection: Connection) throws(WireFault) -> Response {
        if let fault = faults.take("early_answer", path: request.path) {
            var response = Response.json(200, ["early": true])
            if fault.number == 1 {
                connection.abandonBody()
                response.closes = true
            }
            return response
        }
        let keeping = 64 * 1024
        let body = try connection.readBody(keeping: keeping)
        let parts = rest.split(separator: "?")[0].split(separator: "/").map(String.init)
        let query = request.query
        func number(_ name: String, _ fallback: Int, atMost limit: Int) -> Int {
            min(max(Int(query[name] ?? "") ?? fallback, 0), limit)
        }
        switch parts.first {
        case "employees" where parts.count == 2 && request.method != "POST" && request.method != "PUT":
            guard let id = Int(parts[1]) else { return .json(404, "Not Found", ["error": "no such employee"]) }
            return .json(200, ["id": JSON(id), "name": .string("Employee \(id)"), "department": "Payroll"])
        case "headers":
            return .json(
                200,
                ["method": .string(request.method), "target": .string(request.target), "headers": headers(request)])
        case "slow":
            Moment.wait(milliseconds: number("ms", 1_000, atMost: 60_000)) { connection.peerIsGone }
            return .json(200, ["slow": true])
        case "stream":
            var response = Response(200, "OK", [("Content-Type", "application/octet-stream")])
            response.payload = .pattern(
                number("bytes", 1_024, atMost: 1 << 30), chunked: query["chunked"] == "1" || query["chunked"] == "yes")
            return response
        case "status":
            return status(number("code", 200, atMost: 599))
        case "redirect":
            return Response(302, "Found", [("Location", query["to"] ?? "http://\(request.host)/hr/rest/employees/1")])
        case "cookies":
            return .json(
                200, ["cookies": 4],
                [
                    ("Set-Cookie", "app=1; Path=/"), ("Set-Cookie", "ObSSOCookie=secret-looking; Path=/"),
                    ("Set-Cookie", "OAMRequestContext_lab=x; Path=/"), ("Set-Cookie", "theme=dark"),
                ])
        default:
            return .json(
                200,
                [
                    "method": .string(request.method), "length": JSON(body.length), "sha256": .string(body.sha256),
                    "framing": request.framing == .chunked ? "chunked" : request.framing == .none ? "none" : "length",
                    "trailers": .array(body.trailers.map { .string($0.name) }),
                ])
        }
    }

    private func status(_ code: Int) -> Response {
        guard code >= 200 else { return .json(400, "Bad Request", ["error": "interim status"]) }
        var response = Response(code, "Status", [("X-Lab", "status"), ("ETag", "\"lab\"")])
        if !response.hasNoBody { response.payload = .bytes(Array("status \(code)\n".utf8)) }
        return response
    }

    /// What arrived, in order; credentials only as their SHA-256.
    private func headers(_ request: Request) -> JSON {
        .array(
            request.fields.map { field in
                let hidden = ["authorization", "proxy-authorization", "x-api-key"].contains(field.name.lowercased())
                return [.string(field.name), .string(hidden ? "sha256:" + SHA256.hex(field.value) : field.value)]
            })
    }
}
