import Glibc
import ScriptedKernel
import Synchronization
import Testing

@testable import Reactor

/// Notes what the loop tells it.
private final class Probe: Watched {
    var seen: [Readiness] = []
    var fired: [UInt8] = []
    var whenReady: (Probe) -> Void = { _ in }
    var whenFired: (Probe) -> Void = { _ in }

    override func ready(_ readiness: Readiness) {
        seen.append(readiness)
        whenReady(self)
    }

    override func timerFired(_ kind: UInt8) {
        fired.append(kind)
        whenFired(self)
    }
}

private struct Bench {
    let kernel = FakeKernel()
    let loop: Loop

    init(mailCapacity: Int = 16) throws {
        loop = try Loop(name: "test", kernel: kernel, mailCapacity: mailCapacity)
    }

    func watched() -> (Probe, Peer) {
        let (descriptor, peer) = kernel.pair()
        let probe = Probe(loop: loop)
        #expect(loop.watch(probe, descriptor: descriptor))
        return (probe, peer)
    }
}

@Suite struct LoopReadinessTests {
    @Test func tellsEveryChangeOnce() throws {
        let bench = try Bench()
        let (probe, peer) = bench.watched()
        bench.loop.turnOnce()
        #expect(probe.seen == [.writable])
        bench.loop.turnOnce()
        #expect(probe.seen.count == 1)
        peer.send("a")
        peer.send("b")
        bench.loop.turnOnce()
        #expect(probe.seen.last == [.readable, .writable] && probe.seen.count == 2)
        peer.finish()
        bench.loop.turnOnce()
        #expect(probe.seen.last == [.readable, .writable, .inputEnded])
        peer.reset()
        bench.loop.turnOnce()
        #expect(probe.seen.last == [.readable, .writable, .inputEnded, .hungUp, .failed])
    }

    /// The first of a batch closes the second and takes a newcomer, who gets the same place and the same descriptor: the event that is
    /// still queued is not his.
    @Test func aStaleEventGoesNowhere() throws {
        let bench = try Bench()
        let (first, firstPeer) = bench.watched()
        let (second, secondPeer) = bench.watched()
        bench.loop.turnOnce()
        let newcomer = Probe(loop: bench.loop)
        let oldKey = second.key
        let oldDescriptor = second.descriptor
        first.whenReady = { _ in
            bench.loop.close(second)
            let (descriptor, _) = bench.kernel.pair()
            #expect(descriptor == oldDescriptor)
            #expect(bench.loop.watch(newcomer, descriptor: descriptor))
        }
        firstPeer.send("a")
        secondPeer.send("b")
        bench.loop.turnOnce()
        #expect(second.seen.count == 1, "its first, writable")
        #expect(newcomer.seen == [])
        #expect(newcomer.key != oldKey && newcomer.key & 0xffff_ffff == oldKey & 0xffff_ffff)
        bench.loop.turnOnce()
        #expect(newcomer.seen == [.writable])
        #expect(bench.kernel.misuse == [])
    }

