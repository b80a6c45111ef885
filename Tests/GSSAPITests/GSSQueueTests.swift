import Testing

@testable import GSSAPI

@Suite struct QueueTests {
    typealias Queue = GSSQueue<String>

    private func queue(threads: Int = 2, waiting: Int = 4, ofKey: Int = 2) -> Queue {
        Queue(limits: Queue.Limits(threads: threads, waiting: waiting, waitingOfKey: ofKey))
    }

    @Test func jobsOfOneKeyRunOneAfterTheOther() {
        var queue = queue()
        #expect(queue.submit(1, key: "a", deadline: 10, now: 0) == [.start(1)])
        #expect(queue.submit(2, key: "a", deadline: 10, now: 0) == [])
        #expect(queue.submit(3, key: "b", deadline: 10, now: 0) == [.start(3)])
        #expect(queue.finish(1, now: 1) == [.deliver(1), .start(2)])
        #expect(queue.finish(2, now: 1) == [.deliver(2)])
        #expect(queue.finish(3, now: 1) == [.deliver(3)])
        #expect(queue.runningCount == 0 && queue.waitingCount == 0 && queue.nextDeadline == nil)
    }

    @Test func anotherKeyPassesAKeyThatIsBusy() {
        var queue = queue(threads: 2)
        _ = queue.submit(1, key: "dead", deadline: 10, now: 0)
        _ = queue.submit(2, key: "b", deadline: 10, now: 0)
        _ = queue.submit(3, key: "dead", deadline: 10, now: 0)
        #expect(queue.submit(4, key: "c", deadline: 10, now: 0) == [])
        #expect(queue.finish(2, now: 1) == [.deliver(2), .start(4)])
    }

    @Test func aDeadKeyLeavesRoomForOthers() {
        var queue = queue(threads: 2, waiting: 3, ofKey: 2)
        _ = queue.submit(1, key: "dead", deadline: 10, now: 0)
        _ = queue.submit(2, key: "dead", deadline: 10, now: 0)
        _ = queue.submit(3, key: "dead", deadline: 10, now: 0)
        #expect(queue.submit(4, key: "dead", deadline: 10, now: 0) == [.refuse(4)])
        #expect(queue.submit(5, key: "b", deadline: 10, now: 0) == [.start(5)])
        #expect(queue.submit(6, key: "b", deadline: 10, now: 0) == [])
        #expect(queue.submit(7, key: "c", deadline: 10, now: 0) == [.refuse(7)])
    }

    @Test func aLostThreadKeepsItsKeyUntilTheLibraryReturns() {
        var queue = queue()
        _ = queue.submit(1, key: "a", deadline: 10, now: 0)
        #expect(queue.nextDeadline == 10)
        #expect(queue.advance(to: 9) == [])
        #expect(queue.advance(to: 10) == [.tellLate(1)])
        #expect(queue.advance(to: 11) == [], "a caller is told once")
        #expect(queue.lostCount == 1 && queue.runningCount == 1 && queue.nextDeadline == nil)
        #expect(queue.submit(2, key: "a", deadline: 20, now: 11) == [])
        #expect(queue.submit(3, key: "b", deadline: 20, now: 11) == [.start(3)])
        #expect(queue.finish(1, now: 15) == [.drop(1), .start(2)])
        #expect(queue.lostCount == 0)
    }

    @Test func aJobThatWaitsTooLongNeverStarts() {
        var queue = queue(threads: 1)
        _ = queue.submit(1, key: "a", deadline: 50, now: 0)
        _ = queue.submit(2, key: "b", deadline: 10, now: 0)
        _ = queue.submit(3, key: "b", deadline: 30, now: 0)
        #expect(queue.nextDeadline == 10)
        #expect(queue.advance(to: 5) == [], "no thread is free")
        #expect(queue.finish(1, now: 10) == [.deliver(1), .tellLate(2), .start(3)])
    }

    @Test func anOutcomeAtTheDeadlineIsStillDelivered() {
        var queue = queue()
        _ = queue.submit(1, key: "a", deadline: 10, now: 0)
        #expect(queue.finish(1, now: 10) == [.deliver(1)], "nobody has told the caller yet")
        #expect(queue.finish(1, now: 10) == [], "a second report is ignored")
        #expect(queue.finish(99, now: 10) == [])
    }

    @Test func aDeadlineInThePastIsLateAtOnce() {
        var queue = queue()
        #expect(queue.submit(1, key: "a", deadline: 5, now: 5) == [.tellLate(1)])
        #expect(queue.runningCount == 0 && queue.waitingCount == 0)
    }

    @Test func aClosedQueueTellsThoseThatWait() {
        var queue = queue(threads: 1)
        _ = queue.submit(1, key: "a", deadline: 10, now: 0)
        _ = queue.submit(2, key: "b", deadline: 10, now: 0)
        #expect(queue.close() == [.tellClosed(2)])
        #expect(queue.close() == [])
        #expect(queue.submit(3, key: "c", deadline: 10, now: 0) == [.tellClosed(3)])
        #expect(queue.finish(1, now: 1) == [.deliver(1)])
    }

    /// Every sequence of six events out of a small alphabet, with the promises checked after each event.
    @Test func thePromisesHoldInEverySequence() {
        var sequences = 0
        func go(
            _ queue: Queue, _ told: [UInt64: Int], _ live: [UInt64: String], _ next: UInt64, _ now: Int64, _ depth: Int
        ) {
            guard depth < 6 else {
                sequences += 1
                return
            }
            func after(_ change: (inout Queue) -> [Queue.Action], _ key: String? = nil, _ step: Int64 = 0) {
                var (queue, told, live) = (queue, told, live)
                let actions = change(&queue)
                if let key { told[next] = 0; live[next] = key }
                var ended: Set<UInt64> = []
                for action in actions {
                    switch action {
                    case .start(let job): #expect(told[job] == 0)
                    case .drop(let job): #expect(told[job] == 1); ended.insert(job)
                    case .deliver(let job): told[job, default: 9] += 1; ended.insert(job)
                    case .refuse(let job), .tellClosed(let job), .tellLate(let job): told[job, default: 9] += 1
                    }
                }
                #expect(told.values.allSatisfy { $0 <= 1 }, "a caller is told once")
                #expect(queue.runningCount <= 2 && queue.waitingCount <= 2 && queue.lostCount <= queue.runningCount)
                let open = told.values.count { $0 == 0 }
                #expect(queue.runningCount - queue.lostCount + queue.waitingCount == open, "no job is forgotten")
                for job in ended { live[job] = nil }
                go(queue, told, live, next + 1, now + step, depth + 1)
            }
            for key in ["a", "b"] { after({ $0.submit(next, key: key, deadline: now + 2, now: now) }, key) }
            for job in live.keys { after { $0.finish(job, now: now) } }
            after({ $0.advance(to: now + 1) }, nil, 1)
            after { $0.close() }
        }
        go(queue(threads: 2, waiting: 2, ofKey: 1), [:], [:], 1, 0, 0)
        #expect(sequences > 4096)
    }
}
