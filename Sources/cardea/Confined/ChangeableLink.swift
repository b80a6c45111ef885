import Configuration
import Glibc

/// A link on the way to a file that a confined program could lead elsewhere: a mount keeps a folder where it is, and no link.
struct ChangeableLink: Equatable {
    /// The file that is looked for, as it is named.
    let path: String
    /// The link's own place.
    let link: String

    /// The kernel follows no more of them on one way (path_resolution(7)).
    private static let longestWay = 40

    /// - Parameter covered: folders that the program does not see, and so cannot change.
    /// - Returns: nil where the program can change no link on the way.
    init?(on path: String, except covered: Set<String>) {
        self.path = path
        let absolute = path.hasPrefix("/") ? path : FilePlace(".").real + "/" + path
        var rest = Self.names(of: absolute)
        var folder = "/"
        var followed = 0
        while let name = rest.first {
            rest.removeFirst()
            guard name != ".." else {
                folder = Self.folder(of: folder)
                continue
            }
            let place = (folder == "/" ? "" : folder) + "/" + name
            guard let target = Self.target(of: place) else {
                folder = place
                continue
            }
            if Self.isChangeable(folder), !covered.contains(where: { CoveredPlaces.isInside(folder, $0) }) {
                link = place
                return
            }
            followed += 1
            guard followed <= Self.longestWay else { return nil }
            if target.hasPrefix("/") { folder = "/" }
            rest = Self.names(of: target) + rest
        }
        return nil
    }

    /// Whether our user may give what is in the folder other names, now or after a change of the folder's mode, which its owner may make.
    static func isChangeable(_ folder: String) -> Bool {
        if access(folder, W_OK) == 0 { return true }
        var status = stat()
        return stat(folder, &status) == 0 && status.st_uid == geteuid()
    }

    private static func names(of path: String) -> [String] {
        path.split(separator: "/").filter { $0 != "." }.map(String.init)
    }

    private static func folder(of path: String) -> String {
        guard let end = path.lastIndex(of: "/"), end != path.startIndex else { return "/" }
        return String(path[..<end])
    }

    /// Nil where the place is no link.
    private static func target(of place: String) -> String? {
        var room = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let length = room.withUnsafeMutableBytes { readlink(place, $0.baseAddress!, $0.count) }
        return length < 0 ? nil : String(decoding: room[..<length], as: UTF8.self)
    }
}