    @Test func anOwnerMayCloseItselfInTheMiddleOfABatch() throws {
        let bench = try Bench()
        let pairs = (0..<3).map { _ in bench.watched() }
        bench.loop.turnOnce()
        for (probe, peer) in pairs {
            probe.whenReady = { bench.loop.close($0) }
            peer.send("x")
        }
        bench.loop.turnOnce()
        for (probe, peer) in pairs { #expect(probe.seen.count == 2 && probe.descriptor == -1 && peer.isClosed) }
        #expect(bench.kernel.openDescriptors == 0)
        for (probe, _) in pairs { bench.loop.close(probe) }
        #expect(bench.kernel.misuse == [], "closing twice is harmless")
    }

    @Test func aBatchIsBoundedAndNothingIsLost() throws {
        let bench = try Bench()
        let pairs = (0..<300).map { _ in bench.watched() }
        bench.loop.turnOnce()
        #expect(pairs.count { $0.0.seen.count == 1 } == 256)
        bench.loop.turnOnce()
        #expect(pairs.allSatisfy { $0.0.seen.count == 1 })
    }

    @Test func aRefusedDescriptorLeavesNoOwnerBehind() throws {
        let bench = try Bench()
        let probe = Probe(loop: bench.loop)
        // No process has it, however many descriptors the tests beside this one hold.
        #expect(!bench.loop.watch(probe, descriptor: .max))
        #expect(probe.key == 0 && probe.descriptor == -1)
        let (next, _) = bench.watched()
        bench.loop.turnOnce()
        #expect(next.seen == [.writable])
    }

    @Test func aSharedListenerIsToldUntilItIsEmpty() throws {
        let bench = try Bench()
        let probe = Probe(loop: bench.loop)
        let descriptor = bench.kernel.listen()
        #expect(bench.loop.watch(probe, descriptor: descriptor, shared: true))
        let caller = bench.kernel.call(descriptor)
        bench.loop.turnOnce()
        bench.loop.turnOnce()
        #expect(probe.seen == [.readable, .readable])
        var address = sockaddr_storage()
        var length: socklen_t = 0
        #expect(bench.kernel.accept(descriptor, from: &address, length: &length) > 0)
        bench.loop.turnOnce()
        #expect(probe.seen.count == 2 && caller?.isClosed == false)
        #expect(bench.kernel.accept(descriptor, from: &address, length: &length) == -EAGAIN)
    }

    /// A connection that falls back to another address keeps its place and its timers.
    @Test func aDescriptorMayBeReplaced() throws {
        let bench = try Bench()
        let (probe, first) = bench.watched()
        bench.loop.turnOnce()
        let key = probe.key
        first.send("never read")
        bench.loop.closeDescriptor(of: probe)
        #expect(first.isClosed && probe.key == key)
        let (descriptor, second) = bench.kernel.pair()
        #expect(bench.loop.watch(probe, descriptor: descriptor))
        #expect(probe.key == key)
        second.send("x")
        bench.loop.turnOnce()
        #expect(probe.seen == [.writable, [.readable, .writable]])
        #expect(bench.kernel.misuse == [])
    }

    @Test func aPausedOwnerHearsNothing() throws {
        let bench = try Bench()
        let (probe, peer) = bench.watched()
        bench.loop.turnOnce()
        peer.send("x")
        bench.loop.pause(probe)
        bench.loop.turnOnce()
        #expect(probe.seen == [.writable])
        bench.loop.resume(probe, shared: false)
        bench.loop.turnOnce()
        #expect(probe.seen.last == [.readable, .writable], "what came in between is told")
        #expect(bench.kernel.misuse == [])
    }

    @Test func aWaitThatIsInterruptedIsAnEmptyTurn() throws {
        let bench = try Bench()
        let (probe, _) = bench.watched()
        bench.kernel.waitErrors = [EINTR]
        bench.loop.turnOnce()
        #expect(probe.seen == [])
        bench.loop.turnOnce()
        #expect(probe.seen == [.writable])
    }
}

@Suite struct LoopTimerTests {
    @Test func firesByTheKernelsClock() throws {
        let bench = try Bench()
        let probe = Probe(loop: bench.loop)
        bench.loop.adopt(probe)
        _ = bench.loop.arm(probe, at: bench.kernel.clock + 50_000_000, kind: 3)
        bench.loop.turnOnce()
        bench.kernel.advance(by: 49_000_000)
        bench.loop.turnOnce()
        #expect(probe.fired == [])
        bench.kernel.advance(by: 11_000_000)
        bench.loop.turnOnce()
        #expect(probe.fired == [3])
        bench.kernel.advance(seconds: 3600)
        bench.loop.turnOnce()
        #expect(probe.fired == [3])
    }

    @Test func aDisarmedTimerIsSilent() throws {
        let bench = try Bench()
        let probe = Probe(loop: bench.loop)
        bench.loop.adopt(probe)
        let timer = try #require(bench.loop.arm(probe, at: bench.kernel.clock + 1, kind: 1))
        bench.loop.disarm(timer)
        bench.kernel.advance(seconds: 1)
        bench.loop.turnOnce()
        #expect(probe.fired == [])
    }

