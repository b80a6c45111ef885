/// The trace of a recipe's run, for `cardea explain --trace`: never a value, only which there were and how long.
public struct RunTrace: Sendable {
    /// A value by its name and size.
    public struct Value: Sendable, Equatable {
        /// The value's name in the recipe.
        public var name: String
        /// Bytes.
        public var length: Int
    }

    /// A step of the run.
    public struct Step: Sendable {
        /// The step's name in the recipe.
        public var name: String
        /// `durable`, `session` or `access`.
        public var layer: String
        /// Method and URL, with the names of what stood in them.
        public var request: String
        /// nil: no answer.
        public var status: Int?
        /// Nanoseconds.
        public var duration: UInt64
        /// The values taken out of the answer.
        public var taken: [Value]
        /// The result in a word or a sentence.
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

    /// Steps kept: with two tries of a layer and the ladder above it no run makes more.
    public static let mostSteps = 32
}

extension RunTrace.Value {
    static func list(_ values: [String: Secret]) -> [RunTrace.Value] {
        values.sorted { $0.key < $1.key }.map { RunTrace.Value(name: $0.key, length: $0.value.count) }
    }
}
