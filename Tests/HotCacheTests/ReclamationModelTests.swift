import Testing

/// The protocol of `EpochDomain` and `Reader`, every interleaving and every value that C++ lets a load take: one reader over
/// two ticks, with or without going offline between them, and one writer that publishes twice and reclaims after each.
///
/// Wrong is a reader that follows a link to freed memory, memory that is freed without the reader's use of it having happened before,
/// and a use that the record's making does not happen before.
struct ReclamationModel: Sendable {
    // The orders of the shipped code.
    var epochLoad = Order.sequentiallyConsistent
    var announcement = Order.sequentiallyConsistent
    var slotLoad = Order.sequentiallyConsistent
    var leave = Order.sequentiallyConsistent
    var exchange = Order.sequentiallyConsistent
    var bump = Order.sequentiallyConsistent
    var scan = Order.sequentiallyConsistent
    /// The epoch is raised behind the exchange. The other way round is wrong with any order.
    var bumpsAfterExchange = true

    var ticks = 2
    var rounds = 2

    enum Verdict: Equatable { case safe, usedAfterFree, freedWhileUsed, usedBeforeMade }

    private enum Place { static let epoch = 0, slot = 1, announced = 2, uses = 3, makings = 4 }
    private static let reader = 0
    private static let writer = 1

    private struct State: Hashable {
        var memory = WeakMemory(threads: 2, initial: [1, 1, 0, 0, 0])
        var readerStep = 0
        var tick = 0
        var seen = 0
        var pointer = 0
        var writerStep = 0
        var round = 0
        var retired: [Int: Int] = [:]
        var old = 0
        var tag = 0
        var freed: Set<Int> = []
        /// By record: the reader's last use of it, and its making.
        var uses: [Int: Int] = [:]
        var makings: [Int: Int] = [1: 0]
    }

    func verdict() -> (verdict: Verdict, states: Int) {
        let (wrong, states) = explore(State(), [readerSteps, writerSteps])
        return (wrong ?? .safe, states)
    }

    private func readerSteps(_ state: State, into next: inout [State]) -> Verdict? {
        guard state.tick < ticks else { return nil }
        let me = Self.reader
        var moved = state
        moved.readerStep += 1
        switch state.readerStep {
        case 0:
            for (value, memory) in state.memory.loads(Place.epoch, epochLoad, by: me) {
                moved.memory = memory
                moved.seen = value
                next.append(moved)
            }
        case 1:
            if state.memory.own(Place.announced) != state.seen {
                moved.memory.store(Place.announced, state.seen, announcement, by: me)
            }
            next.append(moved)
        case 2:
            for (value, memory) in state.memory.loads(Place.slot, slotLoad, by: me) {
                moved.memory = memory
                moved.pointer = value
                next.append(moved)
            }
        case 3:
            if state.freed.contains(state.pointer) { return .usedAfterFree }
            guard let making = state.makings[state.pointer],
                state.memory.hasSeen(Place.makings, making, by: me)
            else { return .usedBeforeMade }
            moved.uses[state.pointer] = moved.memory.tick(Place.uses, by: me)
            next.append(moved)
        default:
            moved.readerStep = 0
            moved.tick += 1
            moved.pointer = 0
            // Straight into the next tick, or asleep in between.
            next.append(moved)
            moved.memory.store(Place.announced, 0, leave, by: me)
            next.append(moved)
        }
        return nil
    }

    private func writerSteps(_ state: State, into next: inout [State]) -> Verdict? {
        guard state.round < rounds else { return nil }
        let me = Self.writer
        var moved = state
        moved.writerStep += 1
        switch (state.writerStep, bumpsAfterExchange) {
        case (0, _):
            moved.makings[state.round + 2] = moved.memory.tick(Place.makings, by: me)
            next.append(moved)
        case (1, true), (2, false):
            moved.old = moved.memory.exchange(Place.slot, state.round + 2, exchange, by: me)
            if !bumpsAfterExchange { moved.retired[moved.old] = moved.tag }
            next.append(moved)
        case (2, true), (1, false):
            let before = state.memory.own(Place.epoch)
            _ = moved.memory.exchange(Place.epoch, before + 1, bump, by: me)
            moved.tag = before + 1
            if bumpsAfterExchange { moved.retired[moved.old] = moved.tag }
            next.append(moved)
        default:
            // Two scans a round: the second is a later `reclaim`.
            if state.writerStep == 4 {
                moved.writerStep = 0
                moved.round += 1
            }
            for (value, memory) in state.memory.loads(Place.announced, scan, by: me) {
                var scanned = moved
                scanned.memory = memory
                for (record, tag) in state.retired where value == 0 || tag <= value {
                    if let use = state.uses[record], !memory.hasSeen(Place.uses, use, by: me) { return .freedWhileUsed }
                    scanned.freed.insert(record)
                    scanned.retired[record] = nil
                }
                next.append(scanned)
            }
        }
        return nil
    }
}

@Suite struct ReclamationModelTests {
    @Test func `the shipped orders are safe in every execution`() {
        let (verdict, states) = ReclamationModel(ticks: 3, rounds: 2).verdict()
        #expect(verdict == .safe)
        // An exploration that stops early would find everything safe.
        #expect(states > 20_000)
    }

    @Test func `a slot load that only acquires is not: it may pass the announcement`() {
        #expect(ReclamationModel(slotLoad: .acquire).verdict().verdict == .usedAfterFree)
    }

    @Test func `a relaxed slot load is not: a record may be read before it was written`() {
        #expect(ReclamationModel(slotLoad: .relaxed, ticks: 1).verdict().verdict != .safe)
    }

    @Test func `an announcement that only releases is not`() {
        #expect(ReclamationModel(announcement: .release).verdict().verdict == .usedAfterFree)
    }

    @Test func `a scan that only acquires is not: it may see the reader asleep`() {
        #expect(ReclamationModel(scan: .acquire).verdict().verdict == .usedAfterFree)
    }

    @Test func `an exchange that is not in the total order is not`() {
        #expect(ReclamationModel(exchange: .acquireRelease).verdict().verdict == .usedAfterFree)
    }

    @Test func `leaving without a release is not: a use may sink below it`() {
        #expect(ReclamationModel(leave: .relaxed, ticks: 1).verdict().verdict == .freedWhileUsed)
    }

    @Test func `raising the epoch before the exchange is not`() {
        #expect(ReclamationModel(bumpsAfterExchange: false).verdict().verdict == .usedAfterFree)
    }
}
