internal import CSQLite
internal import Glibc

/// Why the rows could not be read or changed, and the text for it, which names tables and files but no values.
struct TableFault: Error {
    let kind: Kind
    let text: String

    enum Kind: Equatable {
        /// The file's content is wrong, as opposed to the disk, the space or the permissions.
        case damage
        case full, readOnly, io, sealing
        /// Rows are sealed with keys that are listed and not there.
        case unknownKey([UInt64])
        /// The file was written by a later version.
        case newer(Int)
    }

    static func damage(_ text: String) -> TableFault { TableFault(kind: .damage, text: text) }

    /// An error of SQLite, by its primary code.
    static func sqlite(_ code: Int32, _ text: String) -> TableFault {
        let kind: Kind =
            switch code {
            case SQLITE_CORRUPT, SQLITE_NOTADB: .damage
            case SQLITE_FULL: .full
            case SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH: .readOnly
            default: .io
            }
        return TableFault(kind: kind, text: text)
    }

    /// A system call on the store's files failed.
    static func system(_ number: Int32) -> TableFault {
        let kind: Kind =
            switch number {
            case ENOSPC, EDQUOT, EFBIG: .full
            case EROFS, EACCES, EPERM: .readOnly
            default: .io
            }
        return TableFault(kind: kind, text: StoreFile.errorText(number))
    }

    /// The fault as the caller of the store is told.
    var storeFault: StoreFault {
        switch kind {
        case .full: StoreFault(.full, text)
        case .readOnly: StoreFault(.readOnly, text)
        case .sealing: StoreFault(.sealing, text)
        case .damage, .io, .unknownKey, .newer: StoreFault(.io, text)
        }
    }

    /// The connection may be in a state that it does not leave by itself.
    var needsReopening: Bool { storeFault.kind == .io }
}
