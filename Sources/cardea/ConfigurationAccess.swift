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
        let source: ConfigurationSource
        do {
            source = try ConfigurationSource.find(argument: path, environment: environment)
        } catch {
            complain("cardea: \(error)")
            throw ExitCode(ExitStatus.configuration)
        }
        let result = Configuration.load(source, environment: environment)
        guard let configuration = result.configuration else {
            for diagnostic in result.diagnostics { complain("\(diagnostic)") }
            let count = result.errors.count
            complain(count == 1 ? "1 error" : "\(count) errors")
            throw ExitCode(ExitStatus.configuration)
        }
        for diagnostic in result.diagnostics { warn(diagnostic) }
        return configuration
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
