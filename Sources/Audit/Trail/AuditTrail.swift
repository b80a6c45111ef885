internal import Synchronization
public import Telemetry
package import World

/// Where every thread leaves records, and the log thread takes them to disk in groups. Leaving one takes no lock; a full queue drops and
/// counts.
///
/// The first record after a pause is written at once. Those that come while a group is on its way, and for a fifth of a second after it,
/// become the next group: a busy gateway syncs five times a second.
public final class AuditTrail: LogThreadWork {
    private let queue: BoundedQueue<AuditRecord>
    /// From all data loops: a ring that takes without a lock or an allocation.
    private let uses = BoundedQueue<UseRecord>(capacity: AuditTrail.useCapacity)
    /// Names of what uses refer to.
    package let places = UsePlaces()
    private let routes: NameTable
    private let files: AuditFiles
    private let events: EventLog
    private let time: any TimeSource
    private let waker: LogWaker
    private let subjectKey: SubjectKey?
    private let lost = Atomic<UInt64>(0)
    private let failing = Atomic<Bool>(false)
    private let written: Mutex<ChainHead>
    /// Touched by the log thread alone.
    private let pump: Mutex<AuditPump>

    /// Records that may wait.
    static let capacity = 8192
    /// Uses that may wait.
    static let useCapacity = 16_384

    /// - Parameters:
    ///   - files: have a key.
    ///   - subjectKey: nil: records name no user.
    ///   - routes: the log's names of routes.
    ///   - opening: further fields of the first record: which program it is.
    /// - Throws: when there is no key, or it cannot be used.
    package init(
        _ files: AuditFiles, subjectKey: SubjectKey?, events: EventLog, time: any TimeSource,
        routes: NameTable = NameTable(), opening: [AuditField]
    ) throws(AuditFault) {
        self.files = files
        self.events = events
        self.time = time
        self.subjectKey = subjectKey
        self.routes = routes
        queue = BoundedQueue(capacity: Self.capacity)
        waker = events.makeWaker()
        written = Mutex(try files.head())
        pump = Mutex(AuditPump(opening: AuditRecord(time: Self.wall(time), act: .start, fields: opening)))
    }

    // MARK: - Any thread

    /// Leaves a record.
    package func note(_ act: AuditAct, _ fields: [AuditField]) {
        guard queue.send(AuditRecord(time: Self.wall(time), act: act, fields: fields)) else {
            lost.wrappingAdd(1, ordering: .relaxed)
            return
        }
        waker.wake()
    }

    /// Leaves a use. For data loops: neither locks nor allocates.
    /// - Returns: false where there is no place; nothing was counted.
    package func leave(_ use: UseRecord) -> Bool {
        guard uses.send(use) else { return false }
        waker.wake()
        return true
    }

    /// So many uses found no place.
    package func drop(_ count: UInt64) { lost.wrappingAdd(count, ordering: .relaxed) }

    /// A user as records name him; nil without `audit.subject_key`.
    package func tag(of subject: some Sequence<UInt8>) -> SubjectTag? { subjectKey?.tag(of: subject) }

    /// The end of the chain on disk.
    package var head: ChainHead { written.withLock { $0 } }

    /// Records that found no place.
    package var dropped: UInt64 { lost.load(ordering: .relaxed) }

    /// The last group could not be written, or another process has not let it be for seconds; it is tried again.
    package var isFailing: Bool { failing.load(ordering: .relaxed) }

    // MARK: - The log thread

    package func arm() -> Bool {
        // The next turn has its time, and takes all that comes until then.
        if pump.withLock({ $0.isWaiting }) { return true }
        waker.arm()
        return !queue.hasNext && !uses.hasNext
    }

    package func disarm() { waker.disarm() }

    package func turn(at now: UInt64, isLast: Bool) -> UInt64? {
        pump.withLock { pump in
            if isLast { return finish(&pump, at: now) }
            guard now >= pump.notBefore else { return pump.notBefore }
            take(&pump)
            guard pump.hasWork else {
                pump.notBefore = 0
                return nil
            }
            write(&pump, at: now)
            return pump.notBefore
        }
    }

