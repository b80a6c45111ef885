import HotCache
import Testing

@testable import Tokens

/// Random walks: whatever happens in whatever order, the rules (docs/design/tokens.md#rules) hold at every step.
@Suite struct WalkTests {
    struct Walk {
        var machine: AccessTokenMachine
        var random: UInt64
        var now: Instant = .seconds(1)
        var generation: UInt64 = 0
        var epoch: UInt64 = 1
        var inTheAir: [FlightToken] = []
        var abandoned: [FlightToken] = []
        var commits: [UInt64] = []
        var waiting: LoopSet = []
        var published: UInt64 = 0
        var timer: Instant?
        var faults: [String] = []

        init(_ policy: AccessTokenPolicy, seed: UInt64) {
            machine = AccessTokenMachine(
                policy: policy, standing: Standing(digest: digest(1), secretVersion: 1, epoch: 1), seed: seed)
            random = seed
        }

        mutating func next(_ bound: UInt64) -> UInt64 {
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (random >> 33) % bound
        }

        mutating func grant() -> Grant {
            generation += 1
            let life = Int64(next(40)) + 1
            let lifetime = LifetimePolicy().lifetime(sentAt: now, expiresIn: life, jitter: 0)
            return Grant(generation: generation, lifetime: lifetime, level: Int(next(3)), rotated: next(4) == 0)
        }

        mutating func apply(_ actions: [AccessTokenMachine.Action]) {
            for action in actions {
                switch action {
                case .startFlight(let flight):
                    if !inTheAir.isEmpty { faults.append("two flights") }
                    if flight.token.standing != machine.standing { faults.append("flight of another standing") }
                    inTheAir.append(flight.token)
                case .abandonFlight(let token):
                    inTheAir.removeAll { $0 == token }
                    abandoned.append(token)
                case .commit(let generation): commits.append(generation)
                case .publish(let fields):
                    if fields.generation < published { faults.append("an older generation is published again") }
                    if fields.servedUntil <= now { faults.append("a dead token is published") }
                    published = fields.generation
                case .answer(let loops, _):
                    if !loops.isSubset(of: waiting) { faults.append("an answer nobody waits for") }
                    waiting.subtract(loops)
                case .scout(let loops): waiting.subtract(loops)
                case .schedule(let time): timer = time
                case .cancelTimer: timer = nil
                case .unpublish, .deleteRow, .discard, .report, .postpone, .watch: break
                }
            }
            if let held = machine.held, held.isRefused, !machine.isBusy {
                faults.append("a refused token is kept idle")
            }
            if machine.flight != nil, machine.landing != nil { faults.append("a flight and a landing") }
        }

        /// A loop asks only once until it is answered.
        mutating func step() {
            now += .milliseconds(next(4_000))
            if let due = timer, due <= now {
                timer = nil
                apply(machine.timerFired(at: now))
            }
            let loop = Int(next(4))
            switch next(16) {
            case 0...3:
                guard !waiting.contains(.loop(loop)) else { return }
                waiting.insert(.loop(loop))
                apply(machine.missed(from: loop, at: now))
            case 4...6:
                guard !waiting.contains(.loop(loop)) else { return }
                waiting.insert(.loop(loop))
                let sent = next(3) == 0 ? 0 : next(generation + 1)
                let demand: Demand = next(3) == 0 ? .level(Int(next(4))) : .token
                let report = ChallengeReport(
                    generation: next(2) == 0 ? published : sent, isReplay: next(3) == 0, justGranted: next(2) == 0,
                    demand: demand)
                let actions = machine.challenged(from: loop, report, at: now)
                if actions.contains(.postpone) {
                    if !machine.isBusy { faults.append("postponed for nothing") }
                    waiting.subtract(.loop(loop))
                }
                apply(actions)
            case 7: apply(machine.refreshDue(generation: next(2) == 0 ? published : next(generation + 1), at: now))
            case 8...10:
                let late = next(8) == 0 ? abandoned.last : nil
                guard let token = late ?? inTheAir.popLast() else { return }
                let grant = grant()
                apply(machine.landed(token, grant, at: now))
            case 11:
                guard let token = inTheAir.popLast() else { return }
                let failures: [GrantFailure] = [
                    .timedOut, .issuerUnavailable(retryAfter: .seconds(next(5))), .credentialRejected,
                    .issuerAnswerInvalid,
                ]
                let failure = failures[Int(next(4))]
                apply(machine.failed(token, failure, at: now))
            case 12, 13:
                guard let generation = commits.popLast() else { return }
                apply(machine.committed(generation: generation, succeeded: next(4) != 0, at: now))
            case 14: apply(machine.secretChanged(to: machine.standing.secretVersion + 1, at: now))
            default:
                guard next(4) == 0 else { return apply(machine.wallClockJumped(at: now)) }
                epoch += 1
                let cause = [EpochCause.purge, .logout, .reset, .reload][Int(next(4))]
                apply(machine.epochRose(to: epoch, cause: cause, at: now))
                if cause == .purge || cause == .logout, machine.heldGrant != nil { faults.append("purged in vain") }
            }
        }

        /// Nothing answers any more: only the timer goes on.
        mutating func drain() {
            for _ in 0..<64 {
                guard !waiting.isEmpty, let due = timer else { return }
                now = max(now, due)
                timer = nil
                apply(machine.timerFired(at: now))
            }
        }
    }

    static let policies: [AccessTokenPolicy] = [
        AccessTokenPolicy(), AccessTokenPolicy(persist: false, renewsByTimer: true),
        AccessTokenPolicy(onIssuerFailure: .fail), AccessTokenPolicy(onIssuerFailure: .serveExpired(.seconds(20))),
        AccessTokenPolicy(needsChallenge: true), AccessTokenPolicy(canRegrant: false),
        AccessTokenPolicy(connectivity: .offline),
    ]

    @Test(arguments: policies)
    func everyLoopIsAnsweredOnceAndOneFlightIsInTheAir(_ policy: AccessTokenPolicy) {
        for seed in 1...40 as ClosedRange<UInt64> {
            var walk = Walk(policy, seed: seed)
            for _ in 0..<400 { walk.step() }
            walk.drain()
            #expect(walk.faults.isEmpty, "seed \(seed)")
            #expect(walk.waiting.isEmpty, "seed \(seed)")
        }
    }
}
