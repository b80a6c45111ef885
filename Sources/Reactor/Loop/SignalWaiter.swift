internal import CLinux
internal import Glibc
internal import Synchronization

/// The main thread's wait while the loops serve, for signals, changed files, a call from another thread, or a moment in time.
///
/// The signals are blocked in the thread that makes it and in all that it starts later, so that no call of any thread is ever
/// interrupted by them. One thread waits; any may `wake` it.
public final class SignalWaiter: Sendable {
    /// The event that ended a wait.
    public enum Event: Sendable, Equatable {
        case signal(Int32)
        /// Somebody called `wake`.
        case woken
        /// A descriptor that is attended to can be read, or its other end is closed.
        case readable
        /// Something in a watched folder changed.
        case changed
        case timePassed
    }

    private let signals: Int32
    private let wakeup: Wakeup
    private let folders: Mutex<Int32>
    private let attended = Mutex<[Int32]>([])

    private static let folderLimit = 64

    /// - Parameter numbers: the signals to wait for; blocked from now on in this thread.
    /// - Throws: `LoopFault` when the kernel gives no descriptor.
    public init(signals numbers: [Int32]) throws(LoopFault) {
        var set = sigset_t()
        sigemptyset(&set)
        for number in numbers { sigaddset(&set, number) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        signals = cardea_signal_descriptor(&set)
        guard signals >= 0 else { throw LoopFault(call: "signalfd", errno: errno) }
        guard let wakeup = Wakeup() else { throw LoopFault(call: "eventfd", errno: errno) }
        self.wakeup = wakeup
        folders = Mutex(-1)
    }

    deinit {
        for descriptor in [signals, folders.withLock { $0 }] where descriptor >= 0 { Glibc.close(descriptor) }
    }

    /// Watches these folders, and no others from now on. Folders and not files: Kubernetes swaps a link beside them, and editors replace
    /// files by renaming.
    /// - Returns: whether all of them are watched.
    @discardableResult
    public func watch(folders paths: [String]) -> Bool {
        folders.withLock { descriptor in
            if descriptor >= 0 { Glibc.close(descriptor) }
            descriptor = paths.isEmpty ? -1 : cardea_inotify()
            guard descriptor >= 0 else { return paths.isEmpty }
            let watched = paths.prefix(Self.folderLimit).filter { cardea_inotify_folder(descriptor, $0) >= 0 }
            return watched.count == paths.count
        }
    }

    /// Waits for this descriptor too, until `leave`. It stays the caller's.
    public func attend(_ descriptor: Int32) { attended.withLock { $0.append(descriptor) } }

    /// The descriptor is no longer waited for.
    public func leave(_ descriptor: Int32) { attended.withLock { $0.removeAll { $0 == descriptor } } }

    /// The waiting thread returns with `.woken`, now or with its next wait.
    public func wake() { wakeup.wake() }

    /// Waits for the first of all this; signals come before calls, calls before descriptors, these before files.
    /// - Parameter deadline: nanoseconds of `CLOCK_BOOTTIME`; nil: none.
    public func wait(until deadline: UInt64? = nil) -> Event {
        while true {
            let others = attended.withLock { $0 }
            var watched = ([signals, wakeup.descriptor, folders.withLock { $0 }] + others).map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            let now = cardea_boottime()
            if let deadline, now >= deadline { return .timePassed }
            let patience = deadline.map { Int32(clamping: ($0 - now + 999_999) / 1_000_000) } ?? -1
            _ = poll(&watched, nfds_t(watched.count), patience)
            if watched[0].revents != 0 {
                let signal = cardea_next_signal(signals)
                if signal != 0 { return .signal(signal) }
            }
            if watched[1].revents != 0, wakeup.acknowledge() { return .woken }
            if watched[3...].contains(where: { $0.revents != 0 }) { return .readable }
            if watched[2].revents != 0 {
                // Looking at the files tells what exactly changed.
                var drain = [UInt8](repeating: 0, count: 4096)
                while Glibc.read(watched[2].fd, &drain, drain.count) > 0 {}
                return .changed
            }
        }
    }

    /// Nanoseconds of `CLOCK_BOOTTIME`.
    public static var now: UInt64 { cardea_boottime() }
}
