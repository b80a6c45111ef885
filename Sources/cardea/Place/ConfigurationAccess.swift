import ArgumentParser
import Configuration
import Glibc
import Handshakes
import Telemetry

/// How the commands come to their configuration.
enum ConfigurationAccess {
    static let environment: @Sendable (String) -> String? = { name in getenv(name).map { String(cString: $0) } }

    static func schema() -> String { Configuration.jsonSchema() }

    /// The checked configuration, or the end of the process with every mistake on standard error.
    /// - Parameter warn: gets what is no error; by default nobody, for commands whose user asked something else.
    static func loaded(_ path: String?, warn: (Diagnostic) -> Void = { _ in }) throws -> Configuration {
        try loadedWithFiles(path, warn: warn).configuration
    }

    /// - Parameters:
    ///   - isStanding: the file is found by a path in which no folder is a link.
    ///   - refuse: gets the reasons, too, when there is no configuration.
    static func loadedWithFiles(
        _ path: String?, isStanding: Bool = false, refuse: (String) -> Void = { _ in }, warn: (Diagnostic) -> Void
    ) throws -> LoadedConfiguration {
        do throws(ConfigurationFault) {
            let source = try source(path)
            return try load(isStanding ? source.standing : source, warn: warn)
        } catch {
            refuse(error.reasons.joined(separator: "; "))
            throw Self.refuse(error)
        }
    }

    /// Tells every mistake on standard error.
    /// - Returns: what the process ends with.
    static func refuse(_ fault: ConfigurationFault) -> ExitCode {
        if fault.files == nil {
            complain("cardea: \(fault.reasons.joined())")
        } else {
            for diagnostic in fault.diagnostics { complain("\(diagnostic)") }
            complain(fault.reasons.count == 1 ? "1 error" : "\(fault.reasons.count) errors")
        }
        return ExitCode(ExitStatus.configuration)
    }

    /// The checked configuration, for whoever goes on when there is none.
    static func load(_ path: String?, warn: (Diagnostic) -> Void) throws(ConfigurationFault) -> LoadedConfiguration {
        try load(try source(path), warn: warn)
    }

    private static func source(_ path: String?) throws(ConfigurationFault) -> ConfigurationSource {
        do { return try ConfigurationSource.find(argument: path, environment: environment) } catch {
            throw ConfigurationFault(reasons: ["\(error)"], files: nil)
        }
    }

    /// The same of a source that was found before.
    static func load(
        _ source: ConfigurationSource, warn: (Diagnostic) -> Void
    ) throws(ConfigurationFault) -> LoadedConfiguration {
        // How they look is noted before they are read: what changes meanwhile is then seen as a change.
        let before = Configuration.load(source, environment: environment).files
        let files = WatchedFiles(before)
        let result = Configuration.load(source, environment: environment)
        guard let configuration = result.configuration else {
            throw ConfigurationFault(
                reasons: result.errors.map { "\($0)" }, files: files, diagnostics: result.diagnostics)
        }
        for diagnostic in result.diagnostics { warn(diagnostic) }
        return LoadedConfiguration(configuration: configuration, source: source, files: files)
    }

    /// Where the admin socket stands: as configured, beside the store, or in the runtime folder.
    static func adminSocket(_ configuration: Configuration) -> String {
        if let socket = configuration.admin.socket { return socket }
        if let store = configuration.store.path {
            let folder = store.lastIndex(of: "/").map { String(store[..<$0]) } ?? "."
            return (folder.isEmpty ? "" : folder) + "/cardea.sock"
        }
        if let runtime = environment("XDG_RUNTIME_DIR"), runtime.hasPrefix("/") { return runtime + "/cardea.sock" }
        return "/run/cardea.sock"
    }

    /// Where it is looked for when the configuration cannot say it: beside the file, in case one folder has everything; where it stands
    /// without a word about it; beside the store of an installation such as those under deploy/.
    static func usualAdminSockets(_ path: String?) -> [String] {
        var sockets: [String] = []
        if case .file(let file)? = try? ConfigurationSource.find(argument: path, environment: environment) {
            sockets.append((file.lastIndex(of: "/").map { String(file[...$0]) } ?? "./") + "cardea.sock")
        }
        if let runtime = environment("XDG_RUNTIME_DIR"), runtime.hasPrefix("/") {
            sockets.append(runtime + "/cardea.sock")
        }
        return sockets + ["/run/cardea.sock", "/var/lib/cardea/cardea.sock"]
    }

    /// The admin socket and the store that the configuration names, also one with mistakes; nil where it names none, or cannot be read.
    static func remains(of path: String?) -> (socket: String?, store: String?) {
        guard let source = try? ConfigurationSource.find(argument: path, environment: environment) else {
            return (nil, nil)
        }
        return Configuration.remains(of: source, environment: environment)
    }

    /// To standard error, with the severity of an error where that is the journal.
    static func complain(_ line: String) {
        let isJournal = journal.map { $0.isOpen(as: 2) } ?? false
        for line in line.split(separator: "\n", omittingEmptySubsequences: false) {
            write((isJournal ? "\(JournalPriority.error)" : "") + line + "\n")
        }
    }

    /// The journal's stream, where systemd has given one to this process or to one before it.
    static var journal: JournalStream? { JournalStream(environment("JOURNAL_STREAM")) }

    /// To standard error.
    static func write(_ text: String) {
        var text = text
        text.withUTF8 { _ = Glibc.write(2, $0.baseAddress, $0.count) }
    }
}

/// A configuration with the files that it was read from.
struct LoadedConfiguration {
    let configuration: Configuration
    let source: ConfigurationSource
    let files: WatchedFiles
}

/// Why there is no configuration.
struct ConfigurationFault: Error {
    /// A line for each mistake, with its place.
    let reasons: [String]
    /// The files that were read; nil where nothing was.
    let files: WatchedFiles?
    var diagnostics: [Diagnostic] = []
}
