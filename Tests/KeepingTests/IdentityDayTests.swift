import Testing

@testable import Keeping
@testable import Scenes

/// The last day of an identity: counts by quarters of an hour, in time that the test moves.
@Suite struct IdentityDayTests {
    private let quarter = IdentityDay.quarter

    /// Noon of some day of the clock that counts from the boot.
    private let noon: UInt64 = 4000 * IdentityDay.quarter

    /// Where something happened, in quarters before the last one: all three counts of each.
    private func told(_ day: IdentityDay, at now: UInt64) -> [Int: [UInt16]] {
        let counts = day.counts(at: now)
        #expect(counts.count == IdentityDay.quarters)
        return counts.enumerated().reduce(into: [:]) { told, one in
            guard !one.element.isEmpty else { return }
            told[IdentityDay.quarters - 1 - one.offset] = [
                one.element.grants, one.element.failures, one.element.replays,
            ]
        }
    }

    @Test func countsByQuarters() {
        var day = IdentityDay()
        #expect(told(day, at: noon).isEmpty)
        day.note(.grant, at: noon)
        day.note(.grant, at: noon + quarter - 1)
        day.note(.failure, at: noon + quarter)
        day.note(.replay, at: noon + 3 * quarter)
        #expect(told(day, at: noon + 3 * quarter) == [3: [2, 0, 0], 2: [0, 1, 0], 0: [0, 0, 1]])
        #expect(told(day, at: noon + 5 * quarter) == [5: [2, 0, 0], 4: [0, 1, 0], 2: [0, 0, 1]])
    }

    @Test func whatIsADayAgoIsForgotten() {
        var day = IdentityDay()
        day.note(.grant, at: noon)
        #expect(told(day, at: noon + 95 * quarter) == [95: [1, 0, 0]])
        #expect(told(day, at: noon + 96 * quarter).isEmpty)
        // Its place is another's then, whose count begins anew.
        day.note(.grant, at: noon + 96 * quarter)
        #expect(told(day, at: noon + 96 * quarter) == [0: [1, 0, 0]])
    }

    @Test func everyPlaceOfTheRingBeginsAnewEachDay() {
        var day = IdentityDay()
        for step in 0..<400 as Range<UInt64> {
            day.note(.failure, at: noon + step * quarter)
            let counts = told(day, at: noon + step * quarter)
            #expect(counts.count == min(Int(step) + 1, 96) && counts.values.allSatisfy { $0 == [0, 1, 0] })
        }
    }

    @Test(arguments: [96, 97, 191, 192, 100_000] as [UInt64])
    func aMachineThatSleptForADayHasNothingToTell(quarters: UInt64) {
        var day = IdentityDay()
        for step in 0..<96 as Range<UInt64> { day.note(.grant, at: noon + step * quarter) }
        let woken = noon + (95 + quarters) * quarter
        #expect(told(day, at: woken).isEmpty)
        day.note(.failure, at: woken)
        #expect(told(day, at: woken) == [0: [0, 1, 0]])
    }

    @Test func aSleepOfHalfADayLeavesTheOtherHalf() {
        var day = IdentityDay()
        for step in 0..<96 as Range<UInt64> { day.note(.grant, at: noon + step * quarter) }
        let woken = noon + (95 + 48) * quarter
        day.note(.grant, at: woken)
        #expect(Set(told(day, at: woken).keys) == Set(48..<96).union([0]))
    }

    /// It does not happen with `CLOCK_BOOTTIME`, and would do no harm.
    @Test func aClockThatGoesBackLosesNothing() {
        var day = IdentityDay()
        day.note(.grant, at: noon + 10 * quarter)
        day.note(.failure, at: noon)
        #expect(told(day, at: noon) == [0: [1, 1, 0]])
        #expect(told(day, at: noon + 11 * quarter) == [1: [1, 1, 0]])
    }

    @Test func rightAfterTheBootThereIsNoDayBefore() {
        var day = IdentityDay()
        day.note(.grant, at: 0)
        #expect(told(day, at: 0) == [0: [1, 0, 0]])
        #expect(told(day, at: 2 * quarter) == [2: [1, 0, 0]])
        day.note(.replay, at: .max)
        #expect(told(day, at: .max) == [0: [0, 0, 1]])
    }

    @Test func aCountStaysAtItsHighest() {
        var day = IdentityDay()
        for _ in 0..<70_000 { day.note(.replay, at: noon) }
        #expect(told(day, at: noon) == [0: [0, 0, .max]])
    }

    // MARK: - In a gateway

    private func day(_ scene: KeeperScene) -> [UInt16] {
        let counts = scene.inKeeper { $0.status() }.identities[0].day
        return counts.day.counts(at: counts.at).reduce(into: [0, 0, 0]) { sums, one in
            sums[0] += one.grants
            sums[1] += one.failures
            sums[2] += one.replays
        }
    }

    private func gate() throws -> (KeeperScene, NumberedGate) {
        let scene = try KeeperScene(Plans.gate("negative_for: 1s"))
        let gate = NumberedGate()
        scene.issuer = gate.answer
        scene.upstream = gate.guarded()
        return (scene, gate)
    }

    @Test func hitsAreNoEvents() throws {
        let (scene, _) = try gate()
        #expect(scene.status("/w/x") == 200)
        let first = day(scene)
        for _ in 0..<5 { #expect(scene.status("/w/x") == 200) }
        #expect(day(scene) == first)
    }

    @Test func aRequestThatIsSentAgainIsAReplay() throws {
        let (scene, gate) = try gate()
        var refused: Set<String> = []
        scene.upstream = gate.guarded { !refused.contains($0) }
        // The first one finds out what is asked for.
        let first = scene.call(Wire.get("/w/x"))
        #expect(first.status == 200 && day(scene) == [1, 0, 1])
        refused = Set(scene.upstreamCalls.compactMap(\.authorization))
        #expect(scene.status("/w/x") == 200)
        #expect(day(scene) == [2, 0, 2])
    }

    @Test func aRequestWhoseGrantFailedIsNone() throws {
        let (scene, gate) = try gate()
        gate.hangs = ["authenticate"]
        let caller = scene.call(Wire.get("/w/x"))
        scene.pass(seconds: 60, step: 1)
        #expect(caller.status != 200 && caller.status != nil)
        let counts = day(scene)
        #expect(counts[0] == 0 && counts[1] >= 1 && counts[2] == 0)
    }

    @Test func theWallClockDoesNotMoveIt() throws {
        let (scene, _) = try gate()
        #expect(scene.status("/w/x") == 200)
        let before = day(scene)
        scene.jump(seconds: -7 * 86_400)
        #expect(day(scene) == before)
        scene.jump(seconds: 30 * 86_400)
        #expect(day(scene) == before)
    }
}
