internal import CLinux
internal import Glibc
internal import HTTP1
internal import HTTP2
internal import Reactor
internal import TLS

/// A connection to an upstream or an issuer: connects, does the TLS handshake, then carries one request at a time, and between
/// requests waits in its group's pool.
///
/// Over HTTP/2 it is one stream of a shared connection: connected as soon as that is, and never pooled.
package final class UpstreamConnection: Channel, HTTP2StreamUser, PoolMember {
    // The reference is strong, as that of a caller's connection to its loop: a cycle until the connection closes.
    package let group: UpstreamGroup
    package internal(set) var state = State.connecting
    /// Strong, so a cycle while it is set: both ends cut it, the user by giving the connection back or dropping it, the connection by
    /// being lost. A weak one would make every reference count of the user go through a side table.
    package var user: (any UpstreamUser)?
    /// The connection comes from the pool, or is a stream of a shared one: if it is lost before the first byte of an answer, it may have
    /// been stale.
    private(set) var isPooled = false
    var requests = 0
    // Its pool's to write.
    var seat = PoolSeat.outside
    /// Where it leads, once it is connected.
    var address: UpstreamAddress?
    /// The last address that did not take the connection; nil once another one has. Its dialer's to write.
    var refusedBy: UpstreamAddress?
    var wish = UpstreamWish()
    var waitingIndex: Int?
    /// The nonce that requests on its own socket answer.
    private var ownNonce: KnownNonce?
    /// The owner whose requests alone the connection carries; nil: anybody's.
    var owner: UpstreamOwner?
    /// Since a credential that authenticates connections was sent on it.
    var binding: ConnectionBinding?
    /// Its server has asked for the next message of its owner's authentication, which has not come yet.
    var isInHandshake = false
    /// When it became idle last.
    private(set) var idleSince: UInt64 = 0
    /// Seconds that its server has announced to keep it without a request, at most a day.
    private(set) var announcedTimeout: Int?
    /// An answer's head has come on it.
    private var hasAnswered = false
    /// The shared connection of which this one is a stream; nil: it has a socket of its own.
    private(set) var shared: UpstreamHTTP2Connection?
    /// The edition of the group's TLS configuration when the socket's handshake began.
    var tlsEdition: UInt64 = 0
    private var dialer: Dialer?
    private var begunAt: UInt64
    /// Addresses that are left to try when this one cannot do TLS.
    private var others: [UpstreamAddress] = []

    /// While it asks a proxy for a way through, or has a message for it that goes with the next request.
    var tunnel: ProxyTunnelBox?

    package enum State { case connecting, tunnelling, handshaking, busy, idle, closed }

    enum Deadline { static let connect: UInt8 = 1, idle: UInt8 = 2, user: UInt8 = 3, message: UInt8 = 4 }

    init(group: UpstreamGroup, user: any UpstreamUser) {
        self.group = group
        self.user = user
        begunAt = group.loop.now
        super.init(loop: group.loop, buffers: group.buffers)
    }

    /// Makes it what it was when it was made, for another request of its upstream.
    /// - Precondition: it is closed, holds nothing, and nobody else holds it.
    func renew(for user: any UpstreamUser) {
        self.user = user
        begunAt = group.loop.now
        state = .connecting
        isPooled = false
        requests = 0
        seat = .outside
        address = nil
        refusedBy = nil
        wish = UpstreamWish()
        owner = nil
        if binding != nil { binding = nil }
        isInHandshake = false
        idleSince = 0
        announcedTimeout = nil
        hasAnswered = false
        waitingIndex = nil
        ownNonce = nil
        shared = nil
        tlsEdition = 0
        dialer = nil
        // Most often empty already: giving up even an empty array costs a locked instruction.
        if !others.isEmpty { others = [] }
        tunnel = nil
        renewChannel()
    }

    /// Waits for a shared connection with room, or for a socket of its own. The deadline runs from here on, so
    /// that waiting for the resolver is bounded too.
    func beginWaiting() {
        loop.adopt(self)
        expect(by: begunAt + group.plan.connectTimeout, kind: Deadline.connect)
    }

    /// When its user wants to hear that nothing came.
    func expectForUser(by deadline: UInt64) {
        guard state != .closed else { return }
        // A stream of a shared connection that stood already has no index in the loop: most of them never need one.
        if !hasEntry { loop.adopt(self) }
        expect(by: deadline, kind: Deadline.user)
    }

    /// The nonce that requests on the connection answer: of the shared one where it is a stream.
    var knownNonce: KnownNonce? {
        get { shared.map { $0.knownNonce } ?? ownNonce }
        set {
            if let shared { shared.knownNonce = newValue } else { ownNonce = newValue }
        }
    }

    // MARK: - Connecting

    /// The socket of before is closed, or a shared connection's: the connection waits for another one.
    private func beginAnew() {
        canRead = false
        canWrite = false
        inputEndSeen = false
        state = .connecting
    }

    /// Makes a socket's connection to the first of these addresses that takes it.
    func dial(_ addresses: [UpstreamAddress]) {
        let dialer = Dialer(addresses, for: self)
        self.dialer = dialer
        dialer.begin()
    }

    /// The socket is connected and becomes this connection's own.
    func dialed(_ attempt: Attempt, at address: UpstreamAddress, others: [UpstreamAddress]) {
        dialer = nil
        refusedBy = nil
        group.tell { $0.dialled(self, to: address) }
        self.others = others
        guard loop.handOver(attempt, to: self) else { return lose(Fault(.outOfMemory, retry: .unsent)) }
        if let reason = group.missingKey {
            group.noteTLSFailure(reason)
            return lose(Fault(.secretUnreadable, retry: .unsent))
        }
        if let handshake = group.plan.proxy?.credential?.handshake { return meetProxy(handshake) }
        guard group.plan.usesTLS else { return becomeReady() }
        guard group.plan.proxy != nil else { return beginTLS() }
        state = .tunnelling
        canWrite = true
        beginTunnel()
    }

    func beginTLS() {
        // A connection that a proxy has authenticated is as old as that.
        if group.plan.proxy?.credential?.handshake == nil { tlsEdition = group.tls.edition }
        do {
            tls = try group.makeTLS(over: self, upgrades: wish.onlyHTTP1)
        } catch {
            group.noteTLSFailure("\(error)")
            return lose(Fault(.upstreamTLS, retry: .unsent))
        }
        state = .handshaking
        advanceHandshake()
    }

    /// No address took the connection.
    func dialingFailed(_ fault: Fault) {
        dialer = nil
        group.noteUnreachable(fault)
        if group.rescue(self) { return }
        lose(fault)
    }

    private func advanceHandshake() {
        guard let tls else { return }
        switch tls.handshake() {
        case .done: becomeReady()
        case .wantsRead: canRead = false
        case .wantsWrite: canWrite = false
        case .failed(let fault):
            group.noteTLSFailure("\(fault)")
            tryElsewhere(Fault(.upstreamTLS, retry: .unsent))
        }
    }

    /// Dials the addresses that are left: of several servers, only this one may have a bad certificate, or be shutting down.
    func tryElsewhere(_ fault: Fault) {
        if let address { group.failed(address, .connect) }
        guard !others.isEmpty else { return lose(fault) }
        tunnel = nil
        redial(others)
    }

    /// Dials once more in place of the connection that was made.
    func redial(_ addresses: [UpstreamAddress]) {
        group.tell { $0.redials(self) }
        tls = nil
        start = 0
        end = 0
        // The rest of a CONNECT that one proxy did not take must not stand before the one for the next proxy.
        dropPending()
        inputEnded = false
        loop.closeDescriptor(of: self)
        beginAnew()
        dial(addresses)
    }

    func becomeReady() {
        group.noteReached()
        group.gauges.metrics?.connected(nanoseconds: loop.now - min(loop.now, begunAt))
        if speaksHTTP2 { return group.shareSocket(of: self) }
        group.tell { $0.ready(self) }
        state = .busy
        canWrite = true
        expectNothing()
        user?.upstreamConnected(self)
    }

    private var speaksHTTP2: Bool {
        if let tls { return tls.negotiatedProtocol == "h2" }
        return group.plan.protocols == .http2 && !wish.onlyHTTP1
    }

    // MARK: - Over HTTP/2

    /// Gives the socket to a shared connection that others can use too, and becomes its first user.
    func share(_ shared: UpstreamHTTP2Connection) {
        giveTLS(to: shared)
        dropTimer()
        guard loop.handOver(self, to: shared) else {
            shared.end(.cancel)
            return lose(Fault(.outOfMemory, retry: .unsent))
        }
        loop.adopt(self)
        shared.begin()
        guard wish.leavesHTTP else { return use(shared) }
        guard !shared.isOver else { return lose(Fault(.upstreamClosed, retry: .unsent)) }
        beginAnew()
        expect(by: begunAt + group.plan.connectTimeout, kind: Deadline.connect)
        group.tell { $0.awaitOffer(self) }
    }

    /// A shared connection has room for this request, which has waited for it.
    func use(_ shared: UpstreamHTTP2Connection) {
        assign(shared)
        user?.upstreamConnected(self)
    }

    func assign(_ shared: UpstreamHTTP2Connection) {
        self.shared = shared
        // A stream that is refused was not seen, whether or not the connection is new.
        isPooled = true
        state = .busy
        canWrite = true
        expectNothing()
    }

    /// Sends the head of a request that is passed on, the stream's first word: `buffers.outgoing`, over HTTP/2 alone.
    ///
    /// - Parameters:
    ///   - received: the head's bytes it was written from.
    ///   - connects: the request is for a WebSocket.
    ///   - ended: no body follows.
    /// - Returns: false when the connection is lost.
    func sendHead(
        received: UnsafeRawBufferPointer, route: RoutePlan, acceptsTrailers: Bool, connects: Bool, ended: Bool
    ) -> Bool {
        guard
            let stream = uncountedShared?._withUnsafeGuaranteedRef({
                $0.open(
                    received: received, secretName: route.secretName, secretTarget: route.edits.place == .query,
                    acceptsTrailers: acceptsTrailers, connects: connects, ended: ended)
            })
        else { return false }
        begin(stream, octets: buffers.outgoing.size)
        return true
    }

    /// Read without a count, for calls that do not close this connection, which alone lets go of it.
    private var uncountedShared: Unmanaged<UpstreamHTTP2Connection>? { shared.map(Unmanaged.passUnretained) }

    /// Sends a request of ours, without a body.
    /// - Parameter head: is changed in place over HTTP/2.
    func sendHead(ownRequest head: UnsafeMutableRawBufferPointer) -> Bool {
        guard let shared else { return send(UnsafeRawBufferPointer(head)) }
        guard let stream = shared.open(ownRequest: head) else { return false }
        begin(stream, octets: head.count)
        return true
    }

    private func begin(_ stream: HTTP2Stream, octets: Int) {
        bytesOut &+= UInt64(octets)
        stream.user = self
        self.stream = stream
    }

    func streamReady(_ stream: HTTP2Stream) {
        guard stream === self.stream, state == .busy else { return }
        canRead = true
        if stream.isReset, !hasAnswered, let shared {
            // RFC 9113 §8.7: not processed. Of other resets only those that came with the connection's end may be a matter of chance.
            if stream.resetCode == HTTP2ErrorCode.http11Required.rawValue { group.insistOnHTTP1() }
            if stream.wasNotProcessed { return lose(Fault(.upstreamClosed, retry: .unsent)) }
            if !stream.hasHead { return lose(Fault(.upstreamClosed, retry: shared.isOver ? .ifRepeatable : .never)) }
        }
        user?.upstreamReady(self)
    }

    // MARK: - Events

    override func ready(_ readiness: Readiness) {
        note(readiness)
        switch state {
        case .tunnelling:
            guard flush() else { return tryElsewhere(Fault(.upstreamClosed, retry: .unsent)) }
            advanceTunnel()
        case .handshaking:
            advanceHandshake()
        case .busy:
            if !flush() { abandonOutput() }
            user?.upstreamReady(self)
        case .idle:
            // Whatever else arrives on an idle connection, the end or bytes that nobody asked for, ends its use.
            if canRead, !tookTickets() { close() }
        case .connecting, .closed:
            break
        }
    }

    /// A TLS server sends session tickets when it likes (RFC 8446 §4.6.1), most often behind the handshake, where a connection that was
    /// opened for a proof alone is idle already.
    private func tookTickets() -> Bool {
        guard tls != nil, case .notNow = fill() else { return false }
        releaseEmptyBlock()
        return true
    }

    package override func deadlinePassed(_ kind: UInt8) {
        switch kind {
        case Deadline.connect:
            if seat == .inLine { return lose(UpstreamGroup.busy) }
            dialer?.end(timedOut: true)
            dialer = nil
            if let address { group.failed(address, .connect) }
            let fault = Fault(.upstreamConnectTimeout, retry: .unsent)
            group.noteUnreachable(fault)
            lose(fault)
        case Deadline.idle: close()
        case Deadline.message:
            // From here on it is idle like others, and may be closed for one who waits.
            isInHandshake = false
            expect(by: idleSince + group.plan.idleTimeout, kind: Deadline.idle)
            group.tell { $0.serveLine() }
        default: user?.upstreamTimedOut(self)
        }
    }

    /// A read or write has failed: what that means to the exchange. In TLS 1.3 a server refuses our certificate only now.
    /// - Parameter nothing: no byte of an answer has come.
    func fault(afterFailure nothing: Bool) -> Fault {
        if let failure = tls?.failure, case .alert = failure.kind {
            group.noteTLSFailure("\(failure)")
            return Fault(.upstreamTLS)
        }
        return Fault(.upstreamClosed, retry: nothing ? .ifRepeatable : .never)
    }

    /// Reading has failed in the middle of an answer: what that means, and the upstream's own word for it where it gave one that says
    /// something to the caller.
    var breakOff: (fault: Fault, code: HTTP2ErrorCode?) {
        guard let stream else { return (fault(afterFailure: false), nil) }
        switch stream.resetBy {
        case .connection: return (Fault(.upstreamClosed), nil)
        case .peer: return (Fault(.upstreamClosed), stream.resetCode.flatMap(HTTP2ErrorCode.init(passing:)))
        case .us:
            let lacksRoom = stream.resetCode == HTTP2ErrorCode.enhanceYourCalm.rawValue
            return (Fault(lacksRoom ? .outOfMemory : .upstreamGarbage), nil)
        }
    }

    /// The head of a final answer has come.
    /// - Parameter bytes: what it was parsed from.
    func noteAnswer(_ head: borrowing ResponseHead, in bytes: Span<UInt8>) {
        hasAnswered = true
        address?.answered()
        if let seconds = head.keepAliveTimeout(in: bytes) { announcedTimeout = Int(min(seconds, 86_400)) }
    }

    /// Ends the connection and tells its user.
    func lose(_ fault: Fault) {
        guard state != .closed else { return }
        let user = self.user
        if state != .busy, seat != .inLine { group.gauges.metrics?.failed() }
        // On a pooled connection the server may just have been tired of waiting; on a fresh one it took a request and was gone.
        if state == .busy, stream == nil, requests > 0, !hasAnswered, let address { group.failed(address, .reset) }
        close()
        user?.upstreamLost(self, fault)
    }

    package func close() {
        guard state != .closed else { return }
        dialer?.end(timedOut: false)
        dialer = nil
        state = .closed
        user = nil
        let wasStream = shared.take() != nil
        tearDown()
        group.closed(self)
        if wasStream { group.keep(self) }
    }

    // MARK: - Reuse

    /// Its pool keeps it for the next request: anybody's, or its owner's.
    func becomeIdle() {
        state = .idle
        idleSince = loop.now
        user = nil
        releaseEmptyBlock()
        isFlowing = false
        guard owner?.authenticatesEachRequest == false else {
            let end = loop.now + min(group.plan.keepTimeout, keepLimit)
            return expect(by: min(end, binding?.until ?? .max), kind: Deadline.idle)
        }
        guard isInHandshake else { return expect(by: loop.now + group.plan.idleTimeout, kind: Deadline.idle) }
        // The owner's turn has come; whoever waits for the connection meanwhile has the connect timeout.
        expect(by: loop.now + min(Self.handshakePause, group.plan.connectTimeout / 2), kind: Deadline.message)
    }

    /// How long an owner may take at most between two messages of its handshake, before whom nobody else gets the connection: callers
    /// that displaced one another there would all begin again for ever.
    private static let handshakePause: UInt64 = 1_000_000_000

    /// Takes the place of an idle connection, with its socket and everything that is known of it.
    func goOn(with other: UpstreamConnection) {
        other.giveTLS(to: self)
        tlsEdition = other.tlsEdition
        requests = other.requests
        hasAnswered = other.hasAnswered
        ownNonce = other.ownNonce
        binding = other.binding
        tunnel = other.tunnel.take()
        announcedTimeout = other.announcedTimeout
        let isOurs = loop.handOver(other, to: self)
        loop.adopt(other)
        other.close()
        guard isOurs else { return lose(Fault(.outOfMemory, retry: .unsent)) }
        isPooled = true
        state = .busy
        canWrite = true
        expectNothing()
        user?.upstreamConnected(self)
    }

    /// Carries one more request of its user, whose answer has been read to its end.
    func goOn() {
        releaseEmptyBlock()
        isFlowing = false
        isPooled = true
        expectNothing()
    }

    /// The connection has waited for its request's credential as idle ones wait for a request.
    func countAsPooled() { isPooled = true }

    /// The hash of the server's certificate that channels are bound by; nil where there is none.
    var serverEndPoint: [UInt8]? { tls?.serverEndPoint }

    func takeUp(_ user: any UpstreamUser) {
        state = .busy
        isPooled = true
        isInHandshake = false
        self.user = user
        expectNothing()
    }
}
