import Glibc
import Synchronization
public import World

/// The one thread that formats and writes: events to standard error, access records to standard output.
///
/// The thread sleeps until a sender wakes it, without a timer. After work it lets lines gather for a moment, so that a busy gateway
/// costs a few dozen wake-ups a second and not one for each request. When a pipe stops taking, its lines stay in their
/// queue, the queue fills, and the senders drop and count; the other pipe goes on.
public final class LogThread: Sendable {
    /// Where other threads leave events.
    public let events: EventLog
    /// Names of routes, fault kinds and identities that access records refer to.
    public let routes: NameTable
    /// See `routes`.
    public let faults: NameTable
    /// See `routes`.
    public let identities: NameTable

    /// The failed requests that are remembered, whether or not an access log is written.
    let failures = FailureMemory()
    /// Since when failures are remembered, in nanoseconds of the wall clock since 1970.
    public let remembersSince: UInt64

    let rings = Mutex<[AccessRing]>([])
    private let ringsChanged = Atomic<Bool>(false)
    private let works = Mutex<[any LogThreadWork]>([])
    private let worksChanged = Atomic<Bool>(false)
    private let stopping = Atomic<Bool>(false)
    private let lost = Atomic<UInt64>(0)
    private let format: LogFormat
    private let eventDescriptor: Int32
    private let accessDescriptor: Int32
    private let journal: JournalStream?
    private let thread = Mutex<WorkerThread?>(nil)

    /// Milliseconds for which lines may gather.
    static let gathering: Int32 = 20
    /// Milliseconds that `stop` gives to a pipe that does not take.
    static let farewell = 1000

    /// Nothing runs before `start`.
    /// - Parameters:
    ///   - eventDescriptor: where events go; standard error.
    ///   - accessDescriptor: where the access log goes; standard output.
    ///   - journal: lines that go there begin with a severity.
    public init(
        events: EventLog, routes: NameTable = NameTable(), faults: NameTable = NameTable(),
        identities: NameTable = NameTable(), format: LogFormat,
        eventDescriptor: Int32 = 2, accessDescriptor: Int32 = 1, journal: JournalStream? = nil
    ) {
        self.events = events
        remembersSince = events.now()
        self.routes = routes
        self.faults = faults
        self.identities = identities
        self.format = format
        self.eventDescriptor = eventDescriptor
        self.accessDescriptor = accessDescriptor
        self.journal = journal
    }

    /// A ring for one loop. It stays until the end of the process.
    /// - Parameter capacity: records that may wait, rounded up to a power of two.
    public func makeRing(capacity: Int = 512) -> AccessRing {
        let ring = AccessRing(capacity: capacity, wake: events.wakePipe)
        rings.withLock { $0.append(ring) }
        ringsChanged.store(true, ordering: .releasing)
        events.wakePipe.wake()
        return ring
    }

    /// Gives the thread further work, until the end of the process.
    package func attach(_ work: any LogThreadWork) {
        works.withLock { $0.append(work) }
        worksChanged.store(true, ordering: .releasing)
        events.wakePipe.wake()
    }

    /// Lines dropped so far: full queues and broken descriptors.
    public var dropped: UInt64 {
        events.dropped &+ lost.load(ordering: .relaxed) &+ rings.withLock { $0.reduce(0) { $0 &+ $1.dropped } }
    }

    /// Starts the thread; called once.
    /// - Throws: `WorkerThreadFault` when the kernel makes no thread.
    public func start() throws(WorkerThreadFault) {
        let worker = try WorkerThread(name: "log") { self.run() }
        thread.withLock { $0 = worker }
    }

    /// Writes what was left before this call, as far as the pipes take it within a second, and ends the thread.
    public func stop() {
        stopping.store(true, ordering: .releasing)
        events.wakePipe.wake()
        let worker = thread.withLock { slot in
            defer { slot = nil }
            return slot
        }
        worker?.join()
    }

    // MARK: - The thread

    private func run() {
        var formatter = LogFormatter(format: format, routes: routes, faults: faults, identities: identities)
        if let journal {
            formatter.eventsHavePriority = journal.isOpen(as: eventDescriptor)
            formatter.recordsHavePriority = journal.isOpen(as: accessDescriptor)
        }
        var pump = LogPump(
            events: events, formatter: formatter,
            eventDescriptor: eventDescriptor, accessDescriptor: accessDescriptor, failures: failures)
        var works: [any LogThreadWork] = []
        while true {
            // Read before the turn: what was sent before `stop` is then seen by this turn.
            let last = stopping.load(ordering: .acquiring)
            if ringsChanged.exchange(false, ordering: .acquiring) { pump.rings = rings.withLock { $0 } }
            if worksChanged.exchange(false, ordering: .acquiring) { works = self.works.withLock { $0 } }
            let worked = pump.turn()
            let now = events.awake()
            let due = works.compactMap { $0.turn(at: now, isLast: last) }.min()
            lost.store(pump.lost, ordering: .relaxed)
            if last { break }
            if worked {
                pump.sleep(milliseconds: Self.gathering)
            } else if pump.arm() {
                // Each of them is told, also behind one that has work.
                let isIdle = works.reduce(true) { $1.arm() && $0 }
                if isIdle { pump.sleep(milliseconds: milliseconds(until: due)) }
                for work in works { work.disarm() }
                pump.disarm()
            }
        }
        pump.finish(milliseconds: Self.farewell)
        lost.store(pump.lost, ordering: .relaxed)
    }

