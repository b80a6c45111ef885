internal import Keeping

/// Identities, a line each; its tokens, failures and buttons are folded below it.
extension Page {
    /// - Parameter shown: those that were asked for, in the order in which they are shown.
    func section(of shown: [IdentityFacts]) -> HTML {
        var room = Self.maximumTokens
        let lines = shown.prefix(Self.maximumIdentities).enumerated().map { place, identity in
            defer { room -= min(room, Self.maximumTokensOfIdentity, identity.tokens.count) }
            let isOpen = unfolds(shown.count) || identity.state.tone == .bad && place < Self.maximumUnfolded
            return line(on: identity, isOpen: isOpen, tokens: min(room, Self.maximumTokensOfIdentity))
        }
        let none: HTML = "<p class=\"card quiet none\">No identities: every route forwards without a credential.</p>\n"
        return """
            <section aria-labelledby="identities">
            <div class="title"><h2 id="identities">Identities</h2>\
            <span class="legend" aria-hidden="true">last day <i class="k granted"></i>granted \
            <i class="k failed"></i>failed <i class="k replayed"></i>replayed</span></div>
            \(shown.isEmpty ? nothingFound("identity") ?? none : list(lines))\
            \(leftOut(shown.count - Self.maximumIdentities, "identities"))</section>

            """
    }

    private func line(on identity: IdentityFacts, isOpen: Bool, tokens limit: Int) -> HTML {
        let (status, state) = (identity.status, identity.state)
        let day = DayFacts(status.day, age: facts.age)
        let waiting = span("chip busy", "\(grouped(UInt64(max(identity.waiting, 0)))) waiting")
        return """
            <li><details class="line identity \(state.tone.rawValue)"\(isOpen ? " open" : nil)><summary>\
            <h3>\(shortened(status.name, to: 80))</h3>\(span("sub", shortened(status.scheme, to: 40)))\
            <span class="mood">\(span("chip \(state.tone.rawValue)", state.rawValue))\
            \(identity.waiting > 0 ? waiting : nil)</span>\
            \(span("next", identity.nextStep))\(strip(of: day))</summary>
            \(details(of: identity, day, tokens: limit))</details></li>

            """
    }

    private func details(of identity: IdentityFacts, _ day: DayFacts, tokens limit: Int) -> HTML {
        let status = identity.status
        let shown = mostTelling(identity.tokens, limit: limit)
        var notes: [String] = []
        if let left = status.login?.expiresIn {
            notes.append(left == 0 ? "Its login has ended." : "Its login ends in \(spelled(left)).")
        }
        notes += status.facts.prefix(16).map { shortened("\($0.name): \($0.value)", to: 160) }
        return """
            <div class="body">\(identity.command.map { callForPerson(identity, $0) })\
            \(identity.tokens.isEmpty ? quiet(absence(in: identity)) : nil)\
            \(shown.map { life(of: $0, saysState: identity.tokens.count > 1) })\(notes.map(quiet))\
            \(leftOut(identity.tokens.count - shown.count, "tokens"))\(failures(of: identity, shown))
            \(figure(of: day, identity))<dl class="counts">\(count("granted since the start", status.grants, .quiet))\
            \(count("failed since the start", status.failures, .warn))\
            \(count("waiting now", UInt64(max(identity.waiting, 0)), .busy))</dl>
            \(`operator` == .isSignedIn ? buttons(of: identity) : nil)</div>
            """
    }

    private func quiet(_ text: String) -> HTML { "<p class=\"quiet\">\(text)</p>" }

    /// What a person has to do.
    private func callForPerson(_ identity: IdentityFacts, _ command: String) -> HTML {
        let (need, advice) =
            switch identity.state {
            case .quarantined:
                ("is quarantined.", "Its credential is not sent again until the secret changes or this is run:")
            case .loginDue where identity.status.login?.asked != nil:
                ("needs a person to log in: an upstream asks for \(identity.status.login?.asked ?? "more").", "Run:")
            case .loginDue: ("soon needs a person to log in.", "Run:")
            default: ("needs a person to log in.", "Run:")
            }
        let ago = identity.status.lastFailureAgo.map { "That was \(spelled($0)) ago." }
        let words = [need, identity.status.lastFailure.map(sentence), ago, advice].compactMap(\.self)
            .joined(separator: " ")
        return """
            <p class="call \(identity.state.tone.rawValue)"><strong>\(shortened(identity.status.name, to: 80))</strong> \(words) \
            <code>\(shortened(command, to: 200))</code></p>

            """
    }

    /// Why there is no token. One that was restored may have been the identity's.
    private func absence(in identity: IdentityFacts) -> String {
        identity.state == .idle && identity.status.grants == 0 && facts.status.restoredTokens == 0
            ? "No token: nobody has asked for one yet." : "No token now."
    }

    private func count(_ name: String, _ value: UInt64, _ tone: IdentityState.Tone) -> HTML {
        "<div class=\"\(value == 0 ? "none" : tone.rawValue)\"><dt>\(name)</dt><dd>\(grouped(value))</dd></div>"
    }

    /// Once: an identity's last failure is that of one of its tokens, and stands before what a person has to do.
    private func failures(of identity: IdentityFacts, _ shown: [TokenStatus]) -> [HTML] {
        var reasons: [(reason: String, ago: UInt64?)] = []
        let all =
            [(identity.status.lastFailure, identity.status.lastFailureAgo)]
            + shown.map { ($0.lastFailure, $0.lastFailureAgo) }
        for (reason, ago) in all {
            guard let reason, !reasons.contains(where: { $0.reason == reason }), reasons.count < 3,
                identity.command == nil || reason != identity.status.lastFailure
            else { continue }
            reasons.append((reason, ago))
        }
        return reasons.map { reason, ago in
            """
            <p class="failure"><strong>Last failure\(ago.map { ", \(spelled($0)) ago" } ?? "")</strong> \(sentence(reason))</p>

            """
        }
    }
}

extension PageView {
    func finds(_ identity: IdentityFacts) -> Bool {
        finds(
            [
                identity.status.name, identity.status.scheme, identity.state.rawValue, identity.status.lastFailure,
            ]
                + identity.tokens.prefix(Page.maximumTokens).flatMap { [$0.upstream, $0.realm, $0.scopes] })
    }
}
