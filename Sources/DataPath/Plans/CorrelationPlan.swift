/// What a route tells others of the identifiers of its requests.
package struct CorrelationPlan: Sendable {
    /// The upstream gets the request's id in `X-Request-Id`; the caller's own field is deleted for it.
    package var sendsID = false
    /// The caller gets it in the answer; the upstream's own field is deleted for it.
    package var answersID = false

    /// Each request belongs to a trace.
    package var traces = false
    /// The upstream is told of the trace; the caller's own fields are deleted for it.
    package var sendsTrace = false
    /// Of 2⁶⁴ − 1 requests whose caller's word on it is not believed, so many are sampled.
    package var sampled: UInt64 = 0

    /// Nothing: the fields of caller and upstream pass as they come.
    package init() {}

    /// Lines of ours go to the upstream.
    var writesToUpstream: Bool { sendsID || sendsTrace }
}
