import Configuration
import DataPath
import Handshakes
import ScriptedKernel
import Synchronization
import TokenStore
import World

@testable import Gateway
@testable import Keeping
@testable import Reactor
@testable import Telemetry

/// One gateway of the fleet and its machine: its processes are the real ones from the seams up, and may be killed and started again.
///
/// One of them serves. Beside it there may be the next one, during an upgrade in place, and earlier ones that finish what they began.
final class GatewayProcess {
    let number: Int
    private var lives = 0
    let clock = MachineClock()
    /// When somebody set the wall clock last, or the gateway noticed it, which it does when there is work; every token is due for renewal then.
    private(set) var jumpedAt: UInt64 = 0
    /// When an operator has purged its tokens, and when it took up another configuration.
    var purgedAt: UInt64 = 0
    var reloadedAt: UInt64 = 0
    /// The last purge that was answered with the word that all of it went.
    var lastPurge: Purge?
    /// What it was given before is not used again by itself. A flight from before a purge or a reload may come to its issuer for a while still,
    /// for instance when the shared server has not answered; its outcome is not used.
    var letGoAt: UInt64 { max(jumpedAt, changedUntil) }
    var changedUntil: UInt64 {
        let last = max(purgedAt, reloadedAt)
        return last == 0 ? 0 : last + .seconds(15)
    }
    /// Counts the configurations that it was given.
    var edition = 0
    let disk: SimulatedDisk
    /// When the disk had no room last; a process that began since may have found none to hold back for deletions.
    private(set) var diskFullAt: UInt64 = 0
    let world: World
    /// The one that serves.
    private(set) var running: ProcessLife?
    /// Those that finish what they began, and one that is not ready yet.
    private(set) var others: [ProcessLife] = []
    var upgrade: SimulatedUpgrade?
    /// Nothing of it runs: its processes are stopped, or the whole machine.
    private(set) var isStopped = false
    var draw: Draw
    /// Values of the environment, for secrets.
    let environment = Mutex<[String: String]>([:])
    /// One of them is another one with each reading.
    var flaps = false
    private var readings = 0
    private var readingsOfSecond: (second: UInt64, count: Int) = (0, 0)
    /// A blow that waits for the moment in which the gateway has read its next answer of the issuer, or the next that ends a login.
    var atNextAnswer: (blow: Fault.Blow, ofLogin: Bool)?
    /// When the process that serves began to.
    private(set) var bornAt: UInt64 = 0
    /// The passwords that operators were told are not sent any more.
    var heldBack = HeldBackPasswords()

    struct Purge {
        let orderedAt: UInt64
        let answeredAt: UInt64
        let process: ProcessName
    }

    init(_ world: World, number: Int) {
        self.world = world
        self.number = number
        draw = Draw(world.seed, Purpose.disk + 100 * UInt64(number))
        disk = SimulatedDisk(draw.fork())
    }

    /// Of the process that serves, or did so last.
    private(set) var name = ProcessName(gateway: 0, life: 0)
    var isRunning: Bool { running != nil }
    var isAlone: Bool { others.isEmpty }
    var gateway: Gateway? { running?.gateway }
    /// It takes callers: nobody stops it.
    /// The loop of the process's keeper belongs to the simulation's thread: one that has not turned yet answers nobody.
    var hasTurned: Bool { running?.hasTurned ?? false }
    var isServing: Bool { !isStopped && running.map { $0.gateway.isServing } ?? false }

    // MARK: - Life

    /// Starts a process, which may fail as on a machine.
    func start() throws {
        guard running == nil else { return }
        let life = try makeLife()
        try life.begin(inheriting: nil)
        try life.gateway.prepare()
        try life.gateway.serve()
        serves(life)
    }

    /// Starts a process, as `start` does, beside the last one, which goes on.
    func startBeside() throws {
        let life = try makeLife()
        try life.begin(inheriting: nil)
        try life.gateway.prepare()
        try life.gateway.serve()
        serves(life)
    }

    /// A process whose program has not begun.
    func makeLife() throws -> ProcessLife {
        lives += 1
        clock.move(to: world.timeline.now)
        return try ProcessLife(ProcessName(gateway: number, life: lives), of: self)
    }

    /// From now on callers and operators come to this process.
    func serves(_ life: ProcessLife) {
        if let running { others.append(running) }
        others.removeAll { $0 === life }
        running = life
        life.servesCallers = true
        name = life.name
        bornAt = world.timeline.now
        world.journal.note(.process, UInt64(number), [], "\(life.name) serves")
    }

    /// A process that runs beside the one that serves.
    func joins(_ life: ProcessLife) { others.append(life) }

    /// Ends the process that serves as `kill -9` does: nothing that it would have done is done. What it wrote stays.
    func kill() {
        guard let running else { return }
        self.running = nil
        end(running, "is killed")
        upgrade?.oldIsGone()
    }

