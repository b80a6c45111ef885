import Configuration
import Handshakes
import Keeping
import Synchronization
import World

@testable import Gateway
@testable import Reactor

/// What operators and service managers do to a gateway.
extension GatewayProcess {
    /// `cardea tokens purge --all`.
    func purge() {
        guard let gateway else { return }
        let keeper = gateway.keeper
        purgedAt = world.timeline.now
        _ = gateway.keeperLoop.post { keeper.assumeIsolated { _ = $0.purge(.everything) } }
    }

    /// The service manager stops the process, and starts another one a moment after its end.
    func restart() {
        guard let gateway else { return }
        let name = self.name
        world.journal.note(.process, UInt64(number), [], "g\(number) is stopped")
        gateway.linger()
        let end: () -> Void = { [self] in
            guard self.name == name, self.gateway === gateway else { return }
            gateway.close()
            kill()
            world.timeline.after(.milliseconds(100)) { [self] in try? start() }
        }
        let done = UncheckedAction(end)
        gateway.drain { [world = UncheckedReference(world)] in world.value.timeline.after(0) { done.run() } }
        // As `shutdown.timeout` does.
        world.timeline.after(.seconds(25)) { end() }
    }

    /// Takes up another edition of the configuration. The call blocks until loops have answered, so that it has a thread; this one turns the
    /// loops meanwhile, in a fixed order, and time stands.
    func reload() {
        guard let gateway, isServing else { return }
        edition += 1
        let loaded = Configuration.load(.text(world.configuration(of: number))) { [self] name in
            environment.withLock { $0[name] }
        }
        guard let configuration = loaded.configuration, loaded.errors.isEmpty else { return }
        reloadedAt = world.timeline.now
        world.journal.note(.process, UInt64(number), [], "g\(number) reloads its edition \(edition)")
        turnUntilQuiet()
        let outcome = ReloadOutcome()
        let thread = try? WorkerThread(name: "reload") {
            do {
                _ = try gateway.reload(configuration)
                outcome.state.store(1, ordering: .releasing)
            } catch { outcome.state.store(2, ordering: .releasing) }
        }
        while thread != nil, outcome.state.load(ordering: .acquiring) == 0 { turnUntilQuiet() }
        thread?.join()
        world.verdicts.expect(
            outcome.state.load(ordering: .acquiring) == 1, .calmSuccess, "g\(number) refuses a good configuration")
    }
}

/// What came of a reload, for the thread that waits for it.
private final class ReloadOutcome: Sendable {
    /// 1: done, 2: refused.
    let state = Atomic<Int>(0)
}

/// For closures that are `Sendable` by their type and run on the one thread of the simulation.
private struct UncheckedAction: @unchecked Sendable {
    let run: () -> Void
    init(_ run: @escaping () -> Void) { self.run = run }
}
