internal import Glibc
internal import Reactor
internal import TLS

/// A caller's connection between `accept` and its protocol.
///
/// In this order, each step bounded in bytes and all of them in time: the PROXY header, the caller's first TLS message, the handshake,
/// and the choice of the protocol, by ALPN or, in clear text, by the first bytes. Then `DataLoop.serve` hands the socket over with its
/// TLS state and with every byte that was read and not used. Listeners that need none of this never make one.
final class Arrival: Channel {
    unowned(unsafe) let data: DataLoop
    let listener: ListenerPlan
    private(set) var peer: CallerPeer
    private var step: Step
    /// Not closed since it was queued for its handshake.
    var awaitsTurn: Bool { step == .turn }
    /// The caller's own hello, once it is read: before a certificate is chosen.
    private(set) var hello: ClientHello?
    private var identity: ServerIdentity?
    /// The connection to this host is opened by us: its upstream proves itself before a leaf is shown.
    private var intercepted: (destination: Destination, route: RoutePlan)?
    private var shown: ServerIdentity?
    private var proof: UpstreamConnection?
    private var drained = 0
    let startedAt: UInt64

    enum Step { case proxyHeader, first, hello, proof, turn, handshake, preface, refusing, over }
    enum Deadline { static let arrival: UInt8 = 1, idle: UInt8 = 2, close: UInt8 = 3 }

    /// Nanoseconds from `accept` to the end of the handshake.
    static let timeout: UInt64 = 10_000_000_000

    init(data: DataLoop, listener: ListenerPlan, peer: CallerPeer) {
        self.data = data
        self.listener = listener
        self.peer = peer
        step = listener.proxyProtocol != nil ? .proxyHeader : Self.firstStep(listener)
        startedAt = data.loop.now
        super.init(loop: data.loop, buffers: data.buffers)
    }

    private static func firstStep(_ listener: ListenerPlan) -> Step {
        if listener.forward.mode == .transparent { return .first }
        return listener.tls != nil ? .hello : .preface
    }

    func begin() {
        canWrite = true
        expectFirstBytes()
    }

    /// Takes over a connection whose CONNECT was answered: what follows is the caller's handshake with the host.
    func begin(intercepting destination: Destination, for route: RoutePlan) {
        step = .hello
        intercepted = (destination, route)
        expectFirstBytes()
        advance()
    }

    private func expectFirstBytes() {
        // In clear text a connection may be opened ahead of its use, and then it is as idle as one between two requests.
        if step == .preface || step == .first, start == end {
            expect(by: loop.now + DataLoop.idleCallerTimeout, kind: Deadline.idle)
        } else {
            expect(by: startedAt + Self.timeout, kind: Deadline.arrival)
        }
    }

    /// Nothing has come of it yet.
    private var isIdle: Bool { (step == .preface || step == .first) && start == end }

    /// The loop drains: one that is not used yet has a moment to be.
    func retire() {
        if isIdle { expect(by: loop.now + data.farewell, kind: Deadline.idle) }
    }

    // MARK: - Events

    override func ready(_ readiness: Readiness) {
        note(readiness)
        if !readiness.isDisjoint(with: [.failed, .hungUp]) { return close() }
        advance()
    }

    override func deadlinePassed(_ kind: UInt8) {
        if kind == Deadline.arrival, step != .proxyHeader { data.noteGlitch(.slowArrival) }
        close()
    }

    /// Takes steps until one has to wait.
    func advance() {
        while true {
            switch step {
            case .proxyHeader: guard readProxyHeader() else { return }
            case .first: guard readFirst() else { return }
            case .hello: guard readHello() else { return }
            case .proof, .turn, .over: return
            case .handshake: return shake()
            case .preface: return choose()
            case .refusing: return drain()
            }
        }
    }

    /// - Returns: false when there is nothing to read now, or the connection is over.
    private func readMore() -> Bool {
        switch fill() {
        case .bytes: return true
        case .notNow:
            releaseEmptyBlock()
            return false
        case .blockFull, .noBuffer, .ended, .truncated, .failed:
            close()
            return false
        }
    }

    // MARK: - PROXY

    private func readProxyHeader() -> Bool {
        guard let plan = listener.proxyProtocol else { return false }
        switch ProxyHeader.read(input.octets, versions: plan.versions) {
        case .incomplete: return readMore()
        case .refused:
            data.noteGlitch(.proxyHeader)
            close()
            return false
        case .complete(let header):
            start += header.length
            // The bytes behind the header go to the block's front: ranges of a head are counted from there.
            compact()
            identify(header.origin)
            guard data.count(&peer) else {
                refuse(Fault(.tooManyConnections, retryAfter: 1))
                return false
            }
            step = Self.firstStep(listener)
            expectFirstBytes()
            return true
        }
    }

