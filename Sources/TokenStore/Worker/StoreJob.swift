public import TLS

/// Work on the whole file that an operator asks for. It goes in steps between the changes and lookups of the gateway, so that it
/// holds up nobody for long; one job at a time.
public enum StoreJob: Sendable {
    /// Seals every row anew with the first key of the ring, or of the present one; afterwards older keys are not needed any more.
    case rotate(SealingKeyRing?)
    /// Opens every row. `thorough` first has SQLite check its own structures, which holds up everybody else.
    case verify(thorough: Bool)
    /// Gives unused space back to the file system.
    case compact
    /// Opens every row of a kind and deletes those that are not wanted any more.
    case retain(kind: UInt8, @Sendable (StoredRow) -> Bool)

    var word: String {
        switch self {
        case .rotate: "rotate"
        case .verify: "verify"
        case .compact: "compact"
        case .retain: "retain"
        }
    }

    /// Nothing is added by it.
    var onlyDeletes: Bool {
        if case .retain = self { true } else { false }
    }
}

/// How far a job is, or what came of it.
public struct StoreReport: Sendable, Equatable {
    /// `rotate`, `verify` or `compact`.
    public var job: String
    /// Rows looked at, and how many there were at the start.
    public var rows = 0
    /// Rows at the start of the job.
    public var total = 0
    /// Rows that were sealed anew.
    public var resealed = 0
    /// Rows that no key opens, or that the index does not find.
    public var damaged = 0
    /// SQLite's report of its own structures, where something is wrong with them.
    public var finding: String?
    /// Bytes of the database file.
    public var bytes = 0
    /// The key that seals.
    public var key = ""
    /// The job has come to its end, by success or failure.
    public var isDone = false
    /// Why it ended early.
    public var failure: StoreFault?

    init(_ job: StoreJob) { self.job = job.word }
}

/// A job under way: what is left of it.
struct JobState {
    let job: StoreJob
    var report: StoreReport
    /// Rows up to this one have been done.
    var cursor: Int64 = 0
    /// Rows that one step takes; fewer where the disk is full.
    var stepRows = Self.mostRows
    /// A few milliseconds.
    static let mostRows: Int64 = 256
    var isStarted = false
    let completion: @Sendable (Result<StoreReport, StoreFault>) -> Void

    init(_ job: StoreJob, _ completion: @escaping @Sendable (Result<StoreReport, StoreFault>) -> Void) {
        self.job = job
        self.completion = completion
        report = StoreReport(job)
    }
}

// MARK: - Steps

extension RowTable {
    /// Pages that one step gives back.
    static let stepPages = 512

    /// True when the job is done.
    func step(_ state: inout JobState) throws(TableFault) -> Bool {
        if !state.isStarted {
            state.isStarted = true
            if case .rotate(let ring?) = state.job { keys = joined(ring) }
            state.report.total = Int(try database.integer("SELECT count(*) FROM rows") ?? 0)
            if case .verify(thorough: true) = state.job {
                let finding = try database.text("PRAGMA integrity_check(1)")
                state.report.finding = finding == "ok" ? nil : finding
            }
        }
        let isDone =
            switch state.job {
            case .rotate: try reseal(&state)
            case .verify: try verify(&state)
            case .compact: try compactStep()
            case .retain(let kind, let isWanted): try retain(&state, kind, isWanted)
            }
        guard isDone else { return false }
        state.report.key = SealingKey.name(of: keys.first.id)
        let pages = try database.integer("PRAGMA page_count") ?? 0
        state.report.bytes = Int(pages) * 4096
        state.report.isDone = true
        return true
    }

    /// The new keys, and behind them those that rows may still need.
    private func joined(_ ring: SealingKeyRing) -> SealingKeyRing {
        let kept = keys.keys.filter { ring.key($0.id) == nil }
        let all = (ring.keys + kept).prefix(SealingKeyRing.maximumKeys)
        return (try? SealingKeyRing(Array(all))) ?? ring
    }

    private struct RawRow {
        let sequence: Int64
        let tag: [UInt8]?
        let kind: UInt8?
        let expires: Int64?
        let value: [UInt8]?
    }

