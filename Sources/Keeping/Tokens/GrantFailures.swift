internal import Handshakes
internal import Tokens

extension Tokens.GrantFailure {
    /// Reduces a handshake's failure to what the token's machine has to know of it.
    init(_ failure: Handshakes.GrantFailure) {
        switch failure {
        case .issuerUnavailable(let seconds, _):
            self = .issuerUnavailable(retryAfter: seconds.map { .seconds(UInt64(max(0, $0))) })
        case .issuerAnswerInvalid: self = .issuerAnswerInvalid
        case .credentialRejected, .quarantined, .unanswered: self = .credentialRejected
        case .configuration: self = .configuration
        case .interactionRequired: self = .interactionRequired
        case .policyDenied: self = .policyDenied
        case .timedOut: self = .timedOut
        // Without a challenge nothing can be asked; the next one brings it.
        case .challengeNeeded: self = .notPermitted(retryAfter: .seconds(1))
        case .secretUnreadable, .secretUnusable: self = .issuerUnavailable(retryAfter: .seconds(1))
        case .storeUnusable: self = .notPermitted(retryAfter: .seconds(1))
        case .internal: self = .issuerAnswerInvalid
        }
    }
}

extension Handshakes.GrantFailure {
    /// For outcomes that the machine itself decided.
    init(_ failure: Tokens.GrantFailure) {
        switch failure {
        case .issuerUnavailable(let wait), .notPermitted(let wait):
            self = .issuerUnavailable(
                retryAfterSeconds: wait.map { Int(clamping: $0 / 1_000_000_000) }, reason: "the login was interrupted")
        case .issuerAnswerInvalid: self = .issuerAnswerInvalid(reason: "no session")
        case .timedOut: self = .timedOut(step: "login")
        case .configuration: self = .configuration(reason: "the login failed")
        case .policyDenied: self = .policyDenied(reason: "a second session was refused too")
        case .credentialRejected: self = .quarantined
        case .interactionRequired: self = .interactionRequired(reason: "a person must log in")
        }
    }
}
