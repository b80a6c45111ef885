internal import HTTP2
internal import Reactor

/// An HTTP/2 connection to an upstream. The requests of many callers of this loop share it, each on a stream of its own.
final class UpstreamHTTP2Connection: HTTP2Socket, SharedConnection {
    // The reference is counted, unlike that of `UpstreamConnection`: this connection may outlive a group that a reload took out of use by
    // the time of its last streams. `connectionEnded` ends the cycle.
    private let group: UpstreamGroup
    let address: UpstreamAddress?
    var isLeaving = false
    /// The nonce that requests on it answer.
    var knownNonce: KnownNonce?
    private(set) var requests = 0
    private var bytesAtCheck: UInt64 = 0
    /// The bytes that the peer had taken when waiting output was last seen to move, and the time of that.
    private var takenBefore: UInt64 = 0
    private var waitsSince: UInt64?
    /// The peer is asked again and again whether it lives.
    private var isDoubted = false

    private enum Deadline { static let idle: UInt8 = 1, quiet: UInt8 = 2, pong: UInt8 = 3 }

    /// How long a connection with requests on it may be silent before it is asked whether it lives, and how long the answer may take.
    private static let quietTime: UInt64 = 20_000_000_000
    private static let pongTime: UInt64 = 10_000_000_000
    /// The same where there is a reason to think that nobody reads what is sent.
    private static let doubtTime: UInt64 = 5_000_000_000
    /// A peer that takes nothing of what waits for it for as long as this gets no new requests.
    private static let stallTime: UInt64 = 1_000_000_000

    /// - Returns: nil without memory.
    init?(group: UpstreamGroup, address: UpstreamAddress?) {
        self.group = group
        self.address = address
        guard
            let http2 =
                HTTP2Connection(
                    role: .client, limits: HTTP2Limits(), blocks: group.buffers, memory: group.buffers.frames)
        else { return nil }
        super.init(loop: group.loop, buffers: group.buffers, http2: http2)
    }

    func begin() {
        takeOver()
        watchTime()
    }

    /// Whether one more request may go out on it.
    var isUsable: Bool {
        !isOver && http2.hasRoom && requests < group.plan.requestsPerConnection && address?.isListed != false
            && !isStalled
    }

    var load: Int { http2.openStreams }

    var upgrades: UpgradeOffer {
        http2.servesExtendedConnect ? .served : http2.knowsPeer ? .missing : .unknown
    }

    /// The peer takes nothing any more, of bodies or of anything: whoever is on this connection waits for it, and nobody else should.
    var isStalled: Bool {
        if hasPending { return waitsLong() }
        // Without a body there is nothing to wait for, and a window that moves is looked at no further.
        guard http2.sentDataAt != 0, loop.now >= http2.sentDataAt &+ Self.stallTime else { return false }
        return http2.isWindowShut
    }

    private func waitsLong() -> Bool {
        let taken = bytesOut &- UInt64(pendingCount)
        guard let since = waitsSince, taken == takenBefore else {
            takenBefore = taken
            waitsSince = loop.now
            return false
        }
        return loop.now >= since &+ Self.stallTime
    }

    override func outputWaits() { _ = waitsLong() }

    /// A request that is passed on, as it stands in `buffers.outgoing`.
    func open(
        received: UnsafeRawBufferPointer, secretName: [UInt8], secretTarget: Bool, acceptsTrailers: Bool,
        connects: Bool, ended: Bool
    ) -> HTTP2Stream? {
        let wasIdle = http2.openStreams == 0
        let stream = http2.open(
            request: buffers.outgoing, received: received, scheme: scheme, secretName: secretName,
            secretTarget: secretTarget, acceptsTrailers: acceptsTrailers, protocolName: connects ? "websocket" : "",
            ended: ended)
        return opened(stream, wasIdle)
    }

    /// A request of ours, without a body.
    func open(ownRequest head: UnsafeMutableRawBufferPointer) -> HTTP2Stream? {
        let wasIdle = http2.openStreams == 0
        let stream = http2.open(
            request: head, scheme: scheme, secretName: [], secretTarget: false, acceptsTrailers: false, ended: true)
        return opened(stream, wasIdle)
    }

    private var scheme: StaticString { group.plan.usesTLS ? "https" : "http" }

    private func opened(_ stream: HTTP2Stream?, _ wasIdle: Bool) -> HTTP2Stream? {
        guard let stream else { return nil }
        requests += 1
        if wasIdle { watchTime() }
        return stream
    }

    /// No more requests; it ends with the last that runs.
    func retire() {
        http2.goAway()
        if http2.openStreams == 0 { end(.none) }
    }

    /// No more requests, and those that run end with it if its server, which seems to have stopped reading, says nothing at all: they would
    /// wait in vain, and some of them can go out again.
    func doubt() {
        retire()
        guard !isOver, !isDoubted else { return }
        isDoubted = true
        ask(within: Self.doubtTime)
    }

    private func ask(within time: UInt64) {
        bytesAtCheck = bytesIn
        http2.ping()
        expect(by: loop.now + time, kind: Deadline.pong)
    }

    override func streamsChanged() {
        group.tell { $0.changed(self) }
        guard http2.openStreams == 0, !isOver else { return }
        if http2.isGoingAway || address?.isListed == false { return end(.none) }
        watchTime()
    }

    override func connectionEnded() { group.sharedEnded(self) }

    private func watchTime() {
        // Streams that end or begin on a doubted connection say nothing of its server.
        guard !isOver, !isDoubted else { return }
        if http2.openStreams == 0 {
            expect(by: loop.now + group.plan.keepTimeout, kind: Deadline.idle)
        } else {
            bytesAtCheck = bytesIn
            expect(by: loop.now + Self.quietTime, kind: Deadline.quiet)
        }
    }

    override func deadlinePassed(_ kind: UInt8) {
        switch kind {
        case Deadline.idle where http2.openStreams == 0: retire()
        case Deadline.quiet where bytesIn == bytesAtCheck && http2.openStreams > 0:
            ask(within: Self.pongTime)
        case Deadline.pong where bytesIn == bytesAtCheck: end(.cancel)
        case Deadline.pong where isDoubted: ask(within: Self.doubtTime)
        default: watchTime()
        }
    }
}
