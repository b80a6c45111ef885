import Glibc

/// The files and folders that a configuration was read from, and how they looked then. What changes beside them, in the same folders, is
/// nobody's reason to read them again: a token store may stand there.
struct WatchedFiles: Equatable {
    private let looks: [Look]

    /// Links are followed: a swapped one leads to another file.
    private struct Look: Equatable {
        let path: String
        let device: UInt64
        let inode: UInt64
        let size: Int64
        let changedAt: [Int]
    }

    init(_ paths: [String]) { looks = paths.map(Self.look) }

    var paths: [String] { looks.map(\.path) }

    /// The same files as they look now.
    var now: WatchedFiles { WatchedFiles(looks.map(\.path)) }

    /// Where changes to them show.
    var folders: [String] {
        var folders: Set<String> = []
        for look in looks {
            let end = look.path.lastIndex(of: "/")
            switch end {
            case nil: folders.insert(".")
            case look.path.startIndex?: folders.insert("/")
            case let end?: folders.insert(String(look.path[..<end]))
            }
            if Self.isFolder(look.path) { folders.insert(look.path) }
        }
        return folders.sorted()
    }

    private static func look(_ path: String) -> Look {
        var status = stat()
        guard stat(path, &status) == 0 else { return Look(path: path, device: 0, inode: 0, size: -1, changedAt: []) }
        return Look(
            path: path, device: UInt64(status.st_dev), inode: UInt64(status.st_ino), size: Int64(status.st_size),
            changedAt: [status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec])
    }

    /// Whether the path leads to a file or folder, and not to a pipe.
    static func isLasting(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && [S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT)
    }

    private static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }
}
