/// The files that hold what a confined program must not see.
public struct HiddenFiles: Sendable, Equatable {
    /// Paths as they are named; a path may lead to a folder, or to nothing.
    public var files: [String] = []
    /// Secrets among `files`: somebody may bring one later.
    public var secrets: [String] = []
    /// Programs that tell secrets, among `alone`.
    public var programs: [String] = []
    /// Folders that hold nothing else.
    public var folders: [String] = []
    /// Paths whose folders are others' business.
    public var alone: [String] = []

    /// Folders of programs and libraries that everybody needs and root alone changes.
    private static let system = [
        "/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/dev/", "/proc/", "/etc/ssl/certs", "/etc/pki/tls/certs",
        "/etc/pki/ca-trust",
    ]

    /// A program that tells a secret, and what it is given to read: whoever could change either would be the gateway.
    mutating func add(program: String, _ arguments: [String]) {
        programs.append(program)
        for path in [program] + arguments.flatMap({ NamedPaths($0).paths })
        where !Self.system.contains(where: { path.hasPrefix($0) }) { alone.append(path) }
    }
}

extension Configuration {
    /// Secrets, programs that tell secrets, tickets, the store with its key, and the audit log with its state; the configuration's own files are the caller's to add.
    /// - Parameter environment: of the process.
    public func hiddenFiles(environment: (String) -> String?) -> HiddenFiles {
        var hidden = HiddenFiles()
        for secret in secrets {
            switch secret.reference {
            case .file(let path):
                hidden.files.append(path)
                hidden.secrets.append(path)
            case .credential:
                if let folder = environment("CREDENTIALS_DIRECTORY"), folder.hasPrefix("/") {
                    hidden.folders.append(folder)
                }
            case .command(let program, let arguments): hidden.add(program: program, arguments)
            case .environment, .literal: break
            }
        }
        for identity in identities {
            hidden.files += identity.scheme.files(environment: environment)
            if let program = identity.scheme.program {
                hidden.add(program: program.path, program.arguments + program.environment.values)
            }
        }
        hidden.files += ticketFiles(environment: environment)
        // SQLite's own, and the key that is made where none is named.
        if let path = store.path { hidden.files += ["", "-wal", "-shm", ".key"].map { path + $0 } }
        if let audit { hidden.files += ["", ".key"].map { audit.path + $0 } }
        return hidden
    }
}
