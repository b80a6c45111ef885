internal import Handshakes

/// What the last run of a recipe did, for operators. Names and lengths, never a value.
public struct RunReport: Sendable {
    public struct Value: Sendable {
        public var name: String
        /// Bytes.
        public var length: Int
    }

    public struct Step: Sendable {
        public var name: String
        public var layer: String
        public var request: String
        public var status: Int?
        /// Nanoseconds.
        public var duration: UInt64
        public var taken: [Value]
        public var outcome: String
    }

    /// Seconds since 1970.
    public var startedAt: Int64
    public var challenge: [Value]
    public var steps: [Step]
    public var outcome: String
}

extension RunReport {
    init(_ trace: RunTrace) {
        func values(_ values: [RunTrace.Value]) -> [Value] { values.map { Value(name: $0.name, length: $0.length) } }
        startedAt = trace.startedAt
        challenge = values(trace.challenge)
        steps = trace.steps.map { step in
            Step(
                name: step.name, layer: step.layer, request: step.request, status: step.status, duration: step.duration,
                taken: values(step.taken), outcome: step.outcome)
        }
        outcome = trace.outcome
    }
}

extension Gateway {
    /// Must be called on the keeper's loop. Nil where there is no such identity, or it has not run a recipe since the start.
    public func lastRun(identity name: String) -> RunReport? {
        keeper.assumeIsolated { keeper in
            keeper.identities.first { $0.plan.name == name }?.lastRun.map { RunReport($0) }
        }
    }
}
