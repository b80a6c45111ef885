/// The promises that a run is judged by, as it runs and at its end (docs/explanation/what-is-promised.md).
enum Invariant: String, CaseIterable {
    /// A gateway makes one grant for a key at a time.
    case oneGrant = "one-grant"
    /// A refused password is not sent again.
    case refusedPassword = "refused-password"
    /// A refresh token is not sent by whoever could know its successor.
    case spentRefreshToken = "spent-refresh-token"
    /// A credential goes to its own upstream, for its own route.
    case credentialPlace = "credential-place"
    /// A token is served until it is refused, has ended or is taken away.
    case servedToken = "served-token"
    /// Every request is answered once, whole or visibly cut.
    case oneAnswer = "one-answer"
    /// An answer is the one that the upstream gave to this request.
    case rightAnswer = "right-answer"
    /// Nobody waits for ever.
    case endlessWait = "endless-wait"
    /// What cannot be had now is not asked for again and again without a pause.
    case restless
    /// Where nothing was broken everything succeeds.
    case calmSuccess = "calm-success"
    /// No secret stands in any output.
    case toldSecret = "told-secret"
    /// Every buffer, queue and count is back at zero at the end.
    case leftBehind = "left-behind"
    /// The gateway asks nothing of the kernel that no correct program asks.
    case misuse = "misuse"
    /// In a fleet without a confirmed lease no step is made that spends something.
    case fleetLease = "fleet-lease"
    /// What was committed is there after a cut of the power.
    case durable = "durable"
    /// Once nothing is broken any more, everything works again.
    case recovery
    /// Operators are told what is.
    case truth
}

/// A broken promise.
struct Violation {
    let invariant: Invariant
    let time: UInt64
    let words: String
}

/// Collects what is broken, and how often each promise was looked at.
final class Verdicts {
    private(set) var violations: [Violation] = []
    private(set) var checks: [Invariant: UInt64] = [:]
    /// More of one kind tell nothing new.
    private static let most = 200
    private let timeline: Timeline
    private let journal: Journal

    init(_ timeline: Timeline, _ journal: Journal) {
        self.timeline = timeline
        self.journal = journal
    }

    /// - Returns: whether the promise holds.
    @discardableResult
    func expect(_ holds: Bool, _ invariant: Invariant, _ words: @autoclosure () -> String) -> Bool {
        checks[invariant, default: 0] += 1
        guard !holds else { return true }
        guard violations.count < Self.most else { return false }
        let text = words()
        violations.append(Violation(invariant: invariant, time: timeline.now, words: text))
        journal.tell("BROKEN \(invariant.rawValue): \(text)")
        return false
    }
}
