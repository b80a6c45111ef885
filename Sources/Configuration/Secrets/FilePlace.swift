internal import Glibc

/// Where a file is, such that two processes can tell whether they speak of the same one.
public struct FilePlace: Codable, Sendable, Hashable {
    /// The folder without links, and the name in it; also of a file that is not there.
    public var standing: String
    /// The file itself, all links followed; `standing` where there is none.
    public var real: String

    /// - Parameters:
    ///   - path: as it was given; a relative one counts from the working directory.
    public init(_ path: String) {
        let absolute = path.hasPrefix("/") ? path : (Self.resolved(".") ?? "") + "/" + path
        let end = absolute.lastIndex(of: "/") ?? absolute.startIndex
        let folder = absolute[..<end].isEmpty ? "/" : String(absolute[..<end])
        let begin = Self.resolved(folder) ?? folder
        standing = (begin == "/" ? "" : begin) + absolute[end...]
        real = Self.resolved(absolute) ?? standing
    }

    /// By the name of one file: a link that was swapped since one of the two looked still stands in the same place.
    public func isSame(as other: FilePlace) -> Bool { standing == other.standing || real == other.real }

    static func resolved(_ path: String) -> String? {
        guard let real = realpath(path, nil) else { return nil }
        defer { free(real) }
        return String(cString: real)
    }
}