    /// Ends the process that serves, and spoils what it has kept of its sessions, where no other process has the store.
    func killAndRot() {
        kill()
        guard isAlone, upgrade == nil else { return }
        let spoiled = disk.rot(
            kind: RowKind.session, of: World.storePath, name: "rot \(number) \(lives)", draw: draw.fork())
        if spoiled {
            world.journal.note(.process, UInt64(number), [], "the sessions of g\(number) cannot be opened any more")
        }
    }

    /// Ends everything on the machine, and of what was not synchronized some is there afterwards and some is not.
    func cutPower() {
        let all = others + (running.map { [$0] } ?? [])
        running = nil
        for life in all { end(life, "is without power") }
        // Threads of dead processes come to an end only where nobody expects their loops to turn as those of others do.
        upgrade?.allIsGone()
        disk.cutPower()
    }

    /// When its processes ended, by their lives.
    private var ends: [Int: UInt64] = [:]

    /// Whether a process has had a second to tell others what it learned.
    func livedOn(_ process: ProcessName, after time: UInt64) -> Bool {
        ends[process.life].map { $0 > time + .seconds(1) } ?? true
    }

    /// A process is gone.
    func end(_ life: ProcessLife, _ how: String) {
        others.removeAll { $0 === life }
        if running === life { running = nil }
        life.isOver = true
        ends[life.name.life] = world.timeline.now
        if disk.hasKeptItsWord, disk.mood == .well {
            heldBack.ended(life.name, at: world.timeline.now)
        }
        disk.processEnds(life.diskProcess)
        world.journal.note(.process, UInt64(number), [], "\(life.name) \(how)")
        for wire in world.network.open where wire.process == life.name { wire.lost() }
    }

    /// Somebody sets the machine's wall clock.
    func jump(nanoseconds: Int64) {
        jumpedAt = world.timeline.now
        clock.jump(nanoseconds: nanoseconds)
    }

    /// The disk has only this much room left, in octets.
    func fillDisk(but left: Int) {
        diskFullAt = world.timeline.now
        disk.capacity = disk.used + left
    }

    /// Its processes are stopped, with their machine or alone, until `goOn`.
    func stop(withMachine: Bool) {
        isStopped = true
        if withMachine { clock.sleeps() }
    }

    func goOn() {
        guard isStopped else { return }
        isStopped = false
        clock.wakes()
        setClocks()
    }

    // MARK: - Turning

    /// Loops that have something to do now, as `findBusy` found them.
    private(set) var busy: [LoopTurn] = []

    private func forEachLife(_ body: (ProcessLife) -> Void) {
        for life in others { body(life) }
        if let running { body(running) }
    }

    func setClocks() {
        clock.move(to: world.timeline.now)
        forEachLife { $0.platform.setClocks() }
    }

    /// When a loop has something to do by itself; `UInt64.max`: never.
    var nextDeadline: UInt64 {
        var next = UInt64.max
        if !isStopped { forEachLife { next = min(next, $0.nextDeadline) } }
        return next
    }

    func findBusy() {
        busy.removeAll(keepingCapacity: true)
        if !isStopped { forEachLife { $0.addBusyLoops(to: &busy) } }
    }

    /// Each loop in turn, until none has anything to do.
    func turnUntilQuiet() {
        while true {
            findBusy()
            if busy.isEmpty { return }
            for turn in busy { turn.life.turn(turn.loop) }
        }
    }

    /// The stores' threads come to their work when the disk lets them.
    func planStore() { if !isStopped { forEachLife { $0.planStore() } } }

    /// Called with each line of a log.
    func look(at line: [UInt8], of life: ProcessLife) {
        if line.contains(canary: "wall clock jumped") { jumpedAt = world.timeline.now }
        if !disk.hasLied, !disk.hasFailed {
            let isLost =
                line.contains(canary: "store was damaged")
                || line.contains(canary: "Z error store not used") && !line.contains(canary: "another process")
            world.verdicts.expect(
                !isLost, .durable, "\(life.name) finds its store damaged on a disk that keeps its word")
        }
        lookAtQuarantine(line, life)
        if line.contains(canary: "login needed identity=human") {
            for person in world.persons where person.cares(for: number) { person.isWanted(by: life.name) }
        }
        world.verdicts.expect(
            !line.contains(canary: "too many secrets are being read"), .truth,
            "\(life.name) has no room to read the secrets of its own identities")
        if world.mustSucceed {
            world.verdicts.expect(
                !line.contains(canary: "Z error"), .truth,
                "\(life.name) logs an error where none is: \(String(decoding: line.prefix(200), as: UTF8.self))")
        }
        world.verdicts.expect(
            !(line.contains(canary: "store degraded") && line.contains(canary: "handed over")), .truth,
            "\(life.name) uses a store that it has given away")
        if line.contains(canary: "shared store works again") {
            world.verdicts.expect(
                world.redis?.isReadOnly(for: .seconds(1)) != true, .truth,
                "\(life.name) says that a server works which takes no writes")
        } else if line.contains(canary: "store works again") {
            world.verdicts.expect(
                disk.free > 32 << 10, .truth, "\(life.name) says that its store works, and the disk is full")
        }
        world.verdicts.expect(
            !line.contains(canary: Tokens.canary), .toldSecret, "\(life.name) writes a secret into its log")
        world.journal.note(
            .log, UInt64(number), [], "\(life.name) logs \(String(decoding: line, as: UTF8.self).dropLast())")
    }

