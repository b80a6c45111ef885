import Admin

/// The report that `explain --last` prints: the failures that the gateway remembers, and the state of the identities that they had.
struct FailureText: Encodable {
    let failures: FailuresDocument
    /// Of the identities of these routes; empty where the gateway did not say.
    let identities: [StatusDocument.Identity]

    private enum CodingKeys: CodingKey { case identities }

    /// Writes one object: the members of the document and the identities.
    func encode(to encoder: any Encoder) throws {
        try failures.encode(to: encoder)
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(identities, forKey: .identities)
    }

    /// - Parameter route: the only route that was asked for; nil for all.
    func text(of route: String?) -> String {
        let since = "since \(failures.since), \(TokenTable.span(failures.sinceSeconds)) ago"
        guard !failures.routes.isEmpty else {
            return "no failed request\(route.map { " of route \($0)" } ?? "") \(since), when the gateway started"
        }
        var lines: [String] = []
        for route in failures.routes { lines += self.lines(of: route) + [""] }
        return lines.joined(separator: "\n")
            + "\nremembered \(since), when the gateway started; what was before is in its log"
    }

    private func lines(of route: FailuresDocument.Route) -> [String] {
        var lines = [route.route == "-" ? "requests that no route took" : "route \(route.route)"]
        if let identity = route.identity {
            lines[0] += ", identity \(identity)"
            if let state = identities.first(where: { $0.name == identity }) { lines[0] += ": " + Self.words(state) }
        }
        for kind in route.kinds { lines += [""] + Self.lines(of: kind) }
        return lines
    }

    private static func words(_ identity: StatusDocument.Identity) -> String {
        let failure = identity.lastFailure.map {
            ", last failure\(identity.lastFailureSecondsAgo.map { " \(TokenTable.span($0)) ago" } ?? ""): \($0)"
        }
        return identity.state + (failure ?? "") + (identity.advice.map { "; \($0)" } ?? "")
    }

    private static func lines(of kind: FailuresDocument.Kind) -> [String] {
        var head = [kind.status.map { "\($0)" }, kind.problem].compactMap { $0 }.joined(separator: " ")
        if let side = kind.incomplete { head += (head.isEmpty ? "" : ", ") + "cut by the \(side)" }
        if head.isEmpty { head = "no status" }
        let times =
            kind.count == 1
            ? "once, \(TokenTable.span(kind.lastSecondsAgo)) ago"
            : "\(kind.count) times, the last \(TokenTable.span(kind.lastSecondsAgo)) ago, the first \(TokenTable.span(kind.firstSecondsAgo)) ago"
        var lines = ["  \(head): \(times)", "    \(kind.title). \(kind.meaning)", "    do: \(kind.advice)"]
        if let read = kind.read { lines.append("    read: \(InstalledPages.place(of: read))") }
        return lines + kind.requests.map { "    " + words($0) }
    }

    private static func words(_ request: FailuresDocument.Request) -> String {
        var words = "\(request.time)  \(request.method ?? "another method")  \(milliseconds(request.seconds)) ms"
        let parts = [
            ("token", request.tokenSeconds), ("connection", request.connectSeconds),
            ("upstream", request.firstByteSeconds),
        ].filter { $0.1 > 0 }.map { "\($0.0) \(milliseconds($0.1))" }
        if !parts.isEmpty { words += " (\(parts.joined(separator: ", ")))" }
        if let upstream = request.upstream { words += "  at \(upstream)" }
        if request.replayed { words += "  sent twice" }
        return words
    }

    private static func milliseconds(_ seconds: Double) -> Int { Int((seconds * 1000).rounded()) }
}
