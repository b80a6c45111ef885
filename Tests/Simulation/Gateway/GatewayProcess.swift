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

/// One gateway of the fleet and its machine: the process is the real one from the seams up, and may be killed and started again.
final class GatewayProcess {
    let number: Int
    private(set) var life = 0
    let clock = MachineClock()
    /// When somebody set the wall clock last, or the gateway noticed it, which it does when there is work; every token is due for renewal then.
    private(set) var jumpedAt: UInt64 = 0
    /// When an operator has purged its tokens, and when it took up another configuration.
    var purgedAt: UInt64 = 0
    var reloadedAt: UInt64 = 0
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
    let world: World
    private var running: Life?
    /// The store's turn is planned.
    private var storeWaits = false
    private var draw: Draw
    /// Values of the environment, for secrets.
    let environment = Mutex<[String: String]>([:])

    /// What ends with the process.
    private final class Life {
        let name: ProcessName
        let gateway: Gateway
        let platform: SimulatedPlatform
        let log: LogThread
        var formatter: LogFormatter
        let loops: [(loop: Loop, kernel: FakeKernel)]
        /// Descriptors of the listening socket, by data loop.
        let listeners: [Int32]

        init(
            _ name: ProcessName, _ gateway: Gateway, _ platform: SimulatedPlatform, _ log: LogThread,
            _ listeners: [Int32]
        ) {
            self.name = name
            self.gateway = gateway
            self.platform = platform
            self.log = log
            self.listeners = listeners
            formatter = LogFormatter(
                format: .text, routes: log.routes, faults: log.faults, identities: log.identities)
            loops = zip([gateway.keeperLoop] + gateway.loops.map(\.value.loop), platform.kernels).map { ($0, $1) }
        }
    }

    init(_ world: World, number: Int) {
        self.world = world
        self.number = number
        draw = Draw(world.seed, Purpose.disk + 100 * UInt64(number))
        disk = SimulatedDisk(draw.fork())
    }

    var name: ProcessName { ProcessName(gateway: number, life: life) }
    var isRunning: Bool { running != nil }
    var gateway: Gateway? { running?.gateway }
    /// It takes callers: nobody stops it.
    var isServing: Bool { running.map { $0.gateway.isServing } ?? false }

    // MARK: - Life

    /// Starts a process, which may fail as on a machine.
    func start() throws {
        guard running == nil else { return }
        life += 1
        clock.move(to: world.timeline.now)
        let yaml = world.configuration(of: number)
        let secrets: @Sendable (String) -> String? = { [environment = UncheckedReference(self)] name in
            environment.value.environment.withLock { $0[name] }
        }
        let loaded = Configuration.load(.text(yaml), environment: secrets)
        guard let configuration = loaded.configuration, loaded.errors.isEmpty else {
            throw SimulationFault("the configuration is wrong: \(loaded.errors.map(\.message))")
        }
        let name = self.name
        let platform = SimulatedPlatform(
            loops: World.loops, clock: clock, draw: Draw(world.seed, Purpose.gateway(number, life)),
            names: { [unowned world] host in world.addresses(of: host) }
        ) { [unowned self] delay, body in
            world.timeline.after(delay) { [unowned self] in if self.name == name, isRunning { body() } }
        }
        platform.setClocks()
        for kernel in platform.kernels { world.network.join(kernel, gateway: number) }
        disk.processBegins()
        storeWaits = false
        let vfs = SimulatedVFS("\(name)", disk, draw: draw.fork()) { [clock] in clock.wallMilliseconds() }
        let log = LogThread(events: try EventLog(level: .debug, time: clock), format: .text)
        let listeners = platform.kernels.dropFirst().map { $0.listen() }
        let inherited = InheritedSockets(
            handed: listeners.map { HandedSocket(address: World.listener, descriptor: $0) })
        let gateway = try Gateway(
            configuration, environment: secrets, log: log, inherited: inherited,
            platform: platform.platform(disk: SimulatedDisk.Mount(disk: disk, sqlite: vfs.name)))
        try gateway.prepare()
        try gateway.serve()
        running = Life(name, gateway, platform, log, Array(listeners))
        world.journal.note(.process, UInt64(number), [], "g\(number) starts its life \(life)")
    }

