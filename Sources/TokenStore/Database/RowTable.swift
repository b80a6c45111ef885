internal import Octets
internal import TLS

/// The rows in an open database, and the only place that knows the schema.
///
///     keys  id: BLOB(8)             every key that may have sealed a row; tells an unknown key from damage
///     rows  sequence: INTEGER       order of the last commit; indexed by kind and expires
///           tag: BLOB(32)           keyed hash of kind and key, under the key that sealed the row
///           kind, expires: INTEGER
///           value: BLOB             sealed (key length, 4 bytes big-endian | key | value), bound to tag, kind and expiry
///
/// So a row can be neither read nor moved, and its expiry or kind cannot be changed, without a key.
final class RowTable {
    let database: Database
    /// Changes when an operator rotates.
    var keys: SealingKeyRing
    /// Kinds that are not read at opening.
    let spilled: Set<UInt8>
    private let repairs: Bool
    let selection: Statement
    let sweeping: Statement
    private let insertion: Statement
    private let deletion: Statement
    private let deletionOfKind: Statement
    private let deletionOfExpired: Statement
    /// Whether the file lists the key that seals. It must before the first row sealed with it is committed, or that row would look
    /// damaged to a process without the key.
    private var firstKeyListed = false

    /// Opens the file and reads what is not spilled.
    init(
        path: String, keys: SealingKeyRing, options: StoreOptions, now: Int64, census: inout StoreCensus,
        rows: inout [StoredRow]
    ) throws(TableFault) {
        database = try Database(path: path, vfs: options.disk.sqlite)
        self.keys = keys
        spilled = options.spilledKinds
        repairs = options.repairs
        try Self.prepare(database, maximumBytes: options.maximumBytes)
        selection = try database.prepare("SELECT kind, expires, value FROM rows WHERE tag = ?1")
        // The soonest first, by the index.
        sweeping = try database.prepare(
            """
            DELETE FROM rows WHERE sequence IN (
                SELECT sequence FROM rows WHERE kind = ?1 AND expires < ?2 ORDER BY expires LIMIT ?3)
            """)
        insertion = try database.prepare(
            "INSERT OR REPLACE INTO rows (tag, kind, expires, value) VALUES (?1, ?2, ?3, ?4)")
        deletion = try database.prepare("DELETE FROM rows WHERE tag = ?1")
        deletionOfKind = try database.prepare("DELETE FROM rows WHERE kind = ?1")
        deletionOfExpired = try database.prepare("DELETE FROM rows WHERE expires < ?1")
        try checkIdentity()
        try load(now: now, census: &census, rows: &rows)
        database.setCheckpointOnClose(true)
    }
}

// MARK: - Making and opening

extension RowTable {
    /// Makes an empty store. It gets its mark and schema under another name and appears whole, so that no crash leaves a file
    /// at `path` of which nobody can say whose it is.
    static func create(_ file: StoreFile) throws(TableFault) {
        let fresh = StoreFile(file.path + ".new", file.disk)
        file.removeLeftovers()
        try fresh.createEmpty()
        do throws(TableFault) {
            let database = try Database(path: fresh.path, vfs: fresh.disk.sqlite)
            database.setCheckpointOnClose(true)
            // Freed pages can be given back in steps, without a second copy of the file.
            try database.run(
                "PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL"
            )
            try database.transaction { () throws(TableFault) in
                try database.run(
                    """
                    PRAGMA application_id = \(StoreFile.applicationID);
                    PRAGMA user_version = \(StoreFile.schemaVersion);
                    CREATE TABLE keys (id BLOB PRIMARY KEY) WITHOUT ROWID;
                    CREATE TABLE rows (
                        sequence INTEGER PRIMARY KEY, tag BLOB NOT NULL UNIQUE, kind INTEGER NOT NULL, expires INTEGER,
                        value BLOB NOT NULL);
                    CREATE INDEX rows_by_kind ON rows (kind, expires);
                    """)
            }
        } catch {
            file.removeLeftovers()
            throw error
        }
        try file.publish(fresh)
    }

