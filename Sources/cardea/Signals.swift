import Glibc
import Synchronization

/// Signals that the main thread waits for. Blocked before any other thread starts, so that no thread is ever interrupted by them.
struct SignalSet {
    private var set = sigset_t()

    init(_ signals: [Int32]) {
        sigemptyset(&set)
        for signal in signals { sigaddset(&set, signal) }
    }

    func block() {
        var copy = set
        pthread_sigmask(SIG_BLOCK, &copy, nil)
    }

    func wait() -> Int32 {
        var copy = set
        var signal: Int32 = 0
        while sigwait(&copy, &signal) != 0 {}
        return signal
    }

    /// Waits the whole time, unless a signal says again that the end should come. A SIGHUP does not: log rotation sends it too.
    func waitForEnd(milliseconds: Int64) -> Bool {
        var left = milliseconds
        while left > 0 {
            var before = timespec()
            clock_gettime(CLOCK_MONOTONIC, &before)
            guard let signal = wait(milliseconds: left) else { return false }
            if signal != SIGHUP { return true }
            var after = timespec()
            clock_gettime(CLOCK_MONOTONIC, &after)
            left -= Int64(after.tv_sec - before.tv_sec) * 1000 + Int64(after.tv_nsec - before.tv_nsec) / 1_000_000
        }
        return false
    }

    /// - Returns: nil when the time passes without one.
    func wait(milliseconds: Int64) -> Int32? {
        var copy = set
        var time = timespec(tv_sec: Int(milliseconds / 1000), tv_nsec: Int(milliseconds % 1000) * 1_000_000)
        let signal = sigtimedwait(&copy, nil, &time)
        return signal > 0 ? signal : nil
    }
}

/// Set on one thread, waited for on the main one.
final class DoneFlag: Sendable {
    private let flag = Atomic<Bool>(false)

    /// Wakes the waiting main thread by the signal that it waits for anyway.
    func set() {
        flag.store(true, ordering: .releasing)
        kill(getpid(), SIGHUP)
    }

    func wait(milliseconds: Int64, orSignal signals: SignalSet) {
        var left = milliseconds
        while !flag.load(ordering: .acquiring), left > 0 {
            let slice = min(left, 1000)
            if let signal = signals.wait(milliseconds: slice), signal != SIGHUP { return }
            left -= slice
        }
    }
}
