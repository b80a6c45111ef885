import HotCache
import Testing

@testable import Tokens

/// While another process of ours grants, as in an upgrade, this one does not; what it holds it serves.
@Suite struct SuspensionTests {
    @Test func aMissIsToldToComeAgainInASecond() {
        var bench = Bench()
        _ = bench.machine.suspended(at: 0)
        let told = bench.machine.missed(from: 0, at: 0)
        #expect(
            told == [.answer(.loop(0), .failed(.notPermitted(retryAfter: .seconds(1)), retryAfter: .seconds(1)))])
        // No backoff is left behind.
        _ = bench.machine.resumed(at: .seconds(1))
        #expect(bench.miss(0, at: 1) == ["fly #1 missed"])
    }

    @Test func whatIsHeldIsServedAndWhatIsUnderWayLands() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        _ = bench.machine.suspended(at: 0)
        #expect(bench.miss(1, at: 0) == [])
        #expect(bench.land(1, at: 1) == ["publish g1 until 96", "answer [0, 1] ready g1 new", "report tokenAcquired"])
        #expect(bench.miss(1, at: 2) == ["publish g1 until 96", "answer [1] ready g1"])
    }

    @Test func aRefusedTokenStaysServedAndItsCallerIsToldToComeAgain() {
        var bench = Bench.warm()
        _ = bench.machine.suspended(at: 0)
        #expect(bench.challenge(0, ChallengeReport(generation: 1), at: 1) == ["answer [0] failed notPermitted"])
        #expect(bench.machine.servedGeneration(at: .seconds(1)) == 1)
    }

    @Test func aRenewalThatWasDueIsTakenUp() {
        var bench = Bench.warm()
        _ = bench.machine.suspended(at: 0)
        // A loop asks once a generation.
        #expect(bench.due(1, at: 85) == [])
        #expect(lines(bench.machine.resumed(at: .seconds(86))) == ["fly #1 refreshAhead"])
        #expect(lines(bench.machine.resumed(at: .seconds(86))) == [])
    }

    @Test func aRenewalThatNobodyAskedForIsNotTakenUp() {
        var bench = Bench.warm()
        _ = bench.machine.suspended(at: .seconds(84))
        #expect(lines(bench.machine.resumed(at: .seconds(85))) == [])
    }

    @Test func timersRenewNothing() {
        var bench = Bench.warm(AccessTokenPolicy(persist: false, renewsByTimer: true))
        _ = bench.machine.suspended(at: 0)
        #expect(bench.tick(at: 85) == [])
        #expect(lines(bench.machine.startupRequested(at: .seconds(99))) == [])
    }

    @Test func aQuarantineIsStillOne() {
        var bench = Bench()
        _ = bench.miss(0, at: 0)
        _ = bench.fail(1, .credentialRejected, at: 0)
        _ = bench.machine.suspended(at: 0)
        #expect(bench.miss(0, at: 1) == ["answer [0] failed rejected"])
        _ = bench.machine.resumed(at: .seconds(2))
        #expect(bench.miss(0, at: 2) == ["answer [0] failed rejected"])
    }
}
