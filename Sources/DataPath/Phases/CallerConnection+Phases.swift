internal import HTTP1
internal import HTTP2
internal import HotCache
internal import Octets
internal import Reactor
internal import Telemetry

/// The phases of a request before its token, one by one (`RequestPhases.swift` has their order).
extension CallerConnection {
    // MARK: - Frame

    func frame() -> Fault? {
        exchange.request.minorVersion = data.requestHead.minorVersion
        exchange.request.keepsAlive = data.requestHead.keepAlive
        exchange.request.asksToClose = !exchange.request.keepsAlive
        exchange.request.framing = stream.map(framing) ?? data.requestHead.framing
        exchange.request.expectsContinue = data.requestHead.expectsContinue && exchange.request.minorVersion >= 1
        beginRequestBody()
        exchange.request.bodyAt = exchange.request.headLength
        exchange.request.method = methodOfHead()
        exchange.request.upgrades = asksUpgrade()
        exchange.record.noteHead(method: data.requestHead.method, target: data.requestHead.path)
        if data.requestHead.carriesIdentifiers { noteOwnIdentifiers() }
        return checkForm()
    }

    private func framing(of stream: HTTP2Stream) -> RequestFraming {
        if let length = stream.contentLength { return .length(length) }
        // A short body may have come in one read with the head, its end and its trailers too.
        return stream.isDrained && end == exchange.request.headLength && stream.trailers.isEmpty ? .none : .chunked
    }

    private func methodOfHead() -> Method {
        switch data.requestHead.knownMethod {
        case .get: .get
        case .head: .head
        default: .other
        }
    }

    // MARK: - Route

    /// The first route that matches wins.
    func findRoute() -> RoutePlan? {
        // The listener holds it, and is another one only from the next request on.
        Unmanaged.passUnretained(listener.table)._withUnsafeGuaranteedRef {
            $0.first(for: data.requestHead, in: input, port: namedPort)
        }
    }

    /// The port of the server that the request is for, where callers take us for a proxy or do not know of us; nil where they name us. 0 is
    /// nobody's.
    private var namedPort: UInt16? {
        switch listener.forward.mode {
        case .gateway: return nil
        case .transparent: return peer.destination?.port ?? 0
        case .forward where peer.authority != nil: return peer.authorityPort
        case .forward: return data.requestHead.namedPort(input.octets, schemePort: stream?.schemePort) ?? 0
        }
    }

    /// The host that was asked for, without its port: the target's authority in absolute form, the Host field otherwise.
    var requestHost: UnsafeRawBufferPointer { hostName(of: data.requestHead, in: input) }

    /// The path that was asked for, as received, with its query.
    var requestPath: UnsafeRawBufferPointer { input[data.requestHead.path] }

    // MARK: - Admit

    func admit(to route: RoutePlan) -> Fault? {
        // Field by field, here and below: a copy of the whole would count its references.
        if let fault = admitPeer(to: route) { return fault }
        if let token = route.admission.token, let fault = admitToken(token) { return fault }
        let checksHost = listener.checksHost(on: route)
        if checksHost, !listener.serves(data.requestHead, in: input, on: route, tls: peer.tls) {
            data.noteForeignHost(requestHost, listener: listener, route: route, correlationFields)
            return Fault(.misdirected, detail: "name the host in 'hosts' of the route or of its listener")
        }
        return route.admission.browsers ? nil : refuseOtherSites(on: route)
    }

    /// Judges a request by the `Origin` and `Sec-Fetch-Site` in which browsers, and programs that speak as browsers do, tell of its
    /// page.
    private func refuseOtherSites(on route: RoutePlan) -> Fault? {
        if data.requestHead.contains(.origin) {
            // Without a look at the Host, a page that had its name lead here would be as much at home as we are.
            guard listener.knowsItsHosts(on: route),
                listener.serves(data.requestHead, in: input, on: route, tls: peer.tls)
            else { return Fault(.crossSite) }
            for index in 0..<data.requestHead.fieldCount where data.requestHead[index].known == .origin {
                guard isOwnOrigin(input[data.requestHead[index].value]) else { return Fault(.crossSite) }
            }
        }
        guard data.requestHead.contains(.secFetchSite) else { return nil }
        for index in 0..<data.requestHead.fieldCount where data.requestHead[index].known == .secFetchSite {
            let value = input[data.requestHead[index].value]
            if !value.elementsEqual("same-origin".utf8), !value.elementsEqual("none".utf8) { return Fault(.crossSite) }
        }
        return nil
    }

