internal import HTTP2
internal import Octets
internal import Reactor
internal import TLS

/// How a connection ends so that the caller gets every byte of its last answer.
extension CallerConnection {
    /// Sends what waits, says that no more comes, and drains for a moment: closing at once would reset the connection, and the reset can
    /// overtake the answer.
    func beginClosing() {
        guard stage != .closed else { return }
        let mayEnd = expectsNothing
        drainLeft = isUploading ? Self.longestUploadDrained : DataLoop.lingerBytes
        enterClosing()
        saidNoMore = false
        if mayEnd {
            // The end goes out before the look: the kernel may hold the answer back for it (`MSG_MORE`), and octets that come between a
            // look and the close would make it drop what it holds. A read looks, not `poll`: a fast caller has sent its own end by now.
            saidNoMore = true
            loop.kernel.shutdownWriting(descriptor)
            canRead = true
            guard case .bytes(let count) = drain() else { return close() }
            drainLeft -= count
            expect(by: loop.now + DataLoop.lingerTimeout, kind: Deadline.close)
        }
        releaseUpstream(reusable: false)
        finishClosing()
    }

    /// The caller's last request came whole, nothing is known to have come behind it, and its answer is with the kernel: if nothing has come
    /// by now, the connection can be closed. Who asks for the end must not send more (RFC 9112 section 9.6); who does so all the same, and
    /// has done it already, has its answer guarded as any other.
    ///
    /// Not after a long answer, or many, of which much may still lie in the kernel when a caller that breaks the rule sends more; and not
    /// under TLS, where the caller answers our end with its own.
    private var expectsNothing: Bool {
        hasExchange && exchange.request.asksToClose && requestIsConsumed
            && end <= max(exchange.request.headLength, exchange.request.bodyAt)
            && !canRead && !inputEnded && !hasPending && tls == nil && stream == nil
            && bytesOut <= UInt64(buffers.blockSize)
    }

    func finishClosing() {
        guard flush() else { return close() }
        if let stream = uncountedStream, stream._withUnsafeGuaranteedRef({ $0.isFlushed }) { return close() }
        if hasPending || stream != nil {
            // A slow reader gets its whole answer, as long as it reads at the least rate.
            if !isFlushing { expectFlush() }
            return
        }
        isFlushing = false
        if !saidNoMore {
            saidNoMore = true
            expect(by: loop.now + DataLoop.lingerTimeout, kind: Deadline.close)
            if inputEnded { return close() }
            tls?.shutdown()
            loop.kernel.shutdownWriting(descriptor)
        }
        for _ in 0..<Self.rounds {
            switch drain() {
            case .bytes(let count):
                drainLeft -= count
                if drainLeft < 0 { return close() }
            case .notNow: return
            default: return close()
            }
        }
        pumpLater()
    }

    /// Reads what nobody wants any more, and overwrites it: blocks are used again, and behind a token form that was refused it is the rest of
    /// that form.
    private func drain() -> Reading {
        start = 0
        end = 0
        let reading = fill()
        if case .bytes = reading, let block { UnsafeMutableRawBufferPointer(rebasing: block[..<end]).wipe() }
        return reading
    }

    /// A request was taken, and its body has not come whole. Whoever sends a head without an end has asked for nothing yet.
    private var isUploading: Bool { stage == .exchanging && !requestIsConsumed }

    /// Octets that are read and thrown away, at most, of a caller that goes on with an upload until the time to close. An upload whose
    /// answer came early may be large, and a caller that writes all of it before it reads would lose the answer to a reset.
    private static let longestUploadDrained = 64 << 20
}
