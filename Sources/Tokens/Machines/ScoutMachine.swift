/// On a cold key of a challenge-driven identity one parked request goes out without a credential, to fetch the challenge that
/// a token is made from; the rest stay parked in their loops (docs/design/challenges.md#scout).
///
/// A cold route and identity have one machine. The machine ends when the scout is challenged: the parked wait for the key's flight then.
public struct ScoutMachine: Sendable {
    /// A parked request, where it stands.
    public struct Ticket: Hashable, Sendable {
        /// The data loop that owns the request, from 0.
        public let loop: Int
        /// Unique within the loop, for as long as the request lives.
        public let number: UInt64

        /// Memberwise.
        public init(loop: Int, number: UInt64) {
            self.loop = loop
            self.number = number
        }
    }

    /// A request that may become the scout.
    public struct Parked: Hashable, Sendable {
        /// Names the request in actions.
        public let ticket: Ticket
        /// The path and method whose entry its answer teaches.
        public let entry: LearnedEntry
        /// The whole request is still at hand, so it can be sent again with a credential.
        public let isReplayable: Bool
        /// GET or HEAD.
        public let isSafeMethod: Bool

        /// Memberwise.
        public init(ticket: Ticket, entry: LearnedEntry, isReplayable: Bool, isSafeMethod: Bool) {
            self.ticket = ticket
            self.entry = entry
            self.isReplayable = isReplayable
            self.isSafeMethod = isSafeMethod
        }

        /// Replayable first: a scout that cannot be replayed gets the challenge as its answer.
        fileprivate var rank: Int { (isReplayable ? 2 : 0) + (isSafeMethod ? 1 : 0) }
    }

    /// The keeper's orders, to be carried out in this order.
    public enum Action: Equatable, Sendable {
        /// Goes out without a credential; its answer is reported.
        case dispatch(Ticket)
        /// Go on without a credential: their entry is open.
        case release([Ticket])
        case learnOpen(LearnedEntry)
        /// Wait for the token that the scout's challenge is answered with.
        case handOver([Ticket])
        /// Too many wait (503).
        case refuse(Ticket)
    }

    /// The most requests that wait behind the scout.
    public let limit: Int
    /// In the order they came.
    private(set) var parked: [Parked] = []
    private(set) var scout: Parked?

    /// - Parameter limit: the most requests that wait behind the scout.
    public init(limit: Int) { self.limit = limit }

    /// Nothing is under way, and nobody waits.
    public var isEmpty: Bool { scout == nil && parked.isEmpty }
    /// How many requests wait behind the scout.
    public var waiting: Int { parked.count }

    // MARK: - Events

    /// A request without a known realm came. The first becomes the scout; as many as `limit` wait behind it.
    public mutating func arrived(_ request: Parked) -> [Action] {
        guard scout != nil else {
            parked.append(request)
            return choose()
        }
        guard parked.count < limit else { return [.refuse(request.ticket)] }
        parked.append(request)
        return []
    }

    /// A caller left, or its wait ended. If it was the scout's, the next takes over.
    public mutating func left(_ ticket: Ticket) -> [Action] {
        if scout?.ticket == ticket { return nextScout() }
        parked.removeAll { $0.ticket == ticket }
        return []
    }

    /// The scout's answer was no challenge; its caller has it.
    public mutating func answeredWithoutChallenge(_ ticket: Ticket) -> [Action] {
        guard let scout, scout.ticket == ticket else { return [] }
        let freed = parked.filter { $0.entry == scout.entry }.map(\.ticket)
        parked.removeAll { $0.entry == scout.entry }
        var actions: [Action] = [.learnOpen(scout.entry)]
        if !freed.isEmpty { actions.append(.release(freed)) }
        return actions + nextScout()
    }

    /// The scout got no answer that says anything (refused connection, time-out); its caller has the fault.
    public mutating func failed(_ ticket: Ticket) -> [Action] {
        guard scout?.ticket == ticket else { return [] }
        return nextScout()
    }

    /// The scout was challenged. The keeper starts the flight with its challenge and lets all others wait for it.
    public mutating func challenged(_ ticket: Ticket) -> [Action] {
        guard scout?.ticket == ticket else { return [] }
        scout = nil
        defer { parked = [] }
        return parked.isEmpty ? [] : [.handOver(parked.map(\.ticket))]
    }

    private mutating func nextScout() -> [Action] {
        scout = nil
        return choose()
    }

    private mutating func choose() -> [Action] {
        var best: Int?
        for (index, request) in parked.enumerated() where best.map({ request.rank > parked[$0].rank }) ?? true {
            best = index
        }
        guard let best else { return [] }
        let chosen = parked.remove(at: best)
        scout = chosen
        return [.dispatch(chosen.ticket)]
    }
}
