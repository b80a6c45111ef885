internal import Glibc
internal import HTTP1
internal import HTTP2
internal import Reactor
internal import TLS

/// A caller's connection and the interpreter of its exchange: it moves bytes and asks the machine what to do next.
///
/// The block holds the request's head at its front for as long as the request may have to be sent (again); the body's received bytes
/// follow it, undecoded. A replay rewinds `bodyAt` to the end of the head.
final class CallerConnection: Channel, HTTP2StreamUser {
    // A cycle until it closes. A constant needs no reference count where it is read; one that is not owned costs two for each reading.
    let data: DataLoop
    var listener: ListenerPlan
    let peer: CallerPeer
    /// The HTTP/2 connection whose streams it serves, one behind the other; nil with a socket of its own. A cycle while it waits there for
    /// the next stream, which the end of the HTTP/2 connection cuts.
    private let home: CallerHTTP2Connection?

    /// Lent by the loop from a request's first byte until there is nothing to read, so that an idle connection holds none.
    var lent: UnsafeMutablePointer<CallerExchange>?

    /// The account that requests give of this connection: set by its HTTP/2 connection, or made with the first request.
    var hop: ForwardedHop?
    private(set) var stage = Stage.reading
    /// No request has been read yet: the connection may still turn out to speak HTTP/2.
    private var isFirst = true
    /// Its listener is gone, or all of them go: it takes no request after the ones that have come.
    var isLast = false
    /// The kernel redirected it: the caller knows of no proxy that could answer.
    var isRedirected = false
    /// The bodies go on at the end of this turn.
    var pumpsLater = false
    /// A timer looks whether a caller that has closed its side has gone (`HalfClosed`).
    var watchesHalfClosed = false
    /// This connection owns connections to upstreams, or did (`UpstreamOwner`); the loop has its number then.
    var isOwner = false

    // The following belong to the end of the connection.
    var isFlushing = false
    var saidNoMore = false
    /// Octets of a caller that goes on sending which are still read and thrown away.
    var drainLeft = 0
    /// Bytes that a slow reader had still to take at the last look.
    var leftToFlush = 0

    enum Stage { case reading, exchanging, tunnel, closing, closed }
    enum Method { case get, head, other }
    enum Deadline {
        static let head: UInt8 = 1, idle: UInt8 = 2, token: UInt8 = 3, answer: UInt8 = 4, stall: UInt8 = 5,
            close: UInt8 = 6, permission: UInt8 = 7, pause: UInt8 = 8, form: UInt8 = 9, look: UInt8 = 10
    }

    init(data: DataLoop, listener: ListenerPlan, peer: CallerPeer, home: CallerHTTP2Connection? = nil) {
        self.data = data
        self.listener = listener
        self.peer = peer
        self.home = home
        super.init(loop: data.loop, buffers: data.buffers)
    }

    deinit {
        if let lent { data.exchanges.give(lent) }
    }

    func begin() {
        canWrite = true
        expectRequest()
    }

    /// Serves one stream of an HTTP/2 connection, whose head has come.
    /// - Precondition: it is new, or was made so again by `renew`.
    func begin(_ stream: HTTP2Stream) {
        loop.adopt(self)
        self.stream = stream
        stream.user = self
        canWrite = true
        canRead = true
        borrowExchange()
        exchange.record.startedAt = loop.now
        guard stream.refusal == nil else { return answer(Fault(.bigHead)) }
        readRequests()
    }

    func streamReady(_ stream: HTTP2Stream) {
        guard stream === self.stream else { return }
        ready(stream.isReset ? [.readable, .writable, .failed] : [.readable, .writable])
    }

    // MARK: - Events

    override func ready(_ readiness: Readiness) {
        note(readiness)
        // Both directions gone, or a reset: nobody is left to answer. (A half-closed caller shows the end of input alone.)
        if !readiness.isDisjoint(with: [.failed, .hungUp]), stage != .closing { return close() }
        guard flush() else { return close() }
        switch stage {
        case .reading:
            if isFlushing, !hasPending { expectRequest() }
            readRequests()
        case .exchanging:
            pump()
            continueIfReading()
            if inputEndSeen, stage == .exchanging { noteHalfClosed() }
        case .tunnel: pumpTunnel()
        case .closing: finishClosing()
        case .closed: break
        }
    }

    func enterTunnel() { stage = .tunnel }
    func enterExchange() { stage = .exchanging }
    func enterClosing() { stage = .closing }

