import ScriptedWorld
import Testing
import World

@Suite struct TimeSourceTests {
    @Test func thePauseOfAScriptTakesNoTime() {
        let time = ScriptedTime(wall: 5_000_000_000)
        let (boot, awake) = (time.sinceBoot(), time.awake())
        time.pause(milliseconds: 2500)
        #expect(time.sinceBoot() - boot == 2_500_000_000)
        #expect(time.awake() - awake == 2_500_000_000)
        #expect(time.wallSeconds() == 7)
        #expect(time.wallMilliseconds() == 7500)
    }

    @Test func theWallClockMayBeSetAlone() {
        let time = ScriptedTime()
        let boot = time.sinceBoot()
        time.setWall(nanoseconds: 1_000_000_000)
        #expect(time.wallSeconds() == 1)
        #expect(time.sinceBoot() == boot)
    }

    /// The kernel's clocks never go back, and a pause lasts at least as long as it says.
    @Test func thePauseOfTheSystemLasts() {
        let time = SystemTime()
        let (boot, awake) = (time.sinceBoot(), time.awake())
        time.pause(milliseconds: 2)
        #expect(time.awake() - awake >= 2_000_000)
        #expect(time.sinceBoot() - boot >= 2_000_000)
        #expect(time.wallMilliseconds() > 1_600_000_000_000)
    }
}

@Suite struct RandomSourceTests {
    @Test func aSeedGivesTheSameNumbersAgain() {
        let (one, other, third) = (SeededRandom(seed: 7), SeededRandom(seed: 7), SeededRandom(seed: 8))
        let bytes = one.bytes(21)
        #expect(bytes.count == 21)
        #expect(bytes == other.bytes(21))
        #expect(bytes != third.bytes(21))
        #expect(one.bytes(0).isEmpty)
        #expect(one.bytes(-1).isEmpty)
    }

    @Test func numbersStayBelowTheirBound() {
        let random = SeededRandom()
        var seen: Set<UInt64> = []
        for _ in 0..<200 {
            let number = random.number(below: 5)
            #expect(number < 5)
            seen.insert(number)
            #expect((0..<1).contains(random.fraction()))
        }
        #expect(seen.count == 5)
        #expect(random.number(below: 1) == 0)
        #expect(random.number(below: 0) == 0)
    }

    private struct Highest: RandomSource {
        func bytes(_ count: Int) -> [UInt8] { [UInt8](repeating: 0xFF, count: max(count, 0)) }
    }

    @Test func theHighestNumberIsBelowItsBoundToo() {
        #expect(Highest().number() == .max)
        #expect(Highest().number(below: .max) == UInt64.max - 1)
        #expect(Highest().number(below: 4096) == 4095)
        #expect(Highest().fraction() < 1)
    }
}
