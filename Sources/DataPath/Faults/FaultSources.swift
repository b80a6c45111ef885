package import HTTP1
package import Handshakes
package import Tokens

// Where the faults of the pure modules become ours.

extension Fault {
    /// A caller's head that was refused.
    package init(head fault: HeadFault) {
        switch fault.status {
        case 414: self.init(.longTarget)
        case 431: self.init(.bigHead)
        case 501: self.init(.unknownTransferCoding)
        case 505: self.init(.unsupportedVersion)
        default: self.init(.malformedRequest, detail: "\(fault.reason)")
        }
    }

    /// A grant that brought no token.
    /// - Parameters:
    ///   - retryAfter: nanoseconds left of the wait.
    ///   - detail: the handshake's reason, safe to show.
    package init(_ failure: Tokens.GrantFailure, retryAfter: UInt64?, detail: String?) {
        let seconds = retryAfter.map { Int(clamping: ($0 + 999_999_999) / 1_000_000_000) }
        switch failure {
        case .issuerUnavailable, .notPermitted: self.init(.issuerUnavailable, retryAfter: seconds ?? 1, detail: detail)
        case .issuerAnswerInvalid: self.init(.issuerAnswerInvalid, retryAfter: seconds ?? 1, detail: detail)
        case .timedOut: self.init(.tokenTimeout, retryAfter: seconds, detail: detail)
        case .configuration: self.init(.identityMisconfigured, retryAfter: seconds ?? 1, detail: detail)
        case .policyDenied: self.init(.policyDenied, retryAfter: seconds ?? 1, detail: detail)
        case .credentialRejected: self.init(.quarantined, detail: detail)
        case .interactionRequired: self.init(.interactionRequired, detail: detail)
        }
    }
}

extension Fault.Kind {
    /// Nil unless a secret or the store of ours was the reason.
    package init?(secret failure: Handshakes.GrantFailure) {
        switch failure {
        case .secretUnreadable: self = .secretUnreadable
        case .secretUnusable: self = .secretUnusable
        case .storeUnusable: self = .storeUnusable
        default: return nil
        }
    }
}
