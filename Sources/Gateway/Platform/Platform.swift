internal import Reactor
internal import TLS
internal import TokenStore
internal import World

/// The services that a gateway takes from the machine that it runs on: clocks, randomness, the kernel of each loop, names, and threads.
/// Everything below gets them handed from here, so that another platform is another machine.
public struct Platform: Sendable {
    let time: any TimeSource
    let random: any RandomSource
    /// Makes a kernel; each loop has its own.
    let kernel: @Sendable () -> Kernel
    let names: @Sendable () throws(LoopFault) -> any NameResolver
    let blocking: @Sendable () throws(LoopFault) -> any BlockingWork
    /// Runs the programs that bring credentials.
    let programs: @Sendable () throws(LoopFault) -> any BlockingWork
    /// Where the store's files are.
    var disk: any StoreDisk = MachineDisk()
    /// The store has a thread; else whoever made the platform turns it.
    var storeHasThread = true
    /// Starts a thread that nobody waits for.
    let start: @Sendable (_ name: String, _ body: @escaping @Sendable () -> Void) throws(WorkerThreadFault) -> Void

    /// The machine itself.
    public static let machine = Platform(
        time: SystemTime(), random: SystemRandom(), kernel: { Kernel() },
        names: { () throws(LoopFault) in try Resolver() }, blocking: { () throws(LoopFault) in try BlockingThread() },
        programs: { () throws(LoopFault) in BlockingThreads(name: "program") },
        start: { (name, body) throws(WorkerThreadFault) in _ = try WorkerThread(name: name, body) })
}
