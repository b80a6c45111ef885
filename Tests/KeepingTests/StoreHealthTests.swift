import Testing
import TokenStore

@testable import Keeping

@Suite struct StoreHealthTests {
    private static let full: Result<Void, StoreFault> = .failure(StoreFault(.full, "no space"))
    private static let good: Result<Void, StoreFault> = .success(())

    @Test func aFailureDegradesAndASuccessServesAgain() {
        var health = StoreHealth(.serving)
        #expect(health.note(Self.good, isDegraded: false) == nil)
        let turn = health.note(Self.full, isDegraded: true)
        #expect(turn != nil && health.isDegraded)
        #expect(health.note(Self.full, isDegraded: true) == nil, "told once")
        #expect(health.note(Self.good, isDegraded: true) == nil, "what is held back says nothing of the disk")
        #expect(health.isDegraded)
        #expect(health.note(Self.good, isDegraded: false) == .works)
        #expect(health.state == .serving)
        #expect(health.commits.good == 3 && health.commits.failed == 2)
    }

    @Test(arguments: [StoreHealth.State.locked("another process owns it"), .refused("another key"), .none])
    func aStoreThatIsNotOursDoesNotTurn(_ state: StoreHealth.State) {
        var health = StoreHealth(state)
        #expect(health.note(Self.full, isDegraded: false) == nil)
        #expect(health.note(Self.good, isDegraded: false) == nil)
        #expect(health.state == state)
    }

    @Test func aSlowDiskIsToldOfOnceUntilItTakesSomething() {
        var health = StoreHealth(.serving)
        #expect(health.noteSlow() == true)
        #expect(health.noteSlow() == false)
        _ = health.note(Self.good, isDegraded: false)
        #expect(health.noteSlow() == true)
        _ = health.note(Self.full, isDegraded: true)
        #expect(health.noteSlow() == false, "a store that has turned has said so")
    }

    @Test func whatWasReadOnceIsKnown() {
        var health = StoreHealth(.degraded("the disk does not answer"))
        #expect(health.isUnread)
        #expect(health.noteRead() == true)
        #expect(!health.isUnread)
        #expect(health.noteRead() == false)
        #expect(!StoreHealth(.serving).isUnread && StoreHealth(.refused("")).isUnread)
    }

    @Test func looksAtADegradedStoreGrowRare() {
        var health = StoreHealth(.degraded("no space"))
        health.beginPause()
        var pauses: [UInt64] = []
        for _ in 0..<8 {
            pauses.append(health.pause / 1_000_000_000)
            health.lengthenPause()
        }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60])
    }
}
