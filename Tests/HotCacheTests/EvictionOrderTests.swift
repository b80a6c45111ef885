import Glibc
import Synchronization
import Testing

@testable import HotCache

/// The queue's links against the same rules on a plain list.
@Suite struct EvictionOrderTests {
    /// SIEVE as its paper tells it, with a list from the oldest to the newest.
    struct Model {
        var order: [Int] = []
        var hits: Set<Int> = []
        var hand: Int?

        mutating func append(_ slot: Int) {
            hits.remove(slot)
            order.append(slot)
        }

        mutating func remove(_ slot: Int) {
            if hand == slot { hand = after(slot) }
            order.removeAll { $0 == slot }
        }

        func after(_ slot: Int) -> Int? {
            guard let place = order.firstIndex(of: slot), place + 1 < order.count else { return nil }
            return order[place + 1]
        }

        mutating func victim(sparing spared: Int) -> Int? {
            for _ in 0..<(2 * order.count) {
                guard let slot = hand ?? order.first else { return nil }
                hand = slot
                if slot != spared, hits.remove(slot) == nil { return slot }
                hand = after(slot)
            }
            return nil
        }
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func everyChoiceIsTheModels(seed: UInt64) {
        let capacity = 6
        let marks: UnsafeMutablePointer<Atomic<UInt8>> = HotCache.zeroed(capacity)
        let era: UnsafeMutablePointer<Atomic<UInt8>> = HotCache.zeroed(1)
        era.pointee.store(1, ordering: .relaxed)
        var queue = EvictionQueue(capacity: capacity, marks: [marks], era: era)
        defer {
            queue.deallocate()
            free(marks)
            free(era)
        }
        var model = Model()
        var random = seed
        func draw(_ bound: Int) -> Int {
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(random >> 33) % bound
        }
        for step in 0..<2_000 {
            let slot = draw(capacity)
            let isThere = model.order.contains(slot)
            switch draw(4) {
            case 0 where !isThere:
                queue.append(slot)
                model.append(slot)
            case 1 where isThere:
                queue.remove(slot)
                model.remove(slot)
            case 2 where isThere:
                marks[slot].store(era.pointee.load(ordering: .relaxed), ordering: .relaxed)
                model.hits.insert(slot)
            default:
                let spared = draw(capacity + 1) - 1
                let (ours, theirs) = (queue.victim(sparing: spared), model.victim(sparing: spared))
                guard ours == theirs else {
                    Issue.record("step \(step): \(String(describing: ours)) for \(String(describing: theirs))")
                    return
                }
            }
            queue.renewEra()
            #expect(queue.count == model.order.count)
            #expect(model.order.allSatisfy { queue.isMarked($0) == model.hits.contains($0) }, "step \(step)")
        }
        #expect(era.pointee.load(ordering: .relaxed) != 0, "the era of a mark that was never set comes never")
    }

    @Test func anEraThatIsBegunIsAnother() {
        let marks: UnsafeMutablePointer<Atomic<UInt8>> = HotCache.zeroed(1)
        let era: UnsafeMutablePointer<Atomic<UInt8>> = HotCache.zeroed(1)
        era.pointee.store(254, ordering: .relaxed)
        var queue = EvictionQueue(capacity: 1, marks: [marks], era: era)
        defer {
            queue.deallocate()
            free(marks)
            free(era)
        }
        queue.renewEra()
        #expect(era.pointee.load(ordering: .relaxed) == 254, "nothing was seen in it yet")
        for next in [255, 1, 2] as [UInt8] {
            queue.beginEra()
            #expect(era.pointee.load(ordering: .relaxed) == next, "0 is no era")
        }
        queue.append(0)
        marks[0].store(2, ordering: .relaxed)
        let stamps = queue.stamps(of: 0)
        marks[0].store(3, ordering: .relaxed)
        #expect(queue.stamps(of: 0) != stamps)
    }

    @Test func keysGoInTheOrderInWhichTheyCame() throws {
        let cache = HotCache(readers: 1, slots: 4, byteLimit: 1 << 16)
        let space = try #require(cache.allocateSlot())
        let slots = try (0..<3).map { _ in try #require(cache.allocateSlot()) }
        #expect(cache.keyToGo() == nil)
        for (index, slot) in slots.enumerated() { #expect(cache.addKey([UInt8(index)], in: space, slot: slot)) }
        #expect(cache.keyToGo() == slots[0] && cache.keyCount == 3)
        cache.keepKey(of: slots[0])
        #expect(cache.keyToGo() == slots[1], "one that was kept is among the newest")
        cache.removeKey([1], in: space, slot: slots[1])
        #expect(cache.keyToGo() == slots[2] && cache.keyCount == 2)
        cache.removeKey([2], in: space, slot: slots[2])
        #expect(cache.keyToGo() == slots[0])
        cache.releaseSlot(slots[1])
        #expect(!cache.addKey([9], in: space, slot: slots[1]), "the slot was given back")
        #expect(cache.record(in: slots[1]) == nil && cache.record(in: slots[0]) == nil)
    }

    @Test func aReaderThatIsBehindKeepsWhatWasRetired() throws {
        let cache = HotCache(readers: 2, slots: 4, byteLimit: 1 << 16)
        let slot = try #require(cache.allocateSlot())
        let reader = cache.makeReader(1)
        reader.enterTick()
        for generation in 1...100 as ClosedRange<UInt64> {
            cache.publish(slot: slot, record: EvictionTests.fields(generation), bytes: [1, 2, 3])
        }
        #expect(cache.epochs.retiredCount == 99 && cache.epochs.retiredBytes > 0)
        reader.enterTick()
        #expect(cache.epochs.reclaim() == 0 && cache.epochs.retiredBytes == 0)
    }
}
