internal import DataPath
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

    /// - Parameter name: the identity's.
    func fault(of name: String) -> Fault {
        switch self {
        case .rejected:
            return Fault(
                .quarantined,
                detail: "identity \(name) is quarantined; change its secret, or run: cardea reset \(name)")
        case .unanswered:
            return Fault(
                .quarantined,
                detail:
                    "identity \(name) is quarantined: a login was cut off before its answer came, or got one that is not the "
                    + "issuer's own, so nobody knows whether the issuer accepted it; look whether the account is locked, then run: cardea reset \(name)"
            )
        case .store:
            return Fault(.storeUnusable, retryAfter: 1, detail: "\(Handshakes.GrantFailure.storeUnusable)")
        }
    }
}
