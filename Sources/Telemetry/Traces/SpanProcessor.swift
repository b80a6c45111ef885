import Synchronization
public import World

/// Takes what loops tell of traced exchanges, makes spans of it and puts them into batches for an exporter: the batch span processor of
/// OpenTelemetry, run by the log thread.
///
/// Bounded everywhere: a ring that is full drops and counts, and so does an exporter that does not keep up.
public final class SpanProcessor: LogThreadWork {
    /// What has become of spans.
    public let counts: SpanCounts

    private let rings = Mutex<[TraceRing]>([])
    private let ringsChanged = Atomic<Bool>(false)
    private let log: LogThread
    private var wake: WakePipe { log.events.wakePipe }
    private let time: any TimeSource
    private let deliver: @Sendable (SpanExport) -> Bool
    private let isFlushing = Atomic<Bool>(false)
    private let told = BoundedQueue<SpanRecord>(capacity: SpanProcessor.queueCapacity)
    // The log thread's alone.
    private let state: Mutex<State>

    private struct State: ~Copyable {
        var rings: [TraceRing] = []
        var batch: SpanBatch
        /// When the batch has to go, like the thread's own time.
        var due: UInt64?
        var reportedDrops: UInt64 = 0
    }

    /// Nanoseconds that spans wait for others at most.
    static let patience: UInt64 = 1_000_000_000
    /// Exchanges of one loop that may wait for the log thread.
    static let ringCapacity = 1024
    /// Spans of other threads that may wait for it.
    static let queueCapacity = 256

    /// - Parameters:
    ///   - log: the thread that is to run it, whose names records refer to.
    ///   - time: the same clocks as those of the loops.
    ///   - counts: shared with the exporter.
    ///   - deliver: hands a batch to its exporter, on the log thread; false: there was no room, and its spans are dropped and counted.
    public init(
        resource: SpanResource, log: LogThread, time: any TimeSource, counts: SpanCounts = SpanCounts(),
        deliver: @escaping @Sendable (SpanExport) -> Bool
    ) {
        self.log = log
        self.counts = counts
        self.time = time
        self.deliver = deliver
        state = Mutex(
            State(
                batch: SpanBatch(
                    resource: resource, routes: log.routes, identities: log.identities, faults: log.faults)))
    }

    // MARK: - Other threads

    /// A ring for each of so many loops, the same at each call. The first call gives the log thread this work.
    public func rings(_ count: Int) -> [TraceRing] {
        let (all, isFirst) = rings.withLock { rings in
            let isFirst = rings.isEmpty
            while rings.count < count { rings.append(TraceRing(capacity: Self.ringCapacity, wake: wake)) }
            return (rings, isFirst)
        }
        ringsChanged.store(true, ordering: .releasing)
        if isFirst { log.attach(self) }
        return all
    }

    /// Leaves a span that is no exchange's, on any thread. Its times are nanoseconds since the machine's start.
    public func tell(_ span: SpanRecord) {
        // Not worth a wake: the exchange that waited for it comes at once, and wakes.
        if !told.send(span) { counts.add(1, to: .dropped) }
    }

    /// The number of a kind of failure, for `SpanRecord.fault`.
    public func number(ofFault word: String) -> UInt16 { log.faults.intern(word) }

    /// The number of an identity's name.
    public func number(ofIdentity name: String) -> UInt16 { log.identities.intern(name) }

    /// Some loop may have left something.
    public var isUsed: Bool { rings.withLock { !$0.isEmpty } }

    /// Everything was delivered that came before the last `flush`.
    public var isEmpty: Bool { !isFlushing.load(ordering: .acquiring) && state.withLock { $0.due == nil } }

    /// Delivers what has come until now without waiting for more, soon.
    public func flush() {
        isFlushing.store(true, ordering: .releasing)
        wake.wake()
    }

    // MARK: - The log thread

