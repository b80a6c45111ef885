internal import CSQLite
internal import Glibc

/// The one connection to a file. Lives on the store's thread.
final class Database {
    private let handle: OpaquePointer

    /// Opens an existing file for reading and writing.
    /// - Parameter vfs: the name of SQLite's virtual file system; nil: this machine's.
    init(path: String, vfs: String? = nil) throws(TableFault) {
        var opened: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        let code = sqlite3_open_v2(path, &opened, flags, vfs)
        guard code == SQLITE_OK, let opened else {
            let text = String(cString: sqlite3_errstr(code))
            sqlite3_close_v2(opened)
            throw .sqlite(code & 0xff, text)
        }
        handle = opened
        _ = cardea_set_defensive(handle)
        // Until the file is known to be ours, closing must not change it.
        setCheckpointOnClose(false)
        sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, 1 << 20)
    }

    deinit { sqlite3_close_v2(handle) }

    // MARK: -

    var isReadOnly: Bool { sqlite3_db_readonly(handle, "main") != 0 }

    func setCheckpointOnClose(_ enabled: Bool) { _ = cardea_set_checkpoint_on_close(handle, enabled ? 1 : 0) }

    func run(_ sql: String) throws(TableFault) {
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw fault() }
    }

    /// The first column of the first row.
    func integer(_ sql: String) throws(TableFault) -> Int64? {
        let statement = try prepare(sql)
        return try statement.step() ? statement.integer(0) : nil
    }

    func text(_ sql: String) throws(TableFault) -> String? {
        let statement = try prepare(sql)
        return try statement.step() ? statement.text(0) : nil
    }

    func prepare(_ sql: String) throws(TableFault) -> Statement {
        var prepared: OpaquePointer?
        guard sqlite3_prepare_v2(handle, sql, -1, &prepared, nil) == SQLITE_OK, let prepared else { throw fault() }
        return Statement(prepared, of: self)
    }

    /// All of `body` or nothing of it.
    func transaction(_ body: () throws(TableFault) -> Void) throws(TableFault) {
        try run("BEGIN IMMEDIATE")
        do throws(TableFault) {
            try body()
            try run("COMMIT")
        } catch {
            // SQLite has rolled back by itself after some errors; asking again is then an error without consequence.
            try? run("ROLLBACK")
            throw error
        }
    }

    func fault() -> TableFault {
        let code = sqlite3_extended_errcode(handle) & 0xff
        // SQLite takes a quota for a broken disk.
        if code == SQLITE_IOERR, [ENOSPC, EDQUOT].contains(sqlite3_system_errno(handle)) {
            return .system(sqlite3_system_errno(handle))
        }
        return .sqlite(code, String(cString: sqlite3_errmsg(handle)))
    }
}

/// A prepared statement. Keeps its connection alive.
final class Statement {
    private let handle: OpaquePointer
    private let database: Database

    fileprivate init(_ handle: OpaquePointer, of database: Database) {
        self.handle = handle
        self.database = database
    }

    deinit { sqlite3_finalize(handle) }

    // MARK: -

    func bind(_ index: Int32, _ bytes: [UInt8]) throws(TableFault) {
        guard cardea_bind_blob(handle, index, bytes, Int32(clamping: bytes.count)) == SQLITE_OK else {
            throw database.fault()
        }
    }

    func bind(_ index: Int32, _ number: Int64?) throws(TableFault) {
        let code = number.map { sqlite3_bind_int64(handle, index, $0) } ?? sqlite3_bind_null(handle, index)
        guard code == SQLITE_OK else { throw database.fault() }
    }

    /// True when there is a row.
    func step() throws(TableFault) -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default: throw database.fault()
        }
    }

    /// Runs a statement that gives no rows, and makes it ready for the next time.
    func execute() throws(TableFault) {
        defer { reset() }
        _ = try step()
    }

    func reset() {
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
    }

    /// nil for anything but an integer: a damaged file may hold any type in any column.
    func integer(_ column: Int32) -> Int64? {
        sqlite3_column_type(handle, column) == SQLITE_INTEGER ? sqlite3_column_int64(handle, column) : nil
    }

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    func blob(_ column: Int32) -> [UInt8]? {
        guard sqlite3_column_type(handle, column) == SQLITE_BLOB else { return nil }
        guard let bytes = sqlite3_column_blob(handle, column) else { return [] }
        return Array(UnsafeRawBufferPointer(start: bytes, count: Int(sqlite3_column_bytes(handle, column))))
    }

    func text(_ column: Int32) -> String? { sqlite3_column_text(handle, column).map { String(cString: $0) } }
}
