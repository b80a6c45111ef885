internal import HTTP1
internal import Handshakes
internal import Reactor

/// Nonces that are answered by each request and counted on their connection (docs/design/challenges.md#nonces).
extension CallerConnection {
    /// The nonce of the challenge to this very request, before that of its connection, before the last one that this loop has met there.
    func nonceToAnswer(on route: RoutePlan) -> ServerNonce? {
        if let own = exchange.nonces.own, own.uses == 0 { return own }
        return exchange.upstream?.serverNonce ?? data.nonces.lastAnswered(at: route.upstream.origin)
    }

    /// - Parameter answer: nil where the request goes out without a credential.
    func noteAnswer(_ answer: NonceAnswer?, on route: RoutePlan) {
        exchange.nonces.sent(answering: answer)
        guard let nonce = answer?.nonce else { return }
        exchange.upstream?.serverNonce = nonce
        data.nonces.noteAnswered(nonce, at: route.upstream.origin)
    }

    /// - Returns: nil where the verdict stands as it is.
    func judgeNonce(
        _ verdict: ChallengeVerdict, _ status: Int, in upstream: UpstreamConnection
    ) -> Exchange.Judgement? {
        guard let route = exchange.route else { return nil }
        switch verdict {
        case .nonce(let nonce, let challenge):
            return refused(with: nonce, challenge, by: upstream, on: route)
        // A server that says no more has judged the credential all the same, which would otherwise be tried with every request.
        case .none where status == 401, .unusable:
            if exchange.nonces.isJudged {
                return refused(with: nil, Challenge(resource: route.upstream.origin), by: upstream, on: route)
            }
            forgetAnswered(by: upstream, on: route)
            data.desk.scoutSawNothing(self)
            return nil
        default: return nil
        }
    }

    /// Whether a refusal is of the nonce or of the credential.
    /// - Parameter nonce: the one that came with it; nil where there is none that can be answered.
    private func refused(
        with nonce: ServerNonce?, _ challenge: Challenge, by upstream: UpstreamConnection, on route: RoutePlan
    ) -> Exchange.Judgement {
        let isJudged = exchange.nonces.isJudged && nonce?.isStale != true
        forgetAnswered(by: upstream, on: route)
        if let nonce { exchange.nonces.refused(with: nonce) }
        guard isJudged else { return .nonce }
        exchange.record.challenge = HeldChallenge(challenge)
        return .challenge
    }

    /// The nonce that was answered is not answered again.
    private func forgetAnswered(by upstream: UpstreamConnection, on route: RoutePlan) {
        guard let nonce = exchange.nonces.answered?.nonce else { return }
        data.nonces.forget(nonce, at: route.upstream.origin)
        if upstream.serverNonce === nonce { upstream.serverNonce = nil }
    }

    /// The credential was taken, unless none was sent.
    func noteSuccess() {
        if exchange.nonces.isBare { data.desk.scoutSawNothing(self) } else { data.desk.reportSuccess(self) }
    }

    /// An answer that does not refuse the credential may name the next nonce, and prove that its server knows the credential.
    /// - Returns: false where it proves the contrary.
    func reviewNonce(of upstream: UpstreamConnection, head length: Int) -> Bool {
        guard let answered = exchange.nonces.answered, let route = exchange.route, let identity = route.identity,
            let signer = identity.signer
        else { return true }
        let head = UnsafeRawBufferPointer(rebasing: upstream.input[..<length])
        switch signer.review(data.answer(exchange.answer.status, head: head, body: nil, for: self), to: answered) {
        case .nothing: return true
        case .forged: return false
        case .next(let nonce):
            // Another request may have met a newer one on this connection since.
            if upstream.serverNonce === answered.nonce { upstream.serverNonce = nonce }
            if data.nonces.lastAnswered(at: route.upstream.origin) === answered.nonce {
                data.nonces.noteAnswered(nonce, at: route.upstream.origin)
            }
            return true
        }
    }
}
