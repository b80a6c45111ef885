import Configuration
import Gateway
import Glibc
import Reactor
import Synchronization
import Telemetry

/// The main thread of `cardea run`, once the gateway serves: it waits for signals and changed files, reloads, and ends.
struct Service {
    let gateway: Gateway
    let vigil: Vigil
    /// `--config` as given.
    let argument: String?
    private(set) var configuration: Configuration
    private var files: WatchedFiles
    /// A file has changed: looked at when it has been quiet for a moment.
    private var changedAt: UInt64?

    /// Nanoseconds for which changes may gather: writing or swapping a file is several events.
    private static let gathering: UInt64 = 100_000_000

    static let signals = [SIGTERM, SIGINT, SIGHUP]

    init(gateway: Gateway, vigil: Vigil, argument: String?, loaded: LoadedConfiguration) {
        self.gateway = gateway
        self.vigil = vigil
        self.argument = argument
        configuration = loaded.configuration
        files = loaded.files
        watch()
    }

    private var events: EventLog { gateway.events }

    // MARK: - Serving

    /// Until a signal says that the end has come.
    mutating func serve() {
        while true {
            switch vigil.wait(until: changedAt.map { $0 + Self.gathering }) {
            case .signal(SIGHUP): reload()
            case .signal: return
            case .changed: changedAt = changedAt ?? Vigil.now
            case .timePassed:
                changedAt = nil
                if files.now != files { reload() }
            case .woken: break
            }
        }
    }

    // MARK: - Reload

    private mutating func reload() {
        let began = Vigil.now
        var warnings: [Diagnostic] = []
        do throws(ConfigurationFault) {
            let loaded = try ConfigurationAccess.load(argument) { warnings.append($0) }
            // From here on a broken file is watched for being mended, whatever becomes of this one.
            files = loaded.files
            watch()
            for warning in warnings { events.warn("configuration", [LogField("warning", .name("\(warning)"))]) }
            let done = try apply(loaded.configuration)
            configuration = loaded.configuration
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
                    LogField("milliseconds", .count(Int64((Vigil.now - began) / 1_000_000))),
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

    private func watch() {
        if !vigil.watch(folders: files.folders) {
            events.warn("not every folder of the configuration can be watched; SIGHUP reloads")
        }
    }

    // MARK: - The end

    /// Not ready at once and still accepting, then draining, each for its time. A second signal means now.
    func end() {
        let shutdown = configuration.shutdown
        gateway.linger()
        let start = Vigil.now
        if isToldAgain(until: start + UInt64(max(0, shutdown.linger.wholeNanoseconds))) { return }
        let flag = Flag()
        gateway.drain { [vigil] in
            flag.set()
            vigil.wake()
        }
        _ = isToldAgain(until: start + UInt64(max(0, shutdown.timeout.wholeNanoseconds))) { flag.isSet }
    }

    private func isToldAgain(until deadline: UInt64, orUntil isDone: () -> Bool = { false }) -> Bool {
        while !isDone() {
            switch vigil.wait(until: deadline) {
            case .timePassed: return false
            // Log rotation sends it too.
            case .signal(SIGHUP): break
            case .signal: return true
            case .changed, .woken: break
            }
        }
        return false
    }
}

/// Set on one thread, seen by another.
private final class Flag: Sendable {
    private let value = Atomic<Bool>(false)
    func set() { value.store(true, ordering: .releasing) }
    var isSet: Bool { value.load(ordering: .acquiring) }
}
