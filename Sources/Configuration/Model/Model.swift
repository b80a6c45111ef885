/// A checked configuration with every default resolved. All names are those of the file, in lower camel case.
public struct Configuration: Sendable {
    /// In the order of the file.
    public var identities: [Identity]
    /// In the order of the file; the first match wins. With `include`, the including file's routes come first.
    public var routes: [Route]
    /// Every address that is listened on: the `listeners` block first, then one for each plain address in a `listen`.
    public var listeners: [Listener]
    /// `store`.
    public var store: Store
    /// Where the parts of `store` stand in the file.
    public var storeMarks: StoreMarks
    /// `admin`.
    public var admin: Admin
    /// Our pseudonym in `Via` and `Proxy-Status`; nil: the host's name.
    public var name: String?
    /// `limits`.
    public var limits: Limits
    /// `log`.
    public var log: Log
    /// `audit`; nil: no such log is written.
    public var audit: AuditLog?
    /// Where `audit` stands in the file.
    public var auditMark: Mark
    /// `tracing`; nil: off.
    public var tracing: Tracing?
    /// `shutdown`.
    public var shutdown: Shutdown
    /// Data loops; nil: the CPU limit rounded up, at most 4.
    public var threads: Int?
    /// `sandbox`: whether the process gives up every file that the configuration does not name.
    public var sandbox: Bool
    /// `secret_files`.
    public var secretFiles: SecretFilePolicy
    /// Prefixes of this network's own behind which IPv4 stands (RFC 6052); of 32, 40, 48, 56, 64 or 96 bits.
    public var nat64: [Callers.Network]
    /// The places of secrets and files.
    public var places: WrittenPlaces

    /// Octets that `admin.token` has at least.
    public static let shortestAdminToken = 16

    /// Whether what an identity obtains outlives the process.
    package func keeps(_ identity: Identity) -> Bool { store.path != nil && identity.token.persist }

    /// The identity of that name.
    public func identity(named name: String) -> Identity? { identities.first { $0.name == name } }
}

/// `limits`: how much is held at most.
public struct Limits: Sendable, Equatable {
    /// Callers' connections; nil: as the file-descriptor limit allows.
    public var connections: Int?
    /// Callers' connections of one address; nil: no limit of its own.
    public var connectionsPerAddress: Int?
    /// Bytes of a message head.
    public var headerSize: Int
    /// Bytes of a request target.
    public var targetSize: Int
    /// Bytes of a request body; nil: no limit.
    public var bodySize: Int?
    /// From the first byte of a request's head to its last one.
    public var headTimeout: Duration
    /// Bytes a second that a body moves at least while somebody waits for it; 0: any.
    public var minRate: Int
    /// Fields of a message head.
    public var headers: Int
    /// Requests that wait for a token.
    public var waiters: Int
    /// Bytes of request bodies kept for a replay.
    public var replayMemory: Int
    /// Bytes of tokens in memory.
    public var hotCache: Int
    /// Distinct subjects with tokens of their own.
    public var subjects: Int
    /// Subjects in a second that neither memory nor the store has seen; more get 503.
    public var newSubjectsPerSecond: Int
}

/// `log`: events go to standard error, access records to standard output.
public struct Log: Sendable, Equatable {
    /// Events of a lesser level are not written.
    public enum Level: String, Sendable, CaseIterable { case debug, info, notice, warning, error }
    /// How a line is written.
    public enum Format: String, Sendable, CaseIterable { case json, text }
    /// Which exchanges get a line: none, those that failed, all.
    public enum Access: String, Sendable, CaseIterable { case off, errors, all }

    /// `log.level`.
    public var level: Level
    /// `log.format`.
    public var format: Format
    /// `log.access`.
    public var access: Access
}

/// `tracing`: traces of requests.
public struct Tracing: Sendable, Equatable {
    /// The share of requests that are sampled, in millionths: 0 to 1,000,000.
    public var ratio: Int
    /// `tracing.endpoint` and what goes with it; nil: spans are not exported.
    public var export: Export?
    /// `tracing.service`.
    public var service = "cardea"

    /// Where spans go.
    public struct Export: Sendable, Equatable {
        /// `tracing.endpoint`, with its path.
        public var url: String
        /// `tracing.headers`: names, and where the values are read.
        public var headers: [Header]
        /// `tracing.network`.
        public var network: Network
    }

    /// A field that is sent with spans.
    public struct Header: Sendable, Equatable {
        /// As configured.
        public var name: String
        /// Where the value is read.
        public var value: SecretReference
    }
}

/// `shutdown`: the two stages of an end.
public struct Shutdown: Sendable, Equatable {
    /// Not ready, but still accepting.
    public var linger: Duration
    /// From the signal to the hard stop.
    public var timeout: Duration
    /// The time that a process that takes over in place has until it is ready.
    public var takeover: Duration = .seconds(60)
}

/// `store`: where tokens outlive the process.
public struct Store: Sendable, Equatable {
    /// nil: memory only.
    public var path: String?
    /// The first seals, all open. Empty: a key is made beside the file.
    public var keys: [SecretReference]
    /// The store by which a fleet has one token.
    public var shared: SharedStore?
}

/// Where the parts of `store` stand in the file. Not in `Store`: one that is written elsewhere is no other one, and needs no restart.
public struct StoreMarks: Sendable, Equatable {
    /// The place of `store.path`.
    public var path: Mark
    /// The place of `store.key`.
    public var key: Mark
}

/// `admin`: the operator's ways in.
public struct Admin: Sendable, Equatable {
    /// nil: `admin: off`.
    public var listen: ListenAddress?
    /// Only `/livez` and `/readyz`, with empty bodies.
    public var probes: ListenAddress?
    /// Only `/metrics`.
    public var metrics: ListenAddress?
    /// The socket of the command line; stays with `admin: off`. nil: `cardea.sock` in `$XDG_RUNTIME_DIR` or `/run`.
    /// With a store and no `socket` this is already `cardea.sock` beside the store's file.
    public var socket: String?
    /// Names it answers to, beside IP literals and `localhost`.
    public var hosts: [String]
    /// The token that a request that changes something must bring; nil: such requests are refused.
    public var token: SecretReference?
    /// Whether the page and `/status` are open where `listen` is not loopback and there is no token.
    public var opensStatus: Bool

    /// Whether whoever reaches `listen` may read everything there.
    public var isOpenToRead: Bool { opensStatus || listen?.isLocal != false }
}

// MARK: - Time

extension Duration {
    /// Whole nanoseconds, the project's unit of time; what does not fit becomes the largest value.
    public var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflow else { return seconds < 0 ? .min : .max }
        let (sum, carry) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
        return carry ? .max : sum
    }
}
