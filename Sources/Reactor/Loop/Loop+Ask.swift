internal import CLinux
internal import Glibc
internal import Synchronization
internal import World

extension Loop {
    /// Does `work` on the loop's thread and waits for what it gives. For threads that are no loop and may block: a loop that asked another
    /// one could wait for it for ever.
    /// - Returns: nil when the loop's mailbox stays full, or when the loop does not come round, for `milliseconds`. In the second case the
    ///   work is still done some time.
    public func ask<Value: Sendable>(milliseconds: Int32 = 10_000, _ work: @escaping @Sendable () -> Value) -> Value? {
        precondition(!isCurrent, "a loop cannot wait for itself")
        guard let wakeup = Wakeup() else { return nil }
        let answer = PendingAnswer<Value>(wakeup)
        var left = milliseconds
        while !post({ answer.give(work()) }) {
            guard left > 0 else { return nil }
            SystemTime().pause(milliseconds: 1)
            left -= 1
        }
        return answer.wait(milliseconds: max(left, 1))
    }
}

/// A value on its way from one thread to another, with an eventfd to sleep on.
private final class PendingAnswer<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)
    private let wakeup: Wakeup

    init(_ wakeup: Wakeup) { self.wakeup = wakeup }

    func give(_ given: Value) {
        value.withLock { $0 = given }
        wakeup.wake()
    }

    func wait(milliseconds: Int32) -> Value? {
        var watched = pollfd(fd: wakeup.descriptor, events: Int16(POLLIN), revents: 0)
        // A signal cuts the wait short; what it cuts off is waited for again, which the bound of the callers' patience allows.
        while poll(&watched, 1, milliseconds) < 0, errno == EINTR {}
        return value.withLock { $0 }
    }
}
