internal import HTTP1
internal import Handshakes
internal import Telemetry

/// A proxy that reads the requests, and asks for answers to its challenges (`ProxyAuthentication`).
extension CallerConnection {
    /// Adds what the proxy gets of us, and nobody else, to a head that is complete but for that.
    ///
    /// Such a proxy speaks HTTP/1.1 (`UpstreamPlan.protocols`).
    /// - Returns: false where it cannot be computed.
    func addProxyLine(to upstream: UpstreamConnection, into cursor: inout OutputCursor) -> Bool {
        var attempt = exchange.nonces?.proxy ?? ProxyAttempt()
        let line: [UInt8]
        do throws(SigningFault) {
            // The request as it was written, since its target may have the credential's place.
            let written = cursor.written(in: buffers.scratch)
            line = try upstream.group.tls.proxy.line(
                for: &attempt, on: upstream,
                method: String(decoding: word(0, of: written), as: UTF8.self),
                target: Array(word(1, of: written)))
        } catch {
            data.events.warn(
                "request cannot be signed",
                [
                    LogField("route", .name(exchange.route?.name ?? "")),
                    LogField("reason", .name("for the proxy: \(error.reason)")),
                ] + correlationFields)
            return false
        }
        if attempt.isAnswering { requestNonces().proxy = attempt }
        cursor.addFields(line.span)
        return true
    }

    /// - Parameter index: of the method 0, of the target 1.
    private func word(_ index: Int, of head: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        var start = 0
        for _ in 0..<index { start = (head[start...].firstIndex(of: UInt8(ascii: " ")) ?? head.count - 1) + 1 }
        let end = head[start...].firstIndex(of: UInt8(ascii: " ")) ?? head.count
        return UnsafeRawBufferPointer(rebasing: head[start..<end])
    }

    /// The proxy asks for a credential, or refuses the one that it got: the upstream has not seen the request.
    /// - Returns: nil while the answer's body is read, so that the connection can carry the request again.
    func takeProxyChallenge(from upstream: UpstreamConnection, head length: Int) -> Exchange.Action? {
        let head = UnsafeRawBufferPointer(rebasing: upstream.input[..<length])
        var attempt = exchange.nonces?.proxy ?? ProxyAttempt()
        let challenges = data.responseHead.values(of: "Proxy-Authenticate", in: head)
        if let reason = upstream.group.tls.proxy.challenged(challenges, by: upstream, &attempt) {
            data.noteGlitch(.unusableChallenge, reason: "the proxy answered 407\(reason)", of: self)
            return .fault(Fault(.proxyRefused, receivedStatus: 407))
        }
        guard exchange.machine.body != .lost else {
            upstream.group.tls.proxy.leave(&attempt)
            data.noteGlitch(
                .unusableChallenge,
                reason: "the proxy answered 407 to a request whose body is gone; the next one brings an answer",
                of: self)
            return .fault(Fault(.proxyRefused, receivedStatus: 407))
        }
        let nonces = requestNonces()
        // The upstream has not seen the answer to its nonce either, so that its numbers would have a gap.
        nonces.lost()
        nonces.proxy = attempt
        exchange.caution.takeBack()
        if asksForProxy(upstream), !exchange.answer.body.isComplete, holdAnswer() { return nil }
        return answerProxy()
    }

    /// The answer is held because its connection is to carry the answer to the proxy's challenge.
    func asksForProxy(_ upstream: UpstreamConnection) -> Bool {
        exchange.answer.status == 407 && upstream.group.plan.isReadByProxy && exchange.answer.isPersistent
            && exchange.nonces?.proxy.isAsked == true
    }

    func answerProxy() -> Exchange.Action {
        exchange.machine.on(.lost(Fault(.proxyRefused, retry: .unsent, receivedStatus: 407), pooled: false))
    }

    /// - Returns: false where the proxy has shown that it does not know the password.
    func passProxy(_ nonces: RequestNonces, of upstream: UpstreamConnection, head length: Int) -> Bool {
        guard nonces.proxy.isAnswering else { return true }
        let head = UnsafeRawBufferPointer(rebasing: upstream.input[..<length])
        return upstream.group.tls.proxy.passed(
            &nonces.proxy, data.responseHead.values(of: "Proxy-Authentication-Info", in: head))
    }
}
