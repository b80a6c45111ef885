import Testing

/// A walk along a chain of `KeyTable`, against a writer that takes both entries out, in either order, and reclaims after each: every
/// interleaving and every value that C++ lets a load take.
///
/// The chain is head → A → B. What is new beside `ReclamationModel` is the second link: a reader may stand on A when A is unlinked,
/// and go on to a B that was unlinked meanwhile.
struct KeyChainModel: Sendable {
    var linkLoad = Order.sequentiallyConsistent
    var unlinking = Order.sequentiallyConsistent
    var scan = Order.sequentiallyConsistent
    /// The entry that goes first is the chain's head. Otherwise A's link is changed, then the head's.
    var headFirst = true
    /// An entry is retired with an epoch of its own, behind its unlinking.
    var bumpsForEach = true
    var ticks = 2

    enum Verdict: Equatable { case safe, usedAfterFree, freedWhileUsed }

    private enum Place { static let epoch = 0, head = 1, next = 2, announced = 3, uses = 4 }
    private static let (reader, writer) = (0, 1)
    private static let (a, b) = (1, 2)

    private struct State: Hashable {
        var memory = WeakMemory(threads: 2, initial: [1, 1, 2, 0, 0])
        var readerStep = 0
        var tick = 0
        var seen = 0
        var standsOn = 0
        var writerStep = 0
        var gone = 0
        var retired: [Int: Int] = [:]
        var freed: Set<Int> = []
        var uses: [Int: Int] = [:]
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
            for (value, memory) in state.memory.loads(Place.epoch, .sequentiallyConsistent, by: me) {
                moved.memory = memory
                moved.seen = value
                next.append(moved)
            }
        case 1:
            if state.memory.own(Place.announced) != state.seen {
                moved.memory.store(Place.announced, state.seen, .sequentiallyConsistent, by: me)
            }
            next.append(moved)
        case 2, 4:
            // The head's link, then that of the entry it stands on; B's leads nowhere.
            let place = state.readerStep == 2 ? Place.head : Place.next
            if state.readerStep == 4, state.standsOn != Self.a {
                next.append(moved)
                return nil
            }
            for (value, memory) in state.memory.loads(place, linkLoad, by: me) {
                moved.memory = memory
                moved.standsOn = value
                next.append(moved)
            }
        case 3, 5:
            if state.standsOn != 0 {
                if state.freed.contains(state.standsOn) { return .usedAfterFree }
                moved.uses[state.standsOn] = moved.memory.tick(Place.uses, by: me)
            }
            next.append(moved)
        default:
            moved.readerStep = 0
            moved.tick += 1
            moved.standsOn = 0
            next.append(moved)
            moved.memory.store(Place.announced, 0, .sequentiallyConsistent, by: me)
            next.append(moved)
        }
        return nil
    }

    private func writerSteps(_ state: State, into next: inout [State]) -> Verdict? {
        guard state.gone < 2 else { return nil }
        let me = Self.writer
        var moved = state
        moved.writerStep += 1
        let takesA = headFirst == (state.gone == 0)
        switch state.writerStep {
        case 0:
            // Taking A out leads the head past it; taking B out, while A is there, leads A past it.
            let place = takesA || headFirst ? Place.head : Place.next
            moved.memory.store(place, takesA && headFirst ? Self.b : 0, unlinking, by: me)
            next.append(moved)
        case 1:
            var tag = state.memory.own(Place.epoch)
            if bumpsForEach || state.gone == 0 {
                _ = moved.memory.exchange(Place.epoch, tag + 1, .sequentiallyConsistent, by: me)
                tag += 1
            }
            moved.retired[takesA ? Self.a : Self.b] = tag
            next.append(moved)
        default:
            if state.writerStep == 3 {
                moved.writerStep = 0
                moved.gone += 1
            }
            for (value, memory) in state.memory.loads(Place.announced, scan, by: me) {
                var scanned = moved
                scanned.memory = memory
                for (entry, tag) in state.retired where value == 0 || tag <= value {
                    if let use = state.uses[entry], !memory.hasSeen(Place.uses, use, by: me) { return .freedWhileUsed }
                    scanned.freed.insert(entry)
                    scanned.retired[entry] = nil
                }
                next.append(scanned)
            }
        }
        return nil
    }
}

@Suite struct KeyChainModelTests {
    @Test(arguments: [true, false])
    func `the shipped orders are safe in every execution`(headFirst: Bool) {
        let (verdict, states) = KeyChainModel(headFirst: headFirst).verdict()
        #expect(verdict == .safe)
        // An exploration that stops early would find everything safe.
        #expect(states > 1_000)
    }

    @Test(arguments: [true, false])
    func `the load of a link that only acquires is not: it may pass the announcement`(headFirst: Bool) {
        #expect(KeyChainModel(linkLoad: .acquire, headFirst: headFirst).verdict().verdict == .usedAfterFree)
    }

    @Test(arguments: [true, false])
    func `an unlinking that only releases is not`(headFirst: Bool) {
        #expect(KeyChainModel(unlinking: .release, headFirst: headFirst).verdict().verdict != .safe)
    }

    @Test func `a scan that only acquires is not`() {
        #expect(KeyChainModel(scan: .acquire).verdict().verdict == .usedAfterFree)
    }

    @Test func `two entries may not share the epoch of the first`() {
        #expect(KeyChainModel(bumpsForEach: false).verdict().verdict != .safe)
    }
}
