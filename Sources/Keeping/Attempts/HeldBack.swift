internal import Handshakes
internal import Tokens

/// Why a credential is not sent, as far as it is known.
enum HeldBack {
    /// The issuer has refused it, or has said that one attempt is left.
    case rejected
    /// The credential was sent, and no answer came.
    case unanswered
    /// Its marks cannot be read.
    case store

    init(_ verdict: AttemptLedger.Verdict, isUnanswered: Bool) {
        switch verdict {
        case .unreadable: self = .store
        case .spent where isUnanswered: self = .unanswered
        case .allowed, .spent, .lastAttempt: self = .rejected
        }
    }

    var failure: Handshakes.GrantFailure {
        switch self {
        case .rejected: .quarantined
        case .unanswered: .unanswered
        case .store: .storeUnusable
        }
    }
}
