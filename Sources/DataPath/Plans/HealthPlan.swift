/// The active checks of a route: what they ask for, and how they judge.
package struct HealthPlan: Hashable, Sendable {
    /// The target, as the upstream sees it.
    var path: String
    /// The Host field.
    var host: String
    /// Nanoseconds.
    var interval: UInt64
    var timeout: UInt64
    /// Outcomes in a row that turn an address over.
    var healthy: Int
    var unhealthy: Int
    /// Good ones; nil: 200 to 299.
    var statuses: [Int]?

    package init(
        path: String, host: String, interval: UInt64, timeout: UInt64, healthy: Int, unhealthy: Int,
        statuses: [Int]? = nil
    ) {
        self.path = path
        self.host = host
        self.interval = interval
        self.timeout = timeout
        self.healthy = healthy
        self.unhealthy = unhealthy
        self.statuses = statuses
    }

    func isGood(_ status: Int) -> Bool { statuses?.contains(status) ?? (200..<300).contains(status) }
}
