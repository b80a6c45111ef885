internal import Glibc
internal import HTTP2
internal import Reactor

/// The socket under an HTTP/2 connection: what is read goes into the connection, and what it has to send is written once at the
/// end of a turn, so that the requests and answers of many streams share a write.
class HTTP2Socket: Channel, HTTP2ConnectionHost {
    final let http2: HTTP2Connection
    final private(set) var isOver = false
    /// The users of streams are being told of news.
    final private(set) var isTelling = false
    private var isScheduled = false
    private var readsLater = false

    init(loop: Loop, buffers: LoopBuffers, http2: HTTP2Connection) {
        self.http2 = http2
        super.init(loop: loop, buffers: buffers)
        http2.host = self
    }

    deinit { http2.host = nil }

    // MARK: - What subclasses say

    /// Streams have changed; new ones may have come.
    func streamsChanged() {}
    /// The socket takes no more for now, or what it did not take before.
    func outputWaits() {}
    /// The connection has ended; every stream was told.
    func connectionEnded() {}

    // MARK: - Events

    final func connectionHasOutput() {
        guard !isScheduled, !isOver else { return }
        isScheduled = true
        loop.callAtEndOfTurn(self)
    }

    override final func turnEnds() {
        if readsLater {
            readsLater = false
            readInput()
        }
        if isScheduled { writeOutput() }
    }

    override final func ready(_ readiness: Readiness) {
        note(readiness)
        // Buffered input is read even after a reset: an answer may be in it.
        readInput()
        guard !isOver else { return }
        guard flush() else { return end(.cancel) }
        if canWrite { writeOutput() }
    }

    /// Bytes that another stage read before the HTTP/2 connection took over.
    final func takeOver() {
        canWrite = true
        connectionHasOutput()
        readInput()
    }

    /// Reading goes on while output waits: two peers that both stop reading would wait for each other for ever. What waits here is
    /// bounded by the windows that we grant, and nghttp2 bounds the answers it owes.
    private func readInput() {
        var rounds = 0
        while !isOver {
            if end > start {
                guard http2.receive(input, now: loop.now) else {
                    start = end
                    // A client passes on no more of answers that are not whole; their users are told when the HTTP/2 connection ends.
                    if http2.role == .server { tell() }
                    return finish()
                }
                start = 0
                end = 0
                if http2.owesReset {
                    guard sendAll() else { return end(.cancel) }
                    if http2.isOver { return finish() }
                }
                tell()
                if http2.isOver { return finish() }
            }
            guard !isOver else { return }
            // Bounded, so that one busy connection cannot starve the loop's others.
            rounds += 1
            if rounds > 64, canRead { return readLater() }
            switch fill() {
            case .bytes: continue
            case .notNow: return releaseEmptyBlock()
            case .noBuffer: return end(.enhanceYourCalm)
            case .ended, .truncated, .failed, .blockFull: return end(.cancel)
            }
        }
    }

    private func readLater() {
        guard !readsLater else { return }
        readsLater = true
        loop.callAtEndOfTurn(self)
    }

    private func tell() {
        isTelling = true
        http2.tellUsers()
        isTelling = false
        streamsChanged()
    }

    private func writeOutput() {
        isScheduled = false
        guard !isOver else { return }
        guard sendAll() else { return end(.cancel) }
        // Streams whose output went out may have more.
        if http2.hasNews { tell() } else if hasPending { outputWaits() }
        if http2.isOver, !hasPending { end(.none) }
    }

    /// Says why, as far as the socket takes it, and ends.
    private func finish() {
        _ = sendAll()
        end(.cancel)
    }

    /// Writes what the HTTP/2 connection has to send, as far as the socket takes it.
    /// - Returns: false when the connection is lost.
    private func sendAll() -> Bool {
        while !hasPending {
            let count = http2.send(into: buffers.http2Output, now: loop.now)
            guard count > 0 else { return true }
            guard send(UnsafeRawBufferPointer(rebasing: buffers.http2Output[..<count])) else { return false }
        }
        return true
    }

    /// Ends the connection now. Safe to call twice.
    final func end(_ code: HTTP2ErrorCode) {
        guard !isOver else { return }
        isOver = true
        http2.abandon(code)
        tearDown()
        http2.tellUsers()
        connectionEnded()
    }
}
