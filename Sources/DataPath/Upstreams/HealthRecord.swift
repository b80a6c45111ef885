/// The checks of one address: when the next one is due, and what the last ones say together. A pure machine over time; whoever drives it
/// opens the connections.
///
/// An address counts as healthy until checks say otherwise: a gateway that starts knows nothing against it.
struct HealthRecord {
    private(set) var isHealthy = true
    private(set) var nextDue: UInt64
    private(set) var isRunning = false
    private(set) var checks: UInt64 = 0
    private(set) var failures: UInt64 = 0
    /// Why the last check was bad; nil after a good one.
    private(set) var lastFailure: String?
    /// When that was, in nanoseconds of the clock that the checks are timed by; zero before any.
    private(set) var lastFailureAt: UInt64 = 0
    /// Outcomes in a row that speak against `isHealthy`.
    private var contrary = 0

    /// Beginners look within this time, nanoseconds, so that many addresses are not asked at one moment.
    static let firstSpread: UInt64 = 1_000_000_000

    /// - Parameter chance: from 0 to 1.
    init(_ plan: HealthPlan, at now: UInt64, chance: Double) {
        nextDue = now + UInt64(Double(min(plan.interval, Self.firstSpread)) * chance)
    }

    func isDue(at now: UInt64) -> Bool { !isRunning && now >= nextDue }

    /// A check begins. The next one is counted from here, so that a slow server is not asked more rarely than a quick one.
    /// - Parameter chance: from 0 to 1; turns the interval by up to a tenth either way, so that gateways do not ask in step.
    mutating func began(_ plan: HealthPlan, at now: UInt64, chance: Double) {
        isRunning = true
        nextDue = now + UInt64(Double(plan.interval) * (0.9 + 0.2 * chance))
    }

    /// A check that shows nothing counts for nothing: our own shortage must not take every address of every upstream away.
    /// - Returns: whether the address has turned over.
    mutating func ended(_ plan: HealthPlan, _ outcome: HealthProbe.Outcome, at now: UInt64) -> Bool {
        isRunning = false
        let failure: String?
        switch outcome {
        case .fit: failure = nil
        case .unfit(let reason): failure = reason
        case .unknown: return false
        }
        checks += 1
        lastFailure = failure
        if failure != nil {
            failures += 1
            lastFailureAt = now
        }
        guard (failure == nil) != isHealthy else {
            contrary = 0
            return false
        }
        contrary += 1
        guard contrary >= (isHealthy ? plan.unhealthy : plan.healthy) else { return false }
        isHealthy.toggle()
        contrary = 0
        return true
    }
}
