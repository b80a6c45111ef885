import Synchronization
import Telemetry
import Testing
import World

@Suite struct BoundedQueueTests {
    @Test func keepsOrderAndRefusesWhenFull() {
        let queue = BoundedQueue<Int>(capacity: 4)
        #expect(queue.capacity == 4)
        for lap in 0..<3 {
            for value in 0..<4 { #expect(queue.send(lap * 10 + value)) }
            #expect(!queue.send(99))
            #expect(queue.hasNext)
            for value in 0..<4 { #expect(queue.receive() == lap * 10 + value) }
            #expect(queue.receive() == nil)
            #expect(!queue.hasNext)
        }
    }

    @Test(arguments: [(1, 2), (2, 2), (3, 4), (1000, 1024), (-5, 2)])
    func roundsCapacityUp(asked: Int, made: Int) {
        #expect(BoundedQueue<Int>(capacity: asked).capacity == made)
    }

    @Test func releasesWhatWasNeverReceived() {
        final class Witness: Sendable {}
        weak var witness: Witness?
        do {
            let queue = BoundedQueue<Witness>(capacity: 2)
            let sent = Witness()
            witness = sent
            #expect(queue.send(sent))
        }
        #expect(witness == nil)
    }

    @Test func manySendersLoseNothingAndKeepTheirOwnOrder() throws {
        let queue = BoundedQueue<(Int, Int)>(capacity: 64)
        let each = 5_000
        let threads = try (0..<3).map { sender in
            try WorkerThread(name: "sender") {
                for value in 0..<each { while !queue.send((sender, value)) { _ = 0 } }
            }
        }
        var expected = [0, 0, 0]
        var received = 0
        while received < 3 * each {
            guard let (sender, value) = queue.receive() else { continue }
            #expect(expected[sender] == value)
            expected[sender] = value + 1
            received += 1
        }
        for thread in threads { thread.join() }
        #expect(queue.receive() == nil)
    }
}
