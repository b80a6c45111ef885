internal import HTTP1
internal import Reactor

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
}

extension CallerConnection {
    /// - Precondition: the route, the framing and the replay policy are known.
    func chooseCaution(on route: RoutePlan) {
        exchange.caution = BodyCaution()
        guard exchange.machine.replay == .once else { return }
        switch exchange.request.framing {
        case .none: break
        // A body without an announced length may turn out not to fit.
        case .chunked: exchange.caution.way = route.largeBody
        case .length(let length): if length > UInt64(route.replayBody) { exchange.caution.way = route.largeBody }
        }
    }

    /// How long the head that was just sent may remain without an answer.
    func expectFirstAnswer(on route: RoutePlan) {
        if exchange.caution.holds {
            expect(by: loop.now + min(BodyCaution.patience, route.answerTimeout), kind: Deadline.permission)
        } else {
            expect(by: loop.now + route.answerTimeout, kind: Deadline.answer)
        }
    }

    /// The upstream said `100 Continue`, or nothing for a while: the body goes out.
    func releaseBody() {
        guard exchange.caution.holds else { return }
        exchange.caution.holds = false
        expectAnswer()
        pumpRequestBody(to: exchange.upstream)
    }
}
