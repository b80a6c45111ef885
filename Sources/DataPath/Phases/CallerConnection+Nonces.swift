internal import HTTP1
internal import Handshakes
internal import Reactor

/// Nonces that are answered by each request and counted on their connection (docs/design/challenges.md#nonces).
extension CallerConnection {
    /// The nonce of the challenge to this very request, before that of its connection, before the last one that this loop has met there.
    ///
    /// A secret on trial answers nothing else than its own challenge: only that is judged, and a login attempt that nobody judges would be
    /// made again.
    func nonceToAnswer(on route: RoutePlan) -> ServerNonce? {
        if let own = exchange.nonces?.own { return own }
        guard case .token(_, let generation) = exchange.machine.credential, let identity = route.identity else {
            return nil
        }
        if let known = exchange.upstream?.knownNonce, known.serves(identity, generation: generation) {
            return known.nonce
        }
        // Answered elsewhere, it has authenticated another connection.
        if identity.bindsConnections || identity.answersForRequest { return nil }
        let last = data.nonces.lastAnswered(at: route.upstream.origin)
        return last?.serves(identity, generation: generation) == true ? last?.nonce : nil
    }

    func requestNonces() -> RequestNonces {
        if let nonces = exchange.nonces { return nonces }
        let nonces = RequestNonces()
        exchange.nonces = nonces
        return nonces
    }

    /// - Parameter answer: nil where the request goes out without a credential.
    func noteAnswer(_ answer: NonceAnswer?, on route: RoutePlan) {
        let nonces = requestNonces()
        nonces.sent(answering: answer, at: exchange.upstream?.address.map { ObjectIdentifier($0) })
        guard let nonce = answer?.nonce, nonce !== nonces.own else { return }
        // A connection that had none begins with the loop's.
        if exchange.upstream?.knownNonce?.nonce !== nonce { publish(nonce, on: route, in: exchange.upstream) }
    }

    /// From now on the nonce is the connection's, and the loop's last one.
    private func publish(_ nonce: ServerNonce, on route: RoutePlan, in upstream: UpstreamConnection?) {
        guard let identity = route.identity, !identity.answersForRequest,
            let generation = exchange.machine.credential.sent?.generation
        else { return }
        let known = KnownNonce(nonce, of: identity, generation: generation)
        upstream?.knownNonce = known
        data.nonces.noteAnswered(known, at: route.upstream.origin)
    }

    /// The nonce that was answered is not answered again.
    private func forgetAnswered(by upstream: UpstreamConnection, on route: RoutePlan) {
        guard let nonce = exchange.nonces?.answered?.nonce else { return }
        data.nonces.forget(nonce, at: route.upstream.origin)
        if upstream.knownNonce?.nonce === nonce { upstream.knownNonce = nil }
    }

    // MARK: - Refusals

    /// - Returns: nil where the verdict stands as it is.
    func judgeNonce(
        _ verdict: ChallengeVerdict, _ status: Int, in upstream: UpstreamConnection
    ) -> Exchange.Judgement? {
        guard let route = exchange.route else { return nil }
        let nonces = requestNonces()
        if route.identity?.answersForRequest == true { return judgeWish(verdict, nonces, in: upstream) }
        switch verdict {
        case .nonce(let nonce, let challenge):
            return refused(nonces, with: nonce, challenge, by: upstream, on: route)
        // The route says that such a status refuses the credential, whatever was answered.
        case .none where status != 401 && nonces.answered != nil: return judged(on: route)
        // A server that says no more has judged the credential all the same, which would otherwise be tried with every request.
        case .none where status == 401 && nonces.isJudged, .unusable where nonces.isJudged:
            return judged(on: route)
        case .none, .unusable:
            forgetAnswered(by: upstream, on: route)
            data.desk.scoutSawNothing(self)
            return nil
        default: return nil
        }
    }

    /// The first wish is fulfilled. Where another one follows, the server does not take the credential as it asked for it: a new value of the
    /// secret may help, and without one the refusal is the caller's.
    /// - Returns: nil where the verdict stands as it is.
    private func judgeWish(
        _ verdict: ChallengeVerdict, _ nonces: RequestNonces, in upstream: UpstreamConnection
    ) -> Exchange.Judgement? {
        guard case .nonce(let nonce, let challenge) = verdict else { return nil }
        let isFirst = nonces.own == nil
        nonces.refused(with: nonce, at: upstream.address.map { ObjectIdentifier($0) })
        // Also the first one may come too late: after connections were lost, the request is not sent any more.
        if isFirst, exchange.machine.mayAnswerNonce { return .nonce }
        nonces.passesRefusal = true
        guard !isFirst else { return .nonce }
        data.noteGlitch(.unusableChallenge, reason: "the server asks for another signature again", of: self)
        exchange.record.challenge = HeldChallenge(challenge)
        return .challenge
    }

    private func judged(on route: RoutePlan) -> Exchange.Judgement {
        exchange.record.challenge = HeldChallenge(Challenge(resource: route.upstream.origin))
        return .challenge
    }