    /// An operator who is told that a password was refused changes it or unlocks an account: it has to be so.
    private func lookAtQuarantine(_ line: [UInt8], _ life: ProcessLife) {
        guard line.contains(canary: "credential quarantined identity=") else { return }
        let text = String(decoding: line, as: UTF8.self)
        for (identity, user, secret) in [
            ("otto", BasicGate.user, "BASIC"), ("svc", MobileSocial.user, "SERVICE"), ("person", "anna", "PASSWORD"),
        ] where text.contains("identity=\(identity) ") {
            if let password = life.hasRead(secret) {
                heldBack.told(of: user, password, life.name, at: world.timeline.now)
            }
            let isOfPassword = identity != "person" || !line.contains(canary: "invalid_client")
            guard line.contains(canary: "credential rejected"), isOfPassword else { continue }
            world.verdicts.expect(
                world.refusedUsers.contains(user), .truth,
                "\(life.name) says that the password of \(user) was refused, and nobody has refused it")
        }
    }

    // MARK: - Callers and operators

    /// A caller's connection, to one of the data loops.
    /// - Parameter listener: which of the addresses, by its place in `World.listeners`.
    func call(_ draw: inout Draw, listener: Int = 0) -> Peer? {
        isServing ? running?.call(&draw, listener: listener) : nil
    }

    /// The value that a process reads now.
    func secret(_ name: String) -> String? {
        guard flaps, name == "SECRET" else { return environment.withLock { $0[name] } }
        readings += 1
        noteReading()
        return "wrong-\(Tokens.canary)-\(readings)"
    }

    /// With the largest crowd of identities a start reads some hundreds.
    private func noteReading() {
        let second = world.timeline.now / .seconds(1)
        readingsOfSecond = (second, readingsOfSecond.second == second ? readingsOfSecond.count + 1 : 1)
        world.verdicts.expect(
            readingsOfSecond.count < 2000, .restless,
            "\(name) has read a secret \(readingsOfSecond.count) times in this second")
    }

    func endsFlapping() {
        guard flaps, let right = environment.withLock({ $0["SECRET"] }) else { return }
        flaps = false
        setSecret("SECRET", right)
    }

    /// A secret has another value, and the gateway's watch sees it.
    func setSecret(_ name: String, _ value: String) {
        environment.withLock { $0[name] = value }
        guard let keeper = running?.gateway.keeper else { return }
        _ = running?.gateway.keeperLoop.post { keeper.assumeIsolated { $0.secretsMayHaveChanged() } }
    }

    /// Kernels of the running process: the keeper's, then those of the data loops.
    var kernels: [FakeKernel] { running?.platform.kernels ?? [] }

    // MARK: - The end

    /// Operators are told that what works works.
    func expectWellTold() {
        guard let gateway else { return }
        let status = gateway.status()
        world.verdicts.expect(
            status.store == (World.hasStore(world.seed) ? "serving" : "memory only"), .truth,
            "\(name) says of its store: \(status.store)")
        if let shared = status.shared {
            world.verdicts.expect(
                shared.state == .serving, .truth,
                "\(name) says of the shared server: \(shared.state) \(shared.detail ?? "")")
        }
    }

    /// Operators are told that the identity waits for them.
    func isQuarantined(_ identity: String) -> Bool {
        guard hasTurned else { return false }
        return gateway?.status().identities.first { $0.name == identity }?.isQuarantined == true
    }

    /// A process that has been there all the time says of the fleet's server that it is of no use.
    func expectServerToldBroken(since time: UInt64) {
        guard let gateway, !isStopped, bornAt < time, let shared = gateway.status().shared else { return }
        world.verdicts.expect(
            shared.state != .serving, .truth, "\(name) says that a server works which takes no writes")
    }

    /// Looks for what stayed behind after everybody has hung up.
    func checkNothingIsLeft() {
        world.verdicts.expect(others.isEmpty, .leftBehind, "g\(number): processes that should have ended")
        running?.checkNothingIsLeft(world)
    }
}

/// For closures that are `Sendable` by their type and run on the one thread of the simulation.
struct UncheckedReference<Value: AnyObject>: @unchecked Sendable {
    unowned let value: Value
    init(_ value: Value) { self.value = value }
}

/// The simulation itself cannot go on.
struct SimulationFault: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
