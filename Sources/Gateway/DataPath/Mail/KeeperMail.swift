internal import Handshakes
internal import HotCache

/// What a loop tells the keeper. One mail a slot and flight for misses; one a request where the request itself matters.
enum LoopReport: Sendable {
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
    /// An upstream took the credential of `slot`.
    case accepted(slot: Slot, generation: UInt64)
}

/// Names one parked request of one loop. Never reused.
struct Ticket: Hashable, Sendable {
    let loop: Int
    let number: UInt64
}

struct ParkedRequest: Sendable {
    let ticket: Ticket
    let route: Int
    /// The route's slot where it has one.
    let slot: Slot?
    let path: [UInt8]
    let method: [UInt8]
    let isReplayable: Bool
    /// GET or HEAD.
    let isSafe: Bool
    /// For whom, where each end user has a token.
    let subject: RequestSubject?
}

struct ChallengeOfRequest: Sendable {
    /// Nil where nobody waits: the answer went to the caller.
    var ticket: Ticket?
    /// The ticket under which this request was made the scout.
    let scout: Ticket?
    let loop: Int
    let route: Int
    let path: [UInt8]
    let method: [UInt8]
    let challenge: Handshakes.Challenge
    /// The slot and generation that were sent; nil for none.
    let sent: (slot: Slot, generation: UInt64)?
    let isReplay: Bool
    /// The request is not sent again. Its answer waits only until the token that was refused is served no more.
    let isFinal: Bool
    /// What was sent is what the request's wait was ended with, and not what has taken its place meanwhile.
    let justGranted: Bool
    /// A token of the slot has been taken on this path since the route has been watched.
    let hadTaken: Bool
    let subject: RequestSubject?
}

/// What the keeper tells a loop.
enum KeeperOrder: Sendable {
    /// Every request that waits for `slot` goes on.
    case settled(slot: Slot, TokenAnswer)
    case request(Ticket, TokenAnswer)
    /// The next answer that is no refusal of this slot's credential is to be told again.
    case wantsSuccess(slot: Slot)
    /// Until then challenges of this slot on this route are to be told with what was taken there.
    case watch(slot: Slot, route: Int, until: UInt64)
}

enum TokenAnswer: Sendable {
    /// Load this slot (again).
    /// - Parameter granted: the generation that was granted for this very wait; 0 where the token is older.
    case use(slot: Slot, granted: UInt64)
    /// Send these bytes, which are not in the hot cache: the one try of a secret that has not succeeded yet.
    case carry(Secret, slot: Slot, generation: UInt64)
    /// Send these bytes, which are this request's alone and good once.
    case once(Secret)
    /// Go out without a credential.
    case bare(scout: Bool)
    /// Ask again, as a request of its own.
    case scout
    /// The slot is no key's any more, or its token needs what only the request has: ask again with that, where the route has it.
    case gone
    /// The refusal stands.
    case final
    /// The caller gets the challenge as received.
    case pass
    case fault(Fault)
}
