import Admin
import Configuration
import DataPath
import Gateway
import Glibc
import Reactor
import Telemetry

/// The main thread of `cardea run`, once the gateway serves: it waits for signals and changed files, reloads, looks after the program that
/// it serves, tells systemd, and ends.
struct Service {
    let gateway: Gateway
    let waiter: SignalWaiter
    /// The configuration that was found at the start. Nothing is searched for again: who makes another file that would be found first must not
    /// become the one whose configuration is served.
    private let source: ConfigurationSource
    private let place: ServedPlace
    private(set) var configuration: Configuration
    private var files: WatchedFiles
    /// A file has changed: looked at when it has been quiet for a moment.
    private var changedAt: UInt64?

    /// The program to start when the gateway is ready, then the one that runs.
    private var command: [String]
    private var child: ChildProcess?
    private var isReady = false
    /// What systemd was last told of the readiness; nil: nothing yet.
    private var told: String?
    /// systemd takes the service for started. Before `isReady` where only an operator can make it ready.
    private var isStarted = false
    private let systemd: SystemdNotice?
    private let sandbox: Sandbox?
    /// The program, where it is confined.
    private let confined: ConfinedProgram?
    private var upgrade: Upgrade
    /// A reload was asked for while an upgrade was under way.
    private var isReloadOwed = false
    private var nextSign: UInt64?
    /// The end was asked for, and the program has until then.
    private var childDeadline: UInt64?
    private var isChildKilled = false
    /// The status that the process ends with.
    private(set) var status: Int32 = 0

    /// Nanoseconds between two looks at the readiness that systemd or a program waits for.
    private static let impatience: UInt64 = 20_000_000
    /// Nanoseconds between two looks when nobody waits for the start any more.
    private static let patience: UInt64 = 1_000_000_000
    /// Nanoseconds that a killed program has to end: one that waits for a device does not.
    private static let deathPatience: UInt64 = 5_000_000_000
    /// Nanoseconds for which changes may gather: writing or swapping a file is several events.
    private static let gathering: UInt64 = 100_000_000

    static let signals = [SIGTERM, SIGINT, SIGHUP, SIGCHLD, SIGUSR2] + ChildProcess.forwarded

    init(
        gateway: Gateway, waiter: SignalWaiter, loaded: LoadedConfiguration, place: ServedPlace, command: [String],
        systemd: SystemdNotice?, sandbox: Sandbox?, launcher: Launcher?, confined: ConfinedProgram?
    ) {
        upgrade = Upgrade(
            gateway: gateway, waiter: waiter, launcher: launcher, obstacle: Self.obstacle(command) ?? "no launcher",
            systemd: systemd,
            patience: UInt64(max(0, loaded.configuration.shutdown.takeover.wholeNanoseconds)))
        self.sandbox = sandbox
        self.confined = confined
        self.command = command
        self.systemd = systemd
        nextSign = systemd?.watchdogInterval.map { SignalWaiter.now + $0 }
        self.gateway = gateway
        self.waiter = waiter
        source = loaded.source.absolute
        self.place = place
        configuration = loaded.configuration
        files = loaded.files
        watch()
    }

    private var events: EventLog { gateway.events }

    /// Why this process cannot be upgraded in place; nil when it can.
    static func obstacle(_ command: [String]) -> String? {
        if !command.isEmpty { return "the program behind -- belongs to this process; start both anew" }
        // The processes that it leaves behind are killed with it.
        if getpid() == 1 { return "the first process of a container ends with it; replace the container" }
        return nil
    }

    // MARK: - Serving

    /// Until a signal says that the end has come.
    mutating func serve() {
        while true {
            switch waiter.wait(until: nextMoment) {
            case .signal(SIGHUP): reload()
            case .signal(SIGUSR2): upgrade.ask()
            case .signal(SIGCHLD): if reap() { return }
            case .signal(let signal) where ChildProcess.forwarded.contains(signal): child?.send(signal)
            case .signal(let signal): if mayEnd(after: signal) { return }
            case .changed: changedAt = changedAt ?? SignalWaiter.now
            case .timePassed: if timePassed() { return }
            case .woken, .readable: upgrade.look()
            }
            if upgrade.successor != nil { return }
            if isReloadOwed, !upgrade.isBusy { reload() }
        }
    }

    private var nextMoment: UInt64? {
        [
            changedAt.map { $0 + Self.gathering }, nextSign, childDeadline, upgrade.deadline,
            isReady || (systemd == nil && command.isEmpty)
                ? nil : SignalWaiter.now + (isStarted ? Self.patience : Self.impatience),
        ].compactMap { $0 }.min()
    }