    /// The very address that was called: what a WebSocket's program or a page of the upstream's own sends (RFC 6454 section 6.1).
    private func isOwnOrigin(_ origin: UnsafeRawBufferPointer) -> Bool {
        guard let range = data.requestHead.authority ?? data.requestHead.host else { return false }
        let scheme: [UInt8] = peer.isSecure ? Self.secureScheme : Self.clearScheme
        guard origin.count > scheme.count,
            equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: origin[..<scheme.count]), scheme)
        else { return false }
        let port = peer.isSecure ? Self.securePort : Self.clearPort
        let named = UnsafeRawBufferPointer(rebasing: origin[scheme.count...]).without(port).octets
        let own = input[range].without(port).octets
        guard named.count == own.count else { return false }
        for index in named.indices where named[index].asciiLowercased != own[index].asciiLowercased { return false }
        return true
    }

    private static let clearScheme = Array("http://".utf8)
    private static let secureScheme = Array("https://".utf8)
    private static let clearPort = Array(":80".utf8)
    private static let securePort = Array(":443".utf8)

    /// Admits a caller by what its connection says of it, without a request.
    func admitPeer(to route: RoutePlan) -> Fault? {
        switch route.admission.from {
        case .any: break
        case .local: guard peer.isLocal else { return Fault(.callerRefused) }
        case .networks(let ranges):
            // A unix socket has no address, so no range holds for it.
            guard let address = peer.address, ranges.contains(where: { $0.contains(address) }) else {
                return Fault(.callerRefused)
            }
        }
        if !route.admission.unixUsers.isEmpty {
            guard let user = peer.user, route.admission.unixUsers.contains(user) else { return Fault(.callerRefused) }
        }
        if !route.admission.tlsNames.isEmpty {
            guard let tls = peer.tls, route.admission.tlsNames.contains(where: { tls.names.contains($0) }) else {
                return Fault(.callerRefused)
            }
            // The name was vouched for by the authority of the certificate that the caller was shown. A host that another certificate
            // stands for may trust another authority.
            guard tls.answers(for: requestHost) else { return Fault(.misdirected) }
        }
        return nil
    }

    // MARK: - Guard

    func guardCredential(of route: RoutePlan) -> Fault? {
        if data.requestHead.contains(.via) {
            let mark = data.viaMark
            if data.requestHead.viaNames(mark.span, in: input.octets) { return Fault(.loopDetected) }
        }
        if let lenient = listener.table.lenient,
            lenient.other(than: route, for: data.requestHead, in: input, port: namedPort, scratch: buffers.scratch)
                != nil
        {
            return Fault(.unsafePath, detail: "other servers read this path as another route's")
        }
        guard route.identity != nil else { return nil }
        // TRACE would send the credential back to the caller (RFC 9110 §9.3.8).
        if data.requestHead.knownMethod == .trace { return Fault(.traceRefused) }
        if route.strictPaths, validateStrictPath(requestPath.octets) != .clean { return Fault(.unsafePath) }
        return nil
    }

    // MARK: - Replay

    func prepareReplay(on route: RoutePlan) {
        // A connection that has left HTTP carries octets that nobody could look into.
        if route.conceals { exchange.request.upgrades = false }
        exchange.machine.idempotent = isIdempotent()
        exchange.machine.body = exchange.request.framing == .none ? .none : .retained
        exchange.machine.replay = route.identity == nil ? .never : route.replay
        if exchange.machine.replay == .once, !route.replayMethods.isEmpty {
            let method = input[data.requestHead.method]
            if !route.replayMethods.contains(where: { equals(method, $0) }) { exchange.machine.replay = .never }
        }
        // A proxy that asks for answers may refuse any request, whatever the route replays.
        let isKept = exchange.machine.replay == .once || route.upstream.mayBeChallengedByProxy
        exchange.request.retainsBody = isKept && exchange.request.framing != .none
        if case .length(let length) = exchange.request.framing, length > UInt64(route.replayBody) {
            // Known from the start not to fit: nothing of it is kept, and it is lost with its first byte. Until then, as with
            // `Expect: 100-continue`, even a large request may be sent again.
            exchange.request.retainsBody = false
        }
        chooseCaution(on: route)
    }

    /// RFC 9110 §9.2.2.
    private func isIdempotent() -> Bool {
        switch data.requestHead.knownMethod {
        case .get, .head, .put, .delete, .options, .trace: true
        default: false
        }
    }

    // MARK: - Token

    func lookUpToken(for route: RoutePlan) -> Exchange.Lookup {
        guard route.identity?.isTokenless == false else { return .unneeded }
        // Each request has its own, and the keeper alone can fetch it.
        if route.identity?.isOneTime == true { return lookUpOneTime(on: route) }
        if route.subject != nil { return lookUpSubject(on: route) }
        if let slot = route.slot { return lookUp(slot) }
        return data.desk.lookUpLearned(route, path: requestPath, method: input[data.requestHead.method], caller: self)
    }

    private func lookUpOneTime(on route: RoutePlan) -> Exchange.Lookup {
        guard !route.isList else { return .open }
        return route.identity?.bindsConnections == true ? .bound : .cold
    }

    /// Without the desk: a hit is none of its business.
    func lookUp(_ slot: Slot) -> Exchange.Lookup {
        switch data.reader.lookup(slot, now: loop.now) {
        case .hit(let token):
            exchange.record.cache = .hit
            return .ready(slot: slot, generation: token.generation)
        case .refreshDue(let token):
            exchange.record.cache = .hit
            data.desk.askForRefresh(slot, generation: token.generation)
            return .ready(slot: slot, generation: token.generation)
        case .miss:
            return .missing(slot: slot)
        }
    }
}
