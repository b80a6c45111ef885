internal import HTTP1
internal import Handshakes
internal import Reactor
internal import Telemetry

/// The life of a request, in the order of its phases.
///
/// ```
/// accept → read head → frame → route → admit → guard → subject → replay → [body] → token
///        → connection → edit head → send → read answer's head → [look] → [challenge?]
///        → edit answer's head → relay body → finish → log
/// ```
///
/// The request's phases stand in one order, in `runPhases`, and the answer's in another, in `takeAnswer` and `relayAnswer`. Between them and
/// behind them the machine (`Exchange`) leads, because events decide the order: `perform` does what it says.
extension CallerConnection {
    // MARK: - The request, until it needs a token

    func runPhases() -> Exchange.Action {
        // First of all the framing: until we know where this request ends, nothing that follows may be believed.
        if let fault = frame() { return .fault(fault) }
        if listener.edition !== data.plan.edition { renewListener() }
        // The route before admission: who is admitted is the route's word.
        if data.requestHead.targetForm == .authority { return serveConnect() }
        guard var route = findRoute() else { return serveUnmatched() }
        if route.isList { route = route.chosen }
        exchange.route = route
        // Admission before anything that costs us or the issuer something.
        if let fault = admit(to: route) { return .fault(fault) }
        // A body that is announced too large costs nobody a token or a connection.
        if case .length(let length) = exchange.request.framing, length > data.limits.bodySize {
            return .fault(Fault(.bigBody))
        }
        // A request that must not meet a credential is refused before one is looked up.
        if let fault = guardCredential(of: route) { return .fault(fault) }
        if let placeholders = route.placeholders, let fault = refuseMisplaced(placeholders, on: route) {
            return .fault(fault)
        }
        // A credential that authenticates its connection goes out on no connection that others share.
        if route.bindsConnections, let fault = guardConnection(of: route) { return refuse(unbound: fault) }
        // For whom, before anything is asked in anybody's name.
        if let fault = findSubject(on: route) { return .fault(fault) }
        // Behind admission and the search for a loop: that is what somebody who counts hops is looking for.
        if answeredAsLastHop() { return .none }
        // Nothing from here on has a meaning for it: it needs no token and goes nowhere.
        if let stub = route.tokenStub {
            serveTokenStub(stub)
            return .none
        }
        prepareReplay(on: route)
        // The body before the token where it is signed with it: a caller that sends slowly must not hold up others at the keeper.
        if route.signsBody, gathers(on: route) { return .none }
        return seekToken(on: route)
    }

    /// The token before the connection: a wait for it must not hold an upstream's connection.
    func seekToken(on route: RoutePlan) -> Exchange.Action { exchange.machine.on(.routed(lookUpToken(for: route))) }

    // MARK: - In the machine's order

    /// Does what the machine says, one action after the other, until there is nothing to do before the next event: the desk's, the upstream
    /// connection's, the caller's or a deadline's.
    /// - Parameter upstream: the exchange's, where it is at hand.
    func perform(_ first: Exchange.Action, on upstream: UpstreamConnection? = nil) {
        var action = first
        var isAtHand = upstream != nil
        while true {
            switch action {
            case .none: return
            // Then the desk has a token or a fault.
            case .askToken(let slot):
                exchange.record.cache = .wait
                expectToken()
                action = data.desk.wait(self, slot: slot)
            case .parkCold:
                exchange.record.cache = .grant
                expectToken()
                action = data.desk.parkCold(self)
            // At once, or when the connection is made.
            case .connect(let fresh):
                action = connect(fresh: fresh)
                isAtHand = false
            // Then the answer: `takeAnswer`. Bound to a name, the connection would be counted.
            case .send where isAtHand: action = sendRequest(to: upstream!)
            case .send: action = sendRequest()
            // Then the keeper's verdict, or the end of the pause.
            case .reportAndPark:
                expectToken()
                action = data.desk.report(self)
            case .pause(let conflict):
                return expect(by: loop.now + ConflictPause.nanoseconds(after: conflict), kind: Deadline.pause)
            // Then the answer's end.
            case .reportOpenAndRelay:
                data.desk.reportOpen(self)
                action = .relay
            case .relay where isAtHand: action = relayAnswer(from: upstream!)
            case .relay: action = relayAnswer()
            case .refuseFinally: action = refuseFinally()
            case .seekToken:
                guard let route = exchange.route else { return }
                action = seekToken(on: route)
            case .fault(let fault): return answer(fault)
            case .finish: return nextRequest()
            }
        }
    }

