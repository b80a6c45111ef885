internal import CLinux
internal import Glibc
internal import HTTP1
internal import HTTP2
internal import Reactor
internal import TLS

/// One connection to an upstream or an issuer: connects, does the TLS handshake, then carries one request at a time, and between
/// requests waits in its group's pool.
///
/// Over HTTP/2 it is one stream of a shared session: connected as soon as the session is, and never pooled.
final class UpstreamConnection: Stream, HTTP2StreamUser, Waiter {
    // As a caller's connection holds its loop: a cycle until it closes.
    let group: UpstreamGroup
    private(set) var state = State.connecting
    /// Strong, so a cycle while it is set: both ends cut it, the user by giving the connection back or dropping it, the connection by
    /// being lost. A weak one would make every reference count of the user go through a side table.
    var user: (any UpstreamUser)?
    /// It has carried a request before: a loss before the first byte of an answer may be a stale connection.
    private(set) var isPooled = false
    var requests = 0
    /// Where it leads, once it is connected.
    private(set) var place: UpstreamAddress?
    /// Whose requests alone it carries; nil: anybody's.
    var owner: UpstreamOwner?
    /// Its server has asked for the next message of its owner's authentication, which has not come yet.
    var isInHandshake = false
    /// When it became idle last.
    private(set) var idleSince: UInt64 = 0
    /// Seconds that its server has announced to keep it without a request, at most a day.
    private(set) var announcedTimeout: Int?
    /// Its request cannot be sent again, so it must not go out on a connection that may be stale.
    var insistsOnRecent = false
    /// An answer's head has come on it.
    private var hasAnswered = false
    /// It will leave HTTP, which only HTTP/1.1 can do on a connection of its own.
    var insistsOnHTTP1 = false
    /// Its request wants to leave HTTP.
    var leavesHTTP = false
    /// Its request must not go out on a connection that has carried another one.
    var insistsOnNew = false
    /// It counts against the upstream's limit, or waits because of it.
    var holdsSocket = false
    var waitingPlace: Int?
    var isWaiting: Bool { waitingPlace != nil }
    /// The connection that carries it over HTTP/2.
    private(set) var session: UpstreamSession?
    /// Of the group, when it was made.
    private(set) var tlsEdition: UInt64 = 0
    private var dialer: Dialer?
    private var begunAt: UInt64
    /// Places that are left to try when this one cannot do TLS.
    private var others: [UpstreamAddress] = []
    /// Where its request was lost before.
    var avoided: UpstreamAddress?

    /// While it asks a proxy for a way through.
    private var tunnel: ProxyTunnelBox?

