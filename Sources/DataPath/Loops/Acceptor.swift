internal import CLinux
internal import Glibc
internal import Reactor

/// A listening socket in one loop. TCP listeners are bound once for each loop with `SO_REUSEPORT`, so that the kernel spreads the
/// callers and no connection is handed from thread to thread; a socket that all loops share, such as a unix socket, is watched by each
/// through its own descriptor.
final class Acceptor: Watched {
    var plan: ListenerPlan
    private unowned let data: DataLoop
    /// Other loops accept from the same socket.
    let isShared: Bool
    private var isPaused = false

    init(plan: ListenerPlan, data: DataLoop, isShared: Bool) {
        self.plan = plan
        self.isShared = isShared
        self.data = data
        super.init(loop: data.loop)
    }

    func start(_ descriptor: Int32) -> Bool { loop.watch(self, descriptor: descriptor, shared: isShared) }

    override func ready(_ readiness: Readiness) { acceptBatch() }

    override func timerFired(_ kind: UInt8) {
        isPaused = false
        if isShared { loop.resume(self, shared: true) }
        acceptBatch()
    }

    /// Closes the socket. Whoever is in its queue is connected already, as far as they know: they are taken first, bounded by the queue.
    /// - Parameter leavesQueue: another process has the same socket, and takes them.
    func close(leavesQueue: Bool = false) {
        if !leavesQueue {
            for _ in 0..<Self.backlog / 256 { guard acceptBatch() else { break } }
        }
        // By name: epoll forgets a socket when the last process closes it, and we may not be the last.
        loop.pause(self)
        loop.close(self)
    }

    /// - Returns: whether more may be waiting.
    @discardableResult
    private func acceptBatch() -> Bool {
        guard !isPaused else { return false }
        var address = sockaddr_storage()
        var length: socklen_t = 0
        // Read once: each reading of what is not owned counts.
        let data = data
        let plan = plan
        // Bounded, so that a flood of new callers cannot starve those who are connected.
        for number in 0..<256 {
            // Asked first: an `accept` that finds nobody makes a socket and a file all the same, and costs ten times as much.
            if number > 0, !loop.kernel.hasInput(descriptor) { return false }
            let accepted = loop.kernel.accept(descriptor, from: &address, length: &length)
            if accepted >= 0 {
                data.admit(accepted, from: SocketAddress(storage: address, length: length), listener: plan)
                continue
            }
            switch -accepted {
            case EAGAIN: return false
            case EINTR, ECONNABORTED, EPROTO: continue
            default:
                // Out of descriptors or memory: the queue stays with the kernel, and we look again in a moment. Edge-triggered epoll would
                // not tell us of what is already queued.
                data.noteGlitch(.acceptFailed)
                // Without a timer to come back by, the next caller's arrival has to do.
                isPaused = loop.arm(self, at: loop.now + 100_000_000, kind: 0) != nil
                // The shared listener is level-triggered: left watched, it would wake us without end.
                if isPaused, isShared { loop.pause(self) }
                return false
            }
        }
        loop.putOffToEndOfTurn { [weak self] in
            guard let self, self.descriptor >= 0 else { return }
            self.acceptBatch()
        }
        return true
    }

    static let backlog = 4096
}
