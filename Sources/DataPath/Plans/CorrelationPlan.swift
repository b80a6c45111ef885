/// What a route tells its upstream of the identifiers of its requests.
package struct CorrelationPlan: Sendable {
    /// The fields that we write; the caller's own are deleted for them.
    package var written: Fields = []

    /// Each request belongs to a trace.
    package var traces = false
    /// Of 2⁶⁴ − 1 requests whose caller's word on it is not believed, so many are sampled.
    package var sampled: UInt64 = 0

    /// Nothing: the fields of caller and upstream pass as they come.
    package init() {}

    /// Fields that name a request.
    package struct Fields: OptionSet, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// `X-Request-Id`.
        package static let requestID = Fields(rawValue: 1)
        /// `traceparent`.
        package static let trace = Fields(rawValue: 2)
        /// `tracestate`, where the caller's trace goes on.
        package static let traceState = Fields(rawValue: 4)
    }
}
