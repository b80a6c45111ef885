import Glibc
import HotCache
import Testing

@Suite struct KeyTableTests {
    let cache = HotCache(readers: 3, slots: 4096, byteLimit: 1 << 20, keys: 64)

    private func slot(_ reader: borrowing Reader, _ key: String, in space: Slot) -> Slot? {
        Array(key.utf8).withUnsafeBytes { reader.slot(of: $0, in: space) }
    }

    @Test func aKeyLeadsToItsSlotAndNoOtherDoes() throws {
        let space = try #require(cache.allocateSlot())
        let other = try #require(cache.allocateSlot())
        let reader = cache.makeReader(0)
        reader.enterTick()
        // Many more than there are buckets, so that chains are walked.
        var slots: [String: Slot] = [:]
        for number in 0..<1000 {
            let name = "user-\(number)"
            let slot = try #require(cache.allocateSlot())
            #expect(cache.addKey(Array(name.utf8), in: space, slot: slot))
            slots[name] = slot
        }
        for (name, expected) in slots {
            #expect(slot(reader, name, in: space) == expected)
            #expect(slot(reader, name, in: other) == nil)
            #expect(slot(reader, name.uppercased(), in: space) == nil)
            #expect(slot(reader, name + " ", in: space) == nil)
        }
        #expect(slot(reader, "", in: space) == nil)
        for number in stride(from: 0, to: 1000, by: 2) {
            let name = "user-\(number)"
            cache.removeKey(Array(name.utf8), in: space, slot: try #require(slots[name]))
        }
        for number in 0..<1000 {
            let name = "user-\(number)"
            #expect(slot(reader, name, in: space) == (number % 2 == 0 ? nil : slots[name]))
        }
        #expect(cache.keyCount == 500)
        reader.goOffline()
    }

    @Test func aSlotThatWasGivenBackGetsNoKey() throws {
        let space = try #require(cache.allocateSlot())
        let slot = try #require(cache.allocateSlot())
        cache.releaseSlot(slot)
        #expect(!cache.addKey([1], in: space, slot: slot))
        #expect(cache.keyCount == 0 && cache.keyToGo() == nil)
    }

    @Test func whoIsAskedForStays() throws {
        let space = try #require(cache.allocateSlot())
        let reader = cache.makeReader(0)
        let fields = RecordFields(refreshAt: .max, servedUntil: .max, expiresAt: .max, generation: 1)
        var slots: [Slot] = []
        for number in 0..<100 {
            let slot = try #require(cache.allocateSlot())
            #expect(cache.addKey([UInt8(number)], in: space, slot: slot))
            cache.publish(slot: slot, record: fields, bytes: [0])
            slots.append(slot)
        }
        var gone: Set<Slot> = []
        for _ in 0..<300 {
            reader.enterTick()
            for popular in slots[..<10] { _ = reader.lookup(popular, now: 0) }
            let victim = try #require(cache.keyToGo())
            let number = try #require(slots.firstIndex(of: victim))
            gone.insert(victim)
            cache.removeKey([UInt8(number)], in: space, slot: victim)
            #expect(cache.addKey([UInt8(number)], in: space, slot: victim))
        }
        #expect(gone.isDisjoint(with: slots[..<10]))
        #expect(gone.count == 90)
        reader.goOffline()
    }

    @Test func whoCannotGoIsPassedOver() throws {
        let space = try #require(cache.allocateSlot())
        for number in 0..<3 {
            #expect(cache.addKey([UInt8(number)], in: space, slot: try #require(cache.allocateSlot())))
        }
        let first = try #require(cache.keyToGo())
        cache.keepKey(of: first)
        let second = try #require(cache.keyToGo())
        #expect(first != second)
    }

    /// For the sanitizers; and keys are wiped before they are freed, so a reader that outlives one finds another slot or none.
    @Test func readersWalkChainsThatChange() throws {
        let space = try #require(cache.allocateSlot())
        let keys = (0..<64).map { number in Array("user-\(number)-\(String(repeating: "x", count: number))".utf8) }
        let slots = try keys.map { _ in try #require(cache.allocateSlot()) }
        let wrong = Counter()
        let found = Counter()
        let threads = (0..<2).map { index in
            Thread { [cache] in
                let reader = cache.makeReader(index)
                for round in 0..<600 {
                    reader.enterTick()
                    for (number, key) in keys.enumerated() {
                        guard let slot = key.withUnsafeBytes({ reader.slot(of: $0, in: space) }) else { continue }
                        found.add()
                        if slot != slots[number] { wrong.add() }
                    }
                    if round % 5 == 0 { reader.goOffline() }
                }
                reader.goOffline()
            }
        }
        var isThere = [Bool](repeating: false, count: keys.count)
        for round in 0..<20_000 {
            let number = (round &* 7919) % keys.count
            if isThere[number] {
                cache.removeKey(keys[number], in: space, slot: slots[number])
            } else {
                _ = cache.addKey(keys[number], in: space, slot: slots[number])
            }
            isThere[number].toggle()
            if round % 64 == 0 { sched_yield() }
        }
        for thread in threads { thread.join() }
        #expect(wrong.value == 0 && found.value > 0)
        #expect(cache.reclaim() == 0)
    }
}