    /// Up to this size, in bytes, a file is checked as a whole at opening: a fraction of a second.
    private static let checkedSize: Int64 = 64 << 20

    private static func prepare(_ database: Database, maximumBytes: Int) throws(TableFault) {
        // Exclusive before the first access: the index of the log then lives in our memory instead of a mapped file, and SQLite
        // itself keeps others out. FULL, because a rotated refresh token that is lost is a login that is lost.
        try database.run(
            """
            PRAGMA locking_mode = EXCLUSIVE;
            PRAGMA mmap_size = 0;
            PRAGMA temp_store = MEMORY;
            PRAGMA secure_delete = ON;
            PRAGMA synchronous = FULL;
            PRAGMA cell_size_check = ON;
            PRAGMA wal_autocheckpoint = 256;
            PRAGMA journal_size_limit = 1048576;
            PRAGMA max_page_count = \(max(maximumBytes / 4096, 16));
            """)
        if try database.text("PRAGMA journal_mode") != "wal", !database.isReadOnly {
            _ = try database.text("PRAGMA journal_mode = WAL")
        }
        // Our schema and nothing that runs by itself; a table is missing only where a page was lost.
        let tables = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('keys', 'rows')"
        let programs = "SELECT count(*) FROM sqlite_schema WHERE type IN ('trigger', 'view')"
        guard try database.integer(tables) == 2, try database.integer(programs) == 0 else {
            throw .damage("database has lost its tables")
        }
        // The check reads every page. A large file is checked as it is used: each row by its authentication code, each page by SQLite;
        // and by `cardea store verify`.
        let size = (try database.integer("PRAGMA page_count") ?? 0) * 4096
        if size <= checkedSize, let finding = try database.text("PRAGMA quick_check(1)"), finding != "ok" {
            throw .damage("database is damaged")
        }
    }

    /// Once more with the log applied: the header that was looked at before may be older than the log.
    private func checkIdentity() throws(TableFault) {
        guard try database.integer("PRAGMA application_id") == Int64(StoreFile.applicationID),
            let version = try database.integer("PRAGMA user_version"), version > 0
        else { throw .damage("database lost its mark") }
        guard version <= Int64(StoreFile.schemaVersion) else {
            throw TableFault(kind: .newer(Int(version)), text: "schema \(version)")
        }
    }

    private func load(now: Int64, census: inout StoreCensus, rows: inout [StoredRow]) throws(TableFault) {
        var unknown: Set<UInt64> = []
        var used: Set<UInt64> = [keys.first.id]
        var doomed: [Int64] = []
        var spills = false
        let listed = try listedKeys()
        if repairs, !database.isReadOnly {
            // A file of an earlier version has none.
            try? database.run("CREATE INDEX IF NOT EXISTS rows_by_kind ON rows (kind, expires)")
        }
        let scan = try database.prepare(
            "SELECT sequence, tag, kind, expires, value FROM rows WHERE kind = ?1 ORDER BY sequence")
        let following = try database.prepare("SELECT kind FROM rows WHERE kind > ?1 ORDER BY kind LIMIT 1")
        var last = Int64.min
        while true {
            try following.bind(1, last)
            guard try following.step() else { break }
            guard let number = following.integer(0) else {
                // Text or a blob, which SQLite orders behind every number.
                following.reset()
                let strange = try database.prepare("SELECT sequence FROM rows WHERE typeof(kind) <> 'integer'")
                while try strange.step() {
                    census.damaged[0, default: 0] += 1
                    if let sequence = strange.integer(0) { doomed.append(sequence) }
                }
                break
            }
            following.reset()
            last = number
            let kind = UInt8(exactly: number)
            if let kind, spilled.contains(kind) {
                spills = true
                continue
            }
            try scan.bind(1, number)
            while try scan.step() {
                guard let sequence = scan.integer(0) else { continue }
                let expires = scan.integer(3)
                guard let kind, let tag = scan.blob(1), let value = scan.blob(4), expires != nil || scan.isNull(3)
                else {
                    census.damaged[kind ?? 0, default: 0] += 1
                    doomed.append(sequence)
                    continue
                }
                let id = SealingKeyRing.keyID(of: value)
                if let id, keys.key(id) == nil, listed.contains(id) {
                    unknown.insert(id)
                    continue
                }
                guard let row = Self.open(tag: tag, kind: kind, expires: expires, value: value, keys: keys) else {
                    census.damaged[kind, default: 0] += 1
                    doomed.append(sequence)
                    continue
                }
                if let expires, expires < now {
                    census.expired += 1
                    doomed.append(sequence)
                    continue
                }
                if let id { used.insert(id) }
                rows.append(row)
            }
            scan.reset()
        }
        if spills {
            // The keys that sealed rows which nobody has looked at are not known: each listed one may have.
            unknown.formUnion(listed.filter { keys.key($0) == nil })
            used.formUnion(listed)
        }
        guard unknown.isEmpty else {
            throw TableFault(kind: .unknownKey(unknown.sorted()), text: "sealed with an unknown key")
        }
        census.restored = rows.count
        guard repairs else { return }
        do throws(TableFault) {
            try tidy(doomed: doomed, used: used)
        } catch  where error.kind != .damage {
            // A full or read-only disk: everything could be read, and what is left over will be found again.
        }
    }
}