    private func identify(_ origin: ProxyHeader.Origin) {
        switch origin {
        // The proxy's own connection: what the socket says is true.
        case .proxy: break
        case .unknown:
            peer.address = nil
            peer.isLocal = false
        case .caller(let address):
            // Not even by an address block that holds it may a claimed loopback address be admitted: it is the proxy's machine that the
            // caller is local to, at best.
            peer.address = address.isLoopback || address.isUnspecified ? nil : address
            peer.isLocal = false
        }
    }

    // MARK: - TLS

    private func readHello() -> Bool {
        switch ClientHello.read(input.octets) {
        case .incomplete: return readMore()
        case .notTLS:
            // Most often a request in clear text: somebody wrote http: where https: is needed.
            data.noteGlitch(.clearTextOnTLS)
            let letter = input.first.map { (0x41...0x5a).contains($0 & 0xdf) } ?? false
            if letter { refuse(Self.clearTextAnswer) } else { close() }
            return false
        case .unreadable: hello = ClientHello()
        case .complete(let read): hello = read
        }
        if listener.forward.mode == .transparent, intercepted == nil { return chooseByName() }
        if let intercepted { return prove(intercepted.destination, intercepted.route) }
        takeTurn()
        return false
    }

    /// The handshake's arithmetic is the most that anybody can make us do with few bytes: in turns, a few at a time.
    private func takeTurn() {
        step = .turn
        data.queueHandshake(self)
    }

    // MARK: - Redirected connections

    /// The protocol that the caller speaks, by its first byte: a firewall that redirects a port may not know it.
    private func readFirst() -> Bool {
        guard let first = input.first else { return readMore() }
        peer.destination = loop.kernel.originalDestination(descriptor)
        // Not redirected at all: it would lead back here for ever.
        guard let destination = peer.destination, !isOurs(destination) else {
            data.noteGlitch(.notRedirected)
            close()
            return false
        }
        step = first == 22 ? .hello : .preface
        expectFirstBytes()
        return true
    }

    /// The listener may stand at every address; with connection tracking the kernel knows an original destination for each connection.
    private func isOurs(_ destination: SocketAddress) -> Bool {
        destination == listener.address
            || destination.port == listener.address.port && destination.isLocal(in: data.local)
    }

    /// A TLS connection of a caller that means somebody else: opened where that is wanted, passed on as it is otherwise.
    private func chooseByName() -> Bool {
        let plan = listener.forward
        // An address is no server name (RFC 6066 §3): whoever means one by its number sends none.
        let named = hello?.serverName.map { Destination(authority: $0.utf8, defaultPort: peer.destination?.port) }
        if let destination = named ?? peer.destination.map({ Destination($0) }), let interception = plan.interception,
            interception.covers(destination.host), let route = data.route(for: destination, of: listener)
        {
            intercepted = (destination, route)
            return prove(destination, route)
        }
        guard plan.tunnelsUnmatched, let destination = peer.destination else {
            data.noteGlitch(.unmatchedConnection)
            close()
            return false
        }
        step = .over
        data.tunnel(self, to: Destination(destination))
        return false
    }

    // MARK: - Interception

    private func prove(_ destination: Destination, _ route: RoutePlan) -> Bool {
        // A caller that asks for one host inside of a connection to another is answered by neither.
        guard let interception = listener.forward.interception,
            hello?.serverName ?? destination.host == destination.host
        else {
            data.noteGlitch(.unmatchedConnection)
            close()
            return false
        }
        if let leaf = interception.leaf(for: destination.host, now: seconds) {
            shown = leaf
            takeTurn()
            return false
        }
        guard route.upstream.usesTLS else {
            mint()
            return false
        }
        step = .proof
        proof = data.group(route.upstream).take(for: self, fresh: false)
        if proof?.state == .busy { proven() }
        return false
    }

    private func proven() {
        guard let connection = proof else { return }
        proof = nil
        connection.user = nil
        if connection.isUntouched { connection.group.give(connection) } else { connection.close() }
        mint()
    }

    private func mint() {
        guard let intercepted, let interception = listener.forward.interception else { return close() }
        do {
            shown = try interception.verified(intercepted.destination.host, now: seconds)
            takeTurn()
        } catch {
            data.noteHandshakeFailure(error, listener: listener)
            close()
        }
    }

    private var seconds: Int64 { loop.kernel.wallMilliseconds() / 1000 }

