import HotCache
import Testing

@testable import Tokens

func digest(_ byte: UInt8) -> IdentityDigest {
    guard let digest = IdentityDigest([UInt8](repeating: byte, count: 32)) else { preconditionFailure("32 bytes") }
    return digest
}

let issuer = Origin(scheme: "https", host: "idp.example.com", port: 443)

/// Whole seconds, for expectations that can be read.
func text(_ instant: Instant) -> String { instant == .max ? "ever" : String(instant / 1_000_000_000) }

func text(_ failure: GrantFailure) -> String {
    switch failure {
    case .issuerUnavailable: "unavailable"
    case .issuerAnswerInvalid: "invalid"
    case .timedOut: "timedOut"
    case .notPermitted: "notPermitted"
    case .configuration: "configuration"
    case .policyDenied: "denied"
    case .credentialRejected: "rejected"
    case .interactionRequired: "login"
    }
}

func text(_ outcome: Outcome) -> String {
    switch outcome {
    case .ready(let generation, let justGranted): "ready g\(generation)" + (justGranted ? " new" : "")
    case .failed(let failure, _): "failed \(text(failure))"
    case .final: "final"
    case .moved: "moved"
    }
}

/// One line an action; timers apart, which have tests of their own.
func lines(_ actions: [AccessTokenMachine.Action]) -> [String] {
    actions.compactMap { action in
        switch action {
        case .startFlight(let flight): "fly #\(flight.token.id) \(flight.reason)"
        case .abandonFlight(let token): "abandon #\(token.id)"
        case .commit(let generation): "commit g\(generation)"
        case .publish(let fields): "publish g\(fields.generation) until \(text(fields.servedUntil))"
        case .unpublish: "unpublish"
        case .answer(let loops, let outcome): "answer \(loops.indices) \(text(outcome))"
        case .postpone: "postpone"
        case .scout(let loops): "scout \(loops.indices)"
        case .schedule, .cancelTimer, .watch: nil
        case .deleteRow: "delete row"
        case .discard(let token, let revoke): "discard #\(token.id)" + (revoke ? " revoke" : "")
        case .report(let event): "report \(text(event))"
        }
    }
}

func text(_ event: AccessTokenMachine.Event) -> String {
    switch event {
    case .renewalFailed(let failure): "renewal failed \(text(failure))"
    case .acquisitionFailed(let failure): "acquisition failed \(text(failure))"
    default: "\(event)"
    }
}

/// A machine with a clock in seconds and grants of 100 s: refresh at 80, served until 95, expired at 100.
struct Bench {
    var machine: AccessTokenMachine
    var generation: UInt64 = 0

    static let unavailable = GrantFailure.issuerUnavailable(retryAfter: nil)

    init(_ policy: AccessTokenPolicy = AccessTokenPolicy(persist: false)) {
        machine = AccessTokenMachine(
            policy: policy, standing: Standing(digest: digest(1), secretVersion: 1, epoch: 1), seed: 1)
    }

    mutating func grant(at second: UInt64, level: Int? = nil, rotated: Bool = false) -> Grant {
        generation += 1
        let lifetime = LifetimePolicy().lifetime(sentAt: .seconds(second), expiresIn: 100, jitter: 0)
        return Grant(
            generation: generation, lifetime: lifetime, level: level, asked: machine.flight?.scopes ?? [],
            rotated: rotated)
    }

    /// The token of flight `id`, as of the machine's present standing unless told otherwise.
    func token(_ id: UInt64, epoch: UInt64 = 1, secretVersion: UInt64 = 1) -> FlightToken {
        FlightToken(id: id, standing: Standing(digest: digest(1), secretVersion: secretVersion, epoch: epoch))
    }

    mutating func miss(_ loop: Int, at second: UInt64) -> [String] {
        lines(machine.missed(from: loop, at: .seconds(second)))
    }

    mutating func land(_ id: UInt64, at second: UInt64, level: Int? = nil, rotated: Bool = false, epoch: UInt64 = 1)
        -> [String]
    {
        let grant = grant(at: second, level: level, rotated: rotated)
        return lines(machine.landed(token(id, epoch: epoch), grant, at: .seconds(second)))
    }

    mutating func fail(_ id: UInt64, _ failure: GrantFailure = Bench.unavailable, at second: UInt64) -> [String] {
        lines(machine.failed(token(id), failure, at: .seconds(second)))
    }

    mutating func challenge(_ loop: Int, _ report: ChallengeReport, at second: UInt64) -> [String] {
        lines(machine.challenged(from: loop, report, at: .seconds(second)))
    }

    mutating func due(_ generation: UInt64, at second: UInt64) -> [String] {
        lines(machine.refreshDue(generation: generation, at: .seconds(second)))
    }

    mutating func tick(at second: UInt64) -> [String] { lines(machine.timerFired(at: .seconds(second))) }

    /// Holds g1, granted at 0.
    static func warm(_ policy: AccessTokenPolicy = AccessTokenPolicy(persist: false), level: Int? = nil) -> Bench {
        var bench = Bench(policy)
        let grant = bench.grant(at: 0, level: level)
        _ = bench.machine.adopted(grant, from: .configuration, at: 0)
        return bench
    }
}
