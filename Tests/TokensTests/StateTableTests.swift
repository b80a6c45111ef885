import Testing

@testable import Tokens

/// Every state of a key against every event, one line each.
@Suite struct StateTableTests {
    enum Start: String, CaseIterable {
        case empty, acquiring, landing, fresh, refreshing, renewalFailing, grace, refused, negative, quarantined
    }

    enum Event: String, CaseIterable {
        case missed, due, challenged, challengedOlder, landed, failed, committed, secret, purge, reset, reload, retired,
            jump
    }

    /// The machine in that state at second 90.
    static func bench(_ start: Start) -> Bench {
        var bench: Bench
        switch start {
        case .empty: bench = Bench()
        case .acquiring:
            bench = Bench()
            _ = bench.miss(0, at: 90)
        case .landing:
            bench = Bench(AccessTokenPolicy())
            _ = bench.miss(0, at: 90)
            _ = bench.land(1, at: 90)
        case .fresh:
            bench = Bench()
            _ = bench.miss(0, at: 85)
            _ = bench.land(1, at: 85)
        case .refreshing:
            bench = Bench.warm()
            _ = bench.due(1, at: 90)
        case .renewalFailing:
            bench = Bench.warm()
            _ = bench.due(1, at: 90)
            _ = bench.fail(1, .issuerUnavailable(retryAfter: .seconds(3)), at: 90)
        case .grace:
            bench = Bench.warm(RenewalTests.grace)
            _ = bench.due(1, at: 90)
            _ = bench.fail(1, .issuerUnavailable(retryAfter: .seconds(3)), at: 90)
        case .refused:
            bench = Bench.warm()
            _ = bench.challenge(0, ChallengeReport(generation: 1), at: 90)
        case .negative:
            bench = Bench()
            _ = bench.miss(0, at: 90)
            _ = bench.fail(1, .issuerUnavailable(retryAfter: .seconds(3)), at: 90)
        case .quarantined:
            bench = Bench()
            _ = bench.miss(0, at: 90)
            _ = bench.fail(1, .credentialRejected, at: 90)
        }
        return bench
    }

    static func apply(_ event: Event, to bench: inout Bench) -> [String] {
        let now = Instant.seconds(90)
        switch event {
        case .missed: return bench.miss(3, at: 90)
        case .due: return bench.due(1, at: 90)
        case .challenged: return bench.challenge(3, ChallengeReport(generation: 1), at: 90)
        case .challengedOlder: return bench.challenge(3, ChallengeReport(generation: 999), at: 90)
        case .landed: return bench.land(1, at: 90)
        case .failed: return bench.fail(1, at: 90)
        case .committed: return lines(bench.machine.committed(generation: 1, succeeded: true, at: now))
        case .secret: return lines(bench.machine.secretChanged(to: 2, at: now))
        case .purge: return lines(bench.machine.epochRose(to: 2, cause: .purge, at: now))
        case .reset: return lines(bench.machine.epochRose(to: 2, cause: .reset, at: now))
        case .reload: return lines(bench.machine.epochRose(to: 2, cause: .reload, at: now))
        case .retired: return lines(bench.machine.retired(at: now))
        case .jump: return lines(bench.machine.wallClockJumped(at: now))
        }
    }

