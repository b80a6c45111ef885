internal import HTTP1
internal import Reactor

extension CallerConnection {
    /// - Precondition: the route, the framing and the replay policy are known.
    func chooseCaution(on route: RoutePlan) {
        exchange.caution = BodyCaution()
        guard mayOutgrow(route) else { return }
        if exchange.machine.replay == .once { exchange.caution.way = route.largeBody }
        guard exchange.caution.way == .send else { return }
        // Such a request could only be refused without a nonce.
        if let identity = route.identity, identity.answersNonces, exchange.machine.replay == .once,
            identity.bindsConnections
                || data.nonces.lastAnswered(at: route.upstream.origin)?.serves(identity) != true
        {
            exchange.caution.way = .probeHead
        } else if route.upstream.mayBeChallengedByProxy {
            // Its nonces end without a word.
            exchange.caution.way = .expectContinue
        }
    }

    /// Whether the body may be larger than what is kept of it.
    private func mayOutgrow(_ route: RoutePlan) -> Bool {
        switch exchange.request.framing {
        case .none: false
        // A body without an announced length may turn out not to fit.
        case .chunked: true
        case .length(let length): length > UInt64(route.replayBody)
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