    /// One timer of a batch disarms the next, which is due in the same turn.
    @Test func aTimerMayDisarmAnotherThatIsDue() throws {
        let bench = try Bench()
        let early = Probe(loop: bench.loop)
        let late = Probe(loop: bench.loop)
        for probe in [early, late] { bench.loop.adopt(probe) }
        _ = bench.loop.arm(early, at: bench.kernel.clock + 10_000_000, kind: 1)
        let timer = try #require(bench.loop.arm(late, at: bench.kernel.clock + 100_000_000, kind: 2))
        early.whenFired = { _ in bench.loop.disarm(timer) }
        bench.kernel.advance(seconds: 1)
        bench.loop.turnOnce()
        #expect(early.fired == [1] && late.fired == [])
    }

    /// What a timer arms for now fires in a later turn, so that a turn ends.
    @Test func aTimerThatArmsItselfDoesNotHoldTheTurn() throws {
        let bench = try Bench()
        let probe = Probe(loop: bench.loop)
        bench.loop.adopt(probe)
        probe.whenFired = { _ = bench.loop.arm($0, at: bench.kernel.clock, kind: 1) }
        _ = bench.loop.arm(probe, at: bench.kernel.clock, kind: 1)
        bench.kernel.advance(by: TimerWheel.tick)
        bench.loop.turnOnce()
        #expect(probe.fired.count == 1)
        bench.kernel.advance(by: TimerWheel.tick)
        bench.loop.turnOnce()
        #expect(probe.fired.count == 2)
    }

    /// A timer that nobody disarmed does not find the next owner of the place.
    @Test func aTimerOfAClosedOwnerGoesNowhere() throws {
        let bench = try Bench()
        let (old, _) = bench.watched()
        _ = bench.loop.arm(old, at: bench.kernel.clock + 1, kind: 1)
        bench.loop.close(old)
        let (new, _) = bench.watched()
        bench.kernel.advance(seconds: 1)
        bench.loop.turnOnce()
        #expect(old.fired == [] && new.fired == [])
        #expect(bench.loop.arm(old, at: 0, kind: 1) == nil, "an owner without a place has no timers")
    }
}

@Suite struct LoopOrderTests {
    /// Readiness, mail, timers, what was put off: the order that the loop promises.
    @Test func aTurnHasAnOrder() throws {
        let bench = try Bench()
        let (probe, peer) = bench.watched()
        bench.loop.turnOnce()
        let order = Mutex<[String]>([])
        func note(_ step: String) { order.withLock { $0.append(step) } }
        bench.loop.turnBegan = { note("began") }
        probe.whenReady = { _ in
            note("ready")
            bench.loop.putOffToEndOfTurn { note("put off") }
        }
        probe.whenFired = { _ in note("timer") }
        peer.send("x")
        _ = bench.loop.arm(probe, at: bench.kernel.clock, kind: 0)
        #expect(bench.loop.post { order.withLock { $0.append("mail") } })
        bench.kernel.advance(seconds: 1)
        bench.loop.turnOnce()
        #expect(order.withLock { $0 } == ["began", "ready", "mail", "timer", "put off"])
    }

    @Test func workThatIsPutOffMayPutOffMore() throws {
        let bench = try Bench()
        var order: [Int] = []
        bench.loop.putOffToEndOfTurn {
            order.append(1)
            bench.loop.putOffToEndOfTurn { order.append(3) }
        }
        bench.loop.putOffToEndOfTurn { order.append(2) }
        bench.loop.turnOnce()
        #expect(order == [1, 2])
        bench.loop.turnOnce()
        #expect(order == [1, 2, 3])
        bench.loop.turnOnce()
        #expect(order == [1, 2, 3])
    }

    @Test func lettersAreOpenedInOrderAndMayPost() throws {
        let bench = try Bench()
        let opened = Mutex<[Int]>([])
        let loop = bench.loop
        for number in 0..<3 {
            #expect(
                loop.post {
                    opened.withLock { $0.append(number) }
                    if number == 0 { _ = loop.post { opened.withLock { $0.append(9) } } }
                })
        }
        loop.turnOnce()
        #expect(opened.withLock { $0 } == [0, 1, 2, 9])
    }