    private func take(_ pump: inout AuditPump) {
        while !pump.isFull, let record = queue.receive() { pump.pending.append(record) }
        while !pump.isFull, let use = uses.receive() { pump.pending.append(record(of: use)) }
        pump.dropped = dropped
    }

    /// Writes everything that was left, and that this is the end. Another process is waited for; a disk is not, and what it does not take
    /// is told to the gateway's own log, for no later record can.
    private func finish(_ pump: inout AuditPump, at now: UInt64) -> UInt64? {
        var patience = 50
        var isOver = false
        while patience > 0 {
            take(&pump)
            if !pump.isFull, !isOver {
                isOver = true
                pump.pending.append(AuditRecord(time: Self.wall(time), act: .stop))
            }
            guard pump.hasWork else {
                tell(head)
                return nil
            }
            if write(&pump, at: now) { continue }
            guard !failing.load(ordering: .relaxed) else { break }
            patience -= 1
            time.pause(milliseconds: 10)
        }
        tellLost(pump)
        return nil
    }

    /// Says how much a log that could not be written to the end lacks.
    private func tellLost(_ pump: AuditPump) {
        var count = UInt64(pump.pending.count) &+ pump.untold &+ (pump.opening == nil ? 0 : 1)
        while queue.receive() != nil { count &+= 1 }
        while let use = uses.receive() { count &+= UInt64(use.count) }
        events.error("audit records lost", [LogField("count", .count(Int64(clamping: count)))])
    }

    private func record(of use: UseRecord) -> AuditRecord {
        let (identity, origin) = places.pair(use.place)
        var caller = LogLine()
        caller.append(host: use.caller)
        var fields = [
            AuditField(.caller, .name(String(decoding: caller.bytes, as: UTF8.self))),
            AuditField(.identity, .name(identity)), AuditField(.origin, .name(origin)),
        ]
        if use.generation > 0 { fields.append(AuditField(.generation, .count(use.generation))) }
        guard use.route == 0 else {
            fields.append(AuditField(.route, .name(routes.name(of: use.route))))
            return AuditRecord(time: use.time, act: .use, fields: fields)
        }
        fields += [AuditField(.minute, .time(use.time)), AuditField(.count, .count(UInt64(use.count)))]
        return AuditRecord(time: Self.wall(time), act: .uses, fields: fields)
    }

    /// Nanoseconds since 1970.
    private static func wall(_ time: any TimeSource) -> UInt64 { UInt64(max(time.wallNanoseconds(), 0)) }

    /// - Returns: whether the group is on disk.
    @discardableResult
    private func write(_ pump: inout AuditPump, at now: UInt64) -> Bool {
        do throws(AuditFault) {
            let records = pump.records
            let turn = try files.append { records($0, Self.wall(time)) }
            pump.wrote(at: now)
            written.withLock { $0 = turn.head }
            if failing.exchange(false, ordering: .relaxed) { events.info("audit log works again") }
            if pump.tellsHead(at: now) { tell(turn.head) }
            if turn.healed > 0 || turn.cut > 0 {
                events.warn(
                    "audit log was healed",
                    [
                        LogField("records", .count(Int64(clamping: turn.healed))),
                        LogField("cut_octets", .count(Int64(clamping: turn.cut))),
                    ])
            }
            return true
        } catch {
            pump.failed(at: now, isBusy: error.kind == .busy)
            // Processes take turns. One that keeps the log for itself is a failure like any other.
            guard error.kind != .busy || pump.isStuck(at: now), !failing.exchange(true, ordering: .relaxed) else {
                return false
            }
            events.error("audit log cannot be written", [LogField("reason", .name(error.description))])
            return false
        }
    }

    /// For whoever keeps the log elsewhere: a head by which a cut end is found.
    private func tell(_ head: ChainHead) { events.info("audit head", [LogField("head", .name("\(head)"))]) }
}

