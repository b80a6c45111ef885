/// A pipe between two sockets: what is spliced into it leaves it without having been in our memory.
public struct PipePair {
    /// The end that bytes come out of.
    public let outlet: Int32
    /// The end that they go into.
    public let inlet: Int32
    /// Bytes that it takes when they lie in full pages.
    public let capacity: Int

    /// Takes over both descriptors.
    public init(outlet: Int32, inlet: Int32, capacity: Int) {
        self.outlet = outlet
        self.inlet = inlet
        self.capacity = capacity
    }
}

/// The pipes of one loop. Bounded: a stream that gets none copies instead.
///
/// A pipe is out only while something is on its way through it, so that idle connections hold none. One that was not drained holds
/// bytes of somebody, and is closed.
public final class PipePool {
    /// Pipes that may be out at once. With the wanted size, four loops stay below the kernel's limit for a user without privileges
    /// (`fs.pipe-user-pages-soft`: 64 MiB); past that limit the kernel gives smaller ones.
    public static let bound = 32
    /// Pipes that are kept for the next body.
    private static let kept = 8
    /// The size that `F_SETPIPE_SZ` asks for; where it is not allowed a pipe keeps the kernel's own size.
    public static let wantedCapacity = 256 * 1024

    /// Pipes that are out.
    public private(set) var taken = 0
    /// The kernel cannot splice between such sockets, or makes no pipes: nobody tries again.
    public private(set) var isRefused = false

    private var waiting: [PipePair] = []
    private let kernel: Kernel

    /// An empty pool of one loop.
    /// - Parameter kernel: makes and closes the pipes.
    public init(kernel: Kernel) {
        self.kernel = kernel
        waiting.reserveCapacity(Self.kept)
    }

    deinit { trim(keeping: 0) }

    /// Pipes that lie ready.
    public var waitingCount: Int { waiting.count }

    /// An empty pipe; nil when all are out, or when there can be none.
    public func take() -> PipePair? {
        guard !isRefused, taken < Self.bound else { return nil }
        if let pipe = waiting.popLast() {
            taken += 1
            return pipe
        }
        // Without a descriptor left there is none now; later there may be.
        guard let pipe = kernel.makePipe(capacity: Self.wantedCapacity) else { return nil }
        taken += 1
        return pipe
    }

    /// - Parameter isEmpty: nothing is left in it.
    public func give(_ pipe: PipePair, isEmpty: Bool) {
        precondition(taken > 0, "a pipe of another pool")
        taken -= 1
        guard isEmpty, waiting.count < Self.kept else { return close(pipe) }
        waiting.append(pipe)
    }

    /// Closes those that lie ready beyond `count`. For quiet moments.
    public func trim(keeping count: Int) {
        while waiting.count > max(count, 0) { close(waiting.removeLast()) }
    }

    /// The kernel said that it cannot do this.
    public func refuse() {
        isRefused = true
        trim(keeping: 0)
    }

    private func close(_ pipe: PipePair) {
        kernel.close(pipe.outlet)
        kernel.close(pipe.inlet)
    }
}
