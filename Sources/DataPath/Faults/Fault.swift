/// A fault in an exchange, with all that a decision about it needs: whose fault it was, what kind, and whether sending the request again
/// is safe.
///
/// `FaultAnswers.swift` alone maps faults to what a caller sees.
public struct Fault: Error, Sendable, Equatable {
    /// Decides the status and the word in the log.
    public package(set) var kind: Kind
    /// Whether the request may be sent again.
    public let retry: Retry
    /// Seconds for `Retry-After`; nil: the field is left out.
    public var retryAfter: Int?
    /// Status that the upstream gave, for `Proxy-Status: received-status`.
    public var receivedStatus: Int?
    /// Safe text for the caller: never a token, a body of an issuer, or an internal address.
    public var detail: String?

    /// Memberwise.
    public init(
        _ kind: Kind, retry: Retry = .never, retryAfter: Int? = nil, receivedStatus: Int? = nil, detail: String? = nil
    ) {
        self.kind = kind
        self.retry = retry
        self.retryAfter = retryAfter
        self.receivedStatus = receivedStatus
        self.detail = detail
    }

    /// The side that caused the fault.
    public enum Side: String, Sendable { case caller, upstream, issuer, gateway }

    /// Whether the request may have had an effect.
    public enum Retry: Sendable {
        case never
        /// The request provably did not reach the server: sending it again is safe whatever its method.
        case unsent
        /// The connection died without a byte of an answer: safe for requests that may be repeated (RFC 9110 §9.2.2).
        case ifRepeatable
    }

    /// The kinds of faults, each with one answer in `FaultAnswers.swift`.
    public enum Kind: Sendable, CaseIterable {
        // The caller's request.
        case malformedRequest, unknownTransferCoding, unsupportedVersion, slowHead, slowBody, longTarget, bigHead,
            bigBody
        case unsafePath, unsignable, traceRefused, noRoute, callerRefused, misdirected, crossSite, connectRefused,
            incompleteBody
        case originFormRefused, destinationRefused
        /// A confined program sends a placeholder to where no credential replaces it.
        case placeholderMisplaced
        case subjectMissing, subjectRefused
        case callerTokenRefused, proxyTokenRefused
        case resourceMissing, resourceDenied
        // The token.
        case issuerUnavailable, issuerAnswerInvalid, quarantined, secretUnreadable, secretUnusable
        case storeUnusable
        case interactionRequired, tokenTimeout, policyDenied, identityMisconfigured
        // The upstream.
        case upstreamUnresolvable, upstreamRefused, upstreamConnectTimeout, upstreamTLS, upstreamClosed
        case proxyRefused
        case upstreamGarbage, upstreamUnproven, upstreamBigHead, upstreamTimeout, upstreamRefusedCredential,
            upstreamRedirectedToLogin
        case upstreamOffersNoUpgrade, loopDetected
        /// The answer's body is in a coding, and the route has to look into it.
        case upstreamEncoded
        /// The caller's credential authenticates a connection, and the one it would go out on is shared.
        case connectionShared
        // Us.
        case tooManyWaiters, tooManySubjects, tooManyConnections, upstreamBusy, draining, upgrading, outOfMemory
        /// The audit log has no place for the use of a credential.
        case auditUnavailable
        case internalFault
    }

    /// Follows from the kind.
    public var side: Side {
        switch kind {
        case .malformedRequest, .unknownTransferCoding, .unsupportedVersion, .slowHead, .slowBody, .longTarget,
            .bigHead, .bigBody,
            .unsafePath, .unsignable, .traceRefused, .noRoute, .callerRefused, .misdirected, .crossSite,
            .connectRefused,
            .incompleteBody, .originFormRefused, .destinationRefused, .placeholderMisplaced, .subjectMissing,
            .subjectRefused,
            .callerTokenRefused, .proxyTokenRefused,
            .resourceMissing:
            .caller
        case .issuerUnavailable, .issuerAnswerInvalid, .quarantined, .secretUnreadable, .secretUnusable,
            .storeUnusable, .interactionRequired, .tokenTimeout, .policyDenied, .resourceDenied, .identityMisconfigured:
            .issuer
        case .upstreamUnresolvable, .upstreamRefused, .upstreamConnectTimeout, .upstreamTLS, .upstreamClosed,
            .proxyRefused, .upstreamGarbage, .upstreamUnproven, .upstreamBigHead, .upstreamTimeout,
            .upstreamRefusedCredential,
            .upstreamRedirectedToLogin, .upstreamOffersNoUpgrade, .upstreamEncoded, .loopDetected, .connectionShared:
            .upstream
        case .tooManyWaiters, .tooManySubjects, .tooManyConnections, .upstreamBusy, .draining, .upgrading,
            .outOfMemory, .auditUnavailable, .internalFault:
            .gateway
        }
    }
}
