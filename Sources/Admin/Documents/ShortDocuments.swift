public import Gateway
public import Keeping

/// The body of `/readyz` for those who may read names.
struct ReadinessDocument: AdminDocument, Equatable {
    var ready: Bool
    /// Why it is not.
    var reasons: [String]
    /// A label of `cardea_identity_state` for each identity.
    var identities: [String: String]
    var store: String
    var configuration: ConfigurationDocument

    init(_ readiness: Gateway.Readiness, _ status: GatewayStatus) {
        ready = readiness.isReady
        reasons = readiness.reasons
        identities = Dictionary(
            status.identityFacts.map { ($0.status.name, $0.state.rawValue) }, uniquingKeysWith: { first, _ in first })
        store = shortened(status.store)
        configuration = ConfigurationDocument(status.configuration)
    }
}

/// Which configuration runs. A reload that was refused stands here until one is not.
public struct ConfigurationDocument: Codable, Sendable, Equatable {
    /// 1 at start, one more with every reload.
    public var edition: Int
    /// Why the last reload changed nothing.
    public var refused: String?
    /// Keys whose new value counts from the next start on.
    public var needsRestart: [String]

    init(_ status: ConfigurationStatus) {
        edition = status.edition
        refused = status.refusal.map { shortened($0) }
        needsRestart = status.needsRestart
    }
}

/// The body of every answer to a reset: what was reset, or why nothing was and which names there are.
struct ResetDocument: AdminDocument, Equatable {
    var error: String?
    var identities: [String]
}

extension PurgeReport: AdminDocument {}

/// A task on the store, how far it is or what came of it, as the admin socket tells it and the command line reads it.
public struct StoreDocument: AdminDocument, Equatable, Sendable {
    /// Counts the tasks of this process.
    public var number: UInt64
    /// `rotate`, `verify` or `compact`.
    public var task: String
    /// Rows looked at so far.
    public var rows: Int
    /// Rows at the start of the task.
    public var total: Int
    /// Rows sealed anew so far.
    public var resealed: Int
    /// Rows that no key opens, or that the index does not find.
    public var damaged: Int
    /// SQLite's report where something is wrong with the file.
    public var finding: String?
    /// Bytes of the database file.
    public var bytes: Int
    /// The id of the key that seals: 16 hexadecimal digits.
    public var key: String
    /// The task has ended well.
    public var isDone: Bool
    /// Why the task ended early.
    public var failure: String?

    /// Nothing more comes.
    public var isOver: Bool { isDone || failure != nil }

    /// The task in the words of the document.
    public init(_ work: StoreWork) {
        number = work.number
        task = work.task.rawValue
        rows = work.rows
        total = work.total
        resealed = work.resealed
        damaged = work.damaged
        finding = work.finding
        bytes = work.bytes
        key = work.key
        isDone = work.isDone
        failure = work.failure
    }
}
