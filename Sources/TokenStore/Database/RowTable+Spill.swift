internal import TLS

/// Rows that are not read at boot: found when they are asked for, dropped when they are old or there is no room.
extension RowTable {
    /// Expired rows that each commit takes along: more than it adds, so that they do not pile up.
    private static let sweep: Int64 = 8
    /// How long behind its expiry a row stays at least, in milliseconds: a token may be served past its expiry, and a clock may be wrong.
    static let grace: Int64 = 3_600_000
    /// Rows that go at once when there is no room.
    private static let roomRows: Int64 = 256

    /// The row of a kind and key; nil when there is none. A row that is there and cannot be opened is dropped.
    func fetch(kind: UInt8, key: [UInt8], damaged: inout Int) throws(TableFault) -> StoredRow? {
        for sealer in keys.keys {
            let tag = Self.tag(kind, key, sealer)
            try selection.bind(1, tag)
            guard try selection.step() else {
                selection.reset()
                continue
            }
            let expires = selection.integer(1)
            let value = selection.blob(2)
            let isWhole = selection.integer(0) == Int64(kind) && (expires != nil || selection.isNull(1))
            selection.reset()
            if isWhole, let value,
                let row = Self.open(tag: tag, kind: kind, expires: expires, value: value, keys: keys)
            {
                return row
            }
            damaged += 1
            try delete(tag)
        }
        return nil
    }

    /// Within a transaction: takes a few rows along that expired long ago.
    func sweepExpired(at now: Int64) throws(TableFault) {
        for kind in spilled {
            try sweeping.bind(1, Int64(kind))
            try sweeping.bind(2, now - Self.grace)
            try sweeping.bind(3, Self.sweep)
            try sweeping.execute()
        }
    }

    /// At the bound of the file: drops what expires first. False when that is not what the matter is, or nothing is left to drop.
    func makeRoom() -> Bool {
        do throws(TableFault) {
            let pages = try database.integer("PRAGMA page_count") ?? 0
            let most = try database.integer("PRAGMA max_page_count") ?? .max
            // The disk is full, not the file: giving up tokens would help nobody.
            guard pages >= most - 8 else { return false }
            var dropped = 0
            try database.transaction { () throws(TableFault) in
                let before = try database.integer("SELECT total_changes()") ?? 0
                for kind in spilled {
                    try sweeping.bind(1, Int64(kind))
                    try sweeping.bind(2, .max)
                    try sweeping.bind(3, Self.roomRows)
                    try sweeping.execute()
                }
                dropped = Int((try database.integer("SELECT total_changes()") ?? 0) - before)
            }
            return dropped > 0
        } catch {
            return false
        }
    }
}
