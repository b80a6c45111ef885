/// The way from a problem to what an operator does about it.
extension Fault.Kind {
    /// The section of docs/how-to/incident.md that is about the problem; nil where the caller is at fault, or the problem's own advice is all
    /// that there is to say.
    package var incident: String? {
        switch self {
        case .issuerUnavailable, .issuerAnswerInvalid, .tokenTimeout: "issuer-down"
        case .quarantined: "identity-quarantined"
        case .interactionRequired: "login-needed"
        case .secretUnreadable, .secretUnusable: "secret-unreadable"
        case .storeUnusable: "store-degraded"
        case .auditUnavailable: "audit-not-written"
        case .policyDenied, .identityMisconfigured, .draining, .upgrading, .internalFault: "callers-get-503"
        case .upstreamRefusedCredential, .upstreamRedirectedToLogin: "upstream-refuses"
        case .upstreamUnresolvable, .upstreamRefused, .upstreamConnectTimeout, .upstreamTLS, .upstreamClosed,
            .upstreamTimeout:
            "upstream-down"
        case .tooManyWaiters, .tooManySubjects, .tooManyConnections, .upstreamBusy, .outOfMemory: "limits-reached"
        case .malformedRequest, .unknownTransferCoding, .unsupportedVersion, .slowHead, .slowBody, .longTarget,
            .bigHead, .bigBody, .unsafePath, .unsignable, .traceRefused, .noRoute, .callerRefused, .misdirected,
            .crossSite,
            .connectRefused, .incompleteBody, .originFormRefused, .destinationRefused, .placeholderMisplaced,
            .subjectMissing,
            .subjectRefused, .callerTokenRefused, .proxyTokenRefused, .resourceMissing, .resourceDenied,
            .proxyRefused, .upstreamGarbage, .upstreamUnproven, .upstreamBigHead, .upstreamOffersNoUpgrade,
            .upstreamEncoded, .loopDetected,
            .connectionShared:
            nil
        }
    }

    /// The problem of this word; nil where there is none.
    package init?(word: String) {
        guard let kind = Self.allCases.first(where: { $0.word == word }) else { return nil }
        self = kind
    }
}
