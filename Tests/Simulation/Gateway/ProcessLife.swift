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

/// One process of a gateway: what ends with it.
final class ProcessLife {
    let name: ProcessName
    /// Its number on the disk.
    let diskProcess: Int
    let platform: SimulatedPlatform
    private(set) var gateway: Gateway!
    private unowned let owner: GatewayProcess
    private let configuration: Configuration
    private let secrets: @Sendable (String) -> String?
    /// The values that the process has read last, by name: the environment may have others already.
    private let readings = Mutex<[String: String]>([:])
    private let vfs: SimulatedVFS
    private let log: LogThread
    private var formatter: LogFormatter
    private var loops: [SimulatedLoop] = []
    /// Descriptors of the listening sockets: for each address one by data loop.
    private var listeners: [[Int32]] = []
    /// The store's turn is planned.
    private var storeWaits = false
    /// Its data loops run: it serves, or has served.
    var servesCallers = false
    var isOver = false

    init(_ name: ProcessName, of owner: GatewayProcess) throws {
        self.name = name
        self.owner = owner
        let world = owner.world
        let yaml = world.configuration(of: owner.number)
        let environment = UncheckedReference(owner)
        let born = BornLife()
        secrets = { name in
            let value = environment.value.secret(name)
            born.life?.readings.withLock { $0[name] = value }
            return value
        }
        let loaded = Configuration.load(.text(yaml), environment: secrets)
        guard let configuration = loaded.configuration, loaded.errors.isEmpty else {
            throw SimulationFault("the configuration is wrong: \(loaded.errors.map(\.message))")
        }
        self.configuration = configuration
        diskProcess = owner.disk.processBegins()
        vfs = SimulatedVFS("\(name)", owner.disk, process: diskProcess, draw: owner.draw.fork()) {
            [clock = owner.clock] in
            clock.wallMilliseconds()
        }
        log = LogThread(events: try EventLog(level: .debug, time: owner.clock), format: .text)
        formatter = LogFormatter(format: .text, routes: log.routes, faults: log.faults, identities: log.identities)
        let number = owner.number
        platform = SimulatedPlatform(
            loops: World.loops, clock: owner.clock, draw: Draw(world.seed, Purpose.gateway(number, name.life)),
            readingTime: world.limits.readingTime,
            names: { [unowned world] host in world.addresses(of: host) }
        ) { [unowned world] delay, body in
            world.timeline.after(delay) { if let life = born.life, !life.isOver { body() } }
        }
        born.life = self
        platform.setClocks()
        for kernel in platform.kernels { world.network.join(kernel, gateway: number, process: name) }
        listeners = World.listeners.map { _ in platform.kernels.dropFirst().map { $0.listen() } }
    }

    /// Makes the gateway.
    /// - Parameter wait: called when another process may have the store until it returns; nil where none has.
    func begin(inheriting wait: (() -> Void)?) throws {
        let inherited = InheritedSockets(
            handed: zip(World.listeners, listeners).flatMap { address, descriptors in
                descriptors.map { HandedSocket(address: address, descriptor: $0) }
            })
        gateway = try Gateway(
            configuration, environment: secrets, log: log, inherited: inherited,
            platform: platform.platform(
                disk: SimulatedDisk.Mount(
                    disk: owner.disk, process: diskProcess, sqlite: vfs.name,
                    opens: { [vfs = UncheckedReference(vfs)] in vfs.value.opens() })),
            beforeStore: { wait?() })
        let all = [gateway.keeperLoop] + gateway.loops.map(\.value.loop)
        loops = zip(all, platform.kernels).map { SimulatedLoop(loop: $0, kernel: $1) }
    }

    /// Data loops that have not begun to serve do nothing.
    private var running: Int { servesCallers ? loops.count : min(loops.count, 1) }

    /// When a loop has something to do by itself; `UInt64.max`: never.
    var nextDeadline: UInt64 {
        var deadline = UInt64.max
        for index in 0..<running { deadline = min(deadline, loops[index].deadline) }
        return deadline == .max ? .max : deadline - min(deadline, MachineClock.boot)
    }

