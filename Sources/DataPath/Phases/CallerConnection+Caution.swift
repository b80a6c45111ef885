internal import HTTP1
internal import Reactor

extension CallerConnection {
    /// - Precondition: the route, the framing and the replay policy are known.
    func chooseCaution(on route: RoutePlan) {
        exchange.caution = BodyCaution()
        if route.identity?.bindsConnections == true, route.identity?.answersNonces == true {
            // The server asks before it reads a body, and its challenge is good on a connection on which nothing is left of that: a HEAD
            // authenticates the connection first, whatever the size.
            if exchange.machine.replay == .once, exchange.request.framing != .none { exchange.caution.way = .probeHead }
            return
        }
        guard mayOutgrow(route) else { return }
        if exchange.machine.replay == .once { exchange.caution.way = route.largeBody }
        guard exchange.caution.way == .send else { return }
        // Such a request could only be refused without a nonce.
        if let identity = route.identity, identity.answersNonces, exchange.machine.replay == .once,
            data.nonces.lastAnswered(at: route.upstream.origin)?.serves(identity) != true
        {
            exchange.caution.way = .probeHead
        } else if route.upstream.mayBeChallengedByProxy {
            // Its nonces end without a word.
            exchange.caution.way = .expectContinue
        }
    }

    /// A request with a caution is about to be sent.
    @inline(never)
    func beginCaution(before upstream: UpstreamConnection, on route: RoutePlan) {
        guard route.identity?.bindsConnections == true, route.identity?.answersNonces == true else {
            return exchange.caution.begin(isReplay: exchange.machine.replayed)
        }
        // A body that is kept goes out at once where the connection is authenticated: should the server have forgotten it, it goes again.
        exchange.caution.begin(
            isReplay: exchange.machine.body != .lost && exchange.request.retainsBody && upstream.knownNonce != nil
                && upstream.isOfItsIdentity)
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