    @Test func everyStateAgainstEveryEvent() {
        var actual: [String] = []
        for start in Start.allCases {
            for event in Event.allCases {
                var bench = Self.bench(start)
                let lines = Self.apply(event, to: &bench)
                actual.append("\(start) + \(event): " + (lines.isEmpty ? "-" : lines.joined(separator: "; ")))
            }
        }
        let expected = Self.table.split(separator: "\n").map(String.init)
        for (actual, expected) in zip(actual, expected) { #expect(actual == expected) }
        #expect(actual.count == expected.count)
    }

    static let table = """
        empty + missed: fly #1 missed
        empty + due: -
        empty + challenged: fly #1 challenged
        empty + challengedOlder: fly #1 challenged
        empty + landed: discard #1
        empty + failed: discard #1
        empty + committed: -
        empty + secret: -
        empty + purge: unpublish; delete row
        empty + reset: -
        empty + reload: -
        empty + retired: unpublish
        empty + jump: -
        acquiring + missed: -
        acquiring + due: -
        acquiring + challenged: -
        acquiring + challengedOlder: -
        acquiring + landed: publish g1 until 185; answer [0] ready g1 new; report tokenAcquired
        acquiring + failed: answer [0] failed unavailable; report acquisition failed unavailable
        acquiring + committed: -
        acquiring + secret: -
        acquiring + purge: abandon #1; unpublish; delete row; fly #2 restarted
        acquiring + reset: abandon #1; fly #2 restarted
        acquiring + reload: abandon #1; fly #2 restarted
        acquiring + retired: unpublish; abandon #1; answer [0] moved
        acquiring + jump: -
        landing + missed: -
        landing + due: -
        landing + challenged: -
        landing + challengedOlder: -
        landing + landed: discard #1
        landing + failed: discard #1
        landing + committed: publish g1 until 185; answer [0] ready g1 new; report tokenAcquired
        landing + secret: -
        landing + purge: unpublish; delete row; fly #2 restarted
        landing + reset: fly #2 restarted
        landing + reload: fly #2 restarted
        landing + retired: unpublish; answer [0] moved
        landing + jump: -
        fresh + missed: publish g1 until 180; answer [3] ready g1
        fresh + due: fly #2 refreshAhead
        fresh + challenged: unpublish; fly #2 challenged
        fresh + challengedOlder: answer [3] ready g1 new
        fresh + landed: discard #1
        fresh + failed: discard #1
        fresh + committed: -
        fresh + secret: -
        fresh + purge: unpublish; delete row
        fresh + reset: -
        fresh + reload: -
        fresh + retired: unpublish
        fresh + jump: publish g1 until 180
        refreshing + missed: publish g1 until 95; answer [3] ready g1
        refreshing + due: -
        refreshing + challenged: unpublish
        refreshing + challengedOlder: answer [3] ready g1 new
        refreshing + landed: publish g2 until 185; report tokenRefreshed
        refreshing + failed: report renewal failed unavailable
        refreshing + committed: -
        refreshing + secret: -
        refreshing + purge: abandon #1; unpublish; delete row
        refreshing + reset: abandon #1; fly #2 restarted
        refreshing + reload: abandon #1; fly #2 restarted
        refreshing + retired: unpublish; abandon #1
        refreshing + jump: -
        renewalFailing + missed: publish g1 until 95; answer [3] ready g1
        renewalFailing + due: -
        renewalFailing + challenged: answer [3] failed unavailable
        renewalFailing + challengedOlder: answer [3] ready g1 new
        renewalFailing + landed: discard #1
        renewalFailing + failed: discard #1
        renewalFailing + committed: -
        renewalFailing + secret: -
        renewalFailing + purge: unpublish; delete row
        renewalFailing + reset: -
        renewalFailing + reload: -
        renewalFailing + retired: unpublish
        renewalFailing + jump: -
        grace + missed: publish g1 until 160; answer [3] ready g1
        grace + due: -
        grace + challenged: answer [3] failed unavailable
        grace + challengedOlder: answer [3] ready g1 new
        grace + landed: discard #1
        grace + failed: discard #1
        grace + committed: -
        grace + secret: -
        grace + purge: unpublish; delete row
        grace + reset: -
        grace + reload: -
        grace + retired: unpublish
        grace + jump: -
        refused + missed: -
        refused + due: -
        refused + challenged: -
        refused + challengedOlder: -
        refused + landed: publish g2 until 185; answer [0] ready g2 new; report challengeAnswered
        refused + failed: publish g1 until 95; answer [0] failed unavailable; report renewal failed unavailable
        refused + committed: -
        refused + secret: -
        refused + purge: abandon #1; unpublish; delete row; fly #2 restarted
        refused + reset: abandon #1; fly #2 restarted
        refused + reload: abandon #1; fly #2 restarted
        refused + retired: unpublish; abandon #1; answer [0] moved
        refused + jump: -
        negative + missed: answer [3] failed unavailable
        negative + due: -
        negative + challenged: answer [3] failed unavailable
        negative + challengedOlder: answer [3] failed unavailable
        negative + landed: discard #1
        negative + failed: discard #1
        negative + committed: -
        negative + secret: -
        negative + purge: unpublish; delete row
        negative + reset: -
        negative + reload: -
        negative + retired: unpublish
        negative + jump: -
        quarantined + missed: answer [3] failed rejected
        quarantined + due: -
        quarantined + challenged: answer [3] failed rejected
        quarantined + challengedOlder: answer [3] failed rejected
        quarantined + landed: discard #1
        quarantined + failed: discard #1
        quarantined + committed: -
        quarantined + secret: -
        quarantined + purge: unpublish; delete row
        quarantined + reset: -
        quarantined + reload: -
        quarantined + retired: unpublish
        quarantined + jump: -
        """
}
