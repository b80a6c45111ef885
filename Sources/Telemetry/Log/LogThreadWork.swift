/// Work that the log thread does beside its lines, such as writing a file that has to be on disk. It may take as long as a disk does;
/// events and access records wait in their queues meanwhile.
package protocol LogThreadWork: AnyObject, Sendable {
    /// Does what is due. The log thread alone calls it.
    /// - Parameters:
    ///   - now: nanoseconds in which the machine was awake.
    ///   - isLast: no further call follows; what can be done is done now.
    /// - Returns: when to call again although nobody wakes the thread, as nanoseconds like `now`; nil: there is nothing to do.
    func turn(at now: UInt64, isLast: Bool) -> UInt64?

    /// Announces the thread's sleep to whoever leaves work.
    /// - Returns: false when there is work after all.
    func arm() -> Bool

    /// The thread is awake.
    func disarm()
}

/// Wakes the log thread for one kind of work: for whoever leaves it there, on any thread.
package struct LogWaker: ~Copyable, Sendable {
    private let sleep = SleepFlag()
    private let pipe: WakePipe

    fileprivate init(_ pipe: WakePipe) { self.pipe = pipe }

    /// After the work was left; a system call only where the thread may really sleep.
    package func wake() { if sleep.take() { pipe.wake() } }

    /// The log thread: before its last look for work.
    package func arm() { sleep.arm() }

    /// The log thread: awake again.
    package func disarm() { sleep.disarm() }
}

extension EventLog {
    /// A waker of the thread that writes these events.
    package func makeWaker() -> LogWaker { LogWaker(wakePipe) }
}
