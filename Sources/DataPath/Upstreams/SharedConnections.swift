/// A connection that many requests share, as its pool sees it.
protocol SharedConnection: AnyObject {
    var address: UpstreamAddress? { get }
    /// The pool's to write: the connection is to be told that no more requests come.
    var isLeaving: Bool { get set }
    /// Whether one more request may go out on it.
    var isUsable: Bool { get }
    /// The peer takes nothing any more.
    var isStalled: Bool { get }
    /// Requests on it now.
    var load: Int { get }
    var upgrades: UpgradeOffer { get }
}

/// The word of a connection's peer on extended CONNECT: in its first SETTINGS or not at all (RFC 8441 §3).
enum UpgradeOffer { case unknown, served, missing }

/// The shared connections of one pool, those too that take no more requests.
struct SharedConnections<Shared: SharedConnection> {
    private(set) var all: [Shared] = []

    var count: Int { all.count }
    var isEmpty: Bool { all.isEmpty }

    /// The first one that carries nothing and was not told to end yet.
    var unused: Shared? { all.first { $0.load == 0 && !$0.isLeaving } }

    mutating func append(_ connection: Shared) { all.append(connection) }

    /// - Returns: whether it was one of them.
    mutating func remove(_ connection: Shared) -> Bool {
        guard let position = all.firstIndex(where: { $0 === connection }) else { return false }
        all.remove(at: position)
        return true
    }

    /// The one with the fewest requests on it; of an address that is avoided only when there is none else.
    func lightest(at now: UInt64, on address: UpstreamAddress? = nil) -> Shared? {
        var best: Int?
        var fewest = 0
        var bestIsAvoided = false
        // They are looked at where they stand: the array holds them, and a count for each would be the search's whole cost.
        all.withUnsafeBufferPointer { shared in
            for index in shared.indices {
                Unmanaged.passUnretained(shared[index])._withUnsafeGuaranteedRef { connection in
                    guard !connection.isLeaving, connection.isUsable, address == nil || connection.address === address
                    else {
                        return
                    }
                    let isAvoided = connection.address?.isAvoided(at: now) == true
                    let load = connection.load
                    if best != nil, bestIsAvoided == isAvoided ? fewest <= load : isAvoided { return }
                    (best, fewest, bestIsAvoided) = (index, load, isAvoided)
                }
            }
        }
        return best.map { all[$0] }
    }
}
