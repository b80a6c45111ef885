internal import CLinux
internal import Configuration
internal import Glibc
internal import Reactor

/// Watches the folders of secret files, not the files: Kubernetes swaps a link beside them, and editors replace files by renaming.
final class FolderWatch: Watched {
    var changed: () -> Void = {}
    private var isArmed = false

    /// Nanoseconds that changes may gather: a swap is several events.
    private static let gathering: UInt64 = 100_000_000
    private static let limit = 64

    /// Nil when there is nothing to watch or no inotify to be had.
    init?(loop: Loop, folders: [String]) {
        super.init(loop: loop)
        guard !folders.isEmpty else { return nil }
        let descriptor = cardea_inotify()
        guard descriptor >= 0 else { return nil }
        var watched = 0
        for folder in folders.prefix(Self.limit) where cardea_inotify_folder(descriptor, folder) >= 0 { watched += 1 }
        guard watched > 0, loop.watch(self, descriptor: descriptor) else {
            Glibc.close(descriptor)
            return nil
        }
    }

    override func ready(_ readiness: Readiness) {
        var drain = [UInt8](repeating: 0, count: 4096)
        while Glibc.read(descriptor, &drain, drain.count) > 0 {}
        guard !isArmed else { return }
        isArmed = loop.arm(self, at: loop.now + Self.gathering, kind: 0) != nil
    }

    override func timerFired(_ kind: UInt8) {
        isArmed = false
        changed()
    }

    /// Folders of all certificates, authorities and all `file:` and `credential:` secrets, and those that their links lead to.
    static func folders(of configuration: Configuration, environment: (String) -> String?) -> [String] {
        var folders: Set<String> = []
        func add(_ path: String) {
            guard let end = path.lastIndex(of: "/") else { return }
            folders.insert(end == path.startIndex ? "/" : String(path[..<end]))
        }
        for keys in configuration.clientKeys { add(keys.files.certificate) }
        for authority in configuration.authorities {
            switch authority {
            case .file(let path): add(path)
            case .system: if let path = environment("SSL_CERT_FILE") { add(path) }
            }
        }
        for secret in configuration.secrets {
            var path: String?
            switch secret.reference {
            case .file(let file): path = file
            case .credential(let name): path = environment("CREDENTIALS_DIRECTORY").map { "\($0)/\(name)" }
            default: break
            }
            if let path { add(path) }
        }
        return folders.sorted()
    }
}
