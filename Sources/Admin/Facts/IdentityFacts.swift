internal import Keeping

extension IdentityState {
    /// How much it should worry.
    enum Tone: String, Sendable, CaseIterable {
        case bad, warn, busy, good, quiet

        /// The word by which people choose it.
        var word: String {
            switch self {
            case .bad: "trouble"
            case .warn: "warning"
            case .busy: "busy"
            case .good: "good"
            case .quiet: "idle"
            }
        }
    }

    var tone: Tone {
        switch self {
        case .quarantined, .storeUnusable, .loginNeeded, .failed, .negative: .bad
        case .expiredServed, .loginDue, .renewalFailing: .warn
        case .acquiring, .unproven, .refreshDue: .busy
        case .fresh: .good
        case .idle: .quiet
        }
    }
}

/// An identity with what belongs to it.
struct IdentityFacts: Sendable {
    var status: IdentityStatus
    var state: IdentityState
    var tokens: [TokenStatus]
    /// Requests that wait for one of its tokens.
    var waiting: Int
    /// Nanoseconds until the first token expires; nil where none expires.
    var expiresIn: UInt64?
    /// Nanoseconds since the oldest token was sent for.
    var age: UInt64?

    init(_ identity: IdentityStatus, tokens: [TokenStatus]) {
        status = identity
        self.tokens = tokens
        waiting = max(status.waiting, tokens.reduce(0) { $0 + $1.waiting })
        // A token of earlier settings is nobody's trouble: it is not renewed, and goes.
        let current = tokens.filter { !$0.isOfEarlierSettings }
        expiresIn = current.compactMap(\.expiresIn).min()
        age = current.compactMap(\.age).max()
        // A key's own state is that of nobody's token where each user has one.
        var states = Set(current.map { ($0.subjects ?? 0) > 0 ? .fresh : $0.state })
        switch identity.login?.word {
        // Before anybody has asked for a token, and so found out.
        case .needed?: states.insert(.loginNeeded)
        case .soon?: states.insert(.loginDue)
        case .good?, nil: break
        }
        let worst = IdentityState.allCases.first { states.contains($0) } ?? .idle
        if identity.isQuarantined {
            state = .quarantined
        } else if identity.lacksStore {
            state = .storeUnusable
        } else if worst == .idle, identity.lastFailure != nil {
            state = .failed
        } else {
            state = worst
        }
    }
}

extension GatewayStatus {
    /// In the order of the configuration.
    var identityFacts: [IdentityFacts] {
        let owned = Dictionary(grouping: tokens, by: \.identity)
        return identities.map { IdentityFacts($0, tokens: owned[$0.name] ?? []) }
    }

    var storeState: StoreState { StoreState(word: store) }
}

/// The store's state out of the sentence that tells it.
enum StoreState: String, Sendable, CaseIterable {
    case memory, serving, degraded, refused

    init(word: String) {
        if word.hasPrefix("serving") {
            self = .serving
        } else if word.hasPrefix("degraded") {
            self = .degraded
        } else if word.hasPrefix("not used") {
            self = .refused
        } else {
            self = .memory
        }
    }
}