    /// - Returns: whether the program had its time.
    private mutating func timePassed() -> Bool {
        let now = SignalWaiter.now
        upgrade.timePassed(now)
        if let changedAt, now >= changedAt + Self.gathering {
            self.changedAt = nil
            if files.now != files { reload() }
        }
        if let nextSign, let interval = systemd?.watchdogInterval, now >= nextSign {
            // No sign when a loop hangs: systemd then does what the unit says.
            if gateway.pulse() { systemd?.signOfLife() }
            self.nextSign = now + interval
        }
        if let childDeadline, now >= childDeadline, endChild() { return true }
        return !isReady && becomeReady()
    }

    // MARK: - The program and systemd

    /// - Returns: whether the end has come, because the program cannot be started.
    private mutating func becomeReady() -> Bool {
        guard systemd != nil || !command.isEmpty, let readiness = gateway.askedReadiness() else { return false }
        isReady = readiness.isReady
        tellReadiness(readiness)
        guard isReady, !command.isEmpty else { return false }
        do throws(ChildProcess.Fault) {
            child =
                if let confined { try confined.start() } else {
                    try ChildProcess(
                        command, environment: ProgramEnvironment(withholding: configuration.secretVariables))
                }
            events.info("program started", [LogField("program", .name(command[0]))])
            return false
        } catch {
            events.error("program cannot be started", [LogField("reason", .name("\(error)"))])
            // Shells answer with this status.
            status = 127
            return true
        }
    }

    /// Where only an operator can make it ready, systemd is told that it has started all the same: it would kill it at the end of its patience,
    /// again and again, although other routes are served and the admin addresses say what is wrong.
    private mutating func tellReadiness(_ readiness: Gateway.Readiness) {
        guard let systemd else { return }
        let lacks = readiness.isReady ? "" : "not ready: \(readiness.reasons.joined(separator: "; "))"
        guard told != lacks else { return }
        told = lacks
        guard readiness.isReady || readiness.needsOperator || isStarted else { return systemd.status(lacks) }
        isStarted = true
        systemd.ready(state)
    }

    /// The line of `systemctl status`.
    private var state: String {
        let lacks = told.flatMap { $0.isEmpty ? nil : "; \($0)" } ?? ""
        return "serving \(gateway.addresses.joined(separator: ", "))\(lacks)"
    }

    /// The program ends first, while the gateway still serves it.
    private mutating func mayEnd(after signal: Int32) -> Bool {
        guard let child else { return true }
        guard childDeadline == nil else { return endChild() }
        child.send(signal)
        childDeadline = SignalWaiter.now + UInt64(max(0, configuration.shutdown.timeout.wholeNanoseconds))
        return false
    }

    /// The program is killed, and its end awaited for a moment: its status is ours.
    /// - Returns: whether that was done before, and nothing came of it.
    private mutating func endChild() -> Bool {
        guard !isChildKilled else { return true }
        isChildKilled = true
        child?.send(SIGKILL)
        status = 128 + SIGKILL
        childDeadline = SignalWaiter.now + Self.deathPatience
        return false
    }

    /// Whoever has ended. As the first process of a container we also get the children of those who died.
    /// - Returns: whether the program was among them.
    private mutating func reap() -> Bool {
        var isOver = false
        var end: Int32 = 0
        // First, and by its number: whatever else has ended must not stand before it.
        if let process = child?.process, waitpid(process, &end, WNOHANG) == process {
            status = ChildProcess.exitStatus(end)
            events.info("program ended", [LogField("status", .code(Int(status)))])
            child = nil
            isOver = true
        }
        // Of a program that brings a credential, the end is another thread's to see; what stands behind it is found with the next signal.
        while let process = ChildProcess.nextEnded(), !isAwaitedProgram(process) {
            _ = waitpid(process, &end, WNOHANG)
        }
        return isOver
    }

    // MARK: - Reload

