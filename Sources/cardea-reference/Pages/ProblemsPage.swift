import DataPath

extension Reference {
    var problemsPage: (page: Page, about: String) {
        let problems = Fault.Kind.allCases.map { ($0, $0.outcome) }.sorted {
            ($0.1.status, $0.0.word) < ($1.1.status, $1.0.word)
        }
        var text = Markdown.head("Problems")
        text += """
            What a caller gets when Cardea cannot help: an `application/problem+json` body (RFC 9457) whose `type` is `urn:cardea:problems/` and the
            word below, with `title`, `status`, mostly `detail`, and `route`; and a `Proxy-Status` field (RFC 9209) where the request was to be
            forwarded. The same word is `fault` in the access record and the log, and the label `problem` of
            [`cardea_problems_total`](metrics.md#cardea_problems_total). An answer of ours never has a token, a body of an issuer, a path of a secret
            or an address inside.

            *Side* says whose fault it is: the caller's, the issuer's (also what the gateway needs to ask one), the upstream's, or the gateway's own.


            """
        text += Markdown.table(
            ["status", "problem", "side", "title"],
            problems.map { kind, outcome in
                [
                    "\(outcome.status)", "[\(Markdown.code(kind.word))](#\(kind.word))", Fault(kind).side.rawValue,
                    Markdown.plain(outcome.title),
                ]
            })
        for (kind, outcome) in problems {
            text += "\(Markdown.anchor(kind.word))\n## \(kind.word)\n\n"
            text += "*\(outcome.status), \(Fault(kind).side.rawValue).* \(Markdown.plain(kind.meaning))\n\n"
            text += "**What to do:** \(Markdown.plain(kind.advice))"
            if let incident = kind.incident { text += " See [incident](../how-to/incident.md#\(incident))." }
            text += "\n\n"
            var notes: [String] = []
            if let error = outcome.proxyError { notes.append("`Proxy-Status: …; error=\(error)`") }
            if outcome.closes { notes.append("the caller's connection is closed") }
            if !notes.isEmpty { text += "Also: \(notes.joined(separator: "; ")).\n\n" }
        }
        return (
            Page(name: "problems.md", text: text), "every answer of Cardea's own: status, what happened, what to do"
        )
    }
}
