internal import Keeping

extension IdentityFacts {
    /// What comes next, in words for a person: of several tokens the one whose time comes first.
    var nextStep: String {
        switch state {
        case .quarantined: return "waits for a new secret or a reset"
        case .storeUnusable: return "waits until the store can be read"
        case .loginNeeded: return "a person has to log in"
        case .loginDue:
            if let asked = status.login?.asked { return "an upstream asks for a login with \(asked)" }
            return status.login?.expiresIn.map { "its login ends in \(spelled($0))" } ?? "its login ends soon"
        case .failed: return "the next request tries again"
        case .negative: return nextTry
        case .expiredServed: return "its expired token is served, \(nextTry)"
        case .renewalFailing: return joined(nextTry, expiry)
        case .acquiring: return "a token is on its way"
        case .unproven: return "the next answer judges its password"
        case .refreshDue: return joined("renewal is due", expiry)
        case .fresh: break
        case .idle: return "the first request asks for a token"
        }
        // The tokens of end users each have times of their own.
        guard tokens.contains(where: { $0.subjects == nil }) else { return "each user's token has its own times" }
        if let due = shared(\.refreshIn) { return due == 0 ? "renewal is due" : "renewal in \(spelled(due))" }
        return expiry ?? "does not expire"
    }

    private var nextTry: String {
        guard let wait = shared(\.retryIn), wait > 0 else { return "the next request tries again" }
        return "next try in \(spelled(wait))"
    }

    private var expiry: String? {
        shared(\.expiresIn).map { $0 == 0 ? "its token has expired" : "its token expires in \(spelled($0))" }
    }

    private func shared(_ time: KeyPath<TokenStatus, UInt64?>) -> UInt64? {
        tokens.filter { $0.subjects == nil }.compactMap { $0[keyPath: time] }.min()
    }

    private func joined(_ first: String, _ second: String?) -> String { second.map { "\(first), \($0)" } ?? first }
}
