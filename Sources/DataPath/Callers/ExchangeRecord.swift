internal import HTTP1
internal import HTTP2
internal import Handshakes
internal import Telemetry

/// The facts that the access record and the metrics will tell of an exchange, gathered while it runs. Times are of `CLOCK_BOOTTIME`,
/// zero where the step did not take place.
struct ExchangeRecord {
    var startedAt: UInt64 = 0
    var tokenAt: UInt64 = 0
    var sentAt: UInt64 = 0
    var firstByteAt: UInt64 = 0
    var answeredAt: UInt64 = 0
    /// The first wait for a token, and the last one after the request was sent.
    var wait = TraceStep()
    var laterWait = TraceStep()
    /// The first time that it was sent, where it was sent again.
    var firstSend = TraceStep()
    var cache = AccessRecord.CacheState.none
    var replayed = false
    var fault: Fault.Kind?
    /// The answer ended in its middle, and whose doing that was.
    var incomplete = LogSide.none
    /// The code that a caller of HTTP/2 is told when its answer is cut; nil where the caller itself has ended it.
    var cutCode: HTTP2ErrorCode?
    /// Where in the block the method and the target lie.
    var method = ByteRange(start: 0, count: 0)
    var target = ByteRange(start: 0, count: 0)
    /// Behind a reference: it is large, and few answers are one.
    var challenge: HeldChallenge?
    var bytesInBefore: UInt64 = 0
    var bytesOutBefore: UInt64 = 0
    var upstreamAddress: LogAddress?
    var usedHTTP2 = false

    /// - Parameter now: by the loop's clock, as `since` is.
    mutating func noteWait(since: UInt64, until now: UInt64) {
        let isLater = sentAt != 0
        let began = isLater ? laterWait.start : wait.start
        // A wait that is followed by another one before the request goes out is one with it.
        let step = TraceStep(start: began == 0 ? since : began, end: now)
        if isLater { laterWait = step } else { wait = step }
    }

    /// The request is about to be sent again.
    mutating func noteFirstSend(at now: UInt64) {
        guard firstSend.start == 0 else { return }
        firstSend = TraceStep(start: sentAt, end: firstByteAt >= sentAt ? firstByteAt : now)
    }

    mutating func noteHead(method: ByteRange, target: ByteRange) {
        self.method = method
        self.target = target
    }
}

/// The challenge that a request met, until the keeper is told.
final class HeldChallenge {
    let challenge: Handshakes.Challenge
    /// The reason for which the refusal stands, in safe text for the caller; nil: the refusal says enough.
    var reason: String?

    init(_ challenge: Handshakes.Challenge) {
        self.challenge = challenge
        reason = challenge.stepUp?.words
    }
}
