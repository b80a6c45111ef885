import CYAML
import Glibc

/// The parts of the file system that a process needs to serve a configuration (docs/security/guarantees.md#invariant-16): paths, each with
/// all below it.
///
/// Folders, not files: a renewed secret or certificate is another file in the same folder, and Kubernetes swaps a link beside it.
public struct FileNeeds: Sendable, Equatable {
    /// The rights to a path and everything below it.
    public struct Right: OptionSet, Sendable, Hashable {
        /// A bit for each right.
        public let rawValue: Int
        /// Any bits are allowed.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// The right to read files and folders.
        public static let read = Right(rawValue: 1)
        /// The right to start programs.
        public static let execute = Right(rawValue: 2)
        /// Files are made, changed and removed.
        public static let write = Right(rawValue: 4)
        /// Sockets are made, and those that were left behind removed.
        public static let sockets = Right(rawValue: 8)
    }

    /// Links are resolved where the path exists.
    public private(set) var rights: [String: Right] = [:]
    /// Folders of everybody that would have to be written.
    public private(set) var refused: [String] = []
    /// Sockets in folders of everybody, where nothing may be removed.
    public private(set) var exposedSockets: [String] = []

    /// Folders in which others keep theirs: of what is needed there, the file alone is allowed, and a file that replaces it is not.
    public static func isEverybodys(_ folder: String) -> Bool {
        everybodys.contains(folder) || (folder.hasPrefix("/home/") && !folder.dropFirst(6).contains("/"))
    }

    private static let everybodys: Set<String> = [
        "/", "/dev", "/etc", "/etc/pki", "/etc/ssl", "/home", "/mnt", "/opt", "/proc", "/root", "/run", "/srv", "/sys",
        "/tmp", "/usr",
        "/usr/local", "/var", "/var/lib", "/var/tmp",
    ]

    /// The needs of `self` that `granted` does not give.
    public func exceeding(_ granted: FileNeeds) -> [String] {
        rights.filter { path, needed in
            // The rights are those of the path itself and of each folder that it is in.
            var given = granted.rights[path, default: []].union(granted.rights["/", default: []])
            for end in path.indices where path[end] == "/" {
                given.formUnion(granted.rights[String(path[..<end]), default: []])
            }
            return !given.isSuperset(of: needed)
        }.keys.sorted()
    }

    /// Paths that are there; a rule needs something that it can be bound to.
    public var present: FileNeeds {
        var needs = self
        needs.rights = rights.filter { FileReader.exists($0.key) }
        return needs
    }

    // MARK: - Collecting

    mutating func add(_ path: String, _ right: Right) { rights[Self.resolved(path), default: []].formUnion(right) }

    /// The folder of the file, and the one that its link leads to.
    mutating func add(file path: String, _ right: Right = .read) {
        for file in Set([path, Self.resolved(path)]) {
            let folder = Self.folder(of: file)
            add(Self.isEverybodys(Self.resolved(folder)) ? file : folder, right)
        }
    }

    mutating func add(store path: String) {
        let folder = Self.resolved(Self.folder(of: path))
        if Self.isEverybodys(folder) { refused.append(path) }
        add(folder, [.read, .write])
    }

    mutating func add(socket path: String) {
        let folder = Self.resolved(Self.folder(of: path))
        if Self.isEverybodys(folder) { exposedSockets.append(path) }
        add(folder, .sockets)
    }

    mutating func add(_ reference: SecretReference, environment: (String) -> String?) {
        switch reference {
        case .file(let path): add(file: path)
        case .credential:
            if let folder = environment("CREDENTIALS_DIRECTORY"), folder.hasPrefix("/") { add(folder, .read) }
        case .command(let program, let arguments): add(program: program, given: arguments)
        case .environment, .literal: break
        }
    }

    /// - Parameter texts: the words that the program is given; a file among them is meant to be read.
    mutating func add(program: String, given texts: [String]) {
        add(file: program, [.read, .execute])
        for path in Self.programs { add(path, [.read, .execute]) }
        // A file that is named is meant to be read.
        for path in texts.flatMap({ NamedPaths($0).paths }) { add(path, .read) }
    }

    /// The resolver, name services, certificate authorities, time zones and libraries that are loaded late.
    mutating func addSystem() {
        for path in Self.systemFiles { add(file: path) }
        for path in Self.systemFolders { add(path, .read) }
        if Self.isReplacedInPlace("/etc/resolv.conf") { add("/etc", .read) }
        add("/dev/null", [.read, .write])
    }

