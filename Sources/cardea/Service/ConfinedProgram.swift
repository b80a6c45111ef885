import Configuration
import DataPath
import Gateway
import Octets
import Reactor
import TLS
import Telemetry

/// The program of `cardea run --confine`: it reaches no network but the gateway's listeners, trusts the gateway's authority, and has
/// placeholders in place of secrets (docs/how-to/confine-a-program.md).
struct ConfinedProgram {
    /// The listeners' sockets, inside of its network; none where the machine does not allow one.
    let sockets: [HandedSocket]
    /// The texts that it has in place of secrets, by variable.
    let placeholders: [String: String]
    /// Variables that the program does not have.
    private let withheld: Set<String>
    private let command: [String]
    private let space: ProgramSpace
    private let trust: TrustFolder
    private let proxy: ProxyPlace
    private let places: CoveredPlaces
    /// The addresses that were opened inside, as configured.
    private let addresses: Set<String>

    /// - Parameter space: of the process that waits to become the program.
    /// - Throws: what the configuration lacks, or an address that cannot be had inside.
    init(
        _ command: [String], in space: ProgramSpace, _ loaded: LoadedConfiguration, environment: (String) -> String?
    ) throws(GatewayFault) {
        self.command = command
        self.space = space
        let configuration = loaded.configuration
        proxy = try ProxyPlace(configuration)
        withheld = configuration.secretVariables
        placeholders = Dictionary(
            uniqueKeysWithValues: configuration.callersVariables.map { ($0, Self.placeholder()) })
        sockets = try space.open(configuration.listeners)
        addresses = Set(sockets.map(\.address))
        trust = try TrustFolder(
            authorities: configuration.listeners.compactMap { $0.intercept?.ca }, environment: environment)
        places = CoveredPlaces(loaded, command: command, trust: trust, environment: environment)
        do throws(GatewayFault) { try refuseWhatCannotBeKept(loaded.files.paths) } catch {
            trust.remove()
            throw error
        }
    }

    /// Refuses ways around what is covered; where the program has no space of its own, nothing is.
    /// - Parameter files: of the configuration.
    private func refuseWhatCannotBeKept(_ files: [String]) throws(GatewayFault) {
        guard case .own = space else { return }
        if let name = StandardDescriptors.folders.first {
            throw GatewayFault(
                "--confine: \(name) is a folder, by which the program would reach files that are hidden from it; give it a file"
            )
        }
        for file in files {
            if let name = StandardDescriptors.names(of: file).first {
                throw GatewayFault(
                    "--confine: '\(file)' is \(name), which the program gets as well; name a file of its own")
            }
            guard WatchedFiles.isLasting(file) else {
                throw GatewayFault("--confine: '\(file)' cannot be hidden from the program; name a file")
            }
        }
        if let refusal = places.refusal { throw GatewayFault("--confine: \(refusal)") }
    }

    /// A text that nothing has to encode: letters, digits and `-`.
    private static func placeholder() -> String {
        "cardea-confined-" + Hexadecimal.encode(SystemRandom().bytes(16))
    }

    /// Says once what the program is kept from, and what it is not.
    func tell(_ events: EventLog) {
        switch space {
        case .own:
            events.info(
                "program confined",
                [
                    LogField("listeners", .name(addresses.sorted().joined(separator: ", "))),
                    LogField("signals", .name(Confinement.keepsSignals ? "inside" : "to processes of its user")),
                ])
            for file in places.replaceable {
                events.warn(
                    "file covered alone",
                    [
                        LogField("path", .name(file)),
                        LogField(
                            "advice",
                            .name(
                                "its folder is used by others as well, and the program would see a new file in its place; put it into a folder of its own"
                            )),
                    ])
            }
        case .everybodys(let reason):
            events.warn(
                "program not confined",
                [
                    LogField("reason", .name(reason)),
                    LogField(
                        "advice",
                        .name(
                            "the program is told of the proxy, and nothing keeps it from the network and from its user's files; --confine-strictly does not start then"
                        )),
                ])
        }
    }

