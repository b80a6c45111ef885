internal import CLinux
internal import Glibc
internal import Synchronization

/// A thread with an epoll descriptor and a timer wheel. Everything that is registered here is touched by this thread alone.
///
/// A turn: wait; note the time; announce the turn (the hot cache's quiescent state); readiness, then mail, then timers, then
/// what was put off to the end of the turn. Mail stands after readiness so that an answer that arrived together with a
/// token finds the connection in its newest state.
public final class Loop: @unchecked Sendable {
    /// The thread's name, as `ps -L` shows it.
    public let name: String
    /// Every system call of the loop goes through it.
    public let kernel: Kernel
    /// Time at the start of this turn, nanoseconds of `CLOCK_BOOTTIME`. Good enough for timeouts; grants read the clock anew.
    public private(set) var now: UInt64
    /// Called after every wait, before anything else.
    public var turnBegan: () -> Void = {}
    /// Called before every wait that may block, and only then.
    public var willBlock: () -> Void = {}

    private let epoll: Int32
    // By hand, as in `TimerWheel`.
    private var watched = UnsafeMutableBufferPointer<Entry>.allocate(capacity: 64)
    /// Entries that have been used; the others are not initialized.
    private var entryCount = 0
    /// The count of owners that have a descriptor or a timer of this loop, or may arm one.
    var owners: Int { watched[..<entryCount].count { $0.owner != nil } }
    private var firstFree = Loop.noEntry
    private let timers: TimerWheel
    private var putOff: [LateWork] = []
    /// The work that was put off to the end of the turn that ends now.
    private var due: [LateWork] = []
    private let mail: Mailbox<Letter>
    let jobs: JobQueue
    private var running = false
    private let thread = Atomic<UInt>(0)

    private struct Entry {
        var generation: UInt32 = 1
        /// The next entry without an owner, where this one has none.
        var nextFree = Loop.noEntry
        var owner: Watched?
    }

    private static let noEntry = UInt32.max

    /// In the order in which it was put off, whichever of the two it is.
    private enum LateWork {
        case run(() -> Void)
        case call(Watched)
    }

    /// A letter of the mailbox. Mail is for what is not a cache hit; a closure may therefore be allocated by its sender.
    public struct Letter: Sendable {
        let open: @Sendable () -> Void
    }

    private static let mailKey = UInt64.max
    private static let jobKey = UInt64.max - 1
    private static let batch = 256
    private static let inputAlone: Readiness = [.readable, .inputEnded, .edgeTriggered]
    private static let bothWays: Readiness = inputAlone.union(.writable)

    /// - Parameter mailCapacity: letters that may wait; `post` answers false past it.
    public init(name: String, kernel: Kernel = Kernel(), mailCapacity: Int = 4096) throws(LoopFault) {
        self.name = name
        self.kernel = kernel
        now = kernel.now()
        timers = TimerWheel(now: kernel.now())
        epoll = kernel.makeEpoll()
        guard epoll >= 0 else { throw LoopFault(call: "epoll_create1", errno: -epoll) }
        guard let mail = Mailbox<Letter>(capacity: mailCapacity) else { throw LoopFault(call: "eventfd", errno: errno) }
        self.mail = mail
        guard let wakeup = Wakeup() else { throw LoopFault(call: "eventfd", errno: errno) }
        jobs = JobQueue(wakeup)
        let events = Readiness.readable.union(.edgeTriggered).rawValue
        _ = kernel.watch(epoll, mail.descriptor, events: events, key: Self.mailKey)
        _ = kernel.watch(epoll, wakeup.descriptor, events: events, key: Self.jobKey)
    }

    deinit {
        watched[..<entryCount].deinitialize()
        watched.deallocate()
        kernel.close(epoll)
    }

    /// Whether the caller stands on this loop's thread.
    var isCurrent: Bool { thread.load(ordering: .relaxed) == UInt(pthread_self()) }

    // MARK: - From any thread

    /// Leaves a letter that this loop opens in its next turn.
    /// - Returns: false when the mailbox is full; the letter was not taken.
    public func post(_ open: @escaping @Sendable () -> Void) -> Bool {
        mail.send(Letter(open: open))
    }

    func enqueue(_ job: UnownedJob, for executor: LoopExecutor) {
        jobs.append(job, for: executor, fromLoop: isCurrent)
    }

    // MARK: - From this loop's thread

