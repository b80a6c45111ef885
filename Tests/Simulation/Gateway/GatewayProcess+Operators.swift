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
        let (keeper, name, ordered) = (gateway.keeper, self.name, world.timeline.now)
        purgedAt = ordered
        let done = UncheckedAction { [self] in
            lastPurge = Purge(orderedAt: ordered, answeredAt: world.timeline.now, process: name)
        }
        _ = gateway.keeperLoop.post {
            keeper.assumeIsolated { keeper in
                _ = keeper.purge(.everything)
                // Where the answer is that not all of it went, nothing is promised.
                keeper.whenErased { reason in if reason == nil { done.run() } }
            }
        }
    }

    /// The service manager stops the process, and starts another one a moment after its end.
    func restart() {
        guard let life = running, upgrade == nil else { return }
        world.journal.note(.process, UInt64(number), [], "\(life.name) is stopped")
        life.gateway.linger()
        let end: () -> Void = { [self] in
            guard !life.isOver else { return }
            life.gateway.close()
            self.end(life, "ends")
            world.timeline.after(.milliseconds(100)) { [self] in try? start() }
        }
        let done = UncheckedAction(end)
        life.gateway.drain { [world = UncheckedReference(world)] in world.value.timeline.after(0) { done.run() } }
        // As `shutdown.timeout` does.
        world.timeline.after(.seconds(25)) { end() }
    }

    /// Another process of the same program takes over, or fails to.
    func upgradeInPlace(failure: SimulatedUpgrade.Failure?) {
        guard let running, isServing, upgrade == nil else { return }
        let upgrade = SimulatedUpgrade(self, running, failure: failure)
        self.upgrade = upgrade
        world.journal.note(.process, UInt64(number), [], "\(running.name) is to be upgraded")
        upgrade.begin()
    }

    /// Takes up another edition of the configuration.
    func reload() {
        guard let gateway, isServing, upgrade == nil else { return }
        edition += 1
        let loaded = Configuration.load(.text(world.configuration(of: number))) { [self] name in
            environment.withLock { $0[name] }
        }
        guard let configuration = loaded.configuration, loaded.errors.isEmpty else { return }
        reloadedAt = world.timeline.now
        world.journal.note(.process, UInt64(number), [], "g\(number) reloads its edition \(edition)")
        let outcome = ReloadOutcome()
        running?.whileTurning {
            outcome.isTaken.store((try? gateway.reload(configuration)) != nil, ordering: .releasing)
        }
        world.verdicts.expect(
            outcome.isTaken.load(ordering: .acquiring), .calmSuccess, "g\(number) refuses a good configuration")
    }
}

/// What came of a reload, for the thread that waits for it.
private final class ReloadOutcome: Sendable {
    let isTaken = Atomic<Bool>(false)
}

/// For closures that are `Sendable` by their type and run on the one thread of the simulation.
struct UncheckedAction: @unchecked Sendable {
    let run: () -> Void
    init(_ run: @escaping () -> Void) { self.run = run }
}
