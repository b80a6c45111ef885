import Admin
import ArgumentParser
import Configuration
import Gateway
import Glibc
import Reactor
import Telemetry

struct Run: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serves until SIGTERM.",
        discussion:
            "SIGTERM: not ready at once, still accepting for shutdown.linger, then finishing what runs for at most shutdown.timeout."
    )

    @OptionGroup var common: CommonOptions

    func run() throws {
        var warnings: [Diagnostic] = []
        let configuration = try ConfigurationAccess.loaded(common.config) { warnings.append($0) }
        // Before any thread: limits and flags of the process are inherited, and a core file must not be possible from the start.
        let refusals = Hardening.apply()
        let signals = SignalSet([SIGTERM, SIGINT, SIGHUP])
        signals.block()
        let events = try EventLog(level: LogLevel(configuration.log.level))
        let log = LogThread(events: events, format: configuration.log.format == .json ? .json : .text)
        try log.start()
        for warning in warnings { events.warn("configuration", [LogField("warning", .name("\(warning)"))]) }
        for refusal in refusals {
            events.debug(
                "hardening step refused",
                [LogField("step", .word(refusal.step)), LogField("errno", .code(Int(refusal.errno)))])
        }
        let gateway: Gateway
        do {
            gateway = try Gateway(configuration, environment: ConfigurationAccess.environment, log: log)
            let site = AdminSite(
                gateway: gateway, version: Cardea.version, configurationPath: common.config ?? "",
                token: adminToken(configuration),
                logDropped: { log.dropped })
            try openAdmin(gateway, configuration, site, events)
            try gateway.start()
        } catch {
            log.stop()
            ConfigurationAccess.complain("cardea: \(error)")
            throw ExitCode(ExitStatus.configuration)
        }
        events.info("serving", [LogField("version", .name(Cardea.version))])
        wait(signals, gateway, configuration.shutdown)
        gateway.close()
        events.info("stopped")
        log.stop()
        // The loops' threads still run; nothing of theirs is left to save, but what they touch must stay until the process ends.
        withExtendedLifetime(gateway) { _exit(0) }
    }

    private func adminToken(_ configuration: Configuration) -> (@Sendable () -> [UInt8]?)? {
        guard let reference = configuration.admin.token else { return nil }
        return {
            guard let secret = try? readSecret(reference, environment: ConfigurationAccess.environment) else {
                return nil
            }
            return secret.withBytes { Array($0) }
        }
    }

    /// The command line's socket is a convenience: where its folder cannot be written, the gateway serves without it and says so.
    private func openAdmin(
        _ gateway: Gateway, _ configuration: Configuration, _ site: AdminSite, _ events: EventLog
    ) throws(GatewayFault) {
        let path = ConfigurationAccess.adminSocket(configuration)
        do throws(GatewayFault) {
            try gateway.openAdminSocket(path, responder: site)
        } catch {
            events.warn(
                "no admin socket; cardea reset will not reach this process", [LogField("reason", .name("\(error)"))])
        }
        try gateway.openAdmin(configuration.admin, responder: site)
    }

    private func wait(_ signals: SignalSet, _ gateway: Gateway, _ shutdown: Shutdown) {
        while true {
            let signal = signals.wait()
            if signal == SIGHUP {
                gateway.events.warn("reload is not supported yet; restart to apply a changed configuration")
                continue
            }
            break
        }
        gateway.linger()
        // A second signal means now.
        if signals.waitForEnd(milliseconds: shutdown.linger.wholeNanoseconds / 1_000_000) { return }
        let done = DoneFlag()
        gateway.drain { done.set() }
        done.wait(
            milliseconds: max(0, (shutdown.timeout - shutdown.linger).wholeNanoseconds / 1_000_000), orSignal: signals)
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
