internal import DataPath
internal import HTTP1
internal import Handshakes
package import Reactor
package import Telemetry
internal import Tokens

/// Sends batches of spans to a collector by OTLP over HTTP, one after the other, by the client that speaks to issuers.
///
/// Bounded: few batches wait, further ones are dropped and counted. A batch that the collector did not take for now is sent a second time.
/// Touched on the keeper's loop only.
package final class SpanExporter: Watched, @unchecked Sendable {
    private let blocking: any BlockingWork
    private let resolver: any NameResolver
    private let events: EventLog
    private let counts: SpanCounts
    private var destination: SpanDestination?
    private var group: UpstreamGroup?
    /// Connections of earlier destinations hold their groups unsafely until they are closed.
    private var departing: [UpstreamGroup] = []
    private lazy var buffers = LoopBuffers(blocks: 8, largeLimit: 4 << 20, scratchSize: 64 * 1024)

    private var waiting: [SpanExport] = []
    /// Calls that were made with the batch that waits longest.
    private var attempts = 0
    private var breaker: Breaker
    private let seed: UInt64
    /// The number of the call under way; nil: there is none. An earlier one's outcome changes nothing.
    private var call: UInt64?
    private var calls: UInt64 = 0
    /// The end of a pause, or of the time that headers have to be read.
    private var timer: TimerID?
    private var isAdopted = false
    /// The log was told that the collector does not take spans.
    private var isFailing = false

    /// Batches that may wait, the one that is being sent among them.
    static let mostWaiting = 8
    private static let mostAttempts = 2
    /// Nanoseconds before a batch is sent again, if the collector does not say.
    private static let pause: UInt64 = 1_000_000_000
    /// Statuses that say "later" (OTLP specification, "Retryable Response Codes").
    private static let passing: Set<Int> = [429, 502, 503, 504]

    /// - Parameters:
    ///   - blocking: where headers are read.
    ///   - seed: of the jitter of pauses.
    package init(
        loop: Loop, blocking: any BlockingWork, resolver: any NameResolver, events: EventLog, counts: SpanCounts,
        seed: UInt64
    ) {
        self.blocking = blocking
        self.resolver = resolver
        self.events = events
        self.counts = counts
        self.seed = seed
        breaker = Breaker(seed: seed)
        super.init(loop: loop)
    }

    /// Nothing waits and nothing is under way.
    package var isIdle: Bool { waiting.isEmpty && call == nil }

    /// - Parameter destination: nil: no more spans are exported.
    package func take(_ destination: SpanDestination?) {
        if !isAdopted { loop.adopt(self) }
        isAdopted = true
        if let group {
            group.retire()
            departing.append(group)
        }
        group = nil
        self.destination = destination
        // The outcome of a call to the earlier one is of no interest: its batch goes to this one.
        call = nil
        attempts = 0
        clearTimer()
        // Nor is what the earlier one did: a trial of it that was under way would never come to its end.
        breaker = Breaker(seed: seed)
        isFailing = false
        if destination == nil { while !waiting.isEmpty { settle(.dropped) } }
        next()
    }

    /// Takes a batch, or drops and counts it.
    package func take(_ export: SpanExport) {
        guard destination != nil, waiting.count < Self.mostWaiting else {
            return counts.add(UInt64(export.count), to: .dropped)
        }
        waiting.append(export)
        next()
    }

    package override func timerFired(_ kind: UInt8) {
        timer = nil
        guard call == nil else { return failed("its headers cannot be read in time") }
        next()
    }

    // MARK: - Calls

    private func next() {
        guard call == nil, timer == nil, let destination, !waiting.isEmpty else { return }
        departing.removeAll(where: \.isUnused)
        if case .refuse(let wait) = breaker.ask(at: now) { return pause(wait) }
        calls &+= 1
        let number = calls
        call = number
        guard !destination.headers.isEmpty else { return send([], to: destination, number) }
        pause(destination.network.timeout)
        let isTaken = blocking.run { [self] in
            let read = Result { try destination.headers.map { ($0.name, try $0.value()) } }
            _ = loop.post { [self] in take(read, for: destination, number) }
        }
        if !isTaken { failed("too much waits to be read") }
    }

    private func take(
        _ read: Result<[(String, Secret)], any Error>, for destination: SpanDestination, _ number: UInt64
    ) {
        guard call == number else { return }
        clearTimer()
        switch read {
        case .success(let headers): send(headers, to: destination, number)
        case .failure(let fault): failed("a header cannot be read: \(fault)")
        }
    }

    private func send(_ headers: [(String, Secret)], to destination: SpanDestination, _ number: UInt64) {
        guard let export = waiting.first else {
            breaker.notSent()
            return call = nil
        }
        let fields = headers.map { (name: $0, value: $1.withBytes { String(decoding: $0, as: UTF8.self) }) }
        let request = IssuerCall(
            step: "export of spans", method: "POST", url: destination.url,
            headers: [(name: "Content-Type", value: "application/x-protobuf")] + fields, body: export.body,
            carriesPassword: false)
        IssuerExchange(
            request, group: group(of: destination), deadline: now &+ destination.network.timeout, limits: .init()
        ) { [self] result in
            ended(result, number)
        }.start()
    }

    private func group(of destination: SpanDestination) -> UpstreamGroup {
        if let group { return group }
        var network = destination.network
        network.proxy = network.proxy.flatMap { $0.serves(destination.url.host) ? $0 : nil }
        let key = IssuerKey(origin: destination.url.origin, network: network)
        let group = UpstreamGroup(
            plan: network.plan(to: destination.url, key), loop: loop, buffers: buffers, resolver: resolver
        ) { _ in }
        self.group = group
        return group
    }

    private func ended(_ result: Result<IssuerAnswer, IssuerFault>, _ number: UInt64) {
        guard call == number else { return }
        switch result {
        case .success(let answer) where (200..<300).contains(answer.status):
            call = nil
            breaker.answered()
            recovered()
            settle(.exported)
            next()
        case .success(let answer) where Self.passing.contains(answer.status):
            failed("status \(answer.status)", retryAfter: answer.retryAfter.map { UInt64(max(0, $0)) * 1_000_000_000 })
        case .success(let answer):
            // Sent again, it would be refused again.
            call = nil
            breaker.answered()
            tell("status \(answer.status)")
            settle(.failed)
            next()
        case .failure(let fault): failed("\(fault.kind)")
        }
    }

    /// The call brought nothing; a later one may.
    private func failed(_ reason: String, retryAfter: UInt64? = nil) {
        call = nil
        clearTimer()
        let wait = breaker.failed(retryAfter: retryAfter, at: now)
        tell(reason)
        attempts += 1
        if attempts >= Self.mostAttempts { settle(.failed) }
        pause(max(wait ?? 0, retryAfter ?? Self.pause))
    }

    /// The batch that waits longest has come to its end.
    private func settle(_ outcome: SpanCounts.Outcome) {
        attempts = 0
        guard !waiting.isEmpty else { return }
        counts.add(UInt64(waiting.removeFirst().count), to: outcome)
    }

    // MARK: - Time

    private var now: UInt64 { loop.kernel.now() }

    private func pause(_ span: UInt64) {
        clearTimer()
        timer = loop.arm(self, at: now &+ span, kind: 0)
    }

    private func clearTimer() {
        if let timer { loop.disarm(timer) }
        timer = nil
    }

    // MARK: - The log

    /// Told once, not for each batch.
    private func tell(_ reason: String) {
        guard !isFailing, let destination else { return }
        isFailing = true
        events.warn(
            "spans cannot be exported",
            [LogField("endpoint", .name(destination.url.origin)), LogField("reason", .name(reason))])
    }

    private func recovered() {
        guard isFailing, let destination else { return }
        isFailing = false
        events.info("spans are exported again", [LogField("endpoint", .name(destination.url.origin))])
    }
}
