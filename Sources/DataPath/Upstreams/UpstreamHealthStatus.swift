/// The verdict of active checks on an upstream's addresses, and the trouble that the last connection met.
public struct UpstreamHealthStatus: Sendable {
    /// The upstream as it is configured.
    public var upstream: String
    /// The path that the checks ask for; nil where there are no checks.
    public var path: String?
    /// Where its name leads now.
    public var addresses: [Address]
    /// Nil while connections can be made.
    public var outage: Outage?

    /// No connection can be made.
    public struct Outage: Sendable {
        /// The last fault, as a word of the log.
        public var reason: String
        /// Since the first that failed, in nanoseconds.
        public var ago: UInt64

        package init(reason: String, ago: UInt64) {
            self.reason = reason
            self.ago = ago
        }
    }

    /// An address and its checks.
    public struct Address: Sendable {
        /// The address and port.
        public var address: String
        /// Requests are sent to it.
        public var isHealthy: Bool
        /// Checks since the start.
        public var checks: UInt64
        /// Checks that failed since the start.
        public var failures: UInt64
        /// Why the last check was bad; nil after a good one.
        public var lastFailure: String?
        /// Nanoseconds since that check's end; nil after a good one.
        public var lastFailureAgo: UInt64?

        /// Memberwise.
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

    /// Memberwise.
    public init(upstream: String, path: String?, addresses: [Address], outage: Outage? = nil) {
        self.upstream = upstream
        self.path = path
        self.addresses = addresses
        self.outage = outage
    }
}