    @Test func aFullMailboxRefuses() throws {
        let bench = try Bench(mailCapacity: 2)
        let opened = Tally()
        var taken = 0
        for _ in 0..<8 where bench.loop.post({ opened.count.wrappingAdd(1, ordering: .relaxed) }) { taken += 1 }
        #expect(taken == 2)
        bench.loop.turnOnce()
        #expect(opened.count.load(ordering: .relaxed) == 2)
        #expect(bench.loop.post {})
        bench.loop.turnOnce()
    }

    @Test func aLetterMayCloseWhatIsReadyInTheNextTurn() throws {
        let bench = try Bench()
        let (probe, peer) = bench.watched()
        bench.loop.turnOnce()
        peer.send("x")
        let bound = Unchecked(probe)
        let loop = bench.loop
        #expect(loop.post { loop.close(bound.value) })
        loop.turnOnce()
        #expect(probe.seen.count == 2, "readiness stands before mail")
        peer.send("y")
        loop.turnOnce()
        #expect(probe.seen.count == 2 && peer.isClosed)
    }

    /// How long the loop is ready to sleep: for ever without work, not at all with work at hand, else to the next timer.
    @Test func sleepsToTheNextTimer() throws {
        let bench = try Bench()
        let probe = Probe(loop: bench.loop)
        bench.loop.adopt(probe)
        var patience: [Int32] = []
        var blocks = 0
        bench.loop.willBlock = { blocks += 1 }
        bench.kernel.onWait = {
            patience.append(bench.kernel.lastPatience)
            switch patience.count {
            case 1: _ = bench.loop.arm(probe, at: bench.kernel.clock + 30_000_000, kind: 0)
            case 2: bench.loop.putOffToEndOfTurn { bench.loop.putOffToEndOfTurn {} }
            case 3: break
            default: bench.loop.stop()
            }
        }
        bench.loop.run()
        #expect(patience == [-1, 30, 0, 30])
        #expect(blocks == 3, "a wait that does not block is not announced")
    }
}

@Suite struct LoopExecutorTests {
    private actor Counter {
        let executor: LoopExecutor
        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
        private(set) var steps = 0
        private(set) var climbed = 0

        init(_ executor: LoopExecutor) { self.executor = executor }

        /// A job for each step, made by the one before: going over to the actor is none.
        func climb(_ count: Int) {
            Task(executorPreference: executor) { await self.step(count) }
        }

        private func step(_ count: Int) {
            steps += 1
            #expect(executor.loop.isCurrent)
            if count > 1 { climb(count - 1) } else { climbed += 1 }
        }
    }

    private func turns(_ bench: Bench, until climbs: Int, of counter: Counter) -> Int {
        var turns = 0
        while turns < 100 {
            bench.loop.turnOnce()
            turns += 1
            if counter.assumeIsolated({ $0.climbed }) == climbs { break }
        }
        return turns
    }

    @Test func jobsRunOnTheLoop() throws {
        let bench = try Bench()
        let counter = Counter(LoopExecutor(loop: bench.loop))
        for count in [10, 20, 30] { #expect(bench.loop.post { counter.assumeIsolated { $0.climb(count) } }) }
        #expect(turns(bench, until: 3, of: counter) == 1)
        #expect(counter.assumeIsolated { $0.steps } == 60)
    }

    @Test func jobsThatMakeJobsDoNotHoldTheTurn() throws {
        let bench = try Bench()
        let counter = Counter(LoopExecutor(loop: bench.loop))
        #expect(bench.loop.post { counter.assumeIsolated { $0.climb(1_000) } })
        #expect(turns(bench, until: 1, of: counter) == 8, "two times 64 rounds a turn")
    }
}

/// Counts from any thread.
private final class Tally: Sendable {
    let count = Atomic<Int>(0)
}

/// For a closure that runs on the loop that the value belongs to.
private struct Unchecked<Value>: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
}
