internal import Keeping

/// The lives of an identity's tokens.
extension Page {
    /// - Parameter saysState: whether it has a state of its own to tell; an only token's is the identity's.
    func life(of token: TokenStatus, saysState: Bool) -> HTML {
        let origin = shortened(shortOrigin(token.upstream), to: 120)
        var details: [HTML] = []
        if let level = token.level { details.append(span("detail", "level \(level)")) }
        if !token.scopes.isEmpty { details.append(span("detail", shortened(token.scopes, to: 160))) }
        if !token.realm.isEmpty { details.append(span("quiet", origin)) }
        if let granted = token.granted { details.append(span("detail", "granted " + shortened(granted, to: 160))) }
        if let count = token.subjects {
            details.append(span("detail", "one per subject, \(grouped(UInt64(count))) in memory"))
        }
        if token.waiting > 0 { details.append(span("chip busy", "\(grouped(UInt64(token.waiting))) waiting")) }
        if token.isOfEarlierSettings { details.append(span("quiet", "of earlier settings, goes soon")) }
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
