import Glibc
import HotCache
import Synchronization
import Testing

final class Counter: Sendable {
    private let count = Atomic<Int>(0)
    func add() { count.wrappingAdd(1, ordering: .relaxed) }
    var value: Int { count.load(ordering: .relaxed) }
}

/// A thread that runs a closure; joined by the test.
struct Thread {
    private var handle = pthread_t()

    private final class Body {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    init(_ run: @escaping @Sendable () -> Void) {
        let body = Unmanaged.passRetained(Body(run)).toOpaque()
        let status = pthread_create(
            &handle, nil,
            { argument in
                if let argument { Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run() }
                return nil
            }, body)
        precondition(status == 0, "pthread_create: \(status)")
    }

    func join() { pthread_join(handle, nil) }
}

/// Meant for `--sanitize=thread` and `--sanitize=address`. Records are wiped before they are freed, so a reader that
/// outlives its record reads zeros even where no sanitizer looks.
@Suite struct StressTests {
    static func bytes(_ generation: UInt64) -> [UInt8] {
        [UInt8](repeating: UInt8(generation % 255) + 1, count: Int(generation % 61) + 8)
    }

    static func isWhole(_ view: RecordView) -> Bool {
        let generation = view.generation
        return view.refreshAt == generation &* 3 && view.bytes.count == Int(generation % 61) + 8
            && view.bytes.allSatisfy { $0 == UInt8(generation % 255) + 1 }
    }

    @Test func readersNeverSeeATornOrFreedRecord() throws {
        let cache = HotCache(readers: 3, slots: 4, byteLimit: 1 << 20)
        let slots = try (0..<4).map { _ in try #require(cache.allocateSlot()) }
        let torn = Counter()
        let hits = Counter()
        let threads = (0..<3).map { index in
            Thread {
                let reader = cache.makeReader(index)
                for round in 0..<3_000 {
                    reader.enterTick()
                    for slot in slots {
                        guard case .hit(let view) = reader.lookup(slot, now: 0) else { continue }
                        hits.add()
                        if !Self.isWhole(view) { torn.add() }
                        // A second look at the same view, with the writer at work between.
                        if round % 16 == 0 { sched_yield() }
                        if !Self.isWhole(view) { torn.add() }
                    }
                    if round % 7 == 0 { reader.goOffline() }
                }
                reader.goOffline()
            }
        }
        var counter: UInt64 = 0
        for round in 0..<6_000 {
            counter += 1
            let fields = RecordFields(
                refreshAt: counter &* 3, servedUntil: .max, expiresAt: .max, generation: counter)
            let slot = slots[round % 4]
            if round % 97 == 0 { cache.clear(slot: slot) }
            cache.publish(slot: slot, record: fields, bytes: Self.bytes(counter))
            if round % 32 == 0 { sched_yield() }
        }
        for thread in threads { thread.join() }
        #expect(torn.value == 0)
        #expect(cache.reclaim() == 0)
    }

    final class Snapshot: Sendable {
        let values: [Int]
        init(_ value: Int) { values = Array(repeating: value, count: 16) }
    }

    @Test func readersNeverSeeAReleasedSnapshot() {
        let epochs = HotCache(readers: 2, slots: 1, byteLimit: 1 << 10)
        let published = Published(Snapshot(0), in: epochs.epochs)
        let torn = Counter()
        let threads = (0..<2).map { index in
            Thread {
                let reader = epochs.makeReader(index)
                for round in 0..<4_000 {
                    reader.enterTick()
                    let isWhole = reader.withSnapshot(published) { snapshot in
                        snapshot.values.allSatisfy { $0 == snapshot.values[0] }
                    }
                    if isWhole != true { torn.add() }
                    if round % 5 == 0 { reader.goOffline() }
                }
                reader.goOffline()
            }
        }
        for value in 1...3_000 {
            published.publish(Snapshot(value))
            if value % 64 == 0 { sched_yield() }
        }
        for thread in threads { thread.join() }
        #expect(torn.value == 0)
    }

    @Test func evictionAndReuseOfSlotsUnderReaders() throws {
        let cache = HotCache(readers: 2, slots: 16, byteLimit: 1_000)
        let shared = Published(Handles([]), in: cache.epochs)
        let torn = Counter()
        let threads = (0..<2).map { index in
            Thread {
                let reader = cache.makeReader(index)
                for _ in 0..<3_000 {
                    reader.enterTick()
                    _ = reader.withSnapshot(shared) { handles in
                        for slot in handles.slots {
                            if case .hit(let view) = reader.lookup(slot, now: 0), !Self.isWhole(view) { torn.add() }
                        }
                    }
                }
                reader.goOffline()
            }
        }
        var counter: UInt64 = 0
        for round in 0..<500 {
            let slots = try (0..<8).map { _ in try #require(cache.allocateSlot()) }
            shared.publish(Handles(slots))
            for slot in slots {
                counter += 1
                let fields = RecordFields(
                    refreshAt: counter &* 3, servedUntil: .max, expiresAt: .max, generation: counter)
                cache.publish(slot: slot, record: fields, bytes: Self.bytes(counter))
            }
            if round % 8 == 0 { sched_yield() }
            for slot in slots { cache.releaseSlot(slot) }
        }
        for thread in threads { thread.join() }
        #expect(torn.value == 0)
        #expect(cache.liveBytes == 0)
    }

    final class Handles: Sendable {
        let slots: [Slot]
        init(_ slots: [Slot]) { self.slots = slots }
    }
}