/// What the log thread has taken and not written yet.
struct AuditPump {
    /// The first record of this process, until it is written.
    var opening: AuditRecord?
    var pending: [AuditRecord] = []
    /// Nanoseconds like the clock of waits.
    var notBefore: UInt64 = 0
    /// Records dropped so far, and how many of them a record has told.
    var dropped: UInt64 = 0
    private var told: UInt64 = 0
    private var headToldAt: UInt64?
    /// Records that were written since the last pause in which they gathered, and when it began.
    private var gathered: UInt64 = 0
    private var gatheredSince: UInt64 = 0
    /// Since when another process has stood in the way of every try.
    private var busySince: UInt64?

    /// Nanoseconds for which records gather after a group.
    static let gathering: UInt64 = 200_000_000
    /// Uses that may gather in one pause: a quarter of those that may wait.
    static let comfortable = UInt64(AuditTrail.useCapacity / 4)
    /// Nanoseconds until a group that the disk refused is tried again.
    static let pause: UInt64 = 1_000_000_000
    /// Nanoseconds between two heads in the log.
    static let telling: UInt64 = 3_600_000_000_000
    /// Nanoseconds until one that another process stood in the way of is.
    static let turn: UInt64 = 20_000_000
    /// Nanoseconds for which a group of another process may take.
    static let longestTurn: UInt64 = 5_000_000_000
    /// Records of one group. Few have more than half a kilobyte; all of the longest would still fit into `AuditFiles.largestGroup`.
    static let largest = 1000

    init(opening: AuditRecord) { self.opening = opening }

    var isFull: Bool { pending.count >= Self.largest }
    var hasWork: Bool { opening != nil || !pending.isEmpty || dropped != told }
    /// Records that were dropped and that no record has told.
    var untold: UInt64 { dropped &- told }
    /// Whether the next turn has its time already.
    var isWaiting: Bool { notBefore > 0 }

    /// The records of the next group, once it is known what was healed.
    var records: (AuditFiles.Turn, UInt64) -> [AuditRecord] {
        let (opening, pending, left) = (opening, pending, untold)
        return { turn, now in
            var records: [AuditRecord] = []
            if var opening {
                if turn.cut > 0 { opening.fields.append(AuditField(.cutOctets, .count(turn.cut))) }
                records.append(opening)
            }
            if left > 0 {
                records.append(AuditRecord(time: now, act: .dropped, fields: [AuditField(.count, .count(left))]))
            }
            return records + pending
        }
    }

    mutating func wrote(at now: UInt64) {
        // A full group says that more wait.
        let isMore = isFull
        gathered += UInt64(pending.count)
        opening = nil
        busySince = nil
        pending.removeAll(keepingCapacity: true)
        told = dropped
        notBefore = isMore ? now : now &+ pauseOfGathering(at: now)
    }

    /// Nanoseconds for which records gather now: fewer where they come so fast that the ring of uses would be full before.
    private mutating func pauseOfGathering(at now: UInt64) -> UInt64 {
        let span = max(min(now &- min(gatheredSince, now), Self.pause), 1_000_000)
        let pause = min(Self.gathering, span * Self.comfortable / max(gathered, 1))
        (gathered, gatheredSince) = (0, now)
        return pause
    }

    /// Whether the log is to have the head: with the first group, and once an hour while there are groups.
    mutating func tellsHead(at now: UInt64) -> Bool {
        if let headToldAt, now < headToldAt &+ Self.telling { return false }
        headToldAt = now
        return true
    }

    mutating func failed(at now: UInt64, isBusy: Bool) {
        notBefore = now &+ (isBusy ? Self.turn : Self.pause)
        busySince = isBusy ? busySince ?? now : nil
    }

    /// Whether another process has stood in the way for longer than a group takes.
    func isStuck(at now: UInt64) -> Bool {
        guard let busySince else { return false }
        return now >= busySince &+ Self.longestTurn
    }
}
