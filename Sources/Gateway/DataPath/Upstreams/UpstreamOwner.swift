internal import Reactor

/// Who alone may send requests on a connection to an upstream, since the connection itself has been authenticated, or begun to be: NTLM and
/// Negotiate vouch for a connection and not for a request (RFC 4559 §6).
///
/// The pool compares owners and knows nothing else of them.
enum UpstreamOwner: Hashable, Sendable {
    /// A caller's connection, by a number that its loop gives to no other one.
    case caller(UInt64)
}

/// The owned connections of a group that wait for their owners' next requests: one an owner at most.
struct OwnedConnections {
    private var members: [UpstreamOwner: UpstreamConnection] = [:]

    /// At most, a loop and upstream; the route's `limits.connections` is often less.
    static let limit = 1024

    var count: Int { members.count }
    var isEmpty: Bool { members.isEmpty }
    var all: some Sequence<UpstreamConnection> { members.values }

    mutating func take(_ owner: UpstreamOwner) -> UpstreamConnection? { members.removeValue(forKey: owner) }

    /// - Returns: the connection that the owner had there before.
    mutating func put(_ connection: UpstreamConnection, of owner: UpstreamOwner) -> UpstreamConnection? {
        members.updateValue(connection, forKey: owner)
    }

    mutating func remove(_ connection: UpstreamConnection) {
        guard let owner = connection.owner, members[owner] === connection else { return }
        members[owner] = nil
    }

    /// The one that has been without an exchange the longest, a handshake between two of its messages being the last one chosen. Looks at all
    /// of them, which only a bound that is reached asks for.
    /// - Parameter sparing: no such handshake is chosen.
    func idlest(sparing: Bool) -> UpstreamConnection? {
        var found: UpstreamConnection?
        for member in members.values where !sparing || !member.isInHandshake {
            guard let best = found else {
                found = member
                continue
            }
            let isBetter =
                member.isInHandshake == best.isInHandshake
                ? member.idleSince < best.idleSince : best.isInHandshake
            if isBetter { found = member }
        }
        return found
    }
}

extension UpstreamGroup {
    /// Keeps a connection for its owner's next request.
    func keepOwned(_ connection: UpstreamConnection, for owner: UpstreamOwner) {
        if owned.count >= OwnedConnections.limit { closeIdlestOwned() }
        connection.becomeIdle(until: loop.now + plan.idleTimeout)
        if connection.isInHandshake {
            // Whoever waits for it meanwhile has the connect timeout.
            connection.expectNextMessage(by: loop.now + min(Self.handshakePause, plan.connectTimeout / 2))
        }
        owned.put(connection, of: owner)?.close()
        serveWaitingSoon()
        recount()
    }

    /// How long an owner may take at most between two messages of its handshake, before whom nobody else gets the connection: callers that displaced
    /// one another there would all begin again for ever.
    private static let handshakePause: UInt64 = 1_000_000_000

    /// Makes room at a bound.
    /// - Parameter sparing: not by ending a handshake between two messages.
    func closeIdlestOwned(sparing: Bool = false) {
        if let idlest = owned.idlest(sparing: sparing) { discard(idlest) }
    }

    /// The owner is gone.
    func closeOwned(by owner: UpstreamOwner) {
        guard let connection = owned.take(owner) else { return }
        connection.close()
        recount()
    }
}