    /// See `LogThreadWork`.
    package func turn(at now: UInt64, isLast: Bool) -> UInt64? {
        state.withLock { state in
            // Within the lock: whoever finds it taken back finds what it was for done, too.
            let isFlushing = self.isFlushing.exchange(false, ordering: .acquiring)
            if ringsChanged.exchange(false, ordering: .acquiring) { state.rings = rings.withLock { $0 } }
            take(into: &state, at: now)
            if let due = state.due, isFlushing || isLast || now >= due { send(&state) }
            let drops = state.rings.reduce(0) { $0 &+ $1.dropped }
            counts.add(drops &- state.reportedDrops, to: .dropped)
            state.reportedDrops = drops
            return state.due
        }
    }

    private func take(into state: inout State, at now: UInt64) {
        // Once a turn: by it all spans of a trace stand where the wall clock is now.
        let origin = UInt64(max(time.wallNanoseconds(), 0)) &- time.sinceBoot()
        for _ in 0..<Self.queueCapacity {
            guard var span = told.receive() else { break }
            span.start &+= origin
            span.end &+= origin
            add(span, to: &state, at: now)
        }
        for ring in state.rings {
            // What comes meanwhile is the next turn's, so that lines of the log are not held up.
            for _ in 0..<Self.ringCapacity {
                let taken = ring.next { record in
                    (copy record).forEachSpan(since: origin) { span in add(span, to: &state, at: now) }
                }
                guard taken else { break }
            }
        }
    }

    private func add(_ span: SpanRecord, to state: inout State, at now: UInt64) {
        if state.due == nil { state.due = now &+ Self.patience }
        _ = state.batch.add(span)
        if state.batch.isFull { send(&state) }
    }

    private func send(_ state: inout State) {
        let count = state.batch.count
        state.due = nil
        let export = SpanExport(body: state.batch.finish(), count: count)
        if !deliver(export) { counts.add(UInt64(count), to: .dropped) }
    }

    /// See `LogThreadWork`.
    package func arm() -> Bool {
        state.withLock { state in
            // A batch that has begun goes at its time, with what has come by then: no loop has to wake anybody before.
            guard state.due == nil else { return !isFlushing.load(ordering: .acquiring) }
            for ring in state.rings { ring.armWake() }
            return !told.hasNext && !state.rings.contains { $0.hasNext } && !isFlushing.load(ordering: .acquiring)
        }
    }

    /// See `LogThreadWork`.
    package func disarm() { state.withLock { state in for ring in state.rings { ring.disarmWake() } } }
}

/// The body of one OTLP request.
public struct SpanExport: Sendable {
    /// `ExportTraceServiceRequest`, encoded.
    public let body: [UInt8]
    /// Spans in it.
    public let count: Int

    /// Memberwise.
    public init(body: [UInt8], count: Int) {
        self.body = body
        self.count = count
    }
}

/// What has become of spans, counted by whichever thread knows.
public final class SpanCounts: Sendable {
    private let exported = Atomic<UInt64>(0)
    private let failed = Atomic<UInt64>(0)
    private let dropped = Atomic<UInt64>(0)

    /// Nothing yet.
    public init() {}

    /// The ends that a span comes to: `cardea_spans_total{result}`.
    public enum Outcome: String, Sendable, CaseIterable {
        /// The collector has taken it.
        case exported
        /// The collector has refused it, or was not reached.
        case failed
        /// There was no room for it.
        case dropped
    }

    /// Adds spans that have come to the end `outcome`.
    public func add(_ count: UInt64, to outcome: Outcome) {
        guard count > 0 else { return }
        switch outcome {
        case .exported: exported.wrappingAdd(count, ordering: .relaxed)
        case .failed: failed.wrappingAdd(count, ordering: .relaxed)
        case .dropped: dropped.wrappingAdd(count, ordering: .relaxed)
        }
    }

    /// Since the process began.
    public func count(of outcome: Outcome) -> UInt64 {
        switch outcome {
        case .exported: exported.load(ordering: .relaxed)
        case .failed: failed.load(ordering: .relaxed)
        case .dropped: dropped.load(ordering: .relaxed)
        }
    }
}
