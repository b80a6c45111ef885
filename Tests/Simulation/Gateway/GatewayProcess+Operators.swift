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
    /// - Parameter thenCut: the power goes in the moment of the answer.
    func purge(thenCut: Bool = false) {
        guard let gateway else { return }
        let (keeper, name, ordered) = (gateway.keeper, self.name, world.timeline.now)
        purgedAt = ordered
        let done = UncheckedAction { [self] in
            lastPurge = Purge(orderedAt: ordered, answeredAt: world.timeline.now, process: name)
            guard thenCut else { return }
            world.timeline.after(0) { [self] in cutPower() }
            world.timeline.after(.milliseconds(300)) { [self] in try? start() }
        }
        let life = UncheckedReference(self)
        let failed: @Sendable (String) -> Void = { reason in
            let life = life.value
            life.world.verdicts.expect(
                !life.disk.isOnlyFull, .truth,
                "\(name) cannot purge on a disk that is no worse than full: \(reason)")
        }
        let status = UncheckedReference(gateway)
        _ = gateway.keeperLoop.post {
            // Asked on the loop, which may not have turned yet when the purge is ordered. A store that another process has cannot be purged
            // by this one.
            let isHealthy = life.value.canPurge && !status.value.status().store.hasPrefix("not used")
            keeper.assumeIsolated { keeper in
                _ = keeper.purge(.everything)
                // Where the answer is that not all of it went, nothing is promised.
                keeper.whenErased { reason in
                    guard let reason else { return done.run() }
                    if isHealthy { failed(reason) }
                }
            }
        }
    }

    /// The disk is no worse than full, and was not full before the process began.
    private var canPurge: Bool { disk.isOnlyFull && (disk.isWell || bornAt < diskFullAt) }

    /// An answer of the issuer has been read; what it brings is on its way to the disk.
    func hasReadAnswer(ofLogin: Bool) {
        guard let next = atNextAnswer, ofLogin || !next.ofLogin else { return }
        atNextAnswer = nil
        world.timeline.after(draw.below(.milliseconds(3))) { [self] in
            switch next.blow {
            case .kill: kill()
            case .powerCut: cutPower()
            case .purge: purge()
            case .purgeThenRestart:
                let name = self.name
                purge()
                // The process ends when the person has been told of the login, and before requests have the login's row written anew.
                world.timeline.after(.milliseconds(550) + draw.below(.milliseconds(400))) { [self] in
                    if self.name == name { restart(overlaps: false) }
                }
            case .reload: reload()
            }
        }
    }

    /// The service manager stops the process, and starts another one a moment after its end.
    /// - Parameter overlaps: the next one is there before, and finds the store in use.
    func restart(overlaps: Bool) {
        guard let life = running, upgrade == nil else { return }
        world.journal.note(.process, UInt64(number), [], "\(life.name) is stopped")
        life.gateway.linger()
        let end: () -> Void = { [self] in
            guard !life.isOver else { return }
            life.gateway.close()
            self.end(life, "ends")
            if overlaps {
                expectStoreServes()
            } else {
                world.timeline.after(.milliseconds(100)) { [self] in try? start() }
            }
        }
        let done = UncheckedAction(end)
        life.gateway.drain { [world = UncheckedReference(world)] in world.value.timeline.after(0) { done.run() } }
        // As `shutdown.timeout` does.
        world.timeline.after(.seconds(25)) { end() }
        if overlaps { try? startBeside() }
    }

    /// A process whose store another one has had uses it a few seconds after that one's end, and says so.
    func expectStoreServes() {
        guard let life = running, isAlone, disk.isWell, World.hasStore(world.seed) else { return }
        let disturbances = disk.disturbances
        world.timeline.after(.seconds(6)) { [self] in
            guard life === running, isAlone, isServing, upgrade == nil, disk.disturbances == disturbances else {
                return
            }
            let store = life.gateway.status().store
            world.verdicts.expect(
                store == "serving", .truth, "\(life.name) says of a store that nobody else has: \(store)")
        }
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
