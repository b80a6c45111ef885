import Admin
import Gateway

/// The report that `explain` prints: the explanation, and the running gateway's part of it.
struct ExplainReport: Encodable {
    let method: String
    let url: String
    var explanation: Explanation
    /// The addresses that the running gateway has, where it checks them.
    var addresses: [StatusDocument.Address]?
    /// The outage that the running gateway sees, where no connection can be made.
    var outage: StatusDocument.Outage?
    /// The identity's state in the running gateway; nil where none answers.
    var identityState: StatusDocument.Identity?
    var tokens: [StatusDocument.Token]?
    var run: RunReport?

    private enum CodingKeys: CodingKey { case method, url, key, addresses, outage, identityState, tokens, run }

    /// Writes one object: the members of the explanation and those that are added here.
    func encode(to encoder: any Encoder) throws {
        try explanation.encode(to: encoder)
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(method, forKey: .method)
        try members.encode(url, forKey: .url)
        try members.encode(
            Dictionary(explanation.key.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first }),
            forKey: .key)
        try members.encodeIfPresent(addresses, forKey: .addresses)
        try members.encodeIfPresent(outage, forKey: .outage)
        try members.encodeIfPresent(identityState, forKey: .identityState)
        try members.encodeIfPresent(tokens, forKey: .tokens)
        try members.encodeIfPresent(run, forKey: .run)
    }
}

// MARK: - Text

extension ExplainReport {
    func text(tracing: Bool) -> String {
        var lines = ["\(method) \(url)"]
        func line(_ name: String, _ text: String) {
            lines.append(name + String(repeating: " ", count: max(1, 11 - name.count)) + text)
        }
        if let listener = explanation.listener { line("listener", listener) }
        for candidate in explanation.candidates {
            line(
                "route",
                candidate.route
                    + (candidate.mismatch.map { ": no, \($0)" }
                        ?? ": matches" + (explanation.routePlace.map { " (\($0))" } ?? "")))
        }
        if let upstreamURL = explanation.upstreamURL {
            line(
                "upstream",
                upstreamURL + (addresses.map { ", " + Self.words($0) } ?? "")
                    + (outage.map { ", cannot be reached for \(TokenTable.span($0.secondsAgo)): \($0.reason)" } ?? ""))
        }
        if let identity = explanation.identity, let scheme = explanation.scheme {
            line(
                "identity",
                "\(identity) (\(scheme))" + (explanation.account.map { ", \($0)" } ?? "")
                    + (explanation.isChallengeDriven ? ", by a challenge of the upstream" : ""))
        }
        if !explanation.key.isEmpty {
            line("key", explanation.key.map { "\($0.name) \($0.value)" }.joined(separator: ", "))
        }
        if let state = identityState {
            line(
                "state",
                state.state
                    + (state.loginExpiresInSeconds.map { ", its login ends in \(Int($0)) s" } ?? "")
                    + (state.loginAskedFor.map { ", an upstream asks for a login with \($0)" } ?? "")
                    + (state.lastFailure.map { ", last failure\(Self.ago(state.lastFailureSecondsAgo)): \($0)" } ?? "")
                    + (state.advice.map { "; \($0)" } ?? ""))
        }
        for token in tokens ?? [] { line("token", Self.words(token)) }
        if tokens?.isEmpty == true { line("token", "none yet") }
        for (index, effect) in explanation.injects.enumerated() { line(index == 0 ? "injects" : "", effect) }
        if let onRefusal = explanation.onRefusal, let first = onRefusal.statuses.first {
            let main = onRefusal.statuses.contains(401) ? 401 : first
            let others = Set(onRefusal.statuses).subtracting([main]).sorted().map { "\($0)" }
            line(
                "on \(main)",
                onRefusal.consequence + (others.isEmpty ? "" : "; also looked at: \(others.joined(separator: ", "))"))
        }
        if let issue = identityState?.lastIssue { line("last issue", Self.words(issue)) }
        if tracing, tokens != nil { lines += traced() }
        for note in explanation.notes { line("note", note) }
        return lines.joined(separator: "\n")
    }

    private static func words(_ addresses: [StatusDocument.Address]) -> String {
        let fit = addresses.count { $0.healthy }
        var words = "\(addresses.count) \(addresses.count == 1 ? "address" : "addresses"), \(fit) up"
        let failing = addresses.filter { $0.lastFailure != nil }
        for address in failing.prefix(shownAddresses) {
            words +=
                "; \(address.address): last failure\(ago(address.lastFailureSecondsAgo)): \(address.lastFailure ?? "")"
        }
        if failing.count > shownAddresses { words += "; \(failing.count - shownAddresses) more fail" }
        return words
    }

    /// In one line; `/status` has them all.
    private static let shownAddresses = 4

    private static func words(_ token: StatusDocument.Token) -> String {
        var words = [token.state]
        if !token.realm.isEmpty { words.append("realm \(token.realm)") }
        if !token.scopes.isEmpty { words.append("scopes \(token.scopes)") }
        if let granted = token.granted { words.append("granted \(granted)") }
        if let count = token.subjects { words.append("one per subject, \(count) in memory") }
        if let seconds = token.ageSeconds { words.append("\(TokenTable.span(seconds)) old") }
        if let seconds = token.retryInSeconds, seconds > 0 {
            words.append("next try in \(TokenTable.span(seconds))")
        } else if let seconds = token.refreshInSeconds, seconds > 0 {
            words.append("refresh in \(TokenTable.span(seconds))")
        }
        if let seconds = token.expiresInSeconds { words.append("expires in \(TokenTable.span(seconds))") }
        words.append(token.grants == 1 ? "1 grant" : "\(token.grants) grants")
        if let failure = token.lastFailure {
            words.append("last failure\(ago(token.lastFailureSecondsAgo)): \(failure)")
        }
        return words.joined(separator: ", ")
    }

    private static func ago(_ seconds: Double?) -> String { seconds.map { " \(TokenTable.span($0)) ago" } ?? "" }

    private static func words(_ issue: StatusDocument.Issue) -> String {
        var words = "\(TokenTable.span(issue.secondsAgo)) ago: \(issue.reason)"
        if issue.failures > 1 { words += ", \(issue.failures) failures" }
        return words + (issue.lastedSeconds.map { ", then good after \(TokenTable.span($0))" } ?? ", and not over")
    }

    private func traced() -> [String] {
        guard let run else { return ["last run   none since the start"] }
        var lines = ["last run   " + run.outcome]
        if !run.challenge.isEmpty { lines.append("           challenge: " + Self.words(run.challenge)) }
        for (index, step) in run.steps.enumerated() {
            let status = step.status.map { " \($0)" } ?? ""
            lines.append("  \(index + 1)  \(step.name) (\(step.layer))  \(step.request)")
            lines.append(
                "    \(status) \(step.milliseconds) ms  \(step.outcome)"
                    + (step.taken.isEmpty ? "" : ": " + Self.words(step.taken)))
        }
        return lines
    }

    private static func words(_ values: [RunReport.Value]) -> String {
        values.map { "\($0.name) (\($0.bytes) bytes)" }.joined(separator: ", ")
    }
}
