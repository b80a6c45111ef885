/// What active checks say of an upstream's addresses, and what the last connection met.
public struct UpstreamHealthStatus: Sendable {
    public var upstream: String
    /// What the checks ask for; nil where there are none.
    public var path: String?
    public var addresses: [Address]
    public var outage: Outage?

    /// No connection can be made.
    public struct Outage: Sendable {
        public var reason: String
        /// Since the first that failed, in nanoseconds.
        public var ago: UInt64
    }

    public struct Address: Sendable {
        public var address: String
        public var isHealthy: Bool
        public var checks: UInt64
        public var failures: UInt64
        /// Why the last check was bad; nil after a good one.
        public var lastFailure: String?
        /// Nanoseconds since that check's end; nil after a good one.
        public var lastFailureAgo: UInt64?

        public init(
            address: String, isHealthy: Bool, checks: UInt64, failures: UInt64, lastFailure: String?,
            lastFailureAgo: UInt64
        ) {
            self.address = address
            self.isHealthy = isHealthy
            self.checks = checks
            self.failures = failures
            self.lastFailure = lastFailure
            self.lastFailureAgo = lastFailure == nil ? nil : lastFailureAgo
        }
    }

    public init(upstream: String, path: String?, addresses: [Address], outage: Outage? = nil) {
        self.upstream = upstream
        self.path = path
        self.addresses = addresses
        self.outage = outage
    }
}