    /// Leaves the socket to another: this object is over, and closes nothing.
    func leave() {
        stage = .closed
        returnExchange()
        disown()
        data.removeCaller(self)
    }

    override func turnEnds() {
        pumpsLater = false
        guard stage != .closing else { return finishClosing() }
        // On a connection that has closed meanwhile, pumping does nothing.
        pump()
        // The exchange may be over, and the next request in the block.
        continueIfReading()
    }

    override func deadlinePassed(_ kind: UInt8) {
        switch kind {
        case Deadline.head: answer(Fault(.slowHead))
        case Deadline.token:
            data.desk.leave(self)
            perform(exchange.machine.on(.refused(Fault(.tokenTimeout))))
        case Deadline.answer: fail(Fault(.upstreamTimeout))
        case Deadline.permission: releaseBody()
        case Deadline.look: stopLooking()
        case Deadline.pause: perform(exchange.machine.on(.rested))
        case Deadline.form: refuseTokenForm(.slowBody)
        case Deadline.stall where stage == .tunnel: close()
        case Deadline.stall: stalled()
        case Deadline.close where isFlushing && readsOn(): break
        default: close()
        }
        continueIfReading()
    }

    override func secondTimerFired() { judgeHalfClosed() }

    // MARK: - Reading requests

    /// Reads and serves until the socket is empty or an exchange has to wait. Iterative: a pipeline of a thousand requests costs no stack.
    func readRequests() {
        var rounds = 0
        while stage == .reading {
            // Answers leave in order, and a caller that does not read them gets no more work done.
            guard !hasPending else { return }
            if end > start {
                borrowExchange()
                if tryHead() { continue }
            }
            guard stage == .reading else { return }
            switch fill() {
            case .bytes:
                // Requests that are answered here need not wait for anybody, and a caller may bring them without end.
                rounds += 1
                guard rounds < Self.rounds else { return pumpLater() }
            case .notNow:
                if end > start {
                    if exchange.record.startedAt == 0 {
                        exchange.record.startedAt = loop.now
                        expect(by: loop.now + data.limits.headTimeout, kind: Deadline.head)
                    }
                } else {
                    releaseEmptyBlock()
                    returnExchange()
                }
                return
            case .blockFull:
                guard end < data.limits.headerSize else { return answer(Fault(.bigHead)) }
                guard growBlock(to: min(end * 4, data.limits.headerSize)) else {
                    return answer(Fault(.outOfMemory, retryAfter: 1))
                }
            case .noBuffer:
                borrowExchange()
                return answer(Fault(.outOfMemory, retryAfter: 1))
            case .ended, .truncated, .failed: return close()
            }
        }
    }

    /// Parses a head if one is complete.
    /// - Returns: false when more bytes are needed or the connection left the reading stage.
    private func tryHead() -> Bool {
        // The first bytes are parsed at once, so that what is no HTTP is refused at once; a head that dribbles in is parsed again only
        // when its end is there, so that a slow sender cannot make us scan the same bytes for every one it sends.
        exchange.isReset = false
        if exchange.request.searched > 0, !endsHead(from: max(0, exchange.request.searched - 3)) {
            exchange.request.searched = end - start
            return false
        }
        do throws(HeadFault) {
            guard let length = try data.parseRequest(input, for: self) else {
                exchange.request.searched = end - start
                return false
            }
            exchange.request.searched = 0
            isFirst = false
            exchange.request.headLength = length
            if exchange.record.startedAt == 0 { exchange.record.startedAt = loop.now }
            stage = .exchanging
            perform(runPhases())
            if inputEndSeen, stage == .exchanging { noteHalfClosed() }
            return stage == .reading
        } catch {
            if isFirst, listener.speaks(.http2) {
                switch HTTP2Preface.match(input) {
                case .none: break
                case .partly: return false
                case .whole:
                    leave()
                    data.becomeHTTP2(self)
                    return false
                }
            }
            if exchange.record.startedAt == 0 { exchange.record.startedAt = loop.now }
            answer(Fault(head: error))
            return false
        }
    }

    private func endsHead(from offset: Int) -> Bool {
        let bytes = input
        guard bytes.count < data.limits.headerSize else { return true }
        var index = offset
        while index + 2 < bytes.count {
            if bytes[index] == 0x0a, bytes[index + 1] == 0x0d, bytes[index + 2] == 0x0a { return true }
            index += 1
        }
        return false
    }

