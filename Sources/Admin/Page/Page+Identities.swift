internal import Keeping

/// Identities and the lives of their tokens.
extension Page {
    func section(of identities: [IdentityFacts]) -> HTML {
        var room = Self.maximumTokens
        let articles = identities.prefix(Self.maximumIdentities).map { identity in
            defer { room -= min(room, Self.maximumTokensOfIdentity, identity.tokens.count) }
            return article(on: identity, tokens: min(room, Self.maximumTokensOfIdentity))
        }
        let none: HTML = "<p class=\"card quiet\">No identities: every route forwards without a credential.</p>\n"
        return """
            <section aria-labelledby="identities">
            <div class="title"><h2 id="identities">Identities</h2>\
            <span class="legend" aria-hidden="true"><i class="k past"></i>age <i class="k left"></i>until refresh \
            <i class="k ahead"></i>until expiry</span></div>
            \(identities.isEmpty ? none : nil)\(articles)\
            \(leftOut(identities.count - Self.maximumIdentities, "identities"))</section>

            """
    }

    private func article(on identity: IdentityFacts, tokens limit: Int) -> HTML {
        let (status, state) = (identity.status, identity.state)
        let shown = mostTelling(identity.tokens, limit: limit)
        var notes: [String] = []
        if let left = status.login?.expiresIn {
            notes.append(left == 0 ? "Its login has ended." : "Its login ends in \(spelled(left)).")
        }
        notes += status.facts.prefix(16).map { shortened("\($0.name): \($0.value)", to: 160) }
        // The class "troubled" is one of its own: the tone of an identity is that of its worst token and must not colour the bars of the
        // others.
        return """
            <article class="card identity\(state.tone == .bad ? " troubled" : "")">
            <div class="who"><h3>\(shortened(status.name, to: 80))</h3>\
            \(span("chip \(state.tone.rawValue)", state.rawValue))\
            \(span("scheme", shortened(status.scheme, to: 40)))</div>
            <div class="lives">
            \(identity.tokens.isEmpty ? quiet(absence(in: identity)) : nil)\
            \(shown.map { life(of: $0, saysState: identity.tokens.count > 1) })\(notes.map(quiet))\
            \(leftOut(identity.tokens.count - shown.count, "tokens"))\(failures(of: identity, shown))</div>
            <dl class="counts">\(count("granted", status.grants, .quiet))\
            \(count("failed", status.failures, .warn))\
            \(count("waiting", UInt64(max(identity.waiting, 0)), .busy))</dl>
            \(`operator` == .isSignedIn ? buttons(of: identity) : nil)</article>

            """
    }

    private func quiet(_ text: String) -> HTML { "<p class=\"quiet\">\(text)</p>" }

    /// Why there is no token. One that was restored may have been the identity's.
    private func absence(in identity: IdentityFacts) -> String {
        identity.state == .idle && identity.status.grants == 0 && facts.status.restoredTokens == 0
            ? "No token: nobody has asked for one yet." : "No token now."
    }

    private func count(_ name: String, _ value: UInt64, _ tone: IdentityState.Tone) -> HTML {
        "<div class=\"\(value == 0 ? "none" : tone.rawValue)\"><dt>\(name)</dt><dd>\(grouped(value))</dd></div>"
    }

    /// Once: an identity's last failure is that of one of its tokens.
    private func failures(of identity: IdentityFacts, _ shown: [TokenStatus]) -> [HTML] {
        var reasons: [(reason: String, ago: UInt64?)] = []
        let all =
            [(identity.status.lastFailure, identity.status.lastFailureAgo)]
            + shown.map { ($0.lastFailure, $0.lastFailureAgo) }
        for (reason, ago) in all {
            guard let reason, !reasons.contains(where: { $0.reason == reason }), reasons.count < 3 else { continue }
            reasons.append((reason, ago))
        }
        return reasons.map { reason, ago in
            """
            <p class="failure"><strong>Last failure\(ago.map { ", \(spelled($0)) ago" } ?? "")</strong> \(sentence(reason))</p>

            """
        }
    }

    // MARK: - A token's life

