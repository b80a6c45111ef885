internal import HTTP1
internal import HTTP2
internal import Reactor

/// Callers that authenticate the connection to the upstream itself (`UpstreamOwner`): it is theirs alone from then on, and ends with them.
extension CallerConnection {
    /// The owner whose connections the request may go out on, besides those that are nobody's.
    var upstreamOwner: UpstreamOwner? {
        if let route = exchange.route, route.ownsBySubject {
            return subject(on: route).map { data.owner(for: $0.key) }
        }
        return isOwner ? data.owners[ObjectIdentifier(self)] : nil
    }

    /// Whether the request brings a credential that authenticates its connection, and if so, whether there can be a connection for it.
    /// - Precondition: `data.requestHead` is this request's, and the route passes such a credential on.
    func guardConnection(of route: RoutePlan) -> Fault? {
        guard data.requestHead.bindsConnection(in: input.octets, route.edits) else { return nil }
        exchange.bindsConnection = true
        // Streams of many users may share a connection of HTTP/2, on either side.
        guard stream == nil else { return Fault(.connectionShared) }
        guard route.upstream.protocols != .http2 else {
            return Fault(
                .connectionShared,
                detail:
                    "NTLM and Negotiate authenticate a connection, and this route's upstream is spoken to in HTTP/2 "
                    + "alone, whose connections are shared; `http: auto` or `1.1` would take HTTP/1.1")
        }
        return nil
    }

    /// Ends a request that brings such a credential and cannot have a connection of its own. Over HTTP/2 the caller is told to come back
    /// over HTTP/1.1 (RFC 9113 §7).
    func refuse(unbound fault: Fault) -> Exchange.Action {
        guard let stream else { return .fault(fault) }
        exchange.record.fault = fault.kind
        stream.cancel(.http11Required)
        close()
        return .none
    }

    /// From here on the connection is this caller's alone.
    func own(_ upstream: UpstreamConnection) {
        if !isOwner { data.addOwner(self) }
        isOwner = true
        upstream.owner = upstreamOwner
    }

    /// The answer may go on with an authentication of its connection.
    /// - Precondition: `data.responseHead` is this answer's.
    func ownIfBound(_ upstream: UpstreamConnection) {
        // A shared connection has been authenticated by nobody: no such credential went out on it.
        guard let route = exchange.route, route.bindsConnections, upstream.stream == nil,
            data.responseHead.bindsConnection(in: upstream.input.octets)
        else { return }
        if stream == nil {
            if upstream.owner == nil { own(upstream) }
            // With another answer such a token ends the authentication (RFC 4559 §4.1).
            upstream.isInHandshake = exchange.answer.status == 401 || exchange.answer.status == 407
        } else {
            // Its owner would be a connection that many may share, so it has none and ends with the answer.
            exchange.answer.isPersistent = false
        }
    }

    /// The caller is gone, and with it what it owned.
    func disown() {
        guard isOwner else { return }
        isOwner = false
        data.removeOwner(self)
    }
}