    enum State { case connecting, tunnelling, handshaking, busy, idle, closed }

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
        place = nil
        owner = nil
        isInHandshake = false
        idleSince = 0
        announcedTimeout = nil
        insistsOnRecent = false
        hasAnswered = false
        insistsOnHTTP1 = false
        leavesHTTP = false
        insistsOnNew = false
        holdsSocket = false
        waitingPlace = nil
        session = nil
        tlsEdition = 0
        dialer = nil
        // Most often empty already: giving up even an empty array costs a locked instruction.
        if !others.isEmpty { others = [] }
        avoided = nil
        tunnel = nil
        renewStream()
    }

    /// A session that has room is not there: it waits for one, or for a socket of its own. From here on, so that waiting for the resolver is
    /// bounded too.
    func beginWaiting() {
        loop.adopt(self)
        expect(by: begunAt + group.plan.connectTimeout, kind: Deadline.connect)
    }

    /// When its user wants to hear that nothing came.
    func expectForUser(by deadline: UInt64) {
        guard state != .closed else { return }
        // A stream of a session that stood already has no place in the loop: most of them never need one.
        if !hasPlace { loop.adopt(self) }
        expect(by: deadline, kind: Deadline.user)
    }

    // MARK: - Connecting

    /// Makes the connection to the first of these places that takes it.
    func dial(_ places: [UpstreamAddress]) {
        let dialer = Dialer(places, for: self)
        self.dialer = dialer
        dialer.begin()
    }

    /// The socket is connected and becomes this connection's own.
    func dialed(_ attempt: Attempt, at place: UpstreamAddress, others: [UpstreamAddress]) {
        dialer = nil
        self.place = place
        self.others = others
        guard loop.handOver(attempt, to: self) else { return lose(Fault(.outOfMemory, retry: .unsent)) }
        if let reason = group.missingKey {
            group.noteTLSFailure(reason)
            return lose(Fault(.secretUnreadable, retry: .unsent))
        }
        guard group.plan.usesTLS else { return becomeReady() }
        guard group.plan.proxy != nil else { return beginTLS() }
        state = .tunnelling
        canWrite = true
        tunnel = ProxyTunnelBox()
        let request = ProxyTunnel.request(authority: group.plan.authority, credential: group.proxyLine)
        guard request.withUnsafeBytes({ send($0) }) else {
            return tryElsewhere(Fault(.upstreamRefused, retry: .unsent))
        }
    }

    /// Reads the proxy's answer.
    private func advanceTunnel() {
        while state == .tunnelling, let tunnel {
            switch end > start ? tunnel.machine.judge(input.octets) : .needsMore {
            case .open(let length):
                start += length
                self.tunnel = nil
                releaseEmptyBlock()
                return beginTLS()
            case .skip(let length): start += length
            case .refused(let status):
                group.noteTLSFailure("the proxy answered CONNECT with \(status)")
                return lose(Fault(.proxyRefused, retry: .unsent, receivedStatus: status))
            case .broken: return lose(Fault(.upstreamGarbage, retry: .unsent))
            case .needsMore:
                compact()
                switch fill() {
                case .bytes: continue
                case .notNow: return
                case .noBuffer: return lose(Fault(.outOfMemory, retry: .unsent, retryAfter: 1))
                case .ended, .truncated, .failed, .blockFull:
                    return tryElsewhere(Fault(.upstreamClosed, retry: .unsent))
                }
            }
        }
    }

    private func beginTLS() {
        tlsEdition = group.tlsEdition
        do {
            tls = try group.makeTLS(descriptor: descriptor, upgrades: insistsOnHTTP1)
        } catch {
            group.noteTLSFailure("\(error)")
            return lose(Fault(.upstreamTLS, retry: .unsent))
        }
        state = .handshaking
        advanceHandshake()
    }

    /// No place took the connection.
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

    /// One server of several may be the only one with a bad certificate, or in the middle of its end.
    private func tryElsewhere(_ fault: Fault) {
        guard let place, !others.isEmpty else {
            if let place { group.failed(place, .connect) }
            return lose(fault)
        }
        group.failed(place, .connect)
        place.inFlight -= 1
        self.place = nil
        tls = nil
        tunnel = nil
        start = 0
        end = 0
        inputEnded = false
        loop.closeDescriptor(of: self)
        canRead = false
        canWrite = false
        inputEndSeen = false
        state = .connecting
        dial(others)
    }

    private func becomeReady() {
        group.noteReached()
        group.metrics?.connected(nanoseconds: loop.now - min(loop.now, begunAt))
        if speaksHTTP2 { return group.shareSocket(of: self) }
        if !insistsOnHTTP1 { group.learned(http2: false, from: self) }
        state = .busy
        canWrite = true
        expectNothing()
        user?.upstreamConnected(self)
    }

    private var speaksHTTP2: Bool {
        if let tls { return tls.negotiatedProtocol == "h2" }
        return group.plan.protocols == .http2 && !insistsOnHTTP1
    }

    // MARK: - Over HTTP/2

    /// Gives the socket to a session that others can use too, and becomes its first user.
    func share(_ session: UpstreamSession) {
        session.tls = tls
        tls = nil
        dropTimer()
        guard loop.handOver(self, to: session) else {
            session.end(.cancel)
            return lose(Fault(.outOfMemory, retry: .unsent))
        }
        loop.adopt(self)
        session.begin()
        guard leavesHTTP else { return use(session) }
        guard !session.isOver else { return lose(Fault(.upstreamClosed, retry: .unsent)) }
        state = .connecting
        expect(by: begunAt + group.plan.connectTimeout, kind: Deadline.connect)
        group.take(session, for: self)
    }

    /// The session that it began is the others': it makes a connection of its own.
    func beginAnew() {
        place?.inFlight -= 1
        place = nil
        canRead = false
        canWrite = false
        inputEndSeen = false
        state = .connecting
    }

    /// A session has room for this request, which has waited for it.
    func use(_ session: UpstreamSession) {
        assign(session)
        user?.upstreamConnected(self)
    }

    func assign(_ session: UpstreamSession) {
        self.session = session
        if place == nil, let shared = session.place {
            place = shared
            shared.inFlight += 1
        }
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
            let stream = uncountedSession?._withUnsafeGuaranteedRef({
                $0.open(
                    received: received, secretName: route.secretName, secretTarget: route.edits.place == .query,
                    acceptsTrailers: acceptsTrailers, connects: connects, ended: ended)
            })
        else { return false }
        begin(stream, octets: buffers.outgoing.size)
        return true
    }

    /// Read without a count, for calls that do not close this connection, which alone lets go of it.
    private var uncountedSession: Unmanaged<UpstreamSession>? { session.map(Unmanaged.passUnretained) }

    /// Sends a request of ours, without a body.
    /// - Parameter head: is changed in place over HTTP/2.
    func sendHead(ownRequest head: UnsafeMutableRawBufferPointer) -> Bool {
        guard let session else { return send(UnsafeRawBufferPointer(head)) }
        guard let stream = session.open(ownRequest: head) else { return false }
        begin(stream, octets: head.count)
        return true
    }

    private func begin(_ stream: HTTP2Stream, octets: Int) {
        bytesOut &+= UInt64(octets)
        stream.user = self
        lane = stream
    }

    func streamReady(_ stream: HTTP2Stream) {
        guard stream === lane, state == .busy else { return }
        canRead = true
        if stream.isReset, !hasAnswered, let session {
            // RFC 9113 §8.7: not processed. Of other resets only those that came with the connection's end may be a matter of chance.
            if stream.resetCode == HTTP2ErrorCode.http11Required.rawValue { group.insistOnHTTP1() }
            if stream.wasNotProcessed { return lose(Fault(.upstreamClosed, retry: .unsent)) }
            if !stream.hasHead { return lose(Fault(.upstreamClosed, retry: session.isOver ? .ifRepeatable : .never)) }
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
            // Whatever arrives on an idle connection, the end or bytes that nobody asked for, ends its use.
            if canRead { group.discard(self) }
        case .connecting, .closed:
            break
        }
    }

    override func deadlinePassed(_ kind: UInt8) {
        switch kind {
        case Deadline.connect:
            if isWaiting { return lose(UpstreamGroup.busy) }
            dialer?.end(timedOut: true)
            dialer = nil
            if let place { group.failed(place, .connect) }
            let fault = Fault(.upstreamConnectTimeout, retry: .unsent)
            group.noteUnreachable(fault)
            lose(fault)
        case Deadline.idle: group.discard(self)
        case Deadline.message:
            // From here on it is idle like others, and may be closed for one who waits.
            isInHandshake = false
            expect(by: idleSince + group.plan.idleTimeout, kind: Deadline.idle)
            group.serveWaitingSoon()
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
        guard let lane else { return (fault(afterFailure: false), nil) }
        switch lane.resetBy {
        case .connection: return (Fault(.upstreamClosed), nil)
        case .peer: return (Fault(.upstreamClosed), lane.resetCode.flatMap(HTTP2ErrorCode.init(passing:)))
        case .us:
            let lacksRoom = lane.resetCode == HTTP2ErrorCode.enhanceYourCalm.rawValue
            return (Fault(lacksRoom ? .outOfMemory : .upstreamGarbage), nil)
        }
    }

    /// The head of a final answer has come.
    /// - Parameter bytes: what it was parsed from.
    func noteAnswer(_ head: borrowing ResponseHead, in bytes: Span<UInt8>) {
        hasAnswered = true
        place?.answered()
        if let seconds = head.keepAliveTimeout(in: bytes) { announcedTimeout = Int(min(seconds, 86_400)) }
    }

    /// Ends the connection and tells its user.
    func lose(_ fault: Fault) {
        guard state != .closed else { return }
        let user = self.user
        if state != .busy, !isWaiting { group.metrics?.failed() }
        // On a pooled connection the server may just have been tired of waiting; on a fresh one it took a request and was gone.
        if state == .busy, lane == nil, requests > 0, !hasAnswered, let place { group.failed(place, .reset) }
        close()
        user?.upstreamLost(self, fault)
    }

    func close() {
        guard state != .closed else { return }
        dialer?.end(timedOut: false)
        dialer = nil
        if state != .idle { place?.inFlight -= 1 }
        state = .closed
        user = nil
        let wasStream = session.take() != nil
        group.open -= 1
        tearDown()
        group.closed(self)
        if wasStream { group.keep(self) }
    }

    // MARK: - Reuse

    func becomeIdle(until deadline: UInt64) {
        state = .idle
        idleSince = loop.now
        user = nil
        place?.inFlight -= 1
        releaseEmptyBlock()
        isFlowing = false
        expect(by: deadline, kind: Deadline.idle)
    }

    /// It is its owner's turn, who has this long.
    func expectNextMessage(by deadline: UInt64) { expect(by: deadline, kind: Deadline.message) }

    /// Takes the place of an idle connection, with its socket and everything that is known of it.
    func goOn(with other: UpstreamConnection) {
        tls = other.tls
        other.tls = nil
        place = other.place
        place?.inFlight += 1
        tlsEdition = other.tlsEdition
        requests = other.requests
        hasAnswered = other.hasAnswered
        announcedTimeout = other.announcedTimeout
        holdsSocket = true
        other.holdsSocket = false
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

    func takeUp(_ user: any UpstreamUser) {
        state = .busy
        isPooled = true
        isInHandshake = false
        place?.inFlight += 1
        self.user = user
        expectNothing()
    }
}
