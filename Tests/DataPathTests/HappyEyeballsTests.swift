import Testing

@testable import DataPath

/// RFC 8305 over a virtual clock.
@Suite struct HappyEyeballsTests {
    private let delay = HappyEyeballs.attemptDelay

    @Test func attemptsBeginAQuarterOfASecondApart() {
        var machine = HappyEyeballs(candidates: 3)
        #expect(machine.on(.begun, at: 0) == [.connect(0), .wait(until: delay)])
        #expect(machine.on(.delayPassed, at: delay) == [.connect(1), .wait(until: 2 * delay)])
        #expect(machine.on(.delayPassed, at: 2 * delay) == [.connect(2)])
        // Nothing is left to begin; the connect timeout bounds what runs.
        #expect(machine.on(.delayPassed, at: 3 * delay) == [])
    }

    @Test func aFailureBeginsTheNextAtOnce() {
        var machine = HappyEyeballs(candidates: 2)
        _ = machine.on(.begun, at: 0)
        #expect(machine.on(.failed(0), at: 7) == [.connect(1)])
        #expect(machine.on(.failed(1), at: 9) == [.lost])
        #expect(machine.isOver)
    }

    @Test func aLateFailureOfTheFirstLeavesTheSecondAlone() {
        var machine = HappyEyeballs(candidates: 2)
        _ = machine.on(.begun, at: 0)
        _ = machine.on(.delayPassed, at: delay)
        #expect(machine.on(.failed(0), at: delay + 1) == [])
        #expect(machine.on(.connected(1), at: delay + 2) == [.won(1)])
    }

    @Test func theFirstConnectedWinsAndTheOthersAreClosed() {
        var machine = HappyEyeballs(candidates: 4)
        _ = machine.on(.begun, at: 0)
        _ = machine.on(.delayPassed, at: delay)
        _ = machine.on(.delayPassed, at: 2 * delay)
        #expect(
            machine.on(.connected(1), at: 2 * delay + 1)
                == [.abandon(0, overtaken: true), .abandon(2, overtaken: false), .won(1)])
        // The winner may still fail at TLS: what is left is everything that has not failed.
        #expect(machine.unfailed(but: 1) == [0, 2, 3])
        #expect(machine.on(.connected(2), at: 2 * delay + 2) == [])
        #expect(machine.on(.delayPassed, at: 3 * delay) == [])
    }

    @Test func theEndClosesWhatRuns() {
        var machine = HappyEyeballs(candidates: 2)
        _ = machine.on(.begun, at: 0)
        _ = machine.on(.delayPassed, at: delay)
        #expect(machine.on(.ended, at: 20 * delay) == [.abandon(0, overtaken: false), .abandon(1, overtaken: false)])
        #expect(machine.on(.failed(0), at: 20 * delay) == [])
    }

    @Test func familiesTakeTurns() {
        let list = ["6a", "6b", "6c", "4a", "4b"]
        #expect(HappyEyeballs.interleave(list) { $0.hasPrefix("6") } == ["6a", "4a", "6b", "4b", "6c"])
        #expect(HappyEyeballs.interleave(["4a", "6a", "6b"]) { $0.hasPrefix("6") } == ["4a", "6a", "6b"])
        #expect(HappyEyeballs.interleave([String]()) { $0.hasPrefix("6") } == [])
    }
}
