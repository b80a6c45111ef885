/// Why there is no token. Reasons are safe text: never a body, never a value that was received or sent, apart from error codes
/// of fixed shape.
public enum GrantFailure: Error, Sendable, Equatable {
    /// Worth another try later. `retryAfterSeconds` is what the issuer asked for, at most 300.
    case issuerUnavailable(retryAfterSeconds: Int?, reason: String)
    case issuerAnswerInvalid(reason: String)
    /// Password or client secret refused: not to be sent again until it changes.
    case credentialRejected(reason: String)
    case quarantined
    /// A login with it was cut off before an answer was seen: what the issuer made of it is not known, and it is not sent again.
    case unanswered
    case configuration(reason: String)
    /// The issuer wants a person.
    case interactionRequired(reason: String)
    case policyDenied(reason: String)
    case timedOut(step: String)
    /// A challenge-driven token was wanted without a challenge.
    case challengeNeeded
    case secretUnreadable(name: String, reason: String)
    /// The secret was read, and is not fit to be sent.
    case secretUnusable(name: String, reason: String)
    /// Our own store cannot be read: what it says of passwords that were refused and refresh tokens that are spent is not known, so nothing
    /// of the kind is sent. Nobody was asked.
    case storeUnusable
    case `internal`(reason: String)
}

extension GrantFailure {
    /// The case as one word, for counting.
    public enum Reason: String, Sendable, CaseIterable {
        case issuerUnavailable = "issuer_unavailable"
        case issuerAnswerInvalid = "issuer_answer_invalid"
        case credentialRejected = "credential_rejected"
        case quarantined, configuration
        case interactionRequired = "interaction_required"
        case policyDenied = "policy_denied"
        case timedOut = "timed_out"
        case challengeNeeded = "challenge_needed"
        case secretUnreadable = "secret_unreadable"
        case secretUnusable = "secret_unusable"
        case storeUnusable = "store_unusable"
        case `internal`
    }

    /// The kind of the failure, as logs and metrics tell it.
    public var word: Reason {
        switch self {
        case .issuerUnavailable: .issuerUnavailable
        case .issuerAnswerInvalid: .issuerAnswerInvalid
        case .credentialRejected: .credentialRejected
        case .quarantined, .unanswered: .quarantined
        case .configuration: .configuration
        case .interactionRequired: .interactionRequired
        case .policyDenied: .policyDenied
        case .timedOut: .timedOut
        case .challengeNeeded: .challengeNeeded
        case .secretUnreadable: .secretUnreadable
        case .secretUnusable: .secretUnusable
        case .storeUnusable: .storeUnusable
        case .internal: .internal
        }
    }
}

extension GrantFailure {
    /// The text that a caller may be told: places of secrets are the operator's matter.
    public var toldToCallers: String {
        switch self {
        case .secretUnreadable(let name, _): "secret \(name) unreadable; the gateway's log says why"
        default: description
        }
    }
}

extension GrantFailure: CustomStringConvertible {
    /// A sentence for operators; the texts in it have no secrets.
    public var description: String {
        switch self {
        case .issuerUnavailable(let seconds?, let reason): "issuer unavailable: \(reason) (retry after \(seconds) s)"
        case .issuerUnavailable(nil, let reason): "issuer unavailable: \(reason)"
        case .issuerAnswerInvalid(let reason): "issuer answer invalid: \(reason)"
        case .credentialRejected(let reason): "credential rejected: \(reason)"
        case .quarantined: "credential quarantined: the issuer refused it before, and it is not sent again"
        case .unanswered:
            "credential quarantined: a login was cut off before its answer came, or got one that is not the issuer's own, so "
                + "nobody knows whether the issuer accepted it"
        case .configuration(let reason): "configuration: \(reason)"
        case .interactionRequired(let reason): "interaction required: \(reason)"
        case .policyDenied(let reason): "denied by policy: \(reason)"
        case .timedOut(let step): "\(step): timed out"
        case .challengeNeeded: "a challenge is needed first"
        case .secretUnreadable(let name, let reason): "secret \(name) unreadable: \(reason)"
        case .secretUnusable(let name, let reason): "secret \(name) cannot be used: \(reason)"
        case .storeUnusable:
            "the gateway's store cannot be used: what it knows of this credential is not known here, or an attempt cannot be "
                + "booked. Nobody was asked. The log says why (store not used, store degraded); see store.key and store.path"
        case .internal(let reason): "internal fault: \(reason)"
        }
    }
}

// MARK: - From the transport

extension GrantFailure {
    init(_ fault: IssuerFault, step: String) {
        let said: String
        switch fault.kind {
        case .timedOut:
            self = .timedOut(step: step)
            return
        case .suspended(let seconds):
            self = .issuerUnavailable(retryAfterSeconds: seconds, reason: "\(step): \(fault.kind)")
            return
        case .brokenAnswer, .answerTooLarge:
            self = .issuerAnswerInvalid(reason: "\(step): \(fault.kind)")
            return
        case .tls(let detail):
            // Library text may quote what the peer sent (names in a certificate).
            said = "TLS failed: " + detail.printable(upTo: 120)
        default:
            said = fault.kind.description
        }
        self = .issuerUnavailable(retryAfterSeconds: nil, reason: "\(step): \(said)")
    }
}

extension String {
    /// Printable ASCII of bounded length, for text whose origin is not ours.
    func printable(upTo limit: Int) -> String {
        String(
            String.UnicodeScalarView(
                unicodeScalars.prefix(limit).map { (0x20...0x7E).contains($0.value) ? $0 : Unicode.Scalar(UInt8(0x3F)) }
            ))
    }
}
