package import Telemetry

/// Uses of one credential as a data loop leaves them: fixed size and trivially copyable.
package struct UseRecord: Sendable, Equatable {
    /// Nanoseconds since 1970: when the credential was added to a request, or the minute's beginning where uses are counted.
    package var time: UInt64
    /// Number of identity and origin, as `UsePlaces` gave it.
    package var place: UInt16
    /// Number of the route in the log's `NameTable`; 0 where uses are counted.
    package var route: UInt16
    /// Requests.
    package var count: UInt32
    /// The generation of the token; 0 for a credential that is made for one request.
    package var generation: UInt64
    /// The caller's address, without its port.
    package var caller: LogAddress

    /// Memberwise.
    package init(
        time: UInt64, place: UInt16, route: UInt16, count: UInt32, generation: UInt64, caller: LogAddress
    ) {
        self.time = time
        self.place = place
        self.route = route
        self.count = count
        self.generation = generation
        self.caller = caller
        self.caller.port = 0
    }

    /// Whether both count the same: caller, identity, origin, generation and minute.
    func counts(with other: UseRecord) -> Bool {
        generation == other.generation && place == other.place && time == other.time && caller == other.caller
    }
}

/// How uses are recorded, and what a request meets when there is no place for its record.
package struct UsePolicy: Sendable, Equatable {
    /// A record for each request, instead of one for each caller, identity, origin, generation and minute.
    package var recordsEach: Bool
    /// Requests without a place are refused. Otherwise they are served, and their uses dropped and counted.
    package var blocks: Bool

    /// Memberwise.
    package init(recordsEach: Bool, blocks: Bool) {
        self.recordsEach = recordsEach
        self.blocks = blocks
    }
}

/// Numbers for pairs of identity and origin, for the life of the process.
package struct UsePlaces: Sendable {
    private let names = NameTable(none: "-\n-")

    /// An empty table; copies share it.
    package init() {}

    /// The number of the pair, the same for every call.
    package func number(identity: String, origin: String) -> UInt16 { names.intern("\(identity)\n\(origin)") }

    func pair(_ number: UInt16) -> (identity: String, origin: String) {
        let parts = names.name(of: number).split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
        return (String(parts[0]), parts.count > 1 ? String(parts[1]) : "-")
    }
}
