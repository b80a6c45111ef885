public import Gateway

/// The body of `GET /run?identity=NAME`: the last run of its recipe. In JSON the names are in snake_case.
public struct RunDocument: AdminDocument, Sendable, Equatable {
    /// The identity's name in the configuration.
    public var identity: String
    /// nil: it has not run since the start, or it is no recipe.
    public var run: Run?

    /// A run of the recipe.
    public struct Run: Codable, Sendable, Equatable {
        /// Seconds since 1970.
        public var startedAt: Int64
        /// The run's outcome, in words for a person.
        public var outcome: String
        /// The values that the recipe took from the challenge.
        public var challenge: [Value]
        /// In the order in which they were made.
        public var steps: [Step]
    }

    /// A step of the run.
    public struct Step: Codable, Sendable, Equatable {
        /// The step's name in the recipe.
        public var name: String
        /// `durable`, `session` or `access`.
        public var layer: String
        /// Method and address of the request, without secrets.
        public var request: String
        /// The status of the answer; nil where none came.
        public var status: Int?
        /// From the request to the whole answer.
        public var milliseconds: Double
        /// The values taken out of the answer.
        public var taken: [Value]
        /// The step's outcome, in words for a person.
        public var outcome: String
    }

    /// A value by its name and size, never the value itself.
    public struct Value: Codable, Sendable, Equatable {
        /// The value's name in the recipe.
        public var name: String
        /// Bytes of the value.
        public var bytes: Int
    }

    /// - Parameter report: nil where the recipe has not run.
    public init(identity: String, _ report: RunReport?) {
        func values(_ values: [RunReport.Value]) -> [Value] { values.map { Value(name: $0.name, bytes: $0.length) } }
        self.identity = identity
        run = report.map { report in
            Run(
                startedAt: report.startedAt, outcome: report.outcome, challenge: values(report.challenge),
                steps: report.steps.map { step in
                    Step(
                        name: step.name, layer: step.layer, request: step.request, status: step.status,
                        milliseconds: Double(step.duration / 1000) / 1000, taken: values(step.taken),
                        outcome: step.outcome)
                })
        }
    }
}
