import Admin
import FoundationEssentials
import Gateway
import Keeping

/// The report that `explain` prints.
struct ExplainReport: Encodable {
    struct Candidate: Encodable {
        var route: String
        var mismatch: String?
    }

    var method: String
    var url: String
    var listener: String?
    var candidates: [Candidate]
    var route: String?
    var routePlace: String?
    var upstreamURL: String?
    /// The addresses that the running gateway has, where it checks them.
    var addresses: [StatusDocument.Address]?
    /// The outage that the running gateway sees, where no connection can be made.
    var outage: StatusDocument.Outage?
    var identity: String?
    var scheme: String?
    var account: String?
    var challengeDriven: Bool
    var injects: [String]
    var onRefusal: Refusal?
    var key: [String: String]
    /// The identity's state in the running gateway; nil where none answers.
    var identityState: StatusDocument.Identity?
    var tokens: [StatusDocument.Token]?
    var run: RunDocument.Run?
    var notes: [String]

    struct Refusal: Encodable {
        var statuses: [Int]
        var consequence: String
    }

    private var keyOrder: [String]

    enum CodingKeys: String, CodingKey {
        case method, url, listener, candidates, route, routePlace = "route_place", upstreamURL = "upstream_url",
            addresses, outage
        case identity, scheme, account, injects, onRefusal = "on_refusal"
        case challengeDriven = "challenge_driven", key, identityState = "identity_state", tokens, run, notes
    }

    init(method: String, url: String, _ explanation: Explanation) {
        self.method = method
        self.url = url
        listener = explanation.listener
        candidates = explanation.candidates.map { Candidate(route: $0.route, mismatch: $0.mismatch) }
        route = explanation.route
        upstreamURL = explanation.upstreamURL
        identity = explanation.identity
        scheme = explanation.scheme
        routePlace = explanation.routePlace
        account = explanation.account
        injects = explanation.injects
        onRefusal = explanation.onRefusal.map { Refusal(statuses: $0.statuses, consequence: $0.consequence) }
        challengeDriven = explanation.isChallengeDriven
        key = Dictionary(explanation.key.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
        keyOrder = explanation.key.map(\.name)
        notes = explanation.notes
    }

    func json() -> String {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Strings, numbers and lists of them always have a JSON form.
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
    }
}

// MARK: - Text

extension ExplainReport {
    func text(tracing: Bool) -> String {
        var lines = ["\(method) \(url)"]
        func line(_ name: String, _ text: String) {
            lines.append(name + String(repeating: " ", count: max(1, 11 - name.count)) + text)
        }
        if let listener { line("listener", listener) }
        for candidate in candidates {
            line(
                "route",
                candidate.route
                    + (candidate.mismatch.map { ": no, \($0)" }
                        ?? ": matches" + (routePlace.map { " (\($0))" } ?? "")))
        }
        if let upstreamURL {
            line(
                "upstream",
                upstreamURL + (addresses.map { ", " + Self.words($0) } ?? "")
                    + (outage.map { ", cannot be reached for \(TokenTable.span($0.secondsAgo)): \($0.reason)" } ?? ""))
        }
        if let identity, let scheme {
            line(
                "identity",
                "\(identity) (\(scheme))" + (account.map { ", \($0)" } ?? "")
                    + (challengeDriven ? ", by a challenge of the upstream" : ""))
        }
        if !keyOrder.isEmpty { line("key", keyOrder.map { "\($0) \(key[$0] ?? "")" }.joined(separator: ", ")) }
        if let state = identityState {
            line(
                "state",
                state.state
                    + (state.loginExpiresInSeconds.map { ", its login ends in \(Int($0)) s" } ?? "")
                    + (state.lastFailure.map { ", last failure\(Self.ago(state.lastFailureSecondsAgo)): \($0)" } ?? "")
                    + (state.advice.map { "; \($0)" } ?? ""))
        }
        for token in tokens ?? [] { line("token", Self.words(token)) }
        if tokens?.isEmpty == true { line("token", "none yet") }
        for (index, effect) in injects.enumerated() { line(index == 0 ? "injects" : "", effect) }
        if let onRefusal, let first = onRefusal.statuses.first {
            let main = onRefusal.statuses.contains(401) ? 401 : first
            let others = Set(onRefusal.statuses).subtracting([main]).sorted().map { "\($0)" }
            line(
                "on \(main)",
                onRefusal.consequence + (others.isEmpty ? "" : "; also looked at: \(others.joined(separator: ", "))"))
        }
        if let issue = identityState?.lastIssue { line("last issue", Self.words(issue)) }
        if tracing, tokens != nil { lines += traced() }
        for note in notes { line("note", note) }
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

    private static func words(_ values: [RunDocument.Value]) -> String {
        values.map { "\($0.name) (\($0.bytes) bytes)" }.joined(separator: ", ")
    }
}
