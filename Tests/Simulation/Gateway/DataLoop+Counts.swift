@testable import DataPath
@testable import Reactor

/// What a data loop holds, by the names of its parts.
extension DataLoop {
    var isEmptyOfCallers: Bool { callers.isEmpty && arrivals.isEmpty }
    var waitingCount: Int { desk.waiters + desk.parked.count }
    var blocksInUse: Int { buffers.pool.taken }
    var exchangesInUse: Int { exchanges.lent }
}
