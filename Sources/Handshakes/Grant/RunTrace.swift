/// What one run of a recipe did, for `cardea explain --trace`: never a value, only which there were and how long.
public struct RunTrace: Sendable {
    public struct Value: Sendable, Equatable {
        public var name: String
        /// Bytes.
        public var length: Int
    }

    public struct Step: Sendable {
        public var name: String
        public var layer: String
        /// Method and URL, with the names of what stood in them.
        public var request: String
        /// nil: no answer.
        public var status: Int?
        /// Nanoseconds.
        public var duration: UInt64
        public var taken: [Value]
        /// One word or one sentence: what became of it.
        public var outcome: String
    }

    /// Seconds since 1970.
    public var startedAt: Int64
    public var challenge: [Value]
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
