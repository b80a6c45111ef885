internal import Glibc
internal import HTTP2
internal import Reactor

/// The socket under an HTTP/2 session: what is read goes into the session, and what the session has to send is written once at the
/// end of a turn, so that the requests and answers of many streams share a write.
class HTTP2Socket: Stream, HTTP2ConnectionHost {
    final let session: HTTP2Connection
    final private(set) var isOver = false
    /// The users of streams are being told of news.
    final private(set) var isTelling = false
    private var isScheduled = false
    private var readsLater = false

    init(loop: Loop, buffers: LoopBuffers, session: HTTP2Connection) {
        self.session = session
        super.init(loop: loop, buffers: buffers)
        session.host = self
    }

    deinit { session.host = nil }

    // MARK: - What subclasses say

    /// Streams have changed; new ones may have come.
    func sessionChanged() {}
    /// The socket takes no more for now, or what it did not take before.
    func outputWaits() {}
    /// The connection has ended; every stream was told.
    func sessionEnded() {}

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

    /// Bytes that another stage read before the session took over.
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
                guard session.receive(input, now: loop.now) else {
                    start = end
                    // A client passes on no more of answers that are not whole; their users are told when the session ends.
                    if session.role == .server { tell() }
                    return finish()
                }
                start = 0
                end = 0
                if session.owesReset {
                    guard sendAll() else { return end(.cancel) }
                    if session.isOver { return finish() }
                }
                tell()
                if session.isOver { return finish() }
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
        session.tellUsers()
        isTelling = false
        sessionChanged()
    }

    private func writeOutput() {
        isScheduled = false
        guard !isOver else { return }
        guard sendAll() else { return end(.cancel) }
        // Streams whose output went out may have more.
        if session.hasNews { tell() } else if hasPending { outputWaits() }
        if session.isOver, !hasPending { end(.none) }
    }

    /// Says why, as far as the socket takes it, and ends.
    private func finish() {
        _ = sendAll()
        end(.cancel)
    }

    /// Writes what the session has to send, as far as the socket takes it.
    /// - Returns: false when the connection is lost.
    private func sendAll() -> Bool {
        while !hasPending {
            let count = session.send(into: buffers.session, now: loop.now)
            guard count > 0 else { return true }
            guard send(UnsafeRawBufferPointer(rebasing: buffers.session[..<count])) else { return false }
        }
        return true
    }

    /// Ends the connection now. Safe to call twice.
    final func end(_ code: HTTP2ErrorCode) {
        guard !isOver else { return }
        isOver = true
        session.abandon(code)
        tearDown()
        session.tellUsers()
        sessionEnded()
    }
}
