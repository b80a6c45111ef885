internal import FoundationEssentials
public import Gateway

/// The body of `GET /run?identity=NAME`: the last run of its recipe. In JSON the names are in snake_case.
public struct RunDocument: Codable, Sendable, Equatable {
    public var identity: String
    /// nil: it has not run since the start, or it is no recipe.
    public var run: Run?

    public struct Run: Codable, Sendable, Equatable {
        /// Seconds since 1970.
        public var startedAt: Int64
        public var outcome: String
        public var challenge: [Value]
        public var steps: [Step]
    }

    public struct Step: Codable, Sendable, Equatable {
        public var name: String
        public var layer: String
        public var request: String
        public var status: Int?
        public var milliseconds: Double
        public var taken: [Value]
        public var outcome: String
    }

    public struct Value: Codable, Sendable, Equatable {
        public var name: String
        public var bytes: Int
    }

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

    func encoded() -> String { json(self) }
}
