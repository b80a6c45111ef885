import Admin
import ArgumentParser
import Configuration
import Glibc

/// The gateway that a command asks.
///
/// Since it read its file, somebody may have spoilt or deleted that. It serves on with what it had, and must be reachable then most of
/// all: so a file that is not good only costs what is known of the names in it.
struct RunningGateway {
    /// Its admin socket.
    let socket: String
    let client: AdminClient
    /// What its file says now, where that is good.
    let configuration: Configuration?
    private let fault: ConfigurationFault?

    /// - Parameter path: `--config`. When the file is not good, standard error is told, and which socket is asked.
    init(_ path: String?) {
        do throws(ConfigurationFault) {
            let configuration = try ConfigurationAccess.load(path, warn: { _ in }).configuration
            socket = ConfigurationAccess.adminSocket(configuration)
            client = AdminClient(socket)
            (self.configuration, fault) = (configuration, nil)
        } catch {
            let named = ConfigurationAccess.adminSocket(named: path)
            let usual = ConfigurationAccess.usualAdminSockets(path)
            if let named, AdminClient(named).request("GET", "/livez") != nil {
                socket = named
            } else {
                // Also where one is named: it may have been renamed in the file, which takes effect with a restart only.
                socket = usual.first { Self.mayServe(path, at: $0) } ?? named ?? usual[0]
            }
            client = AdminClient(socket)
            (configuration, fault) = (nil, error)
            let more = error.reasons.count - 1
            ConfigurationAccess.complain(
                "cardea: the configuration is not good: \(error.reasons.first ?? "")"
                    + (more > 0 ? "; and \(more) more, see 'cardea check'" : "")
                    + "; asking the gateway that may run with an earlier one at \(socket), "
                    + (socket == named ? "which the file names" : "a usual place"))
        }
    }

    /// Whether a gateway answers there that does not say that it runs with another file: it would be another one's health that is told,
    /// and another one's tokens that are purged.
    private static func mayServe(_ path: String?, at socket: String) -> Bool {
        guard let answer = AdminClient(socket).request("GET", "/status"), answer.status == 200 else { return false }
        guard let status = try? StatusDocument(parsing: Array(answer.body.utf8)) else { return true }
        var ours = ""
        if case .file(let file)? = try? ConfigurationSource.find(
            argument: path, environment: ConfigurationAccess.environment)
        {
            ours = file
        }
        return mayBeSame(ours, status.configuration)
    }

    /// Paths as two processes were given them; empty where one was found without a word.
    static func mayBeSame(_ ours: String, _ theirs: String) -> Bool {
        guard !ours.isEmpty, !theirs.isEmpty, ours != theirs else { return true }
        // Each is relative to a folder of its own: what they end with is all that can be compared.
        func plain(_ path: String) -> String { path.hasPrefix("./") ? String(path.dropFirst(2)) : path }
        let (left, right) = (plain(ours), plain(theirs))
        guard left.hasPrefix("/"), right.hasPrefix("/") else {
            return left == right || left.hasSuffix("/" + right) || right.hasSuffix("/" + left)
        }
        guard let first = realpath(left, nil) else { return false }
        defer { free(first) }
        guard let second = realpath(right, nil) else { return false }
        defer { free(second) }
        return strcmp(first, second) == 0
    }

    /// For what cannot be done without: the configuration, or the end of the process with every mistake on standard error.
    func requireConfiguration() throws -> Configuration {
        if let configuration { return configuration }
        throw statusWithoutAnswer(ExitStatus.configuration)
    }

    /// What the process ends with when nobody answers.
    func absent(_ advice: String) -> ExitCode {
        ConfigurationAccess.complain("cardea: no gateway answers at \(socket)\(advice)")
        return statusWithoutAnswer(ExitStatus.unavailable)
    }

    /// The file may be the reason that nobody answers, and is told as it stands.
    func statusWithoutAnswer(_ status: Int32) -> ExitCode {
        fault.map { ConfigurationAccess.refuse($0) } ?? ExitCode(status)
    }

    /// The names must stand in the file; where that is not good, the gateway itself is the judge.
    func require(_ names: [String], as kind: String, among defined: (Configuration) -> [String]) throws {
        if let configuration { try Self.require(names, as: kind, among: defined(configuration)) }
    }

    static func require(_ names: [String], as kind: String, among defined: [String]) throws {
        for name in names where !defined.contains(name) {
            ConfigurationAccess.complain("cardea: no \(kind) '\(name)'; defined: \(defined.joined(separator: ", "))")
            throw ExitCode(64)
        }
    }

    func requireIdentity(_ name: String) throws {
        try require([name], as: "identity") { $0.identities.map(\.name) }
    }

    /// What the process ends with after an answer that is no success.
    func refused(_ answer: AdminClient.Answer) -> ExitCode {
        ConfigurationAccess.complain("cardea: the gateway refused: \(answer.status) \(answer.body)")
        // A name that no file could be asked for.
        return ExitCode(answer.status == 404 && configuration == nil ? 64 : ExitStatus.internalFault)
    }
}
