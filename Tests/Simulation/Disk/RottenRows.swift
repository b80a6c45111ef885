import CSQLite
import TokenStore

/// Rows of the store that nobody can open any more, while everything else of it is whole: a block of the disk that came back otherwise than it
/// was written, or a row that was sealed with a key that is gone.
extension SimulatedDisk {
    /// Spoils the rows of one kind. Nobody may have the store open.
    /// - Returns: whether there was a store with the table of rows.
    @discardableResult
    func rot(kind: UInt8, of path: String, name: String, draw: Draw) -> Bool {
        guard find(path) != nil, mood == .well else { return false }
        let process = processBegins()
        defer { processEnds(process) }
        let vfs = SimulatedVFS(name, self, process: process, draw: draw) { 0 }
        var database: OpaquePointer?
        defer { sqlite3_close(database) }
        guard sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, vfs.name) == SQLITE_OK else { return false }
        hasRotted = true
        // Without shared memory a log beside the file can be read by its one user alone.
        let statements = [
            "PRAGMA locking_mode = EXCLUSIVE",
            "UPDATE rows SET value = zeroblob(length(value)) WHERE kind = \(kind)",
            "PRAGMA wal_checkpoint(TRUNCATE)",
        ]
        return statements.allSatisfy { sqlite3_exec(database, $0, nil, nil, nil) == SQLITE_OK }
    }
}