    /// Hands a descriptor to the loop, edge-triggered. The loop keeps `owner` alive until `close`.
    /// - Parameter output: false for a socket that can be written to already, until `hearOutput`: most never fill it up, and would be told
    ///   for nothing in the next turn that they can write.
    public func watch(_ owner: Watched, descriptor: Int32, shared: Bool = false, output: Bool = true) -> Bool {
        let wasAdopted = owner.key != 0
        if !wasAdopted { adopt(owner) }
        owner.descriptor = descriptor
        // A listener that several loops share wakes one of them and stays level-triggered, so that no connection is left
        // behind when its loop takes only a batch. (The kernel refuses EPOLLEXCLUSIVE together with EPOLLRDHUP.)
        let events: Readiness = shared ? [.readable, .exclusive] : output ? Self.bothWays : Self.inputAlone
        owner.hearsOutput = output && !shared
        guard kernel.watch(epoll, descriptor, events: events.rawValue, key: owner.key) >= 0 else {
            // An owner that had its entry before keeps it, and the timers that point there.
            if wasAdopted { owner.descriptor = -1 } else { release(owner) }
            return false
        }
        return true
    }

    /// Reports from now on when output is possible, beginning with whether it is. A system call the first time only.
    public func hearOutput(of owner: Watched) {
        guard !owner.hearsOutput, owner.descriptor >= 0 else { return }
        owner.hearsOutput = true
        kernel.rewatch(epoll, owner.descriptor, events: Self.bothWays.rawValue, key: owner.key)
    }

    /// Hears no more of the descriptor until `resume`.
    public func pause(_ owner: Watched) {
        if owner.descriptor >= 0 { kernel.unwatch(epoll, owner.descriptor) }
    }

    /// Reports events again that `pause` has stopped.
    /// - Parameter shared: as for `watch`.
    public func resume(_ owner: Watched, shared: Bool) {
        if owner.descriptor >= 0 { _ = watch(owner, descriptor: owner.descriptor, shared: shared) }
    }

    /// Closes the descriptor and keeps the owner, with its timers, for another one. Epoll reports a descriptor once a turn, so no event of
    /// the old one is still queued.
    public func closeDescriptor(of owner: Watched) {
        if owner.descriptor >= 0 { kernel.close(owner.descriptor) }
        owner.descriptor = -1
    }

    /// Gives a descriptor to another owner and forgets the first. What is true of the descriptor now is reported to the new one.
    /// - Returns: false when the kernel refuses; the descriptor is closed then.
    public func handOver(_ from: Watched, to: Watched) -> Bool {
        let descriptor = from.descriptor
        kernel.unwatch(epoll, descriptor)
        release(from)
        if watch(to, descriptor: descriptor) { return true }
        kernel.close(descriptor)
        return false
    }

    /// Gives an owner an entry before it has a descriptor, so that timers can find it.
    public func adopt(_ owner: Watched) {
        let index: Int
        if firstFree != Self.noEntry {
            index = Int(firstFree)
            firstFree = watched[index].nextFree
        } else {
            index = entryCount
            if entryCount == watched.count { growEntries() }
            watched.initializeElement(at: index, to: Entry())
            entryCount += 1
        }
        owner.key = UInt64(watched[index].generation) << 32 | UInt64(index)
        watched[index].owner = owner
    }

    private func growEntries() {
        let grown = UnsafeMutableBufferPointer<Entry>.allocate(capacity: 2 * watched.count)
        _ = grown.moveInitialize(fromContentsOf: watched[..<entryCount])
        watched.deallocate()
        watched = grown
    }

    /// Closes the descriptor and forgets its owner. Events of this turn that are still queued for it find a newer generation
    /// and go nowhere.
    public func close(_ owner: Watched) {
        if owner.descriptor >= 0 { kernel.close(owner.descriptor) }
        release(owner)
    }

    /// Gives `heir` the entry of `owner`: same descriptor, same events, no system call. `owner` is forgotten and nothing is closed.
    /// Timers point at the entry and would fire for the heir, so the owner disarms its own first. `heir` has no entry yet.
    public func replace(_ owner: Watched, by heir: Watched) {
        precondition(heir.key == 0 && owner.key != 0, "an entry is handed from one that has it to one that has none")
        heir.key = owner.key
        heir.descriptor = owner.descriptor
        heir.hearsOutput = owner.hearsOutput
        watched[Int(owner.key & 0xffff_ffff)].owner = heir
        owner.key = 0
        owner.descriptor = -1
    }

    private func release(_ owner: Watched) {
        owner.descriptor = -1
        owner.hearsOutput = false
        guard owner.key != 0 else { return }
        let index = Int(owner.key & 0xffff_ffff)
        owner.key = 0
        watched[index].owner = nil
        watched[index].generation &+= 1
        if watched[index].generation == 0 { watched[index].generation = 1 }
        watched[index].nextFree = firstFree
        firstFree = UInt32(index)
    }

