import Glibc
import Synchronization
import Testing

@testable import GSSAPI

@Suite struct WorkerTests {
    /// A gate that holds a job until the test opens it, as a silent KDC would.
    private final class Gate: Sendable {
        private let isOpen = Atomic(false)
        func open() { isOpen.store(true, ordering: .releasing) }
        func pass() { while !isOpen.load(ordering: .acquiring) { usleep(1000) } }
    }

    /// Identities that have a job running, and how often one had two. The lock is of pthread, which the thread sanitizer knows.
    private final class Ledger: @unchecked Sendable {
        private let monitor = GSSMonitor()
        private var busy: Set<String> = []
        private var twice = 0
        var doubles: Int { monitor.withLock { twice } }
        func enter(_ key: String) { monitor.withLock { if !busy.insert(key).inserted { twice += 1 } } }
        func leave(_ key: String) { monitor.withLock { _ = busy.remove(key) } }
    }

    /// A number that completions count up.
    private final class Counter: Sendable {
        private let number = Atomic(0)
        var value: Int { number.load(ordering: .acquiring) }
        func count() { number.add(1, ordering: .acquiringAndReleasing) }
    }

    private typealias Outcome = GSSWorker<String>.Outcome<Int>

    private func outcome(
        _ worker: GSSWorker<String>, _ key: String, within milliseconds: Int64 = 60_000,
        _ work: @escaping @Sendable () -> Int
    ) async -> Outcome {
        await withCheckedContinuation { continuation in
            worker.submit(key: key, within: milliseconds, work: work) { continuation.resume(returning: $0) }
        }
    }

    @Test func aResultIsDelivered() async {
        let worker = GSSWorker<String>()
        guard case .done(7) = await outcome(worker, "a", { 7 }) else {
            Issue.record("no result")
            return
        }
    }

    @Test func silentIdentitiesLeaveTheLastThreadToOthers() async {
        let worker = GSSWorker<String>(threads: 4)
        let gate = Gate()
        for key in ["a", "b", "c"] {
            guard
                case .tooLate = await outcome(
                    worker, key, within: 20,
                    {
                        gate.pass(); return 1
                    })
            else {
                Issue.record("a deadline passed unnoticed")
                return
            }
        }
        #expect(worker.counts == GSSWorker<String>.Counts(waiting: 0, running: 3, lost: 3))
        guard case .done(2) = await outcome(worker, "d", { 2 }) else {
            Issue.record("delayed by others")
            return
        }
        // Time for the watch thread to fall asleep without a deadline, so that the next job has to wake it.
        usleep(50_000)
        // The job of a lost identity waits for it, and is told when its own time is over.
        guard case .tooLate = await outcome(worker, "a", within: 20, { 3 }) else {
            Issue.record("two jobs of an identity ran at once")
            return
        }
        gate.open()
        guard case .done(4) = await outcome(worker, "a", { 4 }) else {
            Issue.record("the thread did not come back")
            return
        }
    }

    @Test func aFullQueueRefusesAtOnce() async {
        let worker = GSSWorker<String>(threads: 1, waiting: 1, waitingOfKey: 1)
        let gate = Gate()
        let ended = Counter()
        for _ in 0..<2 {
            worker.submit(key: "a", within: 60_000, work: { gate.pass() }, completion: { _ in ended.count() })
        }
        guard case .refused = await outcome(worker, "b", { 1 }) else {
            Issue.record("taken although full")
            return
        }
        gate.open()
        while ended.value < 2 { await Task.yield() }
    }

    @Test func aClosedWorkerTellsThoseThatWaitAndEndsItsThreads() async {
        let worker = GSSWorker<String>(threads: 1)
        let gate = Gate()
        let told = Counter()
        let ran = Counter()
        worker.submit(key: "a", within: 60_000, work: { gate.pass() }) { if case .done = $0 { ran.count() } }
        worker.submit(key: "b", within: 60_000, work: {}) { if case .closed = $0 { told.count() } }
        worker.close()
        #expect(told.value == 1)
        guard case .closed = await outcome(worker, "c", { 1 }) else {
            Issue.record("taken although closed")
            return
        }
        gate.open()
        while ran.value < 1 || worker.counts.running > 0 { await Task.yield() }
    }

    @Test func manyJobsOfManyKeysAllEndAndNoKeyRunsTwice() async {
        let worker = GSSWorker<String>(threads: 4, waiting: 4096, waitingOfKey: 4096)
        let ledger = Ledger()
        let sum = await withTaskGroup(of: Int.self) { group in
            for number in 0..<2000 {
                group.addTask {
                    let key = "key \(number % 7)"
                    let outcome = await self.outcome(worker, key) {
                        ledger.enter(key)
                        sched_yield()
                        ledger.leave(key)
                        return 1
                    }
                    if case .done(let value) = outcome { return value }
                    return 0
                }
            }
            return await group.reduce(0, +)
        }
        #expect(sum == 2000)
        #expect(ledger.doubles == 0)
    }
}