    /// The system with what the environment says of it, and facts of the process.
    mutating func addSystem(environment: (String) -> String?) {
        addSystem()
        add("/proc/self", .read)
        // Threads take their names there. It opens nothing: ptrace(2) decides who may do what with this process, as it does outside.
        add("/proc/self/task", [.read, .write])
        if let file = environment("SSL_CERT_FILE"), !file.isEmpty { add(file: file) }
        for folder in environment("SSL_CERT_DIR")?.split(separator: ":") ?? [] { add(String(folder), .read) }
    }

    private static let systemFiles = [
        "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services",
        "/etc/protocols", "/etc/passwd", "/etc/group", "/etc/localtime", "/etc/ld.so.cache", "/etc/ssl/openssl.cnf",
        "/etc/ssl/cert.pem", "/proc/stat", "/dev/urandom", "/dev/random",
    ]
    private static let systemFolders = [
        "/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust", "/etc/ca-certificates",
        "/usr/share/ca-certificates", "/usr/local/share/ca-certificates", "/etc/crypto-policies",
        "/usr/share/crypto-policies", "/usr/share/zoneinfo", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib",
        "/lib64", "/sys/fs/cgroup",
    ]
    /// Where programs, their interpreters and their libraries are.
    private static let programs = ["/usr", "/bin", "/sbin", "/lib", "/lib64"]

    /// Whether the file is one of its folder's own: no link to elsewhere and, as in containers, no mount. DHCP clients put another file in
    /// the place of such a resolv.conf, and a resolver that may not read that one asks nobody but this machine.
    private static func isReplacedInPlace(_ path: String) -> Bool {
        var file = stat()
        var folder = stat()
        return resolved(path) == path && stat(path, &file) == 0 && stat(Self.folder(of: path), &folder) == 0
            && file.st_dev == folder.st_dev
    }

    private static func folder(of path: String) -> String {
        guard let end = path.lastIndex(of: "/") else { return "." }
        return end == path.startIndex ? "/" : String(path[..<end])
    }

    private static func resolved(_ path: String) -> String { FilePlace.resolved(path) ?? path }
}

extension FileNeeds {
    /// The needs of one program that brings a credential: it has no part in the rest of the configuration.
    public init(of program: ProgramCall) {
        self.init()
        addSystem()
        add(program: program.path, given: program.arguments + program.environment.values)
    }
}

extension Configuration {
    /// - Parameters:
    ///   - files: what the configuration was read from, folders included.
    ///   - socket: where the command line's socket stands.
    ///   - environment: of the process.
    public func fileNeeds(files: [String], socket: String, environment: (String) -> String?) -> FileNeeds {
        var needs = FileNeeds()
        needs.addSystem(environment: environment)
        for file in files {
            needs.add(file: file)
            if FileReader.isDirectory(file) { needs.add(file, .read) }
        }
        for secret in secrets { needs.add(secret.reference, environment: environment) }
        for identity in identities {
            for path in identity.scheme.files(environment: environment) { needs.add(file: path) }
            if let program = identity.scheme.program {
                needs.add(program: program.path, given: program.arguments + program.environment.values)
            }
        }
        for path in ticketFiles(environment: environment) { needs.add(file: path) }
        for key in clientKeys { needs.add(file: key.files.certificate) }
        for tls in clientTLS {
            for case .file(let path) in tls.authorities { needs.add(file: path) }
        }
        for listener in listeners {
            for tls in listener.tls {
                for path in [tls.certificate, tls.clientCA, tls.ocsp].compactMap(\.self) { needs.add(file: path) }
            }
            if let intercept = listener.intercept { needs.add(file: intercept.ca) }
        }
        for address in listeners.map(\.address) + [admin.listen, admin.probes, admin.metrics].compactMap(\.self) {
            if case .unix(let path) = address { needs.add(socket: path) }
        }
        needs.add(socket: socket)
        if let shared = store.shared {
            for case .file(let path) in shared.authorities { needs.add(file: path) }
            if case .unix(let path) = shared.address { needs.add(file: path) }
        }
        if let path = store.path { needs.add(store: path) }
        if let audit { needs.add(store: audit.path) }
        return needs
    }
}