    // MARK: - Ending an exchange

    /// Whether the body was cut short on the connection of now: its server may have stopped reading there, and others must not wait for that.
    func leavesCutBody() -> Bool {
        guard let upstream = exchange.upstream, !exchange.caution.isProbe,
            upstream.hasCut(requestComplete: exchange.request.isComplete)
        else { return false }
        upstream.shared?.doubt()
        return true
    }

    /// A fault of the upstream's side, at whatever point: an answer when none has begun, an abort after that, because ending the framing
    /// cleanly would turn a truncated answer into a complete one.
    func fail(_ fault: Fault) {
        if exchange.answer.hasBegun { return cut(fault) }
        answer(fault)
    }

    /// The answer cannot go on: its caller must not take what it has for the whole.
    /// - Parameter code: the upstream's own word to a caller of HTTP/2; nil: what the fault is there.
    func cut(_ fault: Fault, _ code: HTTP2ErrorCode? = nil) {
        exchange.record.fault = fault.kind
        exchange.record.incomplete = fault.logSide
        exchange.record.cutCode = code ?? fault.resetCode
        close()
    }

    /// The request's method and, below, its path, for reports and records; the head stays at the block's front.
    var heldMethod: UnsafeRawBufferPointer {
        block == nil ? .init(start: nil, count: 0) : input[exchange.record.method]
    }
    var heldPath: UnsafeRawBufferPointer { block == nil ? .init(start: nil, count: 0) : input[exchange.record.target] }

    /// Whether every byte of the request has been received, so that what follows is the next one.
    var requestIsConsumed: Bool {
        stage == .exchanging && (exchange.request.isComplete || exchange.request.framing == .none)
    }

    /// The exchange is over: account for it, and go on with the connection.
    func nextRequest() {
        leaveDesk()
        data.account(self)
        // A stream of HTTP/2 carries one request.
        guard stream == nil, exchange.request.keepsAlive, requestIsConsumed else { return beginClosing() }
        let consumed = max(exchange.request.headLength, exchange.request.bodyAt)
        let left = end - consumed
        if left > 0, let block { block.put(UnsafeRawBufferPointer(rebasing: block[consumed..<end]), at: 0) }
        start = 0
        end = left
        if let block, block.count > buffers.blockSize, left <= buffers.blockSize { shrinkBlock(left) }
        isFlowing = false
        resetExchange()
        stage = .reading
        // A slow reader is not idle while it reads.
        if hasPending { expectFlush() } else { expectRequest() }
    }

    private func shrinkBlock(_ left: Int) {
        guard let large = block, let small = buffers.take() else { return }
        small.put(UnsafeRawBufferPointer(rebasing: large[..<left]), at: 0)
        buffers.give(large)
        block = small
    }

    /// Gives the upstream's connection back, or ends it.
    func releaseUpstream(reusable: Bool) {
        guard hasExchange, let connection = exchange.upstream.take() else { return }
        exchange.answer.look = nil
        connection.user = nil
        if reusable,
            connection.mayBeReused(
                answerComplete: true, requestComplete: exchange.request.isComplete || exchange.caution.isProbe,
                persistent: exchange.answer.isPersistent)
        {
            connection.group.give(connection)
        } else {
            connection.close()
        }
    }

    // MARK: - Closing

    func close() {
        guard stage != .closed else { return }
        if stage == .exchanging || stage == .tunnel, exchange.route != nil {
            if !exchange.answer.hasBegun { exchange.answer.status = 499 }
            if stage == .exchanging, exchange.answer.hasBegun { noteIncomplete() }
            data.account(self)
        }
        if lacksItsEnd { endAbruptly() }
        stage = .closed
        leaveDesk()
        releaseUpstream(reusable: false)
        disown()
        if hasExchange, let code = exchange.record.cutCode { stream.take()?.cut(code) }
        tearDown()
        data.callerClosed(self)
        home?.streamEnded(self)
    }

    /// Makes it what it was when it was made, but for its listener and what is told of it, which are its HTTP/2 connection's.
    /// - Precondition: it is closed, holds nothing, and no call of it is on the stack.
    func renew() {
        returnExchange()
        stage = .reading
        isFirst = true
        isLast = false
        isRedirected = false
        pumpsLater = false
        watchesHalfClosed = false
        isOwner = false
        isFlushing = false
        saidNoMore = false
        drainLeft = 0
        leftToFlush = 0
        renewChannel()
    }
}