    private func connect(fresh: Bool) -> Exchange.Action {
        guard let route = exchange.route else { return .none }
        var fresh = fresh
        exchange.record.tokenAt = loop.now
        exchange.record.replayed = exchange.machine.replayed
        if exchange.upstream != nil || !exchange.isPlain, let action = goOnHere(else: &fresh) { return action }
        // A secret on trial goes out once: a stale pooled connection would leave open whether it was judged.
        if case .carried = exchange.machine.credential { fresh = true }
        let group: UpstreamGroup =
            if let chosen = exchange.chosenUpstream { chosen } else { data.group(route.upstream) }
        let connection = group.take(
            for: self, fresh: fresh || exchange.request.opensTunnel, upgrades: exchange.request.upgrades,
            avoiding: exchange.lostAt, wanting: exchange.nonces?.proxy.home,
            once: !exchange.canBeRepeated, owner: route.ownsConnections ? upstreamOwner : nil,
            binds: exchange.bindsConnection)
        exchange.upstream = connection
        exchange.record.upstreamAddress = connection.address?.logAddress
        expectNothing()
        guard connection.state == .busy else { return .none }
        let action = exchange.machine.on(.connected)
        // Done here, where the connection is at hand.
        if case .send = action { return sendRequest(to: connection) }
        return action
    }

    /// The request has been out before, or something has happened to it.
    /// - Parameter fresh: set where it goes out on a new connection.
    /// - Returns: nil where it leaves the connection that it had.
    @inline(never) private func goOnHere(else fresh: inout Bool) -> Exchange.Action? {
        if exchange.negotiation != nil, let action = goOnNegotiating() { return action }
        if exchange.upstream != nil {
            if exchange.request.bodyBytes > 0, leavesCutBody() { fresh = true }
            let isReusable = canReuseHeldAnswer()
            if isReusable, let connection = connectionOfNonce() {
                connection.goOn()
                expectNothing()
                return exchange.machine.on(.connected)
            }
            releaseUpstream(reusable: isReusable)
        }
        if exchange.negotiation != nil { exchange.negotiation = nil }
        if exchange.nonces != nil {
            forgetNonceOfConnection()
            if mistrustsConnections || exchange.nonces?.proxy.wantsAnew == true { fresh = true }
        }
        return nil
    }

    private func expectToken() {
        expect(
            by: loop.now + (exchange.route?.identity?.acquireTimeout ?? 0) + DataLoop.tokenGrace, kind: Deadline.token)
    }

    // MARK: - The answer's head

    /// - Returns: nil to read on, after an answer that is not the last one, or where the body is to be seen first.
    func takeAnswer(head length: Int, from upstream: UpstreamConnection) -> Exchange.Action? {
        let status = data.responseHead.status
        let opensTunnel = exchange.request.upgrades && (upstream.stream == nil ? status == 101 : status == 200)
        if opensTunnel, upstream.stream == nil, !isSwitchedAsAsked(by: upstream) {
            return .fault(Fault(.upstreamGarbage, detail: "it switches to another protocol than was asked for"))
        }
        if status < 200, !opensTunnel { return take(interim: status, length: length, from: upstream) }
        exchange.answer.status = opensTunnel ? 101 : status
        exchange.record.usedHTTP2 = upstream.stream != nil
        upstream.noteAnswer(data.responseHead, in: upstream.input.octets)
        exchange.record.firstByteAt = loop.now
        let framing = data.responseHead.framing(
            forMethodHEAD: exchange.request.method == .head || exchange.caution.isProbe, connect: false)
        // Over HTTP/2 the end is told beside the body, whatever length was announced.
        exchange.answer.body = upstream.stream == nil || framing == .none ? BodyReader(framing) : .untilClose
        exchange.answer.isPersistent = data.responseHead.keepAlive && framing != .untilClose
        exchange.answer.headLength = length
        exchange.answer.headFraming = framing
        // The proxy's word to us; the caller has no part in it.
        if status == 407, upstream.group.plan.isReadByProxy { return takeProxyChallenge(from: upstream, head: length) }
        if data.responseHead.hasChallenges { ownIfBound(upstream) }
        let bringsNonce = takeNonce(of: upstream, head: length)
        if let nonces = exchange.nonces {
            if upstream.group.plan.isReadByProxy, !passProxy(nonces, of: upstream, head: length) {
                return .fault(Fault(.upstreamUnproven, detail: "the proxy does not prove that it knows the password"))
            }
            if status != 401, !review(nonces, of: upstream, head: length) {
                return .fault(
                    Fault(
                        .upstreamUnproven, detail: "its Authentication-Info does not prove that it knows the password")
                )
            }
        }
        if status == 401, exchange.nonces != nil, isUnauthenticated(upstream) {
            return exchange.machine.on(
                .lost(Fault(.upstreamRefusedCredential, retry: .unsent, receivedStatus: 401), pooled: true))
        }
        if beginLook(at: status, in: upstream) { return nil }
        return follow(judge(status, head: length, body: nil, in: upstream, bringsNonce: bringsNonce))
    }

    /// The machine's word on the answer. A probe that met no challenge has served: the request itself is sent, and its answer counts.
    func follow(_ judgement: Exchange.Judgement) -> Exchange.Action {
        exchange.caution.isProbe && judgement == .answer
            ? exchange.machine.on(.probed) : exchange.machine.on(.answered(judgement))
    }
}
