import HotCache
import Testing

@Suite struct HotCacheTests {
    let cache = HotCache(readers: 2, slots: 8, byteLimit: 1 << 16)

    func fields(_ generation: UInt64, refreshAt: UInt64 = 50, servedUntil: UInt64 = 90) -> RecordFields {
        RecordFields(refreshAt: refreshAt, servedUntil: servedUntil, expiresAt: 100, generation: generation)
    }

    func describe(_ lookup: Lookup) -> String {
        switch lookup {
        case .miss: "miss"
        case .hit(let view): "hit \(view.generation) \(String(decoding: view.bytes, as: UTF8.self))"
        case .refreshDue(let view): "due \(view.generation) \(String(decoding: view.bytes, as: UTF8.self))"
        }
    }

    @Test func aHitCarriesTheBytesUntilTheyMayNoLongerBeServed() throws {
        let slot = try #require(cache.allocateSlot())
        let reader = cache.makeReader(0)
        reader.enterTick()
        #expect(describe(reader.lookup(slot, now: 10)) == "miss")
        #expect(cache.publish(slot: slot, record: fields(7), bytes: Array("A: b".utf8)) == .published(evicted: []))
        #expect(describe(reader.lookup(slot, now: 10)) == "hit 7 A: b")
        #expect(describe(reader.lookup(slot, now: 49)) == "hit 7 A: b")
        #expect(describe(reader.lookup(slot, now: 89)) == "due 7 A: b")
        #expect(describe(reader.lookup(slot, now: 90)) == "miss")
        #expect(reader.record(slot)?.bytes.count == 4)
    }

    @Test func aRefreshIsAskedForOnceALoopAndGeneration() throws {
        let slot = try #require(cache.allocateSlot())
        let first = cache.makeReader(0)
        let second = cache.makeReader(1)
        first.enterTick()
        second.enterTick()
        cache.publish(slot: slot, record: fields(1), bytes: [])
        #expect(describe(first.lookup(slot, now: 50)) == "due 1 ")
        #expect(describe(first.lookup(slot, now: 51)) == "hit 1 ")
        #expect(describe(second.lookup(slot, now: 51)) == "due 1 ")
        first.refreshNotAsked(slot)
        #expect(describe(first.lookup(slot, now: 52)) == "due 1 ")
        cache.publish(slot: slot, record: fields(2), bytes: [])
        #expect(describe(first.lookup(slot, now: 53)) == "due 2 ")
    }

    @Test func restampingKeepsTheBytesOfTheSameGenerationOnly() throws {
        let slot = try #require(cache.allocateSlot())
        let reader = cache.makeReader(0)
        reader.enterTick()
        #expect(!cache.restamp(slot: slot, record: fields(1)))
        cache.publish(slot: slot, record: fields(1), bytes: Array("x".utf8))
        #expect(!cache.restamp(slot: slot, record: fields(2)))
        #expect(cache.restamp(slot: slot, record: fields(1, refreshAt: 300, servedUntil: 400)))
        #expect(describe(reader.lookup(slot, now: 200)) == "hit 1 x")
    }

    @Test func aHandleToASlotOfAnotherKeyMisses() throws {
        let old = try #require(cache.allocateSlot())
        let reader = cache.makeReader(0)
        reader.enterTick()
        cache.publish(slot: old, record: fields(1), bytes: [1])
        cache.releaseSlot(old)
        cache.releaseSlot(old)
        let new = try #require(cache.allocateSlot())
        #expect(new.index == old.index && new != old)
        cache.publish(slot: new, record: fields(2), bytes: [2])
        #expect(describe(reader.lookup(old, now: 1)) == "miss")
        #expect(describe(reader.lookup(new, now: 1)) == "hit 2 \u{2}")
        #expect(cache.publish(slot: old, record: fields(3), bytes: [3]) == .staleSlot)
        cache.clear(slot: old)
        #expect(describe(reader.lookup(new, now: 1)) == "hit 2 \u{2}")
    }

