import Admin
import ArgumentParser
import Audit
import Configuration
import DataPath
import Gateway
import Glibc
import Reactor
import Telemetry

struct Run: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serves until SIGTERM; with a command behind --, until that ends.",
        discussion: """
            SIGTERM: not ready at once, still accepting for shutdown.linger, then finishing what runs for at most shutdown.timeout.
            SIGHUP or a changed file: reloads; no request is dropped, and a configuration that is not good changes nothing.
            SIGUSR2: upgrades in place: the program at the same path takes over sockets and store; if it fails, this process goes on.
            -- COMMAND: starts it when ready, passes SIGTERM, SIGINT, SIGQUIT, SIGUSR1 and SIGWINCH on, and ends with its status.
            Under systemd: sockets by activation, readiness, reloads, end and watchdog by notification.
            """
    )

    @OptionGroup var common: CommonOptions

    @Flag(
        name: .long,
        help: "Give the program a network with the gateway alone in it, and placeholders in place of secrets.")
    var confine = false

    @Flag(name: .long, help: "As --confine, and refuse to start where this machine does not allow it.")
    var confineStrictly = false

    @Argument(parsing: .postTerminator, help: "The program that is served, with its arguments.")
    var command: [String] = []

    /// Milliseconds that the last spans have to reach their collector.
    private static let lastSpans: UInt32 = 1000

    func validate() throws {
        guard !isConfining || !command.isEmpty else {
            throw ValidationError("--confine is about the program behind --; write cardea run --confine -- COMMAND")
        }
    }

    private var isConfining: Bool { confine || confineStrictly }

    func run() throws {
        StandardDescriptors.fill()
        // First of all: the launcher keeps what there is now, which is no secret, no thread and no sandbox.
        let takeover = Takeover()
        let launcher = Service.obstacle(command) == nil ? Launcher() : nil
        let space = isConfining ? ProgramSpace(command) : nil
        if confineStrictly, case .everybodys(let reason)? = space {
            throw ExitCode(
                ExitStatus.unavailable, saying: "--confine-strictly: this machine does not allow it: \(reason)")
        }
        do { try run(takeover, launcher, space) } catch {
            takeover?.fail("the new process could not start: \(error)")
            throw error
        }
    }

    private func run(_ takeover: Takeover?, _ launcher: Launcher?, _ space: ProgramSpace?) throws {
        var warnings: [Diagnostic] = []
        // The program of a space could lead a folder's link elsewhere.
        let loaded = try ConfigurationAccess.loadedWithFiles(
            common.config, isStanding: space != nil, refuse: { takeover?.fail($0) }
        ) { warnings.append($0) }
        let confined: ConfinedProgram? = try space.map { space in
            do throws(GatewayFault) {
                return try ConfinedProgram(
                    command, in: space, loaded, environment: ConfigurationAccess.environment)
            } catch { throw ExitCode(ExitStatus.configuration, saying: "\(error)") }
        }
        do { try run(takeover, launcher, confined, loaded, warnings) } catch {
            confined?.forget()
            throw error
        }
    }

    private func run(
        _ takeover: Takeover?, _ launcher: Launcher?, _ confined: ConfinedProgram?, _ loaded: LoadedConfiguration,
        _ warnings: [Diagnostic]
    ) throws {
        let configuration = loaded.configuration
        // Before any thread: limits and flags of the process are inherited, and a core file must not be possible from the start.
        let refusals = Hardening.apply()
        let waiter = try SignalWaiter(signals: Service.signals)
        let systemd = SystemdNotice(environment: ConfigurationAccess.environment)
        let inherited =
            takeover.map { InheritedSockets(handed: $0.sockets) }
            ?? InheritedSockets(environment: ConfigurationAccess.environment, handed: confined?.sockets ?? [])
        // Whatever we start is not meant by these.
        SystemdNotice.forget()
        InheritedSockets.forget()
        let events = try EventLog(level: LogLevel(configuration.log.level))
        let sandbox = Sandbox.enter(loaded, command: command, confined: confined, events: events)
        let log = LogThread(
            events: events, format: configuration.log.format == .json ? .json : .text,
            journal: ConfigurationAccess.journal)
        let audit: AuditTrail?
        do throws(GatewayFault) { audit = try AuditPlace.trail(configuration, log, version: Cardea.version) } catch {
            takeover?.fail("\(error)")
            throw ExitCode(ExitStatus.configuration, saying: "\(error)")
        }
        if let audit { log.attach(audit) }
        try log.start()
        for warning in warnings { events.warn("configuration", [LogField("warning", .name("\(warning)"))]) }
        confined?.tell(events)
        for refusal in refusals {
            events.debug(
                "hardening step refused",
                [LogField("step", .name(refusal.step)), LogField("errno", .code(Int(refusal.errno)))])
        }
        let place = ServedPlace(
            source: loaded.source, socket: ConfigurationAccess.adminSocket(configuration),
            store: configuration.store.path)
        let gateway: Gateway
        do {
            gateway = try Gateway(
                configuration, environment: ConfigurationAccess.environment, log: log, inherited: inherited,
                audit: audit, version: Cardea.version, placeholders: confined?.placeholders ?? [:],
                beforeStore: { takeover?.awaitStore() })
            let site = AdminSite(
                gateway: gateway, version: Cardea.version, place: place,
                token: try adminToken(configuration), isOpenToRead: configuration.admin.isOpenToRead,
                // An operator would reload the same way: the main thread takes signals one after the other.
                reload: { kill(getpid(), SIGHUP) }, logDropped: { log.dropped })
            try openAdmin(gateway, configuration, site, events)
            // Before the old process closes its own: whoever waits there is then its to serve.
            if takeover != nil { inherited.closeRest() }
            try gateway.prepare()
            takeover?.takeOver(gateway)
            try gateway.serve()
        } catch {
            log.stop()
            takeover?.fail("\(error)")
            throw ExitCode(error.isPassing ? ExitStatus.passing : ExitStatus.configuration, saying: "\(error)")
        }
        events.info("serving", [LogField("version", .name(Cardea.version))])
        for address in inherited.left {
            events.warn("inherited socket is no listener's", [LogField("address", .name(address))])
        }
        var service = Service(
            gateway: gateway, waiter: waiter, loaded: loaded, place: place, command: command,
            systemd: systemd,
            sandbox: sandbox, launcher: launcher, confined: confined)
        service.serve()
        service.end()
        confined?.forget()
        gateway.exportLastSpans(within: Self.lastSpans)
        gateway.close()
        endPrograms()
        events.info("stopped")
        log.stop()
        // The loops' threads still run; nothing of theirs is left to save, but what they touch must stay until the process ends.
        withExtendedLifetime(gateway) { _exit(service.status) }
    }

    private func adminToken(_ configuration: Configuration) throws(GatewayFault) -> (@Sendable () -> [UInt8]?)? {
        guard let reference = configuration.admin.token else { return nil }
        if let secret = try? readSecret(reference, environment: ConfigurationAccess.environment),
            secret.withBytes({ $0.count }) < Configuration.shortestAdminToken
        {
            throw GatewayFault(
                "admin.token: \(reference): it has fewer than \(Configuration.shortestAdminToken) characters, which can be guessed"
            )
        }
        return {
            guard let secret = try? readSecret(reference, environment: ConfigurationAccess.environment) else {
                return nil
            }
            // The file may have changed to something that can be guessed.
            return secret.withBytes { $0.count < Configuration.shortestAdminToken ? nil : Array($0) }
        }
    }

    /// Callers are served without the command line's socket, too; but then no command reaches this gateway, and who calls one may meet
    /// another gateway that has the place.
    private func openAdmin(
        _ gateway: Gateway, _ configuration: Configuration, _ site: AdminSite, _ events: EventLog
    ) throws(GatewayFault) {
        let path = ConfigurationAccess.adminSocket(configuration)
        do throws(GatewayFault) {
            try gateway.openAdminSocket(path, responder: site)
        } catch {
            events.error(
                "no admin socket: commands do not reach this gateway",
                [
                    LogField("reason", .name("\(error)")),
                    LogField(
                        "advice", .name("set admin.socket to a path of its own, in a folder that its user may write")),
                ])
        }
        try gateway.openAdmin(configuration.admin, responder: site)
    }
}

extension LogLevel {
    init(_ level: Log.Level) {
        switch level {
        case .debug: self = .debug
        case .info, .notice: self = .info
        case .warning: self = .warn
        case .error: self = .error
        }
    }
}