    private func next(_ state: JobState) throws(TableFault) -> [RawRow] {
        let scan = try database.prepare(
            "SELECT sequence, tag, kind, expires, value FROM rows WHERE sequence > ?1 ORDER BY sequence LIMIT ?2")
        try scan.bind(1, state.cursor)
        try scan.bind(2, state.stepRows)
        var rows: [RawRow] = []
        while try scan.step() {
            guard let sequence = scan.integer(0) else { continue }
            rows.append(
                RawRow(
                    sequence: sequence, tag: scan.blob(1), kind: UInt8(exactly: scan.integer(2) ?? -1),
                    expires: scan.integer(3), value: scan.blob(4)))
        }
        return rows
    }

    private func open(_ raw: RawRow) -> StoredRow? {
        guard let tag = raw.tag, let kind = raw.kind, let value = raw.value else { return nil }
        return Self.open(tag: tag, kind: kind, expires: raw.expires, value: value, keys: keys)
    }

    /// A row keeps its place in the order. A crash leaves rows under either key, and both keys listed.
    private func reseal(_ state: inout JobState) throws(TableFault) -> Bool {
        let rows = try next(state)
        var changed: [(sequence: Int64, tag: [UInt8], value: [UInt8])] = []
        for raw in rows {
            state.cursor = raw.sequence
            state.report.rows += 1
            guard let value = raw.value, SealingKeyRing.keyID(of: value) != keys.first.id else { continue }
            guard let row = open(raw) else {
                state.report.damaged += 1
                continue
            }
            let sealed = try seal(row)
            changed.append((raw.sequence, sealed.tag, sealed.value))
        }
        let isLast = Int64(rows.count) < state.stepRows
        if !changed.isEmpty {
            try database.transaction { () throws(TableFault) in
                try listFirstKey()
                let update = try database.prepare("UPDATE rows SET tag = ?2, value = ?3 WHERE sequence = ?1")
                for row in changed {
                    try update.bind(1, row.sequence)
                    try update.bind(2, row.tag)
                    try update.bind(3, row.value)
                    try update.execute()
                }
            }
            state.report.resealed += changed.count
        }
        if isLast {
            // Rows that no key opens are of no use under the old one either; they are dropped when they are asked for.
            try tidy(doomed: [], used: [keys.first.id])
            // The log still holds what was sealed with the old key.
            checkpoint()
        }
        return isLast
    }

    private func verify(_ state: inout JobState) throws(TableFault) -> Bool {
        let rows = try next(state)
        let index = try database.prepare(
            "SELECT sequence FROM rows INDEXED BY sqlite_autoindex_rows_1 WHERE tag = ?1")
        for raw in rows {
            state.cursor = raw.sequence
            state.report.rows += 1
            var isFound = false
            if let tag = raw.tag {
                try index.bind(1, tag)
                isFound = try index.step() && index.integer(0) == raw.sequence
                index.reset()
            }
            if !isFound || open(raw) == nil { state.report.damaged += 1 }
        }
        return Int64(rows.count) < state.stepRows
    }

    private func retain(
        _ state: inout JobState, _ kind: UInt8, _ isWanted: (StoredRow) -> Bool
    ) throws(TableFault) -> Bool {
        let rows = try next(state)
        var unwanted: [[UInt8]] = []
        for raw in rows {
            state.cursor = raw.sequence
            state.report.rows += 1
            guard raw.kind == kind, let tag = raw.tag, let row = open(raw), !isWanted(row) else { continue }
            unwanted.append(tag)
        }
        if !unwanted.isEmpty {
            try database.transaction { () throws(TableFault) in for tag in unwanted { try delete(tag) } }
        }
        return Int64(rows.count) < state.stepRows
    }

    private func compactStep() throws(TableFault) -> Bool {
        let free = try database.integer("PRAGMA freelist_count") ?? 0
        if free > 0 {
            try database.run("PRAGMA incremental_vacuum(\(Self.stepPages))")
            let left = try database.integer("PRAGMA freelist_count") ?? 0
            // A file that was made without the bookkeeping for it gives nothing back.
            if left > 0, left < free { return false }
        }
        checkpoint()
        return true
    }
}