    @Test func slotsRunOutAtTheCapacity() {
        for _ in 0..<8 { #expect(cache.allocateSlot() != nil) }
        #expect(cache.allocateSlot() == nil)
    }

    // MARK: - Reclamation

    @Test func anOnlineReaderDelaysFreeingUntilItsNextTick() throws {
        let slot = try #require(cache.allocateSlot())
        let reader = cache.makeReader(0)
        reader.enterTick()
        cache.publish(slot: slot, record: fields(1), bytes: [1])
        guard case .hit(let view) = reader.lookup(slot, now: 1) else {
            Issue.record("no hit")
            return
        }
        cache.publish(slot: slot, record: fields(2), bytes: [2])
        #expect(cache.epochs.retiredCount == 1)
        #expect(view.generation == 1 && view.bytes.elementsEqual([1]))
        #expect(cache.reclaim() == 1)
        reader.enterTick()
        #expect(cache.reclaim() == 0)
        #expect(cache.epochs.retiredBytes == 0)
    }

    @Test func anOfflineReaderDelaysNothing() throws {
        let slot = try #require(cache.allocateSlot())
        let reader = cache.makeReader(0)
        reader.enterTick()
        reader.goOffline()
        for generation in 1...200 as ClosedRange<UInt64> {
            cache.publish(slot: slot, record: fields(generation), bytes: [1])
        }
        #expect(cache.epochs.retiredCount == 0)
        #expect(cache.liveBytes < 100)
    }

    @Test func aLongTickHoldsAllThatWasRetiredInIt() throws {
        let slot = try #require(cache.allocateSlot())
        let reader = cache.makeReader(0)
        reader.enterTick()
        for generation in 1...200 as ClosedRange<UInt64> {
            cache.publish(slot: slot, record: fields(generation), bytes: [1])
        }
        #expect(cache.epochs.retiredCount == 199)
        reader.goOffline()
        #expect(cache.reclaim() == 0)
    }

    final class Snapshot: Sendable {
        let value: Int
        let count: Counter
        init(_ value: Int, _ count: Counter) {
            self.value = value
            self.count = count
        }
        deinit { count.add() }
    }

    @Test func aSnapshotIsReleasedAfterItsGracePeriod() {
        let count = Counter()
        do {
            let published = Published(Snapshot(1, count), in: cache.epochs)
            let reader = cache.makeReader(0)
            reader.enterTick()
            #expect(reader.withSnapshot(published) { $0.value } == 1)
            published.publish(Snapshot(2, count))
            #expect(count.value == 0)
            #expect(reader.withSnapshot(published) { $0.value } == 2)
            reader.enterTick()
            cache.reclaim()
            #expect(count.value == 1)
            published.publish(nil)
            #expect(reader.withSnapshot(published) { $0.value } == nil)
            reader.goOffline()
            cache.reclaim()
            #expect(count.value == 2)
            published.publish(Snapshot(3, count))
        }
        #expect(count.value == 3)
    }

    // MARK: - Eviction

    @Test func whatNoLoopHasHitFallsOutFirst() throws {
        let small = HotCache(readers: 2, slots: 8, byteLimit: 1000)
        let reader = small.makeReader(1)
        reader.enterTick()
        let slots = try (0..<3).map { _ in try #require(small.allocateSlot()) }
        let bytes = [UInt8](repeating: 7, count: 260)
        for slot in slots {
            #expect(small.publish(slot: slot, record: fields(1), bytes: bytes) == .published(evicted: []))
        }
        _ = reader.lookup(slots[0], now: 1)
        _ = reader.lookup(slots[2], now: 1)
        #expect(small.isMarked(slots[0]) && !small.isMarked(slots[1]))
        let newest = try #require(small.allocateSlot())
        #expect(small.publish(slot: newest, record: fields(1), bytes: bytes) == .published(evicted: [slots[1]]))
        #expect(describe(reader.lookup(slots[1], now: 1)) == "miss")
        #expect(small.liveBytes <= 1000)
    }

    @Test func withEverySlotHitTheHandStillFindsRoomAndSparesTheNewcomer() throws {
        let small = HotCache(readers: 1, slots: 4, byteLimit: 700)
        let reader = small.makeReader(0)
        reader.enterTick()
        let bytes = [UInt8](repeating: 7, count: 260)
        let slots = try (0..<3).map { _ in try #require(small.allocateSlot()) }
        for slot in slots.prefix(2) {
            small.publish(slot: slot, record: fields(1), bytes: bytes)
            _ = reader.lookup(slot, now: 1)
        }
        guard case .published(let evicted) = small.publish(slot: slots[2], record: fields(1), bytes: bytes) else {
            Issue.record("not published")
            return
        }
        #expect(evicted.count == 1 && !evicted.contains(slots[2]))
    }

    @Test func aRecordLargerThanTheLimitIsRefused() throws {
        let small = HotCache(readers: 1, slots: 4, byteLimit: 100)
        let slot = try #require(small.allocateSlot())
        #expect(small.publish(slot: slot, record: fields(1), bytes: [UInt8](repeating: 1, count: 100)) == .refused)
        #expect(small.liveBytes == 0)
    }
}