    /// Whether a refusal is of the nonce or of the credential.
    private func refused(
        _ nonces: RequestNonces, with nonce: ServerNonce, _ challenge: Challenge, by upstream: UpstreamConnection,
        on route: RoutePlan
    ) -> Exchange.Judgement {
        let isJudged = nonces.isJudged && !nonce.isStale
        let wasAnsweredElsewhere = mistrustsConnections && nonces.answered?.nonce === nonces.own
        forgetAnswered(by: upstream, on: route)
        nonces.refused(with: nonce, at: upstream.address.map { ObjectIdentifier($0) })
        if wasAnsweredElsewhere, !nonces.hasReturned,
            data.nonces.doubtSilence(at: route.upstream.origin, isRepeatable: exchange.machine.idempotent)
        {
            nonces.hasReturned = true
            exchange.machine.answerNonceAgain()
            return .nonce
        }
        guard isJudged else {
            // Requests that wait for the trial of the secret must not wait for the rest of an answer that is its caller's.
            if !exchange.machine.mayAnswerNonce { data.desk.scoutSawNothing(self) }
            return .nonce
        }
        exchange.record.challenge = HeldChallenge(challenge)
        return .challenge
    }

    /// The connection that has just brought this request a nonce, to be answered there: given back first it would be another request's, and
    /// some servers know their nonces by it.
    func connectionOfNonce() -> UpstreamConnection? {
        guard let nonces = exchange.nonces,
            nonces.own?.uses == 0 && !mistrustsConnections || nonces.proxy.isAsked || hasProbedToBind,
            let connection = exchange.upstream, exchange.route.map({ connection.group.plan === $0.upstream }) ?? false,
            connection.mayBeReused(
                answerComplete: true, requestComplete: exchange.request.isComplete || exchange.caution.isProbe,
                persistent: exchange.answer.isPersistent)
        else { return nil }
        return connection
    }

    /// A HEAD has shown that the connection is authenticated, and no other one.
    private var hasProbedToBind: Bool {
        exchange.caution.isProbe && exchange.route?.identity?.bindsConnections == true
    }

    /// The server has ended connections under such requests: what answers its nonce goes out on a new one.
    var mistrustsConnections: Bool {
        guard exchange.nonces?.own != nil, let route = exchange.route, route.identity?.bindsConnections != true else {
            return false
        }
        return data.nonces.endSilently(at: route.upstream.origin)
    }

    // MARK: - Connections that are authenticated

    /// The request begins to authenticate its connection, goes on with that, or goes out bare where it is done.
    func prepareToBind(_ request: inout RequestToSign) {
        guard let upstream = exchange.upstream, let epoch = upstream.group.plan.boundTo else { return }
        request.serverEndPoint = upstream.serverEndPoint
        // Its turn may have come in the line of those that wait, past every other look.
        if !upstream.isOfItsIdentity { request.serverNonce = nil }
        guard request.serverNonce == nil || request.serverNonce?.uses == 0 else { return }
        upstream.knownNonce = nil
        upstream.binding = ConnectionBinding(epoch: epoch.now, until: .max)
    }

    /// The challenge that its connection brought cannot be answered there, and nowhere else: the request begins anew on the next one.
    func forgetNonceOfConnection() {
        guard exchange.route?.identity?.bindsConnections == true, exchange.nonces?.own != nil else { return }
        exchange.nonces?.lost()
        exchange.machine.loseNonce()
    }

    /// The server has the answer to its challenge, with a secret that is on trial, and may have judged it.
    var mayHaveBeenTried: Bool {
        guard case .carried = exchange.machine.credential, exchange.route?.identity?.bindsConnections == true else {
            return false
        }
        return exchange.nonces?.isJudged == true
    }

    /// The server wants a connection to be authenticated that was. The request begins anew on another one.
    func isUnauthenticated(_ upstream: UpstreamConnection) -> Bool {
        guard exchange.route?.identity?.bindsConnections == true, exchange.nonces?.isBare == true,
            upstream.knownNonce != nil, exchange.machine.body != .lost
        else { return false }
        upstream.knownNonce = nil
        exchange.nonces?.lost()
        exchange.caution.takeBack()
        return true
    }

    // MARK: - Other answers

    /// The credential was taken, unless none was sent, or something on the way has answered.
    func noteSuccess(_ status: Int) {
        if let nonces = exchange.nonces, nonces.isBare || nonces.answered != nil && Self.saysNothing(status) {
            data.desk.scoutSawNothing(self)
        } else {
            data.desk.reportSuccess(self)
        }
    }

    /// An answer that does not refuse the credential makes its nonce known, or names the next one, and may prove that its server knows the
    /// credential.
    /// - Returns: false where it proves the contrary.
    func review(_ nonces: RequestNonces, of upstream: UpstreamConnection, head length: Int) -> Bool {
        guard let answered = nonces.answered, let route = exchange.route, let signer = route.identity?.signer
        else { return true }
        let status = exchange.answer.status
        // Some servers have no better word for a nonce that they do not know.
        if status == 400 { forgetAnswered(by: upstream, on: route) }
        guard !Self.saysNothing(status) else { return true }
        let head = UnsafeRawBufferPointer(rebasing: upstream.input[..<length])
        switch signer.review(data.answer(status, head: head, body: nil, for: self), to: answered) {
        case .forged: return false
        case .nothing:
            if answered.nonce === nonces.own { publish(answered.nonce, on: route, in: upstream) }
        case .next(let nonce):
            // A newer nonce may have come to another request since.
            if answered.nonce === nonces.own || upstream.knownNonce?.nonce === answered.nonce {
                publish(nonce, on: route, in: upstream)
            }
        }
        nonces.taken()
        return true
    }

    /// Something on the way may have answered, or the server before it came to look at the credential.
    private static func saysNothing(_ status: Int) -> Bool {
        switch status {
        case 400, 407, 429, 500...: true
        default: false
        }
    }
}