    /// Calls `owner.timerFired(kind)` at or shortly after `deadline`.
    public func arm(_ owner: Watched, at deadline: UInt64, kind: UInt8) -> TimerID? {
        guard owner.key != 0 else { return nil }
        let generation = owner.key >> 32 & 0xff_ffff
        let payload = owner.key & 0xffff_ffff | generation << 32 | UInt64(kind) << 56
        return timers.arm(at: deadline, payload: payload)
    }

    /// A stale timer is ignored.
    public func disarm(_ timer: TimerID) {
        _ = timers.cancel(timer)
    }

    /// Runs `work` at the end of this turn.
    public func putOffToEndOfTurn(_ work: @escaping () -> Void) {
        putOff.append(.run(work))
    }

    /// Calls `owner.turnEnds()` at the end of this turn. Allocates nothing, unlike a closure: for what is part of every exchange. The loop
    /// keeps `owner` alive until then.
    public func callAtEndOfTurn(_ owner: Watched) {
        putOff.append(.call(owner))
    }

    // MARK: - The turn

    /// Serves until `stop`. The calling thread becomes the loop's thread.
    public func run() {
        thread.store(UInt(pthread_self()), ordering: .relaxed)
        running = true
        let events = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: Self.batch)
        defer { events.deallocate() }
        while running { turn(events, mayBlock: true) }
    }

    /// Runs a turn without blocking: for tests that drive a loop by hand.
    public func turnOnce() {
        thread.store(UInt(pthread_self()), ordering: .relaxed)
        let events = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: Self.batch)
        defer { events.deallocate() }
        turn(events, mayBlock: false)
    }

    /// Whether a turn would find letters, jobs or work that was put off: for whoever drives loops by hand. Readiness is the kernel's to tell.
    var hasWork: Bool { mail.hasLetters || jobs.hasAny || !putOff.isEmpty }

    /// When the next timer is due, nanoseconds; nil while none is armed.
    var nextDeadline: UInt64? { timers.nextDeadline(now: now) }

    /// Ends `run` after the current turn. On the loop's thread only; others post it.
    public func stop() { running = false }

    private func turn(_ events: UnsafeMutableBufferPointer<epoll_event>, mayBlock: Bool) {
        let patience = mayBlock ? milliseconds(until: timers.nextDeadline(now: now)) : 0
        if patience != 0 { willBlock() }
        let count = kernel.wait(epoll, into: events, milliseconds: patience)
        now = kernel.now()
        turnBegan()
        for position in 0..<max(0, count) {
            let event = events.baseAddress! + position
            let key = cardea_epoll_key(event)
            switch key {
            case Self.mailKey: mail.acknowledge()
            case Self.jobKey: jobs.wakeup.acknowledge()
            default:
                let index = Int(key & 0xffff_ffff)
                guard index < entryCount, watched[index].generation == UInt32(truncatingIfNeeded: key >> 32),
                    let owner = watched[index].owner
                else { continue }
                owner.ready(Readiness(rawValue: cardea_epoll_events(event)))
            }
        }
        mail.drain { $0.open() }
        jobs.run()
        timers.expire(now: now) { payload in
            let index = Int(payload & 0xffff_ffff)
            guard index < entryCount, let owner = watched[index].owner,
                UInt64(watched[index].generation) & 0xff_ffff == payload >> 32 & 0xff_ffff
            else { return }
            owner.timerFired(UInt8(truncatingIfNeeded: payload >> 56))
        }
        jobs.run()
        if !putOff.isEmpty {
            // Exchanged, so that neither array gives its memory up: a copy would cost an allocation a turn.
            swap(&putOff, &due)
            for work in due {
                switch work {
                case .run(let work): work()
                case .call(let owner): owner.turnEnds()
                }
            }
            due.removeAll(keepingCapacity: true)
        }
    }

    private func milliseconds(until deadline: UInt64?) -> Int32 {
        if jobs.hasLocal || !putOff.isEmpty { return 0 }
        guard let deadline else { return -1 }
        let current = kernel.now()
        guard deadline > current else { return 0 }
        return Int32(clamping: (deadline - current + 999_999) / 1_000_000)
    }
}

/// Why a loop could not be made: the call that failed and its `errno`.
public struct LoopFault: Error, Sendable, CustomStringConvertible {
    /// The name of the system call.
    let call: String
    /// The error number that it left.
    public let errno: Int32
    /// The call and the system's text for the error.
    public var description: String { "\(call): \(String(cString: strerror(errno)))" }
}