    /// Its turn has come: chooses the certificate and begins.
    func beginHandshake() {
        guard step == .turn, let identity = shown ?? listener.tls?.identity(for: hello?.serverName) else { return }
        self.identity = identity
        do {
            tls = try TLSConnection(server: identity.configuration, wire: self, received: Array(input))
        } catch {
            return close()
        }
        if let block { buffers.give(block) }
        (block, start, end) = (nil, 0, 0)
        step = .handshake
        advance()
    }

    private func shake() {
        guard let tls else { return }
        switch tls.handshake() {
        case .wantsRead: canRead = false
        case .wantsWrite: outputIsFull()
        case .failed(let fault):
            data.noteHandshakeFailure(fault, listener: listener)
            // OpenSSL has sent the alert that says why; a reset must not overtake it.
            self.tls = nil
            step = .refusing
            linger()
        case .done:
            peer.isSecure = true
            if let listenerTLS = listener.tls, let identity {
                peer.tls = CallerTLS(tls, identity: identity, of: listenerTLS, serverName: hello?.serverName)
            }
            if let intercepted {
                peer.authority = Array(intercepted.destination.host.utf8)
                peer.authorityPort = intercepted.destination.port
            }
            // Bytes that came behind the handshake may lie inside OpenSSL already, and no edge will tell of them.
            canRead = true
            if tls.negotiatedProtocol == "h2" { return serve(.http2) }
            // Without ALPN there is no HTTP/2 over TLS (RFC 9113 section 3.2).
            guard listener.speaks(.http1) else { return refuse(Fault(.unsupportedVersion)) }
            serve(.http1)
        }
    }

    // MARK: - Clear text

    private func choose() {
        guard listener.speaks(.http2) else { return serve(.http1) }
        while true {
            switch HTTP2Preface.match(input) {
            case .whole: return serve(.http2)
            case .partly: break
            case .none:
                guard listener.speaks(.http1) else { return refuse(Fault(.unsupportedVersion)) }
                return serve(.http1)
            }
            let wasIdle = start == end
            guard readMore() else {
                if step == .preface, !wasIdle {
                    expect(by: max(startedAt + Self.timeout, loop.now), kind: Deadline.arrival)
                }
                return
            }
        }
    }

    // MARK: - Ends

    private func serve(_ version: ApplicationProtocol) {
        step = .over
        data.serve(self, by: version)
    }

    private static let clearTextAnswer: [UInt8] = {
        let body = "This port speaks TLS: use https:// here.\n"
        let head =
            "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: \(body.utf8.count)\r\n"
            + "Connection: close\r\n\r\n"
        return Array((head + body).utf8)
    }()

    /// Answers what can be answered, then reads for a moment what was still sent: closing at once would reset the connection, and the reset
    /// can overtake the answer.
    private func refuse(_ fault: Fault) {
        // Before the handshake a TLS caller could not read it.
        if listener.tls != nil, tls == nil { return close() }
        data.metrics.answered(fault.kind)
        refuse(fault.message(pseudonym: data.pseudonym, route: nil, headOnly: false, close: true))
    }

    private func refuse(_ message: [UInt8]) {
        step = .refusing
        guard message.withUnsafeBytes({ send($0) }), !hasPending else { return close() }
        tls?.shutdown()
        linger()
    }

    private func linger() {
        loop.kernel.shutdownWriting(descriptor)
        expect(by: loop.now + DataLoop.lingerTimeout, kind: Deadline.close)
        drain()
    }

    private func drain() {
        while true {
            (start, end) = (0, 0)
            guard case .bytes(let count) = fill() else {
                if canRead || inputEnded { close() }
                return
            }
            drained += count
            if drained > DataLoop.lingerBytes { return close() }
        }
    }

    func close() {
        step = .over
        proof?.close()
        proof = nil
        tearDown()
        data.arrivalClosed(self)
    }
}

/// The upstream of an intercepted host, on the way to proving itself.
extension Arrival: UpstreamUser {
    func upstreamConnected(_ connection: UpstreamConnection) {
        if connection === proof, step == .proof { proven() }
    }

    func upstreamReady(_ connection: UpstreamConnection) {}

    func upstreamLost(_ connection: UpstreamConnection, _ fault: Fault) {
        guard connection === proof, step == .proof else { return }
        proof = nil
        // No leaf for a host that could not prove itself: to the caller the connection fails, as it would have without us.
        data.noteUnprovenUpstream(of: listener, host: intercepted?.destination.host ?? "", fault)
        close()
    }

    func upstreamTimedOut(_ connection: UpstreamConnection) {}
}
