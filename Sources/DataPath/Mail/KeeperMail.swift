package import Handshakes
package import HotCache
package import Telemetry
package import Tokens

/// A report of a loop to the keeper: for misses one for each slot and flight, and one for each request where the request itself matters.
package enum LoopReport: Sendable {
    /// A request whose trace is recorded is about to wait; the report that it waits for follows.
    case traced(TracedWait)
    /// A request needs the token of `slot` and there is none to serve.
    case needed(slot: Slot)
    /// The first hit past the refresh point, for this loop and generation.
    case refreshDue(slot: Slot, generation: UInt64)
    /// A request of a challenge-driven route met a path whose realm is not known.
    case cold(ParkedRequest)
    /// The caller of a parked request left.
    case left(ticket: Ticket)
    /// The scout's answer was no challenge.
    case foundOpen(ticket: Ticket)
    /// The scout's exchange ended without an answer that says anything.
    case scoutFailed(ticket: Ticket)
    case challenged(ChallengeOfRequest)
    /// A server has answered a token of ours.
    case negotiated(NegotiationOfRequest)
    /// An upstream took the credential of `slot`.
    case accepted(slot: Slot, generation: UInt64)
}

/// The span of a request, for the grant that it waits for.
package struct TracedWait: Sendable {
    /// What it waits with: the slot of its token, or a ticket of its own.
    package enum Place: Hashable, Sendable {
        case slot(Slot)
        case ticket(Ticket)
    }

    package let place: Place
    package let span: SpanLink
}

/// Names one parked request of one loop. Never reused.
package struct Ticket: Hashable, Sendable {
    package let loop: Int
    /// An odd one belongs to a request that was challenged.
    package let number: UInt64

    package init(loop: Int, number: UInt64) {
        self.loop = loop
        self.number = number
    }

    /// Its request was sent and challenged, and goes out again when it is given a credential.
    package var followsChallenge: Bool { number & 1 == 1 }
}

package struct ParkedRequest: Sendable {
    package let ticket: Ticket
    package let route: Int
    /// The route's slot where it has one.
    package let slot: Slot?
    package let path: [UInt8]
    package let method: [UInt8]
    package let isReplayable: Bool
    /// GET or HEAD.
    package let isSafe: Bool
    /// For whom, where each end user has a token.
    package let subject: RequestSubject?
    /// The hash of the server's certificate, where the credential is bound to the connection (RFC 5929 §4).
    package var serverEndPoint: [UInt8]?
}

package struct NegotiationOfRequest: Sendable {
    package let ticket: Ticket
    package let route: Int
    package let negotiation: any Negotiation
    /// The server's token.
    package let token: [UInt8]
    /// The server has answered the request with it.
    package let isLast: Bool
    /// The request has been sent again before, with another credential.
    package let isReplay: Bool
    /// For whom, where each end user has a token.
    package let subject: RequestSubject?
}

package struct ChallengeOfRequest: Sendable {
    /// Nil where nobody waits: the answer went to the caller.
    package var ticket: Ticket?
    /// The ticket under which this request was made the scout.
    package let scout: Ticket?
    package let loop: Int
    package let route: Int
    package let path: [UInt8]
    package let method: [UInt8]
    package let challenge: Handshakes.Challenge
    /// The slot and generation that were sent; nil for none.
    package let sent: (slot: Slot, generation: UInt64)?
    package let isReplay: Bool
    /// The request is not sent again. Its answer waits only until the token that was refused is served no more.
    package let isFinal: Bool
    /// The credential that was sent is the one that ended the request's wait, and not one that has taken its place meanwhile.
    package let justGranted: Bool
    /// A token of the slot has been taken on this path since the route has been watched.
    package let hadTaken: Bool
    package let subject: RequestSubject?
}

/// An order of the keeper to a loop.
package enum KeeperOrder: Sendable {
    /// Every request that waits for `slot` goes on.
    case settled(slot: Slot, TokenAnswer)
    case request(Ticket, TokenAnswer)
    /// The next answer that is no refusal of this slot's credential is to be told again.
    case wantsSuccess(slot: Slot)
    /// Until then challenges of this slot on this route are to be told with what was taken there.
    case watch(slot: Slot, route: Int, until: UInt64)
    /// No connection that the identity has authenticated so far carries another request.
    case ended(ConnectionEpoch)
}

package enum TokenAnswer: Sendable {
    /// Load this slot (again).
    /// - Parameter granted: the generation that was granted for this very wait; 0 where the token is older.
    case use(slot: Slot, granted: UInt64)
    /// Send these bytes, which are not in the hot cache: the one try of a secret that has not succeeded yet.
    case carry(Secret, slot: Slot, generation: UInt64)
    /// Send these bytes, which are this request's alone and good once.
    case once(Secret, negotiation: (any Negotiation)? = nil)
    /// The credential was refused, and there may be a better one for another connection.
    case anew
    /// Go out without a credential.
    case bare(scout: Bool)
    /// Ask again, as a request of its own.
    case retry
    /// The slot is no key's any more, or its token needs what only the request has: ask again with that, where the route has it.
    case gone
    /// The refusal stands.
    case final
    /// The same, and why, in safe text for the caller.
    case refused(String)
    /// The caller gets the challenge as received.
    case pass
    case fault(Fault)
}

/// For whom a request is, as the keeper is told.
package struct RequestSubject: Sendable {
    /// The subject in the token's key: a name, the digest of the caller's token, or a `URLKey`.
    package let key: ByteString
    /// The caller's token itself.
    package let token: Secret?
}

/// The keeper's end of the mail, as a loop sees it.
package protocol KeeperInbox: AnyObject, Sendable {
    /// - Returns: false when the keeper's mailbox is full.
    func send(_ report: LoopReport, from loop: Int) -> Bool
}
