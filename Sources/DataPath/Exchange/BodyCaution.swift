internal import HTTP1

/// The treatment of a body that cannot be kept for a replay (`on_rejected.large_body`): the body is held back until the upstream has
/// shown that it takes the credential.
package struct BodyCaution {
    /// Nothing, where the body can be kept or the route does not ask for it.
    var way = Way.send

    package enum Way: Sendable { case send, expectContinue, probeHead }

    /// The head is out, with `Expect: 100-continue`; the body waits for the upstream's word, or for `patience`.
    var holds = false
    /// The request that is out is a HEAD in the place of the caller's own.
    var isProbe = false
    var hasProbed = false

    /// Nanoseconds that a body waits for `100 Continue`: a server that does not know it says nothing (RFC 9110 section 10.1.1).
    static let patience: UInt64 = 1_000_000_000

    /// A request is about to be sent.
    /// - Parameter isReplay: the credential was just granted, and nothing is gained by asking again.
    mutating func begin(isReplay: Bool) {
        holds = way == .expectContinue && !isReplay
        isProbe = way == .probeHead && !isReplay && !hasProbed
        if isProbe { hasProbed = true }
    }

    /// The request that is out was not seen by the upstream.
    mutating func takeBack() {
        if isProbe { hasProbed = false }
    }
}
