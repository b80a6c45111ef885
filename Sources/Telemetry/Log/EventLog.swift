import Glibc
import Synchronization
public import World

/// Where every thread leaves its events. Sending takes no lock; a full queue drops and counts.
public final class EventLog: Sendable {
    private let queue: BoundedQueue<LogEvent>
    private let threshold: Atomic<UInt8>
    private let droppedEvents = Atomic<UInt64>(0)
    private let sleep = SleepFlag()
    private let wake: WakePipe
    private let time: any TimeSource

    /// - Parameters:
    ///   - capacity: events that may wait.
    ///   - level: events below it are not made.
    ///   - time: whose wall clock events are dated by.
    public convenience init(
        capacity: Int = 1024, level: LogLevel = .info, time: any TimeSource = SystemTime()
    ) throws(LogFault) {
        self.init(capacity: capacity, level: level, time: time, wake: try WakePipe())
    }

    init(capacity: Int, level: LogLevel, time: any TimeSource, wake: WakePipe) {
        queue = BoundedQueue(capacity: capacity)
        threshold = Atomic(level.rawValue)
        self.time = time
        self.wake = wake
    }

    // MARK: - Any thread

    /// The lowest level that is written; a reload may change it.
    public var level: LogLevel {
        get { LogLevel(rawValue: threshold.load(ordering: .relaxed)) ?? .info }
        set { threshold.store(newValue.rawValue, ordering: .relaxed) }
    }

    /// Costs a relaxed load: cheap enough for a data path.
    func isEnabled(_ level: LogLevel) -> Bool { level.rawValue >= threshold.load(ordering: .relaxed) }

    /// Leaves an event. Fields are not made when the level is off.
    public func log(_ level: LogLevel, _ message: StaticString, _ fields: @autoclosure () -> [LogField] = []) {
        guard isEnabled(level) else { return }
        let event = LogEvent(time: now(), level: level, message: message, fields: fields())
        guard queue.send(event) else {
            droppedEvents.wrappingAdd(1, ordering: .relaxed)
            return
        }
        if sleep.take() { wake.wake() }
    }

    /// Leaves an event of level `debug`.
    public func debug(_ message: StaticString, _ fields: @autoclosure () -> [LogField] = []) {
        log(.debug, message, fields())
    }

    /// Leaves an event of level `info`.
    public func info(_ message: StaticString, _ fields: @autoclosure () -> [LogField] = []) {
        log(.info, message, fields())
    }

    /// Leaves an event of level `warn`.
    public func warn(_ message: StaticString, _ fields: @autoclosure () -> [LogField] = []) {
        log(.warn, message, fields())
    }

    /// Leaves an event of level `error`.
    public func error(_ message: StaticString, _ fields: @autoclosure () -> [LogField] = []) {
        log(.error, message, fields())
    }

    /// Events that found the queue full.
    public var dropped: UInt64 { droppedEvents.load(ordering: .relaxed) }

    // MARK: - The log thread only

    var wakePipe: WakePipe { wake }
    var hasNext: Bool { queue.hasNext }
    func next() -> LogEvent? { queue.receive() }
    func now() -> UInt64 { UInt64(max(time.wallNanoseconds(), 0)) }

    /// Nanoseconds in which the machine was awake: for waits of the log thread.
    func awake() -> UInt64 { time.awake() }
    func armWake() { sleep.arm() }
    func disarmWake() { sleep.disarm() }
}
