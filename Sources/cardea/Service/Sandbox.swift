import Configuration
import DataPath
import Gateway
import Glibc
import Reactor
import Telemetry

/// `sandbox: on`: after the start only the files of the configuration can be opened, and nothing gives that back
/// (docs/security/guarantees.md#invariant-16).
struct Sandbox {
    private let granted: FileNeeds

    /// Before any thread. Nil when the configuration does not ask for it, or it cannot be had, which the log says: whoever has to be
    /// served is served.
    /// - Parameter confined: the program behind `--`, where it was made before and so is outside.
    static func enter(
        _ loaded: LoadedConfiguration, command: [String], confined: ConfinedProgram?, events: EventLog
    ) -> Sandbox? {
        guard loaded.configuration.sandbox else { return nil }
        func without(_ reason: String) -> Sandbox? {
            events.warn("serving without a sandbox", [LogField("reason", .name(reason))])
            return nil
        }
        let isApart = confined?.isApart ?? false
        guard command.isEmpty || isApart else { return without("the program behind -- would be inside, too") }
        let needs = needs(of: loaded)
        if let path = needs.refused.first {
            return without("'\(path)' is written in a folder that others use as well; give it one of its own")
        }
        // Inside, nothing can be removed from folders that others use.
        for path in needs.exposedSockets { Gateway.removeStaleSocket(path) }
        let present = needs.present
        do throws(Landlock.Fault) {
            // A program outside is told the signals that we are told.
            let version = try Landlock.enforce(
                rules(of: present) + (confined?.rightsAtTheEnd ?? []), keepsSignals: !isApart
            ) { path, code in
                events.warn(
                    "sandbox: not allowed", [LogField("path", .name(path)), LogField("errno", .code(Int(code)))])
            }
            events.info("sandbox entered", [LogField("landlock", .count(Int64(version)))])
            ProgramEnclosure.begin { program in
                do throws(Landlock.Fault) {
                    _ = try Landlock.enforce(rules(of: FileNeeds(of: program).present)) { _, _ in }
                    return true
                } catch { return false }
            }
            if present.rights.values.contains(where: { $0.contains(.execute) }) {
                // Their own errors are thrown away: who looks for the reason of one finds it here.
                events.info("programs of exec: run inside the sandbox; one that needs other files wants sandbox: off")
            }
            return Sandbox(granted: present)
        } catch {
            return without("\(error)")
        }
    }

    /// The rights that a new configuration needs and the process gave up; empty when it can be taken.
    func excess(of loaded: LoadedConfiguration) -> [String] { Self.needs(of: loaded).present.exceeding(granted) }

    private static func needs(of loaded: LoadedConfiguration) -> FileNeeds {
        loaded.configuration.fileNeeds(
            files: loaded.files.paths, socket: ConfigurationAccess.adminSocket(loaded.configuration),
            environment: ConfigurationAccess.environment)
    }

    private static func rules(of needs: FileNeeds) -> [(path: String, rights: Landlock.Rights)] {
        needs.rights.sorted { $0.key < $1.key }.map { path, right in
            var rights: Landlock.Rights = []
            if right.contains(.read) { rights.formUnion([.readFile, .readFolder]) }
            if right.contains(.execute) { rights.insert(.execute) }
            if right.contains(.write) { rights.formUnion([.writeFile, .truncate, .makeFile, .removeFile]) }
            if right.contains(.sockets) {
                rights.insert(.makeSocket)
                if !FileNeeds.isEverybodys(path) { rights.insert(.removeFile) }
            }
            return (path, rights)
        }
    }
}
