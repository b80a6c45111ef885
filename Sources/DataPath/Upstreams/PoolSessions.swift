/// A connection that many requests share, as its pool sees it.
protocol PoolSession: AnyObject {
    var address: UpstreamAddress? { get }
    /// The pool's to write: the session is to be told that no more requests come.
    var isLeaving: Bool { get set }
    /// Whether one more request may go out on it.
    var isUsable: Bool { get }
    /// The peer takes nothing any more.
    var isStalled: Bool { get }
    /// Requests on it now.
    var load: Int { get }
    var upgrades: UpgradeOffer { get }
}

/// The word of a session's peer on extended CONNECT: in its first SETTINGS or not at all (RFC 8441 §3).
enum UpgradeOffer { case unknown, served, missing }

/// The sessions of one pool, those too that take no more requests.
struct PoolSessions<Session: PoolSession> {
    private(set) var all: [Session] = []

    var count: Int { all.count }
    var isEmpty: Bool { all.isEmpty }

    /// The first session that carries nothing and was not told to end yet.
    var unused: Session? { all.first { $0.load == 0 && !$0.isLeaving } }

    mutating func append(_ session: Session) { all.append(session) }

    /// - Returns: whether it was one of them.
    mutating func remove(_ session: Session) -> Bool {
        guard let position = all.firstIndex(where: { $0 === session }) else { return false }
        all.remove(at: position)
        return true
    }

    /// The one with the fewest requests on it; of an address that is avoided only when there is none else.
    func lightest(at now: UInt64, on address: UpstreamAddress? = nil) -> Session? {
        var best: Int?
        var fewest = 0
        var bestIsAvoided = false
        // They are looked at where they stand: the array holds them, and a count for each would be the search's whole cost.
        all.withUnsafeBufferPointer { sessions in
            for index in sessions.indices {
                Unmanaged.passUnretained(sessions[index])._withUnsafeGuaranteedRef { session in
                    guard !session.isLeaving, session.isUsable, address == nil || session.address === address else {
                        return
                    }
                    let isAvoided = session.address?.isAvoided(at: now) == true
                    let load = session.load
                    if best != nil, bestIsAvoided == isAvoided ? fewest <= load : isAvoided { return }
                    (best, fewest, bestIsAvoided) = (index, load, isAvoided)
                }
            }
        }
        return best.map { all[$0] }
    }
}
