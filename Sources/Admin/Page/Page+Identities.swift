internal import Gateway
internal import Keeping

/// Identities and the lives of their tokens.
extension Page {
    mutating func writeIdentities(_ identities: [IdentityFacts]) {
        out.markup(
            "<section aria-labelledby=\"identities\">\n<div class=\"title\"><h2 id=\"identities\">Identities</h2>")
        out.markup(
            "<span class=\"legend\" aria-hidden=\"true\"><i class=\"k past\"></i>age <i class=\"k left\"></i>until refresh "
        )
        out.markup("<i class=\"k ahead\"></i>until expiry</span></div>\n")
        if identities.isEmpty {
            out.markup("<p class=\"card quiet\">No identities: every route forwards without a credential.</p>\n")
        }
        var room = Self.maximumTokens
        for identity in identities.prefix(Self.maximumIdentities) {
            writeIdentity(identity, tokens: min(room, Self.maximumTokensOfIdentity))
            room -= min(room, Self.maximumTokensOfIdentity, identity.tokens.count)
        }
        leftOut(identities.count - Self.maximumIdentities, "identities")
        out.markup("</section>\n")
    }

    private mutating func writeIdentity(_ identity: IdentityFacts, tokens limit: Int) {
        out.markup("<article")
        // A class of its own: the tone of an identity is that of its worst token and must not colour the bars of the others.
        out.attribute("class", identity.state.tone == .bad ? "card identity troubled" : "card identity")
        out.markup(">\n<div class=\"who\">")
        out.element("h3", shortened(identity.status.name, to: 80))
        out.element("span", class: "chip \(identity.state.tone.rawValue)", identity.state.rawValue)
        out.element("span", class: "scheme", shortened(identity.status.scheme, to: 40))
        out.markup("</div>\n<div class=\"lives\">\n")
        let shown = mostTelling(identity.tokens, limit: limit)
        if identity.tokens.isEmpty {
            out.element(
                "p", class: "quiet",
                identity.state == .idle ? "No token: nobody has asked for one yet." : "No token now.")
        }
        for token in shown { writeToken(token, saysState: identity.tokens.count > 1) }
        if let login = identity.status.login, let left = login.expiresIn {
            out.element(
                "p", class: "quiet", left == 0 ? "Its login has ended." : "Its login ends in \(spelled(left)).")
        }
        for fact in identity.status.facts.prefix(16) {
            out.element("p", class: "quiet", shortened("\(fact.name): \(fact.value)", to: 160))
        }
        leftOut(identity.tokens.count - shown.count, "tokens")
        writeFailure(of: identity, shown)
        out.markup("</div>\n<dl class=\"counts\">")
        count("granted", identity.status.grants, .quiet)
        count("failed", identity.status.failures, identity.status.failures > 0 ? .warn : .quiet)
        count("waiting", UInt64(max(identity.waiting, 0)), identity.waiting > 0 ? .busy : .quiet)
        out.markup("</dl>\n")
        if case .isSignedIn = `operator` { writeButtons(of: identity) }
        out.markup("</article>\n")
    }

    private mutating func count(_ name: StaticString, _ value: UInt64, _ tone: IdentityState.Tone) {
        out.markup("<div")
        out.attribute("class", value == 0 ? "none" : tone.rawValue)
        out.markup("><dt>")
        out.markup(name)
        out.markup("</dt>")
        out.element("dd", grouped(value))
        out.markup("</div>")
    }

    /// Once: an identity's last failure is that of one of its tokens.
    private mutating func writeFailure(of identity: IdentityFacts, _ shown: [TokenStatus]) {
        var reasons: [(reason: String, ago: UInt64?)] = []
        let all =
            [(identity.status.lastFailure, identity.status.lastFailureAgo)]
            + shown.map { ($0.lastFailure, $0.lastFailureAgo) }
        for (reason, ago) in all {
            guard let reason, !reasons.contains(where: { $0.reason == reason }), reasons.count < 3 else { continue }
            reasons.append((reason, ago))
        }
        for (reason, ago) in reasons {
            out.markup("<p class=\"failure\"><strong>Last failure")
            if let ago { out.text(", \(spelled(ago)) ago") }
            out.markup("</strong> ")
            out.text(sentence(reason))
            out.markup("</p>\n")
        }
    }

