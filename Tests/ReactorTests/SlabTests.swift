import Reactor
import Testing

@Suite struct SlabTests {
    final class Witness {}

    @Test func staleKeysFindNothing() throws {
        var slab = Slab<String>(capacity: 2, reserved: 1)
        let made = (slab.insert("a"), slab.insert("b"))
        let (first, second) = (try #require(made.0), try #require(made.1))
        let third = slab.insert("c")
        #expect(third == nil && slab.isFull)
        #expect(slab[first] == "a" && slab[second] == "b")
        let removed = slab.remove(first)
        #expect(removed == "a")
        let again = slab.remove(first)
        #expect(again == nil && slab[first] == nil && !slab.contains(first))
        let reused = slab.insert("d")
        let fourth = try #require(reused)
        #expect(fourth != first && slab[fourth] == "d" && slab[first] == nil)
        #expect(slab.count == 2)
        let changed: Void? = slab.withElement(fourth) { $0 += "!" }
        #expect(changed != nil && slab[fourth] == "d!")
        let missed: Void? = slab.withElement(first) { _ in }
        #expect(missed == nil)
    }

    @Test(arguments: [0, 1, .max, 1 << 32, 0x1_0000_0005, 0x2_0000_0000] as [UInt64])
    func madeUpKeysFindNothing(raw: UInt64) {
        var slab = Slab<Int>(capacity: 4)
        _ = slab.insert(1)
        // The one real key: place 0, taken for the first time.
        #expect((slab[SlabKey(rawValue: raw)] == 1) == (raw == 1 << 32))
    }

    @Test func growsAndEndsItsElements() {
        weak var witness: Witness?
        do {
            var slab = Slab<Witness>(capacity: 1000, reserved: 1)
            for _ in 0..<999 { _ = slab.insert(Witness()) }
            let last = Witness()
            witness = last
            let key = slab.insert(last)
            #expect(key != nil && slab.count == 1000)
            var visited = 0
            slab.forEach { _, _ in visited += 1 }
            #expect(visited == 1000)
        }
        #expect(witness == nil)
    }

    @Test func holdsWhatCannotBeCopied() throws {
        struct Machine: ~Copyable { var state = 0 }
        var slab = Slab<Machine>(capacity: 4)
        let made = slab.insert(Machine())
        let key = try #require(made)
        let state = slab.withElement(key) { machine in
            machine.state += 5
            return machine.state
        }
        #expect(state == 5)
        if let removed = slab.remove(key) { #expect(removed.state == 5) } else { Issue.record("gone") }
    }
}