    /// Ends the process as `kill -9` does: nothing that it would have done is done. What it wrote stays, unless the power goes with it.
    func kill(cutsPower: Bool = false) {
        guard running != nil else { return }
        running = nil
        disk.processBegins()
        if cutsPower { disk.cutPower() }
        world.journal.note(.process, UInt64(number), [], "g\(number) is killed")
        for wire in world.network.open where wire.gateway == number { wire.lost() }
    }

    /// Somebody sets the machine's wall clock.
    func jump(nanoseconds: Int64) {
        jumpedAt = world.timeline.now
        clock.jump(nanoseconds: nanoseconds)
    }

    // MARK: - Turning

    func setClocks() {
        clock.move(to: world.timeline.now)
        running?.platform.setClocks()
    }

    /// When a loop has something to do by itself; nil: never.
    var nextDeadline: UInt64? {
        guard let running else { return nil }
        let deadline = running.loops.compactMap { $0.loop.nextDeadline }.min()
        return deadline.map { $0 < MachineClock.boot ? 0 : $0 - MachineClock.boot }
    }

    /// Loops that have something to do now.
    func busyLoops() -> [Int] {
        guard let running else { return [] }
        return running.loops.indices.filter { index in
            let (loop, kernel) = running.loops[index]
            if !kernel.isQuiet || loop.hasWork { return true }
            return loop.nextDeadline.map { $0 <= kernel.clock } ?? false
        }
    }

    func turn(_ index: Int) {
        guard let running else { return }
        running.loops[index].loop.turnOnce()
        if !running.loops[index].loop.hasWork { running.loops[index].loop.willBlock() }
        readLog(running)
    }

    /// Each loop in turn, until none has anything to do.
    func turnUntilQuiet() {
        while true {
            let busy = busyLoops()
            if busy.isEmpty { return }
            for index in busy { turn(index) }
        }
    }

    /// The store's thread comes to its work when the disk lets it.
    func planStore() {
        guard let running, let store = running.gateway.store, store.hasWork, !storeWaits else { return }
        storeWaits = true
        world.timeline.after(50_000 + draw.below(.milliseconds(4))) { [self] in
            guard self.running === running else { return }
            storeWaits = false
            store.turn()
            world.journal.note(.disk, UInt64(number), [], "g\(number)'s store has its turn")
            readLog(running)
        }
    }

    /// What the log's thread would write. Secrets are looked for in it.
    private func readLog(_ running: Life) {
        while let event = running.log.events.next() {
            running.formatter.write(event)
            look(at: running.formatter.line.bytes)
        }
        for ring in running.log.rings.withLock({ $0 }) {
            while ring.next({ running.formatter.write(copy $0) }) { look(at: running.formatter.line.bytes) }
        }
    }

    private func look(at line: [UInt8]) {
        if line.contains(canary: "wall clock jumped") { jumpedAt = world.timeline.now }
        if !disk.hasLied, !disk.hasFailed {
            let isLost = line.contains(canary: "store was damaged") || line.contains(canary: "store not used")
            world.verdicts.expect(!isLost, .durable, "g\(number) finds its store damaged on a disk that keeps its word")
        }
        world.verdicts.expect(
            !line.contains(canary: Tokens.canary), .toldSecret, "g\(number) writes a secret into its log")
        world.journal.note(
            .log, UInt64(number), [], "g\(number) logs \(String(decoding: line, as: UTF8.self).dropLast())")
    }

    // MARK: - Callers and operators

    /// A caller's connection, to one of the data loops.
    func call(_ draw: inout Draw) -> Peer? {
        guard let running, isServing else { return nil }
        let index = draw.below(running.listeners.count)
        return running.platform.kernels[index + 1].call(running.listeners[index])
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

    /// Looks for what stayed behind after everybody has hung up.
    func checkNothingIsLeft() {
        guard let running else { return }
        for (index, loop) in running.gateway.loops.enumerated() {
            let data = loop.value
            let place = "g\(number), loop \(index)"
            func expect(_ holds: Bool, _ what: String) {
                world.verdicts.expect(holds, .leftBehind, "\(place): \(what)")
            }
            expect(data.isEmptyOfCallers, "callers")
            expect(data.waitingCount == 0, "requests that wait")
            expect(data.blocksInUse == 0, "\(data.blocksInUse) blocks")
            expect(data.exchangesInUse == 0, "exchanges")
        }
        for kernel in running.platform.kernels {
            world.verdicts.expect(kernel.misuse.isEmpty, .misuse, "g\(number): \(kernel.misuse.prefix(3))")
        }
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