    private mutating func reload() {
        // The new process has the sockets of the configuration of now, and reads the file by itself.
        isReloadOwed = upgrade.isBusy
        guard !isReloadOwed else { return }
        systemd?.reloading()
        // Also after a refusal: the service goes on as it was.
        defer { if isStarted { systemd?.ready(state) } }
        let began = SignalWaiter.now
        var warnings: [Diagnostic] = []
        do throws(ConfigurationFault) {
            let loaded = try ConfigurationAccess.load(source) { warnings.append($0) }
            // From here on a broken file is watched for being mended, whatever becomes of this one.
            files = loaded.files
            watch()
            for warning in warnings { events.warn("configuration", [LogField("warning", .name("\(warning)"))]) }
            let excess = sandbox?.excess(of: loaded) ?? []
            guard excess.isEmpty else {
                throw ConfigurationFault(
                    reasons: ["restart needed: outside the sandbox: \(excess.joined(separator: ", "))"], files: files)
            }
            let obstacles = confined?.obstacles(to: loaded, serving: configuration) ?? []
            guard obstacles.isEmpty else { throw ConfigurationFault(reasons: obstacles, files: files) }
            let done = try apply(loaded.configuration)
            configuration = loaded.configuration
            place.serves(loaded.source, store: configuration.store.path)
            upgrade.patience = UInt64(max(0, configuration.shutdown.takeover.wholeNanoseconds))
            events.level = LogLevel(configuration.log.level)
            if !done.needsRestart.isEmpty {
                events.warn(
                    "these keys change with a restart only",
                    [LogField("keys", .name(done.needsRestart.joined(separator: ", ")))])
            }
            events.info(
                "reload done",
                [
                    LogField("edition", .count(Int64(done.edition))),
                    LogField("milliseconds", .count(Int64((SignalWaiter.now - began) / 1_000_000))),
                ])
        } catch {
            files = error.files ?? files.now
            watch()
            gateway.refuseReload(error.reasons.joined(separator: "; "))
            for reason in error.reasons { events.error("reload refused", [LogField("reason", .name(reason))]) }
        }
    }

    private func apply(_ configuration: Configuration) throws(ConfigurationFault) -> Gateway.Reload {
        do throws(GatewayFault) { return try gateway.reload(configuration) } catch {
            throw ConfigurationFault(reasons: ["\(error)"], files: nil)
        }
    }

    private mutating func watch() {
        if !waiter.watch(folders: files.folders) {
            events.warn("not every folder of the configuration can be watched; SIGHUP reloads")
        }
        // They were looked at before they were watched: what changed in between is nobody's event.
        if files.now != files { changedAt = changedAt ?? SignalWaiter.now }
    }

    // MARK: - The end

    /// Nanoseconds in which each loop cuts short what it still has; one that hangs is not waited for.
    private static let lastMoment: UInt64 = 500_000_000

    /// Not ready at once and still accepting, then draining, each for its time. A second signal means now. What runs even then is cut short.
    mutating func end() {
        drain()
        let flag = Latch()
        gateway.cut { [waiter] in
            flag.set()
            waiter.wake()
        }
        _ = isToldAgain(until: SignalWaiter.now + Self.lastMoment) { flag.isSet }
    }

    private mutating func drain() {
        let shutdown = configuration.shutdown
        let start = SignalWaiter.now
        let timeout = UInt64(max(0, shutdown.timeout.wholeNanoseconds))
        upgrade.ending()
        if let successor = upgrade.successor {
            // The new process is the service from here on: nothing of this end is the service manager's to hear.
            events.info("upgrade done", [LogField("process", .count(Int64(successor)))])
            gateway.linger()
        } else {
            systemd?.stopping()
            gateway.linger()
            // With a program, nobody is left who would come here from elsewhere.
            if command.isEmpty, isToldAgain(until: start + UInt64(max(0, shutdown.linger.wholeNanoseconds))) { return }
        }
        let flag = Latch()
        // No person waits for the end of an old process, and an idle caller that does not retry must not lose its next request: it has all
        // the time there is. The last moment is for those that use it up.
        let farewell = upgrade.successor == nil ? nil : timeout - min(timeout / 10, 1_000_000_000)
        gateway.drain(farewell: farewell) { [waiter] in
            flag.set()
            waiter.wake()
        }
        _ = isToldAgain(until: start + timeout) { flag.isSet }
    }

    private func isToldAgain(until deadline: UInt64, orUntil isDone: () -> Bool = { false }) -> Bool {
        while !isDone() {
            switch waiter.wait(until: deadline) {
            case .timePassed: return false
            // Log rotation sends it too; and a program that was told to end does.
            case .signal(SIGHUP), .signal(SIGCHLD), .signal(SIGUSR2): break
            case .signal(let signal) where ChildProcess.forwarded.contains(signal): break
            case .signal: return true
            case .changed, .woken, .readable: break
            }
        }
        return false
    }
}
