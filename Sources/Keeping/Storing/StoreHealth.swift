internal import TokenStore

/// The state of the store, as its opening and its answers tell the keeper.
package struct StoreHealth {
    /// Whether the store can be used, as its opening and its answers tell.
    package enum State: Sendable, Equatable {
        case none, serving
        case degraded(String)
        /// Another process owns it: this one makes no password step, for it cannot see which attempts the other has spent.
        case locked(String)
        /// The store cannot be used and is left alone: this process serves from memory.
        case refused(String)
    }

    package var state: State
    /// The rows of the store have been taken up: a disk that fails from then on hides nothing.
    private(set) var isRead: Bool
    /// Changes that the store took, and that it could not.
    private(set) var commits: (good: UInt64, failed: UInt64) = (0, 0)
    /// Tokens that were taken up from the store at boot.
    var restoredTokens = 0
    var lookups = StoreLookups()
    private var lastLookup: UInt64 = 0
    var size = KeptStoreSize()
    /// Operators were told of a store that takes nothing and does not fail either; until it takes something again.
    private var isSlowTold = false
    /// When a degraded store is looked at next.
    var alarm: Alarm?
    /// Asks once more for a store that another process had; blocks for as long as an opening may.
    var reopen: (@Sendable () -> StoreOpening)?
    /// Until then, in nanoseconds.
    private(set) var pause = Self.leastPause

    static let leastPause: UInt64 = 1_000_000_000
    static let mostPause: UInt64 = 60_000_000_000

    init(_ state: State) {
        self.state = state
        isRead = state == .serving
    }

    /// Another process has it.
    package var isLocked: Bool { if case .locked = state { true } else { false } }

    var isDegraded: Bool { if case .degraded = state { true } else { false } }

    /// The store is there and what stands in it is not known: its marks, and what has replaced a refresh token.
    package var isUnread: Bool {
        switch state {
        case .refused: true
        case .degraded: !isRead
        case .none, .serving, .locked: false
        }
    }

    /// For operators.
    var words: String {
        switch state {
        case .none: "memory only"
        case .serving: "serving"
        case .degraded(let reason): "degraded: \(reason)"
        case .locked(let reason), .refused(let reason): "not used: \(reason)"
        }
    }

    // MARK: - As it answers

    enum Turn: Equatable {
        case works
        case degraded(String)
    }

    /// - Parameter isDegraded: the store itself still counts as degraded: a row that was stored with what is held back for it says nothing
    ///   of the disk.
    /// - Returns: what has turned with this answer.
    mutating func note(_ result: Result<Void, StoreFault>, isDegraded: Bool) -> Turn? {
        switch result {
        case .success:
            commits.good += 1
            isSlowTold = false
            guard self.isDegraded, !isDegraded else { return nil }
            state = .serving
            return .works
        case .failure(let fault):
            commits.failed += 1
            guard state == .serving else { return nil }
            state = .degraded("\(fault)")
            return .degraded("\(fault)")
        }
    }

    /// A change that should have been on disk is not. A store that has turned has said so, and a disk that only hangs is told of once until it
    /// has taken something again: not with each grant.
    /// - Returns: whether it is to be told.
    mutating func noteSlow() -> Bool {
        guard state == .serving, !isSlowTold else { return false }
        isSlowTold = true
        return true
    }

    /// - Returns: whether nothing of it had been read before.
    mutating func noteRead() -> Bool {
        defer { isRead = true }
        return !isRead
    }

    /// Numbers a lookup, so that an answer that comes too late is known.
    mutating func nextLookup() -> UInt64 {
        lastLookup += 1
        return lastLookup
    }

    /// The first look at a degraded store, and each one after it in a longer time.
    mutating func beginPause() { pause = Self.leastPause }
    mutating func lengthenPause() { pause = min(2 * pause, Self.mostPause) }
}
