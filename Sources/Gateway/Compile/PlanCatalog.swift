internal import DataPath
internal import Synchronization

/// The plans of one kind in a configuration; what is configured with the same words shares one.
final class PlanCatalog<Settings: Hashable & Sendable, Plan: Sendable>: Sendable {
    private let plans = Mutex(KeyedList<Settings, Plan>())
    private let earlier: KeyedList<Settings, Plan>

    /// - Parameter running: whose plans go on where the settings are the same, and with them the connections that were made with them.
    init(after running: PlanCatalog? = nil) { earlier = running?.plans.withLock { $0 } ?? KeyedList() }

    var all: [Plan] { plans.withLock { $0.all } }

    /// - Parameter make: reads what a new plan needs, and may block. A file that cannot be read is no error: what needs it answers 502 or
    ///   503 until it can.
    func plan(_ settings: Settings, _ make: () -> Plan) -> Plan {
        if let known = plans.withLock({ $0[settings] }) { return known }
        let plan = earlier[settings] ?? make()
        plans.withLock { $0.append(plan, for: settings) }
        return plan
    }
}