// MARK: - Keys and bindings

extension RowTable {
    private func listedKeys() throws(TableFault) -> Set<UInt64> {
        var listed: Set<UInt64> = []
        let scan = try database.prepare("SELECT id FROM keys")
        while try scan.step() {
            if let id = scan.blob(0), id.count == 8 { listed.insert(id.reduce(0) { $0 << 8 | UInt64($1) }) }
        }
        return listed
    }

    private static func bytes(_ id: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: id >> UInt64(56 - 8 * $0)) }
    }

    func listFirstKey() throws(TableFault) {
        let statement = try database.prepare("INSERT OR IGNORE INTO keys (id) VALUES (?1)")
        try statement.bind(1, Self.bytes(keys.first.id))
        try statement.execute()
    }

    /// Deletes what was found to be of no use, and forgets keys that seal nothing any more, so that they may be destroyed.
    func tidy(doomed: [Int64], used: Set<UInt64>) throws(TableFault) {
        let listed = try listedKeys()
        guard !doomed.isEmpty || listed != used else {
            firstKeyListed = true
            return
        }
        try database.transaction { () throws(TableFault) in
            let row = try database.prepare("DELETE FROM rows WHERE sequence = ?1")
            for sequence in doomed {
                try row.bind(1, sequence)
                try row.execute()
            }
            let key = try database.prepare("DELETE FROM keys WHERE id = ?1")
            for id in listed.subtracting(used) {
                try key.bind(1, Self.bytes(id))
                try key.execute()
            }
            try listFirstKey()
        }
        firstKeyListed = true
    }

    static func tag(_ kind: UInt8, _ key: [UInt8], _ sealer: SealingKey) -> [UInt8] { sealer.tag([kind] + key) }

    private static func binding(tag: [UInt8], kind: UInt8, expires: Int64?) -> [UInt8] {
        var bytes = tag + [kind, expires == nil ? 0 : 1]
        for shift in stride(from: 56, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: (expires ?? 0) >> Int64(shift)))
        }
        return bytes
    }

    static func open(
        tag: [UInt8], kind: UInt8, expires: Int64?, value: [UInt8], keys: SealingKeyRing
    ) -> StoredRow? {
        guard var opened = try? keys.open(value, boundTo: binding(tag: tag, kind: kind, expires: expires)) else {
            return nil
        }
        defer { opened.wipe() }
        guard opened.count >= 4 else { return nil }
        let length = opened.prefix(4).reduce(0) { $0 << 8 | Int($1) }
        guard length <= opened.count - 4 else { return nil }
        return StoredRow(
            kind: kind, key: Array(opened[4..<4 + length]), value: Array(opened[(4 + length)...]), expiresWall: expires)
    }
}