    /// Adds the loops that have something to do now.
    func addBusyLoops(to busy: inout [LoopTurn]) {
        for index in 0..<running where loops[index].isBusy { busy.append(LoopTurn(life: self, loop: index)) }
    }

    func turn(_ index: Int) {
        loops[index].loop.turnOnce()
        if !loops[index].loop.hasWork { loops[index].loop.willBlock() }
        readLog()
    }

    func hasRead(_ name: String) -> String? { readings.withLock { $0[name] } }

    /// Calls `body` once, on the thread that opens the store's file next, when it does.
    func whenStoreOpens(_ body: @escaping () -> Void) { vfs.whenOpened = body }

    /// The loops of its machine, until none has anything to do.
    func turnAll() {
        guard isOver else { return owner.turnUntilQuiet() }
        // What a dead process's thread waits for comes to nothing, but it comes.
        loops.first?.loop.turnOnce()
    }

    var hasTurned: Bool { loops.first?.loop.isCurrent ?? false }

    func planStore() {
        guard let gateway, let store = gateway.store, store.hasWork, !storeWaits else { return }
        storeWaits = true
        turnLater(store)
    }

    /// The store's thread comes to its work after a moment, or when the disk answers again.
    private func turnLater(_ store: TokenStore) {
        let delay = 50_000 + owner.draw.below(.milliseconds(4)) + owner.disk.slowness
        owner.world.timeline.after(delay) { [self] in
            guard owner.disk.mood != .hangs || isOver else { return turnLater(store) }
            storeWaits = false
            guard !isOver, !owner.isStopped else { return }
            store.turn()
            owner.world.journal.note(.disk, UInt64(owner.number), [], "\(name)'s store has its turn")
            readLog()
        }
    }

    /// What the log's thread would write. Secrets are looked for in it.
    func readLog() {
        guard !isOver else { return }
        while let event = log.events.next() {
            formatter.write(event)
            owner.look(at: formatter.line.bytes, of: self)
        }
        for ring in log.rings.withLock({ $0 }) {
            while ring.next({ formatter.write(copy $0) }) { owner.look(at: formatter.line.bytes, of: self) }
        }
    }

    func call(_ draw: inout Draw, listener: Int) -> Peer? {
        let index = draw.below(World.loops)
        return platform.kernels[index + 1].call(listeners[listener][index])
    }

    /// Does what blocks until loops have answered: it has a thread, and this one turns the loops meanwhile, in a fixed order; time stands.
    func whileTurning(_ work: @escaping @Sendable () -> Void) {
        owner.turnUntilQuiet()
        let errand = Errand { _ in work() }
        errand.goOn { [owner] in owner.turnUntilQuiet() }
        // What the thread has posted last is done now, whether or not it was seen above: else the seed would have to draw for it at times.
        owner.turnUntilQuiet()
    }

    func checkNothingIsLeft(_ world: World) {
        for (index, loop) in gateway.loops.enumerated() {
            let data = loop.value
            let place = "\(name), loop \(index)"
            func expect(_ holds: Bool, _ what: String) {
                world.verdicts.expect(holds, .leftBehind, "\(place): \(what)")
            }
            expect(data.isEmptyOfCallers, "callers")
            expect(data.waitingCount == 0, "requests that wait")
            expect(data.blocksInUse == 0, "\(data.blocksInUse) blocks")
            expect(data.exchangesInUse == 0, "exchanges")
        }
        for kernel in platform.kernels {
            world.verdicts.expect(kernel.misuse.isEmpty, .misuse, "\(name): \(kernel.misuse.prefix(3))")
        }
    }
}

/// A loop and the kernel that it turns on.
private struct SimulatedLoop {
    let loop: Loop
    let kernel: FakeKernel

    /// The loop has something to do now.
    var isBusy: Bool { !kernel.isQuiet || loop.hasWork || deadline <= kernel.clock }
    /// `UInt64.max` where no timer is armed.
    var deadline: UInt64 { loop.nextDeadline ?? .max }
}

/// A loop that has something to do.
struct LoopTurn {
    let life: ProcessLife
    let loop: Int
}

/// The platform and what reads secrets are made before their process. All of it runs on the one thread of the simulation.
private final class BornLife: @unchecked Sendable { weak var life: ProcessLife? }
