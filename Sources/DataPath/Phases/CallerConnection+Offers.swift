internal import HTTP1
internal import Handshakes
internal import Reactor

/// Challenges to a route with several identities: the first in its order whose scheme is offered answers (`SchemeChoice`).
extension CallerConnection {
    /// - Returns: nil where the identity of the exchange's plan is the one to judge.
    /// - Precondition: `data.responseHead` is the answer's.
    func judgeOffers(head length: Int, body: [UInt8]?, in upstream: UpstreamConnection) -> Exchange.Judgement? {
        // A plan of an earlier edition has no successor to go on with.
        guard let route = exchange.route, let choice = route.choice, route.edition === data.plan.edition else {
            return nil
        }
        let list = data.plan.routes[route.index]
        let head = UnsafeRawBufferPointer(rebasing: upstream.input[..<length])
        let answer = data.answer(401, head: head, body: body, for: self)
        let challenges = AuthChallenge.list(answer.values(of: "WWW-Authenticate"))
        let own = list.alternatives.firstIndex { $0 === route }
        let verdict = choice.verdict(answering: own ?? choice.position) { position in
            guard choice.members[position].answers(challenges), let identity = list.alternatives[position].identity
            else { return false }
            // The first word of a scheme that authenticates connections says nothing yet.
            guard !identity.bindsConnections, case .unusable = identity.handshake.judge(answer) else { return true }
            return false
        }
        switch verdict {
        case .keep:
            guard own == nil else { return nil }
            guard let chosen = choice.position, choice.members[chosen].answers(challenges) else { return .answer }
            return answerOffer(answer, by: list.alternatives[chosen], in: upstream)
        case .refuse(let offered):
            data.noteOffer(.refusedWeaker, of: choice.members[offered], on: route, correlationFields)
            return .answer
        case .choose(let position):
            let former = own ?? choice.position
            choice.choose(position)
            let isWeaker = former.map { position > $0 } ?? false
            data.noteOffer(isWeaker ? .weaker : .chosen, of: choice.members[position], on: route, correlationFields)
            return answerOffer(answer, by: list.alternatives[position], in: upstream)
        }
    }

    private func answerOffer(
        _ answer: UpstreamAnswer, by route: RoutePlan, in upstream: UpstreamConnection
    ) -> Exchange.Judgement {
        guard exchange.machine.mayAnswerOffer, let identity = route.identity else { return .answer }
        // The other identity's tokens, nonces and waits end with its plan.
        leaveDesk()
        exchange.nonces?.taken()
        exchange.negotiation = nil
        exchange.route = route
        switch identity.handshake.judge(answer) {
        // The realm of the token, or what it is fetched with, stands in this very challenge.
        case .challenged(let challenge) where route.learned != nil:
            exchange.record.challenge = HeldChallenge(challenge)
            return .challenge
        case .nonce(let nonce, _) where identity.answersNonces && !identity.bindsConnections:
            requestNonces().refused(with: nonce, at: upstream.address.map { ObjectIdentifier($0) })
        default: break
        }
        return .offer
    }
}

extension RoutePlan {
    /// The plan of the identity that has been chosen; itself, which sends no credential, before that.
    var chosen: RoutePlan {
        guard let position = choice?.position, alternatives.indices.contains(position) else { return self }
        return alternatives[position]
    }
}
