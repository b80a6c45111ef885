import ArgumentParser
import Configuration
import Glibc

/// How the commands come to their configuration.
enum ConfigurationAccess {
    static let environment: @Sendable (String) -> String? = { name in getenv(name).map { String(cString: $0) } }

    static func schema() -> String { Configuration.jsonSchema() }

    /// The checked configuration, or the end of the process with every mistake on standard error.
    /// - Parameter warn: gets what is no error; by default nobody, for commands whose user asked something else.
    static func loaded(_ path: String?, warn: (Diagnostic) -> Void = { _ in }) throws -> Configuration {
        try loadedWithFiles(path, warn: warn).configuration
    }

    /// - Parameter refuse: gets the reasons, too, when there is no configuration.
    static func loadedWithFiles(
        _ path: String?, refuse: (String) -> Void = { _ in }, warn: (Diagnostic) -> Void
    ) throws -> LoadedConfiguration {
        do throws(ConfigurationFault) { return try load(path, warn: warn) } catch {
            refuse(error.reasons.joined(separator: "; "))
            guard error.files != nil else {
                complain("cardea: \(error.reasons.joined())")
                throw ExitCode(ExitStatus.configuration)
            }
            for diagnostic in error.diagnostics { complain("\(diagnostic)") }
            complain(error.reasons.count == 1 ? "1 error" : "\(error.reasons.count) errors")
            throw ExitCode(ExitStatus.configuration)
        }
    }

    /// The checked configuration, for whoever goes on when there is none.
    static func load(_ path: String?, warn: (Diagnostic) -> Void) throws(ConfigurationFault) -> LoadedConfiguration {
        let source: ConfigurationSource
        do {
            source = try ConfigurationSource.find(argument: path, environment: environment)
        } catch { throw ConfigurationFault(reasons: ["\(error)"], files: nil) }
        // How they look is noted before they are read: what changes meanwhile is then seen as a change.
        let before = Configuration.load(source, environment: environment).files
        let files = WatchedFiles(before)
        let result = Configuration.load(source, environment: environment)
        guard let configuration = result.configuration else {
            throw ConfigurationFault(
                reasons: result.errors.map { "\($0)" }, files: files, diagnostics: result.diagnostics)
        }
        for diagnostic in result.diagnostics { warn(diagnostic) }
        return LoadedConfiguration(configuration: configuration, files: files)
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

    static func complain(_ line: String) { write(line + "\n") }

    /// To standard error.
    static func write(_ text: String) {
        var text = text
        text.withUTF8 { _ = Glibc.write(2, $0.baseAddress, $0.count) }
    }
}

/// A configuration with the files that it was read from.
struct LoadedConfiguration {
    let configuration: Configuration
    let files: WatchedFiles
}

/// Why there is no configuration.
struct ConfigurationFault: Error {
    /// One for each mistake, with its place.
    let reasons: [String]
    /// What was read; nil where nothing was.
    let files: WatchedFiles?
    var diagnostics: [Diagnostic] = []
}
