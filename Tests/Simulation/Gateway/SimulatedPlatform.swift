import Reactor
import ScriptedKernel
import ScriptedWorld
import Synchronization
import TokenStore
import World

@testable import Gateway

/// What a gateway's process takes from its machine. Nothing runs by itself: `GatewayProcess` turns the loops, and what would block is planned.
final class SimulatedPlatform: @unchecked Sendable {
    /// Of the keeper's loop, then of each data loop.
    private(set) var kernels: [FakeKernel] = []
    private var handedOut = 0
    let clock: MachineClock
    let random: SeededRandom
    private let plan: (UInt64, @escaping () -> Void) -> Void
    private let readingTime: UInt64
    private let names: (String) -> Result<[SocketAddress], ResolveFault>
    private var draw: Draw

    /// - Parameters:
    ///   - readingTime: the most that what may block takes, in nanoseconds.
    ///   - names: what the name service says of a host now.
    ///   - plan: has something done after a delay, as long as the process lives.
    init(
        loops: Int, clock: MachineClock, draw: Draw, readingTime: UInt64,
        names: @escaping (String) -> Result<[SocketAddress], ResolveFault>,
        plan: @escaping (UInt64, @escaping () -> Void) -> Void
    ) {
        self.clock = clock
        self.draw = draw
        random = SeededRandom(seed: self.draw.next())
        self.readingTime = readingTime
        self.names = names
        self.plan = plan
        kernels = (0...loops).map { _ in FakeKernel() }
    }

    func setClocks() {
        let now = clock.sinceBoot()
        let wallOffset = clock.wallMilliseconds() - Int64(now / 1_000_000)
        for kernel in kernels {
            kernel.clock = now
            kernel.wallOffset = wallOffset
        }
    }

    /// - Parameter disk: as this process has it; nil: it has no store.
    func platform(disk: (any StoreDisk)?) -> Platform {
        Platform(
            time: clock, random: random, kernel: { [self] in nextKernel() },
            names: { () throws(LoopFault) in PlannedNames(self) },
            blocking: { () throws(LoopFault) in PlannedWork(self) },
            programs: { () throws(LoopFault) in PlannedWork(self) },
            disk: disk ?? MachineDisk(), storeHasThread: false,
            start: { (_, _) throws(WorkerThreadFault) in })
    }

    private func nextKernel() -> Kernel {
        handedOut += 1
        return kernels[handedOut - 1]
    }

    fileprivate func later(_ most: UInt64, _ body: @escaping @Sendable () -> Void) {
        plan(10_000 + draw.below(most), body)
    }

    fileprivate func laterRead(_ body: @escaping @Sendable () -> Void) { later(readingTime, body) }

    fileprivate func addresses(of host: String) -> Result<[SocketAddress], ResolveFault> { names(host) }
}

/// The name service of the simulation: an answer takes its time.
private struct PlannedNames: NameResolver {
    private let platform: SimulatedPlatform

    init(_ platform: SimulatedPlatform) { self.platform = platform }

    func resolve(host: String, port: UInt16, deliver: @escaping Delivery) {
        if let literal = SocketAddress(host: host, port: port) { return deliver(.success([literal])) }
        platform.later(.milliseconds(5)) { [platform] in
            deliver(
                platform.addresses(of: host).map { addresses in
                    addresses.map { address in
                        var address = address
                        address.port = port
                        return address
                    }
                })
        }
    }
}

/// Work that may block is done a moment later, in order.
private final class PlannedWork: BlockingWork {
    private let platform: SimulatedPlatform
    private let jobs = Mutex<[@Sendable () -> Void]>([])

    init(_ platform: SimulatedPlatform) { self.platform = platform }

    func run(_ job: @escaping @Sendable () -> Void) -> Bool {
        let isTaken = jobs.withLock { jobs in
            guard jobs.count < 256 else { return false }
            jobs.append(job)
            return true
        }
        guard isTaken else { return false }
        platform.laterRead { [self] in
            let job = jobs.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            job?()
        }
        return true
    }
}
