import Glibc
import Synchronization
import Testing

@testable import Reactor

@Suite struct BlockingThreadsTests {
    /// A gate that jobs wait at.
    private final class Gate: Sendable {
        private let semaphores: Mutex<Int> = Mutex(0)
        var arrived: Int { semaphores.withLock { $0 } }
        func arrive() { semaphores.withLock { $0 += 1 } }
    }

    @Test func `jobs run beside each other, and those that wait run later`() throws {
        let threads = BlockingThreads(name: "test", most: 2, capacity: 2)
        let holds = Mutex(true)
        let gate = Gate()
        let held: @Sendable () -> Void = {
            gate.arrive()
            while holds.withLock({ $0 }) { sched_yield() }
        }
        #expect(threads.run(held) && threads.run(held))
        while gate.arrived < 2 { sched_yield() }
        let later = Gate()
        #expect(threads.run { later.arrive() } && threads.run { later.arrive() })
        // Neither runs nor waits: there is no room.
        #expect(!threads.run { later.arrive() })
        #expect(later.arrived == 0)
        holds.withLock { $0 = false }
        while later.arrived < 2 { sched_yield() }
        // Threads that have ended make room for new ones.
        let last = Gate()
        while !threads.run({ last.arrive() }) { sched_yield() }
        while last.arrived < 1 { sched_yield() }
    }
}