    /// For `poll`: −1 where nothing is due, else at least one.
    private func milliseconds(until due: UInt64?) -> Int32 {
        guard let due else { return -1 }
        let now = events.awake()
        return Int32(clamping: (due &- min(due, now)) / 1_000_000 &+ 1)
    }
}

/// The log thread's work, a turn at a time.
struct LogPump: ~Copyable {
    private let events: EventLog
    var rings: [AccessRing] = []
    private var formatter: LogFormatter
    private var eventSink: LogSink
    private var accessSink: LogSink
    private let failures: FailureMemory
    private var reportedDrops: UInt64 = 0

    /// Records taken from one ring before the next has its turn.
    private static let batch = 128

    init(
        events: EventLog, formatter: LogFormatter, eventDescriptor: Int32, accessDescriptor: Int32,
        failures: FailureMemory = FailureMemory()
    ) {
        self.events = events
        self.failures = failures
        self.formatter = formatter
        eventSink = LogSink(descriptor: eventDescriptor)
        accessSink = LogSink(descriptor: accessDescriptor)
    }

    var lost: UInt64 { eventSink.lost &+ accessSink.lost }

    /// Moves lines from the queues to the descriptors, as far as these take them.
    /// - Returns: whether there was anything to move.
    mutating func turn() -> Bool {
        var worked = false
        while moveEvents() { worked = true }
        while moveRecords() { worked = true }
        reportDrops()
        _ = eventSink.flush()
        _ = accessSink.flush()
        return worked
    }

    private mutating func moveEvents() -> Bool {
        var worked = false
        while eventSink.hasRoom || eventSink.isBroken, let event = events.next() {
            formatter.write(event)
            eventSink.append(formatter.line.bytes)
            worked = true
        }
        // Not full: done. Full and gone out: there may be more.
        return eventSink.hasRoom ? false : eventSink.flush() && worked
    }

    private mutating func moveRecords() -> Bool {
        var worked = false
        for ring in rings {
            for _ in 0..<Self.batch where accessSink.hasRoom || accessSink.isBroken {
                let taken = ring.next { record in
                    failures.note(record)
                    guard record.isLine else { return }
                    formatter.write(copy record)
                    accessSink.append(formatter.line.bytes)
                }
                guard taken else { break }
                worked = true
            }
        }
        return worked && (accessSink.hasRoom || accessSink.flush())
    }

    /// Says so once there is room again; a line for each drop would make matters worse.
    private mutating func reportDrops() {
        let drops = rings.reduce(events.dropped) { $0 &+ $1.dropped }
        guard drops != reportedDrops, eventSink.hasRoom else { return }
        let fields = [LogField("count", .count(Int64(clamping: drops &- reportedDrops)))]
        formatter.write(LogEvent(time: events.now(), level: .warn, message: "log lines dropped", fields: fields))
        eventSink.append(formatter.line.bytes)
        reportedDrops = drops
    }

    // MARK: - Sleeping

    /// Announces sleep to the senders whose lines could be written, then looks once more.
    /// - Returns: false when there is work after all.
    func arm() -> Bool {
        // A sink without room wants no more lines, hence no wake-ups for them: its descriptor wakes us.
        let wantsEvents = eventSink.hasRoom || eventSink.isBroken
        let wantsRecords = accessSink.hasRoom || accessSink.isBroken
        if wantsEvents { events.armWake() }
        if wantsRecords { for ring in rings { ring.armWake() } }
        if wantsEvents && events.hasNext || wantsRecords && rings.contains(where: { $0.hasNext }) {
            disarm()
            return false
        }
        return true
    }

    func disarm() {
        events.disarmWake()
        for ring in rings { ring.disarmWake() }
    }

    /// Until a sender wakes us, a blocked descriptor takes again, or the time is over (−1: none).
    func sleep(milliseconds: Int32) {
        var watched = (
            pollfd(fd: events.wakePipe.readEnd, events: Int16(POLLIN), revents: 0),
            pollfd(fd: eventSink.isEmpty ? -1 : eventSink.descriptor, events: Int16(POLLOUT), revents: 0),
            pollfd(fd: accessSink.isEmpty ? -1 : accessSink.descriptor, events: Int16(POLLOUT), revents: 0)
        )
        withUnsafeMutablePointer(to: &watched) { tuple in
            _ = tuple.withMemoryRebound(to: pollfd.self, capacity: 3) { poll($0, 3, milliseconds) }
        }
        if watched.0.revents != 0 { events.wakePipe.acknowledge() }
    }

    /// Last words: writes on while the descriptors take, for a bounded time.
    mutating func finish(milliseconds: Int) {
        let end = events.awake() + UInt64(milliseconds) * 1_000_000
        while events.awake() < end {
            let worked = turn()
            if eventSink.isEmpty && accessSink.isEmpty {
                if !worked { return }
            } else {
                self.sleep(milliseconds: 10)
            }
        }
    }
}