    /// - Parameter saysState: whether it has a state of its own to tell; an only token's is the identity's.
    private func life(of token: TokenStatus, saysState: Bool) -> HTML {
        let origin = shortened(Self.shortOrigin(token.upstream), to: 120)
        var details: [HTML] = []
        if let level = token.level { details.append(span("detail", "level \(level)")) }
        if !token.scopes.isEmpty { details.append(span("detail", shortened(token.scopes, to: 160))) }
        if !token.realm.isEmpty { details.append(span("quiet", origin)) }
        if let granted = token.granted { details.append(span("detail", "granted " + shortened(granted, to: 160))) }
        if let count = token.subjects {
            details.append(span("detail", "one per subject, \(grouped(UInt64(count))) in memory"))
        }
        if token.waiting > 0 { details.append(span("chip busy", "\(grouped(UInt64(token.waiting))) waiting")) }
        if saysState { details.append(span("state \(token.state.tone.rawValue)", token.state.rawValue)) }
        let times = Self.times(of: token)
        let picture = Life(token).map { bar(of: $0, tone: token.state.tone, label: times.joined(separator: ", ")) }
        return """
            <div class="token">
            <p class="key"><b>\(token.realm.isEmpty ? origin : shortened(token.realm, to: 80))</b>\(details)</p>
            \(picture)<p class="times">\(times.map { "<span>\($0)</span>" })</p>
            </div>

            """
    }

    static func times(of token: TokenStatus) -> [String] {
        guard token.subjects == nil else { return [] }
        guard let age = token.age else {
            if token.state == .acquiring { return ["its first token is on the way"] }
            guard let retryIn = token.retryIn, retryIn > 0 else { return ["no token now"] }
            return ["no token now", "next try in \(spelled(retryIn))"]
        }
        var times = ["\(spelled(age)) old"]
        guard let expiresIn = token.expiresIn else { return times + ["does not expire"] }
        if let refreshIn = token.refreshIn, expiresIn > 0 {
            times.append(refreshIn == 0 ? "refresh due" : "refresh in \(spelled(refreshIn))")
        }
        times.append(expiresIn == 0 ? "expired" : "expires in \(spelled(expiresIn))")
        if let retryIn = token.retryIn, retryIn > 0 { times.append("next try in \(spelled(retryIn))") }
        return times
    }

    /// An origin as people write it.
    static func shortOrigin(_ origin: String) -> String {
        var text = Substring(origin)
        if text.hasPrefix("https://") {
            text = text.dropFirst(8)
            if text.hasSuffix(":443") { text = text.dropLast(4) }
        } else if text.hasPrefix("http://"), text.hasSuffix(":80") {
            text = text.dropLast(3)
        }
        return String(text)
    }

    private func bar(of life: Life, tone: IdentityState.Tone, label: String) -> HTML {
        let renewal = max(life.now, life.refresh)
        return """
            <svg viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" class="bar \(tone.rawValue)" aria-label="\(label)">\
            \(segment("past", from: 0, to: life.now))\(segment("left", from: life.now, to: renewal))\
            \(segment("ahead", from: renewal, to: Life.length))\
            \(line("tick", at: life.refresh))\(line("now", at: life.now))</svg>

            """
    }

    private func segment(_ style: String, from start: Int, to end: Int) -> HTML? {
        end > start ? "<rect class=\"\(style)\" height=\"10\" x=\"\(start)\" width=\"\(end - start)\"/>" : nil
    }

    private func line(_ style: String, at x: Int) -> HTML? {
        x > 0 && x < Life.length ? "<path class=\"\(style)\" d=\"M\(x) 0v10\"/>" : nil
    }
}

/// A token's life in thousandths of its whole length.
struct Life: Equatable {
    static let length = 1000

    var now: Int
    /// Where its renewal begins; the end where none is planned.
    var refresh: Int

    /// nil when there is no token. One that never expires has its whole life before it.
    init?(_ token: TokenStatus) {
        guard let age = token.age else { return nil }
        guard let expiresIn = token.expiresIn else {
            now = 0
            refresh = Self.length
            return
        }
        // In Double: the sum of two hostile or merely enormous spans must not overflow.
        let whole = max(Double(age) + Double(expiresIn), 1)
        func position(_ at: Double) -> Int { Int(min(max(at / whole, 0), 1) * Double(Self.length)) }
        now = expiresIn == 0 ? Self.length : position(Double(age))
        // A refresh point that has passed lies at an unknown place before now.
        refresh = token.refreshIn.map { $0 == 0 ? 0 : position(Double(age) + Double($0)) } ?? Self.length
    }
}