    // MARK: - A token's life

    /// - Parameter saysState: whether it has a state of its own to tell; an only token's is the identity's.
    private mutating func writeToken(_ token: TokenStatus, saysState: Bool) {
        let state = token.state
        out.markup("<div class=\"token\">\n<p class=\"key\">")
        let place = shortened(Self.place(token.upstream), to: 120)
        out.element("b", token.realm.isEmpty ? place : shortened(token.realm, to: 80))
        if let level = token.level { out.element("span", class: "detail", "level \(level)") }
        if !token.scopes.isEmpty { out.element("span", class: "detail", shortened(token.scopes, to: 160)) }
        if !token.realm.isEmpty { out.element("span", class: "quiet", place) }
        if let granted = token.granted {
            out.element("span", class: "detail", "granted " + shortened(granted, to: 160))
        }
        if let count = token.subjects {
            out.element("span", class: "detail", "one per subject, \(grouped(UInt64(count))) in memory")
        }
        if token.waiting > 0 { out.element("span", class: "chip busy", "\(grouped(UInt64(token.waiting))) waiting") }
        if saysState { out.element("span", class: "state \(state.tone.rawValue)", state.rawValue) }
        out.markup("</p>\n")
        let times = Self.times(of: token)
        if let life = Life(token) { writeBar(life, tone: state.tone, label: times.joined(separator: ", ")) }
        out.markup("<p class=\"times\">")
        for time in times { out.element("span", time) }
        out.markup("</p>\n</div>\n")
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
    static func place(_ origin: String) -> String {
        var text = Substring(origin)
        if text.hasPrefix("https://") {
            text = text.dropFirst(8)
            if text.hasSuffix(":443") { text = text.dropLast(4) }
        } else if text.hasPrefix("http://"), text.hasSuffix(":80") {
            text = text.dropLast(3)
        }
        return String(text)
    }

    private mutating func writeBar(_ life: Life, tone: IdentityState.Tone, label: String) {
        out.markup("<svg viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" role=\"img\"")
        out.attribute("class", "bar \(tone.rawValue)")
        out.attribute("aria-label", label)
        out.markup(">")
        segment("past", from: 0, to: life.now)
        segment("left", from: life.now, to: max(life.now, life.refresh))
        segment("ahead", from: max(life.now, life.refresh), to: Life.length)
        if life.refresh > 0, life.refresh < Life.length { line("tick", at: life.refresh) }
        if life.now > 0, life.now < Life.length { line("now", at: life.now) }
        out.markup("</svg>\n")
    }

    private mutating func segment(_ style: StaticString, from start: Int, to end: Int) {
        guard end > start else { return }
        out.markup("<rect class=\"")
        out.markup(style)
        out.markup("\" height=\"10\"")
        out.attribute("x", String(start))
        out.attribute("width", String(end - start))
        out.markup("/>")
    }

    private mutating func line(_ style: StaticString, at place: Int) {
        out.markup("<path class=\"")
        out.markup(style)
        out.markup("\"")
        out.attribute("d", "M\(place) 0v10")
        out.markup("/>")
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
        func place(_ at: Double) -> Int { Int(min(max(at / whole, 0), 1) * Double(Self.length)) }
        now = expiresIn == 0 ? Self.length : place(Double(age))
        // A refresh point that has passed lies at an unknown place before now.
        refresh = token.refreshIn.map { $0 == 0 ? 0 : place(Double(age) + Double($0)) } ?? Self.length
    }
}
