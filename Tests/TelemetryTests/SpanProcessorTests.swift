import ScriptedWorld
import Synchronization
import Testing
import World

@testable import Telemetry

/// Batches of spans, on their way from loops to an exporter.
@Suite struct SpanProcessorTests {
    private final class Exporter: Sendable {
        private let taken = Mutex<[SpanExport]>([])
        let hasRoom = Mutex(true)
        var exports: [SpanExport] { taken.withLock { $0 } }

        func take(_ export: SpanExport) -> Bool {
            guard hasRoom.withLock({ $0 }) else { return false }
            taken.withLock { $0.append(export) }
            return true
        }
    }

    private let exporter = Exporter()
    private let time = ScriptedTime()

    private func processor() throws -> SpanProcessor {
        let exporter = exporter
        return SpanProcessor(
            resource: SpanResource(name: "cardea", version: "1"), log: LogThread(events: try EventLog(), format: .text),
            time: time
        ) { exporter.take($0) }
    }

    private func leave(_ count: Int, in ring: TraceRing) {
        for number in 0..<count {
            ring.append { trace in
                (trace.traceLow, trace.span, trace.isSampled) = (1, UInt64(number) + 1, true)
                (trace.startedAt, trace.sentAt, trace.endedAt, trace.sends) = (1, 2, 3, 1)
            }
        }
    }

    @Test func spansWaitForOthersASecond() throws {
        let processor = try processor()
        let ring = processor.rings(1)[0]
        #expect(processor.turn(at: 10, isLast: false) == nil && processor.isEmpty)
        leave(2, in: ring)
        #expect(!processor.arm())
        #expect(processor.turn(at: 100, isLast: false) == 1_000_000_100)
        #expect(exporter.exports.isEmpty && processor.arm() && !processor.isEmpty)
        leave(1, in: ring)
        #expect(processor.turn(at: 1_000_000_099, isLast: false) == 1_000_000_100)
        #expect(exporter.exports.isEmpty)
        #expect(processor.turn(at: 1_000_000_100, isLast: false) == nil)
        #expect(exporter.exports.map(\.count) == [6] && processor.isEmpty)
    }

    @Test func aFullBatchGoesAtOnceAndTheEndSendsTheRest() throws {
        let processor = try processor()
        leave(300, in: processor.rings(1)[0])
        #expect(processor.turn(at: 1, isLast: false) != nil)
        #expect(exporter.exports.map(\.count) == [SpanBatch.mostSpans])
        #expect(processor.turn(at: 2, isLast: true) == nil)
        #expect(exporter.exports.map(\.count) == [SpanBatch.mostSpans, 600 - SpanBatch.mostSpans])
    }

    @Test func whoCannotWaitAsks() throws {
        let processor = try processor()
        leave(1, in: processor.rings(1)[0])
        processor.flush()
        #expect(!processor.isEmpty && !processor.arm())
        #expect(processor.turn(at: 1, isLast: false) == nil)
        #expect(processor.isEmpty && exporter.exports.map(\.count) == [2])
    }

    @Test func whatFindsNoRoomIsCounted() throws {
        let processor = try processor()
        let ring = processor.rings(1)[0]
        leave(SpanProcessor.ringCapacity + 5, in: ring)
        exporter.hasRoom.withLock { $0 = false }
        _ = processor.turn(at: 1, isLast: true)
        #expect(processor.counts.count(of: .dropped) == UInt64(2 * SpanProcessor.ringCapacity + 5))
        // Counted once.
        _ = processor.turn(at: 2, isLast: true)
        #expect(processor.counts.count(of: .dropped) == UInt64(2 * SpanProcessor.ringCapacity + 5))
        #expect(exporter.exports.isEmpty && processor.counts.count(of: .exported) == 0)
    }

    @Test func aSpanOfAnotherThreadGoesWithTheOthers() throws {
        let processor = try processor()
        let ring = processor.rings(1)[0]
        var grant = SpanRecord()
        (grant.traceLow, grant.span, grant.work) = (1, 5, .grant)
        processor.tell(grant)
        #expect(!processor.arm())
        leave(1, in: ring)
        _ = processor.turn(at: 1, isLast: true)
        #expect(exporter.exports.map(\.count) == [3])
        for _ in 0..<(SpanProcessor.queueCapacity + 3) { processor.tell(grant) }
        #expect(processor.counts.count(of: .dropped) == 3)
    }

    @Test func loopsKeepTheirRings() throws {
        let processor = try processor()
        #expect(!processor.isUsed)
        let first = processor.rings(2)
        #expect(processor.isUsed && processor.rings(2).elementsEqual(first) { $0 === $1 })
    }
}
