internal import HTTP1
internal import HTTP2
internal import Reactor

/// Requests for destinations that no route names: what a forward proxy's and a transparent listener's callers send beside what we are
/// here for. They never meet a credential.
extension CallerConnection {
    /// The fault of a request whose target is not in the form that is required here (RFC 9112 §3.2), or names another host than its
    /// connection.
    func checkForm() -> Fault? {
        let form = data.requestHead.targetForm
        if form == .authority {
            return listener.forward.mode == .forward && peer.authority == nil ? nil : Fault(.connectRefused)
        }
        if let authority = peer.authority {
            // A connection that was made for one host carries no requests for another: CONNECT authority, SNI and Host must agree
            // (docs/security/guarantees.md#invariant-13).
            guard equalsIgnoringCase(requestHost, authority) else { return Fault(.misdirected) }
            return nil
        }
        guard listener.forward.mode == .forward, stream == nil else { return nil }
        // In origin form nobody is named, and we are nobody's origin here.
        return form == .absolute ? nil : Fault(.originFormRefused)
    }

    /// CONNECT (RFC 9110 section 9.3.6).
    func serveConnect() -> Exchange.Action {
        guard let range = data.requestHead.authority ?? data.requestHead.host,
            let destination = Destination(authority: input[range], defaultPort: nil)
        else { return .fault(Fault(.malformedRequest)) }
        if stream == nil {
            // Some callers send the tunnel's bytes without waiting for our word. Where it is a refusal they must not pass for requests: what
            // is inside of a tunnel may be somebody else's choice than the caller's.
            exchange.request.keepsAlive = false
            // And they may still be on their way when a refusal is sent: it is no last word behind which nothing comes.
            exchange.request.asksToClose = false
            // Whether such bytes are a body or the tunnel's is answered differently by others on the way (RFC 9110 section 9.3.6). An empty
            // body, which npm's client announces, has none.
            guard exchange.request.isComplete else { return .fault(Fault(.malformedRequest)) }
        }
        if let interception = listener.forward.interception, interception.covers(destination.host),
            let route = data.route(for: destination, of: listener)
        {
            if let fault = admit(to: route) { return .fault(fault) }
            intercept(destination, for: route)
            return .none
        }
        exchange.request.opensTunnel = true
        return serveUnmatched(destination)
    }

    /// No route takes the request.
    func serveUnmatched() -> Exchange.Action {
        guard listener.forward.mode != .gateway, listener.forward.tunnelsUnmatched else {
            return .fault(Fault(.noRoute))
        }
        // A request whose TLS ended here would need TLS on the far side too, with a check that nobody configured.
        guard peer.authority == nil else { return .fault(Fault(.noRoute)) }
        if let original = peer.destination { return serveUnmatched(Destination(original)) }
        guard data.requestHead.targetForm == .absolute, isPlainScheme,
            let range = data.requestHead.authority,
            let destination = Destination(authority: input[range], defaultPort: 80)
        else { return .fault(Fault(.noRoute)) }
        return serveUnmatched(destination)
    }

    private func serveUnmatched(_ destination: Destination) -> Exchange.Action {
        guard listener.forward.tunnelsUnmatched else { return .fault(Fault(.noRoute)) }
        // Whom one route refuses has no right to the proxy as such.
        for route in listener.routes { if let fault = admit(to: route) { return .fault(fault) } }
        guard let open = data.openDestination(to: destination, resembling: listener.routes.first) else {
            return .fault(Fault(.tooManyConnections, retryAfter: 1))
        }
        let route = open.route
        exchange.route = route
        exchange.chosenUpstream = open.group
        if let fault = guardCredential(of: route) { return .fault(fault) }
        if let placeholders = route.placeholders, let fault = refuseMisplaced(placeholders, on: route) {
            return .fault(fault)
        }
        if !exchange.request.opensTunnel, let fault = guardConnection(of: route) { return refuse(unbound: fault) }
        prepareReplay(on: route)
        return exchange.machine.on(.routed(.unneeded))
    }

    private var isPlainScheme: Bool {
        let target = input[data.requestHead.target]
        return target.count > 7
            && equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: target[..<7]), Array("http://".utf8))
    }

    // MARK: - Tunnels

    /// Passes a connection on that is none of ours, whatever it speaks.
    func begin(tunnelTo destination: Destination) {
        borrowExchange()
        exchange.record.startedAt = loop.now
        exchange.request.keepsAlive = false
        exchange.request.opensTunnel = true
        isRedirected = true
        enterExchange()
        for route in listener.routes where admitPeer(to: route) != nil { return close() }
        guard let open = data.openDestination(to: destination, resembling: listener.routes.first) else {
            return close()
        }
        exchange.route = open.route
        exchange.chosenUpstream = open.group
        perform(exchange.machine.on(.routed(.unneeded)))
    }

    private static let established = Array("HTTP/1.1 200 Connection Established\r\n\r\n".utf8)

    /// Connected to where a CONNECT wanted to go: from here on nothing is HTTP's.
    func openTunnel() {
        exchange.record.sentAt = loop.now
        exchange.answer.status = 200
        exchange.request.keepsAlive = false
        if isRedirected {
            exchange.answer.hasBegun = true
            return beginTunnel()
        }
        let sent: Bool
        var head = Self.established
        if let stream {
            sent = head.withUnsafeMutableBytes { stream.send(response: $0, ended: false) }
        } else {
            sent = head.withUnsafeBytes { send($0) }
        }
        guard sent else { return close() }
        exchange.answer.hasBegun = true
        beginTunnel()
    }

    // MARK: - Interception

    /// Says that the tunnel stands, and is itself at its other end.
    private func intercept(_ destination: Destination, for route: RoutePlan) {
        // Inside of a stream of HTTP/2, or of another TLS connection, ours would need a wire of its own.
        guard stream == nil, tls == nil else {
            return answer(
                Fault(.connectRefused, detail: "an intercepted host needs HTTP/1.1 to the proxy, without TLS"))
        }
        let sent = Self.established.withUnsafeBytes { send($0) }
        guard sent else { return close() }
        exchange.answer.status = 200
        data.account(self)
        start = exchange.request.headLength
        leave()
        data.intercept(self, destination: destination, route: route)
    }
}
