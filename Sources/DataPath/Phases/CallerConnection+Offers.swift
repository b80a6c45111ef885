internal import HTTP1
internal import Handshakes
internal import Reactor

/// Challenges to a route with several identities: the first in its order whose scheme is offered answers (`SchemeChoice`).
extension CallerConnection {
    /// - Returns: nil where the identity of the exchange's plan is the one to judge.
    /// - Precondition: `data.responseHead` is the answer's.
    func judgeOffers(head length: Int, body: [UInt8]?, in upstream: UpstreamConnection) -> Exchange.Judgement? {
        guard let route = exchange.route, let choice = route.choice else { return nil }
        let head = UnsafeRawBufferPointer(rebasing: upstream.input[..<length])
        let answer = data.answer(401, head: head, body: body, for: self)
        let challenges = AuthChallenge.list(answer.values(of: "WWW-Authenticate"))
        // The other plans of an earlier edition are gone with it: its identity judges what it can answer, and nothing else.
        guard let list = route.isList ? route : successor(of: route) else {
            return challenges.isEmpty || route.answers(challenges) ? nil : .answer
        }
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
            // A refusal that offers nothing of the list says nothing of the credential; one without any challenge may.
            guard own == nil else { return challenges.isEmpty || route.answers(challenges) ? nil : .answer }
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

    /// The plan that stands in the tables for a list, where the plan of one of its identities is of the running edition.
    private func successor(of route: RoutePlan) -> RoutePlan? {
        route.edition === data.plan.edition ? data.plan.routes[route.index] : nil
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
        // Another identity may want another way for the body.
        if exchange.request.signed == nil { chooseCaution(on: route) }
        switch identity.handshake.judge(answer) {
        // The realm of the token, or what it is fetched with, stands in this very challenge.
        case .challenged(let challenge) where route.learned != nil:
            exchange.record.challenge = HeldChallenge(challenge)
            exchange.machine.choose(again: true)
            return .challenge
        // The scopes of the challenge are asked for when the token that is there has been refused for want of them.
        case .challenged(let challenge) where !challenge.scopes.isEmpty:
            exchange.machine.choose(again: true)
            return .offer
        case .nonce(let nonce, _) where identity.answersNonces && !identity.bindsConnections:
            requestNonces().refused(with: nonce, at: upstream.address.map { ObjectIdentifier($0) })
        default: break
        }
        exchange.machine.choose(again: false)
        return .offer
    }
}

extension RoutePlan {
    /// Whether its identity is one whose scheme is offered.
    fileprivate func answers(_ challenges: [AuthChallenge]) -> Bool {
        choice?.members.first { $0.identity == identity?.name }?.answers(challenges) == true
    }

    /// The plan of the identity that has been chosen; itself, which sends no credential, before that.
    @inline(never) var chosen: RoutePlan {
        guard let position = choice?.position, alternatives.indices.contains(position) else { return self }
        return alternatives[position]
    }
}
