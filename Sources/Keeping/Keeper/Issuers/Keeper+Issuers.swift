package import DataPath
internal import HTTP1
internal import Handshakes
internal import Telemetry
internal import Tokens

/// Calls to issuers, as far as they wait: for their turn among the calls to one, and for its answer.
extension Keeper {
    func call(_ call: IssuerCall, network: IssuerNetwork) async throws(IssuerFault) -> IssuerAnswer {
        let origin = call.url.origin
        // Before the issuer's state is looked at: it may be another one when the turn comes.
        let line = IssuerCalls.Line(issuer: IssuerKey(origin: origin, network: network), limit: network.connections)
        let wait = Wait<Bool>()
        if !issuers.enter(line, wait) {
            let hasTurn = await word(of: wait, within: network.patience, late: false) {
                $0.issuers.giveUp(wait, in: line)
            }
            guard hasTurn else { throw IssuerFault(.overloaded, provablyUnsent: true) }
        }
        defer { issuers.leave(line)?.give(true) }
        try issuers.ask(origin, at: now)
        do throws(IssuerFault) {
            let answer = try await send(call, network: network)
            tell(pause: issuers.answered(answer, to: call.url, at: now, wall: wall), of: origin)
            return answer
        } catch {
            tell(pause: issuers.failed(error, origin, at: now), of: origin)
            throw error
        }
    }

    private func tell(pause: UInt64?, of origin: String) {
        guard let pause else { return }
        events.warn(
            "issuer keeps failing",
            [LogField("issuer", .name(origin)), LogField("pause_ms", .count(Int64(clamping: pause / 1_000_000)))])
    }

    /// Nanoseconds. An answer that is not waited for is a login that is lost, where the issuer has replaced the refresh token; callers
    /// wait no longer than `acquire_timeout` all the same.
    private static let rotationPatience: UInt64 = 120_000_000_000

    private func send(_ call: IssuerCall, network: IssuerNetwork) async throws(IssuerFault) -> IssuerAnswer {
        let patience = call.replacesRefreshToken ? max(network.timeout, Self.rotationPatience) : network.timeout
        let group = try issuerGroup(call.url, network)
        let result = await withCheckedContinuation { continuation in
            let exchange = IssuerExchange(
                call, group: group, deadline: now + patience, limits: .init()
            ) { continuation.resume(returning: $0) }
            exchange.start()
        }
        return try result.get()
    }

    private func issuerGroup(_ url: IssuerURL, _ network: IssuerNetwork) throws(IssuerFault) -> UpstreamGroup {
        var network = network
        // A proxy that does not serve this host is no part of the key: nothing would hold it, and its place in memory may become another's.
        network.proxy = network.proxy.flatMap { $0.serves(url.host) ? $0 : nil }
        let key = IssuerKey(origin: url.origin, network: network)
        if let group = issuers.group(key) { return group }
        let group = UpstreamGroup(
            plan: network.plan(to: url, key), loop: loop, buffers: resources.buffers, resolver: resources.resolver
        ) {
            [events] news in
            // Other news of an issuer are logged with the grant that they concern.
            guard case .tlsFailed(let reason) = news else { return }
            events.warn(
                "issuer TLS failed", [LogField("issuer", .name(url.origin)), LogField("reason", .name(reason))])
        }
        try issuers.add(group, key)
        return group
    }

    func skew(of identity: KeptIdentity) -> ClockSkew { identity.issuer.map { issuers.skew(of: $0) } ?? ClockSkew() }

    /// Another certificate is shown to the issuers of some identities from now on. Tokens may be bound to the one before (RFC 8705), so
    /// they are dropped; the next request gets one that fits.
    package func clientKeysChanged(_ keys: ClientKeys) {
        for identity in identities where identity.policy.network.clientKeys === keys {
            identity.epoch += 1
            for token in tokens.of(identity) {
                apply(token.machine.epochRose(to: identity.epoch, cause: .purge, at: now), to: token)
            }
        }
    }
}
