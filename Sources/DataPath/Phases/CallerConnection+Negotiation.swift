internal import HTTP1
internal import Handshakes
internal import Octets
internal import Reactor

/// Requests whose credential authenticates their connection (`UpstreamNegotiation`): the connection comes first, then the credential that is made
/// for it, and tokens of the server may follow.
extension CallerConnection {
    /// The hash that the first token is bound to; a negotiation begins with it.
    func beginNegotiation(on upstream: UpstreamConnection) -> [UInt8]? {
        exchange.negotiation = UpstreamNegotiation(epoch: upstream.group.plan.boundTo?.now ?? 0)
        return upstream.serverEndPoint
    }

    /// The request goes out on the connection that its credential was made for, or on none.
    /// - Returns: nil where it has no such credential.
    func goOnNegotiating() -> Exchange.Action? {
        guard exchange.negotiation?.exchange != nil, exchange.machine.credential != .awaitsConnection else {
            return nil
        }
        guard let connection = exchange.upstream, connection.state == .busy else {
            return exchange.machine.on(.lost(Fault(.upstreamClosed, retry: .unsent), pooled: true))
        }
        return goOn(negotiatingOn: connection)
    }

    /// The credential, or its next message, is there.
    private func goOn(negotiatingOn connection: UpstreamConnection) -> Exchange.Action {
        // Keys may have changed, or an operator may have ended what there was, while the credential was made.
        guard connection.isOfItsIdentity, exchange.negotiation?.epoch == connection.group.plan.boundTo?.now else {
            return loseNegotiation(on: connection)
        }
        if exchange.negotiation?.hasReceived == true {
            guard canReuseHeldAnswer(),
                connection.mayBeReused(
                    answerComplete: true, requestComplete: exchange.request.isComplete,
                    persistent: exchange.answer.isPersistent)
            else { return loseNegotiation(on: connection) }
            connection.goOn()
        } else {
            // A server may tire of a connection while its credential is made, as it tires of idle ones, and may say so before it closes.
            guard connection.isSilent() else { return loseNegotiation(on: connection) }
            connection.countAsPooled()
        }
        expectNothing()
        return exchange.machine.on(.connected)
    }

    private func loseNegotiation(on connection: UpstreamConnection) -> Exchange.Action {
        releaseUpstream(reusable: false)
        return exchange.machine.on(
            .lost(Fault(.upstreamClosed, retry: .unsent), pooled: connection.isPooled))
    }

    /// The request goes out with a credential on this connection.
    func bind(_ upstream: UpstreamConnection) {
        guard let negotiation = exchange.negotiation, let begun = negotiation.exchange else { return }
        let until = begun.lifetime.map { loop.now.addingReportingOverflow($0) }
        upstream.binding = ConnectionBinding(
            epoch: negotiation.epoch, until: until.map { $0.overflow ? .max : $0.partialValue } ?? .max)
        // From here on the connection is this user's alone.
        if exchange.route?.ownsBySubject == true { upstream.owner = upstreamOwner }
    }

    // MARK: - Answers

    /// - Returns: nil where the answer is to be judged like any other.
    func judgeNegotiation(
        _ negotiation: UpstreamNegotiation, _ status: Int, head length: Int, in upstream: UpstreamConnection
    ) -> Exchange.Judgement? {
        guard let begun = negotiation.exchange, status != 407 else { return nil }
        // The route says that such an answer refuses the credential, whatever it proves.
        if status != 401, exchange.route?.identity?.inspectedStatuses.contains(status) == true { return nil }
        let head = UnsafeRawBufferPointer(rebasing: upstream.input[..<length])
        let token = Self.token(of: begun.scheme, in: data.responseHead.values(of: "WWW-Authenticate", in: head))
        if status == 401 {
            guard let token, upstream.mayCarryNext(persistent: exchange.answer.isPersistent, self) else { return nil }
            guard exchange.machine.body != .lost else {
                data.noteGlitch(
                    .unusableChallenge,
                    reason: "the negotiation goes on with a second message, and the request's body is gone; "
                        + "'on_rejected: {max_body: …}' of the route keeps it", of: self)
                return nil
            }
            return negotiation.receive(token, isLast: false) ? .negotiation : nil
        }
        guard begun.wantsProof else { return .answer }
        if let token, negotiation.receive(token, isLast: true) { return .negotiation }
        // Something on the way, or the server before it came to look at the credential, proves nothing.
        guard status < 400 else { return nil }
        return .misconfigured(
            Fault(
                .upstreamUnproven, receivedStatus: status,
                detail:
                    "its answer does not prove who it is: there is no token in WWW-Authenticate; 'mutual: off' of the identity "
                    + "would take its word"))
    }

    /// The decoded token of the first challenge of a scheme; nil where it has none that can be read.
    private static func token(of scheme: String, in lines: [[UInt8]]) -> [UInt8]? {
        let own = AuthChallenge.list(lines).lazy.filter { $0.scheme.matches(scheme) }.compactMap(\.token68).first
        guard let text = own, text.count <= 65536, let token = Base64.decode(text), !token.isEmpty else {
            return nil
        }
        return token
    }
}

extension UpstreamConnection {
    /// Whether the next message of a negotiation can go out on it.
    fileprivate func mayCarryNext(persistent: Bool, _ caller: CallerConnection) -> Bool {
        shared == nil && persistent && caller.exchange.request.isComplete
    }
}
