internal import DataPath
internal import Handshakes
internal import Tokens

/// Credentials that authenticate connections: the messages behind the first one, and the end of what they have authenticated.
extension Keeper {
    func negotiated(_ report: NegotiationOfRequest) {
        let ticket = report.ticket
        guard let identity = catalogue.routesByNumber[report.route]?.identity,
            let handshake = identity.plan.handshake as? any OneTimeHandshake
        else { return answer(ticket, .fault(Fault(.internalFault))) }
        guard oneTime.tickets.enter(ticket, of: identity) else {
            return answer(ticket, .fault(Fault(.tooManyWaiters, retryAfter: 1)))
        }
        start { keeper in
            let found = await keeper.proceed(with: report, identity, by: handshake)
            if keeper.oneTime.tickets.remove(ticket) { keeper.answer(ticket, found) }
        }
    }

    private func proceed(
        with report: NegotiationOfRequest, _ identity: KeptIdentity, by handshake: any OneTimeHandshake
    ) async -> TokenAnswer {
        do throws(Handshakes.GrantFailure) {
            let next = try await report.negotiation.answer(report.token, isLast: report.isLast)
            if let next { return .once(Self.line(of: next, by: handshake), negotiation: report.negotiation) }
            return report.isLast ? .pass : refused(report, by: handshake)
        } catch {
            identity.note(error, asking: nil, at: now)
            switch error {
            case .timedOut:
                return .fault(Fault(Tokens.GrantFailure(error), retryAfter: 1, detail: error.toldToCallers))
            default:
                guard report.isLast else { return refused(report, by: handshake) }
                return .fault(
                    Fault(.upstreamUnproven, detail: "its answer does not prove who it is: \(error.toldToCallers)"))
            }
        }
    }

    /// The server has nothing more to say, or says in its token why it does not serve: another credential may do.
    private func refused(_ report: NegotiationOfRequest, by handshake: any OneTimeHandshake) -> TokenAnswer {
        guard !report.isReplay else { return .final }
        handshake.noteRefusal(of: report.subject.flatMap { EndUser($0) })
        return .anew
    }

    /// No request goes out any more on a connection that the identity has authenticated until now.
    func endConnections(of identity: KeptIdentity) {
        guard identity.plan.bindsConnections else { return }
        identity.plan.connections.rise()
        for loop in 0..<loopCount { order(.ended(identity.plan.connections), to: loop) }
    }

    /// The word of an operator: also what the scheme itself holds is had anew.
    func forgetCredentials(of identity: KeptIdentity) {
        (identity.plan.handshake as? any OneTimeHandshake)?.forget()
        identity.denials = [:]
        endConnections(of: identity)
    }
}