// MARK: - Changes

extension RowTable {
    /// Makes all of `changes` last through a power failure, or none of them.
    /// - Parameter now: milliseconds of Unix time, for what has expired.
    func commit(_ changes: [StoreChange], now: Int64) throws(TableFault) {
        // Sealed before the transaction begins, so that a failure here needs no way back.
        var sealed: [Int: (tag: [UInt8], value: [UInt8])] = [:]
        for (index, change) in changes.enumerated() {
            if case .put(let row) = change { sealed[index] = try seal(row) }
        }
        try database.transaction { () throws(TableFault) in
            if !firstKeyListed { try listFirstKey() }
            for (index, change) in changes.enumerated() {
                switch change {
                case .put(let row):
                    guard let (tag, value) = sealed[index] else { continue }
                    // Under an older key the same row has another tag.
                    for key in keys.keys.dropFirst() { try delete(Self.tag(row.kind, row.key, key)) }
                    try insert(tag: tag, row: row, value: value)
                case .delete(let kind, let name):
                    for key in keys.keys { try delete(Self.tag(kind, name, key)) }
                case .deleteAll(let kind):
                    try deletionOfKind.bind(1, Int64(kind))
                    try deletionOfKind.execute()
                case .deleteExpired(let time):
                    try deletionOfExpired.bind(1, time)
                    try deletionOfExpired.execute()
                }
            }
            try sweepExpired(at: now)
        }
        firstKeyListed = true
    }

    /// By kind. Walks the index, not the rows.
    func countRows() throws(TableFault) -> [UInt8: UInt64] {
        let counting = try database.prepare("SELECT kind, count(*) FROM rows GROUP BY kind")
        var counts: [UInt8: UInt64] = [:]
        while try counting.step() {
            guard let kind = counting.integer(0).flatMap({ UInt8(exactly: $0) }) else { continue }
            counts[kind] = counting.integer(1).map { UInt64(clamping: $0) }
        }
        return counts
    }

    /// Moves the log into the database; failing at it loses nothing.
    @discardableResult
    func checkpoint() -> Bool { (try? database.run("PRAGMA wal_checkpoint(TRUNCATE)")) != nil }

    /// Moves the log into the database and has the next change written at the log's beginning; the file keeps its blocks.
    func emptyLog() { try? database.run("PRAGMA wal_checkpoint(RESTART)") }

    /// From now on closing leaves the files as they are.
    func abandon() { database.setCheckpointOnClose(false) }

    // MARK: -

    func seal(_ row: StoredRow) throws(TableFault) -> (tag: [UInt8], value: [UInt8]) {
        let tag = Self.tag(row.kind, row.key, keys.first)
        let length = row.key.count
        var plaintext: [UInt8] = []
        // Room for everything at once: growing would leave copies of a secret in freed memory.
        plaintext.reserveCapacity(4 + length + row.value.count)
        for shift in [24, 16, 8, 0] { plaintext.append(UInt8(truncatingIfNeeded: length >> shift)) }
        plaintext += row.key
        plaintext += row.value
        defer { plaintext.wipe() }
        do {
            let bound = Self.binding(tag: tag, kind: row.kind, expires: row.expiresWall)
            return (tag, try keys.seal(plaintext, boundTo: bound))
        } catch {
            throw TableFault(kind: .sealing, text: "the value could not be sealed")
        }
    }

    private func insert(tag: [UInt8], row: StoredRow, value: [UInt8]) throws(TableFault) {
        try insertion.bind(1, tag)
        try insertion.bind(2, Int64(row.kind))
        try insertion.bind(3, row.expiresWall)
        try insertion.bind(4, value)
        try insertion.execute()
    }

    func delete(_ tag: [UInt8]) throws(TableFault) {
        try deletion.bind(1, tag)
        try deletion.execute()
    }
}
