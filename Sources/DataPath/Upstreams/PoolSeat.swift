/// Where a connection stands in its upstream's pool. The pool alone changes it; every number that the pool keeps follows from it.
enum PoolSeat: Equatable {
    /// The pool has not seen it yet.
    case outside
    /// The connection waits until another connection has found out what the upstream speaks.
    case undecided
    /// The connection waits for a socket, of which the limit leaves none.
    case inLine
    /// The connection may have a socket, and waits for the first address of its upstream.
    case unresolved
    /// The connection is dialled at the end of this turn.
    case admitted
    case dialing
    /// The connection waits for what a shared connection's peer offers (RFC 8441 §3).
    case awaitingOffer
    /// The request is told so at the end of this turn.
    case refused(PoolRefusal)
    /// The connection carries a request, or is about to, on a socket of its own.
    case carrying
    /// The connection carries a request as a stream of a shared connection.
    case streaming
    case idle
    /// The connection is idle, for the next request of its owner alone.
    case kept
    /// The connection was idle until now and is about to be closed.
    case ending
    case closed

    /// The connection has a socket, or will get one without asking again.
    var holdsSocket: Bool {
        switch self {
        case .unresolved, .admitted, .dialing, .carrying, .idle, .kept: true
        default: false
        }
    }

    /// The address of the connection is busy with it. Attempts to connect are counted by their `Dialer`.
    var isInFlight: Bool {
        switch self {
        case .dialing, .awaitingOffer, .carrying, .streaming: true
        default: false
        }
    }
}

/// Why the pool has no connection for a request.
enum PoolRefusal: Equatable {
    /// All connections that the limit allows are in use, and as many requests wait for one as may.
    case busy
    /// The upstream's name leads to no address.
    case unresolvable
    /// The request wants to leave HTTP, and the upstream's HTTP/2, which the route insists on, does not offer that.
    case noUpgrade
    /// The shared connection whose offer was awaited is gone.
    case sharedConnectionGone
}

/// The demands of a request on its connection.
struct UpstreamWish {
    /// The connection must not have carried another request.
    var isNew = false
    /// The request cannot be sent again, so it must not go out on a connection that may be stale.
    var isOnce = false
    /// The request wants to leave HTTP: over HTTP/2 by extended CONNECT (RFC 8441), otherwise over HTTP/1.1.
    var leavesHTTP = false
    /// The request needs HTTP/1.1 on a socket of its own where the route leaves the version open.
    var onlyHTTP1 = false
    /// Where the request was lost before: another address is preferred.
    var avoided: UpstreamAddress?
    /// The address that is tried first.
    var wanted: UpstreamAddress?
}

/// A connection, as its pool sees it.
protocol PoolMember: Waiter {
    /// The pool's to write, as is `address`: where the connection leads, once that is known, also after its end.
    var seat: PoolSeat { get set }
    var address: UpstreamAddress? { get set }
    /// The pool writes to it that HTTP/1.1 is needed after all.
    var wish: UpstreamWish { get set }
    /// The owner whose requests alone the connection carries; nil: it carries anybody's.
    var owner: UpstreamOwner? { get }
    /// The authentication by the owner goes on with the next request.
    var isInHandshake: Bool { get }
    /// When the connection became idle last.
    var idleSince: UInt64 { get }
    /// Whether the connection may still be open.
    /// - Precondition: the connection is idle.
    func isFresh(forRequestOnce: Bool) -> Bool
}

/// The configured bounds of an upstream's pool on one loop.
struct PoolBounds {
    /// Sockets that are open or being opened, idle ones too.
    var sockets = Int.max
    /// Requests that may wait for a socket.
    var waiters = 0
    /// Idle connections without an owner, at least one.
    var idle = 256
    /// Idle connections that have an owner, at least one; the route's `limits.connections` is often less.
    var owned = 1024
    var protocols = UpstreamPlan.Protocols.http1
    var usesTLS = false

    init() {}

    init(_ plan: UpstreamPlan) {
        sockets = plan.connectionLimit
        waiters = plan.waiterLimit
        idle = plan.idleConnections
        protocols = plan.protocols
        usesTLS = plan.usesTLS
    }
}