    /// Lets the program begin.
    func start() throws(ChildProcess.Fault) -> ChildProcess {
        var environment = ProgramEnvironment(
            withholding: withheld, placeholders: placeholders)
        proxy.tell(&environment)
        if trust.hasAuthority { trust.tell(&environment) }
        guard case .own(let confinement) = space else {
            return try ChildProcess(command, environment: environment)
        }
        do throws(Confinement.Fault) {
            try confinement.begin(
                .init(environment: environment.entries, changes: places.changes, nothing: trust.nothing))
        } catch {
            throw error.isOfProgram ? .cannotStart(command[0], error.errno) : .cannotConfine(command[0], "\(error)")
        }
        return ChildProcess(process: confinement.process)
    }

    /// The reasons for which another configuration cannot be taken while the program runs; empty when it can.
    /// - Parameter now: the configuration that is served.
    func obstacles(to next: LoadedConfiguration, serving now: Configuration) -> [String] {
        guard case .own = space else { return [] }
        let open = Set(now.listeners.map { "\($0.address)" })
        let listeners = next.configuration.listeners.map { "\($0.address)" }
        let others = CoveredPlaces(
            next, command: command, trust: trust, environment: ConfigurationAccess.environment)
        let found: [(what: String, which: [String])] = [
            (
                "outside the confined program's network",
                listeners.filter { !$0.hasPrefix("unix:") && !open.contains($0) }
            ),
            (
                "variables that the confined program has",
                next.configuration.secretVariables.subtracting(withheld).filter {
                    ConfigurationAccess.environment($0) != nil
                }.sorted()
            ),
            (
                "places that the confined program sees",
                Set(places.uncovered(of: others) + others.awaited + others.openFolders).sorted()
            ),
            ("put in the place of what is hidden from the confined program", places.replaced),
            ("a link that the confined program could lead elsewhere", others.links.map(\.link)),
        ]
        return found.filter { !$0.which.isEmpty }.map {
            "restart needed: \($0.what): \($0.which.joined(separator: ", "))"
        }
    }

    /// Whether the program's process was made before this one gives anything up.
    var isApart: Bool { if case .own = space { true } else { false } }

    /// The rights that `forget` needs.
    var rightsAtTheEnd: [(path: String, rights: Landlock.Rights)] {
        [(trust.path, .removeFile), (trust.parent, .removeFolder)]
    }

    /// After the program's end.
    func forget() { trust.remove() }
}

extension ConfinedProgram {
    /// For `check --confine`: an error for what a start would refuse, a warning for what it would go without.
    static func lacks(of loaded: LoadedConfiguration, in space: ProgramSpace) -> [Diagnostic] {
        let configuration = loaded.configuration
        let file = Mark(file: configuration.routes.first?.mark.file ?? "environment")
        var diagnostics: [Diagnostic] = []
        do throws(GatewayFault) { _ = try ProxyPlace(configuration) } catch {
            diagnostics.append(Diagnostic(.error, "\(error)", at: file))
        }
        for listener in configuration.listeners {
            if listener.mode == .forwardProxy, listener.intercept == nil {
                diagnostics.append(
                    Diagnostic(
                        .warning,
                        "listener '\(listener.name)' opens no TLS, so that https: requests of a confined program are refused or pass without a credential; 'cardea ca init' makes an authority for 'intercept'",
                        at: listener.mark))
            }
            if case .unix = listener.address {
                diagnostics.append(
                    Diagnostic(
                        .warning, "listener '\(listener.name)' is a unix socket, which a confined program cannot reach",
                        at: listener.mark))
            }
        }
        if case .own = space {
            let places = CoveredPlaces(
                loaded, command: [], trust: nil, environment: ConfigurationAccess.environment)
            if let refusal = places.refusal {
                diagnostics.append(Diagnostic(.error, "--confine: \(refusal)", at: file))
            }
        }
        if case .everybodys(let reason) = space {
            diagnostics.append(
                Diagnostic(
                    .warning,
                    "this machine does not allow confinement (\(reason)): run --confine would only tell the program of the proxy",
                    at: file))
        }
        return diagnostics
    }
}
