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
            // Also where it is named: it may have been renamed there, which takes effect with a restart only.
            let others = ConfigurationAccess.usualAdminSockets(path)
            let places = [named].compactMap(\.self) + others
            socket = places.first { AdminClient($0).request("GET", "/livez") != nil } ?? places[0]
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
