import Testing

/// An exhaustive walk over all interleavings of one reader (two ticks) and the writer (two publications), on a machine
/// whose stores may wait in a buffer while later loads go ahead: what arm64 does, and x86 too, unless the announcement
/// is sequentially consistent.
struct ReclamationModel {
    enum Announcement { case sequentiallyConsistent, releasing }
    enum Writer { case exchangeThenBump, bumpThenExchange }

    struct State: Hashable {
        // Memory.
        var epoch = 1
        var announced = 0
        var slot = 1
        /// Records that were freed.
        var freed: Set<Int> = []
        /// Stores of the reader's announcement that no one else sees yet.
        var buffer: [Int] = []
        // Reader.
        var readerStep = 0
        var seen = 0
        var pointer = 0
        // Writer.
        var writerStep = 0
        var old = 0
        var tag = 0
    }

    let announcement: Announcement
    let writer: Writer

    private static let readerTick = 5
    private static let writerRound = 4

    /// Whether some interleaving lets the reader use a freed record.
    func canUseAfterFree() -> Bool {
        var visited: Set<State> = []
        var open = [State()]
        while let state = open.popLast() {
            guard visited.insert(state).inserted else { continue }
            if state.freed.contains(state.pointer), (state.readerStep % Self.readerTick) == 3 { return true }
            if let next = reader(state) { open.append(next) }
            if let next = write(state) { open.append(next) }
            if !state.buffer.isEmpty {
                var next = state
                next.announced = next.buffer.removeFirst()
                open.append(next)
            }
        }
        return false
    }

    private func reader(_ state: State) -> State? {
        guard state.readerStep < Self.readerTick * 2 else { return nil }
        var next = state
        next.readerStep += 1
        switch state.readerStep % Self.readerTick {
        case 0: next.seen = state.epoch
        case 1: store(state.seen, announcement, &next)
        case 2: next.pointer = state.slot
        case 3: next.pointer = 0  // used; `canUseAfterFree` looked before this step
        default: store(0, .releasing, &next)
        }
        return next
    }

    private func store(_ value: Int, _ order: Announcement, _ state: inout State) {
        state.buffer.append(value)
        guard order == .sequentiallyConsistent else { return }
        state.announced = value
        state.buffer = []
    }

    private func write(_ state: State) -> State? {
        guard state.writerStep < Self.writerRound * 2 else { return nil }
        var next = state
        next.writerStep += 1
        let step = state.writerStep % Self.writerRound
        switch (step, writer) {
        case (0, .exchangeThenBump), (1, .bumpThenExchange):
            next.old = state.slot
            next.slot = state.slot + 1
        case (1, .exchangeThenBump), (0, .bumpThenExchange):
            next.epoch = state.epoch + 1
            next.tag = next.epoch
        default:
            // Two scans: the second models a later `reclaim`.
            if state.announced == 0 || state.announced >= state.tag { next.freed.insert(state.old) }
        }
        return next
    }
}

@Suite struct ReclamationModelTests {
    @Test func theOrderWeUseIsSafeInEveryInterleaving() {
        #expect(!ReclamationModel(announcement: .sequentiallyConsistent, writer: .exchangeThenBump).canUseAfterFree())
    }

    @Test func aReleasingAnnouncementIsNot() {
        #expect(ReclamationModel(announcement: .releasing, writer: .exchangeThenBump).canUseAfterFree())
    }

    @Test func raisingTheEpochBeforeTheExchangeIsNot() {
        #expect(ReclamationModel(announcement: .sequentiallyConsistent, writer: .bumpThenExchange).canUseAfterFree())
    }
}
