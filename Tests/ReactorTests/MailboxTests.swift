import Glibc
import Reactor
import Synchronization
import Telemetry
import Testing
import World

@Suite struct MailboxTests {
    private func isReadable(_ descriptor: Int32) -> Bool {
        var check = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&check, 1, 0) == 1
    }

    @Test func wakesOnceForABurst() throws {
        let mailbox = try #require(Mailbox<Int>(capacity: 4))
        #expect(!isReadable(mailbox.descriptor))
        #expect(mailbox.send(1) && isReadable(mailbox.descriptor))
        mailbox.acknowledge()
        // Nobody has looked yet: the first wake-up still counts.
        #expect(mailbox.send(2) && !isReadable(mailbox.descriptor))
        var got: [Int] = []
        #expect(mailbox.drain { got.append($0) } == 2)
        #expect(got == [1, 2])
        #expect(mailbox.drain { got.append($0) } == 0)
        #expect(mailbox.send(3) && isReadable(mailbox.descriptor))
    }

    @Test func refusesWhenFull() throws {
        let mailbox = try #require(Mailbox<Int>(capacity: 2))
        #expect(mailbox.send(1) && mailbox.send(2) && !mailbox.send(3))
        mailbox.drain { _ in }
        #expect(mailbox.send(4))
    }

    @Test func aLimitedDrainComesBackAtOnce() throws {
        let mailbox = try #require(Mailbox<Int>(capacity: 8))
        for value in 0..<5 { #expect(mailbox.send(value)) }
        mailbox.acknowledge()
        var got: [Int] = []
        #expect(mailbox.drain(limit: 2) { got.append($0) } == 2)
        #expect(isReadable(mailbox.descriptor))
        mailbox.acknowledge()
        mailbox.drain { got.append($0) }
        #expect(got == [0, 1, 2, 3, 4] && !isReadable(mailbox.descriptor))
    }

    @Test func lettersMayAnswerByLetter() throws {
        let mailbox = try #require(Mailbox<Int>(capacity: 4))
        #expect(mailbox.send(3))
        var opened = 0
        mailbox.drain { value in
            opened += 1
            if value > 0 { #expect(mailbox.send(value - 1)) }
        }
        #expect(opened == 4)
    }

    /// The owner sleeps without a timer whenever it may: a lost wake-up would hang here.
    @Test func noLetterIsLeftWithASleepingOwner() throws {
        let mailbox = try #require(Mailbox<Int>(capacity: 16))
        let each = 4_000
        let senders = 3
        let threads = try (0..<senders).map { sender in
            try WorkerThread(name: "sender") {
                for value in 0..<each {
                    while !mailbox.send(sender * each + value) { sched_yield() }
                    // Now and then the owner gets the time to fall asleep.
                    if value % 64 == 0 { sched_yield() }
                }
            }
        }
        var expected = (0..<senders).map { $0 * each }
        var received = 0
        while received < senders * each {
            var waiting = pollfd(fd: mailbox.descriptor, events: Int16(POLLIN), revents: 0)
            poll(&waiting, 1, -1)
            mailbox.acknowledge()
            received += mailbox.drain(limit: 8) { value in
                let sender = value / each
                #expect(expected[sender] == value)
                expected[sender] = value + 1
            }
        }
        for thread in threads { thread.join() }
        #expect(mailbox.drain { _ in } == 0)
    }
}
