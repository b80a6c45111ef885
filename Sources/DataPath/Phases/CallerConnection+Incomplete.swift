internal import HTTP1
internal import Reactor
internal import Telemetry

/// Answers that end in their middle.
extension CallerConnection {
    /// By the caller's doing, where nobody has said otherwise.
    func noteIncomplete() {
        if exchange.record.incomplete == .none {
            if data.isEnding { exchange.record.fault = .draining }
            exchange.record.incomplete = data.isEnding ? .gateway : .caller
        }
        data.noteIncomplete(self)
    }

    /// The connection ends before the answer has all gone, and its end is all that tells the caller where the answer ends (RFC 9112 §6.3):
    /// that of a caller of HTTP/1.0, who knows no chunks.
    var lacksItsEnd: Bool {
        guard hasExchange, exchange.answer.hasBegun, exchange.answer.framing == .untilClose, stream == nil else {
            return false
        }
        return stage == .exchanging || stage == .closing && hasPending
    }

    /// Ends the connection so that the caller sees a fault in place of an end: without TLS's word for an end, and by a reset, for which the
    /// caller may lose what it has not read. That was a part of what it asked for, and must not pass for the whole.
    func endAbruptly() {
        tls = nil
        loop.kernel.resetOnClose(descriptor)
    }

    /// Bytes of the answer that went on their way to the caller, its head included.
    var answerBytes: UInt64 {
        let written = bytesOut &- exchange.record.bytesOutBefore
        switch exchange.record.incomplete {
        case .none: return written
        // A stream's reset goes behind what waits.
        case .upstream, .gateway: guard stream == nil else { return written }
        case .caller: break
        }
        return written - min(written, UInt64(pendingCount))
    }
}
