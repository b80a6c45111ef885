internal import DataPath
internal import Handshakes
internal import Keeping

/// The course of a recipe's last run, for operators. Names and lengths, never a value.
public struct RunReport: Codable, Sendable, Equatable {
    /// A value by its name and size.
    public struct Value: Codable, Sendable, Equatable {
        /// The value's name in the recipe.
        public var name: String
        /// Bytes of the value.
        public var bytes: Int
    }

    /// A step of the run.
    public struct Step: Codable, Sendable, Equatable {
        /// The step's name in the recipe.
        public var name: String
        /// `durable`, `session` or `access`.
        public var layer: String
        /// Method and URL, with the names of what stood in them.
        public var request: String
        /// Nil where no answer came.
        public var status: Int?
        /// From the request to the whole answer, in steps of a microsecond.
        public var milliseconds: Double
        /// The values taken out of the answer.
        public var taken: [Value]
        /// The step's outcome, in a word or a sentence.
        public var outcome: String
    }

    /// Seconds since 1970.
    public var startedAt: Int64
    /// The values that the recipe took from the challenge.
    public var challenge: [Value]
    /// In the order in which they were made.
    public var steps: [Step]
    /// The whole run's end.
    public var outcome: String
}

extension RunReport {
    init(_ trace: RunTrace) {
        func values(_ values: [RunTrace.Value]) -> [Value] { values.map { Value(name: $0.name, bytes: $0.length) } }
        startedAt = trace.startedAt
        challenge = values(trace.challenge)
        steps = trace.steps.map { step in
            Step(
                name: step.name, layer: step.layer, request: step.request, status: step.status,
                milliseconds: Double(step.duration / 1000) / 1000, taken: values(step.taken), outcome: step.outcome)
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
