internal import HTTP2
internal import Reactor

/// Requests that want to leave HTTP, at an upstream that may speak HTTP/2. There only extended CONNECT does that (RFC 8441), and whether it is
/// served stands in the peer's first SETTINGS: a request waits for them, within the connect timeout, and not longer than that once.
extension UpstreamGroup {
    /// Gives a request to a session, at once or when the session's peer has said what it offers.
    func take(_ session: UpstreamSession, for connection: UpstreamConnection) {
        guard connection.leavesHTTP else { return connection.use(session) }
        offersAwaited.append(connection)
        judgeOffers()
    }

    /// What is offered may be known by now, or its session gone.
    func judgeOffers() {
        guard !offersAwaited.isEmpty else { return }
        defer { recount() }
        let waiting = offersAwaited
        offersAwaited.removeAll()
        for connection in waiting where connection.state == .connecting {
            guard let session = lightestSession() else {
                connection.lose(Fault(.upstreamClosed, retry: .unsent))
                continue
            }
            if session.session.servesExtendedConnect {
                connection.use(session)
            } else if !session.session.knowsPeer {
                offersAwaited.append(connection)
            } else if acceptsHTTP1(for: connection) {
                connection.beginAnew()
                start(connection)
            }
        }
    }

    /// The upstream speaks HTTP/2 and does not serve extended CONNECT: the request goes over HTTP/1.1 where the route leaves that open.
    /// - Returns: false when it does not; the request is over then.
    func acceptsHTTP1(for connection: UpstreamConnection) -> Bool {
        guard plan.protocols == .http2 else {
            connection.insistsOnHTTP1 = true
            return true
        }
        // Put off: the user holds the connection before it hears of it.
        loop.putOffToEndOfTurn {
            connection.lose(
                Fault(
                    .upstreamOffersNoUpgrade, retry: .never,
                    detail: "the upstream's HTTP/2 does not offer extended CONNECT (RFC 8441); `http: auto` or `1.1` "
                        + "would take HTTP/1.1"))
        }
        return false
    }
}
