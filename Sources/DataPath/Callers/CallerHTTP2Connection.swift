internal import HTTP1
internal import HTTP2
internal import Reactor

/// A caller's HTTP/2 connection. Each of its streams is served by a `CallerConnection` of its own, as if it had come alone, which then
/// serves another stream of this connection, and of no other one: nothing that it was told can reach another caller.
final class CallerHTTP2Connection: HTTP2Socket {
    // This reference makes a cycle until the HTTP/2 connection ends, as in `CallerConnection`.
    private let data: DataLoop
    private(set) var listener: ListenerPlan
    let peer: CallerPeer
    private let share: BlockShare
    /// The account that requests give of the connection, whose peer is that of each stream.
    private var hop: ForwardedHop
    /// Their streams ended while the users of streams were told of news. Behind that, nobody is in a call of them any more.
    private var ended: [CallerConnection] = []
    /// They are as new, and nobody else holds them.
    private(set) var spare: [CallerConnection] = []
    /// The number of spare callers at most: they hold 12 KiB, until the connection ends.
    static let spareLimit = 32

    private var deadlines = HTTP2Deadlines()
    /// Bytes that the caller had taken when the deadline for writing was set.
    private var takenBefore: UInt64 = 0

    /// - Returns: nil without memory.
    init?(data: DataLoop, listener: ListenerPlan, peer: CallerPeer) {
        self.data = data
        self.listener = listener
        self.peer = peer
        var limits = HTTP2Limits()
        limits.headerSize = data.limits.headerSize
        let share = BlockShare(of: data.buffers.budget, from: data.buffers)
        self.share = share
        hop = listener.hop(of: peer, isNamed: true)
        guard let http2 = HTTP2Connection(role: .server, limits: limits, blocks: share, memory: data.buffers.frames)
        else { return nil }
        super.init(loop: data.loop, buffers: data.buffers, http2: http2)
    }

    func begin() {
        expectByActivity()
        takeOver()
        if data.isDraining { drain() }
    }

    override func streamsChanged() {
        renewEnded()
        // After a reload, new streams are for whatever now stands at the address.
        if listener.edition !== data.plan.edition {
            listener = data.listener(succeeding: listener) ?? listener
            hop = listener.hop(of: peer, isNamed: true)
            spare.removeAll()
        }
        while let stream = http2.nextOpened() {
            // Taken back before anybody looked at it: a request would be made, with a credential, for an answer that nobody gets.
            guard !stream.isReset else {
                stream.cancel()
                continue
            }
            // Before anything of it was looked at, so that its caller may send it again (RFC 9113 §8.7).
            guard share.beginStream() else {
                data.noteGlitch(.streamLimit)
                stream.cancel(.refusedStream)
                continue
            }
            deadlines.requestCame()
            makeCaller().begin(stream)
        }
        if !isOver { expectByActivity() }
    }

    override func connectionEnded() {
        ended.removeAll()
        spare.removeAll()
        data.http2CallerClosed(self)
    }

    private func makeCaller() -> CallerConnection {
        if let caller = spare.popLast() { return caller }
        let caller = CallerConnection(data: data, listener: listener, peer: peer, home: self)
        caller.hop = hop
        return caller
    }

    /// A stream's caller has closed.
    func streamEnded(_ caller: CallerConnection) {
        share.endStream()
        // Elsewhere its own calls may still be on the stack for a while, with what its request has left in it.
        guard isTelling, !isOver, ended.count + spare.count < Self.spareLimit else { return }
        ended.append(caller)
    }

    private func renewEnded() {
        while !ended.isEmpty {
            // Whoever holds it still must not meet another request in it. Asked where it stands: taken out first, it would be counted.
            let isFree = isKnownUniquelyReferenced(&ended[ended.count - 1])
            let caller = ended.removeLast()
            // A reload may have given it another listener.
            guard isFree, caller.holdsNothing, caller.listener === listener else { continue }
            caller.renew()
            spare.append(caller)
        }
    }

    override func outputWaits() { expectByActivity() }

    /// No more requests; those that run are finished.
    func drain() {
        http2.goAway()
        // Requests that the caller sent before it heard of the end are still served; a later GOAWAY says the last stream's number.
        deadlines.leave(by: loop.now + (data.isDraining ? data.farewell : DataLoop.farewell))
        watchTime()
    }

    private func expectByActivity() {
        let patience = HTTP2Deadlines.Patience(
            idle: DataLoop.idleCallerTimeout, head: data.limits.headTimeout, write: DataLoop.flushTimeout,
            farewell: DataLoop.farewell)
        deadlines.note(
            served: http2.servedStreams, section: http2.unfinishedSection, at: loop.now, patience)
        // A caller that does not take what we write holds our memory, whatever it sends meanwhile and even when it has said that it
        // goes.
        if deadlines.note(waits: hasPending, at: loop.now, patience) { takenBefore = taken }
        watchTime()
    }

    private func watchTime() {
        guard let next = deadlines.next else { return expectNothing() }
        expect(by: next, kind: 0)
    }

    /// Bytes that the socket has taken.
    private var taken: UInt64 { bytesOut &- UInt64(pendingCount) }

    override func deadlinePassed(_ kind: UInt8) {
        switch deadlines.passed(at: loop.now) {
        case .head:
            // Nothing else can come on this connection until the section ends, so it is of no use to its other streams either.
            data.noteGlitch(.slowHead)
            deadlines.leave(by: nil)
            http2.terminate(.enhanceYourCalm)
        case .write:
            // The connection of a slow reader goes on, here as elsewhere, as long as the caller reads at the least rate.
            let least = UInt64(max(1, data.limits.leastRate * Int(DataLoop.flushTimeout / 1_000_000_000)))
            guard !hasPending || taken &- takenBefore >= least else { return end(.cancel) }
            deadlines.looked()
        case .idle:
            deadlines.leave(by: nil)
            http2.goAway()
            http2.goAway()
            if http2.servedStreams == 0 { http2.terminate(.none) }
        case .farewell:
            deadlines.leave(by: nil)
            http2.goAway()
            if http2.servedStreams == 0 { http2.terminate(.none) }
        case nil: break
        }
        if !isOver { expectByActivity() }
    }
}
