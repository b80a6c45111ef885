import Glibc
import ScriptedWorld
import Synchronization
import Testing
import World

@testable import Telemetry

@Suite struct LogThreadTests {
    /// A pipe whose reading end the test holds.
    struct Pipe {
        let readEnd: Int32
        let writeEnd: Int32

        init() {
            var ends: [Int32] = [-1, -1]
            pipe(&ends)
            readEnd = ends[0]
            writeEnd = ends[1]
        }

        /// Everything until all writers are gone.
        func readAll() -> String {
            close(writeEnd)
            var all: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = read(readEnd, &buffer, buffer.count)
                guard count > 0 else { break }
                all += buffer[..<count]
            }
            close(readEnd)
            return String(decoding: all, as: UTF8.self)
        }

        /// Takes what is there.
        func fill() {
            _ = fcntl(writeEnd, F_SETFL, O_NONBLOCK)
            let zeros = [UInt8](repeating: 0x2e, count: 4096)
            while write(writeEnd, zeros, zeros.count) > 0 {}
            _ = fcntl(writeEnd, F_SETFL, 0)
        }
    }

    private func makeEvents(capacity: Int = 64) throws -> EventLog {
        try EventLog(capacity: capacity, level: .info, time: ScriptedTime(wall: 0))
    }

    @Test func writesWhatWasSentBeforeStop() throws {
        let (out, err) = (Pipe(), Pipe())
        let log = LogThread(
            events: try makeEvents(), format: .text, eventDescriptor: err.writeEnd, accessDescriptor: out.writeEnd)
        let ring = log.makeRing(capacity: 8)
        try log.start()
        log.events.info("token acquired", [LogField("identity", .name("hr"))])
        log.events.debug("not written")
        ring.append { $0.status = 204 }
        log.stop()
        #expect(err.readAll() == "1970-01-01T00:00:00.000Z info  token acquired identity=hr\n")
        #expect(out.readAll().contains(" status=204 "))
        #expect(log.dropped == 0)
    }

    @Test func aRecordThatIsNoLineIsRememberedAndNotWritten() throws {
        let (out, err) = (Pipe(), Pipe())
        let log = LogThread(
            events: try makeEvents(), format: .text, eventDescriptor: err.writeEnd, accessDescriptor: out.writeEnd)
        let ring = log.makeRing(capacity: 8)
        let (route, fault) = (log.routes.intern("hr"), log.faults.intern("token-timeout"))
        ring.append(isLine: false) { ($0.route, $0.fault, $0.status) = (route, fault, 504) }
        ring.append { ($0.route, $0.status) = (route, 404) }
        // None of these is a line that was lost.
        while ring.append(isLine: false, { $0.status = 200 }) {}
        #expect(log.dropped == 0)
        try log.start()
        log.stop()
        #expect(out.readAll().split(separator: "\n").count == 1)
        let remembered = log.rememberedFailures
        #expect(remembered.map(\.route) == ["hr"])
        #expect(remembered.first?.kinds.map(\.problem) == [nil, "token-timeout"])
        #expect(remembered.first?.kinds.map(\.status) == [404, 504])
        _ = err.readAll()
    }

    @Test func wakesForLaterWork() throws {
        let (out, err) = (Pipe(), Pipe())
        let log = LogThread(
            events: try makeEvents(), format: .text, eventDescriptor: err.writeEnd, accessDescriptor: out.writeEnd)
        try log.start()
        var buffer = [UInt8](repeating: 0, count: 4096)
        // Each read blocks until the line is there: a lost wake-up would hang here.
        for _ in 0..<20 {
            log.events.warn("draining")
            #expect(read(err.readEnd, &buffer, buffer.count) > 0)
        }
        let ring = log.makeRing()
        ring.append { $0.status = 200 }
        #expect(read(out.readEnd, &buffer, buffer.count) > 0)
        log.stop()
        _ = (out.readAll(), err.readAll())
    }

    @Test func aBlockedPipeDropsAndTheOtherGoesOn() throws {
        let (out, err) = (Pipe(), Pipe())
        out.fill()
        let log = LogThread(
            events: try makeEvents(), format: .text, eventDescriptor: err.writeEnd, accessDescriptor: out.writeEnd)
        let ring = log.makeRing(capacity: 16)
        try log.start()
        var refused = 0
        // The sink takes 64 KiB, then records stay in the ring.
        while refused < 100 {
            if !ring.append({ $0.status = 200 }) { refused += 1 }
        }
        #expect(log.dropped >= 100)
        log.events.info("still here")
        var seen = ""
        var buffer = [UInt8](repeating: 0, count: 4096)
        while !seen.contains("still here") {
            let count = read(err.readEnd, &buffer, buffer.count)
            guard count > 0 else { break }
            seen += String(decoding: buffer[..<count], as: UTF8.self)
        }
        #expect(seen.contains("still here"))
        // Emptied, the blocked pipe goes on where it was.
        var drained = 0
        while drained < 65_536 {
            let count = read(out.readEnd, &buffer, buffer.count)
            guard count > 0 else { break }
            drained += count
        }
        #expect(read(out.readEnd, &buffer, buffer.count) > 0)
        // With both ends gone, stop has nothing to wait for.
        close(out.readEnd)
        log.stop()
        close(out.writeEnd)
        #expect(err.readAll().contains("log lines dropped") || seen.contains("log lines dropped"))
    }

    @Test func aBrokenPipeIsCountedAndNeverBlocks() throws {
        let (out, err) = (Pipe(), Pipe())
        close(err.readEnd)
        let log = LogThread(
            events: try makeEvents(), format: .json, eventDescriptor: err.writeEnd, accessDescriptor: out.writeEnd)
        try log.start()
        for _ in 0..<10 { log.events.error("lost") }
        log.stop()
        #expect(log.dropped == 10)
        close(err.writeEnd)
        _ = out.readAll()
    }

    @Test func aFullQueueDropsEvents() throws {
        let events = try makeEvents(capacity: 2)
        for _ in 0..<5 { events.info("x") }
        #expect(events.dropped == 3)
        events.level = .error
        events.warn("x")
        #expect(events.dropped == 3)
        #expect(!events.isEnabled(.warn) && events.isEnabled(.error))
    }

    @Test func fieldsOfSilentEventsAreNotMade() throws {
        let events = try makeEvents()
        var made = 0
        func fields() -> [LogField] {
            made += 1
            return []
        }
        events.debug("x", fields())
        #expect(made == 0)
        events.info("x", fields())
        #expect(made == 1)
    }

    @Test func ringsRefuseWhenFull() throws {
        let ring = AccessRing(capacity: 4, wake: try WakePipe())
        for status in 0..<4 { #expect(ring.append { $0.status = UInt16(status) }) }
        var called = false
        #expect(!ring.append { _ in called = true })
        #expect(!called && ring.dropped == 1)
        var seen: [UInt16] = []
        while ring.next({ seen.append($0.status) }) {}
        #expect(seen == [0, 1, 2, 3])
        #expect(!ring.hasNext && ring.append { $0.status = 9 } && ring.hasNext)
    }

    @Test func aLoopAndTheLogThreadShareARing() throws {
        let ring = AccessRing(capacity: 32, wake: try WakePipe())
        let count: UInt64 = 20_000
        let writer = try WorkerThread(name: "loop") {
            var value: UInt64 = 0
            while value < count {
                if ring.append({
                    $0.bytesIn = value
                    $0.bytesOut = ~value
                }) {
                    value += 1
                }
            }
        }
        var expected: UInt64 = 0
        while expected < count {
            _ = ring.next { record in
                #expect(record.bytesIn == expected && record.bytesOut == ~expected)
                expected += 1
            }
        }
        writer.join()
        #expect(!ring.hasNext)
    }

    @Test func manyThreadsLogAtOnce() throws {
        let (out, err) = (Pipe(), Pipe())
        let log = LogThread(
            events: try makeEvents(capacity: 4096), format: .text, eventDescriptor: err.writeEnd,
            accessDescriptor: out.writeEnd)
        try log.start()
        let text = Mutex("")
        let reader = try WorkerThread(name: "reader") { text.withLock { $0 = err.readAllKeepingWriter() } }
        let senders = try (0..<3).map { sender in
            try WorkerThread(name: "sender") {
                for number in 0..<500 {
                    log.events.info("reload done", [LogField("n", .count(Int64(sender * 1000 + number)))])
                }
            }
        }
        for sender in senders { sender.join() }
        log.stop()
        close(err.writeEnd)
        reader.join()
        let lines = text.withLock { $0.split(separator: "\n").count }
        #expect(lines == 1500)
        #expect(log.dropped == 0)
        _ = out.readAll()
    }
}

extension LogThreadTests.Pipe {
    func readAllKeepingWriter() -> String {
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(readEnd, &buffer, buffer.count)
            guard count > 0 else { break }
            all += buffer[..<count]
        }
        close(readEnd)
        return String(decoding: all, as: UTF8.self)
    }
}
